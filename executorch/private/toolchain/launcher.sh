#!/usr/bin/env bash
# Runs the Python of the folder "environment" beside this file, without anything of the user's: no
# PYTHON* variables, no user site-packages, no module from the working directory. Python's own -I
# would do the same but also ignore PYTHONHASHSEED, without which sets change their order.
#
# Where the environment is declared, it is beside this file wherever the file was copied or linked
# to; where it is not, only the file that this one links to has it.
here=${0%/*}
if [[ ! -x $here/environment/bin/python3.11 ]]; then
  here=$(readlink -f -- "$0")
  here=${here%/*}
fi
[[ $here == /* ]] || here=$PWD/$here
environment=$here/environment
if [[ ! -x $environment/bin/python3.11 ]]; then
  echo "rules_executorch: the Python environment of $0 is not there." >&2
  echo "If its folder in the cache was removed, 'bazel fetch --force @executorch_toolchains//...' makes it again." >&2
  exit 1
fi
unset "${!PYTHON@}" VIRTUAL_ENV
export PYTHONHASHSEED=0
if [[ ! -e $environment/pyvenv.cfg ]]; then
  # A copy of a whole Python. Without PYTHONHOME it would look for its modules beside the file that
  # bin/python3.11 links to.
  export PYTHONHOME=$environment
  for library in "$environment"/lib/libpython*; do
    [[ -e $library ]] && export LD_LIBRARY_PATH=$environment/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    break
  done
fi
exec "$environment/bin/python3.11" -s -P -B "$@"

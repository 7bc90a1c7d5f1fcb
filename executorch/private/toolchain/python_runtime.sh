#!/usr/bin/env bash
# The interpreter of py_binary and py_test targets of this repository. rules_python hands imports
# over in PYTHONPATH, so it is heeded here, which the launcher of the actions does not.
here=$(readlink -f -- "$0")
exec "${here%/*}/environment/bin/python3.11" -s -B "$@"

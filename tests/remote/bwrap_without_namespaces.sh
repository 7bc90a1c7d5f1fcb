#!/usr/bin/env bash
# Stands in for bubblewrap on machines that give users no namespaces. It runs the command of a
# buildbox-run in the folder with the action's inputs, with no sandbox around it: an action of Bazel
# names its inputs by relative paths, and the rest of what it sees is this machine's in either case.
set -euo pipefail

root=
folder=/
while [[ $# -gt 0 && $1 == --* ]]; do
  case $1 in
    --unshare-* | --die-with-parent | --new-session) shift ;;
    --bind)
      [[ $3 == / ]] && root=$2
      shift 3
      ;;
    --chdir)
      folder=$2
      shift 2
      ;;
    --setenv)
      export "$2=$3"
      shift 3
      ;;
    --unsetenv)
      unset "$2"
      shift 2
      ;;
    --hostname | --uid | --gid | --cap-drop | --proc | --tmpfs | --dev) shift 2 ;;
    --ro-bind | --dev-bind | --symlink) shift 3 ;;
    *)
      echo "$0: $1 is not known." >&2
      exit 1
      ;;
  esac
done
[[ -n $root ]] || {
  echo "$0: nothing is bound to /." >&2
  exit 1
}
cd "$root$folder"
exec setpriv --pdeathsig KILL -- "$@"

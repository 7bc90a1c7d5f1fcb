#!/usr/bin/env bash
# The folder has what an app needs, under the names that it looks for, and the program that fits.
set -euo pipefail
folder=$1 program=$2
found=$(cd "$folder" && printf '%s ' *)
[[ $found == "manifest.json model.pte tokenizer.json tokenizer_config.json " ]] || {
  echo "The folder has: $found"
  exit 1
}
cmp "$folder/model.pte" "$program"
digest=$(sha256sum <"$folder/model.pte")
grep -q "${digest%% *}" "$folder/manifest.json" || {
  echo "The manifest is of another program."
  exit 1
}

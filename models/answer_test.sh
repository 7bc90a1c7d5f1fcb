#!/usr/bin/env bash
# Asks a model and looks for a word in what it answers: answer_test.sh GENERATE WORD ARGUMENT...
set -u
generate=$1 word=$2
shift 2
answer=$("$generate" "$@") || exit
printf '%s\n' "$answer"
if [[ $answer != *"$word"* ]]; then
  echo "The answer does not have the word $word." >&2
  exit 1
fi

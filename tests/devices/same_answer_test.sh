#!/usr/bin/env bash
# Two programs of one model continue a prompt with the same text: same_answer_test.sh GENERATE GENERATE
set -u
first=$("$1" --prompt "@home says hi" --no-chat-template --max-new-tokens 12) || exit
second=$("$2" --prompt "@home says hi" --no-chat-template --max-new-tokens 12) || exit
printf '%s\n' "$first" "$second"
if [[ -z $first || $first != "$second" ]]; then
  echo "The answers differ." >&2
  exit 1
fi

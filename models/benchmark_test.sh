#!/usr/bin/env bash
# The benchmark of two programs prints every figure and the ratio, and writes them as JSON.
set -euo pipefail

table=$("$1" --runs 1 --prompt-tokens 8 --new-tokens 4 --json "$TEST_TMPDIR/figures.json")
echo "$table"
for text in "tiny_llama_xnnpack / tiny_llama_portable" "load, s" "prefill, tokens/s" "decode, tokens/s" "peak memory, MB"; do
  grep -qF "$text" <<<"$table" || { echo "The table has no '$text'." >&2; exit 1; }
done
grep -q '"decode_tokens_per_s"' "$TEST_TMPDIR/figures.json"

if refused=$("$1" --runs 0 2>&1); then
  echo "--runs 0 was accepted." >&2
  exit 1
fi
grep -q -- '--runs 0 is below 1. Write --runs 1 or more.' <<<"$refused"

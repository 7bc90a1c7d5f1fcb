#!/usr/bin/env bash
# A program over its budget fails its test, with what is over and what would pass.
set -uo pipefail
printed=$("$1" 2>&1)
status=$?
echo "$printed"
[[ $status == 1 ]] || {
  echo "The test of a program over its budget ended with status $status."
  exit 1
}
failed=0
while IFS= read -r words; do
  [[ $printed == *"$words"* ]] || {
    echo "MISSING: $words"
    failed=1
  }
done <<'EOF2'
ERROR in //tests/apps:over_budget: The program has
more than the 100000 it may have
It is made of
The method forward plans
more than the 1000 it may have
points below min_delegated_share = 0.999
Left to kernels of the runtime, with calls: aten::
The program calls 1 operators that are not allowed, with calls: dim_order_ops::_to_dim_order_copy.out
would pass
EOF2
exit "$failed"

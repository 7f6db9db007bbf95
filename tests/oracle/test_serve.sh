#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The serving engine and a slow simulator in Python list the same steps and completions for small
# workloads: closed and recorded arrivals, chunked prefill, KV limits with preemptions, chains, trees
# and recorded steps, every policy of speculation. Skipped without python3.
top=${top_srcdir:-.}
oracle=$top/tests/oracle/serve.py
events=$(dirname "${DRAFTSCOPE:-./draftscope}")/tests/oracle/serve_events
python3 -c 'import random' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
seed=1
cases=20
[ -z "${DSC_TEST_ALL:-}" ] || cases=60
while [ "$seed" -le $cases ]; do
    python3 "$oracle" make "$seed" >"$work/workload" || exit 99
    python3 "$oracle" run <"$work/workload" >"$work/expected" || exit 99
    "$events" <"$work/workload" >"$work/got" || failed=1
    cat "$work/got" >>"$work/all"
    if ! cmp -s "$work/expected" "$work/got"; then
        echo "not ok - workload $seed differs from line"
        diff "$work/expected" "$work/got" | head -n 3
        failed=1
    fi
    seed=$((seed + 1))
done
steps=$(grep -c '^step' "$work/all")
# What the workloads have to contain for the comparison to mean something.
awk '$1 == "end" { preempted += $3; drafted += $5; accepted += $6 }
    END { exit !(preempted > 100 && drafted > accepted && accepted > 1000) }' "$work/all" || {
    echo "not ok - the workloads lack preemptions or drafts"
    failed=1
}
[ "$failed" = 0 ] && echo "ok - $steps steps of $((seed - 1)) workloads"
exit "$failed"

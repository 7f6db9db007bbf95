#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/roofline.awk: the weights of a pass are the published parameters; without overhead, a
# pass takes its bytes over the bandwidth; the tables of README.md are those that it prints.
. "${top_srcdir:-.}/tests/gpu/common.sh"
gpu=$top/tests/gpu
predict() { # options of awk
    awk -f "$gpu/roofline.awk" "$@" "$gpu/models.tsv"
}

# Parameters without the norms and, unless it is also the output matrix, the embedding: 2 bytes
# each.
awk -F '\t' '!/^#/ && NF == 10 {
    printf "%s\t%.0f\n", $1, 2 * ($10 - (2 * $2 + 1) * $3 - ($9 ? 0 : $8 * $3))
}' "$gpu/models.tsv" >"$work/published"
predict -v show=weights >"$work/predicted"
[ -s "$work/published" ] && diff "$work/published" "$work/predicted"
ok $? "weights of a pass are the published parameters"

# Only the rows of the table by context end with a percentage: those of four models.
free="-v achievable=1 -v gap_us=0 -v latency_us=0 -v host_us=0 -v l2=1e18 -v cores=1e18"
# shellcheck disable=SC2086
predict $free | awk -F '|' '/ % \|$/ {
    n++
    for (i = 4; i <= 6; i++)
        bad = bad || $i !~ /, 100 % $/
}
END { exit n != 4 || bad }'
ok $? "without overheads a pass takes its bytes over the bandwidth"

# 15.0093 GB of weights and 513 slots of 131072 bytes at 4.8 TB/s: 3.141 ms.
# shellcheck disable=SC2086
predict $free | awk -F '|' '/^\| Llama 3 8B .* % \|$/ { good = $5 ~ /^ 3\.141,/ }
END { exit !good }'
ok $? "a token of Llama 3 8B after 512 others takes 15.08 GB over 4.8 TB/s"

slow() { # options of awk: the time of one token of the first model after 512 tokens, ms
    predict "$@" | awk '/^\| as above/ { print $5 }'
}
usual=$(slow)
for option in achievable=.5 gap_us=3 latency_us=1 host_us=50 l2=2e12; do
    awk -v a="$(slow -v $option)" -v b="$usual" 'BEGIN { exit !(b > 0 && a > b) }'
    ok $? "$option takes longer"
done
predict -v model=none >/dev/null 2>"$work/log"
[ $? = 2 ] && grep -q 'no model none in the table' "$work/log"
ok $? "a model that is not there: exit code 2"
"$gpu/readme.sh" --check
ok $? "README.md has these tables"
summary

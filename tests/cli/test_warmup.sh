#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sim --warmup N: requests that are run and not counted. The counts of the others are those of all
# requests less those of a trace of the first N, whether or not a method learns from them; rows,
# intervals and groups are of the others alone; the figure request-order draws them.
. "${top_srcdir:-.}/tests/cli/common.sh"
good trace import "$top/traces/sample/rag.jsonl" --tokenizer "$top/traces/sample/tokenizer.json" -o rag.dst
good trace merge rag.dst -o all.dst --shard-tokens 300
all=29 warmup=11
good trace cut all.dst --requests 0:$((warmup - 1)) -o first.dst
good trace cut all.dst --requests $warmup:$((all - 1)) -o rest.dst
value() { # FIELD, of the object in FILE
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2"
}
# Leaves the totals of the trace, of the requests after the first ones, of the first ones, and of
# the others without the first ones, in four files.
runs() { # method...
    good sim all.dst --json "$@"
    cp out all.json
    good sim all.dst --json --warmup $warmup "$@"
    cp out warm.json
    good sim first.dst --json "$@"
    cp out first.json
    good sim rest.dst --json "$@"
    cp out rest.json
    for count in requests output_tokens target_calls num_draft_tokens num_accepted_tokens; do
        a=$(value $count all.json) f=$(value $count first.json) w=$(value $count warm.json)
        check "$*: $count of $a less $f is $w" [ $((a - f)) = "$w" ]
    done
}
runs --method suffix --max-cached-requests 100
check "the cache matters" [ "$(value target_calls warm.json)" != "$(value target_calls rest.json)" ]
runs --method ngram-tree
check "the trie helps" [ "$(value target_calls warm.json)" -lt "$(value target_calls rest.json)" ]
for engine in loop expect; do
    for threads in 1 2; do
        runs --method ngram --evaluate $engine --threads $threads
        sed 's/\(block_efficiency_[a-z]*\)": [^,}]*/\1/g' warm.json >a
        sed 's/\(block_efficiency_[a-z]*\)": [^,}]*/\1/g' rest.json >b
        check "without a cache the first ones do not matter" cmp a b
    done
done

# Rows, and what they say of their run.
good sim all.dst --method suffix --max-cached-requests 100 --warmup $warmup --per-request
cp out warm.tsv
grep -v '^#' warm.tsv | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { if (NR == 2) first = $at["request"]; calls += $at["target_calls"]; last = $at["request"] }
    END { print NR - 1, first, last, calls }' >counted
good sim all.dst --method suffix --max-cached-requests 100 --warmup $warmup --json
check "a row per request" [ "$(cat counted)" = "$((all - warmup)) $warmup $((all - 1)) $(value target_calls out)" ]
check "a comment contains the number" grep -qx "# warmup: $warmup" warm.tsv
good sim all.dst --method suffix --max-cached-requests 100 --per-request
cp out cold.tsv
good sim all.dst --method suffix --per-request
cp out none.tsv
check "no comment without" sh -c '! grep -q "^# warmup" none.tsv'
if command -v gnuplot >/dev/null; then
    good plot request-order none.tsv cold.tsv warm.tsv -o order.svg
    check "three lines" [ "$(grep -v '^#' order.data.tsv | cut -f 1 | sed 1d | sort -u | tr '\n' ';')" = \
        "max_cached_requests 0;max_cached_requests 100;max_cached_requests 100, warmup 11;" ]
    good sweep all.dst --method ngram -o totals.tsv
    bad 2 "sim --per-request prints" plot request-order totals.tsv -o no.svg
fi
good sim all.dst --method ngram --warmup $warmup --timeline time.tsv
check "the timeline is of the first request after them" grep -qx "# request: $warmup" time.tsv

# Synthetic models have requests in an order of their own.
synthetic="--target markov:20 --method ngram-tree --requests 12 --max-tokens 30 --prompt-tokens 4"
# shellcheck disable=SC2086
for order in file shuffle:3; do
    good sim $synthetic --order $order --per-request --json
    grep '"request"' out | tail -n 4 >a
    good sim $synthetic --order $order --per-request --json --warmup 8
    grep '"request"' out >b
    check "the last of the order are counted: $order" cmp a b
done
bad 2 "warmup is $all; it must be from 0 to $((all - 1))" sim all.dst --method ngram --warmup $all
bad 2 "--warmup: '-1'" sim all.dst --method ngram --warmup -1
summary

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests by a metadata field: every row of a value equals the run over the trace that is cut to this
# value, and the integers of the values add up; shards, resumption, tune, cut, plot and report.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample

# Three scenarios: cached-session, multi-turn edit, and requests without the field.
sed -e 's/, "metadata": *{[^}]*}//' -e 's/"id": "/&plain-/' "$sample/edits.jsonl" >plain.jsonl
cat "$sample/cache.jsonl" "$sample/edits.jsonl" plain.jsonl >all.jsonl
good trace import --tokenizer "$sample/tokenizer.json" all.jsonl -o all.dst
values='cached-session
multi-turn edit
(none)'

# rows FILE: the table without comments; column NAME FILE: a column's values, the header left out.
rows() {
    grep -v '^#' "$1"
}
column() { # NAME FILE
    rows "$2" | awk -F '\t' -v name="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }'
}

# --- sim -----------------------------------------------------------------------------------------

sim="--method ngram --num-speculative-tokens 5 --cost linear:0.02,0.001"
good sim all.dst $sim --by scenario
cp out by.tsv
check "a row for all requests and for each value" \
    [ "$(column scenario by.tsv)" = "all
$values" ]
# Integer totals: those of the values add up to those of all requests.
sums=$(rows by.tsv | awk -F '\t' '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(requests|output_tokens|target_calls|num_.*|draft_calls)$/ && $i != "num_speculative_tokens") at[i]; next }
    NR == 2 { for (i in at) all[i] = $i; next }
    { for (i in at) sum[i] += $i }
    END { for (i in at) if (sum[i] != all[i]) bad++; print length(at), bad + 0 }')
check "the integers of the values add up" [ "$sums" = "8 0" ]
# A value's row is that of the trace cut to it.
good sweep all.dst $sim --by scenario -o sweep.tsv
strip() { # FILE: rows without the key column and without the header
    rows "$1" | awk -F '\t' -v OFS='\t' '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "scenario") drop = i; next }
        { line = ""; for (i = 1; i <= NF; i++) if (i != drop) line = line OFS $i; print line }'
}
number=1
printf '%s\n' "$values" | while IFS= read -r value; do
    number=$((number + 1))
    "$draftscope" trace cut all.dst --where "scenario=$value" -o cut.dst --force || exit
    "$draftscope" sweep cut.dst $sim -o cut.tsv --force 2>err || exit
    strip sweep.tsv | sed -n "${number}p" >a
    strip cut.tsv >b
    cmp a b && echo same
done >compared
check "each value's row is that of the cut trace" [ "$(grep -c same compared)" = 3 ]
good sim all.dst $sim
cp out plain
good sim all.dst $sim --by scenario --json
check "a line for each row" [ "$(grep -c '"scenario": "' out)" = 4 ]
check "the row of all requests has the totals of a run without --by" \
    [ "$(awk '$1 == "target_calls" { print $2 }' plain)" = "$(column target_calls by.tsv | head -n 1)" ]
good sim all.dst $sim --by scenario --batch-size 1,8
check "a row for each batch size of each value" [ "$(rows out | wc -l)" = 9 ]
# The loop, and methods that carry state from one request to the next, have the same sums.
good sim all.dst $sim --evaluate loop --by scenario --threads 2
check "the loop counts the same" [ "$(column num_accepted_tokens out)" = "$(column num_accepted_tokens by.tsv)" ]

# --- sweep, shards, resumption -------------------------------------------------------------------

grid="sweep all.dst --method ngram,none --num-speculative-tokens 2:5 --batch-size 1,4 --cost linear:0.02,0.001 --by scenario"
good $grid -o whole.tsv
check "a row per configuration, value and batch size" [ "$(rows whole.tsv | wc -l)" = 41 ]
for shard in 1 2 3; do
    good $grid --shard $shard/3 --request-block 5 -o shard$shard
done
good merge shard3 shard1 shard2 -o merged.tsv
tail -n +3 whole.tsv >a
tail -n +3 merged.tsv >b
check "shards merge to the bytes of the whole sweep" cmp a b
# Stopped within the values of a configuration, it goes on after the last complete one.
head -n $(($(wc -l <whole.tsv) - 13)) whole.tsv >again.tsv.part
good $grid -o again.tsv
check "resumption is reported" grep -q 'going on after 3 of 5 configurations' err
tail -n +3 again.tsv >a
tail -n +3 whole.tsv >b
check "a resumed sweep has the same bytes" cmp a b
head -n $(($(wc -l <whole.tsv) - 13)) whole.tsv >mixed.tsv.part
bad 2 'left from a different sweep' sweep all.dst --method ngram,none --num-speculative-tokens 2:5 \
    --batch-size 1,4 --cost linear:0.02,0.001 -o mixed.tsv
good $grid -o lines.jsonl
check "JSON lines" [ "$(grep -c '"scenario": "(none)"' lines.jsonl)" = 10 ]

# --- tune ----------------------------------------------------------------------------------------

good tune all.dst --method ngram --num-speculative-tokens 2:6:2 --cost linear:0.02,0.001 --by scenario -o tune.tsv
check "a verdict for each value" [ "$(grep -c '^# by_verdict_[123]: ' tune.tsv)" = 3 ]
check "the verdict on all requests is that without --by" [ "$(grep '^# verdict' tune.tsv)" = "$(
    "$draftscope" tune all.dst --method ngram --num-speculative-tokens 2:6:2 --cost linear:0.02,0.001 -o - 2>err |
        grep '^# verdict')" ]
check "few requests are said" grep -q 'so few test requests' tune.tsv
check "rows of each value" [ "$(column scenario tune.tsv | sort | uniq -c | awk '{ print $1 }' | sort -u)" = 4 ]
good tune all.dst --method ngram --num-speculative-tokens 2:6:2 --cost linear:0.02,0.001 --by scenario --batch-size 1,8 -o tune2.tsv
check "a verdict for each value and batch size" [ "$(grep -c '^# by_verdict_batch_[18]_[123]: ' tune2.tsv)" = 6 ]
# One request per value: there is nothing to judge.
sed 's/"id": *"\([^"]*\)"/"id": "\1", "metadata": {"number": "\1"}/' plain.jsonl | head -n 6 >six.jsonl
good trace import --tokenizer "$sample/tokenizer.json" six.jsonl -o six.dst
good tune six.dst --method ngram --num-speculative-tokens 2:6:2 --cost linear:0.02,0.001 --by number -o six.tsv
check "small groups abstain" [ "$(grep -c '^# by_verdict_[1-6]: .*no recommendation' six.tsv)" = 6 ]

# --- cut -----------------------------------------------------------------------------------------

good trace cut all.dst --where 'scenario=cached-session,(none)' --requests 4:23 -o few.dst --force
good trace info few.dst --by scenario --json
check "conditions apply to the selected requests" \
    [ "$(tr -d ' \n' <out | grep -o '"groups":{"cached-session":{"requests":[0-9]*' | grep -o '[0-9]*$')" = 4 ]
check "the provenance has the condition" grep -q 'scenario=cached-session,(none)' out
bad 2 'no request of all.dst is selected' trace cut all.dst --where scenario=cached-session \
    --where 'scenario=multi-turn edit' -o none.dst
check "nothing is written" [ ! -e none.dst ]
bad 2 "has the value 'qa'; scenario has cached-session, multi-turn edit, (none)" \
    trace cut all.dst --where scenario=qa -o none.dst
bad 2 "has the metadata field 'topic'; all.dst has scenario" trace cut all.dst --where topic=qa -o none.dst
bad 2 'not of the form FIELD=VALUE' trace cut all.dst --where scenario -o none.dst

# --- requests that make no sense -------------------------------------------------------------------

bad 2 "has the metadata field 'topic'; all.dst has scenario" sim all.dst $sim --by topic
bad 2 'cannot be combined' sim all.dst $sim --by scenario --per-request
bad 2 'needs a trace' sim --target markov:8 --method draft-model --by scenario
bad 2 "has the metadata field 'topic'" trace info all.dst --by topic
sed 's/"scenario"/"method"/' all.jsonl >method.jsonl
good trace import --tokenizer "$sample/tokenizer.json" method.jsonl -o method.dst
bad 2 "'method' has the name of a result column" sim method.dst $sim --by method
sed 's/"cached-session"/"all"/' all.jsonl >named.jsonl
good trace import --tokenizer "$sample/tokenizer.json" named.jsonl -o named.dst
bad 2 "has the value 'all'" sim named.dst $sim --by scenario

# --- plot, report ----------------------------------------------------------------------------------

if command -v gnuplot >/dev/null 2>&1; then
    good plot by whole.tsv -o -
    check "a bar for each value" grep -q 'multi-turn edit' out
    good plot methods whole.tsv --where batch=1 -o all.svg
    check "other figures draw all requests" sh -c '! grep -v "^#" all.data.tsv | grep -q cached-session'
    good plot methods whole.tsv --where batch=1 --by scenario -o values.svg
    check "and with --by the values" sh -c 'grep -v "^#" values.data.tsv | grep -q cached-session'
    bad 2 "no rows by 'topic'" plot methods whole.tsv --by topic -o topic.svg
    good sweep six.dst --method ngram -o six-sweep.tsv
    bad 2 'make it with --by FIELD' plot by six-sweep.tsv -o topic.svg
    good report whole.tsv tune.tsv -o report.html
    check "a section by field" grep -q 'By scenario' report.html
    check "no figure fails" sh -c '! grep -q "is not drawn" report.html'
else
    skip "plot and report by field" "no gnuplot"
fi

summary

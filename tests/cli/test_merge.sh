#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sweep in shards: four processes, one of them killed and taken up again, added up to the bytes that
# one process writes; then everything that merge must refuse.
# $grid and $slow are lists of words; sed has its own $.
# shellcheck disable=SC2086,SC2016
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample

i=0
while [ $i -lt 40 ]; do
    cat "$sample/rag.jsonl"
    i=$((i + 1))
done >many.jsonl
good trace import --tokenizer "$sample/tokenizer.json" many.jsonl -o many.dst
grid="sweep many.dst --method llma --n 1:3 --num-speculative-tokens 2:16:2 --semantics paper,code --cost linear:0.02,0.001"
good $grid -o whole.tsv --threads 2
good $grid -o whole.jsonl --evaluate loop

# --- four processes, one of them killed --------------------------------------------------------
slow="--evaluate loop --block 2 --request-block 8 --threads 1"
rows() { # finished rows of shard 2
    cat s2.part 2>/dev/null | grep -c '^[0-9]'
}
has_rows() {
    [ "$(rows)" -ge 4 ]
}
"$draftscope" $grid $slow --shard 2/4 -o s2 2>err2 &
victim=$!
wait_until $victim has_rows
bad 2 'being written by another sweep' $grid $slow --shard 2/4 -o s2
kill -KILL $victim
wait $victim 2>/dev/null
check "the killed shard has no file" [ ! -e s2 ]
check "its finished cells are kept" has_rows
check "it was killed before its end" [ "$(rows)" -lt 1740 ]
for shard in 1 3 4; do
    "$draftscope" $grid $slow --shard $shard/4 -o s$shard 2>err$shard &
    eval "pid$shard=\$!"
done
for shard in 1 3 4; do
    eval "wait \$pid$shard"
    check "shard $shard ends well" [ $? = 0 ]
done
bad 4 's2.part is unfinished' merge s1 s2.part s3 s4 -o x
bad 2 'missing of 4 shards: 2' merge s1 s3 s4 -o x
# As if the kill had come between the rows of a cell, or in the middle of one.
grep -v '^#' s1 | sed -n 2p | cut -c 1-20 | tr -d '\n' >torn
cp s2.part kept
lines=$(wc -l <kept)
for cut in 0 1 4; do
    head -n $((lines - cut)) kept | cat - torn >s2.part
    rm -f s2
    bad 4 's2.part is unfinished' merge s1 s2.part s3 s4 -o x
    good $grid $slow --shard 2/4 -o s2
    check "$cut rows and a half cut: it says that it goes on" \
        grep -q 'going on after [0-9]* of [0-9]* cells' err
    good merge s1 s2 s3 s4 -o merged.tsv --force
    check "$cut rows and a half cut: merged = one process" cmp whole.tsv merged.tsv
done
good merge s4 s2 s1 s3 -o merged.jsonl
check "merged = one process, JSON lines, in another order" cmp whole.jsonl merged.jsonl

# An unfinished head, nothing at all.
good $grid --shard 2/4 -o f2
for bytes in 0 1 50 800; do
    head -c $bytes f2 >h2.part
    rm -f h2
    good $grid --shard 2/4 -o h2
    check "a head of $bytes bytes: the same in the end" cmp f2 h2
done
bad 2 'exists already' $grid --shard 2/4 -o h2
head -c 900 f2 >h2.part
good $grid --shard 2/4 -o h2 --force
check "--force: the same" cmp f2 h2
rm h2
for other in '--shard 3/4' '--shard 2/5' '--shard 2/4 --seed 1' '--shard 2/4 --cost unit' \
    '--shard 2/4 --num-speculative-tokens 2' '--shard 2/4 --block 7' '--shard 2/4 --request-block 5' ''; do
    cp f2 h2.part
    bad 2 'different sweep' $grid $other -o h2
    check "$other: it is left as it was" cmp f2 h2.part
done
printf 'not a table\n' >h2.part
bad 2 'not the file of an unfinished sweep' $grid --shard 2/4 -o h2
bad 2 'not the file of an unfinished sweep' $grid --shard 2/4 -o h2 --force
check "a file of the user is left as it was" test "$(cat h2.part)" = 'not a table'
rm h2.part
ln -s f2 h2.part
bad 2 'h2.part is a symbolic link' $grid --shard 2/4 -o h2
bad 2 'h2.part is a symbolic link' $grid --shard 2/4 -o h2 --force
rm h2.part
good $grid -o h2
check "-o - prints the table that -o FILE writes" sh -c '"$0" $1 -o - | cmp - h2' "$DRAFTSCOPE" "$grid"
rm h2

# --- other divisions ---------------------------------------------------------------------------
divide() { # shards, options...
    n=$1
    shift
    rm -f d.*
    shard=1
    while [ $shard -le "$n" ]; do
        good $grid --shard $shard/$n -o d.$shard "$@" --threads $((shard % 2 + 1))
        shard=$((shard + 1))
    done
    good merge d.* -o divided.tsv --force
    check "$n shards $*: merged = one process" cmp whole.tsv divided.tsv
}
divide 1
divide 3
divide 11 --block 48 --request-block 100 # more shards than cells
divide 2 --block 1000000 --request-block 1000000
cp -r many.dst elsewhere.dst
good ${grid%% --*} --method none -o none.tsv
good sweep elsewhere.dst --method none --shard 2/2 -o n2
good sweep many.dst --method none --shard 1/2 -o n1
good merge n2 n1 -o moved.tsv
check "the trace may be elsewhere; shard 1 says where" cmp none.tsv moved.tsv

# --- GNU parallel, as in contrib/parallel.md ---------------------------------------------------
if parallel --version 2>/dev/null | grep -q '^GNU parallel'; then
    every() {
        parallel --joblog log --resume-failed "$draftscope" $grid --threads 1 \
            --shard {}/5 -o p.{}-of-5 ::: 1 2 3 4 5 2>err
    }
    mkdir p.4-of-5 # in the way
    every
    check "parallel: a shard failed" [ $? = 1 ]
    rmdir p.4-of-5
    every
    check "parallel: it is run again" [ $? = 0 ]
    good merge p.*-of-5 -o parallel.tsv
    check "parallel: merged = one process" cmp whole.tsv parallel.tsv
else
    echo "GNU parallel: skipped, not here"
fi

# --- refusals ----------------------------------------------------------------------------------
head -n 29 many.jsonl >few.jsonl
good trace import --tokenizer "$sample/tokenizer.json" few.jsonl -o few.dst
other() { # WORDS options...: shard 2 of another sweep
    words=$1
    shift
    rm -f o2
    good "$@" $slow --shard 2/4 -o o2
    bad 2 "$words" merge s1 o2 s3 s4 -o x
}
other 'not one sweep: trace_hash is' sweep few.dst ${grid#sweep many.dst }
other 'not one sweep: seed is 0 in s1 and 7 in o2' $grid --seed 7
other 'not one sweep: cost is' $grid --cost unit
other 'not one sweep: grid is' $grid --num-speculative-tokens 2:16:1
rm o2
good $grid --block 3 --request-block 8 --shard 2/4 -o o2
bad 2 'configuration_block=3' merge s1 o2 s3 s4 -o x
sed 's/^# draftscope: .*/# draftscope: 0.0.1/' s2 >o2
bad 2 'not one sweep: draftscope is' merge s1 o2 s3 s4 -o x
bad 2 'written by version 0.0.1' merge o2 s1 s3 s4 -o x
sed 's/^# grid: /# rule: rejection\n# grid: /' s2 >o2
bad 2 'not one sweep' merge s1 o2 s3 s4 -o x
bad 2 's2 and s2 are both shard 2/4' merge s1 s2 s3 s4 s2 -o x
bad 2 'missing of 4 shards: 2, 3, 4' merge s1 -o x
bad 4 'not the table of a shard' merge whole.tsv -o x
bad 4 'not the table of a shard' merge s1 s2 whole.jsonl -o x
: >empty
bad 4 'empty file' merge s1 empty -o x
bad 4 'not a regular file' merge s1 /dev/null -o x
bad 4 'No such file' merge s1 nothing -o x
bad 2 'one or more shards' merge -o x
bad 2 '-o FILE' merge s1
bad 2 'exists already' merge s1 s2 s3 s4 -o whole.tsv
bad 2 'not a regular file' merge s1 s2 s3 s4 -o /dev/full --force
bad 1 'cannot write' merge s1 s2 s3 s4 -o absent/x
first=$(grep -n '^configuration' s2 | cut -d : -f 1)
edited() { # EXIT WORDS SED: shard 2 with its rows changed
    sed "$3" s2 >o2
    bad "$1" "$2" merge s1 o2 s3 s4 -o x
}
row=$((first + 5))
edited 4 "o2:$row: the row is of configuration" ${row}d
edited 4 "o2:$((row + 1)): the row is of configuration" ${row}p
edited 4 "o2:$row: not a row" "${row}s/;/,/"
edited 4 "o2:$row: counts of 3 requests" "${row}s/\t8;/\t3;/"
edited 4 'is unfinished' '$d'
edited 4 "o2:$(($(wc -l <s2) + 1)): the shard ends before this row" '$p'
edited 4 'is not the division of a sweep' 's/configuration_block=2/configuration_block=0/'
edited 4 'not the table of a shard' '/^# split/d'
edited 4 'not the table of a shard' '/^configuration/d'
for shard in 1 2 3 4; do
    sed 's/^# grid: .*/# grid: method=llma n=1 num-speculative-tokens=1:48/' s$shard >g$shard
    sed '/^# cost/d' s$shard >c$shard
done
bad 4 'the grid has no value of option max-match' merge g1 g2 g3 g4 -o x
bad 4 'no cost' merge c1 c2 c3 c4 -o x
check "nothing is left of what was refused" [ ! -e x ]
check "nothing is left of what was refused" [ ! -e x.tmp ]
for text in 0/4 5/4 4 a/b 1/0 '' 1/4/; do
    bad 2 'I/N' $grid --shard "$text" -o x
done
bad 2 'requires --shard' $grid --request-block 4 -o x
bad 2 "--request-block: '-1'" $grid --shard 1/2 --request-block -1 -o x

# --- expectations: configurations are shared out, requests stay together -------------------------
good trace synth --target markov:9,seed=2 --requests 40 --max-tokens 30 -o drawn.dst
drawn="sweep drawn.dst --method draft-model --num-speculative-tokens 1:6 --rule rejection --cost linear:0.02,0.001"
good $drawn -o expected.tsv
check "an expectation need not be whole" grep -q "^# evaluate: expectations" expected.tsv
for shard in 1 2 3; do
    good $drawn --shard $shard/3 --block 1 -o e$shard
done
good merge e1 e2 e3 -o merged.tsv --force
check "expectations: merged = one process" cmp expected.tsv merged.tsv
sed '/^# evaluate: /d' e1 >l1
bad 2 'not one sweep' merge l1 e2 e3 -o x
bad 2 'summed in the order' $drawn --shard 1/3 --request-block 8 -o x
good sweep drawn.dst --method suffix --min-token-prob 0.1,0.3 --shard 1/1 -o t1
good sweep drawn.dst --method suffix --min-token-prob 0.1,0.3 -o threshold.tsv
good merge t1 -o merged.tsv --force
check "real parameters: merged = one process" cmp threshold.tsv merged.tsv

# --- several methods and rules, over a model ------------------------------------------------------
many="sweep --target markov:9,seed=2 --requests 12 --max-tokens 24 --method none,draft-model,spectr,suffix
    --rule rejection,kseq --num-speculative-tokens 1:3 --spectr.num-drafts 2,3"
good $many -o many.tsv
check "pairs that do not fit are named" grep -q "left out: .*kseq" err
for shard in 1 2 3; do
    good $many --shard $shard/3 --block 4 -o m$shard
done
good merge m1 m2 m3 -o merged.tsv --force
check "several methods: merged = one process" cmp many.tsv merged.tsv
good sweep --target markov:9,seed=2 --requests 12 --max-tokens 24 --method spectr --rule kseq \
    --num-speculative-tokens 3 --num-drafts 2 -o one.tsv
of_spectr() { # file: what spectr with two drafts of three tokens counted
    awk -F '\t' '/^#/ { next }
        !n { n = split($0, name); for (i = 1; i <= n; i++) at[name[i]] = i; next }
        $at["method"] == "spectr" && $at["num_speculative_tokens"] == 3 && $at["drafts"] == 2 {
            print $at["rule"], $at["target_calls"], $at["num_draft_tokens"], $at["accept_histogram"]
        }' "$1"
}
check "it has a row" [ "$(of_spectr one.tsv | wc -l)" = 1 ]
check "a method among others has the row that it has alone" \
    [ "$(of_spectr one.tsv)" = "$(of_spectr many.tsv)" ]
bad 2 'given twice' sweep --target markov:9 --method draft-model,draft-model -o x
bad 2 'did you mean chain' sweep --target markov:9 --method none,chian -o x
bad 2 'no valid (method, rule) combination. First problem: method' sweep --target markov:9 --method suffix,ngram --rule kseq -o x
bad 2 'SPEC expected, not both' sweep many.dst --target markov:9 --method draft-model -o x

# --- batches: several rows for a configuration ----------------------------------------------------
busy="sweep --target markov:9,seed=2 --requests 12 --max-tokens 24 --method draft-model,spectr,tree --num-speculative-tokens 1:3
    --batch-size 1,4,16 --cost roofline:llama-2-70b,llama-2-7b,h100,tp=4"
good $busy -o busy.tsv
check "a row for each batch size" [ "$(grep -vc '^#' busy.tsv)" = 22 ]
for shard in 1 2; do
    good $busy --shard $shard/2 -o b$shard
done
good merge b1 b2 -o merged.tsv --force
check "batches: merged = one process" cmp busy.tsv merged.tsv
lines=$(wc -l <busy.tsv)
for cut in 1 2 3 4 17; do
    head -n $((lines - cut)) busy.tsv >again.tsv.part
    rm -f again.tsv
    good $busy -o again.tsv
    check "$cut rows cut: the same in the end" cmp busy.tsv again.tsv
done

summary

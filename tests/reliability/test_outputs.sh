#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Outputs: an input is never overwritten, - is standard output everywhere, two commands with one output
# give a whole file, files of the user next to it are left alone, a replaced file keeps its mode, and a
# failed report leaves nothing.
# $seeds and the like are lists of words; the programs of the tests are words in quotes.
# shellcheck disable=SC2012,SC2016,SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
grid="sweep rag.dst --method llma --num-speculative-tokens 2:12:2"
good $grid -o grid.tsv
good $grid --shard 1/2 -o s1
good $grid --shard 2/2 -o s2
printf '# draftscope: 0\nbatch_size\tcontext\ttokens\tseconds\n1\t1\t1\t1\n1\t1\t8\t2\n' >cost.tsv

# --- inputs ------------------------------------------------------------------------------------
ln -s grid.tsv link.tsv
ln grid.tsv hard.tsv
cp -r rag.dst before.dst
cp grid.tsv before.tsv
refuse() { # output, command...
    out=$1
    shift
    bad 2 'is an input' "$@" -o "$out" --force
}
refuse grid.tsv plot heatmap grid.tsv
refuse hard.tsv plot heatmap grid.tsv
refuse link.tsv plot heatmap grid.tsv
refuse ./grid.tsv report grid.tsv
refuse s1 merge s1 s2
refuse s2 $grid --cost table:s2
refuse rag.dst trace cut rag.dst --tokens 8
refuse rag.dst/ trace merge rag.dst
refuse rag.dst/manifest.json trace export rag.dst
refuse "$PWD/rag.dst/manifest.json" $grid
bad 2 'is an input' sim rag.dst --method llma --timeline rag.dst/manifest.json --force
cp "$sample/rag.jsonl" in.jsonl
refuse in.jsonl trace import in.jsonl --tokenizer bytes
cp "$sample/tokenizer.json" tokenizer.json
refuse tokenizer.json trace import in.jsonl --tokenizer tokenizer.json
refuse in.jsonl trace synth --target ngram:in.jsonl,order=2
check "the trace is as it was" diff -r rag.dst before.dst
check "the table is as it was" cmp grid.tsv before.tsv
check "so is the input" cmp in.jsonl "$sample/rag.jsonl"

# --- standard output ---------------------------------------------------------------------------
# What -o FILE writes, but for its name in the command.
to_stdout() { # command...
    rm -f file.tsv ./-
    good "$@" -o file.tsv
    good "$@" -o -
    sed 's/ -o file.tsv/ -o -/' file.tsv >expected
    check "$*: - is standard output" cmp out expected
    check "$*: no file of that name" test ! -e ./-
}
to_stdout $grid
to_stdout merge s1 s2
to_stdout tune rag.dst --method llma --resamples 100
to_stdout theory length --alpha .5
to_stdout trace export rag.dst
to_stdout report grid.tsv
good plot heatmap grid.tsv -o - --terminal svg
check "plot: - is standard output" grep -q '</svg>' out
check "plot: no file of that name" test ! -e ./-

# --- files of the user -------------------------------------------------------------------------
echo precious >x.tsv.tmp
ln -s x.tsv.tmp y.tsv.tmp
good tune rag.dst --method llma --resamples 100 -o x.tsv
good tune rag.dst --method llma --resamples 100 -o y.tsv
check "a file named like the output and .tmp is left alone" test "$(cat x.tsv.tmp)" = precious
chmod 600 x.tsv
good tune rag.dst --method llma --resamples 100 -o x.tsv --force
check "a replaced file keeps its mode" test "$(ls -l x.tsv | cut -c1-10)" = -rw-------
check "no temporary file is left" sh -c 'test -z "$(ls -A | grep "\.[a-z0-9]\{8\}\.tmp$")"'

# --- two commands with one output --------------------------------------------------------------
good theory length --alpha .5 -o a
good theory length --alpha .7 -o b
i=0 broken=0 times=20
[ -z "${DSC_TEST_ALL:-}" ] || times=100
while [ $i -lt $times ]; do
    i=$((i + 1))
    rm -f both
    "$draftscope" theory length --alpha .5 -o both --force &
    first=$!
    "$draftscope" theory length --alpha .7 -o both --force || broken=$((broken + 1))
    wait $first || broken=$((broken + 1))
    sed 's/ -o both --force/ -o a/' both | cmp -s - a || sed 's/ -o both --force/ -o b/' both | cmp -s - b ||
        broken=$((broken + 1))
done
check "$i times two commands with one output: $broken broken" test $broken = 0

# --- a report that fails -----------------------------------------------------------------------
mkdir page
small_files() {
    (ulimit -f 20; trap '' XFSZ; exec "$draftscope" "$@")
}
rejects 1 'File too large' small_files report grid.tsv --latex -o page
check "and leaves nothing: $(ls page)" test -z "$(ls page)"
summary

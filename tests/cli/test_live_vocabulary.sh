#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the vocabulary of an EAGLE-3 head allows, as live run and live record print it, against counts
# of od and awk: tokens of the head from its tensor d2t, tokens of the output from --output, and
# probabilities from the exported trace.
. "${top_srcdir:-.}/tests/cli/common.sh"
fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
llama=$fixtures/llama
head=$fixtures/llama_eagle3 vocab=67 draft_vocab=40
live() { # COMMAND, options...
    what=$1
    shift
    good live "$what" --target "$llama" --prompts ids.jsonl --max-tokens 32 --threads 1 --device cpu \
        --method draft-model -k 3 --draft "$@"
}
field() { # of the JSON line in `out`
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" out
}
near() { # VALUE EXPECTED TOLERANCE
    check "$1 is $2" holds "(x - $2) ^ 2 <= $3 ^ 2" x="$1"
}
awk 'BEGIN { for (i = 0; i < 6; i++) printf "{\"prompt\": [1, %d, %d, 7, %d]}\n", 3 + i, 20 + 3 * i, 40 + i }' \
    >ids.jsonl

# Draft token d of the head is token d + d2t[d].
file=$head/model.safetensors
header=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
begin=$(dd if="$file" bs=1 skip=8 count="$header" 2>/dev/null |
    sed 's/.*"d2t": {[^}]*"data_offsets": \[\([0-9]*\),.*/\1/')
od -An -v -t d8 -j $((8 + header + begin)) -N $((8 * draft_vocab)) "$file" |
    awk '{ for (i = 1; i <= NF; i++) print d++ + $i }' >drafted
check "40 draft tokens" [ "$(sort -nu drafted | grep -c .)" = $draft_vocab ]

# "COVERED TOKENS" of the outputs in a file of --output.
count_tokens() {
    sed 's/.*"output": *{[^}]*"tokens": *\[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n' | awk '
        NR == FNR { in_head[$1] = 1; next }
        { n++; covered += ($1 + 0) in in_head }
        END { print covered, n }' drafted -
}

for temperature in 0 0.9; do
    live run "$head" --temperature $temperature --output $temperature.jsonl --json
    count_tokens $temperature.jsonl >counted
    read -r covered tokens <counted
    check "some tokens cannot be drafted" [ "$covered" -gt 0 -a "$covered" -lt "$tokens" ]
    check "draft_vocab_size" [ "$(field draft_vocab_size)" = $draft_vocab ]
    near "$(field draft_vocab_coverage)" "$covered / $tokens" 1e-15
    check "accepted tokens are tokens that can be drafted" [ "$(field num_accepted_tokens)" -le "$covered" ]
    bound=$(field draft_vocab_bound) coverage=$(field draft_vocab_coverage)
    live record "$head" --temperature $temperature --logprobs dense -o $temperature.dst
    share=$(awk "BEGIN { printf \"%.2f\", 100 * $covered / $tokens }")
    check "the note of live record" grep -q "can draft 40 of 67 tokens, which are $share % of the output" err
    cp err note
    good trace export $temperature.dst --format jsonl
    check "run and record have the same outputs" [ "$(count_tokens out)" = "$covered $tokens" ]
    if [ $temperature = 0 ]; then
        check "greedy: the coverage is the bound" [ "$bound" = "$coverage" ]
        check "greedy: the note says so" grep -q 'greedy verification accepts at most these' note
        continue
    fi
    rm -rf npy
    good trace export $temperature.dst --format npy -o npy
    od -An -v -t f4 -w4 -j 128 npy/rows.target.dense.npy | awk -v vocab=$vocab '
        NR == FNR { in_head[$1] = 1; next }
        ((FNR - 1) % vocab) in in_head { sum += exp($1) }
        END { printf "%.17g %d\n", sum * vocab / FNR, FNR / vocab }' drafted - >mass
    read -r mass positions <mass
    check "a distribution for each token" [ "$positions" = "$tokens" ]
    near "$bound" "$mass" 1e-6
    check "the bound is not the coverage" [ "$bound" != "$coverage" ]
    share=$(awk "BEGIN { printf \"%.2f\", 100 * $mass }")
    check "the note has the probability" grep -q "mean probability of $share %: no lossless rule" note
    good theory vocabulary $temperature.dst --token-map "$head" -o theory.tsv
    near "$bound" "$(awk -F '\t' '!/^#/ && n++ { print $4 }' theory.tsv)" 1e-6
done

# The text has the fields too, also where only they need the distributions.
live run "$head" --temperature 0.9
check "text" [ "$(sed -n 's/^draft_vocab_\([a-z]*\)  .*/\1/p' out | tr '\n' ' ')" = "size coverage bound " ]
near "$(sed -n 's/^draft_vocab_bound *//p' out)" "$bound" 5e-5

# The rule greedy emits the argmax token at every temperature.
live run "$head" --temperature 0.9 --rule greedy --json -o greedy.jsonl
check "rule greedy: the coverage is the bound" [ "$(field draft_vocab_bound)" = "$(field draft_vocab_coverage)" ]

# A replay does not compute the target's distributions. Other draft models lack the fields.
good live run --target "$llama" --draft "$head" --method draft-model -k 3 --temperature 0.9 \
    --replay 0.9.dst --json --threads 1 --device cpu
near "$(field draft_vocab_coverage)" "$covered / $tokens" 1e-15
check "no bound" [ "$(field draft_vocab_bound)" = null ]
live run "$fixtures/llama_eagle" --json
check "EAGLE-1" [ -z "$(field draft_vocab_size)" ]
live record "$llama" -o plain.dst
check "no note" sh -c '! grep -q "can draft" err'
summary

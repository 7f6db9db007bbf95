#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope theory lossy, vocabulary and bound through the program: numbers that follow by hand,
# the order of rules and bounds on recorded and replayed traces, and every error.
. "${top_srcdir:-.}/tests/cli/common.sh"

# The cells COLUMN of a table FILE in the rows where every COLUMN=VALUE holds.
cells() { # FILE COLUMN COLUMN=VALUE...
    table=$1 column=$2
    shift 2
    awk -F '\t' -v column="$column" -v wanted="$*" '
        /^#/ { next }
        !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; n = split(wanted, want, " "); next }
        { for (i = 1; i <= n; i++) { split(want[i], pair, "="); if ($at[pair[1]] != pair[2]) next }
          print $at[column] }' "$table"
}
near() { # A B TOLERANCE
    check "$1 is near $2" close_to "$1" "$2" 0 "$3"
}
at_most() { # A B
    check "$1 <= $2" holds 'a <= b + 1e-9' a="$1" b="$2"
}

# --- lossy ---------------------------------------------------------------------------------------
# Ber(.25) to Ber(.5): TV(p, q) = .25, the target's entropy is ln 2, and both tokens pass.
good theory lossy --bernoulli .25,.5 --rule rejection,ensemble:.6,typical,relaxed:1,0 -o lossy.tsv
near "$(cells lossy.tsv acceptance rule=rejection)" .75 1e-15
near "$(cells lossy.tsv total_variation rule=rejection)" 0 0
near "$(cells lossy.tsv acceptance rule=ensemble:0.6)" .85 1e-15
near "$(cells lossy.tsv total_variation rule=ensemble:0.6)" .1 1e-15
near "$(cells lossy.tsv kl rule=ensemble:0.6)" 0.0201355 1e-7 # .6 ln 1.2 + .4 ln .8
near "$(cells lossy.tsv acceptance rule=typical)" 1 0
near "$(cells lossy.tsv total_variation rule=typical)" .25 1e-15
near "$(cells lossy.tsv argmax_acceptance rule=rejection)" .5 0
near "$(cells lossy.tsv argmax_total_variation rule=ensemble:0.6)" .2 1e-15

good trace synth --target markov:30,noise=.8 --logprobs 30 --requests 12 --max-tokens 40 -o chain.dst
good theory lossy --trace chain.dst --summary --threads 1 -o mean.tsv
good theory lossy --trace chain.dst --summary --threads 2 -o again.tsv
check "the same with two threads" \
    sh -c 'grep -v "^# command" mean.tsv >a; grep -v "^# command" again.tsv | cmp - a'
check "nothing gains more than it changes, and the ensemble as much" awk -F '\t' '/^#/ { next }
    !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
    { g = $at["gained"]; v = $at["total_variation"]
      rows += g ~ /^[-0-9]/ && g < v + 1e-12 && $at["argmax_gained"] ~ /^[-0-9]/ &&
          $at["argmax_gained"] < $at["argmax_total_variation"] + 1e-12 &&
          ($at["rule"] !~ /^ensemble/ || (g - v) ^ 2 < 1e-24) }
    END { exit rows != 5 }' mean.tsv
good theory accept --trace chain.dst --summary -K 1 --complete -o accept.tsv
near "$(cells mean.tsv acceptance rule=rejection)" "$(cells accept.tsv rejection k=1)" 1e-9
bad 2 'is lossless and has no price' theory lossy --uniform 4,2 --rule block
bad 2 'did you mean ensemble' theory lossy --uniform 4,2 --rule ensembel:.5
bad 2 "weight '2' is not a number from 0 to 1" theory lossy --uniform 4,2 --rule ensemble:2
bad 2 'write --rule relaxed:top-k,delta' theory lossy --uniform 4,2 --rule relaxed:3
bad 2 'no distributions given' theory lossy
# More rows than a table may have, of which the mean is one.
awk 'BEGIN { for (i = 0; i <= 1000000 / 64; i++) print "0.25,0.75" }' >many.csv
rules=$(awk 'BEGIN { for (i = 1; i <= 64; i++) printf "%sensemble:%g", (i > 1 ? "," : ""), i / 100 }')
bad 2 '15626 pairs and 64 rules give more than 1000000 rows; add --summary' \
    theory lossy --draft many.csv --target many.csv --rule "$rules"
good theory lossy --draft many.csv --target many.csv --rule "$rules" --summary -o many.tsv
check "a row for each rule" [ "$(cells many.tsv acceptance positions=15626 | grep -cx 1)" = 64 ]
good trace synth --target markov:30 --logprobs 5 --requests 2 --max-tokens 8 -o listed.dst
bad 4 'needs complete distributions' theory lossy --trace listed.dst --summary

# Rules with parameters in other commands: the text is the rule's name, and it is marked.
good sweep --target markov:8 --draft markov:8 --method draft-model --requests 4 --max-tokens 20 \
    --rule block,relaxed:10,0.6,ensemble:.5 -o sweep.tsv
check "the rules of the table" [ "$(cells sweep.tsv rule | sort -u | tr '\n' ' ')" = \
    "block ensemble:0.5 relaxed:10,0.6 " ]
check "lossy rules are marked" [ "$(grep -c '^# LOSSY: rule ' sweep.tsv)" = 2 ]
good tune --target markov:8 --draft markov:8 --method draft-model --requests 40 --max-tokens 20 \
    --rule typical:0.2,0.3 --cost linear:0.1,0.02,0.001 -o tune.tsv
check "a lossy rule is not recommended" grep -q '^# verdict: no recommendation: the rule is LOSSY' tune.tsv
bad 2 'rule block has no parameters' sim chain.dst --method draft-model --rule block:1

# --- vocabulary ----------------------------------------------------------------------------------
good theory vocabulary chain.dst --draft-vocab-size 3,10,20,30 -K 1,2,8 --threads 1 -o vocabulary.tsv
good theory vocabulary chain.dst --draft-vocab-size 3,10,20,30 -K 1,2,8 --threads 2 -o again.tsv --force
check "the same with two threads" \
    sh -c 'grep -v "^# command" vocabulary.tsv >a; grep -v "^# command" again.tsv | cmp - a'
for n in 3 10 20 30; do
    bound=$(cells vocabulary.tsv bound draft_vocab_size=$n drafts=1)
    last=0
    for k in 1 2 8; do
        otm=$(cells vocabulary.tsv otm draft_vocab_size=$n drafts=$k)
        at_most "$last" "$otm"
        last=$otm
    done
    at_most "$last" "$bound"
done
near "$(cells vocabulary.tsv bound draft_vocab_size=30 drafts=1)" 1 1e-6
near "$(cells vocabulary.tsv otm draft_vocab_size=30 drafts=1)" "$(cells accept.tsv otm k=1)" 1e-9

# Coverage and calls of a map, counted from the tokens.
echo '0 1, 2 3 4 5 6 7 8 9 10 11' >map
good theory vocabulary chain.dst --token-map map -k 3 -o map.tsv
# An EAGLE-3 head names its vocabulary itself.
head=$top/live/demo/eagle3
good trace synth --target markov:2048 --requests 4 --max-tokens 20 -o wide.dst
good theory vocabulary wide.dst --token-map "$head" -o head.tsv
check "the head's tokens" test "$(awk -F '\t' '!/^#/ && n++ { print $1 }' head.tsv)" = \
    "$(sed -n 's/.*"draft_vocab_size": *\([0-9]*\).*/\1/p' "$head/config.json")"
bad 4 'which is not a token of the vocabulary of 30' theory vocabulary chain.dst --token-map "$head"
bad 4 "no tensor 'd2t'" theory vocabulary wide.dst --token-map "$top/live/demo/eagle"
good trace export chain.dst --format jsonl -o chain.jsonl
sed 's/.*"output":{"tokens":\[\([^]]*\)\].*/\1/' chain.jsonl | awk -F , '
    { n += NF; for (i = 1; i <= NF; i++) inside += $i <= 11
      for (i = 1; i <= NF; calls++) { for (d = 0; d < 3 && i < NF && $i <= 11; d++) i++; i++ } }
    END { printf "%.17g %.17g\n", inside / n, n / calls }' >counted
near "$(cells map.tsv coverage)" "$(cut -d ' ' -f 1 counted)" 1e-15
near "$(cells map.tsv block_efficiency)" "$(cut -d ' ' -f 2 counted)" 1e-12
good trace import "$top/traces/sample/rag.jsonl" --tokenizer "$top/traces/sample/tokenizer.json" -o rag.dst
good theory vocabulary rag.dst -o rag.tsv
near "$(cells rag.tsv coverage draft_vocab_size=2048)" 1 0
check "no bound without distributions" [ -z "$(cells rag.tsv bound draft_vocab_size=2048)" ]
echo '1 30' >map
bad 4 "'30' is not a token id from 0 to 29" theory vocabulary chain.dst --token-map map
bad 2 'cannot be combined' theory vocabulary chain.dst --token-map map --draft-vocab-size 3
bad 2 'is not from 1 to the 30 of the trace' theory vocabulary chain.dst --draft-vocab-size 31
bad 2 'one trace expected' theory vocabulary
good trace synth --target markov:30 --requests 1 --max-tokens 8 -o one.dst
bad 2 'one request' theory vocabulary one.dst

# --- bound ---------------------------------------------------------------------------------------
# With a fixed time per pass an output of 40 tokens takes as few passes as drafts of 9 allow: 4.
good theory bound chain.dst -k 9 --draft-cost 0 -o unit.tsv
near "$(cells unit.tsv speedup draft_cost=0)" 10 1e-12
# Drafts that cost more than a pass saves are not worth it.
good theory bound chain.dst --cost linear:0.01,0.01 --draft-cost .6 -o dear.tsv
near "$(cells dear.tsv speedup draft_cost=0.6)" 1 1e-12
# Pass times with a step after 4 tokens: two passes of 16 tokens and two of 4 are best for 40.
printf 'tokens\ttarget_s\n1\t1\n4\t1\n5\t3.5\n16\t3.9\n' >table.tsv
good theory bound chain.dst -k 15 --cost table:table.tsv --draft-cost 0 -o step.tsv
near "$(cells step.tsv speedup draft_cost=0)" 4.081632653061 1e-9 # 40/9.8
near "$(cells step.tsv block_efficiency draft_cost=0)" 10 1e-12
bad 4 'tokens' theory bound chain.dst -k 20 --cost table:table.tsv

# No method on the demo traces is faster than any drafter can be, and the oracle comes close.
for name in rag edits cache; do
    good trace import "$top/traces/sample/$name.jsonl" \
        --tokenizer "$top/traces/sample/tokenizer.json" -o $name.dst --force
    cost=linear:0.01,0.0005,0
    good theory bound $name.dst -k 16 --cost $cost --draft-cost 0 -o bound.tsv
    most=$(cells bound.tsv speedup draft_cost=0)
    for method in oracle ngram suffix llma; do
        good sweep $name.dst --method $method --num-speculative-tokens 1,2,4,8,16 --cost $cost \
            -o sweep.tsv --force
        best=$(cells sweep.tsv speedup | sort -g | tail -n 1)
        at_most "$best" "$most"
        [ $method = oracle ] && check "the oracle ($best) is within 2 % of the bound ($most)" \
            holds 'a > .98 * b' a="$best" b="$most"
    done
    rm -f bound.tsv
done
# Nor are sampled drafts above the bound of as many sequences.
good theory bound chain.dst -K 1,2 -k 6 --cost linear:0.01,0.0005 --draft-cost 0 -o bound.tsv
good sweep chain.dst --method draft-model --rule rejection,block --num-speculative-tokens 1:6 \
    --cost linear:0.01,0.0005,0 -o one.tsv
good sweep chain.dst --method spectr --rule kseq,otm --num-drafts 2 --num-speculative-tokens 1:6 \
    --cost linear:0.01,0.0005,0 -o two.tsv
at_most "$(cells one.tsv speedup | sort -g | tail -n 1)" "$(cells bound.tsv speedup drafts=1)"
at_most "$(cells two.tsv speedup | sort -g | tail -n 1)" "$(cells bound.tsv speedup drafts=2)"
bad 2 'lacks the distributions of both models' theory bound rag.dst -K 1
bad 2 'at most 16' theory bound chain.dst -K 1:17
bad 2 "--draft-cost: '-1'" theory bound chain.dst --draft-cost -1
bad 2 'one trace expected' theory bound

summary

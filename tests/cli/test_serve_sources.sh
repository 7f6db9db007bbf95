#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every kind of draft that draftscope serve takes: one client has the steps of draftscope sim for every
# method, rule and source of data that sim runs; lengths have the distributions that are named; and
# requests that differ keep the rates of all together.
# $dyadic, $loop and $data are lists of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
dyadic="--cost linear:0.015625,0.000244140625,0.0009765625"
loop="$dyadic --arrivals closed:1 --max-num-seqs 1"

# cell FILE COLUMN ROW: rows from 1 on.
cell() {
    awk -F '\t' -v name="$2" -v row="$3" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        ++n == row { print $c }' "$1"
}
near() { # description, a, b, share
    check "$1: $2 and $3" close_to "$2" "$3" "$4"
}
# The number after "NAME": in the last line of a file of JSON lines.
field() { tail -n 1 "$1" | sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p"; }

# --- the steps of sim ----------------------------------------------------------------------------
# A server has no draft in the step that ends the prefill, so its counts differ from those of sim by
# about a step of each request, a share of 1 / 64 here. Samples differ by chance in addition.
good trace synth --target markov:50 --draft markov:50 --requests 100 --logprobs 50 -o full.dst
good trace reduce full.dst --num-drafts 4 --rank-depth 8 -o reduced.dst
compare() { # share, arguments that serve and sim take
    share=$1
    shift
    good serve "$@" $loop --requests 100 -o served.tsv --force
    into sim.jsonl program sim "$@" --json
    check "sim $*" test -s sim.jsonl
    [ -s sim.jsonl ] || return
    near "$*: accepted per draft token" "$(awk -v a="$(cell served.tsv num_accepted_tokens 2)" \
        -v d="$(cell served.tsv num_draft_tokens 2)" 'BEGIN { print a / d }')" \
        "$(field sim.jsonl draft_acceptance_rate)" "$share"
    near "$*: draft tokens per draft" "$(awk -v a="$(cell served.tsv num_draft_tokens 2)" \
        -v d="$(cell served.tsv num_drafts 2)" 'BEGIN { print a / d }')" \
        "$(awk -v a="$(field sim.jsonl num_draft_tokens)" -v d="$(field sim.jsonl num_drafts)" \
            'BEGIN { print a / d }')" "$share"
}
compare 0.02 reduced.dst --method tree --tree eagle --rule greedy
compare 0.02 reduced.dst --method sequoia --budget 16 --depth 6 --rule greedy
compare 0.02 reduced.dst --method hf-dynamic --rule greedy
compare 0.02 reduced.dst --method pearl --rule greedy
compare 0.02 reduced.dst --method suffix --branches 0 --rule greedy
compare 0.02 reduced.dst --method suffix --rule rejection
for rule in greedy kseq otm specinfer; do
    compare 0.03 reduced.dst --method spectr --num-drafts 4 --num-speculative-tokens 3 --rule $rule
done
compare 0.03 reduced.dst --method spectr-tree --branches 2,2,1 --rule kseq
compare 0.03 full.dst --draft markov:50,noise=1 --method threshold --rule greedy
data="--target ngram:$top/LICENSES/GPL-3.0-or-later.txt --prompt-tokens 32 --temperature 0"
for method in none draft-model tree pearl hf-dynamic threshold cascade lookahead ouroboros; do
    if [ $method = none ]; then
        good serve $data --method none $loop --requests 100 -o served.tsv --force
    else
        compare 0.03 $data --method $method
    fi
done
good serve $data --method ouroboros $loop --requests 2 -o history.tsv
check 'the order of histories is noted' grep -q 'note: ouroboros: .* in their own order' err
check 'every method writes the same outputs' test "$(cell served.tsv output_tokens 1)" = \
    "$(cell served.tsv output_tokens 2)"
compare 0.06 --target markov:50 --method spectr --rule kseq --temperature 1 --max-tokens 256

# --- policies ------------------------------------------------------------------------------------
good serve reduced.dst --method tree --tree eagle --rule greedy $dyadic --arrivals closed:8 --requests 100 \
    --speculation fixed --speculation schedule:1-=0 --speculation schedule:1-=2 --speculation oracle \
    --speculation off-above:1e9 --speculation ema -o tree.tsv
check 'a tree is switched off' test "$(cell tree.tsv num_draft_tokens 3)" = 0
near 'or cut to two levels: 4 + 8 nodes of EAGLE' "$(awk -v a="$(cell tree.tsv num_draft_tokens 4)" \
    -v d="$(cell tree.tsv num_drafts 4)" 'BEGIN { print a / d }')" 12 0.01
good serve full.dst --draft markov:50,noise=1 --method threshold,draft-model --rule greedy $dyadic \
    --arrivals closed:8 --requests 100 --speculation schedule:1-=1 --speculation adaptive -o memoryless.tsv
check 'a policy cuts the drafts of a model' test "$(cell memoryless.tsv num_draft_tokens 2)" = \
    "$(cell memoryless.tsv num_drafts 2)" -a "$(cell memoryless.tsv num_accepted_tokens 4)" -gt 1000
bad 2 'a level of method tree has several' serve reduced.dst --method tree --rule greedy $loop \
    --speculation adaptive
for policy in schedule:1-=0 adaptive ema off-above:3 oracle; do
    bad 2 'depends on the steps before it' serve reduced.dst --method pearl --rule greedy $loop \
        --speculation $policy
done
bad 2 'is served whole' serve reduced.dst --method pearl --rule greedy --num-speculative-tokens 8 $dyadic \
    --arrivals closed:2 --max-num-seqs 2 --max-num-batched-tokens 4
good serve reduced.dst --method pearl,tree --rule greedy $dyadic --arrivals closed:8 --max-num-seqs 8 \
    --requests 100 --drain --kv-blocks 40 --max-num-batched-tokens 64 -o tight.tsv
good serve reduced.dst --method pearl --rule greedy $dyadic --arrivals closed:8 --requests 100 --drain -o wide.tsv
check 'steps of a script are whole, with room or without' test "$(cell tight.tsv num_draft_tokens 2)" = \
    "$(cell wide.tsv num_draft_tokens 2)" -a "$(cell tight.tsv preemptions 2)" -gt 0

# --- lengths -------------------------------------------------------------------------------------
iid="serve --target iid:0.7 --method draft-model $dyadic --arrivals closed:16 --requests 4000 --drain"
mean() { # option, text, column of --per-request, expected mean, share
    good $iid "$1" "$2" --per-request -o each.tsv --force
    near "$1 $2" "$(awk -F '\t' -v name="$3" '/^#/ { next }
        !h++ { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        { s += $c; n++ } END { print s / n }' each.tsv)" "$4" "$5"
}
mean --max-tokens 64 output_tokens 64 0
mean --max-tokens uniform:40:80 output_tokens 60 0.02
mean --max-tokens geometric:60 output_tokens 60 0.06
mean --max-tokens lognormal:60,0.5 output_tokens 60 0.04
mean --prompt-tokens lognormal:90,1 prompt_tokens 90 0.08
mean --max-tokens trace:full.dst output_tokens 256 0.01
printf 'prompt,output\n10,100\n20,200\n' >lengths.csv
good $iid --prompt-tokens file:lengths.csv --max-tokens file:lengths.csv --per-request -o pairs.tsv
check 'both lengths of a row belong together' awk -F '\t' '/^#/ { next }
    !h++ { for (i = 1; i <= NF; i++) { if ($i == "prompt_tokens") p = i; if ($i == "output_tokens") o = i } next }
    $o > 0 && $o == 10 * $p { n[$p]++; next } { bad = 1 } END { exit bad || n[10] < 3000 || n[20] < 3000 }' pairs.tsv
good $iid --prompt-tokens uniform:1:400 --max-tokens uniform:1:400 --per-request -o each.tsv --force
check 'lengths of a prompt and its output are independent' awk -F '\t' '/^#/ { next }
    !h++ { for (i = 1; i <= NF; i++) { if ($i == "prompt_tokens") p = i; if ($i == "output_tokens") o = i } next }
    { x = $p - 200.5; y = $o - 200.5; xy += x * y; xx += x * x; yy += y * y }
    END { r = xy / sqrt(xx * yy); print r; exit !(xx > 0 && r * r < .07 ^ 2) }' each.tsv
# 20 batches of 20 requests in the order of their numbers; Student with 19 degrees of freedom.
load="serve --target iid:0.7 --method draft-model $dyadic --arrivals poisson:2 --requests 400 --max-tokens uniform:1:99"
good $load -o load.tsv
good $load --per-request -o each.tsv --force
for time in ttft tpot e2e; do
    near "half interval of $time" "$(awk -F '\t' -v name=${time}_s '/^#/ { next }
        !h++ { for (i = 1; i <= NF; i++) { if ($i == name) c = i; if ($i == "request") r = i } next }
        $1 == "none" && $c ~ /^[0-9]/ { b = int($r / 20); s[b] += $c; n[b]++ }
        END { for (b in s) { m = s[b] / n[b]; sum += m; squares += m * m; k++ }
            print k == 20 ? 2.093024 * sqrt((squares - sum * sum / 20) / 19 / 20) : "no 20 batches" }' each.tsv)" \
        "$(cell load.tsv ${time}_mean_half_s 1)" 1e-5
done
good $iid -o step.tsv
good $iid --max-tokens geometric:256 -o spread.tsv
check 'equal lengths fall into step: the median wait is a prefill of all' holds 'a > 3 * b' \
    a="$(cell step.tsv ttft_p50_s 1)" b="$(cell spread.tsv ttft_p50_s 1)"

# --- rates ---------------------------------------------------------------------------------------
draft="--method draft-model --num-speculative-tokens 4"
into totals.jsonl program sim full.dst $draft --json
into requests.jsonl program sim full.dst $draft --per-request --json
rate=$(field totals.jsonl draft_acceptance_rate)
for how in totals.jsonl 'totals.jsonl --request-sd 1' 'totals.jsonl --max-tokens geometric:99' requests.jsonl; do
    good serve $how $draft $dyadic --arrivals closed:4 --requests 1000 -o rates.tsv --force
    near "$how" "$(awk -v a="$(cell rates.tsv num_accepted_tokens 2)" \
        -v d="$(cell rates.tsv num_draft_tokens 2)" 'BEGIN { print a / d }')" "$rate" 0.03
done
# Requests that differ have tails: the largest time per token of the slow ones.
good serve totals.jsonl $draft $dyadic --arrivals closed:4 --requests 1000 -o same.tsv
good serve totals.jsonl $draft $dyadic --arrivals closed:4 --requests 1000 --request-sd 2 -o differ.tsv
check 'an effect of requests spreads their time per token' holds 'b > 1.2 * a' \
    a="$(cell same.tsv tpot_p99_s 2)" b="$(cell differ.tsv tpot_p99_s 2)"

# --- an unfinished file --------------------------------------------------------------------------
# The same command goes on. Another temperature, draft model, corpus or length is another sweep.
corpus() { # numbers of mats
    i=0
    while [ $i -lt 400 ]; do
        printf 'the cat sat on mat %d and ran to log %d\n' $((i % $1)) $((i % 11))
        i=$((i + 1))
    done >corpus.txt
}
half="$dyadic --arrivals closed:1,2 --requests 20 --shard 1/2 -o half"
unfinished() { # arguments of serve; leaves half.part
    rm -f half half.part
    good serve "$@" $half
    mv half half.part
}
markov='--target markov:50 --method draft-model --max-tokens 20'
unfinished $markov
good serve $markov $half
check "it goes on: $(cat err)" grep -q 'going on after' err
unfinished $markov
bad 2 'different sweep' serve $markov --temperature 0.5 $half
bad 2 'different sweep' serve $markov --draft markov:50,noise=0.5 $half
ngram='--target ngram:corpus.txt --method draft-model --max-tokens 20'
corpus 7
unfinished $ngram
corpus 5
bad 2 'different sweep' serve $ngram $half
rates='--target iid:0.7 --method draft-model --max-tokens file:lengths.csv'
printf '10,20\n30,5\n' >lengths.csv
unfinished $rates
printf '10,20\n30,6\n' >lengths.csv
bad 2 'different sweep' serve $rates $half

# --- what takes chains only ----------------------------------------------------------------------
# A tree has a best number of levels; recorded steps have no length to choose.
good serve reduced.dst --method tree,pearl --rule greedy $loop --requests 20 --regret -o regret.tsv
check "levels of a tree: $(cell regret.tsv best_fixed_k 2)" test "$(cell regret.tsv best_fixed_k 2)" -gt 0
check 'no length of recorded steps' test "$(cell regret.tsv best_fixed_k 3)" = nan
check 'no regret of recorded steps' test "$(cell regret.tsv regret_oracle 3)" = nan
# The lines of a schedule have passes of the draft model over one token, after the target's.
bad 2 'several tokens' serve reduced.dst --method tree --rule greedy $loop --schedule x
bad 2 'while the target verifies' serve reduced.dst --method pearl --rule greedy $loop --schedule x
good serve reduced.dst --method hf-dynamic --rule greedy $loop --requests 20 --schedule steps.jsonl -o dynamic.tsv
check 'the drafts of recorded steps are in a schedule' awk '
    function list(name) { split($0, part, "\"" name "\": \\["); return part[2] + 0 }
    /"#"/ { next }
    tokens && list("tokens") > 1 && list("tokens") != 1 + passes { exit 1 }
    { tokens = list("tokens"); passes = list("draft_passes"); drafts += passes }
    END { exit !drafts }' steps.jsonl
bad 2 'not those of --draft' serve full.dst --method draft-model --draft markov:50 --rule greedy $loop \
    --speculation adaptive:calibrated

# --- every method ---------------------------------------------------------------------------------
# Its table has no name twice, and its parameters are those of the configuration.
good trace import "$top/tests/data/import/specbench.jsonl" --tokenizer bytes -o steps.dst
good trace import --format acclen "$top/tests/data/import/acclen.jsonl" --tokenizer bytes -o acclen.dst
good trace import --tokenizer "$top/traces/sample/tokenizer.json" "$top/traces/sample/rag.jsonl" -o rag.dst
of="ngram:rag.dst,mix=0,order="
for method in $("$draftscope" list methods | awk '{ print $1 }'); do
    case $method in
    recorded) set -- acclen.dst --drafter ngram --num-speculative-tokens 1 ;;
    adaptive-recorded) set -- acclen.dst --base-options drafter=ngram --candidate-steps 0/1 ;;
    recorded-steps) set -- steps.dst --num-speculative-tokens 4 ;;
    cascade) set -- --target "${of}4" --middle "${of}3" --draft "${of}2" --max-tokens 40 ;;
    *) set -- --target "${of}4" --draft "${of}2" --max-tokens 40 ;;
    esac
    good serve "$@" --method $method $loop --requests 4 -o method.tsv --force
    check "$method: no column twice" awk -F '\t' '!/^#/ { for (i = 1; i <= NF; i++) if (seen[$i]++) exit 1
        exit NF < 20 }' method.tsv
done
for method in ngram-tree dynamic-tree ddtree; do
    good serve --target "${of}4" --draft "${of}2" --max-tokens 40 --method $method --num-draft-tokens 9 \
        $loop --requests 4 -o method.tsv --force
    check "$method: its option" test "$(cell method.tsv max_num_draft_tokens 2)" = 9
    good sim --target "${of}4" --draft "${of}2" --max-tokens 40 --method $method --num-draft-tokens 9 \
        --requests 4 --json
    check "$method: option and count of sim" awk '{ n = gsub(/"num_draft_tokens"/, "&")
        exit n != 1 || !/"max_num_draft_tokens": 9/ }' out
    good sweep --target "${of}4" --draft "${of}2" --max-tokens 40 --method $method --num-draft-tokens 9,12 \
        --requests 4 -o sweep.tsv --force
    good report sweep.tsv -o sweep.html --force
done

# --- refusals ------------------------------------------------------------------------------------
for text in 0 -3 2.5 uniform:5 uniform:9:3 uniform:0:3 lognormal:5 lognormal:5,-1 geometric:0.5 geometric:inf \
    geometric: normal:3 300000000 ''; do
    bad 2 "--max-tokens: '" $iid --max-tokens "$text"
done
bad 4 '--prompt-tokens: ' $iid --prompt-tokens file:none.csv
bad 4 '--prompt-tokens: ' $iid --prompt-tokens trace:none.dst
printf 'a,b\n' >empty.csv
bad 4 'no requests with output' $iid --max-tokens file:empty.csv
printf '3,4\n5\n' >short.csv
bad 4 'short.csv:2' $iid --max-tokens file:short.csv
bad 2 'takes a number' serve --target markov:8 --method none $loop --max-tokens geometric:9
bad 2 'differ by themselves' serve full.dst --method none $loop --request-sd 1
bad 2 'its own effect' serve --target iid:0.5,request-sd=1 $draft $loop --request-sd 1
bad 2 'has the rates of each' serve requests.jsonl $draft $loop --request-sd 1
bad 2 "'11' is not a number from 0 to 10" serve totals.jsonl $draft $loop --request-sd 11
bad 2 '--draft needs a trace' serve totals.jsonl $draft $loop --draft markov:8
bad 2 '--temperature is for models' serve full.dst --method none $loop --temperature 1
bad 2 '--tokenizer is for models' serve totals.jsonl $draft $loop --tokenizer bytes
bad 2 'vocabular' serve full.dst $draft $loop --draft markov:8
bad 2 'third model' serve reduced.dst --method cascade --rule greedy $loop
bad 2 'never generated' serve reduced.dst --method lookahead --rule greedy $loop
summary

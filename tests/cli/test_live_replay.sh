#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope live run with replayed outputs and drafts: models of random weights run the passes, and
# the counts equal those of the simulator on the trace or, for sampled drafts, its expectations
# within chance. Data that the trace lacks is named. $shapes and $part are lists of words; $1 is for
# the inner sh.
# shellcheck disable=SC2016,SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ] || ! [ -d "$demo/target" ]; then
    echo "no draftscope-live or no demo models: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@" --threads 1 --device cpu --progress never
}
shape() { # FILE, layers, architecture: as many tokens as the demo models have
    cat >"$1" <<END
{"architectures": ["$3"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": $2, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 2048}
END
}
shape target.json 2 LlamaForCausalLM
shape draft.json 1 LlamaForCausalLM
shape head.json 1 EagleModel
shapes="--shape ./target.json --random-weights 1"

# Prints the counts, whether measured or expected, rounded as $2 says. Zeros at the end of the
# histogram belong to lengths that no request allowed.
counts() { # FILE FORMAT
    tr -d ' ' <"$1" | awk -v format="$2" '{
        n = split("output_tokens num_drafts num_draft_tokens num_accepted_tokens target_calls " \
            "draft_calls accept_histogram", name, " ")
        for (i = 1; i <= n; i++) {
            if (!match($0, "\"" name[i] "\":(\\[[^]]*\\]|[^,}]*)"))
                continue
            value = substr($0, RSTART + length(name[i]) + 3, RLENGTH - length(name[i]) - 3)
            gsub(/[][]/, "", value)
            many = split(value, item, ",")
            while (many > 1 && item[many] + 0 < .5)
                many--
            printf "%s", name[i]
            for (j = 1; j <= many; j++)
                printf " " format, item[j]
            printf "\n"
        }
    }'
}
# replay TRACE SHAPE OPTIONS...: writes the run to run.json, and the simulator's answer to sim.json.
replay() {
    trace=$1 with=$2
    shift 2
    good run $shapes --draft-shape "./$with" --replay "$trace" --replay-draft --json "$@"
    cp out run.json
    case $trace in
    greedy.dst | eagle.dst) set -- --evaluate loop "$@" ;;
    esac
    "$draftscope" sim "$trace" --json "$@" >sim.json 2>err || not_ok "sim $*: $(cat err)"
}
equal() { # arguments as for replay: equal counts
    replay "$@"
    counts run.json %.0f >a
    counts sim.json %.0f >b
    check "$*: counts as simulated" sh -c 'test "$(wc -l <a)" = 7 && diff a b'
}

record() { # TRACE DRAFT OPTIONS...
    trace=$1 with=$2
    shift 2
    good record --target "$demo/target" --draft "$demo/$with" --method none --max-tokens 100 \
        --rank-depth 6 --prompts "$demo/prompts.jsonl" -o "$trace" "$@"
}
record greedy.dst draft --requests 3 --num-drafts 1 --rollouts 8
record eagle.dst eagle --requests 3 --num-drafts 1
record drawn.dst draft --requests 3 --num-drafts 4 --temperature 1
record sure.dst target --requests 1 --num-drafts 4 --temperature 1
check "an output that ends early" \
    holds 'n < 300' n="$("$draftscope" trace info greedy.dst | awk '$1 == "output_tokens" { print $2 }')"

# --- greedy: equal counts --------------------------------------------------------------------------

equal greedy.dst draft.json --method draft-model --num-speculative-tokens 4
equal greedy.dst draft.json --method draft-model --num-speculative-tokens 200
equal greedy.dst draft.json --method hf-dynamic
equal greedy.dst draft.json --method tree
equal greedy.dst draft.json --method sequoia --budget 12 --depth 4
for part in '--pre-verify on' '--pre-verify off' '--post-verify off'; do
    equal greedy.dst draft.json --method pearl --num-speculative-tokens 3 $part
done
equal eagle.dst head.json --method draft-model --num-speculative-tokens 5
equal eagle.dst head.json --method tree --tree eagle
check "a field says so" grep -q '"replay_draft": 1' run.json
cp a replayed
good run $shapes --draft-shape ./head.json --replay eagle.dst --json --method tree --tree eagle
counts out %.0f >a
check "without --replay-draft the head drafts its own tokens" sh -c '! diff replayed a >/dev/null'
check "and accepts next to nothing" sh -c 'test "$(awk "/^num_accepted/ { print \$2 }" a)" -lt \
    "$(awk "/^num_accepted/ { print \$2 }" replayed)"'
check "the field says that, too" grep -q '"replay_draft": 0' out

# --- the recorded models replay their own outputs ------------------------------------------------
# With the models of the recording a replay takes the steps of the run, request by request, also near
# the ends of outputs, where drafts depend on EOS and on the longest possible output.
fields() { # FILE: the counts of each request
    tr -d ' ' <"$1" | grep -oE '"request_(output_tokens|target_calls|num_draft_tokens|num_accepted_tokens|draft_calls|accept_histogram)":\[[^]]*\]+'
}
forced() { # DRAFT MAX_TOKENS OPTIONS...
    with=$1 most=$2
    shift 2
    good record --target "$demo/target" --method none --max-tokens "$most" --requests 8 \
        --prompts "$demo/problems.jsonl" -o forced.dst --force
    good run --target "$demo/target" --draft "$demo/$with" --prompts "$demo/problems.jsonl" --requests 8 \
        --max-tokens "$most" --json "$@"
    fields out >a
    check "$*: each field once" sh -c 'test "$(grep -o "\"[a-z_]*num_draft_tokens\":" out | sort | uniq -d)" = ""'
    good run --target "$demo/target" --draft "$demo/$with" --replay forced.dst --json "$@"
    fields out >b
    check "$with, $*: the counts of the run" sh -c 'test "$(wc -l <a)" = 6 && diff a b'
}
forced draft 40 --method dynamic-tree --num-steps 5 --eagle-topk 5 --num-draft-tokens 26
forced draft 100 --method dynamic-tree --num-steps 5 --eagle-topk 5 --num-draft-tokens 26
forced draft 100 --method draft-model --num-speculative-tokens 9
forced draft 100 --method hf-dynamic
forced draft 100 --method threshold
forced draft 100 --method adaptive
forced draft 100 --method tree
forced draft 100 --method sequoia --budget 12 --depth 4
forced draft 100 --method pearl
forced draft 100 --method ouroboros
forced eagle3 100 --method dynamic-tree --num-steps 4 --eagle-topk 4 --num-draft-tokens 16
forced medusa 100 --method parallel
forced medusa 100 --method ddtree --num-draft-tokens 12

# --- recorded accept lengths: equal counts ---------------------------------------------------------
# Two requests of 20 tokens, in 6 steps and in 4. As a log may have them: steps that wrote 2 tokens less
# than the text has, and 5 more.
awk 'BEGIN {
    tokens = ""
    for (i = 0; i < 20; i++)
        tokens = tokens (i ? "," : "") 7 * i % 31 + 3
    accept = "4,0,2,0,1,0,0,4,3,2,1,0,4,4,4,3,2,1,0,0"
    line = "{\"prompt\": {\"tokens\": [3, 4, 5]}, \"output\": {\"tokens\": [" tokens "]}, "
    print line "\"accept\": {\"own\": {\"cap\": 4, \"accepted\": [" accept "]}}, " \
        "\"steps\": {\"aligned\": true, \"accepted\": [3, 0, 5, 1, 2, 3], \"drafted\": [5, 5, 6, 1, 4, 5]}}"
    print line "\"accept\": {\"own\": {\"cap\": 4, \"accepted\": [" accept "]}}, " \
        "\"steps\": {\"aligned\": true, \"accepted\": [4, 4, 4, 4], \"drafted\": [5, 5, 5, 7]}}"
}' >steps.jsonl
sed 's/"aligned": true, //; s/, "drafted": [^]]*]//; s/2, 3\]}/2, 1]}/; s/4, 4\]}/4, 9]}/' steps.jsonl >logged.jsonl
for trace in steps logged; do
    check "a trace of $trace" "$draftscope" trace import $trace.jsonl --vocab-size 2048 -o $trace.dst \
        --progress never
done
equal steps.dst draft.json --method recorded-steps
check "the recorded steps" grep -q '"target_calls": 10,' run.json
check "a pass for each draft token" grep -q '"draft_calls": 48,' run.json
equal steps.dst head.json --method recorded-steps --draft-passes 5
check "the draft model is the head" sh -c 'test "$(grep -oE "_weights_sha256\": \"[0-9a-f]{64}" run.json | sort -u | wc -l)" = 2'
equal steps.dst draft.json --method recorded-steps --draft-passes 12
equal steps.dst head.json --method recorded --num-speculative-tokens 3
equal steps.dst draft.json --method adaptive-recorded --candidate-steps 1/2/4
equal logged.dst draft.json --method recorded-steps --num-speculative-tokens 4
check "and the tokens that no step wrote" grep -q '"target_calls": 12,' run.json
check "a step accepted 9 of 9" grep -q '"accept_histogram": \[[0-9,]*,1\]' run.json
good run $shapes --replay steps.dst --replay-draft --json --method recorded-steps --draft-passes 0
check "without passes no draft model is needed" grep -q '"draft_calls": 0,' out
cp out none.json
for passes in 2 5; do
    good run $shapes --draft-shape ./draft.json --replay steps.dst --replay-draft --json --baseline \
        --method recorded-steps --draft-passes $passes
    cat out
done | cat - none.json >lengths.jsonl
check "validate accepts them" "$draftscope" validate --trace steps.dst --live lengths.jsonl
for log in eagle sps-68m; do
    file=${DSC_TEST_DATA:-}/specbench/$log.jsonl
    if [ ! -r "$file" ]; then
        skip "the log of $log" "no DSC_TEST_DATA"
        continue
    fi
    head -n 8 "$file" >log.jsonl
    check "import of $log" "$draftscope" trace import log.jsonl -o log.dst --force --progress never \
        --tokenizer "$DSC_TEST_DATA/tokenizers/llama2.json" --questions "${file%/*}/questions.jsonl"
    for file in target draft head; do
        sed 's/"vocab_size": 2048/"vocab_size": 32000/' $file.json >$file-32000.json
    done
    with=draft
    [ $log != eagle ] || with=head
    good run --shape ./target-32000.json --draft-shape ./$with-32000.json --random-weights 1 \
        --replay log.dst --replay-draft --json --method recorded-steps --num-speculative-tokens 5
    # The log counts the target's own token of a step.
    grep -o '"accept_lengths": \[[^]]*' log.jsonl | sed 's/.*\[//' | tr ',' '\n' |
        awk '{ calls++; accepted += $1 - 1 }
             END { print "target_calls " calls; print "num_accepted_tokens " accepted }' | sort >a
    counts out %.0f | grep '^target_calls\|^num_accepted_tokens' | sort >b
    check "$log: calls and accepted tokens of the log" sh -c 'test "$(wc -l <a)" = 2 && diff a b'
done

# --- sampled: expected counts ------------------------------------------------------------------

# A draft model equal to the target is always accepted, so nothing is random.
equal sure.dst draft.json --method spectr --rule kseq
equal sure.dst draft.json --method spectr-tree --rule specinfer
equal sure.dst draft.json --method spectr --rule otm --num-drafts 2 --num-speculative-tokens 7
equal sure.dst draft.json --method draft-model --rule rejection
equal sure.dst draft.json --method draft-model --rule block --num-speculative-tokens 9
# Calls of three seeds, each of three requests, against three times the expectation; the samples are
# those of these seeds, and 8 % is about three standard errors.
near() { # TRACE, arguments as for replay: counts within chance
    of=$1
    shift
    for seed in 1 2 3; do
        replay "$of" draft.json --seed $seed "$@"
        counts run.json %.9g
    done >sums
    counts sim.json %.9g >>sums
    awk -v name="$*" '/^target_calls/ { n++; if (n <= 3) sum += $2; else expected = 3 * $2 }
        END { error = sum / expected - 1; print name ": " sum " calls, " expected " expected"
              exit !(n == 4 && error < .08 && error > -.08) }' sums
    check "$*: calls as expected" test $? = 0
}
near drawn.dst --method spectr --rule kseq
near drawn.dst --method spectr --rule greedy
near drawn.dst --method spectr-tree --rule otm --branches 2,2,1
# Every token is half as probable to the draft model, so j tokens of a block are accepted with
# probability about .5^j: their product counts, not the least.
awk 'BEGIN { for (i = 0; i < 600; i++) { comma = i ? "," : ""
        token = token comma (97 + i % 26); target = target comma "-0.5"; draft = draft comma "-1.2" }
    printf "{\"prompt\": \"ab\", \"output\": [%s], \"logprobs\": [%s], \"draft_logprobs\": [%s]}\n", token, target,
        draft }' >half.jsonl
check "a trace of such tokens" "$draftscope" trace import --tokenizer bytes half.jsonl -o half.dst
near half.dst --method draft-model --rule block
near drawn.dst --method draft-model --rule block
cp run.json one.json
good run $shapes --draft-shape ./draft.json --replay drawn.dst --replay-draft --json --method draft-model \
    --rule block --seed 3
counts out %.0f >a
counts one.json %.0f >b
check "one seed, one result" cmp -s a b
replay drawn.dst draft.json --method draft-model --rule block --seed 4
counts run.json %.0f >a
check "another seed, another" sh -c '! cmp -s a b'

# --- validate --live over replayed runs  -------------------------------------------------------

for length in 2 4; do
    replay greedy.dst draft.json --method draft-model --num-speculative-tokens $length
    cat run.json
done >replayed.jsonl
check "validate accepts replayed runs" "$draftscope" validate --trace greedy.dst --live replayed.jsonl
for seed in 1 2 3; do
    replay drawn.dst draft.json --method spectr --rule kseq --seed $seed
    cat run.json
done >replayed.jsonl
check "sampled runs, too" "$draftscope" validate --trace drawn.dst --live replayed.jsonl

# --- errors ------------------------------------------------------------------------------------

refused() { # words, TRACE, options
    words=$1 trace=$2
    shift 2
    bad 2 "$words" run $shapes --draft-shape ./draft.json --replay "$trace" --replay-draft --json "$@"
}
echo '{"prompt": {"tokens": [3, 4]}, "output": {"tokens": [5, 6, 7]}}' >other.jsonl
check "a trace of outputs alone" "$draftscope" trace import other.jsonl --vocab-size 2048 \
    -o other.dst --progress never
refused 'requires column draft_rank' other.dst --method draft-model
refused 'requires column draft_rank' other.dst --method pearl
refused 'needs column draft_logp' other.dst --method spectr
refused 'ranks of the draft model are recorded 6 deep' eagle.dst --method tree --tree chain:7
refused 'kseq of the trace' eagle.dst --method spectr --rule kseq
refused '--method recorded-steps replays its steps' steps.dst --method draft-model
refused 'is an upper bound here' steps.dst --method recorded --policy oracle
refused 'were recorded up to 4' steps.dst --method recorded --num-speculative-tokens 5
refused 'needs recorded steps' other.dst --method recorded-steps
refused 'the trace lacks' other.dst --method recorded
refused 'num-speculative-tokens N sets it' logged.dst --method recorded-steps
bad 2 '--draft DIR (or --draft-shape PRESET' run $shapes --replay steps.dst --replay-draft \
    --method recorded-steps
bad 2 'passes of a draft model, and there is none' run $shapes --replay steps.dst --replay-draft \
    --method adaptive-recorded --candidate-steps 2/4
medusa="--target $demo/target --draft $demo/medusa --replay steps.dst --replay-draft --method recorded-steps"
bad 2 'Medusa heads draft in one pass, which is --draft-passes 1' run $medusa
good run $medusa --draft-passes 1 --json
check "one pass of the heads for a draft" grep -q '"draft_calls": 10,' out
bad 2 'live run --replay TRACE --replay-draft' run $shapes --replay steps.dst --method recorded-steps
refused 'uses no draft model' greedy.dst --method llma
refused 'that a trace does not contain' greedy.dst --method threshold
refused 'that a trace does not contain' greedy.dst --method ouroboros
refused 'contains no acceptances' greedy.dst --method tree --rule specinfer-wor
refused 'contains no acceptances' greedy.dst --method pearl --rule rejection
bad 2 '--replay-draft requires --replay NAME.dst' run $shapes --draft-shape ./draft.json \
    --method draft-model --prompts "$demo/prompts.jsonl" --replay-draft
bad 2 'contains draft heads' run --shape ./head.json --random-weights 1 --method none \
    --replay greedy.dst

summary

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A greedy trace of draftscope live record predicts other methods on the same models: every count of
# draftscope sim equals that of draftscope live run. Queries beyond the trace are refused.
. "${top_srcdir:-.}/tests/cli/common.sh"
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ] || ! [ -d "$demo/target" ]; then
    echo "no draftscope-live or no demo models: skipped"
    exit 77
fi

live() { # command, folder of the draft model, options
    command=$1 draft=$2
    shift 2
    "$draftscope" live "$command" --target "$demo/target" --draft "$demo/$draft" --threads 1 \
        --prompts "$demo/prompts.jsonl" --requests 4 --device cpu "$@" >out 2>err </dev/null ||
        not_ok "live $command $*: $(cat err)"
}
# Prints a JSON value without zeros at the end of a list, which belong to lengths that no request
# allowed.
value() { # FILE FIELD
    sed -n 's/.*"'"$2"'": *\(\[[^]]*\]\|[^],}]*\).*/\1/p' "$1" | sed 's/\(,0\)*\]/]/'
}
kept='output_tokens target_calls num_accepted_tokens accept_histogram'
drafted='num_drafts num_draft_tokens draft_calls'
# The fields must be equal in the last lines of both files.
same() { # what, fields...
    what=$1
    shift
    for field in "$@"; do
        a=$(value run.json "$field") b=$(value sim.json "$field")
        if [ -n "$a" ] && [ "$a" = "$b" ]; then ok; else not_ok "$what, $field: '$a' and '$b'"; fi
    done
}
both() { # trace, folder of its draft model, method and its options
    trace=$1 draft=$2
    shift 2
    live run "$draft" --max-tokens "$most" --json "$@"
    cp out run.json
    "$draftscope" sim "$trace" --json --evaluate loop "$@" >sim.json 2>err ||
        not_ok "sim $trace $*: $(cat err)"
}
exact() { # as both: every count
    both "$@"
    # shellcheck disable=SC2086
    same "$*" $kept $drafted
}
# Unrecorded candidates may have been EOS tokens, which have no children.
nearly() { # as both: what was drafted is as much, or a little more
    both "$@"
    # shellcheck disable=SC2086
    same "$*" $kept
    for field in $drafted; do
        a=$(value run.json "$field") b=$(value sim.json "$field")
        if [ "$a" -le "$b" ] && [ $((b * 100)) -le $((a * 103)) ]; then ok; else
            not_ok "$*, $field: $a drafted, $b predicted"
        fi
    done
}
refused() { # 'words on stderr' trace, method and its options
    words=$1 trace=$2
    shift 2
    bad 2 "$words" sim "$trace" "$@"
}

# --- a draft model, an EAGLE head, Medusa heads ------------------------------------------------

most=48
live record draft --max-tokens $most --method draft-model --num-speculative-tokens 3 --rank-depth 5 --rollouts 16 \
    --num-drafts 4 -o draft.dst
live record eagle --max-tokens $most --method none --rank-depth 8 --rollouts 8 --num-drafts 1 \
    -o eagle.dst
live record medusa --max-tokens $most --method none --rank-depth 5 --rollouts 4 --num-drafts 1 \
    -o medusa.dst

exact draft.dst draft --method draft-model --num-speculative-tokens 7
exact draft.dst draft --method sa-draft-model
exact draft.dst draft --method sa-draft-model --num-speculative-tokens 7 --match-threshold 1
exact draft.dst draft --method hf-dynamic
exact draft.dst draft --method adaptive --warmup-batches 2 --update-interval 1
exact draft.dst draft --method adaptive --controller ucb --candidate-steps 0/2/5 --history run
exact draft.dst draft --method adaptive-ngram --controller ucb
exact draft.dst draft --method adaptive-suffix --warmup-batches 0 --base-options min-token-prob=0
exact draft.dst draft --method pearl
exact draft.dst draft --method pearl --pre-verify off
exact draft.dst draft --method pearl --post-verify off
exact draft.dst draft --method pearl --num-speculative-tokens 3 --pre-verify off --post-verify off
exact draft.dst draft --method tree
nearly draft.dst draft --method sequoia
exact draft.dst draft --method spectr --num-drafts 3 --num-speculative-tokens 5 # draws of a greedy run are the most probable
exact draft.dst draft --method spectr-tree
exact eagle.dst eagle --method tree
exact eagle.dst eagle --method sequoia --depth 6
exact eagle.dst eagle --method draft-model --num-speculative-tokens 4
exact eagle.dst eagle --method sa-draft-model --match-threshold 2
exact eagle.dst eagle --method hf-dynamic --max 8
exact eagle.dst eagle --method adaptive --controller ucb --ucb-semantics code
exact eagle.dst eagle --method spectr --num-drafts 2 --num-speculative-tokens 4
exact eagle.dst eagle --method pearl
exact eagle.dst eagle --method pearl --pre-verify off
exact medusa.dst medusa --method draft-model --num-speculative-tokens 4
exact medusa.dst medusa --method hf-dynamic --num-assistant-tokens 2 --max 4
nearly medusa.dst medusa --method tree --tree medusa

# Outputs that ended by EOS: drafts continued after the EOS token that they did not predict.
most=160
live record draft --max-tokens $most --method none --rollouts 16 --num-drafts 1 -o ended.dst
if [ "$("$draftscope" trace info ended.dst | sed -n 's/^output_tokens *//p')" -lt $((4 * most)) ]; then
    ok
else
    not_ok "no output ended by itself"
fi
exact ended.dst draft --method draft-model --num-speculative-tokens 7
exact ended.dst draft --method sa-draft-model --num-speculative-tokens 7 --match-threshold 2
exact ended.dst draft --method pearl
most=48

# By default a draft-model is replayed by expectation: equal, except that its last draft is cut at the end
# of an output.
both draft.dst draft --method draft-model --num-speculative-tokens 7
"$draftscope" sim draft.dst --json --method draft-model --num-speculative-tokens 7 2>err | sed 's/\.0\([],}]\)/\1/g' >sim.json
# shellcheck disable=SC2086
same "chain, expected" $kept

# Sampled drafts at temperature 1 are expected only on request; a greedy run has none.
both draft.dst draft --method spectr --num-speculative-tokens 4
into sim.json "$draftscope" sim draft.dst --json --method spectr --num-speculative-tokens 4
# shellcheck disable=SC2086
same "spectr, as it ran" $kept $drafted
if grep -q 'note: spectr' err; then not_ok "spectr: $(cat err)"; else ok; fi
into sim.json "$draftscope" sim draft.dst --json --method spectr --num-speculative-tokens 4 --evaluate expect
if grep -q 'note: spectr: .* temperature 0, .* temperature 1' err; then ok; else
    not_ok "spectr expected: $(cat err)"
fi

# A cut trace has no ends of its own: its drafts end where it does.
"$draftscope" trace cut draft.dst --requests 1:3 -o part.dst >out 2>err || not_ok "cut: $(cat err)"
"$draftscope" sim part.dst --method tree >out 2>err || not_ok "tree on part of a trace: $(cat err)"
"$draftscope" sim draft.dst --method pearl --timeline steps.tsv >out 2>err ||
    not_ok "timeline: $(cat err)"
if [ "$(grep -c . steps.tsv)" -gt 10 ]; then ok; else not_ok "no timeline of PEARL"; fi

# --- queries that are refused ------------------------------------------------------------------

refused 'with --rank-depth 9' eagle.dst --method tree --tree chain:9
refused 'with --rank-depth 9' eagle.dst --method draft-model --num-speculative-tokens 9
refused 'probabilities off the output' draft.dst --method threshold
refused '--middle SPEC' draft.dst --method cascade
refused 'use --target' draft.dst --method ouroboros

# --- the rule of a sampled trace ---------------------------------------------------------------

says() { # 'words on stderr' options
    words=$1
    shift
    if "$draftscope" sim drawn.dst --json "$@" >sim.json 2>err && grep -qF -e "$words" err; then
        ok
    else
        not_ok "'$words' is not in: $(cat err)"
    fi
}
rule_is() {
    if grep -qF "\"rule\": \"$1\"" sim.json; then ok; else not_ok "rule $1: $(cat sim.json)"; fi
}
live record draft --max-tokens $most --temperature 1 --seed 5 --method draft-model --num-drafts 4 \
    -o drawn.dst
refused 'samples from the draft' drawn.dst --method spectr-tree --rule greedy --evaluate loop
says 'rule: rejection, because the trace was recorded at temperature 1' --method draft-model
rule_is rejection
says 'rule: kseq, because' --method spectr
rule_is kseq
says 'rule: kseq, because' --method spectr-tree
rule_is kseq
says 'rule: greedy, though' --method tree
rule_is greedy
says 'draft_rank' --method draft-model --rule greedy
rule_is greedy
into given.json "$draftscope" sim drawn.dst --json --method draft-model --rule rejection
into sim.json "$draftscope" sim drawn.dst --json --method draft-model
if cmp -s given.json sim.json; then ok; else not_ok "the default is another rejection"; fi
"$draftscope" trace merge drawn.dst -o merged.dst >out 2>err || not_ok "merge: $(cat err)"
into sim.json "$draftscope" sim merged.dst --json --method draft-model
rule_is rejection
into sim.json "$draftscope" sim draft.dst --json --method draft-model
rule_is greedy

summary

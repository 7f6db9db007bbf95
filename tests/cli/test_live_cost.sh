#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope live run --cost: what a full step costs, said before the run, and the predicted speedup of
# the run's passes, after it; both against arithmetic with a linear cost. Tables of live profile.
. "${top_srcdir:-.}/tests/cli/common.sh"
llama=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}/llama
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@"
}
field() {
    sed -n "s/.*\"$1\": \(\[[^]]*\]\|[^,}]*\).*/\1/p" out
}
says() { # words
    check "'$1' is in: $(cat err)" grep -qF -e "$1" err
}
near() { # FIELD EXPRESSION: equal to 6 digits
    check "$1 is $(field "$1"), not $2" holds "x / ($2) > .999999 && x / ($2) < 1.000001" x="$(field "$1")"
}
echo '{"prompt": [1, 5, 9, 13, 17, 21, 5, 9]}' >ids.jsonl
run() { # METHOD AND PARAMETERS...
    good run --target "$llama" --draft "$llama" --prompts ids.jsonl --max-tokens 24 --threads 1 \
        --json --cost linear:0.010,0.001,0.002 --method "$@"
}
# The price of what ran: 10 ms for a pass, 1 ms for a token in it, 2 ms for a pass of the draft model.
priced() {
    near predicted_speedup "24 * 11 / ($(field target_calls) * 10 + $(field target_call_tokens) + \
        2 * $(field draft_calls))"
    near step_cost "$(field output_tokens) / $(field target_calls) / $(field predicted_speedup)"
}

# --- before the run: a full step -----------------------------------------------------------------
run draft-model --num-speculative-tokens 3 # (10 + 4 + 3 x 2) / 11 = 1.82: 1 + a + a^2 + a^3 at a = 0.479
says "a full step of draft-model with num-speculative-tokens=3 (up to 4 tokens in the target's pass, 3 \
passes of the draft model) costs 1.82 plain tokens on linear:0.010,0.001,0.002: it pays only above 1.82 \
tokens per step, an i.i.d. acceptance rate of 0.48"
priced
check "the draft model is the target" test "$(field num_accepted_tokens)" = 18
run lookahead # (10 + 56) / 11 = 6, and it emits at most 5 tokens
says "a full step of lookahead with window=7 level=5 guesses=7 (up to 56 tokens in the target's pass) \
costs 6.00 plain tokens on linear:0.010,0.001,0.002: no full step pays, whatever is accepted, because it \
emits at most 5 tokens; choose smaller sizes or no speculation"
priced
run lookahead --window 40 --guesses 0 # the window alone costs more than a step can emit
says "no step pays, whatever is accepted, because it emits at most 1 tokens"
run lookahead --window 2 --level 3 --guesses 1
says "it pays only above 1."
run tree --tree chain:3 # as draft-model
says "a full step of tree with tree=chain:3 (up to 4 tokens in the target's pass, 3 passes of the draft model) costs 1.82 plain tokens"
priced
run ngram --num-speculative-tokens 9
says "(up to 10 tokens in the target's pass) costs 1.82 plain tokens"
priced
run spectr --num-drafts 2 --num-speculative-tokens 3 # (10 + 7 + 6) / 11
says "(up to 7 tokens in the target's pass, 3 passes of the draft model) costs 2.09 plain tokens"
run hf-dynamic # drafts of no fixed length
says "a full step of hf-dynamic"
priced
run none
check "nothing to say before plain decoding" sh -c '! grep -q "a full step" err'
near predicted_speedup 1
near step_cost 1

# --- after the run -------------------------------------------------------------------------------
run draft-model --num-speculative-tokens 3
says "draftscope: 4.00 tokens per step, which cost 1.82 plain tokens: predicted speedup 2.20; passes without"
says "(--baseline measures the speedup)"
run draft-model --num-speculative-tokens 3 --baseline
says "predicted speedup 2.20, measured "
for head in draft-model dynamic-tree; do
    good run --target "$llama" --draft "${llama}_eagle" --prompts ids.jsonl --max-tokens 24 --json \
        --method $head --cost linear:0.010,0.001,0.002
    priced
done
good run --target "$llama" --draft "${llama}_medusa" --method parallel --num-speculative-tokens 2 \
    --prompts ids.jsonl --max-tokens 24 --json --cost linear:0.010,0.001,0.002
says "(up to 3 tokens in the target's pass, 1 pass of the draft model) costs 1.36 plain tokens"
good run --target "$llama" --method ngram --prompts ids.jsonl --max-tokens 8 --json
check "no prediction without --cost" sh -c '! grep -q "predicted\|step_cost" out err'

# --- tables and errors ---------------------------------------------------------------------------
good profile --target "$llama" --draft-layers 0:1 --tokens 1:8 --context 0:32 --prefill-tokens 0 \
    --repeats 1 -o cost.tsv
good run --target "$llama" --draft-layers 0:1 --method draft-model --num-speculative-tokens 3 \
    --prompts ids.jsonl --max-tokens 16 --json --cost table:cost.tsv
says "on table:cost.tsv: "
check "a predicted speedup: $(field predicted_speedup)" test "$(field predicted_speedup)" != null
refuse() { # exit code, words, options...
    code=$1 words=$2
    shift 2
    bad "$code" "$words" run --target "$llama" --prompts ids.jsonl --max-tokens 16 "$@"
}
refuse 4 'a pass with tokens 10 was not measured' --method lookahead --cost table:cost.tsv
refuse 2 'choose table:FILE' --method lookahead --cost unit
refuse 4 'missing.tsv' --method lookahead --cost table:missing.tsv
refuse 2 'method cascade has a third' --method cascade --draft "$llama" --middle "$llama" \
    --cost linear:0.010,0.001,0.002
good profile --target "$llama" --tokens 1:8 --context 0:32 --prefill-tokens 0 --repeats 1 -o one.tsv
refuse 4 'draft_s' --method draft-model --draft "$llama" --cost table:one.tsv

summary

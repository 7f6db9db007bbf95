#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Races of the kernels, on the emulated device under ThreadSanitizer (tests/cuda_host/order.h).
# First on kernels with one known fault each, which must be found, and without it, which must pass;
# then on every operation, once between the threads of a block and once between blocks and kernels,
# and on the passes of an engine, where kernels overlap.
. "${top_srcdir:-.}/tests/gpu/common.sh"
bin=$(pwd)/tests/cuda_host
# Where addresses are random in more bits than ThreadSanitizer expects, it does not start.
plain="setarch $(uname -m) -R"
$plain true 2>"$work/log" || plain=
run() { # settings, program, arguments...
    EMULATED=$1
    export EMULATED
    shift
    $plain "$@" >"$work/log" 2>&1
    code=$?
}
run every=1 "$bin/races" barrier right
if grep -q 'ThreadSanitizer: unexpected memory mapping' "$work/log"; then
    echo "skipped: $(head -n 1 "$work/log")"
    exit 77
fi
$plain "$bin/races" >"$work/cases"
[ -s "$work/cases" ]
ok $? "races lists its cases"
while read -r name wanted where; do
    for whole in 0 1; do
        run "whole_blocks=$whole" "$bin/races" "$name" right
        [ $code = 0 ]
        ok $? "$name, whole_blocks=$whole: right: exit code $code"
        case $where$whole in threads1 | blocks0) continue ;; esac
        run "whole_blocks=$whole" "$bin/races" "$name" wrong
        [ $code = "$wanted" ]
        ok $? "$name, whole_blocks=$whole: wrong: exit code $code, $wanted is expected"
    done
done <"$work/cases"
check_all() { # settings, where
    # shellcheck disable=SC2086 # words
    run "$1" "$bin/check_races" --quick ${only:+--only $only}
    ok $code "races between $2: $(grep SUMMARY "$work/log" || tail -n 1 "$work/log")"
}
# All launches only under DSC_TEST_ALL: of the threads, otherwise one in five of each kernel and the one
# after it, which takes two thirds of the time.
only=rows,passes every=5
[ -z "${DSC_TEST_ALL:-}" ] || only='' every=1
check_all "whole_blocks=0 every=$every" 'the threads of a block'
check_all whole_blocks=1 'blocks and kernels'

# The prompt is long enough for a split attention, and a step verifies five tokens, which is the
# product of tensor cores.
cat >"$work/shape.json" <<'END'
{"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 96, "vocab_size": 300,
 "rms_norm_eps": 1e-5, "max_position_embeddings": 1024, "hidden_act": "silu",
 "tie_word_embeddings": false}
END
awk 'BEGIN { printf "{\"prompt\": [1"
    for (i = 0; i < 140; i++) printf ", %d", 3 + i * 7 % 60
    print "]}" }' >"$work/prompts.jsonl"
for options in '--dtype bf16 --temperature 0.9 --top-k 40 --top-p 0.9' '--dtype f32'; do
    # shellcheck disable=SC2086 # words
    run whole_blocks=1 "$bin/races_live" run --method draft-model -k 4 --shape "$work/shape.json" \
        --draft-shape "$work/shape.json" --random-weights 3 --device cuda --max-tokens 4 \
        --prompts "$work/prompts.jsonl" $options
    [ $code = 0 ]
    ok $? "races between the kernels of an engine, $options: exit code $code"
done
summary

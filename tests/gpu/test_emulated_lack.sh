#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope-live on an emulated device (tests/cuda_host/settings.cc) that lacks something: exit code
# 3 and one line with the figure; or that fails: exit code 1. Finished parts of a run, a recording or a
# profile are kept.
build=$(pwd)
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
live=${EMULATED_LIVE:-$build/tests/cuda_host/emulated_live}
program() {
    "$live" "$@"
}
lacks() { # SETTINGS, 'words', arguments...
    EMULATED=$1
    export EMULATED
    shift
    bad 3 "$@"
    unset EMULATED
}

# The second prompt is long enough for a split attention, which needs memory of its own.
awk 'BEGIN { printf "{\"prompt\": [1, 5, 9, 13]}\n{\"prompt\": [1"
    for (i = 0; i < 600; i++) printf ", %d", 3 + i * 7 % 60
    print "]}" }' >prompts.jsonl
cat >shape.json <<'END'
{"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 67, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 1024, "hidden_act": "silu", "tie_word_embeddings": false}
END
models="--shape ./shape.json --random-weights 3 --dtype f32 --prompts prompts.jsonl --max-tokens 4"
plain="--method none $models --device cuda --progress never"

# --- before the first request ----------------------------------------------------------------------

# shellcheck disable=SC2086
{
    good run $plain
    lacks driver=0 "there is no driver" run $plain
    lacks driver=12040 "CUDA 12.4 < 13.0" run $plain
    lacks devices=0 "no CUDA-capable device" run $plain
    lacks capability=75 "compute capability 7.5; at least 8.0 is needed" run $plain
    lacks "capability=120 no_kernels=1" "the kernels were built for 8.0, 9.0" run $plain
    lacks memory=10000 "the weights need" run $plain
    lacks memory=10000 "has 1e-05 GB free of 1e-05" record $plain -o never.dst
    lacks memory=100000 "GB are free" run $plain
    lacks memory=100000 "GB are free" profile --shape ./shape.json --random-weights 3 --tokens 1 \
        --context 900 --batch-size 9 --device cuda --progress never -o never.tsv
    lacks no_blas=1 "cuBLAS cannot be loaded: libcublas.so.none" run $plain
    # A device that CUDA does not see is no reason to stop if it was not requested.
    EMULATED=driver=12040
    export EMULATED
    good list
    good run --method none $models
    unset EMULATED
}

# --- in mid-run --------------------------------------------------------------------------------------

# Runs with a growing number until all goes well: each failure is one line with these words, and the
# first request is kept if the second one, at the number $second, fails.
until_it_works() { # setting, next number, exit code, 'words'
    n=0 second=0
    while n=$(($2)) && [ $n -lt 5000 ]; do
        # shellcheck disable=SC2086
        EMULATED=$1=$n "$live" run $plain --json -o kept.jsonl --force >out 2>err
        code=$?
        [ $code = 0 ] && break
        check "$1=$n: exit code $3, not $code" test $code = "$3"
        check "$1=$n: one line with '$4', not $(cat err)" test "$(grep -c "$4" err) $(wc -l <err)" = "1 1"
        if grep -q 'prompts.jsonl:2: ' err; then
            second=$n
            check "$1=$n: the first request is kept" test "$(wc -l <kept.jsonl)" = 1
        fi
    done
    check "$1: in the end, all goes well" test "$code" = 0
    check "$1: one failed in the second request" test "$second" -gt 0
}
until_it_works allocations 'n + 1' 3 'out of memory: [0-9]* of [0-9]* bytes'
# shellcheck disable=SC2086
lacks "allocations=$second" "prompts.jsonl:2: " record $plain -o kept.dst
check "record: the first request is kept" sh -c '"$1" trace verify kept.dst | grep -q "ok, 1 requests"' \
    sh "$draftscope"

until_it_works launches 'n * 5 / 4 + 4' 1 'an illegal memory access'
# A profile begins with a product of as much memory as there is, hence little.
EMULATED="launches=260 memory=42000000" "$live" profile --shape ./shape.json --random-weights 3 \
    --tokens 1,2 --context 9 --device cuda --repeats 9 --prefill-tokens 0 --progress never \
    -o kept.tsv >out 2>err
check "profile: exit code 1" test $? = 1
check "profile: complete passes are kept, and the line says so: $(cat err)" \
    grep -q 'passes of up to 2 tokens are in kept.tsv: .*an illegal memory access' err
check "profile: they are a table" test "$(grep -vc '^#' kept.tsv)" -ge 3
summary

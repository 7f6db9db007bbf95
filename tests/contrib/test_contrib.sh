#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Python's view of traces: contrib/read_trace.py and write_trace.py against the program, and
# contrib/export_trace.py against distributions computed in another way. PYTHON chooses the interpreter.
# Skipped without numpy and safetensors; its last part needs torch and transformers.
top=${top_srcdir:-.}
case $top in /*) ;; *) top=$(cd "$top" && pwd) ;; esac
draftscope=${DRAFTSCOPE:-$top/draftscope}
case $draftscope in /*) ;; *) draftscope=$(cd "$(dirname "$draftscope")" && pwd)/$(basename "$draftscope") ;; esac
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import numpy, safetensors' 2>/dev/null || {
    echo "skipped: no $python with numpy and safetensors"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
passed=0 failed=0

good() { # command...
    if "$@" >out 2>err </dev/null; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok - $*: $(tail -n 3 err)"
    fi
}
bad() { # 'words on stderr' command...
    words=$1
    shift
    if "$@" >out 2>err </dev/null; then
        failed=$((failed + 1))
        echo "not ok - went well: $*"
    elif ! grep -qF -e "$words" err; then
        failed=$((failed + 1))
        echo "not ok - '$words' is not in: $(tail -n 3 err)"
    else
        passed=$((passed + 1))
    fi
}
check() {
    good "$python" "$top/tests/contrib/check.py" "$@"
}
export_trace() {
    "$python" "$top/contrib/export_trace.py" "$@"
}
hash_of() {
    "$draftscope" trace info "$1" | awk '$1 == "hash" { print $2 }'
}

# --- reading and writing --------------------------------------------------------------------------

cat >ids.jsonl <<'END'
{"id": "a", "prompt": [1, 5], "output": [7, 2], "references": [[3, 4], {"tokens": [9], "kind": "turn"}], "metadata": {"x": "é"}, "logprobs": [-0.1, 0], "draft_rows": [[[7, -0.105], [9, -2.813]], [[2, 0]]], "target_rows": [[[7, -0.105], -2.3053], [[2, 0], null]]}
{"prompt": [1], "output": [], "references": [], "logprobs": [], "draft_rows": [], "target_rows": []}
{"id": "ü", "prompt": [], "output": [3], "references": [[]], "logprobs": [-1.5], "draft_rows": [[[7, -0.105], -2.3053]], "target_rows": [[[1, -0.105], -2.3053]]}
END
good "$draftscope" trace import --vocab-size 10 ids.jsonl -o ids.dst
check read ids.dst ids.jsonl
good "$python" "$top/contrib/read_trace.py" ids.dst
check rewrite ids.dst ids2.dst
good "$draftscope" trace verify ids2.dst
good test "$(hash_of ids.dst)" = "$(hash_of ids2.dst)"
# a shard a request: other files, the same lines
check rewrite ids.dst ids3.dst 1
good "$draftscope" trace verify ids3.dst
good test -e ids3.dst/shard-00002.safetensors
good "$draftscope" trace export ids.dst -o ids.out
good "$draftscope" trace export ids3.dst -o ids3.out
good cmp ids.out ids3.out
good "$draftscope" trace export ids.dst --format npy -o ids.columns
good "$draftscope" trace export ids3.dst --format npy -o ids3.columns
check columns ids.dst ids.columns
good diff -r ids.columns ids3.columns
# texts, references, the tokenizer
for name in rag edits; do
    good "$draftscope" trace import --tokenizer "$top/traces/sample/tokenizer.json" \
        "$top/traces/sample/$name.jsonl" -o $name.dst
    check rewrite $name.dst ${name}2.dst
    good "$draftscope" trace verify ${name}2.dst
    good test "$(hash_of $name.dst)" = "$(hash_of ${name}2.dst)"
done
check refused none.dst

# --- export, with distributions that a file of this folder makes up in the place of vLLM -------------------

cat >forced.jsonl <<'END'
{"prompt": [1, 5], "output": [7, 2, 11], "references": [[7, 2]]}
{"prompt": [3], "output": []}
{"id": 7, "prompt": {"tokens": [4, 4]}, "output": {"tokens": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}, "extra": 1}
END
PYTHONPATH=$top/tests/contrib/fake
export PYTHONPATH
vllm="export_trace --backend vllm --tokenizer none --target 2:12 --draft 1:12"
good $vllm forced.jsonl --logprobs 5 -o forced.dst
good "$draftscope" trace verify forced.dst
check vllm forced.dst 1:12 2:12 5
good "$draftscope" theory accept --trace forced.dst --summary --num-drafts 1:3
good $vllm forced.jsonl --logprobs 12 -o whole.dst
check vllm whole.dst 1:12 2:12 12
good "$draftscope" theory accept --trace whole.dst --summary --num-drafts 1 --json -o whole.json
grep -q '"rejection": 0\.' whole.json || { failed=$((failed + 1)) && echo "not ok - a range: $(cat whole.json)"; }
# what the target writes: greedy is the most probable token each time, a seed repeats itself
good $vllm forced.jsonl --generate 40 --greedy --logprobs 3 -o greedy.dst
good $vllm forced.jsonl --generate 40 --seed 5 --logprobs 3 -o sampled.dst
good $vllm forced.jsonl --generate 40 --seed 5 --logprobs 3 -o again.dst
check vllm greedy.dst 1:12 2:12 3
check vllm sampled.dst 1:12 2:12 3
good test "$(hash_of sampled.dst)" = "$(hash_of again.dst)"
good test "$(hash_of sampled.dst)" != "$(hash_of greedy.dst)"
# a prompt that leaves no room
printf '{"prompt": [1%s]}\n' "$(printf ',1%.0s' $(seq 62))" >full.jsonl
good $vllm full.jsonl --generate 4 -o full.dst
good "$draftscope" trace verify full.dst
# no rows: statistics alone; the target alone
good $vllm forced.jsonl --logprobs 0 -o bare.dst
good "$draftscope" trace verify bare.dst
good export_trace --backend vllm --tokenizer none --target 2:12 forced.jsonl --limit 1 -o one.dst
good "$draftscope" trace verify one.dst
# through the program and back, to the byte
for name in forced bare; do
    good "$draftscope" trace export $name.dst -o $name.out
    good "$draftscope" trace import --vocab-size 12 $name.out -o $name-again.dst
    good test "$(hash_of $name.dst)" = "$(hash_of $name-again.dst)"
done
# and what stops it: nothing is left
line() {
    printf '%s\n' "$1" >line.jsonl
}
no() { # words line options...
    words=$1
    line "$2"
    shift 2
    bad "$words" $vllm line.jsonl -o no.dst "$@"
    if [ -e no.dst ] || [ -e no.dst.tmp ]; then failed=$((failed + 1)) && echo "not ok - left: $*"; fi
}
no 'line.jsonl:1: ' '{"prompt": [1]'
no 'a name occurs twice' '{"prompt": [1], "prompt": [1], "output": [1]}'
no 'the output is neither' '{"prompt": [1]}'
no 'the prompt is neither' '{"prompt": [1, "2"], "output": [1]}'
no 'there is no tokenizer' '{"prompt": "text", "output": [1]}'
no 'the prompt has no tokens' '{"prompt": [], "output": [1]}'
no 'the draft has no token 12' '{"prompt": [12], "output": [1]}'
no 'the target has no token 12' '{"prompt": [1], "output": [12]}' --draft 1:13
no 'outside the vocabulary of 12' '{"prompt": [1], "output": [1], "references": [[-1]]}'
no 'have 64 tokens; the draft takes 63' "{\"prompt\": [1$(printf ',1%.0s' $(seq 62))], \"output\": [1]}"
no 'NaN is not JSON' '{"prompt": [1], "output": [1], "metadata": {"x": NaN}}'
no 'the input has no lines' ''
no 'lists at temperature 1' '{}' --temperature 0.5
no 'lists at temperature 1' '{}' --logprobs dense
no 'exists already' '{}' -o one.dst
good $vllm forced.jsonl --force -o one.dst
good "$draftscope" trace verify one.dst
# what a killed run left is replaced, what is not ours is not
mkdir left.dst.tmp
: >left.dst.tmp/shard-00000.safetensors.tmp
: >left.dst.tmp/diary
bad 'which is no part of a trace' $vllm forced.jsonl -o left.dst
rm left.dst.tmp/diary
good $vllm forced.jsonl -o left.dst
good "$draftscope" trace verify left.dst
good test ! -e left.dst.tmp

# --- export, transformers -------------------------------------------------------------------------

if "$python" -c 'import torch, transformers' 2>/dev/null; then
    export HF_HUB_OFFLINE=1
    cat >texts.jsonl <<'END'
{"prompt": "Say it again: the café is open.", "output": " The café is open.", "references": ["the café", {"text": "open", "kind": "turn"}]}
{"id": "cut", "prompt": {"text": "Please correct the notice."}, "output": "A notice for our", "finish_reason": "length"}
END
    tokenizer=$top/traces/sample/tokenizer.json
    rm -rf greedy.dst sampled.dst
    check transformers texts.jsonl "$tokenizer"
    for trace in lists dense bf16 sampled greedy; do
        good "$draftscope" trace verify $trace.dst
        good "$draftscope" theory accept --trace $trace.dst --summary --normalize --num-drafts 1:2
    done
    good "$draftscope" theory accept --trace dense.dst --summary --num-drafts 1 --json -o dense.json
    check means dense.dst dense.json
    # tokens, texts and the EOS token are as the program itself has them
    good "$draftscope" trace import --tokenizer "$tokenizer" texts.jsonl -o imported.dst
    for trace in lists imported; do
        "$draftscope" trace export $trace.dst |
            sed -E 's/,"(draft|target|logprobs).*//; t; s/}$//' >$trace.texts
    done
    good cmp lists.texts imported.texts
else
    echo "without torch and transformers: the export from real models is not tested"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]

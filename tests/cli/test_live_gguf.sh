#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GGUF files as --target and --draft, whose outputs are those of the Hugging Face folder, and as
# --tokenizer; files that are neither.
. "${top_srcdir:-.}/tests/cli/common.sh"
oracle=$top/tests/oracle
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
cat >ids.jsonl <<'END'
{"prompt": [1, 5, 9, 13, 17, 21, 5, 9]}
{"prompt": [3, 60, 61, 62]}
END
run() { # output, arguments...
    out=$1
    shift
    "$draftscope" live run --prompts ids.jsonl --max-tokens 12 --threads 1 -o "$out" --force "$@" \
        >/dev/null 2>err
    check "live run $*: $(cat err)" test $? = 0
}
tokens() {
    sed 's/.*"output":{\([^}]*\)}.*/\1/' "$1"
}
for model in llama llama3 qwen2 qwen3 gpt2 gemma3_new; do
    run folder.jsonl --method none --target "$oracle/fixtures/$model"
    run gguf.jsonl --method none --target "$oracle/gguf/$model.gguf"
    check "$model: the outputs are those of the folder" \
        test "$(tokens folder.jsonl)" = "$(tokens gguf.jsonl)"
    check "$model: there are outputs" test "$(tokens gguf.jsonl | grep -c tokens)" = 2
done
run gguf.jsonl --method none --target "$oracle/gguf/llama.gguf"
run draft.jsonl --method draft-model --target "$oracle/gguf/llama.gguf" \
    --draft "$oracle/gguf/llama.gguf" -k 3
check "a draft model: same outputs" test "$(tokens gguf.jsonl)" = "$(tokens draft.jsonl)"

# The tokenizer in the file.
echo '{"prompt": "the lower", "output": " hello world"}' >text.jsonl
"$draftscope" trace import --tokenizer "$oracle/gguf/pieces.gguf" text.jsonl -o text.dst >/dev/null 2>err
check "trace import --tokenizer FILE.gguf: $(cat err)" test $? = 0
into said "$draftscope" trace export text.dst -o text.out
check "the text comes back: $(cat text.out)" grep -q 'the lower' text.out

cp text.jsonl no.gguf
"$draftscope" live run --method none --target no.gguf --prompts ids.jsonl >out 2>err
check "no GGUF file: exit code" test $? = 4
check "no GGUF file: $(cat err)" grep -q 'no.gguf: neither a folder with a config.json nor a GGUF file' err
head -c 3000 "$oracle/gguf/llama.gguf" >short.gguf
"$draftscope" live run --method none --target short.gguf --prompts ids.jsonl >out 2>err
check "a truncated file: exit code" test $? = 4
check "a truncated file: $(cat err)" grep -q 'short.gguf: .*truncated' err
summary

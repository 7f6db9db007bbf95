#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files without an end in the place of every file that a command reads: each command ends with one
# line that names the file and exit code 4, within bounded time and memory.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
SECONDS_MOST=30 # of processor time; an endless reader would take for ever
MEMORY_MOST=1500000 # KiB of address space

good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst

endless() { # what the message says, command...
    says=$1
    shift
    # A sanitizer reserves address space for itself.
    (
        [ -n "$SANITIZE_CFLAGS" ] || ulimit -v $MEMORY_MOST
        ulimit -t $SECONDS_MOST
        exec timeout 600 "$draftscope" "$@"
    ) >out 2>err
    code=$?
    check "$*: exit code 4, not $code" test $code = 4
    check "$*: one line: $(cat err)" test "$(wc -l <err)" = 1
    check "$*: $says: $(cat err)" grep -qF "$says" err
}

# --- text ----------------------------------------------------------------------------------------
nul="/dev/zero: not a text file: byte 0 is NUL"
endless "$nul" plot heatmap /dev/zero -o x.svg
endless "$nul" sim rag.dst --method llma --cost table:/dev/zero
endless "$nul" sim rag.dst --method llma --cost roofline:/dev/zero,h100
endless "$nul" sim --target markov:8 --method sequoia --acceptance-by-rank /dev/zero
endless "$nul" sim --target markov:8 --draft markov:8 --method tree --tree /dev/zero
endless "$nul" trace import "$sample/rag.jsonl" -o x.dst --tokenizer /dev/zero
endless "$nul" validate --live /dev/zero --trace rag.dst

# --- lines ---------------------------------------------------------------------------------------
line="/dev/zero:1: the line is longer than the limit of 128 MiB"
endless "$line" trace import /dev/zero -o x.dst --tokenizer bytes
endless "$line" trace import --format jsonl /dev/zero -o x.dst --tokenizer bytes
endless "$line" trace import --format specbench "$sample/rag.jsonl" --questions /dev/zero -o x.dst --tokenizer bytes

# --- mapped and hashed files, traces ---------------------------------------------------------------
endless "/dev/zero: not a regular file" report /dev/zero -o x.html
endless "/dev/zero: not a regular file" merge /dev/zero /dev/zero -o x.tsv
for name in rows.npy rows.csv rows.safetensors; do
    ln -s /dev/zero $name
    endless "$name: not a regular file" theory accept --draft $name --target $name
done
endless "/dev/zero is not a trace" trace info /dev/zero
cp -r rag.dst manifest.dst
ln -sf /dev/zero manifest.dst/manifest.json
endless "manifest.dst/manifest.json: not a regular file" trace info manifest.dst
cp -r rag.dst shard.dst
ln -sf /dev/zero shard.dst/shard-00000.safetensors
endless "shard.dst/shard-00000.safetensors: truncated" sim shard.dst --method llma

# --- live ----------------------------------------------------------------------------------------
echo '{"prompt": [1, 2, 3]}' >prompts.jsonl
live() { # file in the place of that name in the model's folder
    rm -rf model
    cp -r "$top/tests/oracle/fixtures/llama" model
    chmod -R u+w model
    ln -sf /dev/zero "model/$1"
    endless "model/$1: not a regular file" live run --target model --method ngram --device cpu \
        --prompts prompts.jsonl --max-tokens 8
}
if [ -x "${draftscope%/*}/draftscope-live" ]; then
    live config.json
    live model.safetensors
    endless "$line" live run --target "$top/tests/oracle/fixtures/llama" --method ngram --device cpu --prompts /dev/zero
fi
check "nothing is left" sh -c '! ls -d x.* 2>/dev/null'
summary

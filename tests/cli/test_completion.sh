#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The completion for bash: words as readline would hand them over, and what it offers for the last.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
if ! command -v bash >/dev/null; then
    echo "no bash: skipped"
    exit 77
fi
completion=$top/cli/draftscope.bash
export completion

verdict() { # NAME: the files `wanted` and `got` must be equal
    if cmp -s wanted got; then
        ok
    else
        not_ok "$1"
        diff wanted got | sed 's/^/# /'
    fi
}

# Arguments: the words after the program's name. What goes to stderr counts as an offer.
cat >complete.bash <<'END'
set -u
. "$completion"
COMP_WORDS=("$program_typed" "$@")
COMP_CWORD=$#
_draftscope || echo "status $?"
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
END
program_typed=$DRAFTSCOPE
export program_typed

# offers "WANTED WORDS" WORDS...: exactly these are offered for the last of the words (in any order).
offers() {
    printf '%s\n' "$1" | tr ' ' '\n' | sed '/^$/d' | LC_ALL=C sort >wanted
    shift
    bash complete.bash "$@" </dev/null 2>&1 | LC_ALL=C sort >got
    verdict "draftscope $*|"
}

# The names of options of a help text, with --help.
names_of() {
    { echo --help; "$DRAFTSCOPE" "$@" --help | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z][a-z-]*\).*/\2/p'; } |
        tr '\n' ' '
}

first_words() {
    "$DRAFTSCOPE" list "$1" | sed 's/ .*//' | tr '\n' ' '
}

mkdir a.dst "my traces" "my traces/b.dst"
touch t.tsv t.jsonl in.jsonl.gz tokenizer.json t.txt p.npy p.csv p.safetensors p.txt \
    "my traces/two words.tsv"

# commands
offers "advise list live merge plot report serve sim sweep theory trace tune validate --help --version" ""
offers "serve sim sweep" s
offers "append cut export import info merge reduce synth verify --help" trace ""
offers "verify" trace v
offers "rejection relaxed" sim a.dst --rule re
offers "greedy,specinfer greedy,specinfer-wor" sweep a.dst --rule greedy,sp
offers "h100 h200" advise --gpu h
offers "llama-3.3-70b" advise --target-shape llama-3.3
offers "accept bound certify length lossy ouroboros pearl regret speedup tree vocabulary --help" theory ""
offers "pearl" theory p
offers "" nonsense ""
offers "" --version ""

# options
offers "$(names_of sweep --method none)" sweep a.dst -
offers "$(names_of sim --method llma)" sim a.dst --method llma --
offers "$(names_of sim --method llma)" sim a.dst --method = llma --
offers "$(names_of sim --method oracle)" sim --method oracle a.dst --
offers "$(names_of sim --method ngram)" sim a.dst --method pld --
offers "$(names_of sim --method tree)" sim a.dst --method medusa --
offers "paper,code" tune a.dst --method llma --semantics paper,c
offers "--max-match --max-tokens --method --middle" sim a.dst --method llma --m
offers "$(names_of trace import)" trace import -
offers "--progress" trace import in.jsonl --pro
offers "$(names_of plot)" plot heatmap t.tsv -
offers "$(names_of theory accept)" theory accept -
offers "$(names_of merge)" merge t.tsv -
offers "$(names_of validate)" validate --published -
offers "--temperature" theory accept --draft p.npy --te
offers "--top-k --top-p" theory accept --top
offers "" sim -- -

# values
offers "$(first_words methods)" sim a.dst --method ""
offers "$(first_words methods)" sim a.dst --method =
offers "llma" sweep a.dst --method = ll
offers "docs turns prompt all" sim a.dst --method llma --references ""
offers "turns" sim a.dst --method llma --references = t
offers "llma,parallel llma,pearl" tune a.dst --method llma,p
offers "speedup throughput block_efficiency" tune --objective ""
offers "vllm sglang tensorrt-llm llama.cpp transformers" tune --engine ""
offers "paper,code" sweep a.dst --method llma --semantics paper,c
offers "auto loop expect" sim a.dst --evaluate ""
offers "bench: fit: linear: prometheus: roofline: sps: table: unit" sim a.dst --cost ""
offers "jsonl csv csv-steps csv-positions npy" trace export a.dst --format ""
offers "ngram: markov: iid: rates: conditional: al: rate: histogram: table:" trace synth --target ""
offers "markov:" trace synth --draft = m
offers "$(first_words formats)" trace import --format ""
offers "bytes" trace import --tokenizer b
offers "tokenizer.json" trace import --tokenizer = t
offers "svg" plot heatmap t.tsv -o x --terminal s
offers "" sim a.dst --threads ""
offers "fixed schedule adaptive ema off-above oracle" serve --speculation ""
offers "p.npy p.csv p.safetensors" theory accept --draft p
offers "p.npy p.csv p.safetensors" theory accept --target = p
offers "a.dst" theory accept --trace a
offers "auto never json" theory accept --progress ""
offers "" theory accept --bernoulli ""
offers "" theory accept ""

if [ -x "${DRAFTSCOPE%/*}/draftscope-live" ]; then
    offers "run record profile list --help" live ""
    offers "llama-2-7b llama-2-13b llama-2-70b" live run --shape llama-2
    offers "auto cpu cuda cuda:" live run --device ""
    offers "a.dst" live run --target a
    offers "--baseline --batch-invariant" live run --method none --ba
fi

# arguments
offers "a.dst" sim a
offers "a.dst" sweep --method llma a
offers "" sim a.dst ""
offers "a.dst" trace verify a.dst a
offers "a.dst" trace merge a.dst a
offers "a.dst" trace append a.dst a.dst a
offers "a.dst" trace cut a
offers "$(first_words figures)" plot ""
offers "$(first_words figures)" plot -o x ""
offers "t.tsv t.jsonl" plot heatmap t
offers "t.tsv t.jsonl" report t.tsv t
offers "methods rules models figures costs formats engines" list ""
offers "t.tsv t.jsonl t.txt tokenizer.json" merge t
offers "" sweep a.dst --shard ""
offers "in.jsonl.gz" trace import in
offers "pearl" validate --published pe
offers "eagle" validate --published pearl e
printf '%s\n' "my traces/b.dst" >wanted
bash complete.bash trace info 'my\ traces/b' >got 2>&1
verdict "a name with a space, escaped"
printf '%s\n' "my traces/two words.tsv" >wanted
bash complete.bash report '"my traces/two' >got 2>&1
verdict "a name with a space, in quotes"

# A program that is not there, or fails, offers nothing and says nothing.
for program_typed in "$work/nothing" false; do
    offers "--help --version" ""
    offers "" sim --method ""
    offers "" plot heatmap t
done

summary

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every line that is printed for an engine parses as that engine's JSON or command line, and every
# option and key of it is a printed name of `draftscope list engines -v`.
. "${top_srcdir:-.}/tests/cli/common.sh"
command -v python3 >/dev/null || {
    echo "no python3"
    exit 77
}
good list engines -v
cp out names
check "each name has a source" sh -c '! grep "^  " names | grep -v " ([^()]* .*)$" | grep .'
check "names that were not found are not printed" \
    sh -c '! grep "not found in" names | grep -v "not printed: "'

cat >parse.py <<'END'
import argparse, ast, json, re, shlex, sys
names, engine = {}, None
for line in open("names"):
    if not line.startswith("  "):
        engine = line.split()[0]
        names[engine] = set()
    elif "not printed: " not in line:
        names[engine].add(line.split()[0])

def known(engine, words):
    missing = [w for w in words if w not in names[engine]]
    assert not missing, (engine, missing)

def options(engine, words, flags):
    parser = argparse.ArgumentParser(exit_on_error=True, allow_abbrev=False)
    known(engine, [w for w in words if w.startswith("-")])
    for name in names[engine]:
        if name.startswith("-"):
            parser.add_argument(name, dest=name, type=flags.get(name, str))
    return vars(parser.parse_args(words))

numbers = {"--speculative-num-steps": int, "--speculative-eagle-topk": int,
           "--speculative-num-draft-tokens": int, "--spec-draft-n-max": int,
           "--spec-draft-n-min": int, "--spec-draft-p-min": float,
           "--spec-ngram-simple-size-n": int, "--spec-ngram-simple-size-m": int}

def unique(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)

def check(engine, line):
    if line.startswith("vllm serve MODEL "):
        got = options("vllm", shlex.split(line)[3:], {})
        config = json.loads(got["--speculative-config"], object_pairs_hook=unique)
        known("vllm", config)
        assert config["method"] in ("ngram", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa")
        assert config["num_speculative_tokens"] > 0
    elif "sglang.launch_server" in line:
        line = line.replace(" --disable-overlap-schedule", " --disable-overlap-schedule 1") # a flag
        got = options("sglang", shlex.split(line)[3:], numbers)
        steps = got["--speculative-num-steps"]
        assert (steps is None) == (got["--speculative-algorithm"] == "NGRAM")
        chain = got["--speculative-eagle-topk"] == 1
        assert steps is None or (got["--speculative-num-draft-tokens"] == steps + 1) == chain
    elif line.startswith("llama-server "):
        options("llama.cpp", shlex.split(line)[1:], numbers)
    elif line.startswith("printf "):
        key, config = shlex.split(line)[1].split(": ", 1)
        known("tensorrt-llm", [key])
        known("tensorrt-llm", json.loads(config.replace("\\n", ""), object_pairs_hook=unique))
    elif line.startswith("trtllm-serve "):
        assert line == "trtllm-serve MODEL --config draft.yaml"
    elif line.startswith(("model.generate(", "draft.generation_config.update(")):
        call = ast.parse(line, mode="eval").body
        known("transformers", [k.arg for k in call.keywords if k.arg])
    elif line.startswith('"rejection_sample_method"'):
        config = json.loads("{" + line + "}", object_pairs_hook=unique)
        known("vllm", config)
        rates = config["synthetic_acceptance_rates"]
        assert len(rates) == config["num_speculative_tokens"]
        assert all(0 <= r <= 1 for r in rates) and rates == sorted(rates, reverse=True)
    elif re.match("(SGLANG|TLLM)_", line):
        pairs = dict(w.split("=") for w in line.split())
        known("sglang" if line[0] == "S" else "tensorrt-llm", pairs)
    else:
        raise AssertionError(line)

lines = [re.sub("^# [a-z]*_line_[0-9]*: ", "", line.rstrip("\n")) for line in sys.stdin]
lines = [line for line in lines if line and not line.startswith("#")]
for line in lines:
    check(sys.argv[1], line)
print(len(lines))
END
lines=0
parses() { # ENGINE tune ARGUMENTS
    engine=$1
    shift
    good tune "$@" --engine "$engine"
    grep '^# [a-z]*_line_' out >printed
    check "$engine parses: $*" sh -c 'python3 parse.py "$1" <printed >number' sh "$engine"
    lines=$((lines + $(cat number)))
}
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
good trace synth --target markov:50 --draft markov:50 --requests 60 --max-tokens 40 -o pair.dst
copies="rag.dst --method ngram,suffix --num-speculative-tokens 4,8 --cost linear:.02,.0002"
for acceptance in vllm sglang tensorrt-llm; do
    parses vllm $copies --export-acceptance $acceptance
done
parses vllm rag.dst --method suffix --num-speculative-tokens 16 --cost linear:.02,.0002
parses sglang rag.dst --method ngram-tree --num-draft-tokens 8,16 --match-type BFS,PROB \
    --cost linear:.02,.0002
parses transformers $copies
drafts="pair.dst --method draft-model --num-speculative-tokens 1:6 --cost linear:.02,.0001,.0005"
for kind in draft_model eagle eagle3 mtp medusa; do
    parses vllm $drafts --draft-kind $kind
    parses vllm $drafts --draft-kind $kind --batch-size 1,32,1024
    case $kind in
    medusa) continue ;;
    *) parses sglang $drafts --draft-kind $kind ;;
    esac
    case $kind in
    eagle) continue ;;
    *)
        parses tensorrt-llm $drafts --draft-kind $kind
        parses llama.cpp $drafts --draft-kind $kind
        ;;
    esac
done
for kind in eagle3 mtp; do
    parses tensorrt-llm pair.dst --method sa-draft-model --num-speculative-tokens 1:6 --match-threshold 3 \
        --cost linear:.02,.0001,.0005 --draft-kind $kind
    check "$kind: the threshold" grep -q '"sa_config": {"threshold": 3}' printed
done
parses transformers $drafts
tree="--target markov:50 --draft markov:50 --requests 20 --max-tokens 32 --method dynamic-tree --num-steps 3"
for kind in draft_model eagle eagle3; do
    parses sglang $tree --eagle-topk 4 --num-draft-tokens 8 --cost linear:.02,.0001,.0005 --draft-kind $kind
done
parses tensorrt-llm $tree --eagle-topk 4 --num-draft-tokens 8 --cost linear:.02,.0001,.0005 \
    --draft-kind eagle3 --temperature 0
check "TensorRT-LLM's tree excludes the root" grep -q '"max_draft_len": 3, "dynamic_tree_max_topK": 4, "max_total_draft_tokens": 7,' printed
parses transformers --target markov:50,3 --method hf-dynamic,threshold --requests 40 --max-tokens 16 --cost linear:.02,.0001,.0005
parses llama.cpp --target markov:50,3 --method threshold --requests 40 --max-tokens 16 --cost linear:.02,.0001,.0005
check "lines were parsed ($lines)" test $lines -ge 30
printf '# engine_line_1: vllm serve MODEL --speculative-config %s\n' "'{\"metod\": \"ngram\"}'" >printed
check "a wrong key is found" sh -c '! python3 parse.py vllm <printed 2>/dev/null'
printf '# engine_line_1: llama-server -m MODEL --draft-max 3\n' >printed
check "an old option is found" sh -c '! python3 parse.py llama.cpp <printed 2>/dev/null'
summary

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --json-schema: what every command with --json prints agrees with its schema, by the checker in C and,
# where there is one, by Python's jsonschema; an altered output does not; commands without --json say so.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
checker=${draftscope%/*}/tests/cli/check_schema
if [ ! -x "$checker" ]; then
    echo "no check_schema: make check builds it: skipped"
    exit 77
fi
python=
for candidate in ${PYTHON:-} python3; do
    [ -z "$python" ] && "$candidate" -c 'import jsonschema' 2>/dev/null && python=$candidate
done
[ -n "$python" ] || skip "Python's jsonschema" "not installed"
# Arguments: schema, then files of values; whole files or lines.
cat >validate.py <<'END'
import json
import sys

import jsonschema

validator = jsonschema.validators.validator_for(json.load(open(sys.argv[1])))
schema = json.load(open(sys.argv[1]))
validator.check_schema(schema)
decoder, text, values = json.JSONDecoder(), open(sys.argv[2]).read().strip(), 0
while text:
    value, end = decoder.raw_decode(text)
    text = text[end:].lstrip()
    if "#" not in value:
        validator(schema).validate(value)
    values += 1
print(values, "values")
END

# The output of a call with --json agrees with the schema of its command.
agrees() { # words of the command, further arguments...
    command=$1
    shift
    name=$(echo "$command" | tr ' ' '-')
    # shellcheck disable=SC2086
    if [ ! -s "$name.schema" ]; then
        "$draftscope" $command --json-schema >"$name.schema" 2>err || not_ok "$command --json-schema: $(cat err)"
    fi
    # Some commands end with 1, as a check failed.
    # shellcheck disable=SC2086
    "$draftscope" $command "$@" --json >"$name.out" 2>err </dev/null
    code=$?
    if [ $code -gt 1 ] || [ ! -s "$name.out" ]; then
        not_ok "$command $*: exit $code: $(cat err)"
        return
    fi
    conforms "$name.schema" "$name.out" "$command $*"
}
conforms() { # schema, file, what
    if "$checker" "$1" "$2" >said 2>&1; then ok; else not_ok "$3: $(cat said)"; fi
    [ -n "$python" ] || return 0
    if "$python" validate.py "$1" "$2" >said.python 2>&1 && cmp -s said said.python; then
        ok
    else
        not_ok "$3, jsonschema: $(tail -n 3 said.python)"
    fi
}

for category in code chat; do
    echo "{\"prompt\": \"abc abd abc\", \"output\": \"abc abd abc abd\", \"category\": \"$category\"}"
done >by.jsonl
good trace import --tokenizer bytes --map prompt=prompt,output=output,category=category by.jsonl -o by.dst
good trace import --tokenizer "$top/traces/sample/tokenizer.json" "$top/traces/sample/rag.jsonl" -o rag.dst
good trace synth --target markov:12,seed=1 --draft markov:12,seed=1,noise=0.5 --requests 6 --max-tokens 12 \
    --logprobs 12 -o pair.dst
cost=linear:0.02,0.0002

agrees "trace info" rag.dst
agrees "trace info" by.dst --by category
agrees "trace info" pair.dst
agrees sim rag.dst --method ngram
agrees sim rag.dst --method none
agrees sim rag.dst --method suffix --evaluate loop --cost $cost
agrees sim by.dst --method ngram --evaluate expect --by category
agrees tune by.dst --method ngram --num-speculative-tokens 2,4 --cost $cost --by category
agrees serve by.dst --method ngram --cost $cost --arrivals poisson:2 --requests 4
agrees sim rag.dst --method llma --evaluate expect
agrees sim rag.dst --method ngram --batch-size 1,4 --cost $cost
agrees sim rag.dst --method ngram --per-request
for method in $("$draftscope" list methods | sed 's/ .*//'); do
    case $method in pearl | *recorded* | tree | cascade) continue ;; esac # some need more than a pair of models
    agrees sim --target markov:8 --method "$method" --requests 2 --max-tokens 8
done
agrees sweep rag.dst --method ngram,llma,suffix --num-speculative-tokens 2,4 --cost $cost --batch-size 1,8
agrees sweep by.dst --method ngram,none --by category
agrees sweep pair.dst --method draft-model,spectr --rule rejection,kseq --num-speculative-tokens 1:3
agrees sweep --target markov:8 --method ngram --requests 2 --max-tokens 8
agrees advise rag.dst --cost $cost --batch-size 1,8 -o advice
agrees advise rag.dst --cost $cost --batch-size 1 --engine vllm --arrivals poisson:2 -o loaded
agrees tune rag.dst --method ngram,suffix --num-speculative-tokens 2,4 --cost $cost
agrees tune rag.dst --method ngram --num-speculative-tokens 2,4 --batch-size 1,8 --cost $cost
agrees serve rag.dst --method ngram,none --cost $cost --arrivals poisson:1:3:2 --requests 20 --slo ttft=1,tpot=0.1
agrees serve rag.dst --method ngram --cost $cost --arrivals poisson:2 --requests 20 --per-request
agrees serve rag.dst --method ngram --cost $cost --arrivals closed:4 --requests 20
agrees validate --published spectr-appb leviathan --tables "$top/tests/validation"
agrees "theory accept" --bernoulli 0.2,0.5
agrees "theory accept" --zipf 50,1,0.5 --summary
agrees "theory accept" --trace pair.dst --summary
agrees "theory length" --alpha 0.5,0.8 --draft-cost 0.1
agrees "theory tree" --acceptance-by-rank 0.6,0.3 --budget 6
agrees "theory tree" --acceptance-by-rank 0.6,0.3 --budget 6 --summary
agrees "theory pearl" --alpha 0.8 --ratio 4
agrees "theory pearl" --published
agrees "theory lossy" --zipf 20,1,0.5
agrees "theory lossy" --trace pair.dst --summary
agrees "theory certify" pair.dst
agrees "theory bound" rag.dst
agrees "theory bound" pair.dst --num-drafts 1,2
agrees "theory speedup" --alpha 0.8 --draft-cost 0.1
agrees "theory ouroboros" --alpha 0.5 --phrase 1
agrees "theory vocabulary" pair.dst --draft-vocab-size 4,8
good sweep pair.dst --method draft-model --num-speculative-tokens 1:4 -o table.tsv
agrees "theory regret" table.tsv
if [ -x "${draftscope%/*}/draftscope-live" ]; then
    demo=$top/live/demo
    agrees "live list"
    agrees "live run" --target "$demo/target" --method ngram --prompts "$demo/prompts.jsonl" --requests 1 \
        --max-tokens 8 --device cpu
    agrees "live run" --target "$demo/target" --draft "$demo/draft" --method draft-model --temperature 1 \
        --num-speculative-tokens 2 --prompts "$demo/prompts.jsonl" --requests 1 --max-tokens 8 --device cpu --baseline
fi

# Files of -o begin with the comments.
good serve rag.dst --method ngram --cost $cost --arrivals poisson:2 --requests 20 --json -o load.jsonl
conforms serve.schema load.jsonl "serve -o"

# Altered values are told.
into sim.out "$draftscope" sim rag.dst --method ngram --json
for change in 's/"requests": /"questions": /' 's/"method": "ngram"/"method": 3/' \
    's/"num_drafts": [0-9]*/"num_drafts": "many"/' 's/"accept_histogram": \[/&"x", /' 's/"speedup": [0-9.]*, //'; do
    sed "$change" sim.out >altered
    if cmp -s sim.out altered; then not_ok "$change alters nothing"; fi
    if ! "$checker" sim.schema altered >said 2>&1; then ok; else not_ok "the checker passes $change"; fi
    [ -n "$python" ] || continue
    if ! "$python" validate.py sim.schema altered >said 2>&1; then ok; else not_ok "jsonschema passes $change"; fi
done

# Every command of the help that has --json was called above, and no other has a schema.
commands() {
    "$draftscope" "$@" --help | awk '/^Commands/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }'
}
for command in $(commands); do
    [ "$command" = live ] && [ ! -x "${draftscope%/*}/draftscope-live" ] && continue
    below=$(commands "$command")
    for sub in ${below:-.}; do
        words=$command
        [ "$sub" = . ] || words="$command $sub"
        # shellcheck disable=SC2086
        if "$draftscope" $words --help | grep -q '^  --json  '; then
            if [ -s "$(echo "$words" | tr ' ' '-').schema" ]; then ok; else not_ok "not tested: $words --json"; fi
        else
            # shellcheck disable=SC2086
            bad 2 "has no --json" $words --json-schema
        fi
    done
done
summary

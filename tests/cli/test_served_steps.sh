#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a simulated server on the demo models: a cost table with prefill tokens prices a
# server, its schedule runs on the models step by step, what cannot run is refused in one line, and
# an interruption keeps the steps that ran.
# $models and $load are lists of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ] || ! [ -d "$demo/target" ]; then
    echo "no draftscope-live or no demo models: skipped"
    exit 77
fi
target="--target $demo/target --device cpu --threads 1 --progress never"
models="$target --draft $demo/draft"

# column FILE NAME: the values of a column.
column() {
    awk -F '\t' -v name="$2" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$1"
}
sum() { # FILE NAME
    column "$1" "$2" | awk '{ s += $1 } END { printf "%.9g", s }'
}
equal() { # description, a, b
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok; else not_ok "$1: '$2' and '$3'"; fi
}

# --- a table, a server, its steps ----------------------------------------------------------------
good live record $models --method none --prompts "$demo/problems.jsonl" --requests 6 \
    --max-tokens 24 --rank-depth 4 -o served.dst
good live profile $models --tokens 1,3 --context 0,256 --batch-size 1,4 --prefill-tokens 8,64 \
    --repeats 1 -o cost.tsv
load="serve served.dst --method draft-model --num-speculative-tokens 2 --cost table:cost.tsv
    --arrivals closed:4 --requests 8 --drain --max-num-seqs 4 --max-num-batched-tokens 32"
good $load --schedule steps.jsonl -o serve.tsv
good $load -o same.tsv
check 'a schedule does not change the rows' sh -c 'grep -v "^#" serve.tsv >a; grep -v "^#" same.tsv | cmp - a'
good live profile $models --schedule steps.jsonl --repeats 2 -o steps.tsv
steps=$(($(wc -l <steps.jsonl) - 1))
# The row of the method follows that of none.
equal 'steps of the server' "$steps" "$(column serve.tsv steps | sed -n 2p)"
equal 'each of them ran' "$(column steps.tsv step | wc -l | tr -d ' ')" "$steps"
equal 'every repeat' "$(column steps.tsv repeats | sort -u)" 2
lists() { # list of the schedule: its numbers, one on each line
    sed -n 's/.*"'"$1"'": \[\([^]]*\)\].*/\1/p' steps.jsonl
}
equal 'sequences' "$(lists tokens | tr ',' '\n' | wc -l | tr -d ' ')" "$(sum steps.tsv sequences)"
equal 'tokens' "$(lists tokens | tr ',' '\n' | awk '{ s += $1 } END { print s }')" \
    "$(($(sum steps.tsv decode_tokens) + $(sum steps.tsv prefill_tokens)))"
equal 'draft passes: the longest draft of each step' \
    "$(lists draft_passes | awk -F , '{ m = 0; for (i = 1; i <= NF; i++) if ($i > m) m = $i; s += m } END { print s }')" \
    "$(sum steps.tsv draft_passes)"
equal 'draft tokens' "$(lists draft_passes | tr ',' '\n' | awk '{ s += $1 } END { print s }')" \
    "$(column serve.tsv num_draft_tokens | sed -n 2p)"
check 'every pass took time' sh -c '! awk -F "\t" "/^[0-9]/ && !(\$7 > 0 && \$11 > 0)" steps.tsv | grep -q .'
check "one line sums up: $(cat err)" sh -c \
    'grep -qx "draftscope: [0-9]* of [0-9]* steps: predicted .* s, measured .* s, error .* % (target .* %, draft model .* %)" err &&
    test "$(wc -l <err)" = 1'
check 'the table has the same line' grep -q '^# total: [0-9]* of' steps.tsv
good live profile $models --schedule steps.jsonl --repeats 1 --max-steps 5 -o five.tsv
equal 'five steps, evenly spaced' "$(column five.tsv step | tr '\n' ' ')" \
    "$(for i in 0 1 2 3 4; do printf '%d ' $((i * steps / 5)); done)"
if command -v gnuplot >/dev/null; then
    good plot served-steps steps.tsv -o steps.svg
    good plot cost cost.tsv -o cost.svg
fi
# Without a draft model the passes are those of the target alone.
good serve served.dst --method none --cost table:cost.tsv --arrivals closed:3 --requests 4 --drain \
    --max-num-seqs 4 --max-num-batched-tokens 32 --schedule plain.jsonl -o plain.tsv
good live profile $target --schedule plain.jsonl --repeats 1 --max-steps 9 -o few.tsv
equal 'no draft passes' "$(sum few.tsv measured_draft_s)" 0

# --- what cannot be --------------------------------------------------------------------------------
refused() { # code, words on stderr, arguments of live profile...
    code=$1 words=$2
    shift 2
    bad "$code" "$words" live profile "$@" -o x.tsv
    [ ! -e x.tsv ] || not_ok "$words: left a file"
}
refused 2 'passes of a draft model: --draft names one' $target --schedule steps.jsonl
refused 2 'no passes of a draft model: leave --draft out' $models --schedule plain.jsonl
refused 2 'a head runs one sequence' $target --draft "$demo/eagle" --schedule steps.jsonl
refused 2 '--tokens cannot be combined with --schedule' $models --schedule steps.jsonl --tokens 3
refused 2 '--prefill-tokens cannot be combined' $models --schedule steps.jsonl --prefill-tokens 3
refused 2 '--max-steps needs --schedule' $models --max-steps 3
refused 4 'none.jsonl' $models --schedule none.jsonl
: >empty.jsonl
refused 4 'the schedule has no steps' $models --schedule empty.jsonl
sed 's/"context": \[[0-9]*/"context": [2047/' plain.jsonl >long.jsonl
refused 2 'the context window of the target is 2048' $target --schedule long.jsonl
sed '5s/"tokens": \[[0-9]*/"tokens": [-4/' plain.jsonl >negative.jsonl
refused 4 'negative.jsonl:5: tokens must contain whole numbers from 1' $target --schedule negative.jsonl
{ sed -n 1p plain.jsonl; sed -n 4p plain.jsonl; sed -n 3p plain.jsonl; } >back.jsonl
refused 4 'back.jsonl:3: step must be a whole number that ascends' $target --schedule back.jsonl
refused 4 'cost.tsv:1: column' $target --schedule cost.tsv
bad 2 'steps.jsonl exists already' $load --schedule steps.jsonl
bad 2 'would be overwritten' $load --schedule cost.tsv --force
bad 4 'a pass with prefill_tokens 252 was not measured' $load --max-num-batched-tokens 256
awk -F '\t' '/^#/ || $4 == 0 || $4 == "prefill_tokens"' cost.tsv >decode.tsv
bad 2 '--prefill-time S gives the seconds of each, or draftscope live profile measures them' \
    serve served.dst --method none --cost table:decode.tsv --arrivals closed:1

# --- an interruption -------------------------------------------------------------------------------
"$draftscope" live profile $models --schedule steps.jsonl --repeats 100000 --progress json -o cut.tsv >out 2>err &
running=$!
wait_until $running grep -q done err
stop $running INT
check "interrupted: $got: $(cat err)" test $got = 130
check 'the steps that ran are kept' test "$(column cut.tsv step | wc -l)" -gt 0
check 'one line says so' grep -q 'interrupted: [0-9]* steps are in cut.tsv' err

summary

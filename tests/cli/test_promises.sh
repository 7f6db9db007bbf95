#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the program makes of the library's answers: tests/cross/test_promises.c asks for every method with every
# rule on every kind of trace and of models; here a sample of its cells goes through sim, sweep, tune and serve,
# commands meet the kinds of traces, figures meet files that are no tables, and every method meets the
# demo models. What is accepted succeeds and leaves its output; what is refused has the exit code, one line with
# the words of the refusal after the notes, and leaves none.
# $pair and the like are lists of words.
# shellcheck disable=SC2086,SC2094
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
demo=${LIVE_DEMO:-$top/live/demo}
LC_ALL=C
export LC_ALL

# Exit code 0, notes only, and something on stdout or in the file.
accepted() { # file or '', arguments...
    file=${1:-out}
    shift
    "$draftscope" "$@" >out 2>err </dev/null
    code=$?
    if [ $code != 0 ]; then
        not_ok "$*: exit code $code: $(cat err)"
    elif grep -vE "$notes" err >refusal; then
        not_ok "$*: no notes: $(cat refusal)"
    elif ! [ -s "$file" ]; then
        not_ok "$*: nothing in $file"
    else
        ok
    fi
}
# That exit code, one line with the words, nothing on stdout and no file.
refused() { # file or '', exit code, 'words', arguments...
    file=$1
    shift
    bad "$@"
    if [ -s out ] || { [ -n "$file" ] && [ -e "$file" ]; }; then not_ok "$*: left output"; fi
}

# --- one trace of each kind --------------------------------------------------------------------
head -n 3 "$sample/rag.jsonl" >three.jsonl
good trace import three.jsonl --tokenizer bytes -o text.dst
good trace import three.jsonl --tokenizer "$sample/tokenizer.json" -o ids.dst
good trace import "$top/tests/data/import/specbench.jsonl" --tokenizer bytes -o steps.dst
pair="--target markov:8 --draft markov:8 --requests 3 --prompt-tokens 4 --max-tokens 24"
good trace synth $pair -o logprobs.dst
good trace synth $pair --logprobs 8 -o distributions.dst
good trace synth $pair --logprobs 4 -o top.dst
good trace synth $pair --logprobs 8 --temperature 0 -o greedy.dst
good trace reduce distributions.dst --rank-depth 8 -o reduced.dst
good trace import "$top/tests/data/import/acclen.jsonl" --vocab-size 258 -o lengths.dst

# --- every method with a rule on a trace ----------------------------------------------------------
# The cell through sim and the other commands that are named: all accept it, or all refuse it with these words.
# Rule -: the default one, which the commands choose. tune tries the sizes of a method.
runs=0
cell() { # method, rule or -, trace, exit code, 'words', commands...
    method=$1 rule=$2 trace=$3.dst answer=$4 reason=$5
    shift 5
    for command in sim "$@"; do
        runs=$((runs + 1)) file=''
        case $command in
        sim) set -- ;;
        sweep) file=$runs.tsv && set -- -o $runs.tsv ;;
        tune) set -- --resamples 100 ;;
        serve)
            file=$runs.tsv
            set -- --cost linear:0.02,0.0002,0.002 --arrivals closed:2 --requests 4 -o $runs.tsv
            ;;
        esac
        [ "$rule" = - ] || set -- --rule "$rule" "$@"
        set -- "$command" "$trace" --method "$method" "$@"
        if [ "$answer" = 0 ]; then
            accepted "$file" "$@"
        else
            refused "$file" "$answer" "$reason" "$@"
        fi
    done
}
sampled='try --rule greedy' # of serve, where the acceptance is not known by position
cell none specinfer lengths 0 '' serve
cell oracle rejection greedy 2 'rule rejection samples from' sweep
cell llma block ids 0 '' tune
cell ngram greedy steps 0 '' sweep
cell ngram-tree rejection text 2 'rule rejection samples from'
cell suffix traversal logprobs 0 '' serve
cell draft-model greedy text 2 'needs column draft_argmax' serve sweep
cell draft-model - reduced 0 '' tune serve
cell sa-draft-model greedy greedy 0 '' tune
cell hf-dynamic rejection distributions 2 'needs a draft model' tune
cell threshold greedy distributions 2 'probabilities off the output' serve
cell adaptive greedy top 0 '' sweep
cell adaptive-ngram greedy ids 0 '' serve
cell adaptive-suffix block steps 2 'rule block samples from' sweep
cell adaptive-recorded greedy steps 2 'needs accept lengths by position' tune
cell spectr otm top 4 'does not list all of its mass' sweep serve
cell spectr-tree - reduced 0 '' sweep tune
cell tree greedy logprobs 2 'needs column draft_rank' serve
cell dynamic-tree greedy reduced 2 'needs the candidates of a draft model'
cell sequoia - reduced 0 '' serve tune
cell cascade greedy lengths 2 'needs a third model' tune
cell lookahead typical text 2 'needs target logits' sweep
cell ouroboros greedy distributions 2 'needs target logits'
cell pearl greedy logprobs 0 '' sweep
cell parallel block logprobs 2 'needs the marginals of a parallel drafter' tune
cell ddtree greedy greedy 2 'needs the marginals of a parallel drafter'
cell recorded greedy lengths 2 '--drafter is needed: eagle, ngram' serve
cell recorded-steps greedy text 2 'needs recorded steps'
load="--cost linear:0.02,0.0002,0.002 --arrivals closed:2 --requests 4 -o load.tsv"
refused load.tsv 2 "$sampled" serve distributions.dst --method spectr --rule gbv $load
accepted '' sim distributions.dst --method spectr --rule gbv

# --- models ----------------------------------------------------------------------------------------
some="--requests 2 --max-tokens 8 --prompt-tokens 8"
ngram="--target ngram:text.dst,hold=2"
accepted '' sim --target markov:8 --method tree --rule specinfer-wor $some
accepted table.tsv sweep --target iid:.5 --method draft-model --rule block -o table.tsv $some
accepted '' sim $ngram --method cascade $some
accepted '' tune $ngram --draft ngram:text.dst,order=1 --method lookahead --resamples 100 $some
refused '' 2 'has no exact marginals' sim $ngram --draft ngram:text.dst --method parallel $some
refused '' 2 'it cannot run on models' sim --target iid:.5 --method recorded $some
refused '' 2 'cannot draft as rule kseq requires: samples of a draft model' sim --target markov:8 --method ngram-tree --rule kseq $some

# --- commands on kinds of traces -------------------------------------------------------------------
accepted '' trace info text.dst
accepted '' trace info steps.dst --json
accepted '' trace info lengths.dst --json
accepted '' trace verify ids.dst
accepted '' trace verify reduced.dst
accepted '' trace export steps.dst
accepted '' trace export lengths.dst --format jsonl
accepted '' trace export greedy.dst --format csv
accepted '' trace export reduced.dst --format csv
accepted columns/output.tok.npy trace export distributions.dst --format npy -o columns
accepted cut.dst/manifest.json trace cut top.dst --tokens 8 -o cut.dst
refused cut2.dst 2 'only aligned steps can be cut' trace cut steps.dst --tokens 8 -o cut2.dst
accepted merged.dst/manifest.json trace merge reduced.dst reduced.dst --rename -o merged.dst
refused merged2.dst 2 "both have a request 'r0'" trace merge lengths.dst lengths.dst -o merged2.dst
accepted less.dst/manifest.json trace reduce greedy.dst -o less.dst
refused less2.dst 4 'the rows of the draft are not recorded' trace reduce logprobs.dst -o less2.dst
refused '' 2 "the tokenizer of ids.dst is 'tokenizer.json'" trace append ids.dst text.dst
refused '' 2 'steps.dst has steps, but text.dst does not' trace append steps.dst text.dst
accepted '' theory accept --trace top.dst --summary
refused '' 4 'the draft distributions are not recorded' theory accept --trace reduced.dst --summary
accepted '' theory lossy --trace distributions.dst --summary
refused '' 4 'some probability mass is unlisted' theory lossy --trace top.dst --summary
accepted '' theory length --trace steps.dst
refused '' 2 'no recorded steps; --drafter names' theory length --trace lengths.dst
accepted '' theory bound ids.dst
accepted '' theory bound logprobs.dst
accepted '' theory vocabulary text.dst
refused '' 4 'does not list all of its mass' theory vocabulary top.dst
refused '' 2 'the trace lacks the distributions of both models' theory certify reduced.dst
accepted text.html report text.dst -o text.html
accepted reduced.html report reduced.dst -o reduced.html
refused '' 4 'the runs are of different models' validate text.dst distributions.dst
refused '' 4 'no metadata field wall_time' validate lengths.dst lengths.dst

# --- figures of what is no table -----------------------------------------------------------------
# A folder and lines of another kind are refused alike; in a text, the figure's column is missing.
into figures "$draftscope" list figures
drawn=0
while read -r figure _; do
    drawn=$((drawn + 1))
    case $((drawn % 3)) in
    0) refused $figure.svg 4 'text.dst: Is a directory' plot $figure text.dst -o $figure.svg ;;
    1) refused $figure.svg 4 'so this is no result table' plot $figure three.jsonl -o $figure.svg ;;
    2) refused $figure.svg 2 "$figure needs a column '" plot $figure "$sample/README.md" -o $figure.svg ;;
    esac
done <figures
check "there are figures" test $drawn -ge 20

# --- live --------------------------------------------------------------------------------------
if [ -x "${draftscope%/*}/draftscope-live" ] && [ -d "$demo" ]; then
    printf '{"prompt": "one two"}\n' >prompt.jsonl
    into methods "$draftscope" list methods
    while read -r method _; do
        pair="--target $demo/target --draft $demo/draft"
        reason=''
        case $method in
        recorded | recorded-steps | adaptive-recorded) reason='it cannot run on models' ;;
        cascade) reason='--middle DIR is required' ;;
        parallel | ddtree) pair="--target $demo/target --draft $demo/medusa" ;;
        tree) pair="--target $demo/target --draft $demo/eagle" ;;
        esac
        set -- live run $pair --threads 1 --prompts prompt.jsonl --max-tokens 4 --method "$method"
        if [ -n "$reason" ]; then refused '' 2 "$reason" "$@"; else accepted '' "$@"; fi
    done <methods
    draft="--draft $demo/draft --threads 1"
    passes="--tokens 1,2 --context 4 --repeats 1"
    accepted cost.tsv live profile --target "$demo/target" $draft $passes -o cost.tsv
    refused cost2.tsv 2 'contains draft heads' live profile --target "$demo/medusa" $draft $passes -o cost2.tsv
    record="--threads 1 --prompts prompt.jsonl --max-tokens 4"
    accepted plain.dst/manifest.json live record --target "$demo/draft" --method none $record -o plain.dst
    accepted heads.dst/manifest.json live record --target "$demo/target" --draft "$demo/eagle" --method tree \
        $record -o heads.dst
    refused record.dst 2 'contains draft heads' live record --target "$demo/eagle" --method none $record \
        -o record.dst
else
    skip "methods on the demo models" "there is no live mode"
fi
summary

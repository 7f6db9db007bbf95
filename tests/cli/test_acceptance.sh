#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Acceptance in the form in which a server printed it: the same acceptance gives the same tables in
# every command, whichever way it is written; published rates give the draft length and the loss that
# are right; counters with one draft token, without an accepted one and of several engines are served;
# what cannot be is refused in one line, and what is not known is not made up.
# $draft, $cost and $loads are lists of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
cost='--cost linear:.02,.001,.0002' draft='--method draft-model'
loads='--arrivals poisson:4,8 --requests 60'
rows() { # FILE: without comments
    grep -v '^#' "$1"
}
noted() { # TEXT: what stderr says of acceptance
    grep -qF "draftscope: acceptance: $1" err && ok || not_ok "'$1' is not in: $(cat err)"
}
value() { # COLUMN [ROW]: of the table in `out`
    rows out | awk -F '\t' -v name="$1" -v row="${2:-1}" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
        NR == 1 + row { print $c[name] }'
}

# --- one acceptance, in every form ---------------------------------------------------------------
# Of i.i.d. drafts of 3 tokens with the rate .7: 1 + .7 + .49 + .343 = 2.533 tokens a step.
printf 'id\tnum_drafts\taccept_histogram\ne0\t400\t120;84;59;137\nall\t1000\t300;210;147;343\n' >forms.tsv
printf '0.7 # of all drafts\n.49\n\n34.3e-2\n' >forms.txt
table() { # arguments...: its rows, rounded, as a rate that is computed differs in its last digits
    good "$@"
    grep -v '^#\|^{"#"' out | awk -F '\t' -v OFS='\t' '
        { for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.e-]+$/ && $i ~ /[.e]/) $i = sprintf("%.9g", $i) } 1' >>"same.$n"
}
n=0
for how in iid:.7 conditional:.7,.7,.7 rates:.7,.49,.343 'rates:(0.7, 0.49, 0.343)' 'rates:70 %, 49 %, 34.3 %' \
    'rates:70.0;49.0;34.3' rates:forms.txt al:2.533@3 rate:.511@3 rate:51.1%@3 histogram:300,210,147,343 \
    table:forms.tsv forms.tsv,id=all; do
    n=$((n + 1))
    table theory length --acceptance "$how" --max-speculative-tokens 3 --draft-cost .1
    cut -f 2-9 "same.$n" >short && mv short "same.$n" # without what rates by position add
    table sim --acceptance "$how" $draft -k 3 --json
    table sweep --acceptance "$how" $draft -k 1:3 --requests 20 $cost --json
    table tune --acceptance "$how" $draft -k 1:3 --requests 40 $cost -o -
    table serve --acceptance "$how" $draft -k 3 $cost $loads -o -
    table serve --acceptance "$how" $draft -k 2 $cost $loads --request-sd 1 -o -
    check "$how gives the tables of iid:.7" cmp same.1 "same.$n"
done
check "there is a table of each command: $(wc -l <same.1) lines" holds 'n > 20' n="$(wc -l <same.1)"

# --- published rates -----------------------------------------------------------------------------
# vLLM's log prints a mean acceptance length of 4.74 with these (club-3090, issue 105).
club=.917,.837,.648,.538,.451,.348 price='--draft-cost .05 --target-slope .01'
good theory length --acceptance rates:$club -k 6 $price
noted 'shares of all drafts by position (rates): mean acceptance length 4.739 at 6 draft tokens'
check "best length $(value best_length), loss $(value loss_percent)" holds 'a == 6 && b == 0' \
    a="$(value best_length)" b="$(value loss_percent)"
good tune --acceptance rates:$club $draft $cost -o -
check "tune goes to the last position: $(value parameters)" test "$(value parameters)" = num-speculative-tokens=6
good theory length --acceptance-by-position $club -k 6 $price
noted 'rates of drafts that came so far (conditional): mean acceptance length 3.612 at 6'
noted 'rates of drafts that came so far (conditional): mean acceptance length 3.612 at 6 draft tokens, bonus included; the list never rises: if it is'
# speculators, pull request 610.
good theory length --acceptance 'rates:0.5858, 0.2991, 0.1491, 0.0790, 0.0423' -k 5 --draft-cost .08
check "best length $(value best_length), loss $(value loss_percent)" holds 'a == 3 && b > 6.1 && b < 6.2' \
    a="$(value best_length)" b="$(value loss_percent)"
for how in "rates:$club" histogram:3,2,1 al:3@5; do # over all requests, not of the median one
    bad 2 '--request-sd needs --acceptance-by-position' theory length --acceptance "$how" --request-sd 1
done
good theory length --acceptance conditional:.8,.7 --request-sd 1
good theory length --acceptance-length 3.1 -k 5
cp out length.out
good theory length --acceptance al:3.1@5 -k 5
check '--acceptance-length L -k K is al:L@K' sh -c 'grep -v "^#" length.out >a && grep -v "^#" out | cmp - a'
noted '2.1 of 5 draft tokens accepted, mean acceptance length 3.1: the same rate at every position is assumed, iid:0.7238'
# A profile's histogram and its mean (Model-Optimizer, pull request 2247).
good theory length --histogram 20753,20574,17911,53606 -k 3
noted 'the histogram: mean acceptance length 2.925 at 3 draft tokens'
good theory ouroboros --acceptance rates:.8,.6,.3,.2 -k 2 --phrase 2
check "ouroboros takes rates: $(value block_efficiency)" close_to "$(value block_efficiency)" 2.9 1e-12

# --- counters ------------------------------------------------------------------------------------
page() { # ENGINE DRAFTS TOKENS ACCEPTED ACCEPTED_AT...
    labels="{engine=\"$1\"" drafts=$2 tokens=$3 all=$4
    shift 4
    echo "vllm:spec_decode_num_drafts_total$labels} $drafts"
    echo "vllm:spec_decode_num_draft_tokens_total$labels} $tokens"
    echo "vllm:spec_decode_num_accepted_tokens_total$labels} $all"
    position=0
    for count; do
        echo "vllm:spec_decode_num_accepted_tokens_per_pos_total$labels,position=\"$position\"} $count"
        position=$((position + 1))
    done
}
counters() { # NAME: the pages NAME.txt from the start of the server become NAME.tsv
    good trace import --format prometheus "$1.txt" -o "$1.tsv"
}
served() { # TABLE K LENGTH: tokens per drafted step of one client
    good serve "$1.tsv" $draft -k "$2" $cost --arrivals closed:1 --requests 40 -o served.tsv --force
    got=$(rows served.tsv | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
        NR == 3 { d = $c["num_draft_tokens"] / $c["num_speculative_tokens"]; print 1 + $c["num_accepted_tokens"] / d }')
    check "$1: $got tokens a step, not $3" close_to "$got" "$3" .02
}
page 0 1000 1000 850 850 >one.txt
page 0 1000 3000 0 0 0 0 >none.txt
page 0 1000 13000 340 340 0 0 0 0 0 0 0 0 0 0 0 0 >first.txt
{ page 0 600 2400 1500 500 420 330 250; page 1 400 1600 500 300 140 50 10; } >two.txt
for name in one none first two; do
    counters $name
done
served one 1 1.85
served none 3 1
served first 13 1.34
served two 4 3
noted "row 'all' of the table: mean acceptance length 3 at 4 draft tokens"
good theory length --acceptance 'two.tsv,id=engine="1"'
noted "row 'engine=\"1\"' of the table: mean acceptance length 2.25 at 4 draft tokens"
good theory length --acceptance one.tsv
noted 'the table: mean acceptance length 1.85 at 1 draft token,'
good theory length --histogram 500,0,0,0 -k 3
check 'without an accepted token it is best not to draft' test "$(value best_length)" = 0
good serve --acceptance two.tsv $draft -k 2 $cost $loads -o -
rows out >served.a
good serve two.tsv $draft -k 2 $cost $loads -o -
check 'a table is served as an argument and as --acceptance' sh -c 'grep -v "^#" out | cmp - served.a'

into requests.jsonl program sim --acceptance rates:0 $draft -k 1 --requests 4 --per-request --json
good serve requests.jsonl $draft -k 3 $cost $loads -o - # no request accepts anything, at any position
into requests.jsonl program sim --acceptance rates:.5 $draft -k 1 --requests 4 --per-request --json
bad 2 'those of 1 position: take drafts of at most 1 token' serve requests.jsonl $draft -k 3 $cost $loads

# --- what is not known ---------------------------------------------------------------------------
longer='take drafts of at most 2 tokens, or give the later positions a rate, later=H'
bad 2 "$longer" sim --acceptance rates:.9,.8 $draft -k 3
bad 2 "$longer" sweep --acceptance rates:.9,.8 $draft -k 1:3 -o x.tsv
bad 2 "$longer" tune --acceptance rates:.9,.8 $draft -k 1:3
bad 2 "$longer" serve --acceptance rates:.9,.8 $draft -k 3 $cost $loads
bad 2 "$longer" sim --acceptance rates:.9,.8 --method pearl -k 2 # drafts on while the target verifies
good sim --acceptance rates:.9,.8,later=.5 $draft -k 3
bad 2 'exceeds the 2 positions' theory speedup --acceptance rates:.9,.8 -k 3
good theory length --acceptance rates:.9,.8,later=.7 --draft-cost .05
check "later positions may pay: $(value best_length)" test "$(value best_length)" = 6
# Rates of one draft are not those of several; a model of both is.
for method in 'tree --tree 2^2' 'spectr -K 2 -k 2' 'dynamic-tree'; do
    bad 2 'verifies several candidates at a position' sim --acceptance rates:.9,.8,later=.7 --method $method
done
good sim --acceptance rates:.9,.8 --method tree --tree chain:2
good sim --target iid:.8 --method tree --tree 2^2 --requests 3

# --- what cannot be ------------------------------------------------------------------------------
printf 'conditional_acceptance_rate\n0.5;1.5\n' >bad.tsv
for command in 'theory length' 'theory speedup' "sim $draft" "tune $draft" "serve $draft $cost $loads"; do
    bad 2 'conditional: takes rates of the drafts' $command --acceptance rates:.9,.95
    bad 2 '0.599 stands among percentages' $command --acceptance rates:84.4,.599
    bad 2 'is from 1 to 6' $command --acceptance al:6.5@5
    bad 2 'rates:... are shares of all drafts' $command --acceptance '0.9, 0.8'
    bad 4 'is not in [0, 1]' $command --acceptance table:bad.tsv
done
bad 2 '--temperature: acceptance rates are those' sim --acceptance iid:.53 $draft --temperature 0
bad 2 'of drafts of how many tokens' theory length --acceptance-length 3.1
bad 2 'of drafts of how many tokens' theory length --acceptance-length 3.1 -k 2,3
bad 2 'give exactly one of --alpha, --acceptance' theory length --alpha .5 --acceptance iid:.5
bad 4 'given as --acceptance one.tsv' theory length --trace one.tsv
bad 4 'one.tsv is a table, without texts' advise one.tsv $cost
bad 4 'one.tsv is a table, without texts' trace import one.tsv -o x.tsv
bad 4 'TOTALS.tsv answers which load pays' advise one.txt $cost
bad 4 'no counter spec_decode_num_*, which vLLM' trace import --format prometheus forms.txt -o x.tsv
# Rates in a file belong to the run that goes on.
printf '.9\n.8\n' >kept.txt
good serve --acceptance conditional:kept.txt $draft -k 2 $cost --arrivals closed:1,2 --requests 20 --shard 1/2 -o half
mv half half.part
printf '.9\n.7\n' >kept.txt
bad 2 'different sweep' serve --acceptance conditional:kept.txt $draft -k 2 $cost --arrivals closed:1,2 \
    --requests 20 --shard 1/2 -o half
summary

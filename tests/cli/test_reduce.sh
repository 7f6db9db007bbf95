#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope trace reduce, from rows to a trace with statistics: what it says, what it leaves behind.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u

trace() {
    "$DRAFTSCOPE" trace "$@"
}
info() { # TRACE FIELD
    trace info "$1" | sed -n "s/^$2  *//p"
}
exits() { # CODE WORDS ARGUMENTS...
    code=$1 words=$2
    shift 2
    check "exit $code, \"$words\": $*" sh -c '"$DRAFTSCOPE" trace "$@" >out 2>&1; test $? = '"$code"' &&
        grep -F -- "'"$words"'" out || { cat out; false; }' sh "$@"
}

trace synth --target markov:300,noise=1 --requests 6 --max-tokens 50 --logprobs 300 -o rows.dst
check "reduces" trace reduce rows.dst -o a.dst --threads 1
check "which is a good trace" trace verify a.dst
check "threads change nothing" sh -c 'for t in 2 3; do
    "$DRAFTSCOPE" trace reduce rows.dst -o b.dst --threads $t --force || exit
    "$DRAFTSCOPE" trace info b.dst | grep ^hash; done | sort | uniq -c | grep "^ *2 hash"'
check "nor does its having been reduced before, with the rows" sh -c '
    "$DRAFTSCOPE" trace reduce rows.dst -o kept.dst --keep-logprobs &&
    "$DRAFTSCOPE" trace reduce kept.dst -o again.dst'
for name in a b again; do info $name.dst hash; done | sort -u >hashes
check "one hash" sh -c 'test $(grep -c . hashes) = 1 || { cat hashes; false; }'
check "under 1 KB a position, the rows having had 2.4" sh -c '
    "$DRAFTSCOPE" trace info a.dst | grep ^recorded_bytes | tr ",{}" "\n" | cut -d : -f 2 |
        awk -v n="$1" "{ sum += \$1 } END { print sum / n; exit !(n == 300 && sum / n < 340) }"' \
    sh "$(info a.dst output_tokens)"
check "K and the depth of ranks" sh -c '
    "$DRAFTSCOPE" trace reduce rows.dst -o k.dst --num-drafts 3 --rank-depth 5 &&
    "$DRAFTSCOPE" trace info k.dst | grep "^parameters.*\"rank_depth\":5.*\"statistics_k\":3"'
check "the source is named" sh -c '"$DRAFTSCOPE" trace info a.dst | grep "^provenance.*rows.dst.*markov"'

# What the rows say is what synth had recorded beside them, computed in double.
trace export rows.dst >rows.jsonl
trace export a.dst >a.jsonl
check "argmax as recorded by synth" sh -c 'for f in rows a; do
    tr -d " " <$f.jsonl | grep -o "\"[a-z]*_argmax\":[^]]*\]" | sort >$f.out; done
    test $(grep -c . a.out) = 12 && cmp rows.out a.out'

trace synth --target markov:300 --requests 2 --logprobs 8 -o lists.dst
exits 0 "kseq, specinfer, otm: left out, because" reduce lists.dst -o lists-reduced.dst
check "entropies stay as recorded" sh -c '"$DRAFTSCOPE" trace info lists-reduced.dst |
    grep "^recorded  .*draft_entropy" | grep -v "kseq\|rows"'
echo '{"prompt": [1], "output": [5, 2], "draft_rows": [[[5, -0.5]], [[3, -0.1]]],
    "target_rows": [[[5, -0.5]], [[2, -0.1]]]}' | tr -d '\n' >unknown.jsonl
trace import --vocab-size 10 unknown.jsonl -o unknown.dst
exits 4 "request 0, position 1: the draft's row does not list the output's token 2" \
    reduce unknown.dst -o u.dst
check "nothing is left behind" sh -c '! ls -d u.dst* 2>/dev/null'
trace synth --target markov:9 --requests 1 -o none.dst
exits 4 "the rows of the draft are not recorded" reduce none.dst -o u.dst
exits 2 "a.dst" reduce rows.dst -o a.dst
exits 2 "one trace" reduce -o u.dst
exits 2 "-o NAME.dst expected" reduce rows.dst
exits 2 "--num-drafts" reduce rows.dst -o u.dst --num-drafts 65

summary

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope trace reduce, from recorded distributions to a trace with statistics: messages, results,
# and files after a failure.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u

trace() {
    "$DRAFTSCOPE" trace "$@"
}
info() { # TRACE FIELD
    trace info "$1" | sed -n "s/^$2  *//p"
}
trace synth --target markov:300,noise=1 --requests 6 --max-tokens 50 --logprobs 300 -o rows.dst
check "reduce with one thread" trace reduce rows.dst -o a.dst --threads 1
check "the result is a valid trace" trace verify a.dst
check "the number of threads does not change the result" sh -c 'for t in 2 3; do
    "$DRAFTSCOPE" trace reduce rows.dst -o b.dst --threads $t --force || exit
    "$DRAFTSCOPE" trace info b.dst | grep ^hash; done | sort | uniq -c | grep "^ *2 hash"'
check "reducing a reduced trace that kept its distributions gives the same" sh -c '
    "$DRAFTSCOPE" trace reduce rows.dst -o kept.dst --keep-logprobs &&
    "$DRAFTSCOPE" trace reduce kept.dst -o again.dst'
for name in a b again; do info $name.dst hash; done | sort -u >hashes
check "one hash" sh -c 'test $(grep -c . hashes) = 1 || { cat hashes; false; }'
check "less than 1 KB per position, from 2.4 KB" sh -c '
    "$DRAFTSCOPE" trace info a.dst | grep ^recorded_bytes | tr ",{}" "\n" | cut -d : -f 2 |
        awk -v n="$1" "{ sum += \$1 } END { print sum / n; exit !(n == 300 && sum / n < 340) }"' \
    sh "$(info a.dst output_tokens)"
check "number of drafts and rank depth are recorded" sh -c '
    "$DRAFTSCOPE" trace reduce rows.dst -o k.dst --num-drafts 3 --rank-depth 5 &&
    "$DRAFTSCOPE" trace info k.dst | grep "^parameters.*\"rank_depth\":5.*\"statistics_k\":3"'
check "the provenance names the source" sh -c '"$DRAFTSCOPE" trace info a.dst | grep "^provenance.*rows.dst.*markov"'

# The argmax of each row is the one that synth recorded with it, computed in double.
trace export rows.dst >rows.jsonl
trace export a.dst >a.jsonl
check "argmax as recorded by synth" sh -c 'for f in rows a; do
    tr -d " " <$f.jsonl | grep -o "\"[a-z]*_argmax\":[^]]*\]" | sort >$f.out; done
    test $(grep -c . a.out) = 12 && cmp rows.out a.out'

trace synth --target markov:300 --requests 2 --logprobs 8 -o lists.dst
good trace reduce lists.dst -o lists-reduced.dst
check "what is left out" grep -qF 'kseq, specinfer, otm: left out, because' err
check "recorded entropies are kept" sh -c '"$DRAFTSCOPE" trace info lists-reduced.dst |
    grep "^recorded  .*draft_entropy" | grep -v "kseq\|rows"'
echo '{"prompt": [1], "output": [5, 2], "draft_rows": [[[5, -0.5]], [[3, -0.1]]],
    "target_rows": [[[5, -0.5]], [[2, -0.1]]]}' | tr -d '\n' >unknown.jsonl
trace import --vocab-size 10 unknown.jsonl -o unknown.dst
bad 4 "request 0, position 1: the draft's row does not list the output's token 2" \
    trace reduce unknown.dst -o u.dst
check "no output after an error" sh -c '! ls -d u.dst* 2>/dev/null'
trace synth --target markov:9 --requests 1 -o none.dst
bad 4 "the rows of the draft are not recorded" trace reduce none.dst -o u.dst
bad 2 "a.dst exists already" trace reduce rows.dst -o a.dst
bad 2 "one trace" trace reduce -o u.dst
bad 2 "give the trace to write: -o NAME.dst" trace reduce rows.dst
bad 2 "'65' is not an integer from 1 to 64" trace reduce rows.dst -o u.dst --num-drafts 65

summary

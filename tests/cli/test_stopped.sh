#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C in tune, advise and sweep: what was finished is kept and counted truthfully, and the command
# ends at once. The signal is sent when the progress shows that configurations are finished.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
yes "$(head -n 1 "$sample/rag.jsonl")" | head -n 12000 >many.jsonl
good trace import many.jsonl --tokenizer "$sample/tokenizer.json" -o many.dst
tokens=$(sed -n 's/.*"output_tokens": *\([0-9]*\).*/\1/p' many.dst/manifest.json | head -n 1)
lists="--num-speculative-tokens 1:32 --prompt-lookup-max 1:6"

one_pass_is_done() {
    done_=$(sed -n 's/^{"done": \([0-9]*\),.*/\1/p' err | tail -n 1)
    [ "${done_:-0}" -ge $((18 * tokens)) ]
}
# Runs the command until as many configurations are finished as one pass over the trace has at most,
# in addition to `none`; then sends the signal.
interrupt() { # command...
    : >err # of the command before
    "$DRAFTSCOPE" "$@" --threads 1 --progress json >out 2>err &
    process=$!
    wait_until $process one_pass_is_done
    stop $process INT
}
rows() { # FILE
    grep -vc '^#' "$1" | awk '{ print $1 - 1 }'
}
shows() { # NAME, FILE
    check "$1: exit code 130, not $got" test "$got" = 130
    check "$1: ended after $spent hundredths of a second" test $spent -lt 300
    check "$1: more than one" test "$(rows "$2")" -gt 1
    check "$1: the table has a note" grep -q '^# interrupted: ' "$2"
}

# shellcheck disable=SC2086
interrupt tune many.dst --method ngram,llma $lists --cost linear:.02,.001 --top 0 -o tune.tsv
check "tune: one line tells how many" grep -qx "draftscope: interrupted: $(rows tune.tsv) configurations were finished and are in the table" err
shows tune tune.tsv
check "tune: the table has no other file" sh -c '! ls tune.tsv.* 2>/dev/null'
interrupt advise many.dst --cost linear:.02,.0005 -o cut
shows advise cut.tsv
# shellcheck disable=SC2016
check "advise: one line tells how many" grep -q '^draftscope: interrupted: [0-9]* configurations were finished and are in cut.tsv; ' err
count=$(sed -n 's/.*interrupted: \([0-9]*\) .*/\1/p' err)
check "advise: as many as the table has for each batch size" test $((4 * count)) = "$(rows cut.tsv)"

# shellcheck disable=SC2086
interrupt sweep many.dst --method ngram $lists --block 8 -o sweep.tsv
check "sweep: exit code 130, not $got" test "$got" = 130
check "sweep: ended after $spent hundredths of a second" test $spent -lt 300
check "sweep: one line says where the rest goes on" \
    grep -qx 'draftscope: interrupted: finished configurations are in sweep.tsv.part; the same command goes on' err
kept=$(rows sweep.tsv.part)
check "sweep: configurations are kept" test "$kept" -gt 0
check "sweep: and no result" test ! -e sweep.tsv
# shellcheck disable=SC2086
good sweep many.dst --method ngram $lists --block 8 -o sweep.tsv
check "sweep: it goes on after $kept of 192" grep -q "going on after $kept of 192 configurations" err
check "sweep: to all rows" test "$(rows sweep.tsv)" = 192
summary

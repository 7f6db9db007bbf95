#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A shard or an array that is written to while a command reads it: the command ends with one line and
# exit code 4, whatever it has printed before. Nothing else about the file is wrong.
. "${top_srcdir:-.}/tests/cli/common.sh"
awk 'BEGIN { for (i = 0; i < 20000; i++) {
    printf "{\"prompt\": \"%d a b c d e f g\", \"output\": \"%d", i, i % 7
    for (j = 0; j < 40; j++) printf " %d", (i * j) % 11
    print "\"}" } }' >many.jsonl
good trace import many.jsonl -o many.dst --tokenizer bytes
shard=many.dst/shard-00000.safetensors

verdict() { # what, exit code, file: the message is in `err`
    check "$1: exit code 4, not $2" test "$2" = 4
    check "$1: one line that names the file: $(cat err)" test "$(wc -l <err)" = 1
    check "$1: one line that names the file: $(cat err)" grep -q "$3: changed while it was read" err
}

# --- a command that waits for its reader ---------------------------------------------------------
# The export fills the pipe and waits, in the middle of the shard, until the first lines are read.
mkfifo pipe
"$draftscope" trace export many.dst --format jsonl >pipe 2>err &
process=$!
exec 3<pipe
head -c 1000 <&3 >/dev/null
touch -d '2001-02-03' $shard
cat <&3 >/dev/null
exec 3<&-
wait $process
verdict "trace export" $? $shard

# The same without the change succeeds.
"$draftscope" trace export many.dst --format jsonl >pipe 2>err &
process=$!
exec 3<pipe
head -c 1000 <&3 >/dev/null
cat <&3 >/dev/null
exec 3<&-
check "trace export of the shard with another time succeeds" wait $process

# --- a computation -------------------------------------------------------------------------------
# The file is changed as soon as the command has mapped it (change.c).
change=./change.so # a path without spaces
# shellcheck disable=SC2086
${CC:-cc} -shared -fPIC -o "$change" "$top/tests/reliability/change.c" -ldl 2>/dev/null || rm -f "$change"
changed() { # what, file, command...
    what=$1 file=$2
    shift 2
    touch "$file"
    DSC_CHANGE=$file LD_PRELOAD=$change "$@" >out 2>err
    verdict "$what" $? "$file"
}
if [ -e "$change" ] && LD_PRELOAD=$change "$draftscope" --version >/dev/null 2>&1; then
    changed "sim" $shard "$draftscope" sim many.dst --method ngram --num-speculative-tokens 8
    changed "sweep" $shard "$draftscope" sweep many.dst --method llma --references all --num-speculative-tokens 1:8 -o grid.tsv
    changed "trace cut" $shard "$draftscope" trace cut many.dst --requests 0:19999 -o cut.dst
    check "trace cut: nothing is left" test ! -e cut.dst -a ! -e cut.dst.tmp
    changed "trace verify" $shard "$draftscope" trace verify many.dst
    awk 'BEGIN { for (i = 0; i < 4000; i++) { for (j = 1; j < 64; j++) printf "%g,", 1 / 64; print 1 / 64 } }' >rows.csv
    changed "theory accept" rows.csv "$draftscope" theory accept --draft rows.csv --target rows.csv --summary
else
    skip "changes during a computation" "no library can be preloaded"
fi
summary

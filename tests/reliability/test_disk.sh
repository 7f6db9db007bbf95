#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Results cannot be written because of a limit on the size of files, a full disk or a read-only
# folder. There is one line of error with the reason and the path, the exit status is 1, and no
# finished result is lost.
set -u
: "${DRAFTSCOPE:?path of the program}"
LC_ALL=C
export LC_ALL
case $DRAFTSCOPE in */*) DRAFTSCOPE=$(cd "${DRAFTSCOPE%/*}" && pwd)/${DRAFTSCOPE##*/} ;; esac
case $0 in /*) self=$0 ;; *) self=$PWD/$0 ;; esac
passed=0 failed=0

ok() {
    passed=$((passed + 1))
}
not_ok() {
    failed=$((failed + 1))
    echo "not ok - $*"
}
check() { # description, command...
    what=$1
    shift
    if "$@"; then ok; else not_ok "$what"; fi
}
skip() {
    echo "ok - $1 # skipped: $2"
}

# bad 'words on stderr' arguments...: checks for exit status 1 and one line of error.
bad() {
    words=$1
    shift
    "$DRAFTSCOPE" "$@" >out 2>err </dev/null
    code=$?
    if [ $code != 1 ]; then
        not_ok "exit $code, not 1: $* ($(head -n 1 err))"
    elif ! grep -qF -e "$words" err; then
        not_ok "'$words' is not in: $(cat err)"
    elif [ "$(wc -l <err)" != 1 ]; then
        not_ok "more than one line on stderr: $*"
    else
        ok
    fi
}
good() {
    if "$DRAFTSCOPE" "$@" >out 2>err </dev/null; then ok; else not_ok "$* ($(cat err))"; fi
}
requests_of() { # trace: how many, if it verifies
    "$DRAFTSCOPE" trace verify "$1" 2>&1 | sed -n 's/^.*: ok, \([0-9]*\) requests.*/\1/p'
}

import='trace import --tokenizer bytes --shard-tokens 5000'

# --- file systems -------------------------------------------------------------------------------

# The folder `locked`, which is read-only, contains small.dst.
read_only() { # why
    bad "locked/x.dst.tmp: $1" trace import --tokenizer bytes small.jsonl -o locked/x.dst
    bad "locked/x.dst.tmp: $1" trace cut all.dst --tokens 1 -o locked/x.dst
    bad "$1" trace append locked/small.dst large.dst
    bad "$1" trace export all.dst -o locked/out
    check "read_only: its trace can be read" test "$(requests_of locked/small.dst)" = 10
    good trace merge locked/small.dst -o copy.dst
    rm -rf copy.dst
}
# Runs in its own mount namespace, whose mounts end with it.
full_disk() {
    mkdir disk locked
    mount -t tmpfs -o size=8m tmpfs disk || exit 99
    cp -r small.dst disk
    head -c 7600000 /dev/zero >disk/filler
    # shellcheck disable=SC2086
    bad 'No space left on device (the first 10 requests are kept in disk/x.dst.tmp)' \
        $import large.jsonl -o disk/x.dst
    check "full disk: nothing has the final name" test ! -e disk/x.dst
    check "full disk: what was finished is kept" test "$(requests_of disk/x.dst.tmp)" = 10
    bad 'No space left on device' trace append disk/small.dst large.dst --shard-tokens 5000
    check "full disk: the trace is as it was" test "$(requests_of disk/small.dst)" = 10
    bad 'No space left on device' trace export all.dst -o disk/out
    check "full disk: no file" test ! -e disk/out -a ! -e disk/out.tmp
    rm disk/filler
    # shellcheck disable=SC2086
    good $import all.jsonl -o disk/x.dst
    good trace append disk/small.dst large.dst --shard-tokens 5000
    check "with more space: a rerun, an append" \
        test "$(requests_of disk/x.dst) $(requests_of disk/small.dst)" = '30 30'
    umount disk
    mount -t tmpfs -o size=8m tmpfs locked && cp -r small.dst locked
    if mount -o remount,bind,ro locked; then
        read_only "Read-only file system"
    else
        skip "read-only file system" "no permission to remount"
    fi
    umount locked
}
if [ "${1-}" = mounted ]; then
    cd "$2" || exit 99
    full_disk
    echo "# full disk, read-only file system: $passed passed, $failed failed"
    exit "$((failed > 0))"
fi

# --- inputs --------------------------------------------------------------------------------------

tmp=$(mktemp -d "${TMPDIR:-/tmp}/test_disk.XXXXXX") || exit 1
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cd "$tmp" || exit 1
# 29 requests have 1000 tokens, and one has 300 000.
awk 'BEGIN { for (i = 0; i < 30; i++) {
    s = ""
    for (j = 0; j < (i == 24 ? 300000 : 1000); j += 10) s = s sprintf("%09d ", i * j)
    printf "{\"id\": \"%d\", \"prompt\": \"\", \"output\": \"%s\"}\n", i, s } }' >all.jsonl
head -n 10 all.jsonl >small.jsonl
sed -n '11,$p' all.jsonl >large.jsonl
# shellcheck disable=SC2086
{
    good $import small.jsonl -o small.dst
    good $import large.jsonl -o large.dst
    good $import all.jsonl -o all.dst
}
check "the inputs" \
    test "$(requests_of small.dst) $(requests_of large.dst)" = '10 20'

# --- a limit on the size of a file: SIGXFSZ must not end the program; EFBIG is reported -----------

limited() ( # "bad" and its arguments under 256 blocks of 512 or 1024 bytes
    ulimit -f 256
    bad "$@"
    test "$failed" = 0
)
# shellcheck disable=SC2086
{
    check "an import" limited 'File too large (the first 20 requests are kept in x.dst.tmp)' \
        $import all.jsonl -o x.dst
    check "nothing has the final name" test ! -e x.dst
    check "what was finished is kept" test "$(requests_of x.dst.tmp)" = 20
    good trace merge x.dst.tmp -o taken.dst
    check "and can be taken" test "$(requests_of taken.dst)" = 20
    check "an import that replaces a trace" limited 'File too large' \
        $import all.jsonl -o taken.dst --force
    check "the former trace is there" test "$(requests_of taken.dst)" = 20
    good $import all.jsonl -o x.dst
    check "the next run" test "$(requests_of x.dst)" = 30 -a ! -e x.dst.tmp
}
check "one shard" limited 'File too large' trace merge all.dst -o y.dst
check "leaves nothing" test ! -e y.dst -a ! -e y.dst.tmp
ls small.dst >before
check "an append" limited 'File too large' trace append small.dst large.dst --shard-tokens 5000
ls small.dst >after
check "leaves the trace as it was" test "$(requests_of small.dst)" = 10
check "and nothing else" cmp -s before after
check "an export" limited 'File too large' trace export all.dst -o all.out
check "leaves no file" test ! -e all.out -a ! -e all.out.tmp
rm -rf x.dst taken.dst taken.dst.tmp

# --- a read-only folder, a full disk -------------------------------------------------------------

if [ "$(id -u)" = 0 ]; then
    skip "a folder without permission" "permissions do not stop root"
else
    mkdir locked && cp -r small.dst locked && chmod 555 locked locked/small.dst
    read_only "Permission denied"
    chmod 755 locked locked/small.dst
    rm -rf locked
fi

if [ "$(id -u)" = 0 ]; then unshare='unshare -m'; else unshare='unshare -rm'; fi
mkdir probe
# shellcheck disable=SC2086
if $unshare mount -t tmpfs -o size=64k tmpfs probe 2>/dev/null; then
    # shellcheck disable=SC2086
    check "full disk, read-only file system" $unshare sh "$self" mounted "$tmp"
else
    skip "full disk, read-only file system" "no permission to mount"
fi
echo "$passed passed, $failed failed"
test "$failed" = 0

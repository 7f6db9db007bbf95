#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make dist` gives the same bytes in two copies of the sources that differ in the times and modes of files,
# umask, locale, time zone and leftovers of Python; names are sorted, owners and times are one; it contains
# every file that git has. And where source_date.sh takes the time from.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
unset SOURCE_DATE_EPOCH

# --- source_date.sh ----------------------------------------------------------------------------
mkdir -p tree/contrib
cp "$top/contrib/source_date.sh" tree/contrib/
: >tree/NEWS.md
touch -d @1600000000 tree/NEWS.md
dated() { # wanted, variables...
    wanted=$1
    shift
    if [ "$(env "$@" sh tree/contrib/source_date.sh 2>err)" = "$wanted" ]; then ok; else not_ok "$* $(cat err)"; fi
}
dated 1600000000 A=b
dated 1234567890 SOURCE_DATE_EPOCH=1234567890
if SOURCE_DATE_EPOCH=today sh tree/contrib/source_date.sh >out 2>err; then not_ok "'today' passes"; else
    if grep -q "'today', not a number of seconds" err; then ok; else not_ok "$(cat err)"; fi
fi
if command -v git >/dev/null; then
    (cd tree && git init -q . && git add . && GIT_AUTHOR_DATE=@1500000000 GIT_COMMITTER_DATE='@1500000000 +0000' \
        git -c user.name=a -c user.email=a@b commit -q -m x) >out 2>&1 || not_ok "git: $(cat out)"
    dated 1500000000 A=b
fi

# --- make dist ---------------------------------------------------------------------------------
cd "$plain_folder" || exit 99
if ! command -v automake >/dev/null || ! command -v libtoolize >/dev/null; then
    skip "two tarballs" "no autoconf, automake and libtool"
    summary
    exit
fi
SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH
copy() { # folder
    mkdir "$1"
    if [ -e "$top/.git" ] && command -v git >/dev/null; then
        (cd "$top" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
            tar -xf - -C "$1"
    else
        (cd "$top" && tar -cf - .) | tar -xf - -C "$1"
    fi
    chmod -R u+w "$1"
}
pack() { # folder, locale, umask
    (umask "$3" && cd "$1" && export LC_ALL="$2" && ./bootstrap && ./configure --disable-live --without-cuda \
        --cache-file="$plain_folder/configure.cache" && ${MAKE:-make} dist) >"$1.log" 2>&1 ||
        not_ok "make dist in $1: $(tail -n 5 "$1.log")"
}
copy first
pack first C 022
(umask 077 && copy second)
chmod -R go-rwx second
find second -name '*.md' -exec touch -d 2001-02-03 {} +
mkdir -p second/contrib/train_demo/__pycache__
echo compiled >second/contrib/train_demo/__pycache__/train.cpython-311.pyc
TZ=Asia/Tokyo pack second tr_TR.UTF-8 077
set -- first/draftscope-*.tar.gz
tarball=${1#first/}
if cmp "first/$tarball" "second/$tarball"; then ok; else
    not_ok "the tarballs differ"
    for copy in first second; do tar -tvzf "$copy/$tarball" >$copy.list; done
    diff first.list second.list | head -n 10 | sed 's/^/# /'
fi
tar -tvzf "first/$tarball" --utc --full-time >list
if awk '$2 != "0/0" || $4 != "2023-11-14" || $5 != "22:13:20" || $1 !~ /^(d|-)rw(x|-)r-(x|-)r-(x|-)$/ { print; bad = 1 }
    END { exit bad }' list; then ok; else not_ok "owners, times or modes"; fi
tar -tzf "first/$tarball" | sed 's|/$||' >names
# Each folder's entries are in the order of bytes.
if sed 's|/|\x01|g' names | LC_ALL=C sort -c 2>order; then ok; else not_ok "names: $(cat order)"; fi
if [ "$(dd if="first/$tarball" bs=1 skip=4 count=4 2>/dev/null | od -An -tx1 | tr -d ' ')" = 00000000 ]; then
    ok
else
    not_ok "gzip's header has a time"
fi
if [ -e "$top/.git" ] && command -v git >/dev/null; then
    sed 's|^[^/]*/||' names | sort >packed
    (cd "$top" && git ls-files) | grep -v '^\.' | sort >tracked
    comm -23 tracked packed >missing
    if [ -s tracked ] && [ ! -s missing ]; then ok; else not_ok "the tarball lacks $(wc -l <missing) files: $(head -n 5 missing | tr "\n" " ")"; fi
fi
summary

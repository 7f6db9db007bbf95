#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The parts of check-all, which take too long for every change. all.tsv lists them: their files, and a
# digest of these and the date when the part last passed. A part is run if its files have changed since.
# What passes is written into all.tsv, to be committed with the change.
#
#   all.sh [--every | --list] [PART]...    in the build folder
#
# --every runs the parts whatever has changed, --list prints those that would run. Exits with 1 where a
# part fails.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
top=$(cd "$here/.." && pwd) || exit 99
table=$here/all.tsv
every='' list=''
while :; do
    case ${1-} in
    --every) every=yes ;;
    --list) list=yes ;;
    -*)
        echo "all.sh: '$1' is neither --every nor --list" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
[ -e config.status ] && git -C "$top" rev-parse --git-dir >/dev/null 2>&1 || {
    echo "all.sh: run it in a build folder of a git checkout: parts are chosen by its files" >&2
    exit 2
}
LC_ALL=C
MAKEFLAGS=${MAKEFLAGS:--j$(nproc 2>/dev/null || echo 1)}
export LC_ALL MAKEFLAGS
tab=$(printf '\t')
work=$(sh "$here/folder.sh") || exit 99
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
build=$(pwd)

# A digest of the part's files as they are, committed or not.
digest() { # pathspecs
    # shellcheck disable=SC2086 # a list of words
    (cd "$top" && git ls-files -z --cached --others --exclude-standard -- $1 | sort -z |
        xargs -0 sha256sum 2>/dev/null) | sha256sum | cut -c1-16
}

# Another build, with clang, of a copy of the source.
build_with_clang() { # configure's arguments...
    mkdir "$work/source" "$work/build" &&
        (cd "$top" && git ls-files -z --cached --others --exclude-standard |
            tar --null -T - -cf -) | tar -xf - -C "$work/source" &&
        (cd "$work/source" && ./bootstrap) && cd "$work/build" &&
        "$work/source/configure" CC=clang --without-cuda --enable-werror "$@"
}

run_part() { # part
    case $1 in
    clang) build_with_clang --disable-static CFLAGS=-O2 && make check DSC_TEST_ALL=yes VERBOSE=1 ;;
    fuzz)
        build_with_clang --enable-fuzzer --disable-shared CFLAGS='-O1 -g' && make fuzz-long && return
        cp -R fuzz-found "$build/"
        return 1
        ;;
    packages)
        [ "$(id -u)" = 0 ] && python3 -m venv "$work/venv" &&
            "$work/venv/bin/pip" download -q -d "$work" hatchling || {
            echo "skipped: not root, no venv, or no package index"
            return
        }
        sh "$top/contrib/setup.sh" debootstrap && cd "$build" && make deb &&
            make check TESTS=tests/cli/test_deb.sh DSC_TEST_FRESH=yes VERBOSE=1 &&
            "$work/venv/bin/pip" install "$top" && "$work/venv/bin/draftscope" --version
        ;;
    *) cd "$build" && make check-part PART="$1" VERBOSE=1 ;;
    esac
}

# In the table, the date and the digest of a part.
record() { # part, digest
    awk -F '\t' -v OFS='\t' -v part="$1" -v digest="$2" -v date="$(date +%Y-%m-%d)" '
        $1 == part { $2 = date; $3 = digest } { print }' "$table" >"$table.new" && mv "$table.new" "$table"
}

status=0
grep -v '^#' "$table" >"$work/parts"
for part; do
    cut -f 1 "$work/parts" | grep -qx -e "$part" || {
        echo "all.sh: no part '$part' in $table" >&2
        exit 2
    }
done
while IFS=$tab read -r part date passed files; do
    case " $* " in "  " | *" $part "*) ;; *) continue ;; esac
    now=$(digest "$files")
    if [ "$now" = "$passed" ] && [ ! "$every" ]; then
        [ "$list" ] || echo "same   $part: no file has changed since $date"
        continue
    fi
    if [ "$list" ]; then
        echo "$part"
        continue
    fi
    start=$(date +%s)
    rm -rf "$work/build" "$work/source"
    : >"$work/started"
    if (run_part "$part") >"$work/log" 2>&1 </dev/null; then
        if grep -q '^skipped: \|^# PASS:  0$' "$work/log"; then
            echo "skip   $part: $(grep '^skipped: \|^SKIP' "$work/log" | head -n 1)"
            continue
        fi
        echo "ok     $part ($(($(date +%s) - start)) s)"
        find tests -name '*.log' -newer "$work/started" -exec \
            sed -n 's/^ok - \(.*\) # skipped: /       without \1: /p' {} +
        record "$part" "$now"
    else
        status=1
        grep -E '^not ok|^\[  FAILED|^FAIL|: error:' "$work/log" | head -n 40
        tail -n 40 "$work/log"
        echo "FAILED $part ($(($(date +%s) - start)) s)"
    fi
done <"$work/parts"
exit $status

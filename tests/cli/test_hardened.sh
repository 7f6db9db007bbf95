#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs and the library are hardened as far as the compiler and the linker can: symbols bound
# and made read-only at the start, no executable stack, checked stacks and checked copies, landing
# pads for indirect jumps. What the toolchain can is tried here, apart from what configure found.
# HARDENING is configure's: no, yes, or unfortified (sanitizers, no optimization).
. "${top_srcdir:-.}/tests/cli/common.sh"
build=${draftscope%/*}
if [ "${HARDENING:-no}" = no ]; then
    echo "skipped: configured with --disable-hardening"
    exit 77
fi
command -v readelf >/dev/null || {
    echo "skipped: no readelf"
    exit 77
}

# A program with an array on its stack and a copy of a length that is not constant.
cat >small.c <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    strcpy(text, argv[argc - 1]);
    return puts(text) < 0;
}
END
# Whether such a program, built with a flag, has what readelf shows by its options.
toolchain() { # flag, pattern, readelf's options...
    flag=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2086
    $CC -O2 -Werror $flag small.c -o small 2>/dev/null && readelf -W "$@" small 2>/dev/null |
        grep -qE -e "$pattern"
}
has() { # what, file, pattern, readelf's options...
    what=$1 file=$2 pattern=$3
    shift 3
    if readelf -W "$@" "$file" 2>/dev/null | grep -qE -e "$pattern"; then
        ok
    else
        not_ok "${file##*/}: $what"
    fi
}
lacks() { # what, file, pattern, readelf's options...
    what=$1 file=$2 pattern=$3
    shift 3
    if readelf -W "$@" "$file" 2>/dev/null | grep -qE -e "$pattern"; then
        not_ok "${file##*/}: $what"
    else
        ok
    fi
}

toolchain '' 'Type: +DYN' -h && pie=yes || pie=no
toolchain -Wl,-z,relro GNU_RELRO -l && relro=yes || relro=no
toolchain -Wl,-z,now 'BIND_NOW|Flags:.* NOW' -d && now=yes || now=no
toolchain -fstack-protector-strong __stack_chk_fail --dyn-syms && stack=yes || stack=no
toolchain -D_FORTIFY_SOURCE=2 '__[a-z]+_chk' --dyn-syms && fortify=yes || fortify=no
toolchain -fcf-protection 'IBT, SHSTK' -n && note=yes || note=no
echo "# $CC: PIE $pie, RELRO $relro, BIND_NOW $now, stack protector $stack," \
    "_FORTIFY_SOURCE $fortify, IBT and SHSTK $note"
[ "$HARDENING" = yes ] || fortify=no

check_file() { # an ELF file
    [ "$relro" = no ] || has "GNU_RELRO" "$1" GNU_RELRO -l
    [ "$now" = no ] || has "BIND_NOW" "$1" 'BIND_NOW|Flags:.* NOW' -d
    has "GNU_STACK" "$1" GNU_STACK -l
    lacks "an executable stack" "$1" 'GNU_STACK .*RWE' -l
    lacks "relocations of the code (TEXTREL)" "$1" TEXTREL -d
    lacks "a segment that can be written and executed" "$1" 'LOAD .* RWE ' -l
    [ "$stack" = no ] || has "a checked stack" "$1" __stack_chk_fail --dyn-syms
    if [ "$fortify" = yes ]; then
        case $1 in
        *-cuda.so) ;; # no copy of the kernels' library has a size that the compiler knows
        *) has "checked copies" "$1" '__(mem|str)[a-z]+_chk' --dyn-syms ;;
        esac
        has "checked formats" "$1" '__v?f?s?n?printf_chk' --dyn-syms
    fi
    # The linker drops the note where an object has none, as CUDA's runtime.
    [ "$note" = no ] || readelf -Ws "$1" | grep -q __cudart ||
        has "indirect jumps end at landing pads" "$1" 'IBT, SHSTK' -n
}

found=0
for file in "$draftscope" "$(program_file draftscope-live)" "$build/.libs/libdraftscope.so" \
    "$build/.libs/libdraftscope-cuda.so"; do
    [ -f "$file" ] || continue
    found=$((found + 1))
    check_file "$file"
    case $file in
    *.so) ;;
    *) [ "$pie" = no ] || has "a position-independent program" "$file" 'Type: +DYN' -h ;;
    esac
done
check "there is a program to look at" [ $found -ge 1 ]

# Objects for a processor with landing pads begin their functions with one, whatever is linked.
object=$build/base/status.o
[ -f "$object" ] || object=$build/base/.libs/status.o
if [ -f "$object" ] && $CC -Werror -fcf-protection -c small.c -o small.o 2>/dev/null &&
    readelf -Wn small.o | grep -q 'IBT, SHSTK'; then
    has "landing pads" "$object" 'IBT, SHSTK' -n
fi
summary

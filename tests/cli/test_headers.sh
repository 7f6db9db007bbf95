#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interface of the installed library: every header compiles alone, as C11 and as C++17, without a
# warning, and the library exports what the headers declare with DSC_API and nothing else.
. "${top_srcdir:-.}/tests/cli/common.sh"
. "$top/tests/cli/stage.sh"

(cd "$include" && find . -name '*.h' | sed 's|^\./||' | sort) >headers
check "draftscope.h and about a dozen others" [ "$(wc -l <headers)" -ge 12 ] && [ "$(wc -l <headers)" -le 30 ]
while read -r header; do
    # C forbids a file without a declaration, and base/columns.h has only macros.
    printf '#include "%s"\nextern int declared;\n' "$header" >alone.c
    cp alone.c alone.cc
    # shellcheck disable=SC2086
    check "$header compiles alone as C11" $cc -std=c11 -pedantic -Wall -Wextra -Wstrict-prototypes \
        -Werror -I"$include" -c alone.c -o alone.o
    if [ -n "$cxx" ]; then
        # shellcheck disable=SC2086
        check "$header compiles alone as C++17" $cxx -std=c++17 -pedantic -Wall -Wextra -Werror \
            -I"$include" -c alone.cc -o alone.o
    else
        skip "$header compiles alone as C++17" "no C++ compiler"
    fi
done <headers
check "every header is part of draftscope.h" sh -c "$cc -M -I'$include' '$include/draftscope.h' |
    tr ' ' '\n' | sed -n 's|^$include/||p' | sort -u >reached && cmp reached headers"

# Declarations, one a line: without comments and preprocessor lines, cut at the semicolons.
while read -r header; do
    sed 's|//.*||; /^ *#/d' "$include/$header" | tr '\n' ' '
done <headers | tr ';' '\n' | grep -w DSC_API >declarations
{
    sed -n 's/.*DSC_API extern const [a-z_]* //p' declarations | tr -d ' ' | tr ',' '\n'
    grep -v 'DSC_API extern' declarations | sed 's/.*DSC_API//; s/(.*//; s/.*[ *]//'
} | sort -u >declared
check "functions are declared" [ "$(wc -l <declared)" -gt 50 ]
if [ -f "$libraries/libdraftscope.so" ] && command -v nm >/dev/null; then
    nm -D --defined-only "$libraries/libdraftscope.so" | awk '$2 != "A" { print $3 }' | sort -u >exported
    check "exported and declared symbols are the same" diff declared exported
else
    skip "exported and declared symbols are the same" "no shared library"
fi
summary

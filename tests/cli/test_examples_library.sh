#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/*.c against the installed library, as C and as C++: they compile without a warning through
# pkg-config alone, and their results are those of the program.
. "${top_srcdir:-.}/tests/cli/common.sh"
command -v "${PKG_CONFIG:-pkg-config}" >/dev/null || {
    echo "no pkg-config"
    exit 77
}
. "$top/tests/cli/stage.sh"

PKG_CONFIG_PATH=$libraries/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
PKG_CONFIG_SYSROOT_DIR=$stage
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
static=
[ -f "$libraries/libdraftscope.so" ] || static=--static
flags=$("${PKG_CONFIG:-pkg-config}" $static --cflags --libs draftscope) || exit 1

warnings="-pedantic -Wall -Wextra -Werror"
for example in replay theory my_drafter; do
    check "$example.c is short" [ "$(wc -l <"$top/examples/$example.c")" -lt 60 ]
    # shellcheck disable=SC2086
    check "$example.c compiles as C" $cc -std=c11 $warnings "$top/examples/$example.c" $flags -o $example
    [ -n "$cxx" ] || continue
    # shellcheck disable=SC2086
    check "$example.c compiles as C++" $cxx -std=c++17 $warnings -x c++ "$top/examples/$example.c" \
        -x none $flags -o $example-cxx
done

value() { # key of a one-line JSON object on stdin
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p"
}
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
"$draftscope" sim rag.dst --method llma --n 1 --num-speculative-tokens 18 --json | value target_calls >expected
for run in replay replay-cxx; do
    [ -x $run ] || continue
    ./$run rag.dst llma n=1 num-speculative-tokens=18 >printed
    check "$run: the program's number of calls" [ "$(sed -n 's/^target_calls *//p' printed)" = "$(cat expected)" ]
    rejects 2 "'0' is not an integer from 1" ./$run rag.dst llma n=0
    ./$run rag.dst llna >printed 2>error
    check "$run: the nearest method is named" grep -q "did you mean llma" error
done

# One draft: all rules accept with probability 1 - W(1). More: the optimum is the largest, and k-Seq
# and SpecInfer lie between 1 draft's and it.
for run in theory theory-cxx; do
    [ -x $run ] || continue
    check "$run: rules are in their order" sh -c "./$run | awk '
        NR == 2 { one = \$2; bad += \$3 != one || \$4 != one }
        { bad += /nan/ || NF < 4 }
        NR > 2 { bad += \$2 < one || \$3 < one || \$2 > \$4 || \$3 > \$4 || \$4 < last }
        { last = \$4 }
        END { exit bad || NR != 9 }'"
done

# The method outside the tree.
for run in my_drafter my_drafter-cxx; do
    [ -x $run ] || continue
    check "$run: no drafts, one token per call" [ "$(./$run rag.dst 0)" = "block efficiency 1.0000" ]
    check "$run: drafts are accepted" sh -c "./$run rag.dst 4 | awk '{ exit !(\$3 > 1.05 && \$3 < 5) }'"
    rejects 2 "'65' is not an integer from" ./$run rag.dst 65
done
summary

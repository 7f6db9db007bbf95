#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Results must not depend on the processor or on the optimization: no object of a build folder has
# instructions that multiply and add with one rounding, other than the kernels that Makefile.am
# names. x86-64 only; there the instructions begin with vfmadd, vfmsub, vfnmadd or vfnmsub.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
case $(uname -m) in x86_64) ;; *) echo "skipped: not x86-64" && exit 77 ;; esac
command -v objdump >/dev/null || {
    echo "skipped: no objdump"
    exit 77
}

fused() { # object: how many such instructions
    objdump -d --no-show-raw-insn "$1" 2>/dev/null | grep -cE '[[:space:]]vfn?m(add|sub)'
}

failed=0 passed=0
echo 'double f(double x, double y, double z) { return x * y + z; }' >"$work/f.c"
if ${CC:-cc} -O2 -mfma -ffp-contract=fast -c "$work/f.c" -o "$work/f.o" &&
    [ "$(fused "$work/f.o")" -gt 0 ]; then
    passed=$((passed + 1))
else
    echo "not ok - a fused instruction is found where there is one"
    failed=$((failed + 1))
fi

find base theory traces sim plots cli live -name '*.o' ! -path 'theory/rows/*' \
    ! -name otm_race.o ! -name otm_sampler.o ! -name 'libkernels_la-*' ! -path '*/cuda/*' \
    ! -name 'tests_unit_test_live_ops-*' \
    2>/dev/null >"$work/objects"
while read -r object; do
    n=$(fused "$object")
    if [ "$n" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "not ok - $object has $n fused multiply-adds"
        failed=$((failed + 1))
    fi
done <"$work/objects"
if [ "$passed" -lt 100 ]; then
    echo "not ok - a hundred objects to look at"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

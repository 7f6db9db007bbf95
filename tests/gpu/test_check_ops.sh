#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests check_ops itself, so that a run on a GPU is not wasted on its errors: every operation of the
# CPU against the CPU, in full where DSC_TEST_ALL is set, and the messages about wrong options.
quick=--quick
[ -z "${DSC_TEST_ALL:-}" ] || quick=
tests/ops/check_ops --device cpu $quick || exit 1
for option in '--only products,nonsense' '--only products,' '--bench --only passes' --only --nonsense; do
    # shellcheck disable=SC2086 # words
    said=$(tests/ops/check_ops $option 2>&1 >/dev/null)
    if [ $? != 2 ] || [ "$(echo "$said" | wc -l)" != 1 ]; then
        echo "not ok - $option: one line and exit code 2 are expected: $said"
        exit 1
    fi
done
tests/ops/check_ops --device cpu --open || exit 1
# checks.sh runs the sections one by one: none is left out.
sections=$(sed -n 's/.*{SECTIONS:-\([a-z ]*\)}.*/\1/p' "${top_srcdir:-.}/tests/gpu/checks.sh" | tr ' ' ',')
all=$(tests/ops/check_ops --device cpu --quick | tail -n 1)
listed=$(tests/ops/check_ops --device cpu --quick --only "$sections" | tail -n 1)
[ "$all" = "$listed" ] || {
    echo "not ok - the sections of checks.sh ($sections): $listed; all sections: $all"
    exit 1
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests check_ops itself, so that a run on a GPU is not wasted on its errors: every operation of the
# CPU against the CPU, in full unless DSC_TEST_QUICK is set, and the messages about wrong options.
tests/ops/check_ops --device cpu ${DSC_TEST_QUICK:+--quick} || exit 1
for option in --bench=products,nonsense '--bench=products,' --prefetch-mb=1 --nonsense; do
    said=$(tests/ops/check_ops $option 2>&1 >/dev/null)
    if [ $? != 2 ] || [ "$(echo "$said" | wc -l)" != 1 ]; then
        echo "not ok - $option: one line and exit code 2 are expected: $said"
        exit 1
    fi
done
tests/ops/check_ops --device cpu --open

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of the CUDA build without a device: it starts, and reports in one line that cuda is
# absent. With a device there is nothing to test.
out=$(tests/ops/check_ops --device cuda 2>&1 >/dev/null)
code=$?
if [ $code != 77 ]; then
    echo "skipped: there is a device"
    exit 77
fi
echo "$out"
[ "$(echo "$out" | wc -l)" = 1 ] || exit 1
case $out in
*cuda*no\ device*) ;;
*) exit 1 ;;
esac
# A second device, or one of another name, is absent too.
tests/ops/check_ops --device cuda:7 2>/dev/null
[ $? = 77 ] || exit 1
out=$(tests/ops/check_ops --device fpga 2>&1)
[ $? = 2 ] && echo "$out" | grep -q "no device is called 'fpga'"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of the CUDA build where there is no device: it starts, asks for cuda and is told in one
# line that it is not here. With a device there is nothing to see.
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
# Nor is there a second one, or one of another name.
tests/ops/check_ops --device cuda:7 2>/dev/null
[ $? = 77 ] || exit 1
tests/ops/check_ops --device fpga 2>/dev/null
[ $? = 2 ]

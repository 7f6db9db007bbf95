#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The engine on a device, with the CUDA backend compiled for the host (tests/cuda_host): logits
# equal those of transformers, and every method with every rule samples the same tokens as on a CPU.
[ -x tests/cuda_host/on_device ] || {
    echo "skipped: needs cmocka"
    exit 77
}
DSC_TEST_ALL= tests/cuda_host/on_device --device cuda backend fixtures live_device

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every operation of the CUDA backend, compiled for the host (tests/cuda_host), against the CPU's.
# The larger shapes are left out: what runs threads one after the other is slow.
tests/cuda_host/check_ops --quick

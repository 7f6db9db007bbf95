#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every operation of the CUDA backend, compiled for the host (tests/cuda_host), against the CPU's.
tests/cuda_host/check_ops --quick

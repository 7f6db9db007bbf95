#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares every operation of the CUDA backend, compiled for the host (tests/cuda_host), with the
# CPU's. The larger shapes are left out, because running threads in sequence is slow.
tests/cuda_host/check_ops --quick

// SPDX-License-Identifier: Apache-2.0
// Linked into programs with the emulated device: EMULATED="memory=BYTES allocations=N launches=N
// driver=12040 capability=75 devices=0 no_kernels=1 no_blas=1" sets it before main.
#include "tests/cuda_host/emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set(const char *name, long value)
{
    if (!strcmp(name, "memory"))
        emulated_memory = (size_t)value;
    else if (!strcmp(name, "allocations"))
        emulated_allocations = value;
    else if (!strcmp(name, "launches"))
        emulated_launches = value;
    else if (!strcmp(name, "driver"))
        emulated_driver = (int)value;
    else if (!strcmp(name, "capability"))
        emulated_capability = (int)value;
    else if (!strcmp(name, "devices"))
        emulated_devices = (int)value;
    else if (!strcmp(name, "no_kernels"))
        emulated_no_kernels = value;
    else if (!strcmp(name, "no_blas"))
        emulated_no_blas = value;
    else
        abort();
}

static __attribute__((constructor)) void read_settings(void)
{
    const char *at = getenv("EMULATED");
    char name[16];
    long value;
    int length;
    for (; at && sscanf(at, " %15[a-z_]=%ld%n", name, &value, &length) == 2; at += length)
        set(name, value);
}

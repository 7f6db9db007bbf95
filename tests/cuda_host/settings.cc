// SPDX-License-Identifier: Apache-2.0
// Part of programs with the emulated device: EMULATED="memory=BYTES allocations=N launches=N
// driver=12040 capability=75 devices=0 no_kernels=1 no_blas=1 whole_blocks=1 every=9" sets it
// before main.
#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

size_t emulated_memory = (size_t)1 << 30;
size_t emulated_used;
long emulated_allocations = -1;
int emulated_devices = 1, emulated_driver = 13000, emulated_capability = 90;
long emulated_launches = -1;
int emulated_replays, emulated_capture_errors, emulated_handles, emulated_carved, emulated_overlaps;
bool emulated_no_kernels, emulated_no_blas, emulated_busy, emulated_whole_blocks;
unsigned emulated_every = 1;

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
    else if (!strcmp(name, "whole_blocks"))
        emulated_whole_blocks = value;
    else if (!strcmp(name, "every"))
        emulated_every = (unsigned)value;
    else
        abort();
}

static __attribute__((constructor)) void read_settings()
{
    const char *at = getenv("EMULATED");
    char name[16];
    long value;
    int length;
    for (; at && sscanf(at, " %15[a-z_]=%ld%n", name, &value, &length) == 2; at += length)
        set(name, value);
}

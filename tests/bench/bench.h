// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share: clocks, failures, and the name of the processor.
#ifndef DSC_TESTS_BENCH_H
#define DSC_TESTS_BENCH_H

#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double clock_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double wall_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

// Processor time, of all threads and of this one: other programs may share the cores.
static inline double cpu_s(void)
{
    return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static inline double thread_s(void)
{
    return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

static inline void must(int rc, const dsc_error *err)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->message);
        exit(dsc_exit_code(rc));
    }
}

static inline void processor(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(out, size, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n,")] = '\0';
            break;
        }
    if (f)
        fclose(f);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// How many threads a program may start without delaying itself: the processors of its affinity mask
// and of its control group's quota (cgroups(7): cpu.max of version 2, cpu.cfs_quota_us of version
// 1), less those that others keep busy. Parallel loops wait for their slowest thread, so a thread
// without a processor of its own delays all others.
#include "base/threads.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The processors that this process may run on.
static int allowed(int online)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    const int n = sched_getaffinity(0, sizeof set, &set) ? online : CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

// Reads up to `size` characters of a file of /proc or /sys.
static bool read_line(const char *path, char *text, int size)
{
    FILE *f = fopen(path, "re");
    const bool read = f && fgets(text, size, f);
    if (f)
        fclose(f);
    return read;
}

// The quota of a control group, in processors; 0: none.
static double quota(void)
{
    char text[64], period[64];
    double us, per_us;
    if (read_line("/sys/fs/cgroup/cpu.max", text, sizeof text))
        return sscanf(text, "%lf %lf", &us, &per_us) == 2 && us > 0 && per_us > 0 ? us / per_us : 0;
    if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text) &&
        read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) {
        us = atof(text);
        per_us = atof(period);
        return us > 0 && per_us > 0 ? us / per_us : 0;
    }
    return 0;
}

// The processors that others keep busy: the mean of the last minute, which is not yet over for a
// program that just ended, or the tasks that can run now, whichever is less.
static double busy(void)
{
    char text[128];
    double minute, now;
    if (!read_line("/proc/loadavg", text, sizeof text) ||
        sscanf(text, "%lf %*f %*f %lf", &minute, &now) != 2)
        return 0;
    return fmin(minute, fmax(now - 1, 0)); // this process can run
}

int dsc_threads_choose(int allowed_processors, double quota_processors, int online, double load)
{
    double n = allowed_processors;
    if (quota_processors > 0)
        n = fmin(n, fmax(floor(quota_processors), 1));
    n = fmin(n, online - floor(load + 0.5));
    return n < 1 ? 1 : n > DSC_THREADS_MOST ? DSC_THREADS_MOST : (int)n;
}

int dsc_threads_default(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int online = processors < 1 ? 1 : (int)processors;
    return dsc_threads_choose(allowed(online), quota(), online, busy());
}

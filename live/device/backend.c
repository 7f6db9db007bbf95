// SPDX-License-Identifier: Apache-2.0
// Opens the device that a word such as "auto" or "cuda:1" names, and stands in for CUDA in builds
// without it.
#include "live/device/backend.h"

#include <stdlib.h>
#include <string.h>

#ifndef HAVE_CUDA
int live_backend_cuda(live_backend **out, const live_cuda_settings *settings, bool invariant,
                      dsc_error *err)
{
    (void)settings;
    (void)invariant;
    *out = NULL;
    return dsc_fail(err, DSC_EABSENT, "this build has no CUDA (configure --with-cuda)");
}

int live_cuda_devices(void)
{
    return 0;
}

bool live_cuda_describe(int device, char *line, size_t bytes)
{
    (void)device;
    (void)line;
    (void)bytes;
    return false;
}
#endif

// --- names of devices ----------------------------------------------------------------------------

static int unknown(const char *device, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE,
                    "no device is called '%.60s'; the names are auto, cpu, cuda and cuda:N "
                    "(draftscope live list prints those of this machine), the switches of "
                    "cuda:SWITCH,... overlap=0, graphs=0, prefetch=MB and carveout=PERCENT",
                    device);
}

// Reads one of the items after "cuda:", a number or NAME=VALUE, and advances *at to the next one.
static bool read_item(const char **at, live_cuda_settings *s, unsigned *seen)
{
    const struct {
        const char *name;
        int most, *value;
    } item[] = {{"", 9999, &s->device},
                {"overlap=", 1, &s->overlap},
                {"graphs=", 1, &s->graphs},
                {"prefetch=", 4096, &s->prefetch},
                {"carveout=", 100, &s->carveout}};
    size_t i = sizeof item / sizeof *item - 1;
    while (i > 0 && strncmp(*at, item[i].name, strlen(item[i].name)) != 0)
        i--;
    const char *number = *at + strlen(item[i].name);
    char *end;
    const long value = strtol(number, &end, 10);
    const bool good = *number >= '0' && *number <= '9' && value <= item[i].most &&
                      !(*seen >> i & 1) && (!*end || (*end == ',' && end[1]));
    *seen |= 1u << i;
    *item[i].value = (int)value;
    *at = *end ? end + 1 : end;
    return good;
}

// Fills *s from "cuda", or "cuda:" and its items.
static int read_cuda(const char *device, live_cuda_settings *s, dsc_error *err)
{
    const char *at = device + 4;
    unsigned seen = 0;
    *s = (live_cuda_settings){
        .overlap = 1, .graphs = 1, .prefetch = LIVE_CUDA_PREFETCH, .carveout = -1};
    if (!*at)
        return DSC_OK;
    if (*at++ != ':')
        return unknown(device, err);
    do {
        if (!read_item(&at, s, &seen))
            return unknown(device, err);
    } while (*at);
    return DSC_OK;
}

int live_backend_check(const char *device, dsc_error *err)
{
    live_cuda_settings unused;
    if (!strcmp(device, "auto") || !strcmp(device, "cpu"))
        return DSC_OK;
    return strncmp(device, "cuda", 4) ? unknown(device, err) : read_cuda(device, &unused, err);
}

int live_backend_open(live_backend **out, const char *device, int threads, bool invariant,
                      dsc_error *err)
{
    live_cuda_settings settings;
    *out = NULL;
    int rc = live_backend_check(device, err);
    if (rc)
        return rc;
    if (!strcmp(device, "cpu") || (!strcmp(device, "auto") && !live_cuda_devices()))
        return live_backend_cpu(out, threads, invariant, err);
    rc = read_cuda(strcmp(device, "auto") ? device : "cuda", &settings, err);
    return rc ? rc : live_backend_cuda(out, &settings, invariant, err);
}

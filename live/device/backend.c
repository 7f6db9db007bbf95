// SPDX-License-Identifier: Apache-2.0
// Opens the device that a word such as "auto" or "cuda:1" names, and stands in for CUDA in builds
// without it.
#include "live/device/backend.h"

#include <stdlib.h>
#include <string.h>

#ifndef HAVE_CUDA
int live_backend_cuda(live_backend **out, int device, bool invariant, dsc_error *err)
{
    (void)device;
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

// Returns N of "cuda:N", or -1 for anything else.
static int device_number(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long n = strtol(text, &end, 10);
    return *end || n > 9999 ? -1 : (int)n;
}

int live_backend_check(const char *device, dsc_error *err)
{
    if (!strcmp(device, "auto") || !strcmp(device, "cpu") || !strcmp(device, "cuda") ||
        (!strncmp(device, "cuda:", 5) && device_number(device + 5) >= 0))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "no device is called '%.40s'; the names are auto, cpu, cuda and cuda:N "
                    "(draftscope live list prints those of this machine)",
                    device);
}

int live_backend_open(live_backend **out, const char *device, int threads, bool invariant,
                      dsc_error *err)
{
    *out = NULL;
    int rc = live_backend_check(device, err);
    if (rc)
        return rc;
    if (!strcmp(device, "cpu") || (!strcmp(device, "auto") && !live_cuda_devices()))
        return live_backend_cpu(out, threads, invariant, err);
    const char *number = strchr(device, ':');
    return live_backend_cuda(out, number ? device_number(number + 1) : 0, invariant, err);
}

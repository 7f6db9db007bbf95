// SPDX-License-Identifier: Apache-2.0
// Suites that run on a device.
#ifndef DSC_TESTS_DEVICE_H
#define DSC_TESTS_DEVICE_H

#include "tests/close.h"

#include "live/device/backend.h"

// The device of --device, or another one without it. Ends the suite as skipped where it is not
// here.
static inline const char *chosen_device(const char *otherwise)
{
    const char *device = suite_device ? suite_device : otherwise;
    live_backend *b;
    dsc_error err;
    int rc = live_backend_open(&b, device, 1, false, &err);
    if (rc) {
        print_error("%s\n", err.message);
        exit(rc == DSC_EABSENT ? 77 : 1);
    }
    b->type->close(b);
    return device;
}

#endif

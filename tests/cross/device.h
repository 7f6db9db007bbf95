// SPDX-License-Identifier: Apache-2.0
// Tests that run on a device which the command line names.
#ifndef DSC_TESTS_DEVICE_H
#define DSC_TESTS_DEVICE_H

#include "tests/close.h"

#include "live/device/backend.h"

// Ends the test as skipped where the device is not here.
static inline void need_device(const char *device)
{
    live_backend *b;
    dsc_error err;
    int rc = live_backend_open(&b, device, 1, false, &err);
    if (rc) {
        print_error("%s\n", err.message);
        exit(rc == DSC_EABSENT ? 77 : 1);
    }
    b->type->close(b);
}

#endif

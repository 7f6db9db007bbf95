// SPDX-License-Identifier: Apache-2.0
// Status codes and the error record that goes with them.
//
// Every function that can fail returns DSC_OK (0) or a negative DSC_E*. Where the failure is first
// detected, it writes one sentence into a caller-owned dsc_error: what is wrong, where, and what
// would be right. Callers pass the record on unchanged. The library never prints, exits or aborts.
#ifndef DSC_BASE_STATUS_H
#define DSC_BASE_STATUS_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DSC_API __attribute__((visibility("default")))
#define DSC_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define DSC_API
#define DSC_PRINTF(fmt, first)
#endif

enum dsc_status {
    DSC_OK = 0,
    DSC_EUSAGE = -1,     // invalid request: option, range, name, output exists
    DSC_EABSENT = -2,    // a feature, program or device is not available
    DSC_EINPUT = -3,     // an input file is missing, malformed, truncated or changed
    DSC_EIO = -4,        // a result could not be written (full disk, no permission)
    DSC_ENOMEM = -5,     // out of memory, or a size overflows
    DSC_ECHECK = -6,     // the run finished, but a check failed
    DSC_EINTERRUPT = -7, // stopped on request; completed work is on disk
    DSC_EDEVICE = -8,    // a device that was opened has failed: a launch, a copy, a lost device
};

typedef struct dsc_error {
    int status;         // DSC_OK or the DSC_E* that was returned
    char message[1024]; // one line, no newline, control characters and invalid UTF-8 shown as '?'
} dsc_error;

// Records `status`, a negative DSC_E*, and the formatted sentence in *err (err may be NULL) and
// returns `status`. Any other value is recorded and returned as DSC_EUSAGE.
DSC_API int dsc_fail(dsc_error *err, int status, const char *format, ...) DSC_PRINTF(3, 4);
DSC_API int dsc_vfail(dsc_error *err, int status, const char *format, va_list args);

// dsc_fail for a failed system call: appends ": " and strerror(errno_value).
// With EINTR the status is DSC_EINTERRUPT: a signal handler of the program ended the wait.
DSC_API int dsc_fail_errno(dsc_error *err, int status, int errno_value, const char *format, ...)
    DSC_PRINTF(4, 5);

// Prepends "prefix: " (a file and line, for example) to a message already recorded. Returns
// err->status, or `status` when err is NULL.
DSC_API int dsc_error_prefix(dsc_error *err, int status, const char *format, ...) DSC_PRINTF(3, 4);

// The documented exit code of a status: 0 success; 1 a check, a write or a device failed; 2 usage;
// 3 not available; 4 bad input; 130 interrupted.
DSC_API int dsc_exit_code(int status);

#ifdef __cplusplus
}
#endif

#endif

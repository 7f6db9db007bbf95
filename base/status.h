// SPDX-License-Identifier: Apache-2.0
// Status codes and the one error record that travels with them.
//
// Every fallible function returns DSC_OK (0) or a negative DSC_E* and, at the place where the
// trouble is first seen, writes one sentence into a caller-owned dsc_error: what, where, limit.
// Callers pass the record on untouched. The library never prints, exits or aborts.
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
    DSC_EUSAGE = -1,     // the request makes no sense: option, range, name, output exists
    DSC_EABSENT = -2,    // a feature, program or device that is not here
    DSC_EINPUT = -3,     // an input file that is missing, malformed, truncated or changed
    DSC_EIO = -4,        // a result could not be written (full disk, no permission)
    DSC_ENOMEM = -5,     // memory, or a size that overflows
    DSC_ECHECK = -6,     // ran, but a check failed
    DSC_EINTERRUPT = -7, // stopped on request; what was finished is on disk
};

typedef struct dsc_error {
    int status;         // DSC_OK or the DSC_E* that was returned
    char message[1024]; // one line, no newline, control characters shown as '?'
} dsc_error;

// Records `status` and the formatted sentence in *err (err may be NULL) and returns `status`.
DSC_API int dsc_fail(dsc_error *err, int status, const char *format, ...) DSC_PRINTF(3, 4);
DSC_API int dsc_vfail(dsc_error *err, int status, const char *format, va_list args);

// As dsc_fail, for a failed system call: appends ": " and strerror(errno_value).
DSC_API int dsc_fail_errno(dsc_error *err, int status, int errno_value, const char *format, ...)
    DSC_PRINTF(4, 5);

// Puts "prefix: " in front of a message already recorded (file and line, say); returns
// err->status, or `status` when err is NULL.
DSC_API int dsc_error_prefix(dsc_error *err, int status, const char *format, ...) DSC_PRINTF(3, 4);

// The documented exit code of a status: 0 ok; 1 ran, but a check or a write failed; 2 usage;
// 3 not here; 4 bad input; 130 interrupted.
DSC_API int dsc_exit_code(int status);

#ifdef __cplusplus
}
#endif

#endif

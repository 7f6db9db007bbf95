// SPDX-License-Identifier: Apache-2.0
// The error record: formatting, prefixes and exit codes; base/status.h.
#include "base/status.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A message is one line on a terminal. No control character (C0, DEL, C1) and no byte that is not
// UTF-8 gets through from a hostile file name or field.
static void make_printable(char *s)
{
    const size_t n = strlen(s);
    size_t at = 0;
    for (int64_t bad; at < n && (bad = dsc_bad_utf8(s + at, (int64_t)(n - at))) >= 0;) {
        at += (size_t)bad;
        s[at++] = '?';
    }
    for (at = 0; at < n; at++)
        if ((unsigned char)s[at] < 0x20 || s[at] == 0x7f)
            s[at] = '?';
        else if ((unsigned char)s[at] == 0xc2 && (unsigned char)s[at + 1] < 0xa0)
            s[at] = s[at + 1] = '?';
}

// What has failed never passes for a success or for a status that no caller understands.
static int failure(int status)
{
    return status < DSC_OK && status >= DSC_EDEVICE ? status : DSC_EUSAGE;
}

int dsc_vfail(dsc_error *err, int status, const char *format, va_list args)
{
    status = failure(status);
    if (err) {
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        make_printable(err->message);
    }
    return status;
}

int dsc_fail(dsc_error *err, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = dsc_vfail(err, status, format, args);
    va_end(args);
    return status;
}

int dsc_fail_errno(dsc_error *err, int status, int errno_value, const char *format, ...)
{
    va_list args;
    if (errno_value == EINTR) // a handler without SA_RESTART ends what the program waits for
        status = DSC_EINTERRUPT;
    va_start(args, format);
    status = dsc_vfail(err, status, format, args);
    va_end(args);
    if (err) {
        size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, ": %s",
                 errno_value == EINTR ? "interrupted" : strerror(errno_value));
    }
    return status;
}

int dsc_error_prefix(dsc_error *err, int status, const char *format, ...)
{
    if (!err)
        return status;
    enum { PREFIX_MAX = sizeof err->message / 2 };
    char rest[sizeof err->message];
    memcpy(rest, err->message, sizeof rest);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, PREFIX_MAX - 2, format, args);
    va_end(args);
    strcat(err->message, ": ");
    size_t n = strlen(err->message), keep = strnlen(rest, sizeof err->message - n - 1);
    memcpy(err->message + n, rest, keep);
    err->message[n + keep] = '\0';
    make_printable(err->message);
    return err->status;
}

int dsc_exit_code(int status)
{
    switch (status) {
    case DSC_OK: return 0;
    case DSC_EUSAGE: return 2;
    case DSC_EABSENT: return 3;
    case DSC_EINPUT: return 4;
    case DSC_EINTERRUPT: return 130;
    default: return 1;
    }
}

// SPDX-License-Identifier: Apache-2.0
// Text that is read from a file must be UTF-8.
#ifndef DSC_BASE_UTF8_H
#define DSC_BASE_UTF8_H

#include <stdint.h>

// Returns the offset of the first byte that is not valid UTF-8 (surrogates and overlong forms are
// invalid), or -1.
int64_t dsc_bad_utf8(const char *bytes, int64_t length);

#endif

// SPDX-License-Identifier: Apache-2.0
// Text that is read from a file is UTF-8, or it is refused.
#ifndef DSC_BASE_UTF8_H
#define DSC_BASE_UTF8_H

#include <stdint.h>

// The byte where the text stops being valid UTF-8 (no surrogates, no overlong forms), or -1.
int64_t dsc_bad_utf8(const char *bytes, int64_t length);

#endif

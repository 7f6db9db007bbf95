// SPDX-License-Identifier: Apache-2.0
// UTF-8 validation (Unicode 15, table 3-7), 32 bytes at a time while they are ASCII.
#include "base/utf8.h"

#include <string.h>

// Length of the UTF-8 sequence at s (at most n bytes), or 0. Unicode 15, table 3-7.
static int utf8_sequence(const unsigned char *s, int64_t n)
{
    unsigned char low = 0x80, high = 0xbf; // of the second byte
    int length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] > 0xf4 || length > n)
        return 0;
    switch (s[0]) {
    case 0xe0: low = 0xa0; break;  // no overlong forms
    case 0xed: high = 0x9f; break; // no surrogates
    case 0xf0: low = 0x90; break;
    case 0xf4: high = 0x8f; break; // nothing above U+10FFFF
    }
    if (length > 1 && (s[1] < low || s[1] > high))
        return 0;
    for (int i = 2; i < length; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return length;
}

int64_t dsc_bad_utf8(const char *bytes, int64_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    for (int64_t i = 0; i < length;) {
        uint64_t x[4], beyond = 0; // ASCII
        for (; length - i >= 32; i += 32) {
            memcpy(x, s + i, 32);
            if ((x[0] | x[1] | x[2] | x[3]) & 0x8080808080808080)
                break;
        }
        for (; length - i >= 8 && !beyond; i += beyond ? __builtin_ctzll(beyond) / 8 : 8) {
            memcpy(x, s + i, 8);
            beyond = x[0] & 0x8080808080808080;
        }
        if (i == length)
            break;
        int n = utf8_sequence(s + i, length - i);
        if (!n)
            return i;
        i += n;
    }
    return -1;
}

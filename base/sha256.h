// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4). Traces, shards and tokenizers are named by the hash of their content.
#ifndef DSC_BASE_SHA256_H
#define DSC_BASE_SHA256_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_SHA256_HEX = 65 }; // 64 lower-case hex digits and a NUL

typedef struct dsc_sha256 {
    uint32_t state[8];
    uint64_t length; // bytes so far
    uint8_t block[64];
    void (*compress)(uint32_t state[8], const uint8_t *bytes,
                     size_t blocks); // the fastest kernel of this processor
} dsc_sha256;

// These do nothing when a pointer is NULL (`bytes` may be when `length` is 0) or when `s` is all
// zero. `hex` is then the empty text.
DSC_API void dsc_sha256_init(dsc_sha256 *s);
DSC_API void dsc_sha256_update(dsc_sha256 *s, const void *bytes, size_t length);
DSC_API void dsc_sha256_final(dsc_sha256 *s, char hex[DSC_SHA256_HEX]);

// Hashes a whole regular file. DSC_EINPUT: it is not one, or cannot be read. DSC_EUSAGE here and
// below: a pointer is NULL.
DSC_API int dsc_sha256_file(const char *path, char hex[DSC_SHA256_HEX], dsc_error *err);
// Hashes `count` files into hex[count]. Eight files of similar size at once take much less time
// than one after the other. DSC_EINPUT names the file that cannot be read.
DSC_API int dsc_sha256_files(const char *const *paths, size_t count, char (*hex)[DSC_SHA256_HEX],
                             dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

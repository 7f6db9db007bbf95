// SPDX-License-Identifier: Apache-2.0
// Identifies the weights of a result at almost no cost: it does not hash gigabytes, but tells
// checkpoints apart. The same bytes have the same fingerprint in any folder.
#ifndef DSC_LIVE_FINGERPRINT_H
#define DSC_LIVE_FINGERPRINT_H

#include "base/sha256.h"
#include "live/model/checkpoint.h"

// SHA-256 over the file sizes, ascending, and then, for each tensor in order of name: name, dtype,
// shape, and its first and last 4 KiB (the whole tensor if it has at most 8 KiB).
int live_fingerprint_files(const live_checkpoint *c, char hex[DSC_SHA256_HEX], dsc_error *err);
// For random weights: SHA-256 over shape, dtype and seed, which determine them.
void live_fingerprint_random(const live_config *c, dsc_dtype dtype, uint64_t seed,
                             char hex[DSC_SHA256_HEX]);

// Changes the fingerprint of files to that of their weights rounded to a dtype.
void live_fingerprint_converted(dsc_dtype dtype, char hex[DSC_SHA256_HEX]);

#endif

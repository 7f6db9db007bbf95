// SPDX-License-Identifier: Apache-2.0
// What weights a result is of, at next to no cost: not a hash of gigabytes, but one that tells
// checkpoints apart. Same bytes, same fingerprint, whatever the folder is called.
#ifndef DSC_LIVE_FINGERPRINT_H
#define DSC_LIVE_FINGERPRINT_H

#include "base/sha256.h"
#include "live/model/checkpoint.h"

// SHA-256 over the sizes of the files, ascending, and then, of each tensor in the order of names,
// name, dtype, shape, and its first and last 4 KiB (all of it when it is not longer than 8 KiB).
int live_fingerprint_files(const live_checkpoint *c, char hex[DSC_SHA256_HEX], dsc_error *err);
// Of random weights: SHA-256 over what decides them, shape, dtype and seed.
void live_fingerprint_random(const live_config *c, dsc_dtype dtype, uint64_t seed,
                             char hex[DSC_SHA256_HEX]);

#endif

// SPDX-License-Identifier: Apache-2.0
// A hash of token lists, by which two results are known to come from the same texts: SHA-256 over
// the length (int64) and the ids (int32) of each list in turn, little-endian as in a trace. Call
// dsc_sha256_init first; dsc_sha256_final on a copy gives the hash of the lists so far.
#ifndef DSC_TRACES_TOKEN_HASH_H
#define DSC_TRACES_TOKEN_HASH_H

#include "traces/trace/trace.h"

static inline void dsc_token_hash_add(dsc_sha256 *s, dsc_token_view tokens)
{
    dsc_sha256_update(s, &tokens.count, sizeof tokens.count);
    if (tokens.count)
        dsc_sha256_update(s, tokens.id, (size_t)tokens.count * sizeof *tokens.id);
}

#endif

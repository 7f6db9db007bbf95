// SPDX-License-Identifier: Apache-2.0
// Names lists of tokens by their content, so that two results can be told to be of the same texts:
// SHA-256 over each list's length (int64) and its ids (int32), little-endian as in a trace, one
// list behind the other. dsc_sha256_init before; dsc_sha256_final of a copy ends any prefix.
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

// SPDX-License-Identifier: Apache-2.0
// Inverts the map d2t of an EAGLE-3 head, as vLLM's llama_eagle3.py (583507d) applies it: target
// token = draft token + d2t[draft token].
#include "traces/files/d2t.h"

#include <inttypes.h>

int dsc_d2t_read(int32_t *column, int64_t vocab, const int64_t *offset, int64_t count,
                 dsc_error *err)
{
    for (int64_t x = 0; x < vocab; x++)
        column[x] = -1;
    for (int64_t d = 0; d < count; d++) {
        if (offset[d] < -d || offset[d] >= vocab - d)
            return dsc_fail(err, DSC_EINPUT,
                            "tensor 'd2t' adds %" PRId64 " to draft token %" PRId64
                            ", which is not a token of the vocabulary of %" PRId64,
                            offset[d], d, vocab);
        if (column[d + offset[d]] >= 0)
            return dsc_fail(err, DSC_EINPUT,
                            "tensor 'd2t' maps the draft tokens %" PRId32 " and %" PRId64
                            " to the same token %" PRId64,
                            column[d + offset[d]], d, d + offset[d]);
        column[d + offset[d]] = (int32_t)d;
    }
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// No speculation, the lower end of every table: one token per target call.
#include "sim/drafter.h"

#include <string.h>

static int64_t limit(const dsc_config *config)
{
    (void)config;
    return 0;
}

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    (void)state, (void)output, (void)length, (void)draft, (void)err;
    return DSC_OK;
}

static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    (void)longest;
    size_t n = (size_t)in[0].request->output.count;
    dsc_match_lengths none;
    int rc = dsc_arena_new(in[0].arena, &none.available, n, err);
    if (!rc)
        rc = dsc_arena_new(in[0].arena, &none.run, n, err);
    if (rc)
        return rc;
    memset(none.available, 0xff, n * sizeof(int32_t)); // -1: no draft starts
    memset(none.run, 0, n * sizeof(int32_t));
    for (size_t j = 0; j < count; j++)
        out[j] = none;
    return DSC_OK;
}

const dsc_drafter_type dsc_drafter_none = {
    .name = "none",
    .summary = "no speculation: one token per target forward pass",
    .limit = limit,
    .propose = propose,
    .match_lengths = match_lengths,
};

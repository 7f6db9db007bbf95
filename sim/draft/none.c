// SPDX-License-Identifier: Apache-2.0
// No speculation, the lower end of every table: one token per target call.
#include "sim/drafter.h"

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
    (void)longest, (void)err;
    for (size_t j = 0; j < count; j++)
        for (int64_t i = 0; i < in[j].request->output.count; i++) {
            out[j].available[i] = -1; // no draft starts
            out[j].run[i] = 0;
        }
    return DSC_OK;
}

const dsc_drafter_type dsc_drafter_none = {
    .name = "none",
    .summary = "no speculation: one token per target forward pass",
    .source = "no paper",
    .engines = "all: no speculation",
    .recording = "token ids",
    .limit = limit,
    .propose = propose,
    .match_lengths = match_lengths,
};

// SPDX-License-Identifier: Apache-2.0
// A draft model writes a chain until it is not sure of a token: dynamic speculation in Hugging Face
// transformers (assistant_confidence_threshold, generation/stopping_criteria.py,
// ConfidenceCriteria; its defaults: threshold 0.4, at most 20 tokens). The token that it is not
// sure of is the draft's last.
//
// It must not be left out: whether a token is verified would then depend on which one was drawn,
// and the rule would divide by a distribution that the tokens it sees do not have. As it is,
// whether drafting goes on depends on the tokens before only, and every token that is verified is a
// draw from the draft model's distribution.
#include "sim/draft/draft_next.h"

enum { CONFIDENCE, MOST };
// clang-format off
static const dsc_option options[] = {
    {.name = "assistant-confidence-threshold", .kind = DSC_OPTION_REAL, .metavar = "P",
     .initial = "0.4", .least = 0, .most = 1,
     .help = "drafting stops after a token of lower draft probability"},
    {DSC_OPTION_DRAFT_LENGTH, .initial = "20", .min = 0, .max = 100000, .length = true,
     .help = "largest number of tokens in a draft"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
} state;

static int64_t limit(const dsc_config *config)
{
    return config->parameter[MOST];
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    (void)err;
    ((state *)memory)->in = *in;
    return DSC_OK;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const state *s = memory;
    (void)output;
    double least = s->in.config->real[CONFIDENCE];
    int rc = DSC_OK;
    bool ends = false;
    draft->kind = s->in.kind;
    draft->started = s->in.parameter[MOST] > 0;
    for (int32_t i = 0; i < s->in.parameter[MOST] && !ends && !rc; i++) {
        dsc_dist dist;
        rc = dsc_draft_next(&s->in, length, i - 1, draft, &ends, err);
        if (!rc)
            rc = dsc_draft_next_dist(&s->in, i - 1, &dist, err);
        if (!rc && dsc_dist_probability(&dist, draft->token[i]) < least)
            break;
    }
    return rc;
}

const dsc_drafter_type dsc_drafter_threshold = {
    .name = "threshold",
    .summary = "a draft model that stops at the first token of low probability",
    .needs_draft = true,
    .asks_dists = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .begin = begin,
    .propose = propose,
};

// SPDX-License-Identifier: Apache-2.0
// A draft model drafts a chain until the probability of a token falls below a threshold: dynamic
// speculation in Hugging Face transformers (assistant_confidence_threshold,
// generation/stopping_criteria.py, ConfidenceCriteria; its defaults: threshold 0.4, at most 20
// tokens). The token below the threshold is the last one of the draft.
//
// That token must stay in the draft. Otherwise, whether a token is verified would depend on its own
// value, and the rule would divide by a distribution that the verified tokens do not have. Here,
// whether drafting goes on depends on earlier tokens only, and every verified token is a sample of
// the draft model's distribution.
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

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const dsc_drafter_input *in = state;
    (void)output;
    return dsc_draft_next_chain(in, length, in->parameter[MOST], in->config->real[CONFIDENCE],
                                draft, err);
}

const dsc_drafter_type dsc_drafter_threshold = {
    .name = "threshold",
    .summary = "a draft model that stops at the first token of low probability",
    .source = "no paper: transformers; compare Mamou et al. 2024, arXiv 2405.04304",
    .engines = "transformers assistant_confidence_threshold; llama.cpp --spec-draft-p-min",
    .recording = "none",
    .needs_draft = true,
    .needs_draft_dists = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(dsc_drafter_input),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .propose = propose,
};

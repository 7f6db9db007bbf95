// SPDX-License-Identifier: Apache-2.0
// A draft model drafts a fixed number of tokens, one forward pass each (Leviathan et al. 2023; Chen
// et al. 2023): argmax tokens for a greedy target, samples of its distributions otherwise.
#include "sim/draft/draft_next.h"

enum { LENGTH };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "5", .min = 0, .max = 100000, .length = true,
     .sizes = "1,2,3,4,5,6,8",
     .help = "number of tokens that the draft model drafts per step"},
};
// clang-format on

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const dsc_drafter_input *in = state;
    (void)output;
    return dsc_draft_next_chain(in, length, in->parameter[LENGTH], 0, draft, err);
}

const dsc_drafter_type dsc_drafter_draft_model = {
    .name = "draft-model",
    .summary = "a draft model drafts a fixed number of tokens",
    .source = "Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, arXiv 2302.01318",
    .engines = "vLLM draft_model, eagle, eagle3, mtp, medusa; SGLang STANDALONE, EAGLE, EAGLE3, "
               "NEXTN with top-k 1; TensorRT-LLM Draft_Target, Eagle3, MTP; transformers "
               "assistant_model; llama.cpp draft-simple, draft-eagle3, draft-mtp",
    .recording = "draft_rank or draft_argmax (greedy); draft_logp and target_logp (rejection, "
                 "block)",
    .synonyms = "chain",
    .needs_draft = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .replay = DSC_DRAFT_REPLAY_CHAIN,
    .state_size = sizeof(dsc_drafter_input),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .propose = propose,
};

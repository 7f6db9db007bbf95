// SPDX-License-Identifier: Apache-2.0
// Rejection sampling of one draft; the algorithm is in chain_verify.c.
#include "sim/verify/tree_verify.h"

static int verify_rejection(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_chain_verify(in, 1, out, err);
}

const dsc_verifier_type dsc_verifier_rejection = {
    .name = "rejection",
    .summary = "rejection sampling: accept a token with probability min(1, target/draft)",
    .synonyms = "single",
    .source = "Leviathan et al. 2023, Algorithm 1, arXiv 2211.17192; Chen et al. 2023, arXiv "
              "2302.01318",
    .engines = "vLLM rejection_sample_method standard; TensorRT-LLM use_rejection_sampling; "
               "transformers do_sample",
    .lossless = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_TOKEN,
    .verify = verify_rejection,
};

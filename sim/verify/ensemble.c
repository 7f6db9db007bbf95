// SPDX-License-Identifier: Apache-2.0
// Rejection sampling against a mixture of target and draft, which is LOSSY; the algorithm is in
// chain_verify.c.
#include "sim/verify/tree_verify.h"

static int verify_ensemble(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_chain_verify(in, in->rule->parameter[0], out, err);
}

static const dsc_option ensemble_options[] = {
    {.name = "weight",
     .kind = DSC_OPTION_REAL,
     .metavar = "W",
     .initial = "0.9",
     .least = 0,
     .most = 1,
     .help = "weight of the target in the mixture; the draft's is 1 - W"},
};

const dsc_verifier_type dsc_verifier_ensemble = {
    .name = "ensemble",
    .summary = "rejection sampling against w target + (1 - w) draft (LOSSY: the output does not "
               "have the target's distribution)",
    .source = "Fu et al. 2025, Speculative Ensemble, arXiv 2502.01662",
    .engines = "none",
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .option = ensemble_options,
    .options = sizeof ensemble_options / sizeof *ensemble_options,
    .parameter = {0.9},
    .verify = verify_ensemble,
};

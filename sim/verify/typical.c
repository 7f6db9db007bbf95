// SPDX-License-Identifier: Apache-2.0
// Typical acceptance (Medusa, Cai et al. 2024, section 3.3.1): a token passes when its target
// probability exceeds min(epsilon, delta exp(-H)), where H is the entropy of the target
// distribution there. The longest path on which every token passes is accepted, among several the
// one with the largest product of probabilities; the target's argmax follows it.
//
// Relaxed acceptance (TensorRT-LLM, cpp/tensorrt_llm/kernels/speculativeDecoding/mtpKernels.cu at
// 3585984b, mtpRelaxedAcceptanceKernel) differs in the tokens that pass: those among the
// relaxed_topk most probable ones whose probability is at least that of the first one less
// relaxed_delta. The values it compares are named gen_logprobs and are the softmax
// (_torch/speculative/mtp.py at 000a01de): the gap is one of probabilities. That program relaxes
// between the two tokens that mark the thinking phase and takes the softmax at temperature 1; here
// the rule holds everywhere, at the temperature of the run.
//
// Both rules are lossy: the output does NOT have the target distribution.
#include "sim/verify/tree_verify.h"

#include "theory/lossy.h"

#include <math.h>

// The tokens that pass, by the parameters of the rule.
typedef dsc_accepted_set (*set_of)(const double *parameter, const double *dist, size_t vocab);

static dsc_accepted_set typical_set(const double *parameter, const double *dist, size_t vocab)
{
    return dsc_typical_set(dist, vocab, parameter[0], parameter[1]);
}

static dsc_accepted_set relaxed_set(const double *parameter, const double *dist, size_t vocab)
{
    return dsc_relaxed_set(dist, vocab, (int)parameter[0], parameter[1]);
}

// room->residual[node + 1]: ln of the product of the target's probabilities down to the node when
// all of them pass, else NaN. room->first[node + 1]: its depth.
static int score_paths(const dsc_verify_input *in, set_of passing, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    dsc_verify_room *r = in->room;
    double *sum = r->residual;
    sum[0] = 0;
    r->first[0] = 0;
    for (size_t j = 0; j < d->proposed; j++)
        sum[j + 1] = NAN;
    for (int32_t node = -1; node < (int32_t)d->proposed; node++) {
        size_t vocab;
        bool known = false;
        dsc_accepted_set set = {0};
        for (int32_t j = node + 1; j < (int32_t)d->proposed; j++) {
            if (d->parent[j] != node || isnan(sum[node + 1]))
                continue;
            if (!known) {
                int rc = dsc_tree_verify_dist(in, in->models->target, node, &r->target,
                                              &r->target_capacity, &vocab, err);
                if (rc)
                    return rc;
                set = passing(in->rule->parameter, r->target, vocab);
                known = true;
            }
            const int32_t x = d->token[j];
            sum[j + 1] =
                dsc_accepted_set_has(set, r->target, x) ? sum[node + 1] + log(r->target[x]) : NAN;
            r->first[j + 1] = r->first[node + 1] + 1;
        }
    }
    return DSC_OK;
}

// The node where the best path ends.
static int32_t best_end(const dsc_verify_input *in)
{
    const dsc_verify_room *r = in->room;
    int32_t best = -1;
    for (int32_t j = 0; j < (int32_t)in->draft->proposed; j++)
        if (!isnan(r->residual[j + 1]) &&
            (r->first[j + 1] > r->first[best + 1] ||
             (r->first[j + 1] == r->first[best + 1] && r->residual[j + 1] > r->residual[best + 1])))
            best = j;
    return best;
}

static int verify(const dsc_verify_input *in, set_of passing, dsc_verdict *out, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    dsc_verify_room *r = in->room;
    dsc_model *target = in->models->target;
    dsc_tree_verify w;
    dsc_next next;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&w, in, err); // room for the nodes
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->residual, &r->residual_capacity, d->proposed + 1, err);
    if (!rc)
        rc = score_paths(in, passing, err);
    if (rc)
        return rc;
    int32_t end = best_end(in);
    size_t depth = (size_t)r->first[end + 1], i = depth;
    for (int32_t j = end; j >= 0; j = d->parent[j])
        r->live[--i] = j;
    for (i = 0; i < depth && !rc; i++) {
        int32_t x = d->token[r->live[i]];
        if (dsc_model_ends(target, (int64_t)i, x))
            return dsc_verdict_close(out, x, err);
        rc = dsc_verdict_accept(out, x, r->live[i], err);
    }
    if (!rc && end < (int32_t)(d->proposed - d->unscored)) {
        rc = target->type->next(target, end, &next, err);
        if (!rc)
            rc = dsc_verdict_close(out, next.token, err);
    }
    return rc;
}

static int verify_typical(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return verify(in, typical_set, out, err);
}

static int verify_relaxed(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return verify(in, relaxed_set, out, err);
}

// The defaults are posterior_threshold and posterior_alpha of Medusa's programs.
static const dsc_option typical_options[] = {
    {.name = "epsilon",
     .kind = DSC_OPTION_REAL,
     .metavar = "P",
     .initial = "0.09",
     .least = 0,
     .most = 1,
     .help = "hard threshold: a token whose target probability exceeds it is accepted"},
    {.name = "delta",
     .kind = DSC_OPTION_REAL,
     .metavar = "D",
     .initial = "0.3",
     .least = 0,
     .most = 1e6,
     .help = "factor of exp(-entropy), which lowers the threshold where the target's "
             "entropy is high"},
};

const dsc_verifier_type dsc_verifier_typical = {
    .name = "typical",
    .summary = "typical acceptance (LOSSY: the output does not have the target's distribution)",
    .source = "Cai et al. 2024, Medusa, section 3.3.1, with the values of its programs (0.09, "
              "0.3), arXiv 2401.10774",
    .engines = "none: Medusa's own program",
    .argmax = true,
    .tree = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .option = typical_options,
    .options = sizeof typical_options / sizeof *typical_options,
    .parameter = {0.09, 0.3},
    .verify = verify_typical,
};

// The defaults are those of TensorRT-LLM's guide to DeepSeek-R1 (--relaxed_topk 10 --relaxed_delta
// 0.6); its program's own, 1 and 0, are greedy verification.
static const dsc_option relaxed_options[] = {
    {.name = "top-k",
     .kind = DSC_OPTION_INT,
     .metavar = "K",
     .initial = "10",
     .min = 1,
     .max = DSC_RELAXED_TOP_K,
     .help = "number of the target's most probable tokens that can pass"},
    {.name = "delta",
     .kind = DSC_OPTION_REAL,
     .metavar = "D",
     .initial = "0.6",
     .least = 0,
     .most = 1,
     .help = "greatest gap to the probability of the most probable token"},
};

const dsc_verifier_type dsc_verifier_relaxed = {
    .name = "relaxed",
    .summary = "relaxed acceptance (LOSSY: the output does not have the target's distribution)",
    .source = "no paper: TensorRT-LLM, mtpRelaxedAcceptanceKernel, with the values of its guide "
              "(10, 0.6)",
    .engines = "TensorRT-LLM use_relaxed_acceptance_for_thinking",
    .argmax = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .option = relaxed_options,
    .options = sizeof relaxed_options / sizeof *relaxed_options,
    .parameter = {10, 0.6},
    .verify = verify_relaxed,
};

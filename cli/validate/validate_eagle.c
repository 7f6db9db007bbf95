// SPDX-License-Identifier: Apache-2.0
// EAGLE (Li et al. 2024): tokens per target call of a chain of five draft tokens from the rates
// 0-alpha to 4-alpha of Table 1. n-alpha is the conditional acceptance rate of a draft token after
// n draft tokens. The paper has no rates of lower-ranked candidates, so the chain is a lower bound
// for the tree. Also the speedup of the tree by batch size (Table 7) from the published tokens per
// call and a roofline of the GPUs, which has no launch or scheduling overhead.
#include "cli/validate/validate.h"
#include "sim/cost/cost.h"
#include "theory/block.h"
#include "theory/tree.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 5, RANKS = 4 };

// Reads n-alpha and adds `more`, up to 1.
static int read_conditional_rates(double conditional_rate[DEPTH], const validate_row *row,
                                  const char *where, double more, dsc_error *err)
{
    int rc = DSC_OK;
    for (int n = 0; n < DEPTH && !rc; n++) {
        rc = validate_given(row, where, "n_alpha", n, &conditional_rate[n], err);
        if (!rc)
            conditional_rate[n] = fmin(conditional_rate[n] + more, 1);
    }
    return rc;
}

static int chain(const double conditional_rate[DEPTH], double *tau, dsc_error *err)
{
    double accepted[DEPTH + 1];
    int rc = dsc_block_accepted(
        &(dsc_acceptance){.conditional_rate = conditional_rate, .conditional_rates = DEPTH}, DEPTH,
        accepted, err);
    if (!rc)
        *tau = 1 + accepted[DEPTH];
    return rc;
}

// Tokens per call of EAGLE's tree if only the first candidate is ever accepted.
static int first_rank_tree(const double conditional_rate[DEPTH], double *tau, dsc_error *err)
{
    dsc_tree tree = {0};
    double rate[DEPTH][RANKS] = {{0}};
    for (int n = 0; n < DEPTH; n++)
        rate[n][0] = conditional_rate[n];
    int rc = dsc_tree_named(&tree, "eagle", err);
    if (!rc)
        rc = dsc_tree_expect(&tree, &(dsc_tree_acceptance){&rate[0][0], DEPTH, RANKS}, NULL, tau,
                             err);
    dsc_tree_fini(&tree);
    return rc;
}

static double pass_time(const dsc_cost *cost, double tokens, double batch, int *rc, dsc_error *err)
{
    enum { CONTEXT = 500 }; // MT-bench: prompt and half of the answer
    double seconds = 0;
    if (!*rc)
        *rc = dsc_cost_target(cost, (dsc_pass){tokens, CONTEXT, batch, false}, &seconds, err);
    return seconds;
}

// Speedup over one token per target call. A step gives tau tokens and takes a target call on the
// tree and the passes of the draft head, each of which reads head_share of the target's weights.
static int batch_speedup(const validate_row *row, validate_figure *f, dsc_error *err)
{
    static const char *const names[] = {"tau", "tree_tokens", "head_passes", "head_tokens",
                                        "head_share"};
    const char *spec = strcmp(f->where, "LLaMA2-Chat 70B") == 0
                           ? "roofline:llama-2-70b,a100-40,tp=4,efficiency=1,overhead=0"
                           : "roofline:vicuna-7b,rtx-3090,efficiency=1,overhead=0";
    double given[5];
    dsc_cost cost = {0};
    int rc = DSC_OK;
    for (int i = 0; i < 5 && !rc; i++)
        rc = validate_given(row, f->where, names[i], (double)NAN, &given[i], err);
    if (!rc)
        rc = dsc_cost_parse(&cost, spec, err);
    double plain = pass_time(&cost, 1, f->at, &rc, err);
    double tree = pass_time(&cost, given[1], f->at, &rc, err);
    double head = pass_time(&cost, given[3], f->at, &rc, err);
    if (!rc)
        f->predicted = given[0] * plain / (tree + given[2] * given[4] * head);
    dsc_cost_fini(&cost);
    return rc;
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    double conditional_rate[DEPTH];
    bool rounded = validate_is(f, "chain_tau_alphas_rounded_up");
    if (validate_is(f, "batch_speedup"))
        return batch_speedup(row, f, err);
    // The rates are printed to two digits and may be larger by half a unit of the last digit.
    int rc = read_conditional_rates(conditional_rate, row, f->where, rounded ? 0.005 : 0, err);
    if (!rc && (rounded || validate_is(f, "chain_tau")))
        rc = chain(conditional_rate, &f->predicted, err);
    else if (!rc && validate_is(f, "tree_tau"))
        rc = first_rank_tree(conditional_rate, &f->predicted, err);
    return rc;
}

const validate_row_type validate_eagle = {
    .name = "eagle",
    .summary = "EAGLE, Table 5: tokens per call from the acceptance rates of Table 1; Table 7: "
               "speedup of the tree by batch size",
    .predict = predict,
};

// SPDX-License-Identifier: Apache-2.0
// EAGLE (Li et al. 2024): tokens per call of a chain of five drafts from the acceptances 0-alpha to
// 4-alpha of its Table 1. n-alpha is the acceptance of a draft token with n drafted ones before it:
// a conditional acceptance rate. Of its tree only the first rank is known, so that the chain is a
// lower bound. And the speed-up of that tree by batch size (its Table 7), from the tokens per call
// it reports and a roofline of its cards: the shape of the loss, with no overhead in it.
#include "cli/validate/validate.h"
#include "sim/cost/cost.h"
#include "theory/block.h"
#include "theory/tree.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 5, RANKS = 4 };

// n-alpha with `more` added, at most 1.
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

// EAGLE's tree when no candidate but the first is ever right.
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

static double of_batch(const dsc_cost *cost, double tokens, double batch, int *rc, dsc_error *err)
{
    enum { CONTEXT = 500 }; // of MT-bench, prompt and half of the answer
    double seconds = 0;
    if (!*rc)
        *rc = dsc_cost_target(cost, (dsc_pass){tokens, CONTEXT, batch, false}, &seconds, err);
    return seconds;
}

// tau tokens for a call on the tree and the passes of the head, which reads `share` of the target's
// weights, over one token for a call.
static int batch_speedup(const validate_row *row, validate_figure *f, dsc_error *err)
{
    static const char *const names[] = {"tau", "tree_tokens", "head_passes", "head_tokens",
                                        "head_share"};
    const char *spec = strcmp(f->where, "LLaMA2-Chat 70B") == 0
                           ? "roofline:llama-2-70b,none,a100-40,tp=4"
                           : "roofline:vicuna-7b,none,rtx-3090";
    double given[5];
    dsc_cost cost = {0};
    int rc = DSC_OK;
    for (int i = 0; i < 5 && !rc; i++)
        rc = validate_given(row, f->where, names[i], (double)NAN, &given[i], err);
    if (!rc)
        rc = dsc_cost_parse(&cost, spec, err);
    double plain = of_batch(&cost, 1, f->at, &rc, err);
    double tree = of_batch(&cost, given[1], f->at, &rc, err);
    double head = of_batch(&cost, given[3], f->at, &rc, err);
    if (!rc)
        f->predicted = given[0] * plain / (tree + given[2] * given[4] * head);
    dsc_cost_fini(&cost);
    return rc;
}

static int predict(validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < row->count && !rc; i++) {
        validate_figure *f = &row->figure[i];
        double conditional_rate[DEPTH];
        bool rounded = validate_is(f, "chain_tau_alphas_rounded_up");
        if (f->kind == VALIDATE_GIVEN)
            continue;
        if (validate_is(f, "batch_speedup")) {
            rc = batch_speedup(row, f, err);
            continue;
        }
        // Two digits are printed: the acceptances were at most half a unit of the last more.
        rc = read_conditional_rates(conditional_rate, row, f->where, rounded ? 0.005 : 0, err);
        if (!rc && (rounded || validate_is(f, "chain_tau")))
            rc = chain(conditional_rate, &f->predicted, err);
        else if (!rc && validate_is(f, "tree_tau"))
            rc = first_rank_tree(conditional_rate, &f->predicted, err);
    }
    return rc;
}

const validate_row_type validate_eagle = {"eagle",
                                          "EAGLE, Table 5: tokens per call from the acceptances of "
                                          "its Table 1; Table 7: its tree in batches",
                                          false, predict};

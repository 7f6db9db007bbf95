// SPDX-License-Identifier: Apache-2.0
// EAGLE (Li et al. 2024): tokens per call of a chain of five drafts from the acceptances 0-alpha to
// 4-alpha of its Table 1. n-alpha is the acceptance of a draft token with n drafted ones before it:
// a hazard. Of its tree only the first rank is known, so that the chain is a lower bound.
#include "cli/validate.h"
#include "theory/block.h"
#include "theory/tree.h"

#include <math.h>

enum { DEPTH = 5, RANKS = 4 };

// n-alpha with `more` added, at most 1.
static int read_hazards(double hazard[DEPTH], const validate_row *row, const char *where,
                        double more, dsc_error *err)
{
    int rc = DSC_OK;
    for (int n = 0; n < DEPTH && !rc; n++) {
        rc = validate_given(row, where, "n_alpha", n, &hazard[n], err);
        if (!rc)
            hazard[n] = fmin(hazard[n] + more, 1);
    }
    return rc;
}

static int chain(const double hazard[DEPTH], double *tau, dsc_error *err)
{
    double accepted[DEPTH + 1];
    int rc = dsc_block_accepted(&(dsc_block_law){.hazard = hazard, .hazards = DEPTH}, DEPTH,
                                accepted, err);
    if (!rc)
        *tau = 1 + accepted[DEPTH];
    return rc;
}

// EAGLE's tree when no candidate but the first is ever right.
static int first_rank_tree(const double hazard[DEPTH], double *tau, dsc_error *err)
{
    dsc_tree tree = {0};
    double rate[DEPTH][RANKS] = {{0}};
    for (int n = 0; n < DEPTH; n++)
        rate[n][0] = hazard[n];
    int rc = dsc_tree_named(&tree, "eagle", err);
    if (!rc)
        rc = dsc_tree_expect(&tree, &(dsc_tree_law){&rate[0][0], DEPTH, RANKS}, NULL, tau, err);
    dsc_tree_fini(&tree);
    return rc;
}

static int predict(validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < row->count && !rc; i++) {
        validate_figure *f = &row->figure[i];
        double hazard[DEPTH];
        bool rounded = validate_is(f, "chain_tau_alphas_rounded_up");
        if (f->kind == VALIDATE_GIVEN)
            continue;
        // Two digits are printed: the acceptances were at most half a unit of the last more.
        rc = read_hazards(hazard, row, f->where, rounded ? 0.005 : 0, err);
        if (!rc && (rounded || validate_is(f, "chain_tau")))
            rc = chain(hazard, &f->predicted, err);
        else if (!rc && validate_is(f, "tree_tau"))
            rc = first_rank_tree(hazard, &f->predicted, err);
    }
    return rc;
}

const validate_row_type validate_eagle = {
    "eagle", "EAGLE, Table 5: tokens per call from the acceptances of its Table 1", false, predict};

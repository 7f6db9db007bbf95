// SPDX-License-Identifier: Apache-2.0
// SpecTr (Sun et al. 2023): acceptances of Appendix B, which are exact, and its Table 1, of which
// only totals are known.
#include "cli/validate/validate.h"
#include "theory/block.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/specinfer.h"
#include "theory/otm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- Appendix B: pairs of Bernoulli and of uniform distributions
// ---------------------------------------

// The pair of a case: draft_p and target_p, or vocab and ratio.
static int case_curve(dsc_curve *c, const validate_row *row, const char *where, dsc_error *err)
{
    double a, b, draft[2], target[2];
    if (strncmp(where, "Ber", 3) == 0) {
        int rc = validate_given(row, where, "draft_p", NAN, &a, err);
        if (!rc)
            rc = validate_given(row, where, "target_p", NAN, &b, err);
        if (!rc && !(a >= 0 && a <= 1 && b >= 0 && b <= 1))
            rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s' is not from 0 to 1", row->path, where);
        if (rc)
            return rc;
        dsc_probs_bernoulli(a, b, draft, target);
        return dsc_curve_init(c, draft, target, 2, err);
    }
    int rc = validate_given(row, where, "vocab", NAN, &a, err);
    if (!rc)
        rc = validate_given(row, where, "ratio", NAN, &b, err);
    if (!rc && !(a >= 1 && a <= 1e6 && b >= 1 && b <= a && fmod(a, floor(b)) == 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s': vocab/ratio is not whole", row->path, where);
    void *dists = NULL;
    if (!rc)
        rc = dsc_alloc(&dists, 2 * (size_t)a, sizeof(double), err);
    if (rc)
        return rc;
    double *row_draft = dists, *row_target = row_draft + (size_t)a;
    dsc_probs_uniform((size_t)a, (size_t)b, row_draft, row_target);
    rc = dsc_curve_init(c, row_draft, row_target, (size_t)a, err);
    free(dists);
    return rc;
}

static int predict_appendix(validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < row->count && !rc; i++) {
        validate_figure *f = &row->figure[i];
        dsc_curve c = {0};
        if (f->kind == VALIDATE_GIVEN)
            continue;
        if (!(f->at >= 1 && f->at <= 1000))
            return dsc_fail(err, DSC_EINPUT, "%s: '%.60s': k is not from 1 to 1000", row->path,
                            f->where);
        int k = (int)f->at;
        rc = case_curve(&c, row, f->where, err);
        if (!rc && validate_is(f, "otm"))
            f->predicted = dsc_otm_value(&c, k).accept;
        else if (!rc && validate_is(f, "kseq"))
            f->predicted = dsc_kseq_best(&c, k).accept;
        else if (!rc && validate_is(f, "rho"))
            f->predicted = dsc_kseq_best(&c, k).rho;
        else if (!rc && validate_is(f, "specinfer"))
            f->predicted = dsc_specinfer_acceptance(&c, k);
        dsc_curve_fini(&c);
    }
    return rc;
}

const validate_row_type validate_spectr_appb = {
    "spectr-appb", "SpecTr, Appendix B: acceptance on Bernoulli and uniform pairs, k drafts", false,
    predict_appendix};

// --- Table 1: block efficiencies and speed-ups ------------------------------------------------

// The draft time over the target's at which a step of L drafts gives the speed-up that it gave:
// (efficiency/speedup - 1)/L.
static int fit_draft_cost(const validate_row *row, const char *where, double length, double *cost,
                          dsc_error *err)
{
    double efficiency, speedup;
    int rc = validate_given(row, where, "block_efficiency", length, &efficiency, err);
    if (!rc)
        rc = validate_given(row, where, "speedup", length, &speedup, err);
    if (!rc)
        *cost = (efficiency / speedup - 1) / length;
    return rc;
}

static int predict_figure(validate_figure *f, const validate_row *row, double cost, dsc_error *err)
{
    const int L = (int)f->at, other = L == 4 ? 8 : 4;
    double own = NAN, others = NAN;
    int rc = validate_given(row, f->where, "block_efficiency", L, &own, err);
    if (!rc)
        rc = validate_given(row, f->where, "block_efficiency", other, &others, err);
    if (rc)
        return rc;
    double alpha = dsc_iid_rate(own - 1, L);
    if (validate_is(f, "alpha"))
        f->predicted = alpha;
    else if (validate_is(f, "block_efficiency_of_alpha"))
        // With alpha to 3 digits, as it is printed.
        f->predicted = 1 + dsc_iid_accepted(round(1000 * alpha) / 1000, L);
    else if (validate_is(f, "block_efficiency_of_other_alpha"))
        f->predicted = 1 + dsc_iid_accepted(dsc_iid_rate(others - 1, other), L);
    else if (validate_is(f, "speedup"))
        f->predicted = dsc_block_speedup(own - 1, L, (dsc_block_cost){.draft = cost});
    return DSC_OK;
}

static int predict_table1(validate_row *row, dsc_error *err)
{
    double cost;
    int rc = fit_draft_cost(row, "LM1B, 1 draft", 4, &cost, err);
    for (size_t i = 0; i < row->count && !rc; i++) {
        validate_figure *f = &row->figure[i];
        if (f->kind == VALIDATE_GIVEN)
            continue;
        if (f->at != 4 && f->at != 8)
            return dsc_fail(err, DSC_EINPUT, "%s: '%.60s' is neither at 4 nor at 8", row->path,
                            f->quantity);
        rc = predict_figure(f, row, cost, err);
    }
    return rc;
}

const validate_row_type validate_spectr_table1 = {
    "spectr-table1", "SpecTr, Table 1: what independent acceptance makes of its totals", false,
    predict_table1};

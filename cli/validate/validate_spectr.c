// SPDX-License-Identifier: Apache-2.0
// SpecTr (Sun et al. 2023): the acceptance probabilities of Appendix B, computed exactly, and Table
// 1, predicted from its block efficiencies by i.i.d. acceptance (Leviathan et al. 2023, Eq. (1)).
#include "cli/validate/validate.h"
#include "theory/block.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/specinfer.h"
#include "theory/otm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- Appendix B: pairs of Bernoulli and of uniform distributions --------------------------------

// Makes the curve of a case: Bernoulli pairs have draft_p and target_p, uniform ones vocab and
// ratio.
static int case_curve(dsc_curve *c, const validate_row *row, const char *where, dsc_error *err)
{
    double a, b, draft[2], target[2];
    if (strncmp(where, "Ber", 3) == 0) {
        int rc = validate_given(row, where, "draft_p", NAN, &a, err);
        if (!rc)
            rc = validate_given(row, where, "target_p", NAN, &b, err);
        if (!rc && !(a >= 0 && a <= 1 && b >= 0 && b <= 1))
            rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s': draft_p or target_p is not from 0 to 1",
                          row->path, where);
        if (rc)
            return rc;
        dsc_probs_bernoulli(a, b, draft, target);
        return dsc_curve_init(c, draft, target, 2, err);
    }
    int rc = validate_given(row, where, "vocab", NAN, &a, err);
    if (!rc)
        rc = validate_given(row, where, "ratio", NAN, &b, err);
    if (!rc && !(a >= 1 && a <= 1e6 && b >= 1 && b <= a && fmod(a, floor(b)) == 0))
        rc =
            dsc_fail(err, DSC_EINPUT, "%s: '%.60s': ratio does not divide vocab", row->path, where);
    const size_t vocab = rc ? 0 : (size_t)a;
    double *probs = NULL; // of the draft, then of the target
    if (!rc)
        rc = dsc_new(&probs, 2 * vocab, err);
    if (rc)
        return rc;
    dsc_probs_uniform(vocab, (size_t)b, probs, probs + vocab);
    rc = dsc_curve_init(c, probs, probs + vocab, vocab, err);
    free(probs);
    return rc;
}

static int predict_appendix(validate_figure *f, const validate_row *row, dsc_error *err)
{
    dsc_curve c = {0};
    if (!(f->at >= 1 && f->at <= 1000))
        return dsc_fail(err, DSC_EINPUT, "%s: '%.60s': k is not from 1 to 1000", row->path,
                        f->where);
    int k = (int)f->at;
    int rc = case_curve(&c, row, f->where, err);
    if (!rc && validate_is(f, "otm"))
        f->predicted = dsc_otm_value(&c, k).accept;
    else if (!rc && validate_is(f, "kseq"))
        f->predicted = dsc_kseq_best(&c, k).accept;
    else if (!rc && validate_is(f, "rho"))
        f->predicted = dsc_kseq_best(&c, k).rho;
    else if (!rc && validate_is(f, "specinfer"))
        f->predicted = dsc_specinfer_acceptance(&c, k);
    dsc_curve_fini(&c);
    return rc;
}

const validate_row_type validate_spectr_appb = {
    .name = "spectr-appb",
    .summary = "SpecTr, Appendix B: acceptance probability of k drafts on Bernoulli and uniform "
               "pairs",
    .predict = predict_appendix,
};

// --- Table 1: block efficiencies and speedups ------------------------------------------------

// Fits the cost of a draft token, in units of a target call, to the speedup with L = 4 draft
// tokens: (efficiency/speedup - 1)/L.
static int fit_draft_cost(void *state, const validate_row *row, dsc_error *err)
{
    static const char where[] = "LM1B, 1 draft";
    const double length = 4;
    double efficiency, speedup, *cost = state;
    int rc = validate_given(row, where, "block_efficiency", length, &efficiency, err);
    if (!rc)
        rc = validate_given(row, where, "speedup", length, &speedup, err);
    if (!rc)
        *cost = (efficiency / speedup - 1) / length;
    return rc;
}

static int predict_table1(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const double *cost = row->state;
    if (f->at != 4 && f->at != 8)
        return dsc_fail(err, DSC_EINPUT, "%s: '%.60s' is neither at 4 nor at 8", row->path,
                        f->quantity);
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
        // The paper rounds alpha to 3 digits.
        f->predicted = 1 + dsc_iid_accepted(round(1000 * alpha) / 1000, L);
    else if (validate_is(f, "block_efficiency_of_other_alpha"))
        f->predicted = 1 + dsc_iid_accepted(dsc_iid_rate(others - 1, other), L);
    else if (validate_is(f, "speedup"))
        f->predicted = dsc_block_speedup(own - 1, L, (dsc_block_cost){.draft = *cost});
    return DSC_OK;
}

const validate_row_type validate_spectr_table1 = {
    .name = "spectr-table1",
    .summary = "SpecTr, Table 1: block efficiency and speedup under i.i.d. acceptance",
    .state_size = sizeof(double),
    .begin = fit_draft_cost,
    .predict = predict_table1,
};

// SPDX-License-Identifier: Apache-2.0
// Acceptance of every rule from fp32 rows in one pass; theory/acceptance.h. SpecInfer rejection and
// k-Seq come from the curve of the rows (theory/rows_rules.c), alpha_k from the cutting planes of
// theory/otm_levels.c, which stop when their two bounds differ by 1e-10.
#include "theory/acceptance.h"

#include "theory/rows_rules.h"

#include <math.h>
#include <stdlib.h>

struct dsc_acceptance_work {
    dsc_rows_curve curve;
    dsc_otm_fit fit;
};

int dsc_acceptance_work_new(dsc_acceptance_work **out, dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (!rc)
        dsc_rows_curve_init(&(*out)->curve);
    return rc;
}

void dsc_acceptance_work_free(dsc_acceptance_work *w)
{
    if (w)
        dsc_rows_curve_fini(&w->curve);
    free(w);
}

// The true values are ordered by rule and by k; restoring that order adds no error.
static void keep_order(int kmax, dsc_rule_acceptance *out)
{
    for (int i = 0; i < kmax; i++) {
        const dsc_rule_acceptance *fewer = &out[i ? i - 1 : 0];
        out[i].specinfer = fmax(fmax(out[i].specinfer, fewer->specinfer), out[i].single);
        out[i].kseq = fmax(fmax(out[i].kseq, fewer->kseq), out[i].specinfer);
        out[i].otm = fmin(fmax(fmax(out[i].otm, fewer->otm), out[i].kseq), 1);
    }
}

int dsc_acceptance_of_rows(const float *draft, const float *target, size_t vocab, int kmax,
                           dsc_rule_acceptance *out, dsc_acceptance_work *w, dsc_error *err)
{
    const dsc_row_source d = {.dist = draft}, t = {.dist = target};
    const dsc_otm_rows rows = {.curve = &w->curve};
    double at[DSC_MAX_DRAFTS + 1], left[DSC_MAX_DRAFTS + 1];
    dsc_kseq kseq[DSC_MAX_DRAFTS];
    if (kmax < 1 || kmax > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts; 1 to %d are possible", kmax, DSC_MAX_DRAFTS);
    int rc = dsc_rows_curve_set(&w->curve, &d, &t, vocab, err);
    if (!rc)
        rc = dsc_rows_prepare(&w->curve, kmax, &w->fit, err);
    if (rc)
        return rc;
    dsc_rows_specinfer(&w->curve, kmax, at, left);
    dsc_rows_kseq(&w->curve, kmax, kseq);
    for (int i = 0; i < kmax && !rc; i++) {
        rc = dsc_otm_levels(&w->fit, &rows, i + 1, err);
        out[i] = (dsc_rule_acceptance){.k = i + 1,
                                       .single = 1 - left[1],
                                       .specinfer = 1 - left[i + 1],
                                       .kseq = kseq[i].accept,
                                       .kseq_rho = kseq[i].rho,
                                       .otm = w->fit.alpha_high};
    }
    keep_order(kmax, out);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Sufficient statistics of a position; theory/sufficient.h. All three rules depend on the curve
// W(c) = sum (target - c draft)+ at a few points only, so one pass over the rows
// (theory/rows_curve.h) serves SpecInfer rejection, k-Seq (theory/rows_rules.c) and optimal
// transport: the cutting planes of otm_levels.c and the race of otm_race.c for k = 1, 2, .., each
// started from the weights of the k before.
#include "theory/sufficient.h"

#include "theory/acceptance.h"
#include "theory/rows_rules.h"

#include <math.h>
#include <stdlib.h>

struct dsc_sufficient_work {
    dsc_rows_curve curve;
    dsc_otm_sampler *sampler;
    dsc_otm_fit fit;
};

int dsc_sufficient_work_new(dsc_sufficient_work **out, dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    dsc_rows_curve_init(&(*out)->curve);
    rc = dsc_otm_sampler_new(&(*out)->sampler, err);
    if (rc) {
        dsc_sufficient_work_free(*out);
        *out = NULL;
    }
    return rc;
}

void dsc_sufficient_work_free(dsc_sufficient_work *w)
{
    if (!w)
        return;
    dsc_rows_curve_fini(&w->curve);
    dsc_otm_sampler_free(w->sampler);
    free(w);
}

static int otm(dsc_sufficient_work *w, double draft_y, double target_y, int K, float *out,
               dsc_error *err)
{
    double dist[DSC_MAX_DRAFTS + 1];
    dsc_otm_rows rows = {.curve = &w->curve};
    for (int k = 1; k <= K; k++) {
        // One draft alone is no start: its weights go to the bounds.
        int rc = dsc_otm_sampler_build_float(w->sampler, &rows, k, k > 2, err);
        if (rc)
            return rc;
        dsc_otm_sampler_survivors(w->sampler, draft_y, target_y, dist);
        for (int m = 0; m <= k; m++)
            *out++ = (float)dist[m];
    }
    return DSC_OK;
}

int dsc_sufficient_of_sources(const dsc_row_source *draft, const dsc_row_source *target,
                              size_t vocab, double draft_y, double target_y, int K, float *kseq_out,
                              float *specinfer_out, float *otm_out, dsc_sufficient_work *w,
                              dsc_error *err)
{
    double at[DSC_MAX_DRAFTS + 1], left[DSC_MAX_DRAFTS + 1];
    dsc_kseq kseq[DSC_MAX_DRAFTS];
    if (K < 1 || K > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts; 1 to %d are possible", K, DSC_MAX_DRAFTS);
    int rc = dsc_rows_curve_set(&w->curve, draft, target, vocab, err);
    if (!rc)
        rc = dsc_rows_prepare(&w->curve, K, &w->fit, err);
    if (rc)
        return rc;
    dsc_rows_specinfer(&w->curve, K, at, left);
    for (int i = 0; i <= K; i++)
        specinfer_out[i] = (float)fmin(at[i], i);
    dsc_rows_kseq(&w->curve, K, kseq);
    for (int k = 0; k < K; k++) {
        kseq_out[2 * k] = (float)kseq[k].rho;
        kseq_out[2 * k + 1] = (float)kseq[k].beta;
    }
    return otm(w, draft_y, target_y, K, otm_out, err);
}

int dsc_sufficient_of_rows(const float *draft, const float *target, size_t vocab, double draft_y,
                           double target_y, int K, float *kseq_out, float *specinfer_out,
                           float *otm_out, dsc_sufficient_work *w, dsc_error *err)
{
    const dsc_row_source d = {.dist = draft}, t = {.dist = target};
    return dsc_sufficient_of_sources(&d, &t, vocab, draft_y, target_y, K, kseq_out, specinfer_out,
                                     otm_out, w, err);
}

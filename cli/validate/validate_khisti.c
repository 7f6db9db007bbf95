// SPDX-License-Identifier: Apache-2.0
// Khisti et al. 2024 (arXiv 2410.18234): acceptance with K i.i.d. drafts by the optimum, SpecTr and
// SpecInfer, on a real pair of models. Its distributions are not published. Here: the mean over
// pairs of Zipf distributions; how far the target is from the draft is exponentially spread over
// them, since a text has easy and hard positions. The mean of that spread is set by one of the
// figures; the other eight follow.
#include "cli/validate/validate.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/specinfer.h"
#include "theory/otm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 64, VOCAB = 1000, MOST_DRAFTS = 64 };

typedef struct room {
    double draft[VOCAB], target[VOCAB];
} room;

typedef double acceptance(const dsc_curve *c, int k);

static double optimal(const dsc_curve *c, int k)
{
    return dsc_otm_value(c, k).accept;
}

static double spectr(const dsc_curve *c, int k)
{
    return dsc_kseq_best(c, k).accept;
}

// The mean over the pairs. Pair s has draft(rank) ~ 1/rank and the noise of seed s, as strong as
// the s-th of so many quantiles of an exponential distribution with mean `noise`.
static int mean(acceptance *rule, int k, double noise, room *r, double *out, dsc_error *err)
{
    int rc = DSC_OK;
    *out = 0;
    for (uint64_t s = 0; s < PAIRS && !rc; s++) {
        dsc_curve c = {0};
        double strength = -noise * log1p(-((double)s + 0.5) / PAIRS);
        dsc_probs_zipf(VOCAB, 1, strength, s, r->draft, r->target);
        rc = dsc_curve_init(&c, r->draft, r->target, VOCAB, err);
        if (!rc)
            *out += rule(&c, k) / PAIRS;
        dsc_curve_fini(&c);
    }
    return rc;
}

// The noise at which SpecTr accepts `wanted` of k drafts: acceptance falls as it grows.
static int fit_noise(double wanted, int k, room *r, double *noise, dsc_error *err)
{
    double low = 0, high = 16, got;
    int rc = DSC_OK;
    for (int i = 0; i < 40 && !rc; i++) {
        *noise = (low + high) / 2;
        rc = mean(spectr, k, *noise, r, &got, err);
        if (got > wanted)
            low = *noise;
        else
            high = *noise;
    }
    return rc;
}

static int predict_all(validate_row *row, room *r, dsc_error *err)
{
    double fitted, noise = 0;
    int rc = validate_given(row, "Dolly, K = 2", "spectr", 2, &fitted, err);
    if (!rc)
        rc = fit_noise(fitted, 2, r, &noise, err);
    for (size_t i = 0; i < row->count && !rc; i++) {
        validate_figure *f = &row->figure[i];
        if (f->kind == VALIDATE_GIVEN)
            continue;
        if (!(f->at >= 1 && f->at <= MOST_DRAFTS))
            return dsc_fail(err, DSC_EINPUT, "%s: '%.60s': K is not from 1 to %d", row->path,
                            f->where, MOST_DRAFTS);
        acceptance *rule = strstr(f->quantity, "optimal")     ? optimal
                           : strstr(f->quantity, "spectr")    ? spectr
                           : strstr(f->quantity, "specinfer") ? dsc_specinfer_acceptance
                                                              : NULL;
        if (rule)
            rc = mean(rule, (int)f->at, noise, r, &f->predicted, err);
    }
    return rc;
}

static int predict(validate_row *row, dsc_error *err)
{
    void *mem;
    int rc = dsc_alloc(&mem, 1, sizeof(room), err);
    if (rc)
        return rc;
    rc = predict_all(row, mem, err);
    free(mem);
    return rc;
}

const validate_row_type validate_khisti = {
    "khisti",
    "Khisti et al. 2024: optimal transport, SpecTr and SpecInfer on synthetic distributions", false,
    predict};

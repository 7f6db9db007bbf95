// SPDX-License-Identifier: Apache-2.0
// Khisti et al. 2024 (arXiv 2410.18234): acceptance probability of K i.i.d. drafts by the optimum,
// SpecTr and SpecInfer on a real pair of models, whose distributions are not published. The
// prediction is a mean over pairs of Zipf distributions. The distance of target and draft is
// exponentially distributed over the pairs, since a text has easy and hard positions. One figure
// fits the mean of that distribution; the other eight are predicted.
#include "cli/validate/validate.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/specinfer.h"
#include "theory/otm.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 64, VOCAB = 1000, MOST_DRAFTS = 64 };

typedef double acceptance(const dsc_curve *c, int k);

static double optimal(const dsc_curve *c, int k)
{
    return dsc_otm_value(c, k).accept;
}

static double spectr(const dsc_curve *c, int k)
{
    return dsc_kseq_best(c, k).accept;
}

// Mean acceptance over the pairs. Pair s has draft(rank) ~ 1/rank and random seed s; the strength
// of its noise is the quantile (s + 1/2)/PAIRS of an exponential distribution with mean `noise`.
static int mean(acceptance *rule, int k, double noise, double *out, dsc_error *err)
{
    double draft[VOCAB], target[VOCAB];
    int rc = DSC_OK;
    *out = 0;
    for (uint64_t s = 0; s < PAIRS && !rc; s++) {
        dsc_curve c = {0};
        double strength = -noise * log1p(-((double)s + 0.5) / PAIRS);
        dsc_probs_zipf(VOCAB, 1, strength, s, draft, target);
        rc = dsc_curve_init(&c, draft, target, VOCAB, err);
        if (!rc)
            *out += rule(&c, k) / PAIRS;
        dsc_curve_fini(&c);
    }
    return rc;
}

// Finds by bisection the noise at which SpecTr accepts `wanted` of k drafts: acceptance decreases
// with noise.
static int fit_noise(double wanted, int k, double *noise, dsc_error *err)
{
    double low = 0, high = 16, got;
    int rc = DSC_OK;
    for (int i = 0; i < 40 && !rc; i++) {
        *noise = (low + high) / 2;
        rc = mean(spectr, k, *noise, &got, err);
        if (got > wanted)
            low = *noise;
        else
            high = *noise;
    }
    return rc;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    double fitted;
    int rc = validate_given(row, "Dolly, K = 2", "spectr", 2, &fitted, err);
    return rc ? rc : fit_noise(fitted, 2, state, err);
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const double *noise = row->state;
    acceptance *rule = strstr(f->quantity, "optimal")     ? optimal
                       : strstr(f->quantity, "spectr")    ? spectr
                       : strstr(f->quantity, "specinfer") ? dsc_specinfer_acceptance
                                                          : NULL;
    if (!(f->at >= 1 && f->at <= MOST_DRAFTS))
        return dsc_fail(err, DSC_EINPUT, "%s: '%.60s': K is not from 1 to %d", row->path, f->where,
                        MOST_DRAFTS);
    return rule ? mean(rule, (int)f->at, *noise, &f->predicted, err) : DSC_OK;
}

const validate_row_type validate_khisti = {
    .name = "khisti",
    .summary = "Khisti et al. 2024: optimal transport, SpecTr and SpecInfer on synthetic "
               "distributions",
    .state_size = sizeof(double),
    .begin = begin,
    .predict = predict,
};

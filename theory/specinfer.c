// SPDX-License-Identifier: Apache-2.0
// SpecInfer rejection with replacement (Miao et al. 2023); theory/specinfer.h.
//
// Round i accepts token x with probability w_i min(draft, r_i) = min(w_i draft, (target - c_i
// draft)+) = (target - c_i draft)+ - (target - c_{i+1} draft)+, so the rounds telescope: all k
// together accept min(target, c_{k+1} draft) of x, and reach the end with probability w_{k+1}.
#include "theory/specinfer.h"

#include "theory/domain.h"
#include "theory/survivors.h"

#include <math.h>
#include <stdlib.h>

static bool is_rounds(const dsc_curve *c, int k)
{
    return dsc_is_curve(c) && k >= 1 && k <= DSC_SURVIVORS;
}

int dsc_specinfer_init(dsc_specinfer *s, const dsc_curve *c, int k, dsc_error *err)
{
    if (!s || !is_rounds(c, k))
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_specinfer_init: s, an initialized curve c and k = %d from 1 to %d are "
                        "needed",
                        k, DSC_SURVIVORS);
    *s = (dsc_specinfer){.k = k};
    int rc = dsc_new(&s->c, (size_t)k + 1, err);
    if (!rc)
        rc = dsc_new(&s->w, (size_t)k + 1, err);
    if (rc) {
        dsc_specinfer_fini(s);
        return rc;
    }
    s->w[0] = 1;
    for (int i = 0; i < k; i++) {
        s->c[i + 1] = s->c[i] + s->w[i];
        s->w[i + 1] = dsc_curve_w(c, s->c[i + 1]);
    }
    s->accept = 1 - s->w[k];
    return DSC_OK;
}

void dsc_specinfer_fini(dsc_specinfer *s)
{
    if (!s)
        return;
    free(s->c);
    free(s->w);
    *s = (dsc_specinfer){0};
}

double dsc_specinfer_acceptance(const dsc_curve *c, int k)
{
    double at = 0, w = 1;
    if (!is_rounds(c, k))
        return (double)NAN;
    for (int i = 0; i < k; i++) {
        at += w;
        w = dsc_curve_w(c, at);
    }
    return 1 - w;
}

static bool is_specinfer(const dsc_specinfer *s)
{
    return s && s->k >= 1 && s->k <= DSC_SURVIVORS && s->c && s->w;
}

static double residual(const dsc_specinfer *s, int round, double draft_x, double target_x)
{
    double left = fmax(target_x - s->c[round] * draft_x, 0);
    return s->w[round] > 0 ? fmin(left / s->w[round], 1) : 0;
}

double dsc_specinfer_residual(const dsc_specinfer *s, int round, double draft_x, double target_x)
{
    if (!is_specinfer(s) || round < 0 || round > s->k || !dsc_is_probability(draft_x) ||
        !dsc_is_probability(target_x))
        return (double)NAN;
    return residual(s, round, draft_x, target_x);
}

double dsc_specinfer_given(const dsc_specinfer *s, double draft_y, double target_y)
{
    if (!is_specinfer(s) || !dsc_is_given(draft_y, target_y))
        return (double)NAN;
    return fmin(s->c[s->k] * (draft_y / target_y), 1);
}

void dsc_specinfer_survivors(const dsc_specinfer *s, double draft_y, double target_y, double *dist)
{
    if (!is_specinfer(s) || !dist)
        return;
    if (!dsc_is_given(draft_y, target_y)) {
        dsc_fill_nan(dist, (size_t)s->k + 1);
        return;
    }
    dist[0] = 0;
    for (int later = 0; later < s->k; later++) {
        int i = s->k - 1 - later;
        double r = residual(s, i, draft_y, target_y);
        double rejected = s->w[i] > 0 ? s->w[i + 1] / s->w[i] : 0; // of any token
        dsc_round round = {.accept = fmin(draft_y / target_y, r / target_y),
                           .reject_y = fmin(fmax(draft_y - r, 0), rejected)};
        round.reject_another = rejected - round.reject_y;
        dsc_survivors_before(&round, later, draft_y, dist);
    }
    dist[0] = 1 - dsc_specinfer_given(s, draft_y, target_y);
}

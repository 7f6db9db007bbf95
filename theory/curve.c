// SPDX-License-Identifier: Apache-2.0
// The sorted curve W(c) = sum (target - c draft)+; theory/curve.h. Tokens are sorted by ratio,
// equal ratios are merged, and W follows from prefix and suffix sums by a binary search.
#include "theory/curve.h"

#include "base/order.h"
#include "theory/domain.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct token { // sorted by ratio
    double ratio, draft, target;
} token;

// Only a token outside the draft's support has the ratio +inf, however small its draft mass.
static double ratio_of(double draft, double target)
{
    return draft > 0 ? fmin(target / draft, DBL_MAX) : INFINITY;
}

static size_t collect(const double *draft, const double *target, size_t vocab, token *out)
{
    size_t n = 0;
    for (size_t x = 0; x < vocab; x++)
        if (draft[x] > 0 || target[x] > 0)
            out[n++] = (token){ratio_of(draft[x], target[x]), draft[x], target[x]};
    return n;
}

// Merges sorted tokens into atoms: *_below[i + 1] becomes the mass up to atom i.
static size_t merge(dsc_curve *c, const token *t, size_t n)
{
    size_t atoms = 0;
    for (size_t i = 0; i < n; i++) {
        if (!atoms || t[i].ratio != c->ratio[atoms - 1]) {
            c->ratio[atoms++] = t[i].ratio;
            c->draft_below[atoms] = c->target_below[atoms] = 0;
        }
        c->draft_below[atoms] += t[i].draft;
        c->target_below[atoms] += t[i].target;
    }
    return atoms;
}

int dsc_curve_init(dsc_curve *c, const double *draft, const double *target, size_t vocab,
                   dsc_error *err)
{
    if (!c)
        return dsc_fail(err, DSC_EUSAGE, "dsc_curve_init: c must not be NULL");
    token *t = NULL;
    double **column[] = {&c->ratio, &c->draft_below, &c->target_below, &c->draft_above,
                         &c->target_above};
    *c = (dsc_curve){0};
    int rc = dsc_check_pair("dsc_curve_init", draft, target, vocab, err);
    if (!rc)
        rc = dsc_new(&t, vocab, err);
    for (size_t i = 0; i < 5 && !rc; i++)
        rc = dsc_alloc(column[i], vocab + 1, sizeof(double), err);
    if (!rc) {
        size_t n = collect(draft, target, vocab, t);
        qsort(t, n, sizeof *t, dsc_by_real);
        c->atoms = merge(c, t, n);
        for (size_t i = c->atoms; i-- > 0;) { // *_below still holds each atom's own mass
            c->draft_above[i] = c->draft_above[i + 1] + c->draft_below[i + 1];
            c->target_above[i] = c->target_above[i + 1] + c->target_below[i + 1];
        }
        for (size_t i = 0; i < c->atoms; i++) {
            c->draft_below[i + 1] += c->draft_below[i];
            c->target_below[i + 1] += c->target_below[i];
        }
    } else {
        dsc_curve_fini(c);
    }
    free(t);
    return rc;
}

void dsc_curve_fini(dsc_curve *c)
{
    if (!c)
        return;
    free(c->ratio);
    free(c->draft_below);
    free(c->target_below);
    free(c->draft_above);
    free(c->target_above);
    *c = (dsc_curve){0};
}

size_t dsc_curve_count(const dsc_curve *c, double ratio)
{
    size_t lo = 0, hi = c ? c->atoms : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->ratio[mid] <= ratio)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

double dsc_curve_w(const dsc_curve *c, double at)
{
    if (!dsc_is_curve(c) || !(at >= 0))
        return (double)NAN;
    size_t i = dsc_curve_count(
        c, fmin(at, DBL_MAX)); // W(inf): the mass that no multiple of the draft covers
    double w = c->target_above[i] - (c->draft_above[i] > 0 ? at * c->draft_above[i] : 0);
    return w < 0 ? 0 : w > 1 ? 1 : w;
}

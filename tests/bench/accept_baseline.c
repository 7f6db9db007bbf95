// SPDX-License-Identifier: Apache-2.0
// The sorted route as one would write it for speed: keys are the bits of the fp32 ratio, computed
// with wide instructions; a radix sort of (key, token) with 11-bit digits, all digit counts from
// one pass, passes whose digit is the same everywhere left out; prefix sums in double.
#include "tests/bench/accept_baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang has no such attribute; build it with -O3 -ffast-math -march=native to compare.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE                                                                                       \
    __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fast-math")))
#else
#define WIDE
#endif

WIDE float baseline_read(const float *x, size_t n)
{
    enum { LANES = 64 };
    float lane[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    for (; i < n; i++)
        sum += x[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

int baseline_init(baseline_work *w, size_t vocab, dsc_error *err)
{
    *w = (baseline_work){.vocab = vocab};
    int rc = DSC_OK;
    for (int i = 0; i < 2 && !rc; i++)
        rc = dsc_alloc(&w->pair[i], vocab, sizeof **w->pair, err);
    double **column[] = {&w->ratio, &w->draft, &w->target};
    for (int i = 0; i < 3 && !rc; i++)
        rc = dsc_alloc(column[i], vocab + 1, sizeof(double), err);
    if (rc)
        baseline_fini(w);
    return rc;
}

void baseline_fini(baseline_work *w)
{
    free(w->pair[0]);
    free(w->pair[1]);
    free(w->ratio);
    free(w->draft);
    free(w->target);
    *w = (baseline_work){0};
}

WIDE static void make_keys(const float *restrict draft, const float *restrict target, size_t n,
                           baseline_pair *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        union {
            float ratio;
            uint32_t bits;
        } key = {.ratio = target[i] / draft[i]};
        out[i].key = key.bits;
        out[i].token = (uint32_t)i;
    }
}

enum { DIGIT = 11, DIGITS = 3, VALUES = 1 << DIGIT };

static unsigned digit(uint32_t key, int pass)
{
    return key >> (pass * DIGIT) & (VALUES - 1);
}

// Sorts w->pair[0]; returns the array the result is in.
static baseline_pair *radix_sort(baseline_work *w, size_t n)
{
    static _Thread_local uint32_t count[DIGITS][VALUES];
    baseline_pair *from = w->pair[0], *to = w->pair[1];
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < n; i++)
        for (int p = 0; p < DIGITS; p++)
            count[p][digit(from[i].key, p)]++;
    for (int p = 0; p < DIGITS; p++) {
        uint32_t at = 0;
        if (count[p][digit(from[0].key, p)] == n)
            continue;
        for (int v = 0; v < VALUES; v++) {
            uint32_t c = count[p][v];
            count[p][v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[count[p][digit(from[i].key, p)]++] = from[i];
        baseline_pair *t = from;
        from = to;
        to = t;
    }
    return from;
}

void baseline_sort(baseline_work *w, const float *draft, const float *target, size_t vocab)
{
    make_keys(draft, target, vocab, w->pair[0]);
    const baseline_pair *sorted = radix_sort(w, vocab);
    double d = 0, t = 0;
    for (size_t i = 0; i < vocab; i++) {
        uint32_t x = sorted[i].token;
        w->draft[i] = d;
        w->target[i] = t;
        w->ratio[i] = (double)target[x] / draft[x];
        d += draft[x];
        t += target[x];
    }
    w->draft[vocab] = d;
    w->target[vocab] = t;
}

static double w_at(const baseline_work *w, double at)
{
    size_t lo = 0, hi = w->vocab;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (w->ratio[mid] <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return w->target[w->vocab] - w->target[lo] - at * (w->draft[w->vocab] - w->draft[lo]);
}

static double kseq_rho(const baseline_work *w, int k)
{
    double lo = 1, hi = k;
    while (hi - lo > 1e-9) {
        double rho = (lo + hi) / 2, left = w_at(w, rho);
        if (pow((rho - 1 + left) / rho, k) < left)
            lo = rho;
        else
            hi = rho;
    }
    return hi;
}

// power[] becomes its product with draft[], and the largest power - target comes back.
WIDE static double most_excess(double *restrict power, const double *restrict draft,
                               const double *restrict target, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        power[i] *= draft[i];
        double excess = power[i] - target[i];
        most = most > excess ? most : excess;
    }
    return most;
}

void baseline_quantities(baseline_work *w, int kmax)
{
    double c = 1, *power = w->ratio;
    for (int k = 1; k <= kmax; k++) {
        double left = w_at(w, c), rho = k > 1 ? kseq_rho(w, k) : 1;
        w->out[k - 1] = (dsc_rule_acceptance){.k = k,
                                              .single = 1 - w_at(w, 1),
                                              .specinfer = 1 - left,
                                              .kseq_rho = rho,
                                              .kseq = 1 - w_at(w, rho)};
        c += left;
    }
    for (size_t i = 0; i <= w->vocab; i++) // the ratios are no longer needed
        power[i] = 1;
    for (int k = 1; k <= kmax; k++)
        w->out[k - 1].otm = 1 - most_excess(power, w->draft, w->target, w->vocab + 1);
}

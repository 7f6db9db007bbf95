// SPDX-License-Identifier: Apache-2.0
// The optimal acceptance with k drafts sampled without replacement; theory/otm.h. Hu et al. 2025
// (arXiv 2502.18779): 1 - max over prefixes A of Pr(all drafts in A) - target(A).
//
// Give every token an exponential clock of rate draft(x). The order in which the clocks first ring
// is the order of successive draws without replacement. So the first k are all in A iff at least k
// clocks of A have rung when the first clock outside A rings, which has rate b = draft(outside A):
//
//   Pr(some draft is outside A) = R_k = integral over t > 0 of b e^(-b t) F_k(t) dt,
//   F_k(t) = Pr(fewer than k tokens of A have rung by t),
//
// where the count is a sum of independent events of probability 1 - e^(-draft(x) t). One more token
// in A is one update of its distribution at each t, which serves every k, so one sweep in the order
// of the ratio is enough.
//
// Quadrature: the trapezoid rule in s = ln t, step h. When the line of integration moves to Im s =
// theta, |e^(-draft t)| becomes that of t cos(theta), and |1 - e^(-draft t)| is at most
// 1/cos(theta) times that of t cos(theta). The integrand grows by no more than (1/cos(theta))^k, so
// the error is at most 2 R_k (1/cos(theta))^k / (e^(2 pi theta/h) - 1), for every theta < pi/2.
//
// Ends: the sum is over F_k - e, e(t) = Pr(fewer than 2 of 2 clocks of rate 1 have rung), whose
// integral is 2b/(b + 1) - b/(b + 2). For k >= 2, |F_k - e| <= t^2, so the sum may start at t =
// 1e-4.
#include "theory/otm.h"

#include "base/order.h"
#include "theory/domain.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 8 };               // nodes are stored and summed in blocks, equal on every processor
static const double START = 1e-4; // first node; the part left out is below b START^3
static const double END = 35;     // last node; the part left out is at most k e^-END
static const double SCALE =
    0x1p512; // rates are stored times SCALE, t divided by it: no product overflows

// A token of positive draft probability; draft masses are times SCALE.
typedef struct token {
    double ratio; // target/draft, which is in range for subnormal masses too; the order
    double draft, target;
    double remaining; // draft mass of the tokens after it
} token;

typedef struct sweep {
    int k;
    size_t nodes, stride; // nodes in use, a multiple of LANES; nodes allocated
    double step;          // h
    double *time;         // [stride] t, ascending
    double *even;         // [stride] e(t)
    double *ring;         // [stride] Pr(the token has rung by t)
    double *count;        // [k][stride] Pr(exactly i tokens of A have rung by t)
} sweep;

// The step at which the error bound above is 2 e^-30 R_k for the best theta.
static double step_for(int k)
{
    double best = 0;
    for (double theta = .02; theta < 1.57; theta += .01)
        best = fmax(best, 2 * M_PI * theta / (30 - k * log(cos(theta))));
    return best;
}

// The rate that bounds t. Of the (2k-1) most probable tokens, or of all, either k are in A, and
// then F_k(t) <= k e^(-rate t), or some are outside, and then b >= rate.
static double slowest(const token *t, size_t n, int k)
{
    double top[2 * 64];
    size_t kept = 0, room = (size_t)(2 * k - 1);
    for (size_t i = 0; i < n; i++) {
        if (kept == room && t[i].draft <= top[kept - 1])
            continue;
        size_t at = kept < room ? kept++ : kept - 1;
        for (; at > 0 && top[at - 1] < t[i].draft; at--)
            top[at] = top[at - 1];
        top[at] = t[i].draft;
    }
    return top[kept - 1];
}

static int sweep_init(sweep *s, int k, double rate, dsc_error *err)
{
    double *block;
    *s = (sweep){.k = k, .step = step_for(k)};
    double from = log(START), to = log(END) - log(rate);
    size_t nodes = (size_t)ceil((to - from) / s->step) + 1;
    s->nodes = s->stride = (nodes + LANES - 1) / LANES * LANES;
    int rc = dsc_new(&block, s->stride * ((size_t)k + 3), err);
    if (rc)
        return rc;
    s->time = block;
    s->even = block + s->stride;
    s->ring = block + 2 * s->stride;
    s->count = block + 3 * s->stride;
    for (size_t m = 0; m < s->stride; m++) {
        double at = from + (double)m * s->step;
        double left = exp(-exp(at)); // of one clock of rate 1
        s->time[m] = exp(at - log(SCALE));
        s->even[m] = left * (2 - left);
        s->count[m] = 1;
    }
    return DSC_OK;
}

// The first node at which rate t is at least x.
static size_t first_node(const sweep *s, double rate, double x)
{
    size_t lo = 0, hi = s->nodes;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rate * s->time[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// Adds a token to A. Most tokens are so improbable that a series is exact: 1 - e^-x below 1/64 to
// 1e-17 relative.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
gain(sweep *s, double rate)
{
    size_t n = s->nodes, series = first_node(s, rate, 1. / 64);
    double *ring = s->ring;
    const double *time = s->time;
#pragma omp simd
    for (size_t m = 0; m < series; m++) {
        double x = rate * time[m];
        ring[m] =
            x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7))))));
    }
    for (size_t m = series; m < n; m++)
        ring[m] = -expm1(-rate * time[m]);
    for (int i = s->k - 1; i > 0; i--) {
        double *own = s->count + (size_t)i * s->stride;
        const double *fewer = own - s->stride;
#pragma omp simd
        for (size_t m = 0; m < n; m++)
            own[m] += ring[m] * (fewer[m] - own[m]);
    }
#pragma omp simd
    for (size_t m = 0; m < n; m++)
        s->count[m] -= ring[m] * s->count[m];
}

// Drops late nodes at which k tokens of A have certainly rung: A only grows.
static void forget(sweep *s)
{
    while (s->nodes > LANES) {
        size_t m = s->nodes - LANES;
        double fewer = 0;
        for (int i = 0; i < s->k; i++)
            fewer += s->count[(size_t)i * s->stride + m];
        if (s->time[m] * SCALE < END || fewer > 1e-14)
            return;
        s->nodes = m;
    }
}

#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static double
product(const double *restrict x, const double *restrict y, size_t n)
{
    double lane[LANES] = {0}, sum = 0;
    for (size_t m = 0; m < n; m += LANES)
#pragma omp simd
        for (size_t l = 0; l < LANES; l++)
            lane[l] += x[m + l] * y[m + l];
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

// R_2 .. R_k into outside[1 .. k - 1], for the current A and b = remaining/SCALE.
static void integrate(sweep *s, double remaining, double *outside)
{
    size_t used = first_node(s, remaining, END + 5);
    used = (used + LANES - 1) / LANES * LANES;
    for (size_t m = 0; m < used; m++) {
        double x = remaining * s->time[m];
        s->ring[m] = s->step * x * exp(-x);
    }
    double b = remaining / SCALE;
    double sum = 2 * b / (b + 1) - b / (b + 2) - product(s->ring, s->even, used);
    for (int i = 0; i < s->k; i++) {
        sum += product(s->ring, s->count + (size_t)i * s->stride, used);
        outside[i] = sum;
    }
}

// Lowers accept[i] to the value of the set A = tokens up to t; `in` and `out` are the draft and
// target mass of A. Without replacement Pr(all in A) <= in^k, so most A need no integral.
static void visit(sweep *s, const token *t, double in, double out, double *accept)
{
    double outside[64], power = in;
    int k = 0;
    accept[0] = fmin(accept[0], out + t->remaining / SCALE);
    for (int i = 1; i < s->k; i++) {
        power *= in;
        if (out + 1 - power < accept[i])
            k = i + 1;
    }
    if (!k)
        return;
    integrate(s, t->remaining, outside);
    for (int i = 1; i < k; i++)
        accept[i] = fmin(accept[i], out + outside[i]);
}

static int visit_prefixes(const token *t, size_t n, int k, double *accept, dsc_error *err)
{
    sweep s;
    int rc = sweep_init(&s, k, slowest(t, n, k) / SCALE, err);
    if (rc)
        return rc;
    double in = 0, out = 0;
    for (size_t j = 0; j + 1 < n; j++) {
        double most = 0;
        for (int i = 0; i < k; i++)
            most = fmax(most, accept[i]);
        out += t[j].target;
        if (out >= most) // and so for every larger A
            break;
        in += t[j].draft / SCALE;
        if (k > 1) {
            gain(&s, t[j].draft);
            forget(&s);
        }
        visit(&s, &t[j], in, out, accept);
    }
    free(s.time);
    return DSC_OK;
}

int dsc_otm_wor(const double *draft, const double *target, size_t vocab, int kmax, double *accept,
                dsc_error *err)
{
    token *t;
    size_t n = 0;
    int rc = dsc_check_drafts("dsc_otm_wor", draft, target, vocab, kmax, accept, err);
    if (!rc)
        rc = dsc_new(&t, vocab, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < vocab; x++)
        if (draft[x] > 0)
            t[n++] = (token){target[x] / (draft[x] * SCALE), draft[x] * SCALE, target[x], 0};
    qsort(t, n, sizeof *t, dsc_by_real);
    double remaining = 0, support = 0;
    for (size_t j = n; j-- > 0;) {
        t[j].remaining = remaining;
        remaining += t[j].draft;
        support += t[j].target;
    }
    for (int i = 0; i < kmax;
         i++) // A is empty, or contains every token of positive draft probability
        accept[i] = fmin(support, 1);
    if (n > 1)
        rc = visit_prefixes(t, n, n - 1 < (size_t)kmax ? (int)n - 1 : kmax, accept, err);
    free(t);
    return rc;
}

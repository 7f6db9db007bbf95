// SPDX-License-Identifier: Apache-2.0
// What is kept are the first tokens in an order: the likeliest first, of equals the lower id. Where
// that order is cut is found by counting and weighing what is above a logit, which vectors do, so
// that nothing is sorted or moved before a few hundred tokens are left.
#include "theory/softmax_filter.h"

#include "theory/fast_exp.h"
#include "theory/first_tokens.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { FEW = 256, GROUP = 32, LANES = 16 };

// --- passes over the row -------------------------------------------------------------------------

// Those of row[0, n) that are at least `at`: how many, and the least of them (*above, unless there
// is none), and the largest of the others (*below). By lanes, since not all compilers make vectors
// of reductions to the least.
DSC_FOR_EVERY_PROCESSOR
static uint32_t count_from(const float *row, size_t n, float at, float *above, float *below)
{
    uint32_t many[LANES] = {0}, count = 0;
    float least[LANES], most[LANES];
    for (size_t j = 0; j < LANES; j++) {
        least[j] = INFINITY;
        most[j] = -INFINITY;
    }
    for (size_t x = 0; x + LANES <= n; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const float value = row[x + j], in = value >= at ? value : INFINITY;
            const float out = value >= at ? -INFINITY : value;
            many[j] += value >= at ? 1 : 0;
            least[j] = in < least[j] ? in : least[j];
            most[j] = out > most[j] ? out : most[j];
        }
    for (size_t x = n - n % LANES; x < n; x++) {
        const size_t j = x % LANES;
        if (row[x] >= at) {
            many[j]++;
            least[j] = row[x] < least[j] ? row[x] : least[j];
        } else {
            most[j] = row[x] > most[j] ? row[x] : most[j];
        }
    }
    *above = INFINITY;
    *below = -INFINITY;
    for (size_t j = 0; j < LANES; j++) {
        count += many[j];
        *above = least[j] < *above ? least[j] : *above;
        *below = most[j] > *below ? most[j] : *below;
    }
    return count;
}

DSC_FOR_EVERY_PROCESSOR
static double weigh_from(const float *logit, const double *weight, size_t n, float at)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++)
        sum += weight[x] * (logit[x] >= at ? 1. : 0.);
    return sum;
}

DSC_FOR_EVERY_PROCESSOR
static uint32_t count_between(const float *row, size_t n, float least, float below)
{
    uint32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (size_t x = 0; x < n; x++)
        count += (row[x] >= least ? 1 : 0) - (row[x] >= below ? 1 : 0);
    return count;
}

bool dsc_any_from(const float *row, size_t n, float least)
{
    return count_between(row, n, least, INFINITY) > 0;
}

// --- the search ----------------------------------------------------------------------------------

typedef struct cut {
    float at, below; // the tokens from the logit `at` on, where one is; the next one below these
    size_t count;    // how many
    double weight;   // the sum of their exponentials, where that matters
    double height;   // how far below the wanted cut, on a scale of its own
} cut;

typedef struct search {
    const dsc_softmax *law;
    const double *weight; // [vocab] the exponentials of what is kept, or NULL: a count is wanted
    size_t count;         // this one
    double enough, total; // else the weight that is wanted, and there is
} search;

static cut measure(const search *f, float at)
{
    const dsc_softmax *s = f->law;
    cut c;
    c.count = count_from(s->logit, s->vocab, at, &c.at, &c.below);
    c.weight = f->weight ? weigh_from(s->logit, f->weight, s->vocab, at) : 0;
    return c;
}

static bool suffices(const search *f, const cut *c)
{
    return f->weight ? c->weight >= f->enough : c->count >= f->count;
}

// Floats in their order, as integers.
static int32_t key_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

static float float_of(int32_t key)
{
    const int32_t bits = key < 0 ? key ^ INT32_MAX : key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// What grows about as the logit of the cut falls, and is 0 where the wanted cut is: the logarithm
// of a count, or of what is left below.
static double height(const search *f, const cut *c)
{
    const double least = 1e-15 * f->total;
    return f->weight ? log(fmax(f->total - f->enough, least) / fmax(f->total - c->weight, least))
                     : log(fmax((double)c->count, .5) / (double)f->count);
}

// A logit above the lower cut, which suffices, and not above what is next below the other: where a
// line through their heights has a 0, or, as laws can be anything, after a while the middle of the
// floats between them.
static float probe(const search *f, const cut *low, const cut *high, int i)
{
    enum { PATIENCE = 20 };
    const int32_t from = key_of(low->at), to = key_of(high->below);
    double at = (double)high->at;
    if (low->at > -INFINITY)
        at -= (at - (double)low->at) * high->height / (high->height - low->height);
    else {
        // What is deeper than the first of these for top-p is less than that leaves out.
        const double left = fmax(f->total - f->enough, 1e-15 * f->total);
        const double depth = f->weight ? log((double)f->law->vocab / left) : 4;
        at = f->law->most - ldexp(depth, i) / f->law->by;
    }
    const float x = (float)at;
    int64_t key = isnan(x) ? from : key_of(x);
    if (i >= PATIENCE || !(key > from && key <= to))
        key = to - ((int64_t)to - from) / 2;
    return float_of((int32_t)key);
}

// Cuts with the wanted one between them, *low or above: few tokens lie between, or equal ones.
// False position, where the height of an end that stays is halved (the Illinois variant). Every cut
// that is measured is a new one, as it takes the place of another by the tokens that it lets in.
static void narrow(const search *f, cut *low, cut *high)
{
    int side = 0;
    low->height = height(f, low);
    high->height = height(f, high);
    for (int i = 0; low->count - high->count > FEW && high->below > low->at; i++) {
        cut c = measure(f, probe(f, low, high, i));
        c.height = height(f, &c);
        if (suffices(f, &c)) {
            *low = c;
            high->height *= side > 0 ? .5 : 1;
            side = 1;
        } else {
            *high = c;
            low->height *= side < 0 ? .5 : 1;
            side = -1;
        }
    }
}

// The tokens between two cuts.
static size_t gather(const search *f, const cut *low, const cut *high, dsc_logit *out)
{
    const float *logit = f->law->logit, least = low->at, below = high->at;
    const size_t vocab = f->law->vocab;
    size_t n = 0;
    for (size_t first = 0; first < vocab; first += GROUP) {
        const size_t end = vocab - first < GROUP ? vocab : first + GROUP;
        if (!count_between(logit + first, end - first, least, below))
            continue;
        for (size_t x = first; x < end; x++)
            if (logit[x] >= least && logit[x] < below)
                out[n++] = (dsc_logit){(double)logit[x], f->weight ? f->weight[x] : 0, x};
    }
    return n;
}

// --- top-k, top-p --------------------------------------------------------------------------------

static cut above_all(const dsc_softmax *s)
{
    return (cut){nextafterf((float)s->most, INFINITY), (float)s->most, 0, 0, 0};
}

void dsc_softmax_keep_count(dsc_softmax *s, size_t count)
{
    const search f = {.law = s, .count = count};
    dsc_logit few[FEW];
    cut low = {-INFINITY, -INFINITY, s->vocab, 0, 0}, high = above_all(s);
    narrow(&f, &low, &high);
    s->least = low.at;
    if (low.count - high.count > FEW) // they are equal
        return;
    const size_t n = gather(&f, &low, &high, few);
    dsc_first_tokens(few, n, count - high.count, INFINITY);
    double least = few[0].value;
    for (size_t i = 1; i < count - high.count; i++)
        least = few[i].value < least ? few[i].value : least;
    s->least = (float)least;
}

void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, double enough)
{
    const search f = {.law = s, .weight = weight, .enough = enough, .total = s->sum};
    dsc_logit few[FEW];
    const uint32_t count = count_between(s->logit, s->vocab, s->least, INFINITY);
    cut low = {s->least, -INFINITY, count, s->sum, 0}, high = above_all(s);
    narrow(&f, &low, &high);
    s->least = low.at;
    if (low.count - high.count <= FEW) {
        const size_t n = gather(&f, &low, &high, few);
        const size_t kept = dsc_first_tokens(few, n, n, enough - high.weight);
        const dsc_logit *last = &few[0];
        for (size_t i = 1; i < kept; i++)
            last = dsc_logit_before(last, &few[i]) ? &few[i] : last;
        s->least = (float)last->value;
        s->last = last->token;
        return;
    }
    double sum = high.weight;
    for (size_t x = 0; x < s->vocab && sum < enough; x++)
        if (s->logit[x] >= low.at && s->logit[x] < high.at) {
            sum += weight[x];
            s->last = x;
        }
}

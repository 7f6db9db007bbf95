// SPDX-License-Identifier: Apache-2.0
// An estimate of the top-p cut from a sample; theory/rows/softmax_sample.h. A sampled token stands
// for STRIDE tokens. So the weight between two depths is estimated with a variance of about STRIDE
// w m, where m is that weight and w the largest weight of a token between them.
#include "theory/rows/softmax_sample.h"

#include "theory/rows/fast_exp.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NEARLY_CERTAIN 2.5 // standard deviations

enum {
    BINS = DSC_SOFTMAX_BINS,
    DEEP = DSC_SOFTMAX_DEEP,
    BLOCK = DSC_SOFTMAX_BLOCK,
    PICKED = DEEP,
    STRIDE = BLOCK / PICKED,
};

// The first of the PICKED tokens of a block. It varies from block to block, because ids may have a
// period.
static size_t first_picked(size_t block)
{
    return block * 5 % STRIDE * PICKED;
}

// The smallest picked logit.
DSC_FOR_EVERY_PROCESSOR
static float least_picked(const dsc_softmax *s)
{
    float lane[PICKED], least = (float)s->most;
    for (size_t j = 0; j < PICKED; j++)
        lane[j] = least;
    for (size_t b = 0; b < s->vocab / BLOCK; b++) {
        const float *logit = s->logit + b * BLOCK + first_picked(b);
#pragma omp simd
        for (size_t j = 0; j < PICKED; j++)
            lane[j] = logit[j] < lane[j] ? logit[j] : lane[j];
    }
    for (size_t j = 0; j < PICKED; j++)
        least = lane[j] < least ? lane[j] : least;
    return least;
}

void dsc_softmax_sample_begin(dsc_softmax_sample *p, const dsc_softmax *s, double top_p)
{
    // Tokens deeper than this have less weight than top-p leaves out.
    const double useful = log((double)s->vocab / fmax(1 - top_p, 1e-15)) / s->by;
    const double depth = s->most - (double)least_picked(s);
    p->most = s->most;
    p->scale = fmin(BINS / fmin(depth, useful), (double)FLT_MAX);
    p->decay = s->by / p->scale;
    memset(p->bin, 0, sizeof p->bin);
}

DSC_FOR_EVERY_PROCESSOR
static void find_bins(const float *logit, size_t n, float most, float scale, int32_t *bin)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float depth = (most - logit[i]) * scale;
        bin[i] = depth < BINS ? (int32_t)depth : BINS + (int32_t)i;
    }
}

void dsc_softmax_sample_add(dsc_softmax_sample *p, const dsc_softmax *s, size_t block,
                            const double *weight)
{
    const size_t from = first_picked(block), in = dsc_softmax_in_block(s, block);
    const size_t n = in > from + PICKED ? PICKED : in > from ? in - from : 0;
    int32_t bin[PICKED];
    find_bins(s->logit + block * BLOCK + from, n, (float)p->most, (float)p->scale, bin);
    for (size_t i = 0; i < n; i++) {
        p->bin[bin[i]].weight += weight[from + i];
        p->bin[bin[i]].tokens += weight[from + i] > 0 ? 1 : 0;
    }
}

void dsc_softmax_sample_end(dsc_softmax_sample *p)
{
    double weight = 0, tokens = 0;
    for (size_t b = BINS + DEEP; b-- > 0;) {
        weight += STRIDE * p->bin[b].weight;
        tokens += STRIDE * p->bin[b].tokens;
        p->bin[b].weight = weight;
        p->bin[b].tokens = tokens;
    }
}

// --- the guess -----------------------------------------------------------------------------------

// Depths are in bins from here on.

static struct dsc_softmax_bin below(const dsc_softmax_sample *p, double depth)
{
    if (!(depth < BINS))
        return depth > BINS ? (struct dsc_softmax_bin){0, 0} : p->bin[BINS];
    const size_t b = (size_t)depth;
    const struct dsc_softmax_bin *here = &p->bin[b], *next = here + 1;
    const double part = depth - (double)b;
    return (struct dsc_softmax_bin){here->weight + part * (next->weight - here->weight),
                                    here->tokens + part * (next->tokens - here->tokens)};
}

static double depth_of(const dsc_softmax_sample *p, float logit)
{
    const double depth = (p->most - (double)logit) * p->scale;
    return depth > 0 ? depth : 0;
}

static float logit_of(const dsc_softmax_sample *p, double depth)
{
    return (float)(p->most - depth / p->scale);
}

typedef struct question {
    const dsc_softmax_sample *sample;
    double left, known; // the estimated weight below the cut; a depth at which it is exact
} question;

// Returns whether the cut is almost certainly on this side of a depth: above it, or else below it.
static bool is_beyond(const question *q, bool above, double depth)
{
    const dsc_softmax_sample *p = q->sample;
    const double weight = below(p, depth).weight;
    const double between = fabs(weight - below(p, q->known).weight);
    const double one = STRIDE * dsc_fast_exp_below(-p->decay * fmin(depth, q->known));
    const double away = above ? q->left - weight : weight - q->left;
    return away > 0 && away * away >= NEARLY_CERTAIN * NEARLY_CERTAIN * one * (between + one);
}

// About the first such depth from `from` towards `end`, or `otherwise`. It need not hold for all
// later depths: above the cut tokens have more weight, and the sample has less information.
static double find_beyond(const question *q, bool above, double from, double end, double otherwise)
{
    double not_yet = from, beyond = from;
    for (double step = .25; beyond == not_yet; step *= 2) {
        const double next = above ? fmin(from + step, end) : fmax(from - step, end);
        if (is_beyond(q, above, next))
            beyond = next;
        else if (next == end)
            return otherwise;
        else
            not_yet = beyond = next;
    }
    while (fabs(beyond - not_yet) > .0625 + .125 * fabs(not_yet - from)) {
        const double middle = (not_yet + beyond) / 2;
        if (is_beyond(q, above, middle))
            beyond = middle;
        else
            not_yet = middle;
    }
    return beyond;
}

// The depth below which the estimated weight is q->left.
static double most_probable(const question *q)
{
    const struct dsc_softmax_bin *bin = q->sample->bin;
    size_t low = 0, high = BINS; // bin[low] >= left > bin[high], unless it is not in here
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (bin[middle].weight >= q->left)
            low = middle;
        else
            high = middle;
    }
    const double in = bin[low].weight - bin[high].weight;
    const double part = in > 0 ? (bin[low].weight - q->left) / in : 0;
    return (double)low + fmin(fmax(part, 0), 1);
}

dsc_softmax_guess dsc_softmax_sample_guess(const dsc_softmax_sample *p, double left,
                                           dsc_softmax_known known)
{
    const double depth = depth_of(p, known.logit);
    const question q = {p, left - known.below + below(p, depth).weight, depth};
    const double at = most_probable(&q);
    const double low = find_beyond(&q, true, at, BINS, INFINITY);
    const double high = find_beyond(&q, false, at, 0, -INFINITY);
    return (dsc_softmax_guess){logit_of(p, low), logit_of(p, at), logit_of(p, high),
                               below(p, fmax(high, 0)).tokens - below(p, low).tokens};
}

// SPDX-License-Identifier: Apache-2.0
// Pool adjacent violators (Ayer, Brunk, Ewing, Reid and Silverman 1955, "An empirical distribution
// function for sampling with incomplete information"): equal scores are one block; while a block's
// share of successes is not above that of the block before it, the two are one.
#include "sim/serve/isotonic.h"

#include "base/memory.h"

#include <stdlib.h>

typedef struct block {
    double from, successes, count;
} block;

static int by_score(const void *a, const void *b)
{
    const dsc_isotonic_sample *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

// Whether the share of successes of y is not above that of x; the products of counts are exact.
static bool violates(const block *x, const block *y)
{
    return x->successes * y->count >= y->successes * x->count;
}

static size_t pool_violators(block *b, const dsc_isotonic_sample *sample, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const bool tie = i && sample[i].score == sample[i - 1].score;
        if (!tie)
            b[n++] = (block){.from = sample[i].score};
        b[n - 1].successes += sample[i].success;
        b[n - 1].count++;
        if (i + 1 < count && sample[i + 1].score == sample[i].score)
            continue;
        for (; n > 1 && violates(&b[n - 2], &b[n - 1]); n--) {
            b[n - 2].successes += b[n - 1].successes;
            b[n - 2].count += b[n - 1].count;
        }
    }
    return n;
}

int dsc_isotonic_fit(dsc_isotonic *out, dsc_isotonic_sample *sample, size_t count, dsc_error *err)
{
    block *b;
    *out = (dsc_isotonic){0};
    int rc = dsc_new(&b, count, err);
    if (rc)
        return rc;
    qsort(sample, count, sizeof *sample, by_score);
    out->blocks = pool_violators(b, sample, count);
    rc = dsc_new(&out->from, out->blocks, err);
    rc = rc ?: dsc_new(&out->value, out->blocks, err);
    for (size_t i = 0; i < out->blocks && !rc; i++) {
        out->from[i] = b[i].from;
        out->value[i] = b[i].successes / b[i].count;
    }
    free(b);
    return rc;
}

void dsc_isotonic_fini(dsc_isotonic *f)
{
    free(f->from);
    free(f->value);
    *f = (dsc_isotonic){0};
}

double dsc_isotonic_value(const dsc_isotonic *f, double score)
{
    size_t low = 0, high = f->blocks; // the block is in [low, high)
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(f->from[middle] <= score ? &low : &high) = middle;
    }
    return f->value[low];
}

// SPDX-License-Identifier: Apache-2.0
// Rows checked, made from logits as HF transformers' TemperatureLogitsWarper, TopKLogitsWarper and
// TopPLogitsWarper do, and families of pairs (SpecTr App. B); theory/law.h.
#include "theory/law.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

int dsc_law_check(const char *what, double *row, size_t vocab, bool normalize, dsc_error *err)
{
    if (!vocab)
        return dsc_fail(err, DSC_EINPUT, "%s: has no element", what);
    double sum = 0;
    for (size_t x = 0; x < vocab; x++) {
        if (!isfinite(row[x]))
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is not finite (%g)", what, x, row[x]);
        if (row[x] < 0)
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is negative (%g)", what, x, row[x]);
        sum += row[x];
    }
    if (!normalize && !(fabs(sum - 1) <= DSC_LAW_TOLERANCE))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: sums to %.9g, not to 1 within %g (--normalize accepts it)", what, sum,
                        DSC_LAW_TOLERANCE);
    if (!(sum > 0) || !isfinite(sum))
        return dsc_fail(err, DSC_EINPUT, "%s: sums to %g, which no factor makes 1", what, sum);
    for (size_t x = 0; x < vocab; x++)
        row[x] /= sum;
    return DSC_OK;
}

// Finite or -inf, not all -inf; *largest, 0 on entry, becomes the first largest.
static int check_logits(const char *what, const double *logits, size_t vocab, size_t *largest,
                        dsc_error *err)
{
    if (!vocab)
        return dsc_fail(err, DSC_EINPUT, "%s: has no element", what);
    for (size_t x = 0; x < vocab; x++) {
        if (isnan(logits[x]) || logits[x] == INFINITY)
            return dsc_fail(err, DSC_EINPUT, "%s: logit %zu is %g", what, x, logits[x]);
        if (logits[x] > logits[*largest])
            *largest = x;
    }
    if (logits[*largest] == -INFINITY)
        return dsc_fail(err, DSC_EINPUT, "%s: every logit is -inf", what);
    return DSC_OK;
}

static void exponentials(double *logits, size_t vocab, double largest)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += logits[x] = exp(logits[x] - largest);
    for (size_t x = 0; x < vocab; x++)
        logits[x] /= sum;
}

typedef struct logit {
    double value;
    size_t token;
} logit;

// Most probable first; of equals the lower id.
static int by_value(const void *a, const void *b)
{
    const logit *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

// How many of the sorted logits, the largest 0, are kept. A token stays while the mass before it
// has not reached top_p of what top-k left.
static size_t count_kept(const logit *l, size_t vocab, size_t top_k, double top_p)
{
    size_t n = top_k;
    while (n < vocab && l[n].value == l[n - 1].value)
        n++;
    if (top_p >= 1)
        return n;
    double total = 0, before = 0;
    for (size_t i = n; i-- > 0;)
        total += exp(l[i].value);
    for (size_t i = 0; i < n; i++) {
        if (before >= top_p * total)
            return i;
        before += exp(l[i].value);
    }
    return n;
}

// Logits whose largest is 0: those that top-k and top-p drop become -inf.
static int filter(double *logits, size_t vocab, size_t top_k, double top_p, dsc_error *err)
{
    logit *sorted;
    int rc = dsc_alloc((void **)&sorted, vocab, sizeof *sorted, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < vocab; x++)
        sorted[x] = (logit){logits[x], x};
    qsort(sorted, vocab, sizeof *sorted, by_value);
    for (size_t i = count_kept(sorted, vocab, top_k, top_p); i < vocab; i++)
        logits[sorted[i].token] = -INFINITY;
    free(sorted);
    return DSC_OK;
}

int dsc_law_softmax(const char *what, double *logits, size_t vocab, double temperature,
                    int64_t top_k, double top_p, dsc_error *err)
{
    if (!(temperature >= 0) || isinf(temperature))
        return dsc_fail(err, DSC_EUSAGE, "temperature is %g; it is 0 or more", temperature);
    if (!(top_p > 0 && top_p <= 1))
        return dsc_fail(err, DSC_EUSAGE, "top-p is %g; it is in (0, 1]", top_p);
    size_t largest = 0;
    int rc = check_logits(what, logits, vocab, &largest, err);
    if (rc)
        return rc;
    if (temperature == 0) {
        for (size_t x = 0; x < vocab; x++)
            logits[x] = x == largest;
        return DSC_OK;
    }
    double most = logits[largest];
    for (size_t x = 0; x < vocab; x++)
        logits[x] = (logits[x] - most) / temperature;
    size_t kept = top_k <= 0 || (uint64_t)top_k >= vocab ? vocab : (size_t)top_k;
    if (kept < vocab || top_p < 1)
        rc = filter(logits, vocab, kept, top_p, err);
    if (!rc)
        exponentials(logits, vocab, 0);
    return rc;
}

void dsc_law_bernoulli(double draft_p, double target_p, double draft[2], double target[2])
{
    draft[0] = 1 - draft_p;
    draft[1] = draft_p;
    target[0] = 1 - target_p;
    target[1] = target_p;
}

void dsc_law_uniform(size_t vocab, size_t r, double *draft, double *target)
{
    for (size_t x = 0; x < vocab; x++) {
        draft[x] = 1 / (double)vocab;
        target[x] = x < vocab / r ? (double)r / (double)vocab : 0;
    }
}

// A standard normal by Box and Muller, a pure function of its arguments.
static double normal(uint64_t seed, uint64_t rank)
{
    uint32_t w[4];
    dsc_rng_words(seed, rank, 0, DSC_RNG_FAMILY, w);
    double radius = ((double)w[0] * 0x1p32 + w[1] + 1) * 0x1p-64; // in (0, 1]
    double angle = ((double)w[2] * 0x1p32 + w[3]) * 0x1p-64;
    return sqrt(-2 * log(radius)) * cos(2 * M_PI * angle);
}

void dsc_law_zipf(size_t vocab, double exponent, double noise, uint64_t seed, double *draft,
                  double *target)
{
    double most_draft = -INFINITY, most_target = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        draft[x] = -exponent * log((double)x + 1);
        target[x] = draft[x] + noise * normal(seed, x + 1);
        most_draft = fmax(most_draft, draft[x]);
        most_target = fmax(most_target, target[x]);
    }
    exponentials(draft, vocab, most_draft);
    exponentials(target, vocab, most_target);
}

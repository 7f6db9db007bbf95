// SPDX-License-Identifier: Apache-2.0
// Next-token distributions: validation, logits to probabilities in the order of HF transformers'
// TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper, and families of pairs (SpecTr
// App. B); theory/probs.h.
#include "theory/probs.h"

#include "base/rng.h"
#include "theory/domain.h"
#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"
#include "theory/rows/softmax.h"

#include <math.h>
#include <stdlib.h>

int dsc_probs_check(const char *what, double *row, size_t vocab, bool normalize, dsc_error *err)
{
    if (!what || !row)
        return dsc_fail(err, DSC_EUSAGE, "dsc_probs_check: what and row must not be NULL");
    if (!vocab)
        return dsc_fail(err, DSC_EINPUT, "%s: there is no element", what);
    double sum = 0;
    for (size_t x = 0; x < vocab; x++) {
        if (!isfinite(row[x]))
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is not finite (%g)", what, x, row[x]);
        if (row[x] < 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: element %zu is negative (%g), so it is no probability (use "
                            "--logits if these are logits)",
                            what, x, row[x]);
        sum += row[x];
    }
    if (!normalize && !(fabs(sum - 1) <= DSC_PROBS_TOLERANCE))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the sum is %.9g, not 1: these look like logits (use --logits) or "
                        "unnormalized probabilities (use --normalize)",
                        what, sum);
    if (!(sum > 0) || !isfinite(sum))
        return dsc_fail(err, DSC_EINPUT, "%s: the sum is %g; a positive finite sum is needed", what,
                        sum);
    for (size_t x = 0; x < vocab; x++)
        row[x] /= sum;
    return DSC_OK;
}

// Logits must be finite or -inf, and not all -inf. *largest, 0 on entry, becomes the first largest.
static int check_logits(const char *what, const double *logits, size_t vocab, size_t *largest,
                        dsc_error *err)
{
    if (!vocab)
        return dsc_fail(err, DSC_EINPUT, "%s: there is no element", what);
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

// Replaces logits whose largest is 0 by their exponentials, which are 0 below e^-640, over their
// sum.
DSC_FOR_EVERY_PROCESSOR
static void softmax(double *logits, size_t vocab)
{
#pragma omp simd
    for (size_t x = 0; x < vocab; x++)
        logits[x] = dsc_fast_exp_below(logits[x]);
    const double sum = dsc_row_sum(logits, vocab);
#pragma omp simd
    for (size_t x = 0; x < vocab; x++)
        logits[x] /= sum;
}

DSC_FOR_EVERY_PROCESSOR
static void subtract_and_divide(double *logits, size_t vocab, double most, double temperature)
{
#pragma omp simd
    for (size_t x = 0; x < vocab; x++)
        logits[x] = (logits[x] - most) / temperature;
}

// --- top-k and top-p -----------------------------------------------------------------------------

typedef struct logit {
    double value, weight; // the logit; its exponential in the distribution
    size_t token;
} logit;

static void swap(logit *a, logit *b)
{
    const logit c = *a;
    *a = *b;
    *b = c;
}

// The order in which tokens are kept: most probable first, and the lower id first among equals.
static bool is_before(const logit *a, const logit *b)
{
    return a->value != b->value ? a->value > b->value : a->token < b->token;
}

// Moves the median of three tokens to the end.
static void choose_pivot(logit *l, size_t n)
{
    logit *a = &l[0], *b = &l[n / 2], *c = &l[n - 1];
    if (is_before(a, b) == is_before(b, c))
        swap(b, c);
    else if (is_before(b, a) == is_before(a, c))
        swap(a, c);
}

// Moves the first tokens of l[0, n) to the front and returns their number: at most `count`, and a
// token belongs to them while the weight of the earlier ones is below `enough`. O(n) on average, by
// Hoare's selection (1961), where sorting is O(n log n).
static size_t first_tokens(logit *l, size_t n, size_t count, double enough)
{
    size_t low = 0, high = n; // tokens before `low` belong to them, from `high` on they do not
    double weight = 0;        // weight of the tokens before `low`
    while (low < high && low < count && weight < enough) {
        size_t middle = low;
        double more = 0;
        choose_pivot(l + low, high - low);
        logit *pivot = &l[high - 1];
        for (size_t i = low; i + 1 < high; i++)
            if (is_before(&l[i], pivot)) {
                more += l[i].weight;
                swap(&l[i], &l[middle++]);
            }
        swap(pivot, &l[middle]);
        if (middle >= count || weight + more >= enough)
            high = middle;
        else {
            weight += more + l[middle].weight;
            low = middle + 1;
        }
    }
    return low;
}

// The number of logits >= least, and the sum of their exponentials.
DSC_FOR_EVERY_PROCESSOR
static double weight_above(const double *logits, size_t vocab, double least, size_t *count)
{
    double sum = 0;
    size_t n = 0;
#pragma omp simd reduction(+ : sum, n)
    for (size_t x = 0; x < vocab; x++) {
        const double e = dsc_fast_exp_below(logits[x]);
        sum += logits[x] >= least ? e : 0;
        n += logits[x] >= least ? 1 : 0;
    }
    *count = n;
    return sum;
}

// Lists the most probable tokens in any order: at least `top_k` with all that tie with the last of
// them, and at least as many as have the weight `enough`. The kept tokens are nearly always near
// the top, so few tokens need a closer look.
static int gather(const double *logits, size_t vocab, size_t top_k, double enough, logit **out,
                  size_t *count, dsc_error *err)
{
    double least = -4;
    size_t n = 0, room;
    while (weight_above(logits, vocab, least, &room) < enough || room < top_k) {
        if (least == -INFINITY)
            break;
        least = least > -DSC_SOFTMAX_LEAST ? 2 * least : -INFINITY;
    }
    int rc = dsc_new(out, room, err);
    for (size_t x = 0; x < vocab && !rc; x++)
        if (logits[x] >= least)
            (*out)[n++] = (logit){logits[x], dsc_fast_exp_below(logits[x]), x};
    *count = n;
    return rc;
}

// l[0, n) begins with the first k tokens. Moves all that tie with the last of them next to these
// and returns the new number; *weight is the weight of all of them.
static size_t add_ties(logit *l, size_t n, size_t k, double *weight)
{
    double least = 0, sum = 0;
    for (size_t i = 0; i < k; i++)
        least = l[i].value < least ? l[i].value : least;
    for (size_t i = k; i < n; i++)
        if (l[i].value == least)
            swap(&l[i], &l[k++]);
    for (size_t i = 0; i < k; i++)
        sum += l[i].weight;
    *weight = sum;
    return k;
}

// Sets the logits that top-k and top-p drop to -inf. The largest logit is 0.
static int filter(double *logits, size_t vocab, size_t top_k, double top_p, dsc_error *err)
{
    const bool counted = top_k < vocab;
    double weight = weight_above(logits, vocab, -INFINITY, &(size_t){0});
    logit *top = NULL;
    size_t n;
    int rc =
        gather(logits, vocab, counted ? top_k : 1, counted ? 0 : top_p * weight, &top, &n, err);
    if (rc)
        return rc;
    if (counted)
        n = add_ties(top, n, first_tokens(top, n, top_k, INFINITY), &weight);
    if (top_p < 1)
        n = first_tokens(top, n, n, top_p * weight);
    for (size_t x = 0; x < vocab; x++)
        logits[x] = -INFINITY;
    for (size_t i = 0; i < n; i++)
        logits[top[i].token] = top[i].value;
    free(top);
    return DSC_OK;
}

int dsc_probs_softmax(const char *what, double *logits, size_t vocab, double temperature,
                      int64_t top_k, double top_p, dsc_error *err)
{
    if (!what || !logits)
        return dsc_fail(err, DSC_EUSAGE, "dsc_probs_softmax: what and logits must not be NULL");
    if (!(temperature >= 0) || isinf(temperature))
        return dsc_fail(err, DSC_EUSAGE, "the temperature is %g; it must be finite and >= 0",
                        temperature);
    if (!(top_p > 0 && top_p <= 1))
        return dsc_fail(err, DSC_EUSAGE, "top-p is %g; it must be in (0, 1]", top_p);
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
    subtract_and_divide(logits, vocab, most, temperature);
    size_t kept = top_k <= 0 || (uint64_t)top_k >= vocab ? vocab : (size_t)top_k;
    if (kept < vocab || top_p < 1)
        rc = filter(logits, vocab, kept, top_p, err);
    if (rc)
        return rc;
    softmax(logits, vocab);
    return DSC_OK;
}

// --- families ------------------------------------------------------------------------------------

static void fill_nan(double *draft, double *target, size_t vocab)
{
    dsc_fill_nan(draft, vocab);
    dsc_fill_nan(target, vocab);
}

void dsc_probs_bernoulli(double draft_p, double target_p, double draft[2], double target[2])
{
    if (!draft || !target || !(draft_p >= 0 && draft_p <= 1) || !(target_p >= 0 && target_p <= 1)) {
        fill_nan(draft, target, 2);
        return;
    }
    draft[0] = 1 - draft_p;
    draft[1] = draft_p;
    target[0] = 1 - target_p;
    target[1] = target_p;
}

void dsc_probs_uniform(size_t vocab, size_t r, double *draft, double *target)
{
    if (!draft || !target || r == 0 || vocab % r) {
        fill_nan(draft, target, vocab);
        return;
    }
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

void dsc_probs_zipf(size_t vocab, double exponent, double noise, uint64_t seed, double *draft,
                    double *target)
{
    const double widest = fabs(exponent) * log((double)vocab + 1) + 10 * noise; // logit
    if (!draft || !target || !(noise >= 0) || !isfinite(widest)) {
        fill_nan(draft, target, vocab);
        return;
    }
    double most_draft = -INFINITY, most_target = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        draft[x] = -exponent * log((double)x + 1);
        target[x] = draft[x] + noise * normal(seed, x + 1);
        most_draft = fmax(most_draft, draft[x]);
        most_target = fmax(most_target, target[x]);
    }
    subtract_and_divide(draft, vocab, most_draft, 1);
    subtract_and_divide(target, vocab, most_target, 1);
    softmax(draft, vocab);
    softmax(target, vocab);
}

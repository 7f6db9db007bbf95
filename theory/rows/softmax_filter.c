// SPDX-License-Identifier: Apache-2.0
// The cuts of top-k and top-p; theory/rows/softmax_filter.h.
//
// Both keep the first tokens in an order: most probable first, the lower id first among equals. The
// cut is found without sorting or moving anything before a few hundred tokens are left
// (theory/rows/softmax_list.h). Top-k: the first tokens are among those from the count-th largest
// maximum of a block or class on, which are few more. Top-p in a long row: a sample estimates the
// cut, and one pass lists the tokens near it and sums those above. In a short row, or if that
// fails, a search counts and weighs the tokens above a logit until few are left.
#include "theory/rows/softmax_filter.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    FEW = 256, // tokens that are examined one by one
    LIST = DSC_SOFTMAX_LIST,
    BLOCK = DSC_SOFTMAX_BLOCK,
    GROUP = 32, // tokens that are skipped together
    LANES = DSC_ROW_LANES
};

// --- passes over the row -------------------------------------------------------------------------

// Counts the elements of row[0, n) that are >= at, and finds the smallest of them (*above, INFINITY
// if there is none) and the largest of the others (*below). It uses lanes, because not all
// compilers vectorize minimum reductions.
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

// The sum of the weights of the elements >= at, in the order of dsc_row_sum.
static inline double add_from(const float *row, const double *weight, size_t n, float at)
{
    double lane[LANES];
    size_t x = 0;
    dsc_clear_lanes(lane);
    for (; x + LANES <= n; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++)
            lane[j] += row[x + j] >= at ? weight[x + j] : 0;
    for (; x < n; x++)
        lane[x % LANES] += row[x] >= at ? weight[x] : 0;
    return dsc_add_lanes(lane);
}

DSC_FOR_EVERY_PROCESSOR
static double weigh_from(const float *row, const double *weight, size_t n, float at)
{
    return add_from(row, weight, n, at);
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
    float at, below; // a cut keeps the tokens >= `at`, which is one of the logits; `below` is the
                     // next lower one
    size_t count;    // number of tokens
    double weight;   // the sum of their exponentials, for top-p
    double height;   // distance below the wanted cut (function `height`)
} cut;

typedef struct search {
    const dsc_softmax *dist;
    const double *weight; // [vocab] exponentials of the tokens kept so far, or NULL for top-k
    size_t count;         // the wanted count
    double enough, total; // for top-p: the wanted weight, and the total
} search;

static cut measure(const search *f, float at)
{
    const dsc_softmax *s = f->dist;
    cut c;
    c.count = count_from(s->logit, s->vocab, at, &c.at, &c.below);
    c.weight = f->weight ? weigh_from(s->logit, f->weight, s->vocab, at) : 0;
    return c;
}

static bool suffices(const search *f, const cut *c)
{
    return f->weight ? c->weight >= f->enough : c->count >= f->count;
}

// A function that is 0 at the wanted cut and grows about as the logit of the cut falls: the
// logarithm of a count, or of the weight that is left below.
static double height(const search *f, const cut *c)
{
    const double least = 1e-15 * f->total;
    return f->weight ? log(fmax(f->total - f->enough, least) / fmax(f->total - c->weight, least))
                     : log(fmax((double)c->count, .5) / (double)f->count);
}

// The next logit to try, above the lower cut, which suffices, and not above the next logit below
// the upper cut: the zero of the line through their heights, or, because distributions can be
// anything, after a while the middle of the floats between them.
static float probe(const search *f, const cut *low, const cut *high, int i)
{
    enum { PATIENCE = 20 };
    const int32_t from = dsc_key_of(low->at), to = dsc_key_of(high->below);
    double at = (double)high->at;
    if (low->at > -INFINITY)
        at -= (at - (double)low->at) * high->height / (high->height - low->height);
    else {
        // For top-p, tokens deeper than the first of these have less weight than it leaves out.
        const double left = fmax(f->total - f->enough, 1e-15 * f->total);
        const double depth = f->weight ? log((double)f->dist->vocab / left) : 4;
        at = f->dist->most - ldexp(depth, i) / f->dist->by;
    }
    const float x = (float)at;
    int64_t key = isnan(x) ? from : dsc_key_of(x);
    if (i >= PATIENCE || !(key > from && key <= to))
        key = to - ((int64_t)to - from) / 2;
    return dsc_float_of((int32_t)key);
}

// Narrows two cuts that enclose the wanted one (it is *low or above) until few tokens, or equal
// ones, lie between. The method is false position, where the height of an end that stays is halved
// (the Illinois variant). Every measured cut is new, because it differs from another by the tokens
// that it adds.
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

// A bit for each of GROUP logits that is in [low, high).
static inline uint32_t mark_between(const float *x, float low, float high)
{
    static const uint32_t one[LANES] = {1u << 0,  1u << 1,  1u << 2,  1u << 3, 1u << 4,  1u << 5,
                                        1u << 6,  1u << 7,  1u << 8,  1u << 9, 1u << 10, 1u << 11,
                                        1u << 12, 1u << 13, 1u << 14, 1u << 15};
    uint32_t bit[LANES], in = 0;
#pragma omp simd
    for (size_t j = 0; j < LANES; j++)
        bit[j] = ((x[j] >= low ? one[j] : 0) & (x[j] < high ? one[j] : 0)) |
                 ((x[j + LANES] >= low ? one[j] << LANES : 0) &
                  (x[j + LANES] < high ? one[j] << LANES : 0));
    for (size_t j = 0; j < LANES; j++)
        in |= bit[j];
    return in;
}

// Marks tokens x, x + 1, ... of a row, which may end within the group.
static inline uint32_t marks_at(const float *logit, size_t vocab, size_t x, float low, float high)
{
    float rest[GROUP];
    if (vocab - x >= GROUP)
        return mark_between(logit + x, low, high);
    for (size_t i = 0; i < GROUP; i++)
        rest[i] = i < vocab - x ? logit[x + i] : INFINITY;
    return mark_between(rest, low, high);
}

// Adds the tokens of [first, end) with logits in [least, below) to a list. `first` is a multiple of
// GROUP; `end` is one too, or the row's end.
DSC_FOR_EVERY_PROCESSOR
static void gather(const search *f, size_t first, size_t end, float least, float below,
                   dsc_softmax_list *out)
{
    const float *logit = f->dist->logit;
    size_t n = out->n;
    for (size_t x = first; x < end && n <= LIST; x += GROUP)
        for (uint32_t in = marks_at(logit, end, x, least, below); in && n <= LIST; in &= in - 1) {
            const size_t token = x + (size_t)__builtin_ctz(in), at = n < LIST ? n : 0;
            out->value[at] = (double)logit[token];
            out->weight[at] = f->weight ? f->weight[token] : 0;
            out->token[at] = (uint32_t)token;
            n++;
        }
    out->n = n;
}

// --- top-k ---------------------------------------------------------------------------------------

static cut above_all(const dsc_softmax *s)
{
    return (cut){nextafterf((float)s->most, INFINITY), (float)s->most, 0, 0, 0};
}

// The maximum of each `part` of row[0, n); `part` is a multiple of LANES.
DSC_FOR_EVERY_PROCESSOR
static void find_maxima(const float *row, size_t n, size_t part, double *out)
{
    for (size_t first = 0; first < n; first += part) {
        const size_t end = n - first < part ? n : first + part;
        float lane[LANES], most = row[first];
        size_t x = first;
        for (size_t j = 0; j < LANES; j++)
            lane[j] = most;
        for (; x + LANES <= end; x += LANES)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] = row[x + j] > lane[j] ? row[x + j] : lane[j];
        for (; x < end; x++)
            most = row[x] > most ? row[x] : most;
        for (size_t half = LANES / 2; half; half /= 2)
            for (size_t j = 0; j < half; j++)
                lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
        out[first / part] = (double)(lane[0] > most ? lane[0] : most);
    }
}

// The maximum of each class of row[0, n): the tokens x, x + classes, ... `classes` is a multiple of
// LANES.
DSC_FOR_EVERY_PROCESSOR
static void find_class_maxima(const float *row, size_t n, size_t classes, double *out)
{
    for (size_t first = 0; first < classes; first += LANES) {
        float lane[LANES];
        size_t x = first;
        for (size_t j = 0; j < LANES; j++)
            lane[j] = -INFINITY;
        for (; x + LANES <= n; x += classes)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] = row[x + j] > lane[j] ? row[x + j] : lane[j];
        for (size_t j = 0; x + j < n; j++)
            lane[j] = row[x + j] > lane[j] ? row[x + j] : lane[j];
        for (size_t j = 0; j < LANES; j++)
            out[first + j] = (double)lane[j];
    }
}

// Lists the tokens from the count-th largest maximum of a part on, which include the first `count`.
// Of a long row only the parts with such a maximum are read again.
static void list_largest(const dsc_softmax *s, size_t count, double *most, dsc_softmax_list *out)
{
    const search f = {.dist = s};
    const float highest = (float)s->most;
    const size_t vocab = s->vocab, parts = (vocab + BLOCK - 1) / BLOCK;
    out->n = 0;
    if (parts >= 2 * count) {
        find_maxima(s->logit, vocab, BLOCK, most);
        const float least = dsc_nth_largest(most, parts, count, highest);
        for (size_t b = 0; b < parts && out->n <= LIST; b++)
            if (most[b] >= (double)least)
                gather(&f, b * BLOCK, b * BLOCK + dsc_softmax_in_block(s, b), least, INFINITY, out);
        return;
    }
    size_t classes = 4 * LANES;
    while (classes < 2 * count)
        classes *= 2;
    if (classes > vocab / 2 || count > LIST / 2)
        return;
    find_class_maxima(s->logit, vocab, classes, most);
    gather(&f, 0, vocab, dsc_nth_largest(most, classes, count, highest), INFINITY, out);
}

// Drops tokens below `least` from a list and computes the exponentials of the others.
DSC_FOR_EVERY_PROCESSOR
static void keep_from(dsc_softmax_list *l, double least, double most, double by)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->value[kept] = l->value[i];
        l->token[kept] = l->token[i];
        kept += l->value[i] >= least ? 1 : 0;
    }
    l->n = kept;
#pragma omp simd
    for (size_t i = 0; i < kept; i++)
        l->weight[i] = dsc_fast_exp_below((l->value[i] - most) * by);
}

bool dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *room, dsc_softmax_list *list)
{
    const search f = {.dist = s, .count = count};
    list_largest(s, count, room, list);
    const bool listed = list->n > 0 && list->n <= LIST;
    cut low = {-INFINITY, -INFINITY, s->vocab, 0, 0}, high = above_all(s);
    if (!listed) {
        narrow(&f, &low, &high);
        s->least = low.at;
        if (low.count - high.count > FEW) // the tokens between are equal
            return false;
        list->n = 0;
        gather(&f, 0, s->vocab, low.at, high.at, list);
    }
    s->least = dsc_nth_largest(list->value, list->n, count - high.count, (float)s->most);
    if (listed)
        keep_from(list, (double)s->least, s->most, s->by);
    return listed;
}

// --- top-p ---------------------------------------------------------------------------------------

void dsc_softmax_keep_listed(dsc_softmax *s, const dsc_softmax_list *list, double enough, float low)
{
    const size_t last = dsc_softmax_list_last(list, enough, low, (float)s->most);
    s->least = (float)list->value[last];
    s->last = list->token[last];
}

void dsc_softmax_add_listed(const dsc_softmax *s, const dsc_softmax_list *list, double *block)
{
    for (size_t i = 0; i < list->n; i++) {
        const double x = list->value[i], least = (double)s->least;
        const bool kept = x > least || (x >= least && list->token[i] <= s->last);
        block[list->token[i] / BLOCK] += kept ? list->weight[i] : 0;
    }
}

// The tokens above and inside a bracket of the cut.
typedef struct sides {
    double above, between; // weight
    dsc_softmax_list list; // tokens between; if they do not fit, the sums are not valid
} sides;

// Sums the weights above a bracket, in total and by blocks, and lists the tokens inside it.
DSC_FOR_EVERY_PROCESSOR
static void divide(const search *f, float low, float high, double *block, sides *out)
{
    const float *logit = f->dist->logit;
    const size_t vocab = f->dist->vocab;
    double above = 0, between = 0;
    size_t n = 0;
    for (size_t x = 0; x < vocab && n <= LIST; x += GROUP) {
        if (x % BLOCK == 0) {
            const size_t in = vocab - x < BLOCK ? vocab - x : BLOCK;
            above += block[x / BLOCK] = add_from(logit + x, f->weight + x, in, high);
        }
        uint32_t in = marks_at(logit, vocab, x, low, high);
        for (; in && n <= LIST; in &= in - 1, n++) {
            const size_t token = x + (size_t)__builtin_ctz(in), at = n < LIST ? n : 0;
            out->list.value[at] = (double)logit[token];
            out->list.weight[at] = f->weight[token];
            out->list.token[at] = (uint32_t)token;
            between += f->weight[token];
        }
    }
    out->above = above;
    out->between = between;
    out->list.n = n;
}

// Cuts inside a bracket; false when the cut is not in it.
static bool cut_between(const search *f, dsc_softmax *s, float low, float high, double *block,
                        sides *d)
{
    divide(f, low, high, block, d);
    if (d->list.n > LIST || !(d->above < f->enough && d->above + d->between >= f->enough))
        return false;
    dsc_softmax_keep_listed(s, &d->list, f->enough - d->above, low);
    dsc_softmax_add_listed(s, &d->list, block);
    return true;
}

// Cuts where a sample of the tokens suggests; false when that was not confirmed.
static bool cut_by_sample(const search *f, dsc_softmax *s, const dsc_softmax_sample *sample,
                          double *block)
{
    enum { TRIES = 5 };
    sides d;
    dsc_softmax_known known = {-INFINITY, 0};
    double before = INFINITY; // estimated tokens of the last guess
    for (int i = 0; i < TRIES; i++) {
        const dsc_softmax_guess g = dsc_softmax_sample_guess(sample, f->total - f->enough, known);
        if (g.tokens > LIST / 2) {
            if (g.tokens > before / 2) // many tokens are about equal
                return false;
            before = g.tokens;
            known = (dsc_softmax_known){g.at,
                                        f->total - weigh_from(s->logit, f->weight, s->vocab, g.at)};
            continue;
        }
        const float low = g.low > s->least ? g.low : s->least;
        if (cut_between(f, s, low, g.high, block, &d))
            return true;
        if (d.list.n > LIST)
            return false;
        known = d.above < f->enough ? (dsc_softmax_known){g.low, f->total - d.above - d.between}
                                    : (dsc_softmax_known){g.high, f->total - d.above};
    }
    return false;
}

// Sums the kept tokens by blocks.
static void sum_kept(const dsc_softmax *s, const double *weight, double *block)
{
    for (size_t first = 0; first < s->vocab; first += BLOCK) {
        const size_t n = dsc_softmax_in_block(s, first / BLOCK);
        const size_t tied = s->last < first ? 0 : s->last - first < n ? s->last - first + 1 : n;
        const float above = nextafterf(s->least, INFINITY);
        block[first / BLOCK] =
            weigh_from(s->logit + first, weight + first, tied, s->least) +
            weigh_from(s->logit + first + tied, weight + first + tied, n - tied, above);
    }
}

// The search, for short rows and for a sample that did not help.
static void cut_by_search(const search *f, dsc_softmax *s)
{
    dsc_softmax_list list;
    const uint32_t count = count_between(s->logit, s->vocab, s->least, INFINITY);
    cut low = {s->least, -INFINITY, count, f->total, 0}, high = above_all(s);
    narrow(f, &low, &high);
    s->least = low.at;
    if (low.count - high.count <= FEW) {
        list.n = 0;
        gather(f, 0, s->vocab, low.at, high.at, &list);
        dsc_softmax_keep_listed(s, &list, f->enough - high.weight, low.at);
        return;
    }
    double sum = high.weight;
    for (size_t x = 0; x < s->vocab && sum < f->enough; x++)
        if (s->logit[x] >= low.at && s->logit[x] < high.at) {
            sum += f->weight[x];
            s->last = x;
        }
}

void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, dsc_softmax_sample *sample,
                             double enough, double *block)
{
    const search f = {.dist = s, .weight = weight, .enough = enough, .total = s->sum};
    if (sample)
        dsc_softmax_sample_end(sample);
    if (!sample || !cut_by_sample(&f, s, sample, block)) {
        cut_by_search(&f, s);
        sum_kept(s, weight, block);
    }
    s->sum = dsc_row_sum(block, dsc_softmax_blocks(s->vocab));
}

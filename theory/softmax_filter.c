// SPDX-License-Identifier: Apache-2.0
// What is kept are the first tokens in an order: the likeliest first, of equals the lower id. Where
// that order is cut is found without sorting or moving anything before a few hundred tokens are
// left. Few tokens by count are among those from the count-th largest maximum of a block on, which
// are few more; where the weight reaches a share is guessed from a sample, and one pass lists the
// tokens thereabouts and adds up those above. Where this leaves too many, or was wrong, counting
// and weighing what is above a logit, which vectors do, narrows them down.
#include "theory/softmax_filter.h"

#include "theory/fast_exp.h"
#include "theory/first_tokens.h"
#include "theory/row_sum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    FEW = DSC_SOFTMAX_FEW,
    LIST = 1024, // tokens about a guess
    BLOCK = DSC_SOFTMAX_BLOCK,
    GROUP = 32, // tokens that are passed over together
    LANES = DSC_ROW_LANES
};

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

// The sum of the weights of those at least `at`, as dsc_row_sum adds.
static inline double add_from(const float *row, const double *weight, size_t n, float at)
{
    double lane[LANES] = {0};
    size_t x = 0;
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

// A bit for each of GROUP logits that is not below `low`, but below `high`.
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

// The same of tokens x, x + 1, ... of a row.
static inline uint32_t marks_at(const float *logit, size_t vocab, size_t x, float low, float high)
{
    float rest[GROUP];
    if (vocab - x >= GROUP)
        return mark_between(logit + x, low, high);
    for (size_t i = 0; i < GROUP; i++)
        rest[i] = i < vocab - x ? logit[x + i] : INFINITY;
    return mark_between(rest, low, high);
}

// Adds tokens [first, end) from one logit on and below another to out[n], up to FEW in all; returns
// how many these are, or FEW + 1: there are more. `first`: a multiple of GROUP, `end` as well or
// the row's.
DSC_FOR_EVERY_PROCESSOR
static size_t gather(const search *f, size_t first, size_t end, float least, float below,
                     dsc_logit *out, size_t n)
{
    const float *logit = f->law->logit;
    for (size_t x = first; x < end && n <= FEW; x += GROUP)
        for (uint32_t in = marks_at(logit, end, x, least, below); in && n <= FEW; in &= in - 1) {
            const size_t token = x + (size_t)__builtin_ctz(in);
            if (n < FEW)
                out[n] = (dsc_logit){(double)logit[token], f->weight ? f->weight[token] : 0, token};
            n++;
        }
    return n;
}

// --- top-k ---------------------------------------------------------------------------------------

static cut above_all(const dsc_softmax *s)
{
    return (cut){nextafterf((float)s->most, INFINITY), (float)s->most, 0, 0, 0};
}

// The largest of each `part` of row[0, n), a multiple of LANES.
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

// The count-th largest of l[0, n), which it reorders (Hoare 1961).
static double nth_largest(double *l, size_t n, size_t count)
{
    size_t low = 0, high = n; // it is among l[low .. high - 1]
    while (high - low > 1) {
        const double pivot = l[low + (high - low - 1) / 2];
        size_t i = low, j = high - 1;
        for (;;) {
            while (l[i] > pivot)
                i++;
            while (l[j] < pivot)
                j--;
            if (i >= j)
                break;
            const double x = l[i];
            l[i++] = l[j];
            l[j--] = x;
        }
        if (count <= j + 1)
            high = j + 1;
        else
            low = j + 1;
    }
    return l[low];
}

// The tokens from the count-th largest maximum of parts of the row on, among which are the first
// `count`. Parts are short enough for twice as many as are wanted.
static size_t list_largest(const dsc_softmax *s, size_t count, double *room, dsc_logit *few)
{
    const search f = {.law = s};
    size_t part = BLOCK, n = 0;
    while (part > GROUP && s->vocab / part < 2 * count)
        part /= 2;
    const size_t parts = (s->vocab + part - 1) / part;
    double *most = room, *copy = room + parts;
    if (count > parts || count > FEW || 2 * parts > s->vocab)
        return 0;
    find_maxima(s->logit, s->vocab, part, most);
    memcpy(copy, most, parts * sizeof *copy);
    const float least = (float)nth_largest(copy, parts, count);
    for (size_t b = 0; b < parts && n <= FEW; b++) {
        const size_t first = b * part, end = s->vocab - first < part ? s->vocab : first + part;
        if ((float)most[b] >= least)
            n = gather(&f, first, end, least, INFINITY, few, n);
    }
    return n <= FEW ? n : 0;
}

size_t dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *room, dsc_logit *few)
{
    const search f = {.law = s, .count = count};
    size_t n = list_largest(s, count, room, few), before = 0, kept = 0;
    const bool listed = n > 0;
    if (!listed) {
        cut low = {-INFINITY, -INFINITY, s->vocab, 0, 0}, high = above_all(s);
        narrow(&f, &low, &high);
        s->least = low.at;
        if (low.count - high.count > FEW) // they are equal
            return 0;
        n = gather(&f, 0, s->vocab, low.at, high.at, few, 0);
        before = high.count;
    }
    dsc_first_tokens(few, n, count - before, INFINITY);
    double least = few[0].value;
    for (size_t i = 1; i < count - before; i++)
        least = few[i].value < least ? few[i].value : least;
    s->least = (float)least;
    for (size_t i = 0; i < n && listed; i++)
        if (few[i].value >= least) {
            few[i].weight = dsc_fast_exp_below((few[i].value - s->most) * s->by);
            dsc_logit_swap(&few[i], &few[kept++]);
        }
    return kept;
}

// --- top-p ---------------------------------------------------------------------------------------

size_t dsc_softmax_keep_listed(dsc_softmax *s, dsc_logit *few, size_t n, double enough)
{
    const size_t kept = dsc_first_tokens(few, n, n, enough);
    const dsc_logit *last = &few[0];
    for (size_t i = 1; i < kept; i++)
        last = dsc_logit_before(last, &few[i]) ? &few[i] : last;
    s->least = (float)last->value;
    s->last = last->token;
    return kept;
}

// Tokens of less than w have less than n w together, if they are n. So when top-p leaves out that
// much, it leaves out all of them; without these there are fewer, and w can be larger.
size_t dsc_softmax_keep_heavy(dsc_softmax *s, const double *weight, double top_p, dsc_logit *few)
{
    enum { PASSES = 8 };
    const search f = {.law = s, .weight = weight};
    const double left_out = (1 - top_p) * s->sum * (1 - 1e-6); // whatever sums are rounded to
    double above = s->sum;
    size_t n = s->vocab;
    if (1 - top_p < 1e-6)
        return 0;
    for (int i = 0; i < PASSES; i++) {
        const double spare = left_out - (s->sum - above), w = spare / (double)n;
        const float least = fmaxf((float)(s->most + log(w) / s->by), s->least);
        const size_t heavy = count_between(s->logit, s->vocab, least, INFINITY);
        if (heavy <= FEW) {
            n = gather(&f, 0, s->vocab, least, INFINITY, few, 0);
            return n <= FEW ? dsc_softmax_keep_listed(s, few, n, top_p * s->sum) : 0;
        }
        if (heavy > n / 4 * 3)
            return 0;
        n = heavy;
        above = weigh_from(s->logit, weight, s->vocab, least);
    }
    return 0;
}

// What is on the sides of a bracket of the cut.
typedef struct sides {
    double above, between; // weight
    size_t n;              // tokens between, or LIST + 1: there are more, and no sums
    dsc_logit list[LIST];  // they
} sides;

// Adds up what is above a bracket, also by blocks, and lists what is in it.
DSC_FOR_EVERY_PROCESSOR
static void divide(const search *f, float low, float high, double *block, sides *out)
{
    const float *logit = f->law->logit;
    const size_t vocab = f->law->vocab;
    double above = 0, between = 0;
    size_t n = 0;
    for (size_t x = 0; x < vocab && n <= LIST; x += GROUP) {
        if (x % BLOCK == 0) {
            const size_t in = vocab - x < BLOCK ? vocab - x : BLOCK;
            above += block[x / BLOCK] = add_from(logit + x, f->weight + x, in, high);
        }
        uint32_t in = marks_at(logit, vocab, x, low, high);
        for (; in && n <= LIST; in &= in - 1, n++) {
            const size_t token = x + (size_t)__builtin_ctz(in);
            out->list[n < LIST ? n : 0] =
                (dsc_logit){(double)logit[token], f->weight[token], token};
            between += f->weight[token];
        }
    }
    out->above = above;
    out->between = between;
    out->n = n;
}

// Cuts where a sample of the tokens says, if that is found to be right.
static bool cut_by_sample(const search *f, dsc_softmax *s, const dsc_softmax_sample *sample,
                          double *block)
{
    enum { TRIES = 5 };
    sides d;
    dsc_softmax_known known = {-INFINITY, 0};
    double before = INFINITY; // tokens of the last guess
    for (int i = 0; i < TRIES; i++) {
        const dsc_softmax_guess g = dsc_softmax_sample_guess(sample, f->total - f->enough, known);
        if (g.tokens > LIST / 2) {
            if (g.tokens > before / 2) // many are about equal
                return false;
            before = g.tokens;
            known = (dsc_softmax_known){g.at,
                                        f->total - weigh_from(s->logit, f->weight, s->vocab, g.at)};
            continue;
        }
        divide(f, g.low > s->least ? g.low : s->least, g.high, block, &d);
        if (d.n > LIST)
            return false;
        if (d.above < f->enough && d.above + d.between >= f->enough) {
            const size_t kept = dsc_softmax_keep_listed(s, d.list, d.n, f->enough - d.above);
            for (size_t j = 0; j < kept; j++)
                block[d.list[j].token / BLOCK] += d.list[j].weight;
            return true;
        }
        known = d.above < f->enough ? (dsc_softmax_known){g.low, f->total - d.above - d.between}
                                    : (dsc_softmax_known){g.high, f->total - d.above};
    }
    return false;
}

// The sums of blocks, of what is kept.
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

// Where a sample does not tell.
static void cut_by_search(const search *f, dsc_softmax *s)
{
    dsc_logit few[FEW];
    const uint32_t count = count_between(s->logit, s->vocab, s->least, INFINITY);
    cut low = {s->least, -INFINITY, count, f->total, 0}, high = above_all(s);
    narrow(f, &low, &high);
    s->least = low.at;
    if (low.count - high.count <= FEW) {
        const size_t n = gather(f, 0, s->vocab, low.at, high.at, few, 0);
        dsc_softmax_keep_listed(s, few, n, f->enough - high.weight);
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
    const search f = {.law = s, .weight = weight, .enough = enough, .total = s->sum};
    dsc_softmax_sample_end(sample);
    if (!cut_by_sample(&f, s, sample, block)) {
        cut_by_search(&f, s);
        sum_kept(s, weight, block);
    }
    s->sum = dsc_row_sum(block, dsc_softmax_blocks(s->vocab));
}

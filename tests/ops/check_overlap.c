// SPDX-License-Identifier: Apache-2.0
// Checks of the overlap of two distributions: masses by slot, tokens of slots, samples from
// residuals.
#include "tests/ops/check_ops.h"

#include "theory/rows/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The error of masses that sum to 1, in units of 2^-62 or added up in another order, with another
// exponential. Half a unit for each of 151 936 tokens is 1.6e-14.
static const double ROUNDING = 1e-13;

#define OF(twin) (device ? (twin).device : (twin).cpu)

enum { ROWS = 30, QUERIES = 300, BEHIND = 16 };

typedef struct overlap {
    int64_t vocab;
    twin logits;
    float *x;                        // [2 ROWS][vocab] drafts, then targets
    live_dists dists[2][ROWS];       // CPU, device
    live_masses *masses[2];          // [ROWS + 1] pinned
    dsc_mass *mass[2], *found[2];    // [QUERIES + BEHIND], [vocab + BEHIND]
    live_residual_sample *sample[2]; // [2]
    double *block, *room;            // scratch of a distribution
} overlap;

static void *take(check *c, size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "overlap");
    return p;
}

static float normal(check *c)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)check_draw(c, 1 << 24) * 0x1p-23f - 1;
    return sum / 2;
}

// A target logit for a draft logit.
static float beside(check *c, int row, float draft)
{
    switch (row % 6) {
    case 0: return draft + .5f * normal(c); // similar, as in practice
    case 1: return draft;                   // the same distribution
    case 2: return 3 * normal(c);           // nothing in common
    case 3: return -draft;
    case 4: return rintf(4 * draft) / 4;
    default: return check_draw(c, 3) ? draft : -INFINITY;
    }
}

// Every third row unfiltered, with top-k, with top-p.
static live_dist_row dist_of(overlap *m, int row, int64_t at)
{
    const float *x = m->x + at * m->vocab;
    const size_t vocab = (size_t)m->vocab;
    float most = x[0];
    for (size_t i = 1; i < vocab; i++)
        most = fmaxf(most, x[i]);
    dsc_softmax s;
    dsc_softmax_begin_filtered(&s, x, vocab, most, row % 4 == 3 ? .3 : 1,
                               row % 3 == 1 ? vocab / 3 + 1 : vocab, row % 3 == 2 ? .9 : 1,
                               m->block, m->room);
    return (live_dist_row){NULL, s.most, s.by, 1 / s.sum, {s.least, (int32_t)s.last}};
}

static void draw_rows(check *c, overlap *m)
{
    for (int r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < m->vocab; i++) {
            float *draft = m->x + r * m->vocab + i;
            *draft = 2.5f * normal(c);
            draft[ROWS * m->vocab] = beside(c, r, *draft);
        }
    for (int r = 0; r < ROWS; r++) // somebody can be drawn
        m->x[(ROWS + r) * m->vocab + check_draw(c, (uint32_t)m->vocab)] = 1;
    check_twin_set(c, &m->logits, 0, m->x, m->logits.count);
    for (int r = 0; r < ROWS; r++) {
        const live_dists l = {dist_of(m, r, r), dist_of(m, r, ROWS + r)};
        for (int device = 0; device < 2; device++) {
            const float *logits = OF(m->logits);
            m->dists[device][r] = l;
            m->dists[device][r].draft.logits = r == ROWS - 1 ? NULL : logits + r * m->vocab;
            m->dists[device][r].target.logits = logits + (ROWS + r) * m->vocab;
        }
    }
}

static void *pinned(check *c, live_backend *b, size_t count, size_t size)
{
    void *p = NULL;
    check_call(c, b->type->memory.alloc_host(b, &p, count * size, &c->error), "alloc_host");
    return p;
}

static overlap overlap_new(check *c, int64_t vocab)
{
    overlap m = {.vocab = vocab};
    const size_t tokens = (size_t)vocab;
    m.logits = check_twin(c, 2 * ROWS * vocab, DSC_F32, DSC_F32);
    m.x = take(c, 2 * ROWS * tokens, sizeof *m.x);
    m.block = take(c, dsc_softmax_blocks(tokens), sizeof *m.block);
    m.room = take(c, tokens, sizeof *m.room);
    for (int device = 0; device < 2; device++) {
        live_backend *b = device ? c->device : c->cpu;
        m.masses[device] = pinned(c, b, ROWS + 1, sizeof *m.masses[0]);
        m.mass[device] = pinned(c, b, QUERIES + BEHIND, sizeof *m.mass[0]);
        m.found[device] = pinned(c, b, tokens + BEHIND, sizeof *m.found[0]);
        m.sample[device] = pinned(c, b, 2, sizeof *m.sample[0]);
    }
    draw_rows(c, &m);
    return m;
}

static void overlap_free(check *c, overlap *m)
{
    check_twin_free(c, &m->logits);
    free(m->x);
    free(m->block);
    free(m->room);
    for (int device = 0; device < 2; device++) {
        live_backend *b = device ? c->device : c->cpu;
        b->type->memory.free_host(b, m->masses[device]);
        b->type->memory.free_host(b, m->mass[device]);
        b->type->memory.free_host(b, m->found[device]);
        b->type->memory.free_host(b, m->sample[device]);
    }
}

static double difference(dsc_mass a, dsc_mass b)
{
    const double draft = fabs(a.draft - b.draft), target = fabs(a.target - b.target);
    return isnan(draft + target) ? INFINITY : fmax(draft, target);
}

// --- masses --------------------------------------------------------------------------------------

static bool untouched(const void *p, size_t bytes)
{
    const unsigned char *byte = p;
    while (bytes && *byte == 0xa5) {
        byte++;
        bytes--;
    }
    return bytes == 0;
}

static double masses_error(const live_masses *a, const live_masses *b, int64_t *others)
{
    double error = 0;
    for (int s = 0; s < DSC_RATIO_SLOTS; s++) {
        const dsc_mass one = {dsc_mass_of(a->draft[s]), dsc_mass_of(a->target[s])};
        const dsc_mass two = {dsc_mass_of(b->draft[s]), dsc_mass_of(b->target[s])};
        error = fmax(error, difference(one, two));
        *others += a->count[s] != b->count[s];
    }
    return error;
}

static void comparison(check *c, overlap *m, int pairs, int queries)
{
    live_mass_query query[QUERIES];
    double error = 0;
    int64_t others = 0;
    for (int i = 0; i < queries; i++)
        query[i] = (live_mass_query){(int32_t)check_draw(c, (uint32_t)m->vocab),
                                     (int32_t)check_draw(c, (uint32_t)pairs)};
    for (int device = 0; device < 2; device++) {
        live_backend *b = device ? c->device : c->cpu;
        memset(m->masses[device], 0xa5, (ROWS + 1) * sizeof *m->masses[0]);
        memset(m->mass[device], 0xa5, (QUERIES + BEHIND) * sizeof *m->mass[0]);
        check_call(
            c,
            b->type->dist.compare(b,
                                  &(live_comparison){m->dists[device], pairs, m->masses[device],
                                                     query, m->mass[device], queries},
                                  m->vocab, &c->error),
            "compare");
        check_call(c, b->type->pass.wait(b, &c->error), "wait");
    }
    for (int i = 0; i < pairs; i++)
        error = fmax(error, masses_error(&m->masses[0][i], &m->masses[1][i], &others));
    for (int i = 0; i < queries; i++)
        error = fmax(error, difference(m->mass[0][i], m->mass[1][i]));
    const bool kept =
        untouched(m->masses[1] + pairs, (size_t)(ROWS + 1 - pairs) * sizeof *m->masses[0]) &&
        untouched(m->mass[1] + queries, (size_t)(QUERIES + BEHIND - queries) * sizeof *m->mass[0]);
    check_line(c, error <= ROUNDING && !others && kept, error, ROUNDING,
               "masses of %d pairs of distributions of %" PRId64 " tokens, %d queries: %" PRId64
               " slots differ%s",
               pairs, m->vocab, queries, others,
               kept ? "" : ", and memory after the results was overwritten");
}

// --- tokens --------------------------------------------------------------------------------------

static int by_mass(const void *a, const void *b)
{
    const dsc_mass *x = a, *y = b;
    if (x->draft != y->draft)
        return x->draft < y->draft ? -1 : 1;
    return (x->target > y->target) - (x->target < y->target);
}

// Compares sums, and sorted masses one by one: masses that are nearly equal may swap positions.
static void listing(check *c, overlap *m, int pair, uint32_t part)
{
    uint64_t wanted[DSC_RATIO_SLOTS / 64] = {0};
    size_t count = 0;
    double error = 0;
    for (int s = 0; s < DSC_RATIO_SLOTS; s++)
        if (check_draw(c, part) == 0) {
            wanted[s / 64] |= (uint64_t)1 << s % 64;
            count += m->masses[0][pair].count[s];
        }
    for (int device = 0; device < 2; device++) {
        live_backend *b = device ? c->device : c->cpu;
        memset(m->found[device], 0xa5, ((size_t)m->vocab + BEHIND) * sizeof *m->found[0]);
        check_call(c,
                   b->type->dist.list(b, m->found[device], &m->dists[device][pair], wanted,
                                      (int64_t)count, m->vocab, &c->error),
                   "list");
        check_call(c, b->type->pass.wait(b, &c->error), "wait");
        qsort(m->found[device], count, sizeof *m->found[0], by_mass);
    }
    for (size_t i = 0; i < count; i++)
        error = fmax(error, difference(m->found[0][i], m->found[1][i]));
    const bool kept =
        untouched(m->found[1] + count, ((size_t)m->vocab + BEHIND - count) * sizeof *m->found[0]);
    check_line(c, error <= ROUNDING && kept, error, ROUNDING,
               "%zu of %" PRId64 " tokens listed by slot%s", count, m->vocab,
               kept ? "" : ", and memory after the results was overwritten");
}

// --- rests ---------------------------------------------------------------------------------------

// The kinds of residuals that rules leave.
static dsc_residual residual_of(check *c, int kind, int64_t vocab, int32_t *token, double *own)
{
    dsc_residual r;
    dsc_residual_above(&r, kind == 0 ? 0 : .25 * kind);
    if (kind == 3) // as of k-Seq
        r = (dsc_residual){.lines = 2, .from = {0, 1.5}, .keep = {.4, 1}, .take = {0, .9}};
    if (kind == 4) { // as of optimal transport
        r.lines = DSC_RESIDUAL_LINES;
        for (int j = 0; j < DSC_RESIDUAL_LINES; j++) {
            r.from[j] = .1 * j;
            r.keep[j] = .5 + .5 * j / DSC_RESIDUAL_LINES;
            r.take[j] = .01 * j;
        }
    }
    if (kind == 5) // nothing is left
        r = (dsc_residual){.lines = 1};
    if (kind > 5) { // explicit tokens
        r.own = vocab < LIVE_OWN ? (size_t)vocab : LIVE_OWN;
        r.token = token;
        r.residual = kind == 6 ? NULL : own;
        const int32_t first = (int32_t)check_draw(c, (uint32_t)(vocab - (int64_t)r.own + 1));
        for (size_t i = 0; i < r.own; i++) {
            token[i] = first + (int32_t)i;
            own[i] = i % 3 ? 1e-3 * (double)i : 0;
        }
    }
    return r;
}

// The residual of every token, computed from the CPU's masses.
static void residuals(check *c, overlap *m, int pair, const dsc_residual *r, double *residual)
{
    const size_t vocab = (size_t)m->vocab;
    live_mass_query *query = take(c, vocab, sizeof *query);
    double *draft = take(c, 2 * vocab, sizeof *draft), *target = draft + vocab;
    for (size_t x = 0; x < vocab; x++)
        query[x] = (live_mass_query){(int32_t)x, pair};
    check_call(c,
               c->cpu->type->dist.compare(
                   c->cpu,
                   &(live_comparison){m->dists[0], ROWS, NULL, query, m->found[0], m->vocab},
                   m->vocab, &c->error),
               "compare");
    for (size_t x = 0; x < vocab; x++) {
        draft[x] = m->found[0][x].draft;
        target[x] = m->found[0][x].target;
    }
    dsc_residual_fill(r, draft, target, vocab, residual);
    for (size_t i = 0; i < r->own; i++)
        residual[r->token[i]] = r->residual ? r->residual[i] : 0;
    free(query);
    free(draft);
}

// before[x] is the residual mass of the tokens before x, [vocab + 1]. The error of a plain sum of
// doubles over 151 936 tokens exceeds ROUNDING, so each addition's error is compensated (Neumaier
// 1974).
static void add_up(const double *residual, int64_t vocab, double *before)
{
    double sum = 0, lost = 0;
    before[0] = 0;
    for (int64_t x = 0; x < vocab; x++) {
        const double next = sum + residual[x];
        lost += fabs(sum) >= fabs(residual[x]) ? (sum - next) + residual[x]
                                               : (residual[x] - next) + sum;
        sum = next;
        before[x + 1] = sum + lost;
    }
}

// Whether a token can be the one at u, up to rounding.
static bool drawn(const double *residual, const double *before, int64_t vocab,
                  const live_residual_sample *sample, double u)
{
    if (!(sample->sum > 0))
        return sample->token == -1;
    if (sample->token < 0 || sample->token >= vocab || !(residual[sample->token] > 0))
        return false;
    return before[sample->token] <= u * sample->sum + ROUNDING &&
           before[sample->token + 1] >= u * sample->sum - ROUNDING;
}

static void residual_samples(check *c, overlap *m, int pair)
{
    enum { KINDS = 8, DRAWS = 6 };
    int32_t token[LIVE_OWN];
    double own[LIVE_OWN], error = 0, *residual = take(c, (size_t)m->vocab, sizeof *residual);
    double *before = take(c, (size_t)m->vocab + 1, sizeof *before);
    int others = 0, written = 0;
    dsc_residual r;
    for (int n = 0; n < KINDS * DRAWS; n++) {
        const int draw = n % DRAWS;
        const double u = draw == 0   ? 0
                         : draw == 1 ? 1 - 0x1p-53
                                     : (double)check_draw(c, 1 << 30) * 0x1p-30;
        if (draw == 0) {
            r = residual_of(c, n / DRAWS, m->vocab, token, own);
            residuals(c, m, pair, &r, residual);
            add_up(residual, m->vocab, before);
        }
        for (int device = 0; device < 2; device++) {
            live_backend *b = device ? c->device : c->cpu;
            memset(m->sample[device], 0xa5, 2 * sizeof *m->sample[0]);
            check_call(c,
                       b->type->dist.sample_residual(b, m->sample[device], &m->dists[device][pair],
                                                     &r, u, m->vocab, &c->error),
                       "sample_residual");
            check_call(c, b->type->pass.wait(b, &c->error), "wait");
            others += !drawn(residual, before, m->vocab, m->sample[device], u);
        }
        error = fmax(error, difference((dsc_mass){.draft = m->sample[0]->sum},
                                       (dsc_mass){.draft = m->sample[1]->sum}));
        written += !untouched(m->sample[1] + 1, sizeof *m->sample[0]);
    }
    free(residual);
    free(before);
    check_line(c, error <= ROUNDING && !others && !written, error, ROUNDING,
               "residuals of distributions of %" PRId64 " tokens: %d of %d samples are wrong%s",
               m->vocab, others, 2 * KINDS * DRAWS,
               written ? ", and memory after the results was overwritten" : "");
}

void check_overlap(check *c)
{
    const int64_t vocabs[] = {1, 2, 127, 129, 2049, 5000, 32000, 151936};
    for (int v = 0; v < (c->quick ? 6 : 8); v++) {
        overlap m = overlap_new(c, vocabs[v]);
        comparison(c, &m, 1, 1);
        for (int more = c->quick ? ROWS : 0; more < ROWS; more += 7)
            comparison(c, &m, ROWS - more, 3 * more);
        comparison(c, &m, ROWS, QUERIES); // last: the listings use its counts of all pairs
        for (int pair = 0; pair < (c->quick ? 6 : ROWS); pair++) {
            listing(c, &m, pair, 2);
            listing(c, &m, pair, pair % 2 ? 40 : 1);
            residual_samples(c, &m, pair);
        }
        residual_samples(c, &m, ROWS - 1);
        overlap_free(c, &m);
    }
}

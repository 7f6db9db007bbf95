// SPDX-License-Identifier: Apache-2.0
// Checks of the sums over rows of logits, and of the tokens that top-k and top-p keep.
#include "tests/ops/check_ops.h"

#include "theory/rows/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Relative to the sum of a row: both add doubles in their own order, of weights that are right to
// 4e-16.
static const double ROUNDING = 1e-12;

#define OF(twin) (device ? (twin).device : (twin).cpu)

enum { ROWS = 14, LEFT_OUT = 2, BEHIND = 3 };

static void *room(check *c, int64_t count, size_t size)
{
    void *p = calloc((size_t)count, size);
    if (!p)
        check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "summarize");
    return p;
}

// --- rows ----------------------------------------------------------------------------------------

// Uniform in [-1, 1).
static float uniform(check *c)
{
    return (float)check_draw(c, 1 << 24) * 0x1p-23f - 1;
}

// Approximately normal, with standard deviation 1.
static float normal(check *c)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(c);
    return sum / 2;
}

// The kinds of rows, in order of how often they occur in practice.
static float logit(check *c, int row, int64_t i, int64_t vocab)
{
    switch (row) {
    case 0: // like a model's
        return 2.5f * normal(c);
    case 1: // nearly flat
        return .3f * normal(c);
    case LEFT_OUT: return i == vocab / 2 ? NAN : uniform(c);
    case 3: // many equal logits anywhere
        return rintf(4 * normal(c)) / 4;
    case 4: // all equal
        return -3.25f;
    case 5: // two values
        return check_draw(c, 3) ? 1 : 1.5f;
    case 6: // a third has probability 0
        return check_draw(c, 3) ? 4 * normal(c) : -INFINITY;
    case 7: // one token is nearly certain
        return i == vocab / 3 ? 30 : normal(c);
    case 8: // neighboring floats
        return 1 + (float)check_draw(c, 3000) * 0x1p-23f;
    case 9: // beyond the range of float differences
        return 3e38f * uniform(c);
    case 10: // one token is possible
        return i == vocab - 1 ? -7 : -INFINITY;
    case 11: // in order
        return 20 - 1e-3f * (float)i;
    case 12: // zeros of both signs, and negligible tokens
        return check_draw(c, 2) ? -1e30f : check_draw(c, 2) ? 0.f : -0.f;
    default: // sums of many small terms
        return i == 0 ? 20 : check_draw(c, 2) ? -9 : -9.5f;
    }
}

typedef struct dists {
    int64_t vocab, blocks;
    twin logits, token, kept, sum, max_logit;
    float *x; // [ROWS][vocab]
    check_pass pass;
    // Results of the CPU and of the device.
    live_kept *keeps[2];
    double *sums[2];
    float *peaks[2];
} dists;

static void draw_rows(check *c, dists *l)
{
    int32_t token[ROWS];
    for (int r = 0; r < ROWS; r++) {
        float *x = l->x + r * l->vocab;
        for (int64_t i = 0; i < l->vocab; i++)
            x[i] = logit(c, r, i, l->vocab);
        token[r] = 0;
        for (int64_t i = 1; i < l->vocab; i++)
            if (x[i] > x[token[r]])
                token[r] = (int32_t)i;
    }
    token[LEFT_OUT] = -1;
    check_twin_set(c, &l->logits, 0, l->x, l->logits.count);
    check_call(c, c->cpu->type->memory.upload(c->cpu, l->token.cpu, token, sizeof token, &c->error),
               "upload");
    check_call(
        c,
        c->device->type->memory.upload(c->device, l->token.device, token, sizeof token, &c->error),
        "upload");
}

static dists dists_new(check *c, int64_t vocab)
{
    dists l = {.vocab = vocab, .blocks = (int64_t)dsc_softmax_blocks((size_t)vocab)};
    const int64_t all = ROWS * l.blocks;
    l.logits = check_twin(c, ROWS * vocab, DSC_F32, DSC_F32);
    l.token = check_twin(c, ROWS, DSC_F32, DSC_F32);
    l.kept = check_twin(c, 2 * ROWS + BEHIND, DSC_F32, DSC_F32);
    l.sum = check_twin(c, 2 * all + BEHIND, DSC_F32, DSC_F32);
    l.max_logit = check_twin(c, all + BEHIND, DSC_F32, DSC_F32);
    l.x = room(c, ROWS * vocab, sizeof *l.x);
    l.pass = check_pass_new(c, ROWS, 1, 0, 0, false, 9);
    for (int side = 0; side < 2; side++) {
        l.keeps[side] = room(c, ROWS, sizeof *l.keeps[side]);
        l.sums[side] = room(c, all, sizeof *l.sums[side]);
        l.peaks[side] = room(c, all, sizeof *l.peaks[side]);
    }
    draw_rows(c, &l);
    return l;
}

static void dists_free(check *c, dists *l)
{
    check_twin_free(c, &l->logits);
    check_twin_free(c, &l->token);
    check_twin_free(c, &l->kept);
    check_twin_free(c, &l->sum);
    check_twin_free(c, &l->max_logit);
    free(l->x);
    check_pass_free(&l->pass);
    for (int side = 0; side < 2; side++) {
        free(l->keeps[side]);
        free(l->sums[side]);
        free(l->peaks[side]);
    }
}

// Poisons the memory of the results.
static void poison(check *c, dists *l)
{
    float *nan = room(c, l->sum.count, sizeof *nan);
    for (int64_t i = 0; i < l->sum.count; i++)
        nan[i] = NAN;
    check_twin_set(c, &l->kept, 0, nan, l->kept.count);
    check_twin_set(c, &l->sum, 0, nan, l->sum.count);
    check_twin_set(c, &l->max_logit, 0, nan, l->max_logit.count);
    free(nan);
}

static void summarize(check *c, const dists *l, bool device, int64_t rows)
{
    live_backend *b = device ? c->device : c->cpu;
    const live_summary s = {.best = OF(l->token),
                            .kept = OF(l->kept),
                            .sum = OF(l->sum),
                            .max_logit = OF(l->max_logit)};
    check_call(c, b->type->pass.summarize(b, &s, OF(l->logits), rows, l->vocab, &c->error),
               "summarize");
}

static void take(check *c, dists *l)
{
    for (int device = 0; device < 2; device++) {
        live_backend *b = device ? c->device : c->cpu;
        const size_t all = (size_t)(ROWS * l->blocks);
        check_call(c,
                   b->type->memory.download(b, l->keeps[device], OF(l->kept),
                                            ROWS * sizeof *l->keeps[device], &c->error),
                   "download");
        check_call(c,
                   b->type->memory.download(b, l->sums[device], OF(l->sum),
                                            all * sizeof *l->sums[device], &c->error),
                   "download");
        check_call(c,
                   b->type->memory.download(b, l->peaks[device], OF(l->max_logit),
                                            all * sizeof *l->peaks[device], &c->error),
                   "download");
    }
}

// --- comparison ----------------------------------------------------------------------------------

static bool keeps(const live_kept *k, const float *x, int64_t i)
{
    return x[i] > k->least || (x[i] >= k->least && i <= k->last);
}

static double weight(float x, float most, double temperature)
{
    return exp(((double)x - (double)most) * fmin(1 / temperature, 1e300));
}

// Whether top-p may keep this number of tokens, given rounding: they have the required weight, and
// without the last token they do not.
static bool within_rounding(const dists *l, int row, const live_kept *k, const live_sampling *dist)
{
    const float *x = l->x + row * l->vocab;
    const size_t vocab = (size_t)l->vocab;
    const bool count = dist->top_k > 0 && dist->top_k < l->vocab;
    float most = x[0];
    for (size_t i = 1; i < vocab; i++)
        most = x[i] > most ? x[i] : most;
    double *work = calloc(2 * vocab, sizeof *work), sum = 0;
    dsc_softmax all;
    if (!work || !(dist->top_p < 1)) {
        free(work);
        return false;
    }
    dsc_softmax_begin_filtered(&all, x, vocab, most, dist->temperature,
                               count ? (size_t)dist->top_k : vocab, 1, work, work + vocab);
    for (size_t i = 0; i < vocab; i++)
        sum += keeps(k, x, (int64_t)i) ? weight(x[i], most, dist->temperature) : 0;
    free(work);
    const double enough = dist->top_p * all.sum, slack = ROUNDING * all.sum;
    return sum >= enough - slack &&
           sum - weight(k->least, most, dist->temperature) < enough + slack;
}

typedef struct verdict {
    double error;            // of sums, relative to the row's sum
    int wrong, rounded;      // rows that keep other tokens; rows that may differ by rounding
    int64_t peaks, poisoned; // wrong largest logits; overwritten memory after the results
} verdict;

static void compare_row(const dists *l, int row, const live_sampling *dist, verdict *v)
{
    const live_kept *cpu = &l->keeps[0][row], *device = &l->keeps[1][row];
    const float *x = l->x + row * l->vocab;
    const double *a = l->sums[0] + row * l->blocks, *b = l->sums[1] + row * l->blocks;
    double total = 0;
    int64_t others = 0;
    for (int64_t i = 0; i < l->blocks; i++) {
        total += a[i];
        v->peaks += !(l->peaks[0][row * l->blocks + i] == l->peaks[1][row * l->blocks + i]);
    }
    for (int64_t i = 0; i < l->vocab; i++)
        others += keeps(cpu, x, i) != keeps(device, x, i);
    if (others && within_rounding(l, row, device, dist)) {
        v->rounded++;
        return;
    }
    v->wrong += others > 0;
    for (int64_t i = 0; i < l->blocks; i++) {
        const double d = fabs(a[i] - b[i]);
        if (!(d <= 0))
            v->error = isnan(d) ? INFINITY : fmax(v->error, d / total);
    }
}

static verdict compare(check *c, dists *l, const live_sampling *dist, int64_t rows)
{
    verdict v = {0};
    float *after = room(c, l->sum.count, sizeof *after);
    const twin *const t[] = {&l->kept, &l->sum, &l->max_logit};
    const int64_t used[] = {2 * rows, 2 * rows * l->blocks, rows * l->blocks};
    take(c, l);
    for (int r = 0; r < rows; r++)
        compare_row(l, r, dist, &v);
    for (int i = 0; i < 3; i++) {
        check_twin_numbers(c, t[i], true, after);
        for (int64_t n = used[i]; n < t[i]->count; n++)
            v.poisoned += !isnan(after[n]);
    }
    free(after);
    return v;
}

static bool good(const verdict *v)
{
    return v->error <= ROUNDING && !v->wrong && !v->peaks && !v->poisoned;
}

// --- checks --------------------------------------------------------------------------------------

static void summary(check *c, dists *l, const live_sampling *dist, int64_t rows)
{
    live_batch batch = l->pass.batch;
    batch.dist = dist;
    poison(c, l);
    check_begin(c, &batch);
    summarize(c, l, false, rows);
    summarize(c, l, true, rows);
    check_end(c);
    const verdict v = compare(c, l, dist, rows);
    check_line(c, good(&v), v.error, ROUNDING,
               "sums of %" PRId64 " rows of %" PRId64 " at %g, top-k %" PRId64
               ", top-p %g; %d keep other tokens, %d within rounding, %" PRId64
               " largest logits, %" PRId64 " overwritten",
               rows, l->vocab, dist->temperature, dist->top_k, dist->top_p, v.wrong, v.rounded,
               v.peaks, v.poisoned);
}

static void summaries(check *c)
{
    const int64_t vocabs[] = {1, 2, 127, 128, 129, 1000, 5000, 32000, 128256};
    for (int v = 0; v < (c->quick ? 7 : 9); v++) {
        const int64_t vocab = vocabs[v];
        const live_sampling filters[] = {
            {1, 0, 1},         {.01, 0, 1},          {100, 0, 1},        {1, 1, 1},
            {1, 50, 1},        {.01, 50, 1},         {1, vocab - 1, 1},  {1, vocab, 1},
            {1, vocab + 7, 1}, {1, 0, .9},           {1, 0, .5},         {1, 0, 1e-6},
            {1, 0, .999999},   {.01, 0, .9},         {30, 0, .9},        {1, 0, 1 - 3e-10},
            {1, 50, .9},       {.7, vocab / 2, .95}, {2, vocab - 1, .5}, {1e-310, 3, .5},
            {1, 40, .9999},
        };
        dists l = dists_new(c, vocab);
        for (size_t f = 0; f < sizeof filters / sizeof *filters; f++)
            if (!c->quick || vocab == 5000 || (f + (size_t)v) % 4 == 0)
                summary(c, &l, &filters[f], ROWS - (int64_t)f % 2);
        dists_free(c, &l);
    }
}

// Passes of one shape with other distributions and logits each time, fetched to the host in the
// pass. Distributions that exclude tokens and those that do not are two kinds of passes; the third
// pass of a kind is the first replay.
static void replayed_dists(check *c, bool expected)
{
    const live_sampling dist[] = {{1, 0, 1},  {3, 0, 1},  {.7, 0, 1}, {1, 0, .9},  {.5, 40, 1},
                                  {2, 0, .5}, {1, 9, .9}, {.1, 0, 1}, {1, 900, .3}};
    const int passes = sizeof dist / sizeof *dist;
    live_backend *b = c->device;
    int replays = 0, wrong = 0, fetched = 0;
    double error = 0;
    dists l = dists_new(c, 1000);
    void *host = NULL;
    const size_t bytes = (size_t)(ROWS * l.blocks) * sizeof(double);
    check_call(c, b->type->memory.alloc_host(b, &host, bytes, &c->error), "alloc_host");
    for (int n = 0; n < passes; n++) {
        live_batch batch = l.pass.batch;
        bool replayed = false;
        batch.dist = &dist[n];
        draw_rows(c, &l);
        poison(c, &l);
        check_call(
            c,
            c->cpu->type->pass.begin(c->cpu, (live_pass_key){&l, 0}, &batch, &replayed, &c->error),
            "begin");
        summarize(c, &l, false, ROWS);
        check_call(c, c->cpu->type->pass.end(c->cpu, &c->error), "end");
        check_call(c, b->type->pass.begin(b, (live_pass_key){&l, 0}, &batch, &replayed, &c->error),
                   "begin");
        if (!replayed) {
            summarize(c, &l, true, ROWS);
            check_call(c, b->type->memory.fetch(b, host, l.sum.device, bytes, &c->error), "fetch");
        }
        check_call(c, b->type->pass.end(b, &c->error), "end");
        check_call(c, b->type->pass.wait(b, &c->error), "wait");
        replays += replayed;
        const verdict v = compare(c, &l, &dist[n], ROWS);
        wrong += !good(&v);
        error = fmax(error, v.error);
        fetched += !memcmp(host, l.sums[1], bytes);
    }
    check_line(c, !wrong && fetched == passes && replays == (expected ? 5 : 0), error, ROUNDING,
               "%d passes with distributions of their own, %d replayed, %d wrong, %d fetched",
               passes, replays, wrong, fetched);
    b->type->memory.free_host(b, host);
    dists_free(c, &l);
}

static void fetches(check *c)
{
    live_backend *b = c->device;
    unsigned char bytes[300], zero[300] = {0};
    void *p = NULL, *host = NULL;
    check_call(c, b->type->memory.alloc(b, &p, sizeof bytes, &c->error), "alloc");
    check_call(c, b->type->memory.alloc_host(b, &host, sizeof bytes, &c->error), "alloc_host");
    check_line(c, !memcmp(host, zero, sizeof zero), 0, 0, "pinned memory is zeroed");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    check_call(c, b->type->memory.upload(b, p, bytes, sizeof bytes, &c->error), "upload");
    check_call(
        c, b->type->memory.fetch(b, (char *)host + 1, (char *)p + 1, sizeof bytes - 2, &c->error),
        "fetch");
    check_call(c, b->type->pass.wait(b, &c->error), "wait");
    const unsigned char *got = host;
    check_line(c,
               !got[0] && !got[sizeof bytes - 1] && !memcmp(got + 1, bytes + 1, sizeof bytes - 2),
               0, 0, "uploaded data is fetched unchanged");
    b->type->memory.free(b, p);
    b->type->memory.free_host(b, host);
    b->type->memory.free_host(b, NULL);
}

static void refusal(check *c)
{
    dsc_error error = {0};
    live_backend *b = c->device;
    dists l = dists_new(c, 5);
    check_begin(c, &l.pass.batch);
    const live_summary s = {.best = l.token.device,
                            .kept = l.kept.device,
                            .sum = l.sum.device,
                            .max_logit = l.max_logit.device};
    const int status = b->type->pass.summarize(b, &s, l.logits.device, ROWS, 5, &error);
    check_end(c);
    check_line(c, status == DSC_EUSAGE && error.message[0], 0, 0, "no distribution: \"%s\"",
               error.message);
    dists_free(c, &l);
}

void check_dists(check *c)
{
    summaries(c);
    replayed_dists(c, c->device->replays);
    fetches(c);
    refusal(c);
}

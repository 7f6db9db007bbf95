// SPDX-License-Identifier: Apache-2.0
// Measures forward passes. A pass is bounded from below by the bytes it reads and the operations it
// performs, at rates measured by the same program on the same device (Williams, Waterman and
// Patterson 2009): all matrices and the KV cache that every sequence attends to are read once, and
// each token is multiplied by the matrices and attends to its context,
//
//     bound = max(bytes / read_bytes_s, operations / flops_s).
//
// Activations and norms are left out, so the bound is never too high because of them.
//
// A step of a server computes parts of prompts in the same pass. What they add depends on the other
// tokens far less than the pass does, so it is measured at the ends of the grid only.
//
// The grid is measured in rounds, and every round measures each cell a few times: a machine that is
// slower for a while, because of its clock or other work, is then slower for all cells, and their
// ratios stay (live_typical).
#include "live/program/profile.h"

#include "base/order.h"
#include "live/device/clock.h"
#include "live/program/bench.h"
#include "sim/cost/cost.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODELS = 2,
    TIMES = 3,   // as many repeats of a cell whose quartiles are far apart
    PARTS = 5,   // columns of a model
    WARM_UP = 3, // uncounted passes of a cell in every round: see take_turns
    IN_A_ROW = LIVE_IN_A_ROW,
    DRAFTS = 2, // draft passes of one token between
    WORD = 64,
    KEYS = 4 // of a cell: tokens, context, batch, prefill
};
// A lower bound on the warm-up time: the clock of a processor, lower during the wide arithmetic of
// large passes, recovers within some milliseconds (a pass of one token directly after some of 64
// took half as much again).
static const double SETTLE_S = 5e-3;

// One model with its measurements.
typedef struct bench {
    live_bench n;
    live_probe probe;
    // [again][cells][room]; again: directly after another pass of this model
    double *time[2];
    double pass_s, low_s, high_s, again_s, share;
} bench;

typedef struct profile {
    const live_profile_options *o;
    bench bench[MODELS]; // target, draft
    int models;
    int room;                           // repeats that a cell can have
    int *done;                          // [cells] repeats that it has, from the second phase on
    int64_t tokens, context, batch;     // maxima of each
    int64_t prefill;                    // 0: no such cells
    dsc_arena lists;                    // of a pass
    int32_t *token, *position, *output; // the features that a head reads are those of the positions
    uint64_t *mask;
    int64_t words;
} profile;

// --- what a pass comes to ------------------------------------------------------------------------

static double cells_of(const live_matrix *m)
{
    return (double)m->rows * (double)m->cols;
}

// The number of weights that every token is multiplied by, and their bytes: the layers, and in
// *last the output matrix, counted once whether or not it is tied to the embedding. Reading rows of
// the embedding is negligible.
static double matrix_cells(const live_bench *n, double *last, double *bytes)
{
    const live_weights *w = n->w;
    const live_matrix *head = w->config.family == LIVE_EAGLE ? &n->target->head : &w->head;
    const bool medusa = w->config.family == LIVE_MEDUSA; // the heads have the output matrices
    // An EAGLE-3 head joins features once per step of the target; its own passes do not.
    double cells = w->config.family == LIVE_EAGLE3 ? 0 : cells_of(&w->join);
    *last = medusa ? 0 : cells_of(head);
    for (int64_t i = 0; i < w->config.layers; i++) {
        const live_layer *l = &w->layer[i];
        cells += cells_of(&l->qkv) + cells_of(&l->qkv_feature) + cells_of(&l->out);
        cells += cells_of(&l->up) + cells_of(&l->down);
    }
    for (int64_t h = 0; h < w->config.medusa_heads; h++)
        cells += cells_of(&w->medusa[h].linear) + cells_of(&w->medusa[h].out);
    *bytes = cells * (double)dsc_dtype_bytes(live_stored_dtype(w)) +
             *last * (double)dsc_dtype_bytes(head->dtype);
    return cells;
}

// at: tokens, context, batch, prefill.
static double bound_s(const bench *m, const int64_t at[KEYS])
{
    const live_config *c = &m->n.w->config;
    const live_cache *k = &m->n.cache;
    const double rows = (double)(at[0] * at[2]), seen = (double)(at[1] + at[0] - 1);
    const double chunk = (double)at[3], whole = (double)at[1] + chunk; // of the prompt
    double bytes, last, flops, cells = matrix_cells(&m->n, &last, &bytes);
    flops = 2 * (cells * (rows + chunk) + last * rows);
    for (int64_t i = 0; i < c->layers; i++) {
        const int64_t window = live_config_window(c, i);
        const double within = window ? fmin(seen, (double)window) : seen;
        const double before = window ? 0 : (double)at[1] + (chunk - 1) / 2; // a token of the chunk
        flops += 4 * (double)(c->heads * c->head) * (rows * within + chunk * before);
        bytes += 2 * (double)k->width * (double)dsc_dtype_bytes(k->dtype) *
                 ((double)at[2] * within + (chunk > 0 && !window ? whole : 0));
    }
    return fmax(bytes / m->probe.read_bytes_s, flops / m->probe.flops_s);
}

// --- a cell --------------------------------------------------------------------------------------

static live_batch batch_of(profile *p, const live_bench *n, int64_t tokens, int64_t context,
                           int64_t sequences)
{
    const bool medusa = n->w->config.family == LIVE_MEDUSA;
    const int64_t count = medusa ? 1 : tokens;
    memset(p->mask, 0, (size_t)(p->tokens * p->words) * sizeof *p->mask);
    for (int64_t i = 0; i < count; i++) {
        p->position[i] = (int32_t)(context + i);
        for (int64_t j = 0; j <= i; j++)
            p->mask[i * p->words + j / WORD] |= (uint64_t)1 << j % WORD;
    }
    return (live_batch){.tokens = count,
                        .sequences = sequences,
                        .token = p->token,
                        .position = p->position,
                        .slot = p->position,
                        .prefix = context,
                        .mask = p->mask,
                        .words = p->words,
                        .used = context + count,
                        .output = p->output,
                        .outputs = medusa ? n->w->config.medusa_heads : count * sequences,
                        .feature = live_config_is_head(&n->w->config) ? p->position : NULL};
}

static int pass_at(profile *p, bench *m, const int64_t at[KEYS], double *time, dsc_error *err)
{
    const live_batch batch = batch_of(p, &m->n, at[0], at[1], at[2]);
    return live_bench_pass(&m->n, &batch, time, err);
}

// The pass of a cell with prefill tokens.
static int mixed_batch(const live_batch **out, dsc_arena *memory, const profile *p,
                       const int64_t at[KEYS], dsc_error *err)
{
    live_span *span;
    int rc = dsc_arena_new(memory, &span, (size_t)at[2] + 1, err);
    for (int64_t s = 0; s < at[2] && !rc; s++)
        span[s] = (live_span){(int32_t)at[0], (int32_t)at[1], false};
    if (!rc)
        span[at[2]] = (live_span){(int32_t)at[3], (int32_t)at[1], true};
    return rc ? rc
              : live_spans_batch(out, memory, span, (size_t)at[2] + 1, p->o->target->config.vocab,
                                 err);
}

// Models of a cell: next to prefill tokens only the target is measured.
static int models_of(const profile *p, const int64_t at[KEYS])
{
    return at[3] ? 1 : p->models;
}

// The models alternate, as in a run, in which small ones are evicted from the caches by this. Each
// runs two passes, because a step has many drafts and plain decoding has only target passes. Draft
// passes of one token precede those of the target, so that a processor has to switch to the wide
// arithmetic of many tokens.
// A GPU runs the first pass of a shape directly, captures the second in a graph and replays the
// third, which uploads the graph, so the fourth is the first with the steady-state cost. A cell
// that needs more scratch memory makes the GPU drop its graphs, including those of the other model.
// This happens in the first of that cell's warm-up passes, since all models take part in it, and
// every round warms up the passes of every cell again.
static int take_turns(profile *p, const int64_t at[KEYS], size_t cell, int from, int to,
                      dsc_error *err)
{
    const double start = live_now_s();
    const int64_t draft_at[KEYS] = {1, at[1], at[2], 0};
    const int models = models_of(p, at);
    const live_batch *mixed = NULL;
    dsc_arena memory = {0};
    bool settled = false;
    double unused;
    int rc = at[3] ? mixed_batch(&mixed, &memory, p, at, err) : DSC_OK, i = from;
    for (int warm = 1; i < to && !rc; warm++) {
        for (int turn = 0; turn < models * models && !rc; turn++) {
            bench *m = &p->bench[turn / models];
            double *time = m->time[turn % models] + cell * (size_t)p->room;
            rc = mixed ? live_bench_pass(&m->n, mixed, &time[i], err)
                       : pass_at(p, m, at, &time[i], err);
        }
        for (int draft = 0; draft < DRAFTS && p->models > 1 && !rc; draft++)
            rc = pass_at(p, &p->bench[1], draft_at, &unused, err);
        i += settled;
        settled = warm >= WARM_UP && live_now_s() - start >= SETTLE_S;
    }
    dsc_arena_fini(&memory);
    return rc;
}

// Summarizes the first `repeats` repeats of a cell.
static void sum_up(const profile *p, bench *n, const int64_t at[KEYS], size_t cell, int repeats)
{
    const size_t first = cell * (size_t)p->room;
    double *time = n->time[0] + first;
    n->pass_s = live_typical(time, repeats);
    n->again_s = models_of(p, at) > 1 ? live_typical(n->time[1] + first, repeats) : n->pass_s;
    qsort(time, (size_t)repeats, sizeof *time, dsc_by_real);
    n->low_s = live_quantile(time, repeats, .25);
    n->high_s = live_quantile(time, repeats, .75);
    n->share = bound_s(n, at) / n->pass_s;
}

// --- the table -----------------------------------------------------------------------------------

// Key columns: without such cells the table has no prefill tokens.
static int keys_of(const profile *p)
{
    return p->prefill ? KEYS : KEYS - 1;
}

static int add_columns(dsc_table *t, const profile *p, dsc_error *err)
{
    static const dsc_column key[] = {
        {"tokens", DSC_CELL_INT, "tokens of each sequence in the pass"},
        {"context", DSC_CELL_INT, "context length of each sequence before the pass"},
        {"batch", DSC_CELL_INT, "sequences in the pass"},
        {"prefill_tokens", DSC_CELL_INT,
         "tokens of one more sequence's prompt in the pass, after as many others"}};
    static const char *const part[PARTS] = {"s", "s_low", "s_high", "share", "again_s"};
    static const char *const help[PARTS] = {
        "seconds per pass, mean of the rounds' medians", "first quartile of the repeats, seconds",
        "third quartile of the repeats, seconds",
        "roofline bound at the measured rates / measured time; above 1 if data come from caches",
        "seconds of a pass directly after another pass of this model"};
    const size_t parts = p->models > 1 ? PARTS : PARTS - 1;
    int rc = dsc_table_add_columns(t, key, (size_t)keys_of(p), err);
    for (int m = 0; m < p->models; m++)
        for (size_t i = 0; i < parts && !rc; i++) {
            char name[32], text[200];
            const char *model = m ? "draft" : "target";
            snprintf(name, sizeof name, "%s_%s", model, part[i]);
            snprintf(text, sizeof text, "%s: %s", model, help[i]);
            rc = dsc_table_add_column(t, name, DSC_CELL_REAL, text, err);
        }
    return rc;
}

static int add_row(dsc_table *t, profile *p, const int64_t at[KEYS], size_t row, int repeats,
                   dsc_error *err)
{
    dsc_cell cell[KEYS + PARTS * MODELS];
    const int parts = p->models > 1 ? PARTS : PARTS - 1, keys = keys_of(p);
    for (int i = 0; i < keys; i++)
        cell[i] = dsc_cell_int(at[i]);
    for (int i = 0; i < parts * p->models; i++)
        cell[keys + i] = dsc_cell_absent();
    for (int m = 0; m < models_of(p, at); m++) {
        bench *n = &p->bench[m];
        sum_up(p, n, at, row, p->done[row] > repeats ? p->done[row] : repeats);
        const double value[] = {n->pass_s, n->low_s, n->high_s, n->share, n->again_s};
        for (int i = 0; i < parts && !(at[3] && i == PARTS - 1); i++)
            cell[keys + parts * m + i] = dsc_cell_real(value[i]);
    }
    return dsc_table_add_row(t, cell, err);
}

static int add_comments(dsc_table *t, const profile *p, int repeats, dsc_error *err)
{
    char text[256];
    int rc = DSC_OK;
    for (int m = 0; m < p->models && !rc; m++) {
        const bench *n = &p->bench[m];
        snprintf(text, sizeof text, "%s: reads %.4g GB/s, multiplies %.4g TFLOP/s", n->n.b->device,
                 n->probe.read_bytes_s * 1e-9, n->probe.flops_s * 1e-12);
        rc = dsc_table_comment(t, m ? "draft_measured" : "target_measured", text, err);
    }
    snprintf(
        text, sizeof text,
        "%d, in rounds over the grid; every %d follow a warm-up of at least %d passes and %g ms",
        repeats, IN_A_ROW, WARM_UP, SETTLE_S * 1e3);
    return rc ? rc : dsc_table_comment(t, "repeats", text, err);
}

// Cells without prefill tokens, which come first.
static size_t decode_cells(const live_grid *g)
{
    return g->tokens_count * g->context_count * g->batch_count;
}

static size_t ends_of(size_t count)
{
    return count > 1 ? 2 : 1;
}

static size_t cells_of_grid(const live_grid *g)
{
    return decode_cells(g) + ends_of(g->tokens_count) * ends_of(g->context_count) *
                                 ends_of(g->batch_count) * g->prefill_count;
}

// The first or the last point of a list, by the last digit of *number, which is taken off.
static int64_t end_of(const int64_t *list, size_t count, size_t *number)
{
    const size_t ends = ends_of(count), which = *number % ends;
    *number /= ends;
    return list[which ? count - 1 : 0];
}

// Cell number to grid point: tokens vary slowest, sequences fastest; but for prefill tokens, which
// vary faster still.
static void locate(const live_grid *g, size_t cell, int64_t at[KEYS])
{
    if (cell < decode_cells(g)) {
        at[0] = g->tokens[cell / (g->context_count * g->batch_count)];
        at[1] = g->context[cell / g->batch_count % g->context_count];
        at[2] = g->batch[cell % g->batch_count];
        at[3] = 0;
        return;
    }
    cell -= decode_cells(g);
    at[3] = g->prefill[cell % g->prefill_count];
    cell /= g->prefill_count;
    at[2] = end_of(g->batch, g->batch_count, &cell);
    at[1] = end_of(g->context, g->context_count, &cell);
    at[0] = end_of(g->tokens, g->tokens_count, &cell);
}

static int rounds_of(int repeats)
{
    return (repeats + IN_A_ROW - 1) / IN_A_ROW;
}

// Returns whether the quartiles of a cell's repeats, or its result and one of them, are far apart
// for any model. A slow round moves the result outside of the quartiles.
static bool is_wide(const profile *p, size_t cell, int repeats, double *sorted)
{
    bool wide = false;
    int64_t at[KEYS];
    locate(&p->o->grid, cell, at);
    for (int m = 0; m < models_of(p, at); m++) {
        memcpy(sorted, p->bench[m].time[0] + cell * (size_t)p->room,
               (size_t)repeats * sizeof *sorted);
        const double middle = live_typical(sorted, repeats);
        qsort(sorted, (size_t)repeats, sizeof *sorted, dsc_by_real);
        wide |= fmax(middle, live_quantile(sorted, repeats, .75)) >
                DSC_COST_WIDE * fmin(middle, live_quantile(sorted, repeats, .25));
    }
    return wide;
}

// Measures cells whose quartiles are far apart again, up to TIMES the repeats: what disturbed some
// repeats then lies outside of the quartiles. *wide cells remain so. Progress that returns nonzero
// ends it; the grid is complete.
static int repeat_wide(profile *p, size_t *again, size_t *wide, dsc_error *err)
{
    const size_t all = cells_of_grid(&p->o->grid);
    const int64_t total = (int64_t)all * rounds_of(p->o->repeats);
    double *sorted;
    bool stopped = false;
    int rc = dsc_arena_new(&p->lists, &sorted, (size_t)p->room, err);
    *again = *wide = 0;
    for (size_t cell = 0; cell < all && !rc; cell++) {
        int done = p->o->repeats;
        int64_t at[KEYS];
        locate(&p->o->grid, cell, at);
        *again += is_wide(p, cell, done, sorted);
        while (done < p->room && !rc && !stopped && is_wide(p, cell, done, sorted)) {
            const int to = done + IN_A_ROW < p->room ? done + IN_A_ROW : p->room;
            rc = take_turns(p, at, cell, done, to, err);
            done = rc ? done : to;
            stopped |= p->o->progress && p->o->progress(p->o->user, total, total);
        }
        p->done[cell] = done;
        *wide += is_wide(p, cell, done, sorted);
    }
    return rc;
}

static int comment_wide(dsc_table *t, size_t again, size_t wide, int room, dsc_error *err)
{
    char text[200];
    snprintf(text, sizeof text,
             "%zu cells with quartiles more than %gx apart were measured up to %d times in all; "
             "%zu still "
             "are",
             again, DSC_COST_WIDE, room, wide);
    return again ? dsc_table_comment(t, "spread", text, err) : DSC_OK;
}

// Counts what is complete: *repeats of the whole grid, or else *cells of the first round.
static int measure_all(profile *p, int *repeats, size_t *cells, dsc_error *err)
{
    const live_grid *g = &p->o->grid;
    const size_t all = cells_of_grid(g);
    const int most = p->o->repeats;
    const int64_t total = (int64_t)all * rounds_of(most);
    int64_t done = 0;
    int rc = DSC_OK;
    for (int from = 0; from < most && !rc; from += IN_A_ROW) {
        const int to = from + IN_A_ROW < most ? from + IN_A_ROW : most;
        size_t cell = 0;
        while (cell < all && !rc) {
            int64_t at[KEYS];
            locate(g, cell, at);
            rc = take_turns(p, at, cell, from, to, err);
            cell += !rc;
            if (!rc && p->o->progress && p->o->progress(p->o->user, ++done, total) && done < total)
                rc = dsc_fail(err, DSC_EINTERRUPT, "interrupted");
        }
        if (from == 0)
            *cells = cell;
        if (cell == all)
            *repeats = to;
    }
    return rc;
}

// Writes a complete grid: all tokens, or the first few.
static int write_rows(profile *p, dsc_table *t, int repeats, size_t cells, dsc_error *err)
{
    const live_grid *g = &p->o->grid;
    const size_t group = g->context_count * g->batch_count;
    // Cells with prefill tokens are kept all together.
    const size_t most = cells < cells_of_grid(g) ? decode_cells(g) : cells;
    if (!repeats) // the first round is incomplete, but some of its cells are complete
        repeats = p->o->repeats < IN_A_ROW ? p->o->repeats : IN_A_ROW;
    int rc = add_comments(t, p, repeats, err);
    if (!rc)
        rc = add_columns(t, p, err);
    const size_t kept = cells < cells_of_grid(g) ? cells / group * group : cells;
    for (size_t cell = 0; cell < kept && cell < most && !rc; cell++) {
        int64_t at[KEYS];
        locate(g, cell, at);
        rc = add_row(t, p, at, cell, repeats, err);
    }
    return rc;
}

// --- room ----------------------------------------------------------------------------------------

// The largest pass of a model; only the target computes prompts.
static live_bench_size size_of(const profile *p, const bench *m)
{
    const live_config *c = &m->n.w->config;
    const bool chunks = m == p->bench && p->prefill;
    const int64_t rows = p->tokens * p->batch, chunk = chunks ? p->prefill : 0;
    const int64_t outputs = c->family == LIVE_MEDUSA ? c->medusa_heads : rows + chunks;
    return (live_bench_size){rows + chunk, outputs, p->batch + chunks,
                             p->context + (chunk > p->tokens ? chunk : p->tokens)};
}

static int check_bench(const profile *p, const bench *m, live_bench_size size, dsc_error *err)
{
    const live_config *c = &m->n.w->config;
    if (live_config_is_head(c) && p->batch > 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "a draft head is measured with a batch size of 1, not "
                        "of %" PRId64,
                        p->batch);
    if (c->learned_positions && size.slots > c->positions)
        return dsc_fail(err, DSC_EUSAGE,
                        "a context of %" PRId64 " and %" PRId64 " %stokens: the model has %" PRId64
                        " learned positions",
                        p->context, size.slots - p->context,
                        size.slots > p->context + p->tokens ? "prefill " : "", c->positions);
    if (size.slots > INT32_MAX || size.rows > INT32_MAX)
        return dsc_fail(err, DSC_EUSAGE, "more than %d tokens in a pass or a context", INT32_MAX);
    return DSC_OK;
}

static int open_bench(profile *p, bench *m, const live_weights *w, dsc_error *err)
{
    m->n.w = w;
    const live_bench_size size = size_of(p, m);
    int rc = check_bench(p, m, size, err);
    m->n.w = NULL;
    if (!rc)
        rc = live_bench_open(&m->n, w, p->o->target, size, p->o->seed, err);
    for (int again = 0; again < p->models && !rc; again++)
        rc = dsc_new(&m->time[again], cells_of_grid(&p->o->grid) * (size_t)p->room, err);
    return rc ? rc : m->n.b->type->probe(m->n.b, live_stored_dtype(w), &m->probe, err);
}

static void close_bench(bench *m)
{
    live_bench_close(&m->n);
    free(m->time[0]);
    free(m->time[1]);
}

static int make_lists(profile *p, dsc_error *err)
{
    const size_t tokens = (size_t)p->tokens, rows = (size_t)(p->tokens * p->batch);
    const size_t cells = cells_of_grid(&p->o->grid);
    int64_t vocab = p->o->target->config.vocab;
    p->words = (p->tokens + WORD - 1) / WORD;
    int rc = dsc_arena_new(&p->lists, &p->token, rows, err);
    if (!rc)
        rc = dsc_arena_new(&p->lists, &p->position, tokens, err);
    if (!rc)
        rc = dsc_arena_new(&p->lists, &p->output, rows, err);
    if (!rc)
        rc = dsc_arena_new(&p->lists, &p->mask, tokens * (size_t)p->words, err);
    if (!rc)
        rc = dsc_arena_new(&p->lists, &p->done, cells, err);
    if (!rc)
        memset(p->done, 0, cells * sizeof *p->done);
    if (p->models > 1 && p->o->draft->config.vocab < vocab)
        vocab = p->o->draft->config.vocab;
    for (size_t i = 0; i < rows && !rc; i++) {
        p->token[i] = (int32_t)((uint64_t)i * UINT64_C(2654435761) % (uint64_t)vocab);
        p->output[i] = (int32_t)i;
    }
    return rc;
}

int live_profile(dsc_table *t, const live_profile_options *o, dsc_error *err)
{
    const live_grid *g = &o->grid;
    profile p = {.o = o,
                 .models = o->draft ? 2 : 1,
                 .room = o->repeats * TIMES,
                 .tokens = g->tokens[g->tokens_count - 1],
                 .context = g->context[g->context_count - 1],
                 .batch = g->batch[g->batch_count - 1],
                 .prefill = g->prefill_count ? g->prefill[g->prefill_count - 1] : 0};
    int rc = make_lists(&p, err);
    for (int m = 0; m < p.models && !rc; m++)
        rc = open_bench(&p, &p.bench[m], m ? o->draft : o->target, err);
    if (!rc) {
        int repeats = 0;
        size_t cells = 0, again = 0, wide = 0;
        dsc_error late = {0};
        rc = measure_all(&p, &repeats, &cells, err);
        if (!rc)
            rc = repeat_wide(&p, &again, &wide, err);
        if (again)
            (void)comment_wide(t, again, wide, p.room, &late);
        const int written = write_rows(&p, t, repeats, cells, &late);
        if (written) { // part of a grid is useless
            dsc_table_fini(t);
            rc = written;
            *err = late;
        }
    }
    for (int m = 0; m < p.models; m++)
        close_bench(&p.bench[m]);
    dsc_arena_fini(&p.lists);
    return rc;
}

// --- points of a range ---------------------------------------------------------------------------

static bool is_point(int64_t x, bool halves)
{
    const bool two = (x & (x - 1)) == 0;
    if (halves)
        return two || (x % 3 == 0 && ((x / 3) & (x / 3 - 1)) == 0);
    return two && x >= 64 && (x & INT64_C(0x5555555555555555));
}

// Appends the points that the range a:b means.
static int put_range(dsc_buffer *out, int64_t a, int64_t b, bool halves, dsc_error *err)
{
    int rc = dsc_buffer_printf(out, err, "%" PRId64, a);
    // At most two points lie between two powers of two.
    for (int64_t two = 1; two < b && !rc; two *= 2)
        for (int64_t x = two; x < 2 * two && !rc; x += two > 1 ? two / 2 : 1)
            if (x > a && x < b && is_point(x, halves))
                rc = dsc_buffer_printf(out, err, ",%" PRId64, x);
    return rc || a >= b ? rc : dsc_buffer_printf(out, err, ",%" PRId64, b);
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int live_profile_points(const dsc_option *o, const char *text, bool halves, int64_t **out,
                        size_t *count, dsc_error *err)
{
    dsc_buffer list = {0};
    int rc = DSC_OK;
    for (const char *item = text; !rc; item++) {
        const size_t n = strcspn(item, ",");
        char word[48], *end, *last;
        snprintf(word, sizeof word, "%.*s", (int)(n < 47 ? n : 47), item);
        const int64_t a = strtoll(word, &end, 10);
        const int64_t b = *end == ':' ? strtoll(end + 1, &last, 10) : 0;
        if (list.length)
            rc = dsc_buffer_puts(&list, ",", err);
        if (!rc && *end == ':' && end > word && last > end + 1 && !*last && a >= o->min &&
            b <= o->max && a <= b)
            rc = put_range(&list, a, b, halves, err);
        else if (!rc) // everything else, including errors, is handled as in other lists
            rc = dsc_buffer_append(&list, item, n, err);
        item += n;
        if (!*item)
            break;
    }
    if (!rc)
        rc = dsc_option_list(o, list.data, out, count, err);
    dsc_buffer_fini(&list);
    if (!rc)
        qsort(*out, *count, sizeof **out, ascending);
    return rc;
}

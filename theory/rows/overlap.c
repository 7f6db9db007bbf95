// SPDX-License-Identifier: Apache-2.0
// The overlap of two rows in memory; theory/rows/overlap.h. A query is one pass over both rows, or,
// after tokens were sorted by slots of their ratio, one over the tokens of a slot.
#include "theory/rows/overlap.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = DSC_ROW_LANES }; // sums side by side, as in theory/rows/row_sum.h

// --- masses --------------------------------------------------------------------------------------

DSC_FOR_EVERY_PROCESSOR
static dsc_mass masses_below(const double *draft, const double *target, size_t vocab, double at)
{
    double d[LANES] = {0}, t[LANES] = {0};
    size_t x = 0;
    for (; x + LANES <= vocab; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const double in = target[x + j] <= at * draft[x + j] ? 1. : 0.;
            d[j] += in * draft[x + j];
            t[j] += in * target[x + j];
        }
    for (; x < vocab; x++) {
        const double in = target[x] <= at * draft[x] ? 1. : 0.;
        d[x % LANES] += in * draft[x];
        t[x % LANES] += in * target[x];
    }
    return (dsc_mass){dsc_add_lanes(d), dsc_add_lanes(t)};
}

// --- order ---------------------------------------------------------------------------------------

int dsc_rows_order_reserve(dsc_rows_order *o, size_t vocab, dsc_error *err)
{
    int rc = dsc_resize(&o->slot, &o->slot_capacity, vocab, err);
    if (!rc)
        rc = dsc_resize(&o->token, &o->token_capacity, vocab, err);
    return rc;
}

void dsc_rows_order_fini(dsc_rows_order *o)
{
    free(o->slot);
    free(o->token);
    *o = (dsc_rows_order){.slot = NULL};
}

DSC_FOR_EVERY_PROCESSOR
static void divide_rows(const double *draft, const double *target, size_t n, double *ratio)
{
#pragma omp simd
    for (size_t x = 0; x < n; x++)
        ratio[x] = target[x] / draft[x];
}

// Finds the slots of all tokens, their numbers of tokens, and their masses.
static void find_slots(dsc_rows_overlap *m, uint32_t *count, dsc_mass *mass)
{
    enum { AT_ONCE = 256 };
    double ratio[AT_ONCE];
    for (size_t first = 0; first < m->base.vocab; first += AT_ONCE) {
        const size_t left = m->base.vocab - first, n = left < AT_ONCE ? left : AT_ONCE;
        divide_rows(m->draft + first, m->target + first, n, ratio);
        for (size_t i = 0; i < n; i++) {
            const double d = m->draft[first + i], t = m->target[first + i];
            const int slot = t > 0 && d > 0 ? dsc_ratio_slot(ratio[i]) : dsc_ratio_slot_of(d, t);
            m->order->slot[first + i] = (uint16_t)slot;
            count[slot]++;
            mass[slot].draft += d;
            mass[slot].target += t;
        }
    }
}

// A query costs a pass over both rows; sorting costs about as much as eight.
static void order_rows(dsc_overlap *base, int questions)
{
    enum { WORTH_IT = 10 };
    dsc_rows_overlap *m = (dsc_rows_overlap *)base;
    dsc_rows_order *o = m->order;
    uint32_t count[DSC_RATIO_SLOTS] = {0}, end[DSC_RATIO_SLOTS];
    dsc_mass mass[DSC_RATIO_SLOTS] = {{0, 0}};
    if (!o || !m->draft || m->ordered || questions < WORTH_IT)
        return;
    find_slots(m, count, mass);
    o->begin[0] = 0;
    o->upto[0] = (dsc_mass){0, 0};
    for (int s = 0; s < DSC_RATIO_SLOTS; s++) {
        end[s] = o->begin[s];
        o->begin[s + 1] = o->begin[s] + count[s];
        o->upto[s + 1] =
            (dsc_mass){o->upto[s].draft + mass[s].draft, o->upto[s].target + mass[s].target};
    }
    for (size_t x = 0; x < base->vocab; x++)
        o->token[end[o->slot[x]]++] = (dsc_mass){m->draft[x], m->target[x]};
    m->ordered = true;
}

static dsc_mass below_ordered(const dsc_rows_order *o, double at)
{
    if (!(at > 0))
        return o->upto[1];
    const int slot = dsc_ratio_slot(at);
    dsc_mass sum = {0, 0};
    for (uint32_t i = o->begin[slot]; i < o->begin[slot + 1]; i++) {
        const double in = o->token[i].target <= at * o->token[i].draft ? 1. : 0.;
        sum.draft += in * o->token[i].draft;
        sum.target += in * o->token[i].target;
    }
    return (dsc_mass){o->upto[slot].draft + sum.draft, o->upto[slot].target + sum.target};
}

static dsc_mass overlap_below(dsc_overlap *m, double at)
{
    const dsc_rows_overlap *r = (const dsc_rows_overlap *)m;
    if (r->ordered)
        return below_ordered(r->order, at);
    return r->draft ? masses_below(r->draft, r->target, m->vocab, at) : (dsc_mass){0, 0};
}

double dsc_overlap_curve(dsc_overlap *m, double c)
{
    const dsc_mass below = m->type->overlap_below(m, c);
    return fmax((1 - below.target) - c * (1 - below.draft), 0);
}

// --- residuals -----------------------------------------------------------------------------------

void dsc_residual_above(dsc_residual *r, double c)
{
    *r = (dsc_residual){.lines = 2, .from = {0, c}, .keep = {0, 1}, .take = {0, c}};
    if (!(c > 0))
        *r = (dsc_residual){.lines = 1, .keep = {1}};
}

enum { CHUNK = 128 };

// A residual with two lines, for n <= CHUNK tokens; returns the sum.
DSC_FOR_EVERY_PROCESSOR
static double fill_two(const dsc_residual *r, const double *draft, const double *target, size_t n,
                       double *out)
{
    const double from = r->from[1], keep[2] = {r->keep[0], r->keep[1]};
    const double take[2] = {r->take[0], r->take[1]};
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++) {
        const double d = draft[x], t = target[x];
        const double low = keep[0] * t - take[0] * d, high = keep[1] * t - take[1] * d;
        const double left = from * d <= t ? high : low;
        out[x] = left * (left > 0 ? 1. : 0.);
        sum += out[x];
    }
    return sum;
}

// Fills the residual of a curve with any number of lines, and returns its sum.
DSC_FOR_EVERY_PROCESSOR
static double fill_lines(const dsc_residual *r, const double *draft, const double *target, size_t n,
                         double *out)
{
    int64_t line[CHUNK] = {0};
    double sum = 0;
    for (size_t j = 1; j < r->lines; j++) {
        const double from = r->from[j];
#pragma omp simd
        for (size_t x = 0; x < n; x++)
            line[x] += from * draft[x] <= target[x] ? 1 : 0;
    }
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++) {
        const double left = r->keep[line[x]] * target[x] - r->take[line[x]] * draft[x];
        out[x] = left * (left > 0 ? 1. : 0.);
        sum += out[x];
    }
    return sum;
}

double dsc_residual_fill(const dsc_residual *r, const double *draft, const double *target,
                         size_t vocab, double *out)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x += CHUNK) {
        const size_t n = vocab - x < CHUNK ? vocab - x : CHUNK;
        sum += (r->lines == 2 ? fill_two : fill_lines)(r, draft + x, target + x, n, out + x);
    }
    return sum;
}

// Fills the residual where there is no draft distribution.
static void fill_kept(const dsc_residual *r, const double *target, size_t vocab, double *out)
{
    const double keep = r->keep[r->lines - 1]; // every ratio is infinite
    for (size_t x = 0; x < vocab; x++)
        out[x] = keep * target[x];
}

static double residual(dsc_overlap *m, const dsc_residual *r, double u, int32_t *token)
{
    const dsc_rows_overlap *rows = (const dsc_rows_overlap *)m;
    if (rows->draft)
        dsc_residual_fill(r, rows->draft, rows->target, m->vocab, rows->room);
    else
        fill_kept(r, rows->target, m->vocab, rows->room);
    for (size_t i = 0; i < r->own; i++)
        rows->room[r->token[i]] = r->residual ? r->residual[i] : 0;
    const double sum = dsc_row_sum(rows->room, m->vocab);
    if (token && sum > 0)
        *token = (int32_t)dsc_row_find(rows->room, m->vocab, u * sum);
    return sum;
}

static const dsc_overlap_type rows_type = {
    .overlap_below = overlap_below, .prepare = order_rows, .residual = residual};

void dsc_rows_overlap_set(dsc_rows_overlap *m, const double *draft, const double *target,
                          size_t vocab, double *room)
{
    *m = (dsc_rows_overlap){{&rows_type, vocab}, draft, target, room, NULL, false};
}

// SPDX-License-Identifier: Apache-2.0
// Distributions with an unlisted tail; theory/partial.h.
//
// Tokens are listed in both rows (B), only in the draft's (D), only in the target's (T), or in
// neither (N). d and t are listed masses; v <= v_most is an unlisted draft mass and u <= u_most an
// unlisted target mass. v sums to draft_tail over T and N, u to target_tail over D and N.
//
// In W(c) = 1 - sum over x of min(target, c draft), B is known. The rest depends on how much target
// mass the unlisted draft mass covers, and vice versa.
//
// High: nothing is covered. (u - c d)+ <= u, (t - c v)+ <= t, (u - c v)+ <= u, so outside B at most
// all the target mass is left: one atom contains it, and another the draft mass.
//
// Low: as much as possible is covered. Covering is a flow from the draft's tail (capacity c
// draft_tail) and from D (sum of min(u_most, c d)) to T (sum of min(t, c v_most)) and to the
// target's tail (target_tail), where every pair but D to T is connected. By its minimum cut,
// outside B at least
//
//   F(c) = max( sum over T of (t - c v_most)+,
//               t(T) - c draft_tail + (target_tail - sum over D of min(u_most, c d))+ )
//
// is left in every completion. F is a maximum of convex functions, F(0) is the target mass outside
// B, and F'(0) >= -(draft mass outside B): it is the curve of a pair of distributions again.
// Merging all tokens outside B into one (data processing) gives only the weaker bound (t - c d of
// the whole)+.
#include "theory/partial.h"

#include "base/order.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/otm.h"
#include "theory/single.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define NO_TAIL 1e-200

typedef struct entry {
    int32_t id;
    double mass;
} entry;

// A validated row with sum 1, sorted by id.
typedef struct list {
    entry *entry;
    size_t count;
    double tail, most; // most <= tail
} list;

static int by_id(const void *a, const void *b)
{
    int32_t x = ((const entry *)a)->id, y = ((const entry *)b)->id;
    return (x > y) - (x < y);
}

static int check_row(const char *what, const dsc_partial_row *row, size_t vocab, double *sum,
                     dsc_error *err)
{
    *sum = row->tail;
    if (!(row->tail >= 0 && row->most >= 0) || isinf(row->tail))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the tail is %g and its largest mass %g; both must be >= 0", what,
                        row->tail, row->most);
    for (size_t i = 0; i < row->count; i++) {
        if (row->id[i] < 0 || (size_t)row->id[i] >= vocab)
            return dsc_fail(err, DSC_EINPUT, "%s: token %d is not in [0, %zu)", what, row->id[i],
                            vocab);
        if (!(row->probability[i] >= 0) || isinf(row->probability[i]))
            return dsc_fail(err, DSC_EINPUT, "%s: token %d has probability %g", what, row->id[i],
                            row->probability[i]);
        *sum += row->probability[i];
    }
    if (!(fabs(*sum - 1) <= DSC_PROBS_TOLERANCE))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: listed tokens and tail sum to %.9g; the sum must be 1 within %g", what,
                        *sum, DSC_PROBS_TOLERANCE);
    return DSC_OK;
}

// The caller frees *l also on failure.
static int load(list *l, const char *what, const dsc_partial_row *row, size_t vocab, dsc_error *err)
{
    double sum;
    int rc = check_row(what, row, vocab, &sum, err);
    if (!rc)
        rc = dsc_new(&l->entry, row->count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < row->count; i++)
        l->entry[i] = (entry){row->id[i], row->probability[i] / sum};
    l->count = row->count;
    qsort(l->entry, l->count, sizeof *l->entry, by_id);
    for (size_t i = 1; i < l->count; i++)
        if (l->entry[i].id == l->entry[i - 1].id)
            return dsc_fail(err, DSC_EINPUT, "%s: token %d is listed twice", what, l->entry[i].id);
    l->tail = row->tail / sum;
    l->most = row->most > 0 ? fmin(row->most / sum, l->tail) : l->tail;
    if (l->tail > l->most * (double)(vocab - l->count) + DSC_PROBS_TOLERANCE)
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: the tail of %g exceeds the largest mass that %zu unlisted tokens can have", what,
            l->tail, vocab - l->count);
    if (l->tail < NO_TAIL || l->count == vocab)
        l->tail = l->most = 0;
    return DSC_OK;
}

// Atoms of a curve under construction: draft[count], target[count].
typedef struct rows {
    double *draft, *target;
    size_t count;
} rows;

static void emit(rows *r, double draft, double target)
{
    r->draft[r->count] = fmax(draft, 0);
    r->target[r->count++] = fmax(target, 0);
}

// The tokens outside B, in the order in which a growing c passes them.
typedef struct outside {
    double *t, *t_from; // [ts], [ts + 1] T ascending; t_from[i]: mass from the i-th on
    double *d, *d_from; // [ds], [ds + 1] D descending
    size_t ts, ds;
    double draft_tail, target_tail, v_most, u_most;
} outside;

static int descending(const void *a, const void *b)
{
    return dsc_by_real(b, a);
}

// Puts B into `r`, the other tokens into `o`.
static void divide(const list *draft, const list *target, rows *r, outside *o)
{
    const entry *d = draft->entry, *t = target->entry;
    const entry *d_end = d + draft->count, *t_end = t + target->count;
    while (d < d_end || t < t_end) {
        if (t == t_end || (d < d_end && d->id < t->id)) {
            o->d[o->ds] = d++->mass;
            o->ds += o->d[o->ds] > 0;
        } else if (d == d_end || t->id < d->id) {
            o->t[o->ts] = t++->mass;
            o->ts += o->t[o->ts] > 0;
        } else {
            emit(r, d++->mass, t++->mass);
        }
    }
    qsort(o->t, o->ts, sizeof *o->t, dsc_by_real);
    qsort(o->d, o->ds, sizeof *o->d, descending);
    o->t_from[o->ts] = o->d_from[o->ds] = 0;
    for (size_t i = o->ts; i-- > 0;)
        o->t_from[i] = o->t_from[i + 1] + o->t[i];
    for (size_t i = o->ds; i-- > 0;)
        o->d_from[i] = o->d_from[i + 1] + o->d[i];
    o->draft_tail = draft->tail;
    o->target_tail = target->tail;
    o->v_most = draft->most;
    o->u_most = target->most;
}

// A point on F: c, how many of T and of D are passed (t <= c v_most, u_most <= c d), and whether
// the target's tail is not yet covered by D alone.
typedef struct place {
    double c;
    size_t t, d;
    bool open;
} place;

// The two functions whose maximum is F, and their slopes to the right. [0]: T; [1]: the tails.
static void look(const outside *o, const place *p, double value[2], double slope[2])
{
    slope[0] = -o->v_most * (double)(o->ts - p->t);
    value[0] = o->t_from[p->t] + p->c * slope[0];
    double uncovered = o->target_tail - o->u_most * (double)p->d - p->c * o->d_from[p->d];
    slope[1] = -o->draft_tail - (p->open ? o->d_from[p->d] : 0);
    value[1] = o->t_from[0] - p->c * o->draft_tail + (p->open ? fmax(uncovered, 0) : 0);
}

// Moves to the next change of a slope; false when there is none.
static bool go_on(const outside *o, place *p)
{
    double t_at = p->t < o->ts && o->v_most > 0 ? o->t[p->t] / o->v_most : INFINITY;
    double d_at = p->open && p->d < o->ds ? o->u_most / o->d[p->d] : INFINITY;
    double covered_at = p->open && p->d < o->ds
                            ? (o->target_tail - o->u_most * (double)p->d) / o->d_from[p->d]
                            : INFINITY;
    double next = fmin(t_at, fmin(d_at, covered_at));
    if (next == INFINITY)
        return false;
    p->c = fmax(p->c, next);
    if (next == covered_at)
        p->open = false;
    else if (next == d_at)
        p->d++;
    else
        p->t++;
    return true;
}

// The atoms of F: where its slope rises by m, there is an atom of draft mass m and ratio c.
static void atoms_of_low(const outside *o, rows *r)
{
    place p = {.open = o->target_tail > 0};
    double value[2], slope[2];
    int top = 1; // the function that is F here
    look(o, &p, value, slope);
    emit(r, o->d_from[0] + o->draft_tail + slope[top], 0);
    for (;;) {
        place next = p;
        bool more = go_on(o, &next);
        double rise = slope[!top] - slope[top];
        double cross = rise > 0 ? p.c + fmax(value[top] - value[!top], 0) / rise : INFINITY;
        if (cross < INFINITY && (!more || cross <= next.c)) {
            emit(r, rise, cross * rise);
            top = !top;
        }
        if (!more)
            break;
        double before = slope[top];
        p = next;
        look(o, &p, value, slope);
        if (slope[top] > before)
            emit(r, slope[top] - before, p.c * (slope[top] - before));
    }
    emit(r, 0, value[top]); // the slope is now 0
}

int dsc_partial_curves(const dsc_partial_row *draft, const dsc_partial_row *target, size_t vocab,
                       dsc_curve *low, dsc_curve *high, dsc_error *err)
{
    list d = {0}, t = {0};
    double *memory = NULL;
    *low = *high = (dsc_curve){0};
    int rc = load(&d, "draft", draft, vocab, err);
    if (!rc)
        rc = load(&t, "target", target, vocab, err);
    // Number of atoms: one per entry, per change of slope (as many and one more) and per crossing
    // between those, and two ends.
    size_t entries = d.count + t.count, most = 3 * entries + 8;
    if (!rc)
        rc = dsc_new(&memory, 2 * most + 4 * (entries + 1), err);
    if (!rc) {
        rows r = {memory, memory + most, 0};
        double *rest = memory + 2 * most;
        outside o = {.t = rest,
                     .t_from = rest + entries + 1,
                     .d = rest + 2 * (entries + 1),
                     .d_from = rest + 3 * (entries + 1)};
        divide(&d, &t, &r, &o);
        size_t both = r.count;
        atoms_of_low(&o, &r);
        rc = dsc_curve_init(low, r.draft, r.target, r.count, err);
        r.count = both;
        emit(&r, o.d_from[0] + o.draft_tail, 0);
        emit(&r, 0, o.t_from[0] + o.target_tail);
        if (!rc)
            rc = dsc_curve_init(high, r.draft, r.target, r.count, err);
    }
    if (rc)
        dsc_curve_fini(low);
    free(d.entry);
    free(t.entry);
    free(memory);
    return rc;
}

// From W_low <= W <= W_high, where a smaller W means more acceptance, follow the intervals:
// - single = 1 - W(1).
// - otm: P^k is the maximum of its tangents, and the maximum of c P(A) - Q(A) over token sets is
//   c - 1 + W(c); so alpha_k = min over s in [0, 1] of 2 - c - W(c) + (k - 1) s^k, c = k s^(k-1).
// - k-Seq: with a = acceptance, beta = 1 - (1 - a)^(1/k), rho = a/beta falls in a, so
//   a = 1 - W(rho(a)) has one root, which falls when W grows; rho then grows.
// - SpecInfer: c + W(c) grows in c (the slope of W is at least -1) and in W, so c_i lies between
//   the iterates of the two curves, and W(c_{k+1}) between W_low at the upper and W_high at the
//   lower end. The result is not monotone in W, because the place of evaluation moves with the
//   curve; but it lies between the acceptance of one draft and the optimum.
dsc_partial dsc_partial_between(const dsc_curve *low, const dsc_curve *high, int k)
{
    dsc_kseq most = dsc_kseq_best(low, k), least = dsc_kseq_best(high, k);
    dsc_partial b = {.k = k,
                     .single = {dsc_single_acceptance(high), dsc_single_acceptance(low)},
                     .kseq = {least.accept, most.accept},
                     .kseq_rho = {most.rho, least.rho},
                     .otm = {dsc_otm_value(high, k).accept, dsc_otm_value(low, k).accept}};
    dsc_interval c = {0, 0}, w = {1, 1};
    for (int i = 0; i < k; i++) {
        c = (dsc_interval){c.low + dsc_curve_w(low, c.low), c.high + dsc_curve_w(high, c.high)};
        w = (dsc_interval){dsc_curve_w(low, c.high), dsc_curve_w(high, c.low)};
    }
    b.specinfer = (dsc_interval){fmax(1 - w.high, b.single.low), fmin(1 - w.low, b.otm.high)};
    return b;
}

int dsc_partial_acceptance(const dsc_partial_row *draft, const dsc_partial_row *target,
                           size_t vocab, const int *k, size_t count, dsc_partial *out,
                           dsc_error *err)
{
    dsc_curve low, high;
    int rc = dsc_partial_curves(draft, target, vocab, &low, &high, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        out[i] = dsc_partial_between(&low, &high, k[i]);
    dsc_curve_fini(&low);
    dsc_curve_fini(&high);
    return DSC_OK;
}

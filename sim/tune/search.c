// SPDX-License-Identifier: Apache-2.0
// Coordinate search is Algorithm 1 of Ouroboros (Zhao et al. 2024, appendix B.2): the best value of
// the first parameter with the others fixed, then of the second, and so on. That algorithm makes
// one round; this one repeats until a round changes nothing, so its result is the best along every
// axis through it, and the best of all points when the axes do not interact.
//
// Golden section on integers is Fibonacci search (Kiefer 1953, "Sequential minimax search for a
// maximum"): the fewest evaluations that always find the maximum of a function that strictly rises
// and then strictly falls. The interval has a Fibonacci number of steps; points after the last
// value are worse than all.
#include "sim/tune/search.h"

#include <math.h>
#include <stdlib.h>

static bool better(double a, double b)
{
    return a > b || (isnan(b) && !isnan(a));
}

// Evaluates n points and keeps the first of the best.
static int best_of(const dsc_search *s, const size_t *point, size_t n, double *value,
                   dsc_search_result *out, dsc_error *err)
{
    int rc = s->evaluate(s->user, point, n, value, err);
    for (size_t i = 0; i < n && !rc; i++)
        if (better(value[i], out->value)) {
            out->value = value[i];
            out->best = point[i];
        }
    return rc;
}

static size_t grid_points(const dsc_search *s)
{
    size_t n = 1;
    for (size_t a = 0; a < s->axes; a++)
        n *= s->count[a];
    return n;
}

static int grid(const dsc_search *s, size_t *point, double *value, dsc_search_result *out,
                dsc_error *err)
{
    size_t n = grid_points(s);
    for (size_t i = 0; i < n; i++)
        point[i] = i;
    return best_of(s, point, n, value, out, err);
}

// Moves `out` to the best point of the line through it along axis a; stays among equal ones.
static int line(const dsc_search *s, size_t a, size_t *point, double *value, dsc_search_result *out,
                dsc_error *err)
{
    size_t stride = 1;
    for (size_t b = a + 1; b < s->axes; b++)
        stride *= s->count[b];
    size_t first = out->best - out->best / stride % s->count[a] * stride;
    for (size_t i = 0; i < s->count[a]; i++)
        point[i] = first + i * stride;
    return best_of(s, point, s->count[a], value, out, err);
}

static int coordinate(const dsc_search *s, size_t *point, double *value, dsc_search_result *out,
                      dsc_error *err)
{
    point[0] = 0;
    for (size_t a = 0; a < s->axes; a++)
        point[0] = point[0] * s->count[a] + s->start[a];
    out->best = point[0];
    int rc = best_of(s, point, 1, value, out, err);
    for (bool changed = true; changed && !rc; out->rounds++) {
        size_t before = out->best;
        for (size_t a = 0; a < s->axes && !rc; a++)
            rc = line(s, a, point, value, out, err);
        changed = out->best != before;
    }
    return rc;
}

typedef struct section {
    const dsc_search *s;
    double *value; // [n]
    bool *asked;   // [n]
    size_t n;
} section;

// Index i of the values, from 1.
static int ask(const section *c, size_t i, double *value, dsc_error *err)
{
    size_t point = i - 1;
    *value = -INFINITY;
    if (point >= c->n)
        return DSC_OK;
    int rc = DSC_OK;
    if (!c->asked[point])
        rc = c->s->evaluate(c->s->user, &point, 1, &c->value[point], err);
    c->asked[point] = true;
    if (!isnan(c->value[point]))
        *value = c->value[point];
    return rc;
}

// The best evaluated point, and whether all evaluated points rise and then fall.
static void look(const section *c, dsc_search_result *out)
{
    bool falls = false;
    size_t last = c->n;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->asked[i])
            continue;
        if (better(c->value[i], out->value)) {
            out->value = c->value[i];
            out->best = i;
        }
        if (last < c->n && falls && better(c->value[i], c->value[last]) &&
            out->shape != DSC_SHAPE_DIP) {
            out->shape = DSC_SHAPE_DIP;
            out->at = last;
        } else if (last < c->n && c->value[i] == c->value[last] && out->shape == DSC_SHAPE_PEAK) {
            out->shape = DSC_SHAPE_FLAT;
            out->at = last;
        }
        falls |= last < c->n && better(c->value[last], c->value[i]);
        last = i;
    }
}

static int golden(const section *c, dsc_search_result *out, dsc_error *err)
{
    enum { MOST = 80 };
    size_t fibonacci[MOST] = {1, 2}, k = 1, low = 0; // the maximum is in (low, low + fibonacci[k])
    while (fibonacci[k] < c->n + 1) {
        k++;
        fibonacci[k] = fibonacci[k - 1] + fibonacci[k - 2];
    }
    int rc = DSC_OK;
    double left = 0, right = 0;
    for (; k > 1 && !rc; k--) {
        rc = ask(c, low + fibonacci[k - 2], &left, err);
        rc = rc ?: ask(c, low + fibonacci[k - 1], &right, err);
        if (right > left)
            low += fibonacci[k - 2];
    }
    rc = rc ?: ask(c, low + 1, &left, err);
    if (!rc)
        look(c, out);
    return rc;
}

static int one_axis(const dsc_search *s, double *value, dsc_search_result *out, dsc_error *err)
{
    bool *asked;
    size_t n = grid_points(s);
    int rc = dsc_new(&asked, n, err);
    if (rc)
        return rc;
    const section c = {s, value, asked, n};
    rc = golden(&c, out, err);
    free(asked);
    return rc;
}

int dsc_search_run(const dsc_search *s, dsc_search_result *out, dsc_error *err)
{
    size_t *point;
    double *value = NULL;
    *out = (dsc_search_result){.value = NAN};
    size_t room = s->kind == DSC_SEARCH_COORDINATE ? 1 : grid_points(s);
    for (size_t a = 0; a < s->axes; a++)
        room = room > s->count[a] ? room : s->count[a];
    int rc = dsc_new(&point, room, err);
    rc = rc ?: dsc_new(&value, room, err);
    if (!rc)
        rc = s->kind == DSC_SEARCH_GRID         ? grid(s, point, value, out, err)
             : s->kind == DSC_SEARCH_COORDINATE ? coordinate(s, point, value, out, err)
                                                : one_axis(s, value, out, err);
    free(point);
    free(value);
    return rc;
}

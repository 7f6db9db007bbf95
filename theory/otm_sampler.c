// SPDX-License-Identifier: Apache-2.0
// An exact optimal-transport sampler: labels by ratio (otm_levels.c), a race among labels
// (otm_race.c).
//
// It is lossless by construction: wins of a label beyond its share are thinned, so the accepted
// flow of each token is at most the target's mass, and the missing mass is sampled from the
// residual.
#include "theory/otm_sampler.h"

#include "theory/otm_internal.h"
#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct dsc_otm_sampler {
    dsc_otm_fit fit;
    dsc_race_work *work;
};

int dsc_otm_sampler_new(dsc_otm_sampler **out, dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (!rc && (rc = dsc_race_work_new(&(*out)->work, err))) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

void dsc_otm_sampler_free(dsc_otm_sampler *s)
{
    if (s)
        free(s->work);
    free(s);
}

DSC_FOR_EVERY_PROCESSOR
static size_t count_bad(const double *row, size_t vocab)
{
    int64_t bad = 0;
#pragma omp simd reduction(+ : bad)
    for (size_t x = 0; x < vocab; x++)
        bad += row[x] >= 0 && row[x] < INFINITY ? 0 : 1;
    return (size_t)bad;
}

static int sum_row(const char *what, const double *row, size_t vocab, double *sum, dsc_error *err)
{
    for (size_t x = 0; count_bad(row, vocab) && x < vocab; x++)
        if (!(row[x] >= 0 && row[x] < INFINITY))
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is %g", what, x, row[x]);
    *sum = dsc_row_sum(row, vocab);
    if (!(*sum > 0 && *sum < INFINITY))
        return dsc_fail(err, DSC_EINPUT, "%s: the sum is %g", what, *sum);
    return DSC_OK;
}

int dsc_otm_sampler_build_rough(dsc_otm_sampler *s, const double *draft, const double *target,
                                size_t vocab, int k, int iterations, dsc_error *err)
{
    dsc_rows_overlap rows;
    dsc_mass sum = {0, 0};
    dsc_rows_overlap_set(&rows, draft, target, vocab, NULL);
    int rc = sum_row("draft row", draft, vocab, &sum.draft, err);
    rc = rc ? rc : sum_row("target row", target, vocab, &sum.target, err);
    rc = rc ? rc : dsc_otm_levels(&s->fit, &rows.base, sum, k, err);
    if (!rc)
        dsc_race_fit(&s->fit.race, iterations, s->work);
    return rc;
}

int dsc_otm_sampler_build(dsc_otm_sampler *s, const double *draft, const double *target,
                          size_t vocab, int k, dsc_error *err)
{
    return dsc_otm_sampler_build_rough(s, draft, target, vocab, k, DSC_RACE_ITERATIONS, err);
}

int dsc_otm_sampler_build_float(dsc_otm_sampler *s, dsc_overlap *rows, dsc_mass sum, int k,
                                bool next, dsc_error *err)
{
    int rc = dsc_otm_levels(&s->fit, rows, sum, k, err);
    if (!rc)
        dsc_race_fit_float(&s->fit.race, next, s->work);
    return rc;
}

enum { QUESTIONS = 32 }; // about the number that the levels of a model's distributions need

int dsc_otm_sampler_build_overlap(dsc_otm_sampler *s, dsc_overlap *m, int k, dsc_error *err)
{
    const dsc_mass one = {1, 1};
    int rc = DSC_OK;
    m->type->prepare(m, QUESTIONS);
    if (m->type->look_up) { // looks up at once what the levels will need
        rc = dsc_otm_levels(&s->fit, m, one, k, err);
        m->type->look_up(m);
    }
    rc = rc ? rc : dsc_otm_levels(&s->fit, m, one, k, err);
    if (!rc)
        dsc_race_fit(&s->fit.race, DSC_RACE_ITERATIONS, s->work);
    return rc;
}

double dsc_otm_sampler_accept(const dsc_otm_sampler *s)
{
    return s->fit.race.accept;
}

double dsc_otm_sampler_gap(const dsc_otm_sampler *s)
{
    return fmax(0, s->fit.alpha_high - s->fit.race.accept);
}

// --- labels --------------------------------------------------------------------------------------

// The two labels that a token may get, with their probabilities.
typedef struct labels {
    const dsc_race_level *level[2];
    bool inside[2];
    double share[2];
} labels;

static labels labels_of(const dsc_otm_sampler *s, double draft_x, double target_x)
{
    const dsc_race *r = &s->fit.race;
    double ratio = target_x / draft_x * (s->fit.sum.draft / s->fit.sum.target), up = 0;
    size_t j = 0;
    while (j + 1 < r->levels && r->level[j + 1].ratio <= ratio)
        j++;
    size_t next = j + 1 < r->levels ? j + 1 : j;
    if (next > j)
        up = (ratio - r->level[j].ratio) / (r->level[next].ratio - r->level[j].ratio);
    return (labels){
        {&r->level[j], &r->level[next]}, {j < r->inside, next < r->inside}, {1 - up, up}};
}

// At time t of the race of one side: Pr(label of this side, and its clock has not rung yet), and
// the rate at which it rings and is kept.
static double waiting(const labels *l, bool inside, double t, double *rings)
{
    double sum = 0;
    *rings = 0;
    for (int i = 0; i < 2; i++)
        if (l->inside[i] == inside && l->share[i] > 0) {
            double w = exp(l->level[i]->log_weight), e = l->share[i] * exp(-t * w);
            sum += e;
            *rings += l->level[i]->kept * w * e;
        }
    return sum;
}

static double share_inside(const labels *l)
{
    return (l->inside[0] ? l->share[0] : 0) + (l->inside[1] ? l->share[1] : 0);
}

// The accepted share of a token is linear in its ratio between the levels and constant beyond the
// last.
void dsc_otm_sampler_residual(const dsc_otm_sampler *s, dsc_residual *out)
{
    const dsc_race *r = &s->fit.race;
    *out = (dsc_residual){.lines = 1};
    if (!(r->accept < 1))
        return; // nothing is left, despite rounding
    out->lines = r->levels;
    for (size_t j = 0; j < r->levels; j++) {
        const dsc_race_level *l = &r->level[j], *next = l + 1;
        const double at = l->flow * l->kept;
        double slope = 0;
        if (j + 1 < r->levels)
            slope = (next->flow * next->kept - at) / (next->ratio - l->ratio);
        out->from[j] = l->ratio;
        out->keep[j] = 1 - slope;
        out->take[j] = at - slope * l->ratio;
    }
}

// --- choosing ------------------------------------------------------------------------------------

int dsc_otm_sampler_choose(const dsc_otm_sampler *s, const double *draft, const double *target,
                           const double *uniform)
{
    const dsc_race *r = &s->fit.race;
    double first[2] = {-log1p(-uniform[2 * r->k]), INFINITY}; // inside, the clock of rejection
    int winner[2] = {-1, -1};
    double kept[2] = {0, 0};
    bool outside = false;
    for (int i = 0; i < r->k; i++) {
        labels l = labels_of(s, draft[i], target[i]);
        int pick = uniform[2 * i] < l.share[1];
        int side = l.inside[pick] ? 0 : 1;
        double rings = -log1p(-uniform[2 * i + 1]) / exp(l.level[pick]->log_weight);
        outside = outside || side;
        if (rings < first[side]) {
            first[side] = rings;
            winner[side] = i;
            kept[side] = l.level[pick]->kept;
        }
    }
    return uniform[2 * r->k + 1] < kept[outside] ? winner[outside] : -1;
}

void dsc_otm_sampler_dist(const dsc_otm_sampler *s, const double *draft, const double *target,
                          double *probability)
{
    const dsc_race *r = &s->fit.race;
    labels l[64];
    double wait[64], rings[64];
    for (int i = 0; i < r->k; i++) {
        l[i] = labels_of(s, draft[i], target[i]);
        probability[i] = 0;
    }
    for (int side = 0; side < 2; side++) {
        const struct dsc_race_grid *g = &r->grid[side];
        for (size_t n = 0; n < g->count; n++) {
            double weight = g->weight[n] * (side ? 1 : exp(-g->t[n]));
            for (int i = 0; i < r->k; i++)
                wait[i] =
                    waiting(&l[i], !side, g->t[n], &rings[i]) + (side ? share_inside(&l[i]) : 0);
            for (int i = 0; i < r->k; i++) {
                double others = 1;
                for (int j = 0; j < r->k; j++)
                    others *= j == i ? 1 : wait[j];
                probability[i] += weight * rings[i] * others;
            }
        }
    }
    probability[r->k] = 1;
    for (int i = 0; i < r->k; i++)
        probability[r->k] -= probability[i];
}

enum { LANES = 16 }; // nodes per vector

typedef struct nodes {
    double t[LANES], weight[LANES], others[LANES]; // of a dsc_race_grid; weight 0: unused
    double wait[LANES];                            // mass of y whose clock has not rung
    double term[LANES]; // k times the weighted rate at which it rings and is kept
} nodes;

DSC_FOR_EVERY_PROCESSOR
static void wait_at(nodes *a, const labels *l, double mass, int side, int k)
{
    double outside = side ? mass * share_inside(l) : 0, rings[LANES] = {0};
    for (int n = 0; n < LANES; n++)
        a->wait[n] = outside;
    for (int i = 0; i < 2; i++) {
        if (l->inside[i] == side || !(l->share[i] > 0))
            continue;
        double w = exp(l->level[i]->log_weight), kept = l->level[i]->kept;
#pragma omp simd
        for (int n = 0; n < LANES; n++) {
            double e = mass * l->share[i] * dsc_fast_exp(-a->t[n] * w);
            a->wait[n] += e;
            rings[n] += kept * w * e;
        }
    }
#pragma omp simd
    for (int n = 0; n < LANES; n++) {
        double others = a->others[n] - a->wait[n], goes_on = side ? 1 : dsc_fast_exp(-a->t[n]);
        a->others[n] = others * (others > 0 ? 1 : 0);
        a->term[n] = a->weight[n] * goes_on * rings[n] * k;
    }
}

// Adds to dist[m] the sums over nodes of k C(k-1, m-1) term wait^(m-1) others^(k-m).
DSC_FOR_EVERY_PROCESSOR
static void add_terms(nodes *a, int k, double *dist)
{
    double power[64][LANES]; // of others
    for (int n = 0; n < LANES; n++)
        power[0][n] = 1;
    for (int i = 1; i < k; i++)
#pragma omp simd
        for (int n = 0; n < LANES; n++)
            power[i][n] = power[i - 1][n] * a->others[n];
    for (int m = 1; m <= k; m++) {
        double sum = 0, next = (double)(k - m) / m;
#pragma omp simd reduction(+ : sum)
        for (int n = 0; n < LANES; n++) {
            sum += a->term[n] * power[k - m][n];
            a->term[n] *= a->wait[n] * next;
        }
        dist[m] += sum;
    }
}

static void add_side(const dsc_race *r, const labels *l, double mass, int side, double *dist)
{
    const struct dsc_race_grid *g = &r->grid[side];
    for (size_t first = 0; first < g->count; first += LANES) {
        size_t count = g->count - first < LANES ? g->count - first : LANES;
        nodes a = {.t = {0}};
        memcpy(a.t, g->t + first, count * sizeof *a.t);
        memcpy(a.weight, g->weight + first, count * sizeof *a.t);
        memcpy(a.others, g->others + first, count * sizeof *a.t);
        wait_at(&a, l, mass, side, r->k);
        add_terms(&a, r->k, dist);
    }
}

// m of the k draws are y; the other k - m are not y and have not rung when one of the m rings.
void dsc_otm_sampler_survivors(const dsc_otm_sampler *s, double draft_y, double target_y,
                               double *dist)
{
    const dsc_race *r = &s->fit.race;
    double mass = draft_y / s->fit.sum.draft, target = target_y / s->fit.sum.target;
    memset(dist, 0, ((size_t)r->k + 1) * sizeof *dist);
    dist[0] = 1;
    if (!(draft_y > 0))
        return;
    labels l = labels_of(s, draft_y, target_y);
    for (int side = 0; side < 2; side++)
        add_side(r, &l, mass, side, dist);
    double accepted = 0;
    for (int m = 1; m <= r->k; m++)
        accepted += dist[m];
    double whole =
        fmax(target, accepted); // for a rare token, rounding may accept more than its mass
    for (int m = 1; m <= r->k; m++)
        dist[m] /= whole;
    dist[0] = whole > accepted ? 1 - accepted / whole : 0;
}

// SPDX-License-Identifier: Apache-2.0
// Fits the random intercept of request_effect.h by EM. The expected counts of each position at each
// node of the grid are the sufficient statistics of the E-step; the M-step is Newton's method on a
// logistic regression of those, whose Hessian is an arrow: positions on the diagonal, sd at its
// tip.
#include "theory/request_effect.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 241, MOST_ITERATIONS = 2000, NEWTON = 3 };
static const double reach = 6, widest = 25; // of the grid; of an intercept
static const double enough = 1e-8;          // change of a parameter in the last iteration

// The grid of z, and the log-probabilities of a position at its nodes.
typedef struct grid {
    double z[NODES], weight[NODES];
    double accept[DSC_EFFECT_POSITIONS][NODES], reject[DSC_EFFECT_POSITIONS][NODES];
} grid;

// Expected counts at the nodes, summed over requests.
typedef struct expected {
    double at_risk[DSC_EFFECT_POSITIONS][NODES], accepted[DSC_EFFECT_POSITIONS][NODES];
} expected;

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static void lay_nodes(grid *g)
{
    double sum = 0;
    for (int q = 0; q < NODES; q++) {
        g->z[q] = reach * (2.0 * q / (NODES - 1) - 1);
        sum += g->weight[q] = exp(-g->z[q] * g->z[q] / 2);
    }
    for (int q = 0; q < NODES; q++)
        g->weight[q] /= sum;
}

static void set_rates(grid *g, const dsc_request_effect *e)
{
    for (int j = 0; j < e->positions; j++)
        for (int q = 0; q < NODES; q++) {
            const double x = e->intercept[j] + e->sd * g->z[q];
            g->accept[j][q] = -log1p(exp(-x));
            g->reject[j][q] = -log1p(exp(x));
        }
}

// Posterior probabilities of the nodes given one request's counts; returns ln of its likelihood.
static double posterior(const grid *g, const dsc_request_effect *e,
                        const dsc_conditional_count *count, double p[NODES])
{
    double top = -INFINITY, sum = 0;
    for (int q = 0; q < NODES; q++)
        p[q] = 0;
    for (int j = 0; j < e->positions; j++) {
        const double yes = (double)count[j].accepted, no = (double)count[j].at_risk - yes;
        for (int q = 0; q < NODES; q++)
            p[q] += yes * g->accept[j][q] + no * g->reject[j][q];
    }
    for (int q = 0; q < NODES; q++)
        top = p[q] > top ? p[q] : top;
    for (int q = 0; q < NODES; q++)
        sum += p[q] = g->weight[q] * exp(p[q] - top);
    for (int q = 0; q < NODES; q++)
        p[q] /= sum;
    return top + log(sum);
}

// ln of the likelihood without an effect. A rate of 0 or 1 has no other outcome.
static double plain_likelihood(const dsc_request_effect *e, const dsc_conditional_count *count)
{
    double sum = 0;
    for (int j = 0; j < e->positions; j++) {
        const double yes = (double)count[j].accepted, no = (double)count[j].at_risk - yes;
        sum += yes > 0 ? yes * log(e->rate[j]) : 0;
        sum += no > 0 ? no * log1p(-e->rate[j]) : 0;
    }
    return sum;
}

// Returns ln of the likelihood of all requests.
static double expect(const grid *g, const dsc_request_effect *e, const dsc_conditional_count *count,
                     int stride, size_t requests, expected *x)
{
    double p[NODES], sum = 0;
    memset(x, 0, sizeof *x);
    for (size_t i = 0; i < requests; i++, count += stride) {
        sum += posterior(g, e, count, p);
        for (int j = 0; j < e->positions; j++)
            for (int q = 0; q < NODES && count[j].at_risk; q++) {
                x->at_risk[j][q] += p[q] * (double)count[j].at_risk;
                x->accepted[j][q] += p[q] * (double)count[j].accepted;
            }
    }
    return sum;
}

// Whether both outcomes occurred, so that the position has a finite intercept.
static bool varies(const dsc_request_effect *e, int j)
{
    return e->rate[j] > 0 && e->rate[j] < 1;
}

static double bounded(double x, double most)
{
    return x < -most ? -most : x > most ? most : x;
}

static void newton_step(const grid *g, const expected *x, dsc_request_effect *e)
{
    double slope[DSC_EFFECT_POSITIONS] = {0}, bend[DSC_EFFECT_POSITIONS] = {0},
           cross[DSC_EFFECT_POSITIONS] = {0}, tip_slope = 0, tip_bend = 0;
    for (int j = 0; j < e->positions; j++)
        for (int q = 0; q < NODES && varies(e, j); q++) {
            const double z = g->z[q], h = logistic(e->intercept[j] + e->sd * z);
            const double d = x->accepted[j][q] - x->at_risk[j][q] * h,
                         v = x->at_risk[j][q] * h * (1 - h);
            slope[j] += d;
            bend[j] += v;
            cross[j] += v * z;
            tip_slope += d * z;
            tip_bend += v * z * z;
        }
    for (int j = 0; j < e->positions; j++)
        if (bend[j] > 0) {
            tip_slope -= cross[j] * slope[j] / bend[j];
            tip_bend -= cross[j] * cross[j] / bend[j];
        }
    const double turn = tip_bend > 0 ? bounded(tip_slope / tip_bend, 1) : 0;
    for (int j = 0; j < e->positions; j++)
        if (bend[j] > 0)
            e->intercept[j] = bounded(
                e->intercept[j] + bounded((slope[j] - cross[j] * turn) / bend[j], 2), widest);
    e->sd += turn;
}

// The rates without an effect, as far as drafts reached, and where the iteration starts.
static int start(const dsc_conditional_count *count, size_t requests, int positions,
                 dsc_request_effect *e, dsc_error *err)
{
    *e = (dsc_request_effect){.sd = 0.5};
    for (int j = 0; j < positions; j++) {
        double at_risk = 0, accepted = 0;
        for (size_t i = 0; i < requests; i++) {
            const dsc_conditional_count *c = &count[i * (size_t)positions + (size_t)j];
            at_risk += (double)c->at_risk;
            accepted += (double)c->accepted;
        }
        if (at_risk <= 0)
            break;
        e->rate[j] = accepted / at_risk;
        e->intercept[j] = bounded(log(e->rate[j] / (1 - e->rate[j])), widest);
        e->positions = j + 1;
    }
    return e->positions ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "no request has a draft");
}

static double largest_change(const dsc_request_effect *a, const dsc_request_effect *b)
{
    double most = fabs(a->sd - b->sd);
    for (int j = 0; j < a->positions; j++)
        most = fmax(most, fabs(a->intercept[j] - b->intercept[j]));
    return most;
}

int dsc_request_effect_fit(const dsc_conditional_count *count, size_t requests, int positions,
                           dsc_request_effect *out, dsc_error *err)
{
    if (!count || !out || !requests || positions < 1 || positions > DSC_EFFECT_POSITIONS)
        return dsc_fail(err, DSC_EUSAGE,
                        "%zu requests with %d positions; 1 or more with 1 to %d are needed",
                        requests, positions, DSC_EFFECT_POSITIONS);
    grid *g;
    expected *x = NULL;
    double now = 0, plain = 0;
    int rc = start(count, requests, positions, out, err);
    if (rc)
        return rc;
    rc = dsc_new(&g, 1, err);
    if (!rc)
        rc = dsc_new(&x, 1, err);
    if (!rc)
        lay_nodes(g);
    for (double change = 1; change > enough && out->iterations < MOST_ITERATIONS && !rc;
         out->iterations++) {
        const dsc_request_effect before = *out;
        set_rates(g, out);
        expect(g, out, count, positions, requests, x);
        for (int n = 0; n < NEWTON; n++)
            newton_step(g, x, out);
        change = largest_change(&before, out);
    }
    if (!rc) {
        set_rates(g, out);
        now = expect(g, out, count, positions, requests, x);
    }
    for (size_t i = 0; i < requests && !rc; i++)
        plain += plain_likelihood(out, count + i * (size_t)positions);
    out->sd = fabs(out->sd);
    out->gain = fmax(now - plain, 0);
    free(g);
    free(x);
    return rc;
}

double dsc_request_effect_gain(const dsc_request_effect *e, const dsc_conditional_count *count)
{
    grid g;
    double p[NODES];
    dsc_conditional_count varying[DSC_EFFECT_POSITIONS] = {{0}};
    for (int j = 0; j < e->positions; j++)
        if (varies(e, j))
            varying[j] = count[j];
    lay_nodes(&g);
    set_rates(&g, e);
    return posterior(&g, e, varying, p) - plain_likelihood(e, varying);
}

// --- the curve -----------------------------------------------------------------------------------

// Tokens per call by draft length at each node: tokens[L][q].
static void lay_tokens(const grid *g, const dsc_request_effect *e, int most,
                       double (*tokens)[NODES])
{
    for (int q = 0; q < NODES; q++) {
        double survive = 1;
        tokens[0][q] = 1;
        for (int l = 1; l <= most; l++) {
            const int j = (l < e->positions ? l : e->positions) - 1;
            survive *= logistic(e->intercept[j] + e->sd * g->z[q]);
            tokens[l][q] = tokens[l - 1][q] + survive;
        }
    }
}

static void lay_plain(const dsc_request_effect *e, int most, double *plain)
{
    double survive = 1;
    plain[0] = 1;
    for (int l = 1; l <= most; l++) {
        survive *= e->rate[(l < e->positions ? l : e->positions) - 1];
        plain[l] = plain[l - 1] + survive;
    }
}

int dsc_request_effect_curve(const dsc_request_effect *e, const dsc_conditional_count *count,
                             int stride, const double *tokens, size_t requests, int most,
                             double *plain, double *with, dsc_error *err)
{
    grid g;
    double p[NODES], all = 0, (*per_call)[NODES];
    int rc = dsc_new(&per_call, (size_t)most + 1, err);
    if (rc)
        return rc;
    lay_nodes(&g);
    set_rates(&g, e);
    lay_tokens(&g, e, most, per_call);
    lay_plain(e, most, plain);
    for (int l = 0; l <= most; l++)
        with[l] = 0; // calls
    for (size_t i = 0; i < requests; i++, count += stride) {
        posterior(&g, e, count, p);
        all += tokens[i];
        for (int l = 0; l <= most; l++)
            for (int q = 0; q < NODES; q++)
                with[l] += tokens[i] * p[q] / per_call[l][q];
    }
    for (int l = 0; l <= most; l++)
        with[l] = all / with[l];
    free(per_call);
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/reduce_row.h"

#include "theory/fast_exp.h"

#include <math.h>

bool dsc_row_is_whole(const dsc_row *r, int64_t vocab_size)
{
    return !r->token || r->count == vocab_size || r->tail == -INFINITY;
}

// --- dense ---------------------------------------------------------------------------------------

typedef struct sums {
    double mass, mass_logp; // sum of p and of p ln p
} sums;

// Probabilities of a dense row. Below the least normal float a probability is 0: nothing that
// depends on 1e-38 is kept, and subnormals are slow.
DSC_FOR_EVERY_PROCESSOR
static sums exponentials(const float *logp, int64_t count, float *law)
{
    double mass = 0, mass_logp = 0;
#pragma omp simd reduction(+ : mass, mass_logp)
    for (int64_t i = 0; i < count; i++) {
        double x = logp[i], keep = x < -87 ? 0 : 1, p = keep * dsc_fast_exp(x);
        law[i] = (float)p;
        mass += p;
        mass_logp += p * (x > -1e9 ? x : 0);
    }
    return (sums){mass, mass_logp};
}

// Tokens with ln p > limit.
DSC_FOR_EVERY_PROCESSOR
static int64_t count_above(const float *logp, int64_t count, float limit)
{
    int32_t above = 0;
#pragma omp simd reduction(+ : above)
    for (int64_t i = 0; i < count; i++)
        above += logp[i] > limit ? 1 : 0;
    return above;
}

// The first of the likeliest tokens.
static int32_t find_argmax(const float *logp, int64_t count)
{
    enum { LANES = 16 };
    float most[LANES];
    int64_t i = 0;
    for (int lane = 0; lane < LANES; lane++)
        most[lane] = -INFINITY;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            most[lane] = logp[i + lane] > most[lane] ? logp[i + lane] : most[lane];
    for (; i < count; i++)
        most[0] = logp[i] > most[0] ? logp[i] : most[0];
    for (int lane = 1; lane < LANES; lane++)
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
    int32_t x = 0;
    while (logp[x] != most[0])
        x++;
    return x;
}

static void unpack(const dsc_row *r, float *logp)
{
    for (int64_t i = 0; i < r->count; i++)
        logp[i] = dsc_row_logp(r, i);
}

void dsc_row_read_dense(const dsc_row *r, int32_t y, float *logp, float *law, dsc_row_facts *out)
{
    if (!r->logp)
        unpack(r, logp);
    const float *x = r->logp ? r->logp : logp;
    sums sum = exponentials(x, r->count, law);
    // Before y a token that is as likely counts, behind it it does not.
    int64_t before = x[y] == -INFINITY ? y : count_above(x, y, nextafterf(x[y], -INFINITY));
    double whole = log(sum.mass);
    *out = (dsc_row_facts){
        .mass = sum.mass,
        .logp_y = (double)x[y] - whole,
        .has_logp_y = true,
        .entropy = fmax(whole - sum.mass_logp / sum.mass, 0),
        .argmax = find_argmax(x, r->count),
        .has_argmax = true,
        .rank_y = before + count_above(x + y, r->count - y, x[y]),
        .has_rank_y = true,
    };
}

// --- listed --------------------------------------------------------------------------------------

void dsc_row_read_listed(const dsc_row *r, int32_t y, dsc_row_facts *out)
{
    int64_t best = -1, at_y = -1;
    float unlisted = r->tail; // the most that an unlisted token may have
    double mass = exp((double)r->tail);
    for (int64_t i = 0; i < r->count; i++) {
        float x = r->logp[i];
        mass += exp((double)x);
        if (best < 0 || x > r->logp[best] || (x == r->logp[best] && r->token[i] < r->token[best]))
            best = i;
        if (r->token[i] == y)
            at_y = i;
        else
            unlisted = fminf(unlisted, x);
    }
    *out = (dsc_row_facts){.mass = mass, .logp_y = -INFINITY};
    out->has_argmax = best >= 0 && r->logp[best] >= unlisted;
    out->argmax = best >= 0 ? r->token[best] : 0;
    out->has_logp_y = at_y >= 0 || r->tail == -INFINITY;
    out->has_rank_y = at_y >= 0 ? r->logp[at_y] >= unlisted : r->tail == -INFINITY;
    float logp_y = at_y >= 0 ? r->logp[at_y] : -INFINITY;
    if (at_y >= 0)
        out->logp_y = (double)logp_y - log(mass);
    else
        out->rank_y = y; // the tokens of a lower id that are not listed, and all that are
    for (int64_t i = 0; i < r->count; i++) {
        bool lower = r->token[i] < y;
        out->rank_y += r->logp[i] > logp_y || (r->logp[i] == logp_y && lower);
        out->rank_y -= at_y < 0 && lower;
    }
}

void dsc_row_spread_listed(const dsc_row *r, int64_t vocab_size, float *law, dsc_row_facts *facts)
{
    double mass_logp = 0;
    for (int64_t x = 0; x < vocab_size; x++)
        law[x] = 0;
    for (int64_t i = 0; i < r->count; i++) {
        double p = exp((double)r->logp[i]);
        mass_logp += p * (double)r->logp[i];
        law[r->token[i]] = (float)p;
    }
    facts->entropy = fmax(log(facts->mass) - mass_logp / facts->mass, 0);
}

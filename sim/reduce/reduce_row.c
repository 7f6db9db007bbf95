// SPDX-License-Identifier: Apache-2.0
// Facts of dense and listed rows: mass, argmax, entropy, and log-probability and rank of a token.
#include "sim/reduce/reduce_row.h"

#include <math.h>

bool dsc_row_is_whole(const dsc_row *r, int64_t vocab_size)
{
    return !r->token || r->count == vocab_size || r->tail == -INFINITY;
}

void dsc_row_dense(const dsc_row *r, int32_t y, dsc_log_row *out)
{
    *out =
        (dsc_log_row){.logp = r->logp, .bf16 = r->bf16, .vocab = (size_t)r->count, .y = (size_t)y};
}

void dsc_row_dense_facts(const dsc_log_row *r, dsc_row_facts *out)
{
    double whole = log(r->mass);
    *out = (dsc_row_facts){
        .mass = r->mass,
        .logp_y = (double)r->logp_y - whole,
        .has_logp_y = true,
        .entropy = fmax(whole - r->mass_logp / r->mass, 0),
        .argmax = (int32_t)r->argmax,
        .has_argmax = true,
        .rank_y = r->rank_y,
        .has_rank_y = true,
    };
}

// --- listed --------------------------------------------------------------------------------------

void dsc_row_read_listed(const dsc_row *r, int32_t y, dsc_row_facts *out)
{
    int64_t best = -1, at_y = -1;
    float unlisted = r->tail; // the greatest mass of an unlisted token
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
        out->rank_y = y; // the unlisted tokens of lower ids, and all listed ones
    for (int64_t i = 0; i < r->count; i++) {
        bool lower = r->token[i] < y;
        out->rank_y += r->logp[i] > logp_y || (r->logp[i] == logp_y && lower);
        out->rank_y -= at_y < 0 && lower;
    }
}

void dsc_row_spread_listed(const dsc_row *r, int64_t vocab_size, float *dist, dsc_row_facts *facts)
{
    double mass_logp = 0;
    for (int64_t x = 0; x < vocab_size; x++)
        dist[x] = 0;
    for (int64_t i = 0; i < r->count; i++) {
        double p = exp((double)r->logp[i]);
        mass_logp += p * (double)r->logp[i];
        dist[r->token[i]] = (float)p;
    }
    facts->entropy = fmax(log(facts->mass) - mass_logp / facts->mass, 0);
}

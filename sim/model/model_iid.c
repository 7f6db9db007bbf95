// SPDX-License-Identifier: Apache-2.0
// The i.i.d. pair of model_iid.h as a language.
#include "sim/model/model_iid.h"

#include "base/memory.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Tokens form pairs {2 i, 2 i + 1}: one is the target's, the other the draft's wrong token.
typedef struct iid {
    dsc_language base;
    int32_t token[DSC_IID_VOCAB];
    // [levels][depths][1 if the target's token is 2 i + 1]: probabilities of the pair
    double (*dist)[2][2];
    size_t depths; // the last one applies to all greater depths
    size_t levels; // of the effect of a request
} iid;

static int32_t target_token(const dsc_place *at)
{
    return (int32_t)dsc_rng_below(0, (uint64_t)at->position, 0, DSC_RNG_IID, DSC_IID_VOCAB);
}

size_t dsc_iid_level(int64_t request)
{
    return (size_t)dsc_rng_below(1, (uint64_t)request, 0, DSC_RNG_IID, DSC_IID_LEVELS);
}

static const double *pair_dist(const iid *m, const dsc_place *at, int32_t token)
{
    size_t last = m->depths - 1, depth = (uint64_t)at->depth > last ? last : (size_t)at->depth;
    const size_t level = m->levels == 1 ? 0 : dsc_iid_level(at->request);
    return m->dist[level * m->depths + depth][token & 1];
}

static void iid_dist(const dsc_language *l, const dsc_place *at, dsc_dist *out)
{
    const iid *m = (const iid *)l;
    int32_t token = target_token(at);
    out->vocab_size = DSC_IID_VOCAB;
    out->dense = NULL;
    out->logits = NULL;
    out->levels = 1;
    out->level[0] = (dsc_dist_level){m->token + (token & ~1), pair_dist(m, at, token), NULL, 2, 0};
    out->base = out->unlisted = 0;
}

static int32_t iid_best(const dsc_language *l, const dsc_place *at)
{
    int32_t token = target_token(at);
    const double *dist = pair_dist((const iid *)l, at, token);
    return (token & ~1) + (dist[1] > dist[0]);
}

static void iid_free(dsc_language *l)
{
    free(((iid *)l)->dist);
    free(l);
}

static const dsc_language_type type = {
    .name = "iid", .dist = iid_dist, .best = iid_best, .free = iid_free};

// The effects of all levels: the normal distribution at the middle of each, scaled to the standard
// deviation.
static void lay_effects(double effect[DSC_IID_LEVELS], double sd)
{
    double squares = 0;
    for (int l = 0; l < DSC_IID_LEVELS; l++) {
        double low = -9, high = 9;
        for (int i = 0; i < 60; i++) {
            const double z = (low + high) / 2;
            *(erfc(-z / sqrt(2)) / 2 < (l + 0.5) / DSC_IID_LEVELS ? &low : &high) = z;
        }
        effect[l] = low;
        squares += low * low;
    }
    for (int l = 0; l < DSC_IID_LEVELS; l++)
        effect[l] *= sd / sqrt(squares / DSC_IID_LEVELS);
}

// The rate h with an effect on its logit.
static double moved(double h, double effect)
{
    return h > 0 && h < 1 ? 1 / (1 + (1 - h) / h * exp(-effect)) : h;
}

// Sets rate[level][at] with one intercept for all levels, so that their mean, weighted by the
// drafts that come this far, is the pooled rate.
static void split_position(double *rate, size_t at, size_t count, double pooled,
                           const double *effect, const double *reach)
{
    double low = -60, high = 60, all = 0;
    for (int l = 0; l < DSC_IID_LEVELS; l++)
        all += reach[l];
    for (int i = 0; i < 60; i++) {
        const double intercept = (low + high) / 2;
        double accepted = 0;
        for (int l = 0; l < DSC_IID_LEVELS; l++) {
            double *x = &rate[(size_t)l * count + at];
            *x = pooled > 0 && pooled < 1 ? 1 / (1 + exp(-intercept - effect[l])) : pooled;
            accepted += reach[l] * *x;
        }
        *(accepted < pooled * all ? &low : &high) = intercept;
    }
}

void dsc_iid_split_rates(double *rate, const double *pooled, size_t count, double sd)
{
    enum { ROUNDS = 20 };
    double effect[DSC_IID_LEVELS] = {0}, drafts[DSC_IID_LEVELS], reach[DSC_IID_LEVELS];
    lay_effects(effect, sd);
    for (int l = 0; l < DSC_IID_LEVELS; l++)
        drafts[l] = 1;
    // A request has the fewer drafts, the more of them are accepted: a fixed point.
    for (int round = 0; round < ROUNDS; round++) {
        double accepted[DSC_IID_LEVELS] = {0};
        memcpy(reach, drafts, sizeof reach);
        for (size_t d = 0; d < count; d++) {
            split_position(rate, d, count, pooled[d], effect, reach);
            for (int l = 0; l < DSC_IID_LEVELS; l++) {
                reach[l] *= rate[(size_t)l * count + d];
                accepted[l] += reach[l] / drafts[l];
            }
        }
        for (int l = 0; l < DSC_IID_LEVELS; l++)
            drafts[l] = 1 / (1 + accepted[l]);
    }
}

void dsc_iid_spread_rates(double *rate, const double *median, size_t count, double sd)
{
    double effect[DSC_IID_LEVELS];
    lay_effects(effect, sd);
    for (size_t l = 0; l < DSC_IID_LEVELS; l++)
        for (size_t d = 0; d < count; d++)
            rate[l * count + d] = moved(median[d], effect[l]);
}

// The rates of every level and depth into rate[levels][depths].
static int lay_rates(double **rate, const iid *m, const dsc_acceptance_rates *r, dsc_error *err)
{
    double *median;
    int rc = dsc_new(&median, m->depths, err);
    if (rc)
        return rc;
    dsc_acceptance_rates_fill(r, (int64_t)m->depths, median);
    rc = m->levels > 1 ? dsc_new(rate, m->levels * m->depths, err) : DSC_OK;
    if (m->levels == 1) {
        *rate = median;
        return DSC_OK;
    }
    if (!rc)
        dsc_iid_spread_rates(*rate, median, m->depths, r->request_sd);
    free(median);
    return rc;
}

int dsc_iid_new(dsc_language **out, const dsc_acceptance_rates *r, dsc_model_side side,
                dsc_error *err)
{
    iid *m;
    double *rate = NULL;
    *out = NULL;
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    const bool all = !isnan(r->later);
    m->base = (dsc_language){.type = &type,
                             .vocab_size = DSC_IID_VOCAB,
                             .end_token = -1,
                             .one_draft = r->one_draft,
                             .positions = all || side == DSC_SIDE_TARGET ? 0 : r->positions};
    m->levels = r->request_sd > 0 ? DSC_IID_LEVELS : 1;
    m->depths = (size_t)r->positions + all; // the last one stands for all later ones
    rc = dsc_new(&m->dist, m->levels * m->depths, err);
    rc = rc ?: lay_rates(&rate, m, r, err);
    if (rc) {
        iid_free(&m->base);
        return rc;
    }
    for (int32_t x = 0; x < DSC_IID_VOCAB; x++)
        m->token[x] = x;
    for (size_t d = 0; d < m->levels * m->depths; d++) {
        const double right = side == DSC_SIDE_TARGET ? 1 : rate[d];
        m->dist[d][0][0] = m->dist[d][1][1] = right;
        m->dist[d][0][1] = m->dist[d][1][0] = 1 - right;
    }
    free(rate);
    *out = &m->base;
    return DSC_OK;
}

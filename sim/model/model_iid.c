// SPDX-License-Identifier: Apache-2.0
// The i.i.d. pair of model_iid.h as a language, and its acceptance rates from files.
#include "sim/model/model_iid.h"

#include "base/memory.h"
#include "base/rng.h"
#include "traces/files/input.h"
#include "base/number.h"

#include <inttypes.h>
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

int dsc_iid_new(dsc_language **out, const dsc_iid_conditional_rates *h, dsc_model_side side,
                dsc_error *err)
{
    iid *m;
    *out = NULL;
    if (h->count < 1)
        return dsc_fail(err, DSC_EUSAGE, "an i.i.d. pair needs an acceptance rate");
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    m->base = (dsc_language){.type = &type, .vocab_size = DSC_IID_VOCAB, .end_token = -1};
    double effect[DSC_IID_LEVELS] = {0};
    m->levels = h->request_sd > 0 ? DSC_IID_LEVELS : 1;
    if (h->request_sd > 0)
        lay_effects(effect, h->request_sd);
    rc = dsc_new(&m->dist, m->levels * h->count, err);
    if (rc) {
        iid_free(&m->base);
        return rc;
    }
    m->depths = h->count;
    for (int32_t x = 0; x < DSC_IID_VOCAB; x++)
        m->token[x] = x;
    for (size_t d = 0; d < m->levels * h->count; d++) {
        const double rate = h->conditional_rate[d % h->count], z = effect[d / h->count];
        const double right = side == DSC_SIDE_TARGET ? 1 : z != 0 ? moved(rate, z) : rate;
        m->dist[d][0][0] = m->dist[d][1][1] = right;
        m->dist[d][0][1] = m->dist[d][1][0] = 1 - right;
    }
    *out = &m->base;
    return DSC_OK;
}

// --- acceptance rates ----------------------------------------------------------------------------

int dsc_iid_conditional_rates_add(dsc_iid_conditional_rates *h, double conditional_rate,
                                  dsc_error *err)
{
    if (!(conditional_rate >= 0 && conditional_rate <= 1))
        return dsc_fail(err, DSC_EUSAGE, "an acceptance rate must be from 0 to 1, not %g",
                        conditional_rate);
    if (h->count == DSC_IID_DEPTHS_MAX)
        return dsc_fail(err, DSC_EUSAGE, "acceptance rates for more than %d positions",
                        DSC_IID_DEPTHS_MAX);
    int rc = dsc_resize(&h->conditional_rate, &h->capacity, h->count + 1, err);
    if (!rc)
        h->conditional_rate[h->count++] = conditional_rate;
    return rc;
}

static int add_line(dsc_iid_conditional_rates *h, const dsc_line *line, dsc_error *err)
{
    static const char white[] = " \t";
    char text[64], *end;
    const char *comment = memchr(line->bytes, '#', line->length);
    size_t n = comment ? (size_t)(comment - line->bytes) : line->length, first = 0;
    while (n > 0 && strchr(white, line->bytes[n - 1]))
        n--;
    while (first < n && strchr(white, line->bytes[first]))
        first++;
    if (first == n)
        return DSC_OK;
    if (n - first < sizeof text) {
        memcpy(text, line->bytes + first, n - first);
        text[n - first] = '\0';
        double conditional_rate = dsc_strtod(text, &end);
        if (!*end && strspn(text, "0123456789.eE+-") == n - first)
            return dsc_iid_conditional_rates_add(h, conditional_rate, err);
    }
    return dsc_fail(err, DSC_EINPUT, "a number from 0 to 1 expected");
}

int dsc_iid_conditional_rates_read(dsc_iid_conditional_rates *h, const char *path, dsc_error *err)
{
    dsc_input *in;
    dsc_line line;
    dsc_error bad;
    int rc = dsc_input_open(&in, path, err);
    while (!rc && !(rc = dsc_input_line(in, &line, err)) && line.bytes) {
        rc = add_line(h, &line, &bad);
        if (rc) // the contents of a file are input
            rc = dsc_fail(err, rc == DSC_EUSAGE ? DSC_EINPUT : rc, "%s:%" PRId64 ": %.900s",
                          dsc_input_name(in), line.number, bad.message);
    }
    dsc_input_close(in);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Implements the model interface (sim/model.h) for a synthetic language. It keeps the text of a
// request and its drafted tokens, applies the temperature, and samples.
#include "sim/model/model_synthetic.h"

#include "sim/acceptance.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int dsc_model_synthetic_score(dsc_model *base, const dsc_draft *d, dsc_error *err)
{
    (void)err;
    ((dsc_model_synthetic *)base)->draft = d;
    return DSC_OK;
}

// The tokens before the one after `node`: the committed text or, if it ends in drafted tokens, a
// copy of the last `reach`.
static dsc_place place_after(dsc_model_synthetic *m, int32_t node)
{
    size_t length = m->prompt + (size_t)m->base.length, reach = m->language->reach, at = reach;
    dsc_place place = {m->text, length, (int64_t)length, 0, m->request};
    if (node < 0)
        return place;
    for (; node >= 0; node = m->draft->parent[node]) {
        if (at > 0)
            m->recent[--at] = m->draft->token[node];
        place.depth++;
    }
    size_t committed = at < length ? at : length; // committed tokens before the drafted ones
    if (committed)
        memcpy(m->recent + at - committed, m->text + length - committed,
               committed * sizeof *m->text);
    place.recent = m->recent + at - committed;
    place.count = reach - at + committed;
    place.position += place.depth;
    return place;
}

// A position of a draft for which the language has no distribution.
static int check_depth(const dsc_language *l, const dsc_place *at, dsc_error *err)
{
    return l->positions && at->depth >= l->positions ? dsc_acceptance_too_long(l->positions, err)
                                                     : DSC_OK;
}

static int next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    dsc_model_synthetic *m = (dsc_model_synthetic *)base;
    dsc_place at = place_after(m, node);
    const int rc = check_depth(m->language, &at, err);
    if (rc)
        return rc;
    int32_t token = m->language->type->best(m->language, &at);
    *out = (dsc_next){token, dsc_model_ends(base, at.depth, token)};
    return DSC_OK;
}

// distribution^(1/temperature), normalized; the largest element becomes 1 first, so that nothing
// overflows.
static void temper(double *dist, size_t vocab, double temperature)
{
    double most = 0, sum = 0;
    for (size_t x = 0; x < vocab; x++)
        most = fmax(most, dist[x]);
    for (size_t x = 0; x < vocab; x++)
        sum += dist[x] = dist[x] > 0 ? exp(log(dist[x] / most) / temperature) : 0;
    for (size_t x = 0; x < vocab; x++)
        dist[x] /= sum;
}

int dsc_model_synthetic_dist(dsc_model_synthetic *m, const dsc_place *at, bool base, dsc_dist *out,
                             dsc_error *err)
{
    static const double certain = 1;
    const dsc_language *l = m->language;
    int rc = check_depth(l, at, err);
    if (rc)
        return rc;
    if (m->temperature == 0 && !base) {
        m->best = l->type->best(l, at);
        *out = (dsc_dist){.vocab_size = l->vocab_size, .levels = 1};
        out->level[0] = (dsc_dist_level){&m->best, &certain, NULL, 1, 0};
        return DSC_OK;
    }
    l->type->dist(l, at, out);
    if (m->temperature == 1 || base)
        return DSC_OK;
    rc = dsc_resize(&m->row, &m->row_capacity, (size_t)l->vocab_size, err);
    if (rc)
        return rc;
    dsc_dist_fill(out, m->row);
    temper(m->row, (size_t)l->vocab_size, m->temperature);
    *out = (dsc_dist){.vocab_size = l->vocab_size, .dense = m->row};
    return DSC_OK;
}

static int base_dist(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    dsc_model_synthetic *m = (dsc_model_synthetic *)base;
    const dsc_place at = place_after(m, node);
    return dsc_model_synthetic_dist(m, &at, true, out, err);
}

static int dist(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    dsc_model_synthetic *m = (dsc_model_synthetic *)base;
    const dsc_place at = place_after(m, node);
    return dsc_model_synthetic_dist(m, &at, false, out, err);
}

static int append(dsc_model_synthetic *m, const int32_t *token, size_t n, dsc_error *err)
{
    size_t length = m->prompt + (size_t)m->base.length;
    int rc = dsc_resize(&m->text, &m->text_capacity, length + n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (token[i] < 0 || token[i] >= m->language->vocab_size)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId32, token[i],
                            m->language->vocab_size);
        m->text[length + i] = token[i];
    }
    return DSC_OK;
}

int dsc_model_synthetic_commit(dsc_model *base, const int32_t *token, size_t n, dsc_error *err)
{
    dsc_model_synthetic *m = (dsc_model_synthetic *)base;
    bool ended = base->ended;
    for (size_t i = 0; i < n; i++) {
        if (ended)
            return dsc_fail(err, DSC_ECHECK, "a token was emitted after the end of the output");
        ended = dsc_model_ends(base, (int64_t)i, token[i]);
    }
    int rc = append(m, token, n, err);
    if (rc)
        return rc;
    base->output = m->text + m->prompt;
    base->length += (int64_t)n;
    base->ended = ended;
    m->marginals[0] = m->marginals[1] = 0;
    return DSC_OK;
}

static const dsc_model_type type = {.name = "synthetic",
                                    .score = dsc_model_synthetic_score,
                                    .next = next,
                                    .dist = dist,
                                    .base_dist = base_dist,
                                    .commit = dsc_model_synthetic_commit};

int dsc_model_synthetic_begin(dsc_model_synthetic *m, const dsc_language *language,
                              dsc_token_view prompt, int64_t limit, double temperature,
                              dsc_error *err)
{
    if (!(temperature >= 0) || isinf(temperature))
        return dsc_fail(err, DSC_EUSAGE, "temperature is %g; it must be 0 or more", temperature);
    m->language = language;
    m->temperature = temperature;
    m->draft = NULL;
    m->prompt = 0;
    m->marginals[0] = m->marginals[1] = 0;
    m->base = (dsc_model){
        .type = &type, .limit = limit, .end_token = language->end_token, .ended = limit <= 0};
    // One more than the reach, so never a null pointer.
    int rc = dsc_resize(&m->recent, &m->recent_capacity, language->reach + 1, err);
    if (!rc)
        rc = append(m, prompt.id, (size_t)prompt.count, err);
    m->prompt = (size_t)prompt.count;
    m->base.output = m->text ? m->text + m->prompt : NULL;
    return rc;
}

void dsc_model_synthetic_fini(dsc_model_synthetic *m)
{
    free(m->text);
    free(m->recent);
    free(m->row);
    free(m->conditional);
    free(m->marginal[0]);
    free(m->marginal[1]);
    *m = (dsc_model_synthetic){0};
}

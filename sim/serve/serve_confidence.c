// SPDX-License-Identifier: Apache-2.0
// Recorded probabilities of drafted tokens, and their cross-fitted calibration.
#include "sim/serve/serve_confidence.h"

#include "base/rng.h"
#include "sim/serve/isotonic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { HALVES = 2, BINS = 10 };

typedef struct reader {
    dsc_serve_confidence *out;
    const dsc_serve_source *source;
    bool greedy;
    int32_t vocab_size;
    uint64_t seed;
    double *draft, *target; // [vocab_size] under a rule that samples
    size_t next;            // item that comes next
} reader;

// --- recorded probabilities ----------------------------------------------------------------------

// A draft that begins at t >= 1 has its first token verified, unless it is the output's last one.
static bool is_drafted(const dsc_serve_item *item, int32_t t)
{
    return t >= 1 && t < item->output - 1;
}

static bool is_accepted(const dsc_serve_item *item, int32_t t)
{
    return item->draft[t].run > 0;
}

static double largest(const dsc_row *row)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < row->count; i++)
        most = fmax(most, (double)dsc_row_logp(row, i));
    return exp(most);
}

static int read_dist(const reader *r, const dsc_request *q, dsc_model_side side, int32_t t,
                     double *dist, dsc_error *err)
{
    dsc_row row = {0};
    if (dsc_request_row(q, side, t, &row) && row.tail == -INFINITY &&
        !isnan(dsc_row_dist(&row, r->vocab_size, dist)))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "request %" PRId64 ", position %" PRId32
                    ": the %s distribution does not list all tokens, and a rule that samples "
                    "drafts any of them: record with --logprobs dense",
                    q->index, t, side == DSC_SIDE_DRAFT ? "draft" : "target");
}

// The probability of a drafted token that the rule rejected.
static double sample_rejected(const reader *r, const dsc_request *q, int32_t t)
{
    double mass = 0, last = 0;
    for (int32_t x = 0; x < r->vocab_size; x++)
        mass += fmax(r->draft[x] - r->target[x], 0);
    double left = mass * dsc_rng_uniform(r->seed, (uint64_t)q->index, (uint32_t)t, DSC_RNG_DRAFT);
    for (int32_t x = 0; x < r->vocab_size; x++) {
        const double excess = r->draft[x] - r->target[x];
        if (!(excess > 0))
            continue;
        last = r->draft[x];
        left -= excess;
        if (left < 0)
            break;
    }
    return last;
}

static int read_token(const reader *r, const dsc_request *q, const dsc_serve_item *item, int32_t t,
                      float *out, dsc_error *err)
{
    dsc_row row;
    if (r->greedy) {
        *out = dsc_request_row(q, DSC_SIDE_DRAFT, t, &row) ? (float)largest(&row) : 0;
        return DSC_OK;
    }
    int rc = read_dist(r, q, DSC_SIDE_DRAFT, t, r->draft, err);
    if (!rc && is_accepted(item, t)) {
        *out = (float)r->draft[q->output.id[t]];
        return DSC_OK;
    }
    rc = rc ?: read_dist(r, q, DSC_SIDE_TARGET, t, r->target, err);
    if (!rc)
        *out = (float)sample_rejected(r, q, t);
    return rc;
}

static int read_request(void *context, const dsc_request *q, dsc_error *err)
{
    reader *r = context;
    const dsc_serve_source *s = r->source;
    if (r->next == s->count || s->request[r->next] != q->index)
        return DSC_OK; // it has no output
    const dsc_serve_item *item = &s->item[r->next];
    float **row = &r->out->confidence[r->next++];
    int rc = dsc_new(row, (size_t)item->output, err);
    for (int32_t t = 0; t < item->output && !rc; t++)
        if (is_drafted(item, t))
            rc = read_token(r, q, item, t, &(*row)[t], err);
    return rc;
}

static int read_all(reader *r, const dsc_trace *trace, dsc_error *err)
{
    const size_t vocab = r->greedy ? 0 : (size_t)r->vocab_size;
    int rc = dsc_new(&r->draft, vocab, err);
    rc = rc ?: dsc_new(&r->target, vocab, err);
    rc = rc ?: dsc_trace_each(trace, read_request, r, err);
    free(r->draft);
    free(r->target);
    return rc;
}

static int check(const dsc_serve_source *source, const dsc_trace_info *info,
                 const dsc_config *config, bool greedy, dsc_error *err)
{
    const bool both = !greedy && info->rows[DSC_SIDE_TARGET] == DSC_ROWS_NONE;
    if (config->drafter->replay != DSC_DRAFT_REPLAY_CHAIN)
        return dsc_fail(err, DSC_EUSAGE,
                        "adaptive:calibrated: method %s has no draft model whose recorded "
                        "probabilities could be calibrated; adaptive:position takes every chain",
                        config->drafter->name);
    if (info->rows[DSC_SIDE_DRAFT] == DSC_ROWS_NONE || both)
        return dsc_fail(err, DSC_EUSAGE,
                        "adaptive:calibrated: the trace lacks column %s, the %s model's "
                        "distributions: record them with draftscope live record --logprobs %s or "
                        "trace synth --logprobs M; adaptive:position needs none",
                        dsc_rows_name(both ? DSC_SIDE_TARGET : DSC_SIDE_DRAFT, DSC_ROWS_LISTED),
                        both ? "target" : "draft", greedy ? "top:1" : "dense");
    if (source->count < HALVES)
        return dsc_fail(err, DSC_EUSAGE,
                        "adaptive:calibrated: the trace has one request; it needs two, each served "
                        "with the fit of the other");
    return DSC_OK;
}

// --- calibration ---------------------------------------------------------------------------------

typedef struct ordered {
    uint32_t key[2];
    size_t item;
} ordered;

static int by_key(const void *a, const void *b)
{
    const ordered *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

// half[item]: the requests in random order are dealt to the halves in turn.
static int split(const dsc_serve_source *s, uint64_t seed, uint8_t *half, dsc_error *err)
{
    ordered *order;
    const int rc = dsc_new(&order, s->count, err);
    for (size_t i = 0; i < s->count && !rc; i++) {
        uint32_t word[4];
        dsc_rng_words(seed, (uint64_t)s->request[i], 0, DSC_RNG_CHOOSE, word);
        order[i] = (ordered){{word[0], word[1]}, i};
    }
    if (!rc)
        qsort(order, s->count, sizeof *order, by_key);
    for (size_t i = 0; i < s->count && !rc; i++)
        half[order[i].item] = i % HALVES;
    free(order);
    return rc;
}

static int fit_half(dsc_isotonic *fit, const dsc_serve_confidence *c, const dsc_serve_source *s,
                    const uint8_t *half, uint8_t which, dsc_error *err)
{
    dsc_isotonic_sample *sample;
    size_t n = 0, room = 1;
    for (size_t i = 0; i < s->count; i++)
        room += half[i] == which ? (size_t)s->item[i].output : 0;
    int rc = dsc_new(&sample, room, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->count; i++)
        for (int32_t t = 0; half[i] == which && t < s->item[i].output; t++)
            if (is_drafted(&s->item[i], t))
                sample[n++] =
                    (dsc_isotonic_sample){(double)c->confidence[i][t], is_accepted(&s->item[i], t)};
    // Outputs of two tokens have no draft: any confidence will do.
    rc = dsc_isotonic_fit(fit, sample, n ? n : 1, err);
    free(sample);
    return rc;
}

typedef struct bin {
    double confidence, accepted;
} bin;

// Replaces the recorded probabilities of a request by its confidences.
static void map(dsc_serve_confidence *c, const dsc_serve_item *item, float *row,
                const dsc_isotonic *fit, bin *bins)
{
    for (int32_t t = 0; t < item->output; t++) {
        if (!is_drafted(item, t))
            continue;
        const double recorded = (double)row[t], outcome = is_accepted(item, t);
        row[t] = (float)dsc_isotonic_value(fit, recorded);
        const double confidence = (double)row[t];
        bin *b = &bins[confidence < 1 ? (int)(confidence * BINS) : BINS - 1];
        b->confidence += confidence;
        b->accepted += outcome;
        c->tokens++;
        c->recorded_brier += (recorded - outcome) * (recorded - outcome);
        c->brier += (confidence - outcome) * (confidence - outcome);
    }
}

static void judge(dsc_serve_confidence *c, const bin *bins)
{
    double error = 0;
    for (int b = 0; b < BINS; b++)
        error += fabs(bins[b].confidence - bins[b].accepted);
    c->recorded_brier /= (double)c->tokens;
    c->brier /= (double)c->tokens;
    c->calibration_error = error / (double)c->tokens;
}

static int calibrate(dsc_serve_confidence *c, const dsc_serve_source *s, uint64_t seed,
                     dsc_error *err)
{
    uint8_t *half;
    bin bins[BINS] = {{0}};
    dsc_isotonic fit[HALVES] = {{0}};
    int rc = dsc_new(&half, s->count, err);
    rc = rc ?: split(s, seed, half, err);
    for (uint8_t h = 0; h < HALVES && !rc; h++)
        rc = fit_half(&fit[h], c, s, half, h, err);
    for (size_t i = 0; i < s->count && !rc; i++) {
        map(c, &s->item[i], c->confidence[i], &fit[!half[i]], bins);
        s->item[i].confidence = c->confidence[i];
    }
    judge(c, bins);
    for (int h = 0; h < HALVES; h++)
        dsc_isotonic_fini(&fit[h]);
    free(half);
    return rc;
}

int dsc_serve_confidence_read(dsc_serve_confidence *out, const dsc_serve_source *source,
                              const dsc_trace *trace, const dsc_config *config,
                              const dsc_verifier_type *rule, uint64_t seed, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    reader r = {.out = out,
                .source = source,
                .greedy = rule->greedy,
                .vocab_size = info->vocab_size,
                .seed = seed};
    *out = (dsc_serve_confidence){0};
    int rc = check(source, info, config, rule->greedy, err);
    rc = rc ?: dsc_new(&out->confidence, source->count, err);
    if (rc)
        return rc;
    out->count = source->count;
    rc = read_all(&r, trace, err);
    return rc ? rc : calibrate(out, source, seed, err);
}

void dsc_serve_confidence_fini(dsc_serve_confidence *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->confidence[i]);
    free(c->confidence);
    *c = (dsc_serve_confidence){0};
}

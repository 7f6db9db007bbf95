// SPDX-License-Identifier: Apache-2.0
// Bounds of a reduced draft vocabulary; sim/expect/vocabulary_bound.h. Two passes over the trace:
// one counts the tokens of either half, the other evaluates each request with the order of the
// other half.
#include "sim/expect/vocabulary_bound.h"

#include "base/threads.h"
#include "sim/expect/position_dist.h"
#include "theory/vocabulary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// The tokens of one half of the requests.
typedef struct half {
    int64_t *count; // [vocab]
    bool *in;       // [sizes][vocab] the most frequent ones; NULL with options->in
} half;

// Scratch of one thread.
typedef struct worker {
    dsc_position_room rows;
    double *room; // [vocab]
} worker;

typedef struct collector {
    const dsc_vocabulary_options *options;
    dsc_vocabulary_bounds *out;
    size_t vocab;
    bool both;      // the distributions of both models are recorded
    half half[2];   // of the even and of the odd requests
    worker *worker; // [threads]
    double *value;  // [capacity][sizes][1 + drafts] of the positions of a request
    size_t capacity;
} collector;

// --- counting ------------------------------------------------------------------------------------

static int count_tokens(void *context, const dsc_request *q, dsc_error *err)
{
    collector *c = context;
    half *h = &c->half[q->index % 2];
    (void)err;
    for (int64_t i = 0; i < q->output.count; i++)
        h->count[q->output.id[i]]++;
    return DSC_OK;
}

typedef struct counted {
    int64_t count;
    int32_t token;
} counted;

static int compare(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : (x->token > y->token) * 2 - 1;
}

// By falling count, ties by ascending id.
static int choose_tokens(half *h, const dsc_vocabulary_options *o, size_t vocab, dsc_error *err)
{
    counted *all;
    int rc = dsc_new(&all, vocab, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < vocab; x++)
        all[x] = (counted){h->count[x], (int32_t)x};
    qsort(all, vocab, sizeof *all, compare);
    for (size_t s = 0; s < o->sizes; s++)
        for (int64_t i = 0; i < o->size[s]; i++)
            h->in[s * vocab + (size_t)all[i].token] = true;
    free(all);
    return DSC_OK;
}

// --- evaluating ----------------------------------------------------------------------------------

// Whether each token is in vocabulary s of a request: [vocab].
static const bool *vocabulary_of(const collector *c, const dsc_request *q, size_t s)
{
    const bool *in = c->options->in;
    return in ? in : c->half[(q->index + 1) % 2].in + s * c->vocab;
}

static int look_at(const collector *c, const dsc_request *q, int64_t at, worker *w, dsc_error *err)
{
    const dsc_vocabulary_options *o = c->options;
    const size_t each = 1 + o->draft_counts;
    int rc = dsc_position_rows(&w->rows, q, at, c->vocab, err);
    for (size_t s = 0; s < o->sizes && !rc; s++) {
        double *value = c->value + ((size_t)at * o->sizes + s) * each;
        const bool *in = vocabulary_of(c, q, s);
        value[0] = dsc_vocabulary_limit(w->rows.row[DSC_SIDE_TARGET], c->vocab, in);
        rc = dsc_vocabulary_otm(w->rows.row[DSC_SIDE_DRAFT], w->rows.row[DSC_SIDE_TARGET], c->vocab,
                                in, o->drafts, o->draft_counts, w->room, value + 1, err);
    }
    return rc;
}

// All positions of a request in parallel. The first error in their order is reported.
static int look_at_all(collector *c, const dsc_request *q, dsc_error *err)
{
    int64_t failed = q->output.count;
    int rc = DSC_OK;
#pragma omp parallel for schedule(dynamic, 4) num_threads(c->options->threads)
    for (int64_t i = 0; i < q->output.count; i++) {
        dsc_error problem;
        const int bad = look_at(c, q, i, &c->worker[omp_get_thread_num()], &problem);
        if (bad) {
#pragma omp critical(draftscope_vocabulary)
            if (i < failed) {
                failed = i;
                rc = bad;
                *err = problem;
            }
        }
    }
    return rc;
}

// The fewest target calls of the output. A step accepts the tokens before the first one outside the
// vocabulary, `longest` at most, and the target adds one. A step that begins later never ends
// earlier, so accepting as much as possible takes the fewest steps.
static int64_t fewest_calls(const collector *c, const dsc_request *q, size_t s)
{
    const dsc_token_view y = q->output;
    const bool *in = vocabulary_of(c, q, s);
    int64_t calls = 0;
    for (int64_t at = 0; at < y.count; calls++) {
        const int64_t room = y.count - 1 - at;
        const int64_t most = room < c->options->longest ? room : c->options->longest;
        int64_t accepted = 0;
        while (accepted < most && in[y.id[at + accepted]])
            accepted++;
        at += accepted + 1;
    }
    return calls;
}

static void add_tokens(collector *c, const dsc_request *q)
{
    for (size_t s = 0; s < c->options->sizes; s++) {
        dsc_vocabulary_bound *b = &c->out->bound[s];
        b->coverage +=
            (double)dsc_vocabulary_covered(q->output.id, q->output.count, vocabulary_of(c, q, s));
        b->calls += fewest_calls(c, q, s);
    }
    c->out->positions += q->output.count;
}

static int evaluate(void *context, const dsc_request *q, dsc_error *err)
{
    collector *c = context;
    const dsc_vocabulary_options *o = c->options;
    const size_t each = 1 + o->draft_counts;
    add_tokens(c, q);
    if (!c->both)
        return DSC_OK;
    int rc = dsc_resize(&c->value, &c->capacity, (size_t)q->output.count * o->sizes * each, err);
    if (!rc)
        rc = look_at_all(c, q, err);
    for (int64_t i = 0; i < q->output.count && !rc; i++)
        for (size_t s = 0; s < o->sizes; s++) {
            const double *value = c->value + ((size_t)i * o->sizes + s) * each;
            c->out->bound[s].limit += value[0];
            for (size_t k = 0; k < o->draft_counts; k++)
                c->out->bound[s].otm[k] += value[1 + k];
        }
    return rc ? dsc_error_prefix(err, rc, "request %" PRId64, q->index) : DSC_OK;
}

static void finish(collector *c)
{
    const double n = (double)c->out->positions;
    for (size_t s = 0; s < c->options->sizes; s++) {
        dsc_vocabulary_bound *b = &c->out->bound[s];
        b->tokens = c->options->in ? 0 : c->options->size[s];
        for (size_t x = 0; x < c->vocab && c->options->in; x++)
            b->tokens += c->options->in[x];
        b->coverage /= n;
        b->limit = c->both ? b->limit / n : (double)NAN;
        for (size_t k = 0; k < c->options->draft_counts; k++)
            b->otm[k] = c->both ? b->otm[k] / n : (double)NAN;
    }
}

// --- the trace -----------------------------------------------------------------------------------

static int check(const dsc_vocabulary_options *o, const dsc_trace_info *info, dsc_error *err)
{
    if (!o->sizes || !o->draft_counts || o->draft_counts > DSC_VOCABULARY_DRAFTS ||
        o->longest < 1 || o->threads < 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "a draft vocabulary needs a size, 1 to %d numbers of drafts, and drafts of "
                        "at least one token",
                        DSC_VOCABULARY_DRAFTS);
    for (size_t s = 0; s < o->sizes && !o->in; s++)
        if (o->size[s] < 1 || o->size[s] > info->vocab_size)
            return dsc_fail(err, DSC_EUSAGE,
                            "a draft vocabulary of %" PRId64 " tokens is not from 1 to the "
                            "%" PRId64 " of the trace",
                            o->size[s], (int64_t)info->vocab_size);
    if (!info->output_tokens)
        return dsc_fail(err, DSC_EINPUT, "the trace has no output tokens");
    return !o->in && info->requests < 2
               ? dsc_fail(err, DSC_EUSAGE,
                          "the trace has one request, and the tokens of others "
                          "are counted for it; name the tokens in a file")
               : DSC_OK;
}

static int reserve(collector *c, dsc_error *err)
{
    int rc = dsc_new(&c->out->bound, c->options->sizes, err);
    for (int h = 0; h < 2 && !rc && !c->options->in; h++) {
        rc = dsc_new(&c->half[h].count, c->vocab, err);
        if (!rc)
            rc = dsc_new(&c->half[h].in, c->options->sizes * c->vocab, err);
    }
    if (!rc)
        rc = dsc_new(&c->worker, (size_t)c->options->threads, err);
    for (int t = 0; t < c->options->threads && !rc; t++)
        rc = dsc_new(&c->worker[t].room, c->vocab, err);
    return rc;
}

static void release(collector *c)
{
    for (int h = 0; h < 2; h++) {
        free(c->half[h].count);
        free(c->half[h].in);
    }
    for (int t = 0; t < c->options->threads && c->worker; t++) {
        dsc_position_room_fini(&c->worker[t].rows);
        free(c->worker[t].room);
    }
    free(c->worker);
    free(c->value);
}

int dsc_vocabulary_bounds_of(dsc_vocabulary_bounds *out, const dsc_trace *trace,
                             const dsc_vocabulary_options *options, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    collector c = {.options = options, .out = out, .vocab = (size_t)info->vocab_size};
    *out = (dsc_vocabulary_bounds){0};
    c.both =
        info->rows[DSC_SIDE_DRAFT] != DSC_ROWS_NONE && info->rows[DSC_SIDE_TARGET] != DSC_ROWS_NONE;
    int rc = check(options, info, err);
    if (rc)
        return rc;
    rc = reserve(&c, err);
    if (!rc && !options->in)
        rc = dsc_trace_each(trace, count_tokens, &c, err);
    for (int h = 0; h < 2 && !rc && !options->in; h++)
        rc = choose_tokens(&c.half[h], options, c.vocab, err);
    if (!rc)
        rc = dsc_trace_each(trace, evaluate, &c, err);
    if (!rc)
        finish(&c);
    release(&c);
    if (rc)
        dsc_vocabulary_bounds_fini(out);
    return rc;
}

void dsc_vocabulary_bounds_fini(dsc_vocabulary_bounds *b)
{
    free(b->bound);
    *b = (dsc_vocabulary_bounds){0};
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/run.h"

#include "sim/expect.h"
#include "sim/loop.h"
#include "sim/model_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void)
{
    return 0;
}
#endif

enum { CHUNK_REQUESTS = 1024, CHUNK_TOKENS = 1 << 18, CHUNK_CELLS = 1 << 20 };

// One thread's scratch.
typedef struct worker {
    dsc_arena arena;
    dsc_loop loop;
    dsc_model_trace target;
    dsc_results results;
    dsc_error error;
    int64_t failed; // index of the request that failed, or -1
} worker;

typedef struct job {
    const dsc_config *config;
    size_t count;
    const dsc_run_options *options;
    dsc_plan plan; // when `expect`
    bool expect;
    int64_t longest_output; // tokens
    worker *worker;         // [threads]
    dsc_results single;     // counts of each request of a chunk, when they are asked for
} job;

static int64_t most_accepted(const job *j, size_t c)
{
    int64_t limit = j->config[c].drafter->limit(j->config[c].parameter);
    int64_t room = j->longest_output > 0 ? j->longest_output - 1 : 0;
    return limit < room ? limit : room;
}

// Zero counts for `count` configurations, or `count` copies of the only one.
static int results_init(dsc_results *r, const job *j, size_t count, dsc_error *err)
{
    void *counts, *histograms;
    *r = (dsc_results){.count = count};
    for (size_t c = 0; c < count; c++)
        r->histogram_total += (size_t)most_accepted(j, j->count == 1 ? 0 : c) + 1;
    int rc = dsc_alloc(&counts, count, sizeof *r->counts, err);
    r->counts = counts;
    if (rc)
        return rc;
    rc = dsc_alloc(&histograms, r->histogram_total, sizeof *r->histograms, err);
    r->histograms = histograms;
    if (rc)
        return rc;
    int64_t *next = r->histograms;
    for (size_t c = 0; c < count; c++) {
        r->counts[c] = dsc_counts_zero(next, most_accepted(j, j->count == 1 ? 0 : c));
        next += r->counts[c].histogram_length;
    }
    return DSC_OK;
}

void dsc_results_fini(dsc_results *r)
{
    free(r->counts);
    free(r->histograms);
    *r = (dsc_results){0};
}

static int run_request(const job *j, worker *w, const dsc_request *q, dsc_counts *counts,
                       dsc_error *err)
{
    if (q->output.count > j->longest_output)
        return dsc_fail(err, DSC_EINPUT,
                        "an output of %" PRId64 " tokens, the manifest says at most %" PRId64,
                        q->output.count, j->longest_output);
    dsc_arena_reset(&w->arena);
    if (j->expect)
        return dsc_expect_run(&j->plan, q, j->options->seed, &w->arena, counts, err);
    int rc = DSC_OK;
    for (size_t c = 0; c < j->count && !rc; c++) {
        dsc_arena_reset(&w->arena);
        dsc_model_trace_begin(&w->target, q->output);
        rc = dsc_loop_run(&w->loop, &j->config[c], &dsc_verifier_greedy, &w->target.base, q,
                          j->options->seed, &w->arena, &counts[c], err);
    }
    return rc;
}

static void run_chunk(const job *j, const dsc_shard *shard, int64_t first, int64_t end)
{
#pragma omp parallel for schedule(dynamic, 4) num_threads(j->options->threads)
    for (int64_t i = first; i < end; i++) {
        worker *w = &j->worker[omp_get_thread_num()];
        if (w->failed >= 0)
            continue;
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        dsc_counts *own = j->single.counts ? &j->single.counts[i - first] : NULL;
        if (own)
            *own = dsc_counts_zero(own->histogram, own->histogram_length - 1);
        if (run_request(j, w, &q, own ? own : w->results.counts, &w->error))
            w->failed = q.index;
        else if (own)
            dsc_counts_add(&w->results.counts[0], own);
    }
}

// The failure of the earliest request, whichever thread met it.
static int first_failure(const job *j, dsc_error *err)
{
    const worker *worst = NULL;
    for (int t = 0; t < j->options->threads; t++) {
        const worker *w = &j->worker[t];
        if (w->failed >= 0 && (!worst || w->failed < worst->failed))
            worst = w;
    }
    if (!worst)
        return DSC_OK;
    return dsc_fail(err, worst->error.status, "request %" PRId64 ": %.900s", worst->failed,
                    worst->error.message);
}

// Requests from `first` on that make a chunk: enough work to share, short enough to stop between.
static int64_t chunk_end(const job *j, const dsc_shard *shard, int64_t first, int64_t *tokens)
{
    int64_t end = first, n = dsc_shard_requests(shard);
    int64_t most = j->single.counts ? (int64_t)j->single.count : CHUNK_REQUESTS;
    *tokens = 0;
    while (end < n && end - first < most && *tokens < CHUNK_TOKENS) {
        dsc_request q;
        dsc_shard_request(shard, end++, &q);
        *tokens += q.output.count;
    }
    return end;
}

static int run_shard(const job *j, const dsc_shard *shard, int64_t *done, int64_t total,
                     dsc_error *err)
{
    const dsc_run_options *o = j->options;
    int rc = DSC_OK;
    for (int64_t first = 0, end; first < dsc_shard_requests(shard) && !rc; first = end) {
        int64_t tokens;
        end = chunk_end(j, shard, first, &tokens);
        run_chunk(j, shard, first, end);
        rc = first_failure(j, err);
        for (int64_t i = first; i < end && !rc && j->single.counts; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            rc = o->request(o->user, &q, &j->single.counts[i - first], err);
        }
        *done += tokens;
        if (!rc && o->progress && o->progress(o->user, *done, total))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    return rc;
}

static int job_init(job *j, dsc_error *err)
{
    const dsc_drafter_type *drafter = j->config[0].drafter;
    void *workers;
    if (j->options->engine == DSC_ENGINE_EXPECT && !drafter->spans)
        return dsc_fail(err, DSC_EUSAGE, "method %s has no exact replay: run it with the loop",
                        drafter->name);
    j->expect = drafter->spans && j->options->engine != DSC_ENGINE_LOOP;
    int rc = j->expect ? dsc_plan_init(&j->plan, j->config, j->count, err) : DSC_OK;
    if (rc)
        return rc;
    rc = dsc_alloc(&workers, (size_t)j->options->threads, sizeof *j->worker, err);
    j->worker = workers;
    for (int t = 0; t < j->options->threads && !rc; t++) {
        j->worker[t].failed = -1;
        rc = results_init(&j->worker[t].results, j, j->count, err);
    }
    if (!rc && j->options->request) {
        // Long drafts have long histograms: fewer requests at a time bound their memory.
        int64_t fit = CHUNK_CELLS / (most_accepted(j, 0) + 1);
        fit = fit < 1 ? 1 : fit > CHUNK_REQUESTS ? CHUNK_REQUESTS : fit;
        rc = results_init(&j->single, j, (size_t)fit, err);
    }
    return rc;
}

static void job_fini(job *j)
{
    for (int t = 0; j->worker && t < j->options->threads; t++) {
        worker *w = &j->worker[t];
        dsc_arena_fini(&w->arena);
        dsc_loop_fini(&w->loop);
        dsc_model_trace_fini(&w->target);
        dsc_results_fini(&w->results);
    }
    free(j->worker);
    dsc_plan_fini(&j->plan);
    dsc_results_fini(&j->single);
}

int dsc_run(const dsc_trace *trace, const dsc_config *config, size_t count,
            const dsc_run_options *options, dsc_results *out, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    job j = {.config = config,
             .count = count,
             .options = options,
             .longest_output = info->max_output_tokens};
    int64_t done = 0;
    int rc = job_init(&j, err);
    *out = (dsc_results){0};
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !rc; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, trace, s, err);
        if (!rc)
            rc = run_shard(&j, shard, &done, info->output_tokens, err);
        dsc_shard_close(shard);
    }
    if (!rc)
        rc = results_init(out, &j, count, err);
    for (int t = 0; t < options->threads && !rc; t++)
        for (size_t c = 0; c < count; c++)
            dsc_counts_add(&out->counts[c], &j.worker[t].results.counts[c]);
    if (rc)
        dsc_results_fini(out);
    job_fini(&j);
    return rc;
}

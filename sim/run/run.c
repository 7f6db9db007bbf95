// SPDX-License-Identifier: Apache-2.0
// Runs configurations over a trace or a workload: plans the engine, runs chunks of requests in
// parallel, and adds up the counts.
#include "sim/run/run.h"

#include "base/threads.h"
#include "sim/expect/expect.h"
#include "sim/expect/expect_rule.h"
#include "sim/loop.h"
#include "sim/model/model_trace.h"
#include "sim/model/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_REQUESTS = 1024, CHUNK_TOKENS = 1 << 18, CHUNK_CELLS = 1 << 20 };
// Output tokens x configurations of a chunk that each thread runs in some tenths of a second.
enum { CHUNK_WALKED = 1 << 26, CHUNK_STEPPED = 1 << 20 };

// Scratch of one thread.
typedef struct worker {
    dsc_arena arena;
    dsc_loop loop;
    dsc_model_trace recorded, offered; // the target, the draft model
    dsc_model_synthetic target, draft, middle;
    dsc_position_room room;
    dsc_results results;
    dsc_error error;
    int64_t failed; // index of the request that failed, or -1
} worker;

// The engine of each configuration, and what the engines need.
typedef struct plan {
    enum {
        LOOP,        // sim/loop.h
        WALK,        // sim/expect/expect.h: drafts depend on the preceding tokens only
        EXPECT_RULE, // sim/expect/expect_rule.h: expectations
    } engine;
    dsc_draft_kind kind;     // LOOP
    bool recorded_draft;     // LOOP: the draft model is the one that the trace recorded
    dsc_recorded_run origin; // how the trace was recorded, if there is one
} plan;

typedef struct job {
    const dsc_config *config;
    size_t count;
    const dsc_run_options *options;
    const dsc_verifier_type *rule;
    const dsc_workload *workload; // NULL: none
    const dsc_trace_info *info;   // NULL: no trace
    plan plan;
    dsc_plan walk;           // WALK
    dsc_rule_plan rule_plan; // EXPECT_RULE
    int64_t first, end;      // requests
    int64_t longest_output;  // tokens
    dsc_counts_room *room;   // [count] sizes of the counts of each configuration
    worker *worker;          // [threads]
    dsc_history *history;    // [count] NULL: requests are independent
    dsc_results single;      // [requests][count] of each request of a chunk, where the caller wants
                             // these, or groups of them, or sums depend on their order
    dsc_results *sums;       // [count][1 + groups] the results; only the groups' are added here
} job;

static dsc_counts_room room_of(const job *j, size_t c)
{
    const dsc_config *config = &j->config[c];
    const bool stepwise = j->plan.engine == LOOP,
               widths = j->options->widths && (stepwise || j->plan.engine == WALK);
    const int64_t limit = dsc_config_limit(config), width = dsc_config_width(config),
                  last = j->longest_output > 0 ? j->longest_output - 1 : 0;
    return (dsc_counts_room){.most = limit < last ? limit : last,
                             .limit = limit,
                             .width = widths ? width : 0,
                             .parallel = stepwise && config->drafter->parallel ? width : 0};
}

static int rooms_init(job *j, dsc_error *err)
{
    int rc = dsc_new(&j->room, j->count, err);
    for (size_t c = 0; c < j->count && !rc; c++) {
        j->room[c] = room_of(j, c);
        if (!dsc_counts_elements(&j->room[c]))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "method %s: limit %" PRId64 " and width %" PRId64
                          " must be at least 0 and the width at most %" PRId32,
                          j->config[c].drafter->name, dsc_config_limit(&j->config[c]),
                          dsc_config_width(&j->config[c]), INT32_MAX);
    }
    return rc;
}

// The lists of each expectation, which are as long as those of its counts.
static int expected_init(dsc_results *r, size_t elements, dsc_error *err)
{
    size_t all = r->count * sizeof *r->expected + elements * sizeof(double);
    int rc = dsc_alloc(&r->expected, all, 1, err);
    double *next = (double *)(r->expected + r->count);
    for (size_t i = 0; i < r->count && !rc; i++) {
        dsc_counts *c = &r->counts[i];
        r->expected[i].histogram = next;
        r->expected[i].whole = next + c->histogram_length;
        r->expected[i].lengths = next + 2 * c->histogram_length;
        next += 2 * c->histogram_length + c->lengths_length;
        c->expected = &r->expected[i];
    }
    return rc;
}

// Elements of the lists of all configurations.
static int64_t list_elements(const job *j)
{
    int64_t all = 0;
    for (size_t c = 0; c < j->count; c++)
        all += dsc_counts_elements(&j->room[c]);
    return all;
}

// Zero counts for all configurations, `times` in sequence, with `each` in sequence for one.
static int results_init(dsc_results *r, const job *j, size_t times, size_t each, dsc_error *err)
{
    const size_t total = times * each * (size_t)list_elements(j), count = times * each * j->count;
    *r = (dsc_results){.count = count};
    int rc = dsc_new(&r->counts, count, err);
    if (!rc)
        rc = dsc_new(&r->histograms, total, err);
    int64_t *next = r->histograms;
    for (size_t c = 0; c < count && !rc; c++) {
        const dsc_counts_room *room = &j->room[c / each % j->count];
        r->counts[c] = dsc_counts_in(next, room);
        next += dsc_counts_elements(room);
    }
    return rc || j->plan.engine != EXPECT_RULE ? rc : expected_init(r, total, err);
}

void dsc_results_fini(dsc_results *r)
{
    if (!r)
        return;
    free(r->counts);
    free(r->histograms);
    free(r->expected);
    *r = (dsc_results){0};
}

// Begins the models of a request.
static int begin_models(const job *j, worker *w, const dsc_request *q, dsc_models *m,
                        dsc_error *err)
{
    static const dsc_workload none = {0};
    const dsc_workload *l = j->workload ? j->workload : &none;
    int64_t limit = l->target ? l->max_tokens : q->output.count;
    *m = (dsc_models){.target = &w->recorded.base};
    int rc = DSC_OK;
    if (l->target) {
        rc =
            dsc_model_synthetic_begin(&w->target, l->target, q->prompt, limit, l->temperature, err);
        w->target.request = q->index;
        m->target = &w->target.base;
    } else {
        dsc_model_trace_begin(&w->recorded, q->output);
        w->recorded.base.end_token = j->info->eos_token;
    }
    if (j->plan.recorded_draft) {
        dsc_model_trace_set_ends(&w->recorded, j->info, &j->plan.origin);
        dsc_model_trace_begin_draft(&w->offered, q, j->info, &j->plan.origin);
        m->draft = &w->offered.base;
    }
    bool knows = l->target && j->config[0].drafter->sees_output;
    const dsc_language *draft = knows ? l->target : l->draft;
    if (draft && !rc) {
        rc = dsc_model_synthetic_begin(&w->draft, draft, q->prompt, limit, l->temperature, err);
        w->draft.request = q->index;
        m->draft = &w->draft.base;
        if (!rc && j->config[0].drafter->needs_marginals)
            rc = dsc_model_synthetic_parallel(&w->draft, err);
    }
    if (l->middle && !rc) {
        rc =
            dsc_model_synthetic_begin(&w->middle, l->middle, q->prompt, limit, l->temperature, err);
        w->middle.request = q->index;
        m->middle = &w->middle.base;
    }
    return rc;
}

static int run_request(const job *j, worker *w, const dsc_request *q, dsc_counts *counts,
                       dsc_error *err)
{
    if (q->output.count > j->longest_output)
        return dsc_fail(err, DSC_EINPUT,
                        "an output has %" PRId64
                        " tokens, but the manifest allows at most %" PRId64,
                        q->output.count, j->longest_output);
    dsc_arena_reset(&w->arena);
    if (j->plan.engine == EXPECT_RULE)
        return dsc_expect_rule_run(&j->rule_plan, q, &w->room, &w->arena, counts, err);
    if (j->plan.engine == WALK)
        return dsc_expect_run(&j->walk, q, j->options->seed, &w->arena, counts, err);
    const dsc_drafter_type *drafter = j->config[0].drafter;
    const bool watched =
        j->options->watched == DSC_EVERY_REQUEST || j->options->watched == q->index;
    int rc = DSC_OK;
    for (size_t c = 0; c < j->count && !rc; c++) {
        dsc_models models;
        dsc_request viewed = *q;
        dsc_arena_reset(&w->arena);
        if (drafter->view)
            rc = drafter->view(&j->config[c], j->info, &viewed, &w->arena, err);
        if (!rc)
            rc = begin_models(j, w, &viewed, &models, err);
        dsc_loop_input in = {.config = &j->config[c],
                             .rule = j->rule,
                             .kind = j->plan.kind,
                             .models = &models,
                             .request = &viewed,
                             .seed = j->options->seed,
                             .arena = &w->arena,
                             .history = j->history ? &j->history[c] : NULL,
                             .step = watched ? j->options->step : NULL,
                             .user = j->options->user,
                             .steps = j->options->steps};
        if (!rc)
            rc = dsc_loop_run(&w->loop, &in, &counts[c], err);
    }
    return rc;
}

// Request i of the shard; without a shard, the i-th request in the order of the workload.
static int fetch(const job *j, const dsc_shard *shard, int64_t i, dsc_request *q, dsc_error *err)
{
    if (shard) {
        dsc_shard_request(shard, i, q);
        return DSC_OK;
    }
    int64_t r = j->workload->order ? j->workload->order[i] : i;
    *q = (dsc_request){.index = r};
    return dsc_workload_prompt(j->workload->target, r, j->workload->prompt_tokens, &q->prompt, err);
}

static void run_chunk(const job *j, const dsc_shard *shard, int64_t first, int64_t end)
{
    int threads = j->history ? 1 : j->options->threads;
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = first; i < end; i++) {
        worker *w = &j->worker[omp_get_thread_num()];
        if (w->failed >= 0)
            continue;
        dsc_request q;
        dsc_counts *own =
            j->single.counts ? &j->single.counts[(size_t)(i - first) * j->count] : NULL;
        for (size_t c = 0; own && c < j->count; c++)
            dsc_counts_clear(&own[c]);
        if (fetch(j, shard, i, &q, &w->error) ||
            run_request(j, w, &q, own ? own : w->results.counts, &w->error))
            w->failed = q.index;
    }
}

// The failure of the earliest request, independent of the threads.
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

// The end of the chunk of requests that begins at `first`: enough work to share among threads, and
// short enough to stop in between.
static int64_t chunk_end(const job *j, const dsc_shard *shard, int64_t first, int64_t n,
                         int64_t *tokens)
{
    int64_t end = first;
    int64_t most = j->single.counts ? (int64_t)(j->single.count / j->count) : CHUNK_REQUESTS;
    int64_t work = (j->plan.engine == LOOP ? CHUNK_STEPPED : CHUNK_WALKED) *
                   (int64_t)j->options->threads / (int64_t)j->count;
    work = work < CHUNK_TOKENS ? work : CHUNK_TOKENS;
    *tokens = 0;
    while (end < n && end - first < most && (end == first || *tokens < work)) {
        dsc_request q = {0};
        if (shard)
            dsc_shard_request(shard, end, &q);
        end++;
        *tokens += shard ? q.output.count : j->workload->max_tokens;
    }
    return end;
}

// Adds the counts of request i of the shard, the `at`-th of all, to the sums, and passes them on.
static int take_request(const job *j, const dsc_shard *shard, int64_t i, int64_t at,
                        const dsc_counts *own, dsc_error *err)
{
    const dsc_run_options *o = j->options;
    const size_t each = 1 + (size_t)o->groups;
    dsc_request q;
    int rc = o->request || o->group ? fetch(j, shard, i, &q, err) : DSC_OK;
    if (at - j->first < o->warmup)
        return rc;
    for (size_t c = 0; c < j->count && !rc; c++) {
        dsc_counts_add(&j->worker[0].results.counts[c], &own[c]);
        if (o->group)
            dsc_counts_add(&j->sums->counts[c * each + 1 + (size_t)o->group[q.index]], &own[c]);
    }
    return rc || !o->request ? rc : o->request(o->user, &q, own, err);
}

// Requests [begin, n) of the shard, whose first one is the `base`-th of all.
static int run_shard(const job *j, const dsc_shard *shard, int64_t base, int64_t begin, int64_t n,
                     int64_t *done, int64_t total, dsc_error *err)
{
    const dsc_run_options *o = j->options;
    int rc = DSC_OK;
    for (int64_t first = begin, end; first < n && !rc; first = end) {
        int64_t tokens;
        end = chunk_end(j, shard, first, n, &tokens);
        run_chunk(j, shard, first, end);
        rc = first_failure(j, err);
        // In the order of requests, independent of the threads.
        for (int64_t i = first; i < end && !rc && j->single.counts; i++)
            rc = take_request(j, shard, i, base + i,
                              &j->single.counts[(size_t)(i - first) * j->count], err);
        *done += tokens;
        if (!rc && o->progress && o->progress(o->user, *done, total))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    return rc;
}

// Returns whether a walk over the recorded output gives the counts. Under a lossless rule, a draft
// that is determined by the preceding tokens is accepted exactly as far as it agrees with the
// output.
static bool walks(const job *j)
{
    const dsc_drafter_type *drafter = j->config[0].drafter;
    const dsc_verifier_type *rule = j->rule;
    bool all = drafter->match_lengths != NULL;
    for (size_t c = 0; c < j->count && all; c++)
        all = (!drafter->is_chain || drafter->is_chain(&j->config[c])) &&
              (!j->options->widths || dsc_config_limit(&j->config[c]) <= DSC_LONGEST_LENGTH);
    return all && (rule->greedy || (rule->lossless && rule->kinds & DSC_DRAFT_TOPK &&
                                    !(drafter->kinds & ~(unsigned)DSC_DRAFT_TOPK)));
}

// Returns whether the trace's recording replaces the draft model: greedily, and as far as it was
// recorded.
static int find_recorded_draft(const job *j, plan *out, dsc_error *err)
{
    const dsc_drafter_type *d = j->config[0].drafter;
    const dsc_trace_info *info = j->info;
    if (!info || !d->needs_draft || d->needs_middle || d->needs_off_path || !j->rule->greedy)
        return DSC_OK;
    if (d->recorded) {
        int rc = DSC_OK;
        for (size_t c = 0; c < j->count && !rc; c++)
            rc = d->recorded(&j->config[c], info, err);
        out->recorded_draft = !rc;
        return rc;
    }
    if (!info->has_draft_rank && !info->has_argmax[DSC_SIDE_DRAFT])
        return DSC_OK;
    out->recorded_draft = true;
    for (size_t c = 0; c < j->count && d->branches && d->kinds & DSC_DRAFT_TOPK; c++) {
        const int64_t deep = dsc_config_limit(&j->config[c]);
        if (!info->has_draft_rank)
            return dsc_fail(
                err, DSC_EUSAGE,
                "method %s needs column draft_rank, which the trace lacks (draftscope live "
                "record writes it, or trace reduce from logits)",
                d->name);
        if (deep > info->rank_depth && out->origin.head)
            return dsc_fail(err, DSC_EUSAGE,
                            "method %s: the tree has %" PRId64
                            " levels, but the ranks of the draft model "
                            "are recorded %" PRId32 " deep (draftscope live record or trace reduce "
                            "with --rank-depth %" PRId64 ")",
                            d->name, deep, info->rank_depth, deep);
    }
    return DSC_OK;
}

// Returns whether the recorded run was greedy, so that a method that samples from the draft model
// sampled its argmax tokens, which the trace contains.
static bool sampled_argmax(const job *j, const plan *p)
{
    const dsc_drafter_type *d = j->config[0].drafter;
    const dsc_trace_info *info = j->info;
    return info && d->kinds & DSC_DRAFT_SAMPLED && !(d->kinds & DSC_DRAFT_TOPK) &&
           j->rule->greedy && (info->has_draft_rank || info->has_argmax[DSC_SIDE_DRAFT]) &&
           p->origin.temperature == 0;
}

// The loop on the models there are: those of the workload or the recorded ones.
static int plan_loop(const job *j, plan *out, dsc_error *err)
{
    const dsc_workload *l = j->workload;
    const bool target = l && l->target, draft = l && l->draft;
    int rc = target || draft ? DSC_OK : find_recorded_draft(j, out, err);
    const dsc_fit fit = {.draft = draft || out->recorded_draft,
                         .middle = l && l->middle,
                         .marginals = draft || out->recorded_draft,
                         .trace = j->info && !target,
                         .dists = target,
                         .off_path = target,
                         .ranks_only = out->recorded_draft && !j->config[0].drafter->recorded,
                         .recorded_greedy = !target && !draft && sampled_argmax(j, out)};
    out->engine = LOOP;
    return rc ? rc : dsc_draft_kind_for(&out->kind, j->config[0].drafter, j->rule, &fit, err);
}

// A trace contains the distributions along the output, and the output has the target's.
static int refuse_replay(const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                         dsc_error *err)
{
    const char *why =
        !rule->lossless ? "its output does not have the distribution of the recorded one"
        : rule->off_path
            ? "it reads both models' distributions after tokens that it rejects, which "
              "a trace does not contain; of one sequence (draft-model) it is replayed"
            : "only draft-model, spectr and spectr-tree have an exact replay of rules "
              "that sample";
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s with rule %s cannot be replayed on a trace: %s; run both models "
                    "(--target SPEC --draft SPEC, or draftscope live)",
                    drafter->name, rule->name, why);
}

// Prefers the walk over the expectations over the loop, unless the options exclude them.
static int make_plan(const job *j, plan *out, dsc_error *err)
{
    const dsc_run_options *o = j->options;
    const dsc_drafter_type *drafter = j->config[0].drafter;
    const dsc_workload *l = j->workload;
    const bool asked = o->engine == DSC_ENGINE_EXPECT, target = l && l->target,
               draft = l && l->draft;
    const bool can_walk = !target && walks(j);
    *out = (plan){.engine = LOOP};
    int rc = j->info ? dsc_trace_recorded_run(&out->origin, j->info, err) : DSC_OK;
    // With argmax tokens recorded, the loop replays the drafts themselves.
    const bool can_expect = !target && !draft && dsc_rule_replays(drafter, j->rule) &&
                            (asked || !sampled_argmax(j, out));
    for (size_t c = 0; c < j->count && drafter->view && j->info && !target && !rc; c++)
        rc = drafter->view(&j->config[c], j->info, NULL, NULL, err);
    if (rc)
        return rc;
    if (j->info && !target && !draft && !can_walk && drafter->replay != DSC_DRAFT_REPLAY_NONE &&
        !j->rule->greedy && !dsc_rule_replays(drafter, j->rule) &&
        (drafter->branches ? j->rule->tree : true))
        return refuse_replay(drafter, j->rule, err);
    if (asked && !can_walk && !can_expect)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s with rule %s has no exact replay here: run it with the loop",
                        drafter->name, j->rule->name);
    if (o->engine == DSC_ENGINE_LOOP || o->step || o->steps)
        return plan_loop(j, out, err);
    if (can_walk)
        out->engine = WALK;
    else if (can_expect)
        out->engine = EXPECT_RULE;
    return out->engine == LOOP ? plan_loop(j, out, err) : DSC_OK;
}

static const char *reason(const job *j, const plan *p)
{
    const dsc_drafter_type *d = j->config[0].drafter;
    return d->is_bound && d->is_bound(&j->config[0])
               ? "an upper bound: the drafter reads what the target will accept"
           : d->view                            ? "the recorded accept lengths decide"
           : p->engine == WALK                  ? "drafts depend on the recorded output alone"
           : j->workload && j->workload->target ? "a model generates the output"
           : p->recorded_draft && d->recorded   ? "the recorded candidates replace the draft model"
           : p->recorded_draft                  ? "the recorded ranks replace the draft model"
           : j->options->widths
               ? "the cost is not linear in the tokens of a call, so calls are counted by tokens"
               : "step by step, as requested or as needed";
}

static int plan_init(job *j, dsc_error *err)
{
    int rc = make_plan(j, &j->plan, err);
    if (!rc && j->plan.engine == WALK)
        rc = dsc_plan_init(&j->walk, j->config, j->count, err);
    if (!rc && j->plan.engine == WALK)
        j->walk.end_token = j->info->eos_token;
    if (!rc)
        j->walk.trace = j->info;
    if (!rc && j->plan.engine == EXPECT_RULE)
        rc = dsc_rule_plan_init(&j->rule_plan, j->config, j->count, j->rule, j->info, err);
    return rc;
}

static void plan_fini(job *j)
{
    dsc_plan_fini(&j->walk);
    dsc_rule_plan_fini(&j->rule_plan);
}

// Room for the state that requests leave to later ones, if a method has such a state.
static int history_init(job *j, dsc_error *err)
{
    bool any = false;
    for (size_t c = 0; c < j->count; c++)
        any |=
            j->config[c].drafter->uses_history && j->config[c].drafter->uses_history(&j->config[c]);
    return any ? dsc_new(&j->history, j->count, err) : DSC_OK;
}

static int job_init(job *j, dsc_error *err)
{
    int rc = plan_init(j, err);
    if (!rc)
        rc = history_init(j, err);
    j->walk.history = j->history;
    if (!rc)
        rc = rooms_init(j, err);
    if (!rc)
        rc = dsc_new(&j->worker, (size_t)j->options->threads, err);
    for (int t = 0; t < j->options->threads && !rc; t++) {
        j->worker[t].failed = -1;
        rc = results_init(&j->worker[t].results, j, 1, 1, err);
    }
    if (!rc && (j->options->request || j->options->group || j->options->warmup ||
                j->plan.engine == EXPECT_RULE)) {
        // Long drafts have long histograms: fewer requests at a time bound their memory.
        int64_t fit = CHUNK_CELLS / list_elements(j);
        fit = fit < 1 ? 1 : fit > CHUNK_REQUESTS ? CHUNK_REQUESTS : fit;
        rc = results_init(&j->single, j, (size_t)fit, 1, err);
    }
    return rc;
}

static void job_fini(job *j)
{
    for (int t = 0; j->worker && t < j->options->threads; t++) {
        worker *w = &j->worker[t];
        dsc_arena_fini(&w->arena);
        dsc_loop_fini(&w->loop);
        dsc_model_trace_fini(&w->recorded);
        dsc_model_trace_fini(&w->offered);
        dsc_model_synthetic_fini(&w->target);
        dsc_model_synthetic_fini(&w->draft);
        dsc_model_synthetic_fini(&w->middle);
        dsc_position_room_fini(&w->room);
        dsc_results_fini(&w->results);
    }
    for (size_t c = 0; j->history && c < j->count; c++)
        dsc_arena_fini(&j->history[c].arena);
    free(j->history);
    free(j->room);
    free(j->worker);
    plan_fini(j);
    dsc_results_fini(&j->single);
}

static int run_all(job *j, const dsc_trace *trace, dsc_error *err)
{
    int64_t done = 0;
    if (!trace)
        return run_shard(j, NULL, 0, j->first, j->end, &done,
                         j->workload->requests * j->workload->max_tokens, err);
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !rc; s++) {
        dsc_shard *shard;
        int64_t base = dsc_trace_first_request(trace, s), n = dsc_trace_first_request(trace, s + 1);
        if (n <= j->first || base >= j->end)
            continue;
        rc = dsc_shard_open(&shard, trace, s, err);
        if (!rc)
            rc = run_shard(j, shard, base, j->first > base ? j->first - base : 0,
                           (j->end < n ? j->end : n) - base, &done,
                           dsc_trace_get_info(trace)->output_tokens, err);
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

static job make_job(const dsc_trace *trace, const dsc_config *config, size_t count,
                    const dsc_run_options *options)
{
    const dsc_trace_info *info = trace ? dsc_trace_get_info(trace) : NULL;
    const dsc_workload *l = options->workload;
    return (job){.config = config,
                 .count = count,
                 .options = options,
                 .rule = options->rule ? options->rule : &dsc_verifier_greedy,
                 .workload = l,
                 .info = info,
                 .first = options->first_request,
                 .end = options->end_request ? options->end_request
                        : info               ? info->requests
                                             : l->requests,
                 .longest_output = info ? info->max_output_tokens : l->max_tokens};
}

static int check_configs(const dsc_config *config, size_t count, dsc_error *err)
{
    int rc =
        config && count ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "there is no configuration to run");
    for (size_t c = 0; c < count && !rc; c++) {
        const dsc_drafter_type *d = config[c].drafter;
        rc = dsc_config_check(&config[c], err);
        if (!rc && d != config[0].drafter)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "configuration %zu is of method %s, configuration 0 of %s; a run takes "
                          "one method",
                          c, d->name, config[0].drafter->name);
        if (!rc && d->release && !config[c].prepared)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "configuration %zu of method %s is not prepared; call "
                          "dsc_config_prepare first",
                          c, d->name);
    }
    return rc;
}

static int check_options(const dsc_trace *trace, const dsc_run_options *o, dsc_error *err)
{
    if (!trace && !o->workload)
        return dsc_fail(err, DSC_EUSAGE, "there is neither a trace nor a workload to run over");
    if (o->rule && !o->rule->verify)
        return dsc_fail(err, DSC_EUSAGE, "the rule lacks the function verify");
    const int64_t total = trace ? dsc_trace_get_info(trace)->requests : o->workload->requests;
    if (o->threads < 1 || o->threads > DSC_MAX_THREADS)
        return dsc_fail(err, DSC_EUSAGE, "threads is %d; it must be from 1 to %d", o->threads,
                        DSC_MAX_THREADS);
    if (o->steps > DSC_STEPS_EVERYWHERE)
        return dsc_fail(err, DSC_EUSAGE, "steps is %d; it must be a dsc_loop_steps", (int)o->steps);
    if (o->engine > DSC_ENGINE_EXPECT)
        return dsc_fail(err, DSC_EUSAGE, "engine is %d; it must be a dsc_engine", (int)o->engine);
    if (o->first_request < 0 || o->end_request < 0 ||
        (o->end_request && o->first_request > o->end_request) || o->end_request > total)
        return dsc_fail(err, DSC_EUSAGE,
                        "requests [%" PRId64 ", %" PRId64 ") are not a range of the %" PRId64
                        " requests",
                        o->first_request, o->end_request, total);
    const int64_t run = (o->end_request ? o->end_request : total) - o->first_request;
    if (o->warmup < 0 || (o->warmup && o->warmup >= run))
        return dsc_fail(err, DSC_EUSAGE,
                        "warmup is %" PRId64 "; it must be from 0 to %" PRId64
                        ", so that one of the %" PRId64 " requests is counted",
                        o->warmup, run > 0 ? run - 1 : 0, run);
    return DSC_OK;
}

static int check_groups(const dsc_trace *trace, const dsc_run_options *o, dsc_error *err)
{
    const int64_t n = trace && o->group ? dsc_trace_get_info(trace)->requests : 0;
    if (o->groups < 0 || !o->group != !o->groups || (o->group && !trace))
        return dsc_fail(err, DSC_EUSAGE,
                        "groups is %" PRId32 "; groups need a trace, a list of the requests' "
                        "groups and a number above 0",
                        o->groups);
    for (int64_t r = 0; r < n; r++)
        if (o->group[r] < 0 || o->group[r] >= o->groups)
            return dsc_fail(err, DSC_EUSAGE,
                            "request %" PRId64 " is in group %" PRId32 "; it must be from 0 to "
                            "%" PRId32,
                            r, o->group[r], o->groups - 1);
    return DSC_OK;
}

// The checks of what a caller passes; the rest of this file relies on them.
static int check_run(const dsc_trace *trace, const dsc_config *config, size_t count,
                     const dsc_run_options *options, const void *out, dsc_error *err)
{
    if (!options || !out)
        return dsc_fail(err, DSC_EUSAGE, "options and out must not be NULL");
    if (options->step && count != 1)
        return dsc_fail(err, DSC_EUSAGE, "step records of %zu configurations: one is possible",
                        count);
    int rc = check_configs(config, count, err);
    if (!rc)
        rc = check_options(trace, options, err);
    return rc ? rc : check_groups(trace, options, err);
}

int dsc_run_choose(const dsc_trace *trace, const dsc_config *config, size_t count,
                   const dsc_run_options *options, dsc_engine_choice *out, dsc_error *err)
{
    int rc = check_run(trace, config, count, options, out, err);
    if (rc)
        return rc;
    job j = make_job(trace, config, count, options);
    rc = plan_init(&j, err);
    if (!rc) {
        const bool expected = j.plan.engine == EXPECT_RULE;
        const char *reads = expected ? dsc_rule_plan_reads(&j.rule_plan) : "";
        *out = (dsc_engine_choice){.engine =
                                       j.plan.engine == LOOP ? DSC_ENGINE_LOOP : DSC_ENGINE_EXPECT,
                                   .expected = expected,
                                   .recorded = j.plan.recorded_draft};
        snprintf(out->reads, sizeof out->reads, "%s", reads);
        snprintf(out->why, sizeof out->why, "%s%s",
                 expected ? "expectations given the recorded output, from " : reason(&j, &j.plan),
                 reads);
    }
    plan_fini(&j);
    return rc;
}

// The acceptance of one token at a position does not determine that of several.
static int check_candidates(const dsc_workload *l, const dsc_config *config, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    if (!l->draft || !l->draft->one_draft || !d->needs_draft ||
        dsc_config_width(config) <= 1 + dsc_config_limit(config))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s verifies several candidates at a position, but the acceptance rates "
                    "are those of one; iid:ALPHA is a model that it can run on",
                    d->name);
}

int dsc_run(const dsc_trace *trace, const dsc_config *config, size_t count,
            const dsc_run_options *options, dsc_results *out, dsc_error *err)
{
    int rc = check_run(trace, config, count, options, out, err);
    if (out)
        *out = (dsc_results){0};
    if (rc)
        return rc;
    const dsc_trace_info *info = trace ? dsc_trace_get_info(trace) : NULL;
    const dsc_workload *l = options->workload;
    job j = make_job(trace, config, count, options);
    rc = l ? dsc_workload_check(l, info ? info->vocab_size : 0, err) : DSC_OK;
    for (size_t c = 0; c < count && l && !rc; c++)
        rc = check_candidates(l, &config[c], err);
    rc = rc ?: job_init(&j, err);
    const size_t each = 1 + (size_t)options->groups;
    j.sums = out;
    if (!rc)
        rc = results_init(out, &j, 1, each, err);
    if (!rc)
        rc = run_all(&j, trace, err);
    for (int t = 0; t < options->threads && !rc; t++)
        for (size_t c = 0; c < count; c++)
            dsc_counts_add(&out->counts[c * each], &j.worker[t].results.counts[c]);
    if (rc)
        dsc_results_fini(out);
    job_fini(&j);
    return rc;
}

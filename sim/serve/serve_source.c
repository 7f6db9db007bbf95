// SPDX-License-Identifier: Apache-2.0
// Reads the drafts of a trace's requests, in parallel.
#include "sim/serve/serve_source.h"

#include "base/rng.h"
#include "base/threads.h"
#include "sim/serve/serve_levels.h"
#include "sim/serve/serve_replay.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef dsc_serve_draft draft;

// --- a request of a trace ------------------------------------------------------------------------

typedef struct worker {
    dsc_arena arena;
    dsc_position_room room;
    int64_t passes, failed; // of the draft model for a draft; the request that failed, or -1
    dsc_error error;
} worker;

typedef struct job {
    dsc_serve_source *source;
    const dsc_trace_info *info;
    const dsc_config *config;
    const dsc_verifier_type *rule;
    enum {
        MATCH,      // match_lengths
        CHAIN,      // one draft of a draft model
        LEVELS,     // several samples at a position
        EVERYWHERE, // by the loop at every position: chains, trees of one shape
        SCRIPT      // the steps of the loop
    } kind;
    int64_t limit;            // the most tokens of a draft
    dsc_rule_plan rules;      // CHAIN, LEVELS
    const dsc_workload *load; // models in addition to the trace, or NULL
    uint64_t seed;
    worker *worker; // [threads]
} job;

static uint16_t cut(int64_t tokens, int64_t limit)
{
    const int64_t most = limit < UINT16_MAX ? limit : UINT16_MAX;
    return (uint16_t)(tokens < 0 ? 0 : tokens < most ? tokens : most);
}

static int match(const job *j, worker *w, const dsc_request *q, draft *out, dsc_error *err)
{
    const size_t n = (size_t)q->output.count;
    const dsc_drafter_input in = {.request = q,
                                  .config = j->config,
                                  .parameter = j->config->parameter,
                                  .seed = j->seed,
                                  .arena = &w->arena,
                                  .end_token = j->info->eos_token};
    dsc_match_lengths found = {.passes = 0};
    int rc = dsc_arena_new(&w->arena, &found.available, n, err);
    rc = rc ?: dsc_arena_new(&w->arena, &found.run, n, err);
    rc = rc ?: j->config->drafter->match_lengths(&in, 1, j->limit, &found, err);
    for (size_t i = 0; i < n && !rc; i++)
        out[i] = (draft){cut(found.available[i], j->limit), cut(found.run[i], j->limit)};
    w->passes = found.passes;
    return rc;
}

// Greedy: a draft agrees up to the first position whose token is not the draft model's argmax.
static void follow_ranks(const job *j, const dsc_request *q, draft *out)
{
    const int64_t n = q->output.count, depth = j->rules.rank_depth;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t *rank = q->replayed.draft_rank + i * depth;
        int64_t run = 0;
        while (run < j->limit && run < depth && i + run < n - 1 && rank[run] == 0)
            run++;
        out[i] = (draft){cut(j->limit, j->limit), cut(run, j->limit)};
    }
}

// From the end: a draft at i is accepted one token further than that at i + 1, or not at all. The
// last token is always the target's own.
static void follow_positions(const job *j, int64_t n, const bool *accepted, draft *out)
{
    int64_t run = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        run = i < n - 1 && accepted[i] ? run + 1 : 0;
        out[i] = (draft){cut(j->limit, j->limit), cut(run, j->limit)};
    }
}

static double uniform(const job *j, const dsc_request *q, int64_t position)
{
    return dsc_rng_uniform(j->seed, (uint64_t)q->index, (uint32_t)position, DSC_RNG_ACCEPT);
}

// Block verification accepts i tokens or more with the smallest product of draft/target over the
// first 1 .. i of them (sim/expect/expect_rule.c); one number decides a draft.
static void follow_blocks(const job *j, const dsc_request *q, const double *ratio, draft *out)
{
    const int64_t n = q->output.count;
    for (int64_t i = 0; i < n; i++) {
        const double u = uniform(j, q, i);
        double product = 1;
        int64_t run = 0;
        while (run < j->limit && i + run < n - 1) {
            product = fmin(product * ratio[i + run], 1e300);
            if (!(u < product))
                break;
            run++;
        }
        out[i] = (draft){cut(j->limit, j->limit), cut(run, j->limit)};
    }
}

static int draw(const job *j, worker *w, const dsc_request *q, draft *out, dsc_error *err)
{
    const int64_t n = q->output.count;
    double *ratio;
    bool *accepted;
    int rc = dsc_arena_new(&w->arena, &ratio, (size_t)n, err);
    rc = rc ?: dsc_arena_new(&w->arena, &accepted, (size_t)n, err);
    for (int64_t i = 0; i < n && !rc; i++) {
        double drafted, target;
        rc = dsc_position_logp(q, DSC_SIDE_DRAFT, i, &drafted, err);
        rc = rc ?: dsc_position_logp(q, DSC_SIDE_TARGET, i, &target, err);
        if (rc)
            break;
        ratio[i] = exp(drafted - target);
        accepted[i] = uniform(j, q, i) < ratio[i];
    }
    if (!rc && (j->rule->replay == DSC_RULE_REPLAY_BLOCK ||
                j->rule->replay == DSC_RULE_REPLAY_PATHS)) // of one sequence
        follow_blocks(j, q, ratio, out);
    else if (!rc)
        follow_positions(j, n, accepted, out);
    return rc;
}

static int follow_draft_model(const job *j, worker *w, const dsc_request *q, draft *out,
                              dsc_error *err)
{
    const int64_t n = q->output.count;
    bool *accepted;
    if (!j->rule->greedy)
        return draw(j, w, q, out, err);
    if (j->rules.rank_depth) {
        follow_ranks(j, q, out);
        return DSC_OK;
    }
    int rc = dsc_arena_new(&w->arena, &accepted, (size_t)n, err);
    for (int64_t i = 0; i < n && !rc; i++)
        accepted[i] = q->replayed.argmax[DSC_SIDE_DRAFT][i] == q->output.id[i];
    if (!rc)
        follow_positions(j, n, accepted, out);
    return rc;
}

static int draw_levels(const job *j, worker *w, const dsc_request *q, draft *out, dsc_error *err)
{
    const dsc_serve_source *s = j->source;
    return dsc_serve_levels_draw(&j->rules, s->tree, s->longest, q, j->seed, &w->room, &w->arena,
                                 out, err);
}

static int read_request(const job *j, worker *w, dsc_request *q, dsc_error *err)
{
    const dsc_drafter_type *d = j->config->drafter;
    const int64_t index = q->index;
    draft *drafts;
    int rc = DSC_OK;
    dsc_arena_reset(&w->arena);
    if (d->view)
        rc = d->view(j->config, j->info, q, &w->arena, err);
    if (rc || !q->output.count)
        return rc;
    if (q->output.count > INT32_MAX / 4 || q->prompt.count > INT32_MAX / 4)
        return dsc_fail(err, DSC_EINPUT, "the prompt or the output has more than %d tokens",
                        INT32_MAX / 4);
    rc = dsc_new(&drafts, (size_t)q->output.count, err);
    if (rc)
        return rc;
    j->source->item[index] =
        (dsc_serve_item){.prompt = q->prompt.count ? (int32_t)q->prompt.count : 1,
                         .output = (int32_t)q->output.count,
                         .draft = drafts};
    rc = dsc_strndup(&j->source->id[index], q->id.bytes, (size_t)q->id.length, err);
    if (rc)
        return rc;
    w->passes = j->config->drafter->needs_draft ? DSC_PASS_PER_TOKEN : 0;
    return j->kind == MATCH    ? match(j, w, q, drafts, err)
           : j->kind == CHAIN  ? follow_draft_model(j, w, q, drafts, err)
           : j->kind == LEVELS ? draw_levels(j, w, q, drafts, err)
                               : DSC_OK;
}

// --- a trace -------------------------------------------------------------------------------------

static void read_shard(const job *j, const dsc_shard *shard, int threads)
{
    const int64_t n = dsc_shard_requests(shard);
    (void)threads;
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        worker *w = &j->worker[omp_get_thread_num()];
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        const int64_t index = q.index;
        if (w->failed < 0 && read_request(j, w, &q, &w->error))
            w->failed = index;
    }
}

// The failure of the earliest request, whatever the threads.
static int first_failure(const job *j, int threads, dsc_error *err)
{
    const worker *worst = NULL;
    for (int t = 0; t < threads; t++) {
        const worker *w = &j->worker[t];
        if (w->failed >= 0 && (!worst || w->failed < worst->failed))
            worst = w;
    }
    return worst ? dsc_fail(err, worst->error.status, "request %" PRId64 ": %.900s", worst->failed,
                            worst->error.message)
                 : DSC_OK;
}

static int read_trace(const job *j, const dsc_trace *trace, int threads, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !rc; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, trace, s, err);
        if (rc)
            break;
        read_shard(j, shard, threads);
        rc = first_failure(j, threads, err);
        rc = rc ?: dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

// Closes the gaps of requests without output.
static int close_gaps(dsc_serve_source *s, dsc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        const dsc_serve_item item = s->item[i];
        if (!item.output)
            continue;
        char *id = s->id[i];
        s->id[i] = NULL;
        s->item[i] = (dsc_serve_item){0};
        if (s->script) {
            dsc_serve_pass *script = s->script[i];
            s->script[i] = NULL;
            s->script[kept] = script;
        }
        s->item[kept] = item;
        s->id[kept] = id;
        s->request[kept++] = (int64_t)i;
    }
    s->count = kept;
    return kept ? DSC_OK : dsc_fail(err, DSC_EINPUT, "the trace has no request with output tokens");
}

static void find_longest(dsc_serve_source *s)
{
    for (size_t i = 0; i < s->count; i++)
        for (int32_t t = 0; t < s->item[i].output; t++)
            if (s->item[i].draft[t].available > s->longest)
                s->longest = s->item[i].draft[t].available;
}

static int find_drafting(dsc_serve_source *s, const job *j, int threads, dsc_error *err)
{
    int64_t passes = 0;
    if (j->kind == SCRIPT)
        return DSC_OK;
    find_longest(s);
    for (int t = 0; t < threads; t++)
        passes = j->worker[t].passes ? j->worker[t].passes : passes;
    s->drafting = passes == DSC_PASS_PER_TOKEN ? DSC_SERVE_DRAFT_EACH
                  : passes                     ? DSC_SERVE_DRAFT_ONCE
                                               : DSC_SERVE_DRAFT_FREE;
    if (passes > 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s makes %" PRId64
                        " passes of the draft model for a draft; a served draft takes none, one "
                        "(1), or one for each token (-1): --draft-passes",
                        j->config->drafter->name, passes);
    return s->longest <= DSC_SERVE_LONGEST
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "method %s drafts %" PRId32
                          " tokens at a position; a served draft has at most %d: "
                          "--num-speculative-tokens",
                          j->config->drafter->name, s->longest, DSC_SERVE_LONGEST);
}

// Whether the drafts of a configuration are chains that match_lengths describes.
static bool is_chain(const dsc_drafter_type *d, const dsc_config *config)
{
    return d->match_lengths && (!d->is_chain || !config || d->is_chain(config));
}

static dsc_run_options run_options(const job *j, int threads)
{
    return (dsc_run_options){
        .rule = j->rule, .workload = j->load, .threads = threads, .seed = j->seed};
}

// Whether the loop makes drafts that depend on the preceding tokens only, chains with a pass of the
// draft model for each token or trees of one shape.
static bool is_memoryless(const dsc_drafter_type *d)
{
    return d->levels || !(d->observe || d->branches || d->parallel || d->needs_middle || d->copies);
}

// How the method's drafts are known: as draftscope sim would replay them.
static int plan(job *j, const dsc_trace *trace, dsc_error *err)
{
    const dsc_drafter_type *d = j->config->drafter;
    const dsc_run_options options = run_options(j, 1);
    dsc_engine_choice choice;
    const int found = d->view ? d->view(j->config, j->info, NULL, NULL, err) : DSC_OK;
    if (found)
        return found;
    if (is_chain(d, j->config) && (j->rule->greedy || j->rule->lossless)) {
        j->kind = !d->matches_steps ? MATCH : d->view ? SCRIPT : EVERYWHERE;
        j->rule = &dsc_verifier_greedy; // lossless ones accept such drafts as far as they agree
        return DSC_OK;
    }
    if (!j->rule->greedy && !(dsc_rule_replays(d, j->rule) && dsc_rule_is_by_position(d, j->rule)))
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s with rule %s cannot be served from a trace, which contains no "
                        "acceptances to sample from; try --rule greedy",
                        d->name, j->rule->name);
    int rc = dsc_run_choose(trace, j->config, 1, &options, &choice, err);
    if (rc)
        return rc;
    if (choice.engine != DSC_ENGINE_LOOP && d->replay == DSC_DRAFT_REPLAY_OFFSETS)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s with rule %s cannot be served from a trace, whose drafts are "
                        "sampled anew at each step; try --rule greedy, or method ddtree",
                        d->name, j->rule->name);
    j->kind = choice.engine == DSC_ENGINE_LOOP      ? is_memoryless(d) ? EVERYWHERE : SCRIPT
              : d->replay == DSC_DRAFT_REPLAY_CHAIN ? CHAIN
                                                    : LEVELS;
    if (choice.engine != DSC_ENGINE_LOOP)
        rc = dsc_rule_plan_init(&j->rules, j->config, 1, j->rule, j->info, err);
    if (!rc && (j->kind == LEVELS || (j->kind == EVERYWHERE && d->levels)))
        rc = dsc_serve_levels_new(&j->source->tree, &j->source->longest, j->config, err);
    if (!rc && j->source->tree)
        j->source->widest = j->source->tree[j->source->longest].tokens;
    return rc;
}

static int run_loop(const job *j, const dsc_trace *trace, int threads, dsc_error *err)
{
    const dsc_run_options options = run_options(j, threads);
    if (j->kind == EVERYWHERE)
        return dsc_serve_replay_everywhere(j->source, trace, j->config, &options, err);
    return j->kind == SCRIPT ? dsc_serve_replay_requests(j->source, trace, j->source->count,
                                                         j->config, &options, err)
                             : DSC_OK;
}

static int read_all(job *j, const dsc_trace *trace, int threads, dsc_error *err)
{
    int rc = dsc_serve_source_init(j->source, (size_t)j->info->requests, err);
    rc = rc ?: dsc_new(&j->worker, (size_t)threads, err);
    for (int t = 0; t < threads && !rc; t++)
        j->worker[t].failed = -1;
    rc = rc ?: read_trace(j, trace, threads, err);
    rc = rc ?: run_loop(j, trace, threads, err);
    rc = rc ?: close_gaps(j->source, err);
    return rc ? rc : find_drafting(j->source, j, threads, err);
}

int dsc_serve_source_models(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                            const dsc_verifier_type *rule, const dsc_workload *load, uint64_t seed,
                            int threads, dsc_error *err)
{
    job j = {.source = out,
             .info = trace ? dsc_trace_get_info(trace) : NULL,
             .config = config,
             .rule = rule,
             .load = load,
             .limit = dsc_config_limit(config),
             .seed = seed};
    const dsc_run_options options = run_options(&j, threads);
    *out = (dsc_serve_source){0};
    if (!trace)
        return dsc_serve_replay_workload(out, config, &options, err);
    int rc = plan(&j, trace, err);
    rc = rc ?: read_all(&j, trace, threads, err);
    for (int t = 0; j.worker && t < threads; t++) {
        dsc_arena_fini(&j.worker[t].arena);
        dsc_position_room_fini(&j.worker[t].room);
    }
    free(j.worker);
    dsc_rule_plan_fini(&j.rules);
    return rc;
}

int dsc_serve_source_trace(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, uint64_t seed, int threads,
                           dsc_error *err)
{
    return dsc_serve_source_models(out, trace, config, rule, NULL, seed, threads, err);
}

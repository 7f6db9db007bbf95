// SPDX-License-Identifier: Apache-2.0
// Drafts at every output position, of a trace's requests in parallel or drawn from rates.
#include "sim/serve/serve_source.h"

#include "base/rng.h"
#include "base/threads.h"
#include "sim/expect/expect_rule.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef dsc_serve_draft draft;

// --- memory --------------------------------------------------------------------------------------

static int source_init(dsc_serve_source *s, size_t count, dsc_error *err)
{
    int rc = dsc_new(&s->item, count, err);
    if (!rc)
        rc = dsc_new(&s->request, count, err);
    if (!rc)
        rc = dsc_new(&s->id, count, err);
    s->count = rc ? 0 : count;
    return rc;
}

void dsc_serve_source_fini(dsc_serve_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((draft *)s->item[i].draft);
        free((double *)s->item[i].survival);
        free(s->id[i]);
    }
    free(s->item);
    free(s->request);
    free(s->id);
    *s = (dsc_serve_source){0};
}

// --- a request of a trace ------------------------------------------------------------------------

typedef struct worker {
    dsc_arena arena;
    int64_t passes, failed; // of the draft model for a draft; the request that failed, or -1
    dsc_error error;
} worker;

typedef struct job {
    dsc_serve_source *source;
    const dsc_trace_info *info;
    const dsc_config *config;
    const dsc_verifier_type *rule;
    int64_t limit;      // the most tokens of a draft
    bool walks;         // drafts are matched, not drawn
    int32_t rank_depth; // of draft_rank; 0: argmax is read
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
    if (!rc)
        rc = dsc_arena_new(&w->arena, &found.run, n, err);
    if (!rc)
        rc = j->config->drafter->match_lengths(&in, 1, j->limit, &found, err);
    for (size_t i = 0; i < n && !rc; i++)
        out[i] = (draft){cut(found.available[i], j->limit), cut(found.run[i], j->limit)};
    w->passes = found.passes;
    return rc;
}

// Greedy: a draft agrees up to the first position whose token is not the draft model's argmax.
static void follow_ranks(const job *j, const dsc_request *q, draft *out)
{
    const int64_t n = q->output.count, depth = j->rank_depth;
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
    if (!rc)
        rc = dsc_arena_new(&w->arena, &accepted, (size_t)n, err);
    for (int64_t i = 0; i < n && !rc; i++) {
        double drafted, target;
        rc = dsc_position_logp(q, DSC_SIDE_DRAFT, i, &drafted, err);
        if (!rc)
            rc = dsc_position_logp(q, DSC_SIDE_TARGET, i, &target, err);
        if (rc)
            break;
        ratio[i] = exp(drafted - target);
        accepted[i] = uniform(j, q, i) < ratio[i];
    }
    if (!rc && j->rule->replay == DSC_RULE_REPLAY_BLOCK)
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
    w->passes = DSC_PASS_PER_TOKEN;
    if (!j->rule->greedy)
        return draw(j, w, q, out, err);
    if (j->rank_depth) {
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
    return j->walks ? match(j, w, q, drafts, err) : follow_draft_model(j, w, q, drafts, err);
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
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

// Closes the gaps of requests without output, and finds the longest draft.
static int close_gaps(dsc_serve_source *s, dsc_error *err)
{
    size_t kept = 0;
    int32_t longest = 0;
    for (size_t i = 0; i < s->count; i++) {
        const dsc_serve_item item = s->item[i];
        for (int32_t t = 0; t < item.output; t++)
            longest = item.draft[t].available > longest ? item.draft[t].available : longest;
        if (!item.output)
            continue;
        char *id = s->id[i];
        s->id[i] = NULL;
        s->item[i] = (dsc_serve_item){0};
        s->item[kept] = item;
        s->id[kept] = id;
        s->request[kept++] = (int64_t)i;
    }
    s->count = kept;
    s->longest = longest;
    return kept ? DSC_OK : dsc_fail(err, DSC_EINPUT, "the trace has no request with output tokens");
}

static int find_drafting(dsc_serve_source *s, const job *j, int threads, dsc_error *err)
{
    int64_t passes = 0;
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

static int refuse(const job *j, dsc_error *err)
{
    dsc_buffer names = {0};
    int rc = DSC_OK;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d && !rc; d++)
        if (is_chain(*d, NULL) || (*d)->replay == DSC_DRAFT_REPLAY_CHAIN)
            rc = dsc_buffer_printf(&names, err, "%s%s", names.length ? ", " : "", (*d)->name);
    if (!rc)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "method %s with rule %s cannot be served from a trace: it has no single "
                      "draft at every output position; methods that can: %s",
                      j->config->drafter->name, j->rule->name, names.data);
    dsc_buffer_fini(&names);
    return rc;
}

// How the method's drafts are known, and whether the trace has the columns for it.
static int plan(job *j, dsc_error *err)
{
    const dsc_drafter_type *d = j->config->drafter;
    dsc_rule_plan rules;
    const int found = d->view ? d->view(j->config, j->info, NULL, NULL, err) : DSC_OK;
    if (found)
        return found;
    j->walks = is_chain(d, j->config) && (j->rule->greedy || j->rule->lossless);
    if (j->walks)
        return DSC_OK;
    if (d->replay != DSC_DRAFT_REPLAY_CHAIN || !dsc_rule_replays(d, j->rule))
        return refuse(j, err);
    int rc = dsc_rule_plan_init(&rules, j->config, 1, j->rule, j->info, err);
    if (rc)
        return rc;
    j->rank_depth = rules.rank_depth;
    dsc_rule_plan_fini(&rules);
    return DSC_OK;
}

int dsc_serve_source_trace(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, uint64_t seed, int threads,
                           dsc_error *err)
{
    job j = {.source = out,
             .info = dsc_trace_get_info(trace),
             .config = config,
             .rule = rule,
             .limit = dsc_config_limit(config),
             .seed = seed};
    *out = (dsc_serve_source){0};
    int rc = plan(&j, err);
    if (!rc)
        rc = source_init(out, (size_t)j.info->requests, err);
    if (!rc)
        rc = dsc_new(&j.worker, (size_t)threads, err);
    for (int t = 0; t < threads && !rc; t++)
        j.worker[t].failed = -1;
    if (!rc)
        rc = read_trace(&j, trace, threads, err);
    if (!rc)
        rc = close_gaps(out, err);
    if (!rc)
        rc = find_drafting(out, &j, threads, err);
    for (int t = 0; j.worker && t < threads; t++)
        dsc_arena_fini(&j.worker[t].arena);
    free(j.worker);
    return rc;
}

// --- rates ---------------------------------------------------------------------------------------

static int draw_request(dsc_serve_source *s, const dsc_serve_rates *r, int64_t request,
                        double *rate, dsc_error *err)
{
    char id[24];
    draft *drafts;
    double *survivals;
    int rc = dsc_new(&drafts, (size_t)r->output, err);
    if (rc)
        return rc;
    s->item[request] = (dsc_serve_item){.prompt = r->prompt, .output = r->output, .draft = drafts};
    s->request[request] = request;
    rc = dsc_new(&survivals, (size_t)r->length, err);
    if (rc)
        return rc;
    s->item[request].survival = survivals;
    r->rates(r->user, request, r->length, rate);
    for (int32_t d = 0; d < r->length; d++)
        survivals[d] = (d ? survivals[d - 1] : 1) * rate[d];
    for (int32_t i = 0; i < r->output; i++) {
        const double u = dsc_rng_uniform(r->seed, (uint64_t)request, (uint32_t)i, DSC_RNG_ACCEPT);
        const int32_t left = r->output - 1 - i;
        double survival = 1;
        int32_t run = 0;
        while (run < r->length && run < left && u < (survival *= rate[run]))
            run++;
        drafts[i] = (draft){(uint16_t)r->length, (uint16_t)run};
    }
    snprintf(id, sizeof id, "%" PRId64, request);
    return dsc_strndup(&s->id[request], id, strlen(id), err);
}

int dsc_serve_source_rates(dsc_serve_source *out, const dsc_serve_rates *r,
                           dsc_serve_drafting drafting, dsc_error *err)
{
    double *rate = NULL;
    *out = (dsc_serve_source){0};
    if (r->requests < 1 || r->prompt < 1 || r->output < 1 || r->length < 0 ||
        r->length > DSC_SERVE_LONGEST)
        return dsc_fail(err, DSC_EUSAGE,
                        "a served request has at least one token of prompt and output, and drafts "
                        "of at most %d tokens",
                        DSC_SERVE_LONGEST);
    int rc = source_init(out, (size_t)r->requests, err);
    if (!rc)
        rc = dsc_new(&rate, (size_t)r->length + 1, err);
    for (int64_t i = 0; i < r->requests && !rc; i++)
        rc = draw_request(out, r, i, rate, err);
    out->longest = r->length;
    out->drafting = drafting;
    free(rate);
    return rc;
}

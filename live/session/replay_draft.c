// SPDX-License-Identifier: Apache-2.0
// Replays recorded drafts as the draft model of a loop. Greedy drafts follow the recorded ranks;
// for sampled drafts, the number accepted at each level is sampled from the recorded acceptance
// distribution of the rule (sim/expect/expect_rule.h); of accept lengths, only the passes are run.
// A session runs the passes.
#include "live/session/replay_draft.h"

#include "base/rng.h"
#include "sim/expect/expect_rule.h"
#include "sim/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- what a trace has ----------------------------------------------------------------------------

static int find_ranks(const dsc_trace *trace, const dsc_config *config,
                      const dsc_verifier_type *rule, dsc_error *err)
{
    const dsc_run_options o = {.engine = DSC_ENGINE_LOOP, .rule = rule, .threads = 1};
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    dsc_engine_choice choice;
    if (!info->has_draft_rank && !info->has_argmax[DSC_SIDE_DRAFT])
        return dsc_fail(
            err, DSC_EUSAGE, "method %s requires column draft_rank, which the trace lacks (%s)",
            config->drafter->name,
            info->steps != DSC_STEPS_NONE ? "--method recorded-steps replays its steps"
            : info->drafters              ? "--method recorded replays its accept lengths"
                             : "record it with draftscope live record --draft DIR, or compute it "
                               "with trace reduce");
    return dsc_run_choose(trace, config, 1, &o, &choice, err);
}

static int find_dists(live_draft_record *r, const dsc_trace *trace, const dsc_config *config,
                      const dsc_verifier_type *rule, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    const dsc_run_options o = {.engine = DSC_ENGINE_EXPECT, .rule = rule, .threads = 1};
    dsc_engine_choice choice;
    if (!dsc_rule_replays(d, rule) || !dsc_rule_is_by_position(d, rule))
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s with rule %s: a trace contains no acceptances to sample from "
                        "(supported: draft-model with rejection, block, traversal, gbv, kseq, otm, "
                        "specinfer; spectr and "
                        "spectr-tree with greedy, kseq, otm, specinfer)",
                        d->name, rule->name);
    r->rule = rule;
    r->most = dsc_config_limit(config) > 0 ? dsc_config_drafts(config) : 1;
    r->drafts = d->levels ? 1 : r->most; // a tree begins with its root
    int rc = dsc_run_choose(trace, config, 1, &o, &choice, err);
    return rc || rule->greedy || r->most < 2
               ? rc
               : dsc_position_source_find(&r->dists, r->info, rule, r->most, err);
}

int64_t live_draft_record_passes(const dsc_config *config, int64_t otherwise)
{
    const dsc_drafter_type *d = config->drafter;
    const dsc_option *o = dsc_option_find(d->option, d->option_count, "draft-passes");
    return o ? config->parameter[o - d->option] : otherwise;
}

typedef struct lengths {
    live_draft_record *record;
    const dsc_config *config;
    dsc_arena arena; // of a request
} lengths;

static int measure_lengths(void *user, const dsc_request *q, dsc_error *err)
{
    lengths *l = user;
    live_draft_record *r = l->record;
    dsc_request viewed = *q;
    dsc_arena_reset(&l->arena);
    int rc = l->config->drafter->view(l->config, r->info, &viewed, &l->arena, err);
    if (rc)
        return rc;
    r->written = viewed.output.count > r->written ? viewed.output.count : r->written;
    for (int64_t i = 0; i < viewed.output.count && viewed.accept[1]; i++)
        r->nodes = viewed.accept[1][i] > r->nodes ? viewed.accept[1][i] : r->nodes;
    return DSC_OK;
}

static int find_lengths(live_draft_record *r, const dsc_trace *trace, const dsc_config *config,
                        dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    const int64_t passes = live_draft_record_passes(config, 0);
    lengths l = {.record = r, .config = config};
    if (d->is_bound && d->is_bound(config))
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s is an upper bound here, which no drafter reaches (draftscope "
                        "sim computes it)",
                        d->name);
    int rc = d->view(config, r->info, NULL, NULL, err);
    if (!rc)
        rc = dsc_trace_each(trace, measure_lengths, &l, err);
    r->nodes = d->matches_steps ? r->nodes : dsc_config_limit(config);
    r->nodes = passes - 1 > r->nodes ? passes - 1 : r->nodes;
    dsc_arena_fini(&l.arena);
    return rc;
}

int live_draft_record_find(live_draft_record *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    const bool chosen = !d->kinds || d->kinds & DSC_DRAFT_TOPK;
    *out = (live_draft_record){.info = dsc_trace_get_info(trace)};
    int rc = dsc_trace_recorded_run(&out->origin, out->info, err);
    if (rc)
        return rc;
    if (d->view)
        rc = find_lengths(out, trace, config, err);
    else if (!d->needs_draft)
        rc = dsc_fail(err, DSC_EUSAGE, "method %s uses no draft model", d->name);
    else if (d->needs_middle || d->needs_off_path || d->needs_draft_dists)
        rc =
            dsc_fail(err, DSC_EUSAGE,
                     "method %s needs model outputs that a trace does not contain: predictions for "
                     "text that was not generated, or draft probabilities",
                     d->name);
    else
        rc = rule->greedy && chosen ? find_ranks(trace, config, rule, err)
                                    : find_dists(out, trace, config, rule, err);
    return rc ? dsc_error_prefix(err, rc, "--replay-draft") : DSC_OK;
}

int64_t live_draft_record_limit(const live_draft_record *r)
{
    const int64_t written = r->written ? r->written : r->info->max_output_tokens;
    return r->rule || r->written || r->origin.max_tokens < written ? written : r->origin.max_tokens;
}

// --- ranks ---------------------------------------------------------------------------------------

static int ranked_next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    live_replay_draft *f = (live_replay_draft *)m;
    return f->replayed.recorded.base.type->next(&f->replayed.recorded.base, node, out, err);
}

static int ranked_top(dsc_model *m, int32_t node, size_t k, int32_t *token, size_t *count,
                      dsc_error *err)
{
    live_replay_draft *f = (live_replay_draft *)m;
    return f->replayed.recorded.base.type->top(&f->replayed.recorded.base, node, k, token, count,
                                               err);
}

static const dsc_model_type ranked = {.name = "replayed draft",
                                      .on_path_only = true,
                                      .score = live_replayed_score,
                                      .next = ranked_next,
                                      .top = ranked_top,
                                      .commit = live_replayed_commit};

// --- draws ---------------------------------------------------------------------------------------

static double uniform(const live_replay_draft *f, int64_t level, int64_t index)
{
    return dsc_rng_uniform(f->seed, (uint64_t)f->request.index, (uint32_t)f->replayed.base.length,
                           DSC_RNG_DRAFT | (uint32_t)(level << 12 | index) << 8);
}

// One draft at a time, from the two probabilities of the output's token.
static int draw_alone(live_replay_draft *f, int64_t at, int64_t *go, dsc_error *err)
{
    const bool block = f->record->rule->replay == DSC_RULE_REPLAY_BLOCK ||
                       f->record->rule->replay == DSC_RULE_REPLAY_PATHS; // of one sequence
    double draft, target;
    int rc = dsc_position_logp(&f->request, DSC_SIDE_DRAFT, at, &draft, err);
    if (!rc)
        rc = dsc_position_logp(&f->request, DSC_SIDE_TARGET, at, &target, err);
    if (rc)
        return rc;
    const double ratio = exp(draft - target);
    f->product = fmin(f->product * ratio, 1e300);
    f->least = fmin(f->least, f->product);
    *go = block ? uniform(f, 0, 0) < f->least : uniform(f, f->level, 0) < ratio;
    return DSC_OK;
}

// `count` independent drafts: each equals the output's token with the draft's probability.
static int draw_each(live_replay_draft *f, int64_t at, int64_t count, int64_t *go, dsc_error *err)
{
    double draft;
    int rc = dsc_position_logp(&f->request, DSC_SIDE_DRAFT, at, &draft, err);
    *go = 0;
    for (int64_t i = 0; i < count && !rc; i++)
        *go += uniform(f, f->level, i) < exp(draft);
    return rc;
}

static int draw_together(live_replay_draft *f, int64_t at, int64_t count, int64_t *go,
                         dsc_error *err)
{
    const dsc_position_source *dists = &f->record->dists;
    int rc = dsc_resize(&f->dist, &f->dist_capacity, dsc_position_dist_at(dists->drafts + 1), err);
    if (!rc)
        rc = dsc_position_dists(dists, &f->request, at, &f->room, f->dist, err);
    if (rc)
        return rc;
    const double *dist = f->dist + dsc_position_dist_at((int)count);
    double sum = 0, left;
    for (int64_t m = 0; m <= count; m++)
        sum += dist[m];
    left = uniform(f, f->level, 0) * sum;
    for (*go = 0; *go < count && left >= dist[*go]; ++*go)
        left -= dist[*go];
    return DSC_OK;
}

// Decides how many candidates of a level continue, at the first query of the level. Each node above
// them that lies on the output has `children`. Which of the candidates continue does not matter.
static int decide(live_replay_draft *f, int64_t level, int64_t children, dsc_error *err)
{
    const live_draft_record *r = f->record;
    const int64_t at = f->replayed.base.length + level - 1;
    int64_t above = level == 1;
    if (f->level == level)
        return DSC_OK;
    if (level == 1)
        f->product = f->least = 1;
    for (size_t j = 0; j < f->replayed.placeholder.draft.count; j++)
        above += level > 1 && f->replayed.recorded.depth[j] == level - 1;
    f->level = level;
    return r->rule->greedy ? draw_each(f, at, above * children, &f->left, err)
           : r->dists.rule ? draw_together(f, at, above * children, &f->left, err)
                           : draw_alone(f, at, &f->left, err);
}

// The next `count` of a node's `children`.
static int draw(live_replay_draft *f, int32_t node, int64_t children, size_t count, int32_t *token,
                dsc_error *err)
{
    const int64_t depth = node < 0 ? 0 : f->replayed.recorded.depth[node],
                  at = f->replayed.base.length + depth;
    const bool follows = depth >= 0 && at < f->replayed.recorded.recorded.count;
    int rc = follows ? decide(f, depth + 1, children, err) : DSC_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        const bool goes = follows && f->left > 0;
        token[i] = goes ? f->replayed.recorded.recorded.id[at] : DSC_TOKEN_OTHER;
        f->left -= goes;
    }
    return rc;
}

static int drawn_next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    live_replay_draft *f = (live_replay_draft *)m;
    *out = (dsc_next){DSC_TOKEN_OTHER, false};
    return draw(f, node, node < 0 ? f->record->drafts : 1, 1, &out->token, err);
}

static int drawn_top(dsc_model *m, int32_t node, size_t k, int32_t *token, size_t *count,
                     dsc_error *err)
{
    *count = k;
    return draw((live_replay_draft *)m, node, (int64_t)k, k, token, err);
}

static int drawn_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err)
{
    ((live_replay_draft *)m)->level = 0;
    return live_replayed_commit(m, token, n, err);
}

static const dsc_model_type drawn = {.name = "replayed draft",
                                     .on_path_only = true,
                                     .score = live_replayed_score,
                                     .next = drawn_next,
                                     .top = drawn_top,
                                     .commit = drawn_commit};

// --- accept lengths ------------------------------------------------------------------------------

static const dsc_model_type counted = {
    .name = "replayed draft", .score = live_replayed_score, .commit = live_replayed_commit};

int live_replay_draft_passes(live_replay_draft *f, const dsc_draft *d, dsc_error *err)
{
    int rc = d->draft_calls && !f->replayed.worker
                 ? dsc_fail(err, DSC_EUSAGE,
                            "the method counts passes of a draft model, and there is none (--draft "
                            "DIR, --draft-shape PRESET or --draft-layers FIRST:LAST)")
                 : DSC_OK;
    dsc_draft_clear(&f->chain);
    for (int64_t i = 0; i < d->draft_calls && !rc; i++) {
        const size_t last = f->chain.count;
        const int32_t token = last < d->count ? d->token[last] : DSC_TOKEN_OTHER;
        if (i)
            rc = dsc_draft_append_chain(&f->chain, (int32_t)last - 1, &token, 1, err);
        if (!rc)
            rc = live_replayed_score(&f->replayed.base, &f->chain, err);
    }
    return rc;
}

// --- life ----------------------------------------------------------------------------------------

void live_replay_draft_begin(live_replay_draft *f, live_session *session, int64_t vocab_size,
                             const live_draft_record *record, const dsc_request *request,
                             uint64_t seed)
{
    f->record = record;
    f->request = *request;
    f->seed = seed;
    f->level = 0;
    if (record->rule || record->written)
        dsc_model_trace_begin(&f->replayed.recorded, request->output);
    else
        dsc_model_trace_begin_draft(&f->replayed.recorded, request, record->info, &record->origin);
    live_replayed_begin(&f->replayed,
                        record->written ? &counted
                        : record->rule  ? &drawn
                                        : &ranked,
                        live_session_model(session), request->output, vocab_size);
}

void live_replay_draft_fini(live_replay_draft *f)
{
    live_replayed_fini(&f->replayed);
    dsc_draft_fini(&f->chain);
    dsc_position_room_fini(&f->room);
    free(f->dist);
    *f = (live_replay_draft){0};
}

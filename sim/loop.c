// SPDX-License-Identifier: Apache-2.0
// The speculative loop (Leviathan et al. 2023, Algorithm 1, for any method and rule), the counts of
// its steps, and the check whether a method, a rule and the models of a run are compatible.
#include "sim/loop.h"

#include <inttypes.h>
#include <string.h>

void dsc_loop_fini(dsc_loop *loop)
{
    dsc_draft_fini(&loop->draft);
    dsc_verdict_fini(&loop->verdict);
    dsc_verify_room_fini(&loop->room);
    dsc_arena_fini(&loop->arena);
}

// --- compatibility
// -----------------------------------------------------------------------------------

static int check_models(const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                        const dsc_fit *fit, dsc_error *err)
{
    if (drafter->view && !fit->trace)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s replays what a trace contains; it cannot run on models "
                        "(draftscope sim TRACE, or live run --replay TRACE --replay-draft)",
                        drafter->name);
    if (drafter->needs_off_path && !fit->off_path)
        return dsc_fail(
            err, DSC_EUSAGE,
            "method %s needs target logits for tokens that were never generated; a trace "
            "does not contain them (use --target SPEC, or draftscope live)",
            drafter->name);
    if (drafter->needs_middle && !fit->middle)
        return dsc_fail(err, DSC_EUSAGE, "method %s needs a third model (use --middle SPEC)",
                        drafter->name);
    if (drafter->needs_draft && !fit->draft)
        return dsc_fail(err, DSC_EUSAGE, "method %s needs a draft model (use --draft SPEC%s)",
                        drafter->name,
                        drafter->needs_middle || !rule->greedy ? ""
                        : drafter->needs_draft_dists || drafter->needs_marginals
                            ? ", or draftscope live run --draft DIR"
                            : ", or a trace of draftscope live record --draft DIR");
    if (!rule->greedy && !fit->dists)
        return dsc_fail(
            err, DSC_EUSAGE,
            "rule %s samples from the target's distributions, which the loop engine can do with a "
            "model only (--target); on a trace use exact replay (--evaluate expect)",
            rule->name);
    if (drafter->needs_marginals && !fit->marginals)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s needs a draft model that predicts all offsets in one pass (use "
                        "--draft markov: or iid:, or draftscope live with Medusa heads); method "
                        "draft-model drafts token after token",
                        drafter->name);
    if (fit->ranks_only && drafter->needs_draft_dists)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s needs the draft model's probabilities off the output; a trace "
                        "does not contain them (use --draft SPEC)",
                        drafter->name);
    if (fit->ranks_only && !fit->recorded_greedy && drafter->kinds &&
        !(drafter->kinds & DSC_DRAFT_TOPK))
        return dsc_fail(
            err, DSC_EUSAGE,
            "method %s samples from the draft model's distributions, which the loop cannot read "
            "from a trace (use --draft SPEC, or the expect engine)",
            drafter->name);
    return DSC_OK;
}

int dsc_draft_kind_for(dsc_draft_kind *out, const dsc_drafter_type *drafter,
                       const dsc_verifier_type *rule, const dsc_fit *fit, dsc_error *err)
{
    unsigned kinds = drafter->kinds ? drafter->kinds : DSC_DRAFT_TOPK, both = kinds & rule->kinds;
    int rc = check_models(drafter, rule, fit, err);
    if (rc)
        return rc;
    if (drafter->branches && !rule->tree)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s drafts several sequences, but rule %s verifies one (try --rule "
                        "specinfer)",
                        drafter->name, rule->name);
    if (drafter->branches && rule->sequences && drafter->replay != DSC_DRAFT_REPLAY_SEQUENCES)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s drafts a tree, but rule %s chooses among independent sequences "
                        "(try --method spectr, or --rule traversal)",
                        drafter->name, rule->name);
    if (!both)
        return dsc_fail(err, DSC_EUSAGE, "method %s cannot draft as rule %s requires: %s",
                        drafter->name, rule->name,
                        rule->kinds == DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT ? "without replacement"
                        : kinds == DSC_DRAFT_TOPK ? "samples of a draft model"
                                                  : "top-k candidates");
    if (drafter->copies && !(rule->kinds & DSC_DRAFT_TOPK))
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s also copies text, but rule %s verifies samples of a draft model "
                        "only (try --rule rejection)",
                        drafter->name, rule->name);
    // A greedy target is drafted for greedily; otherwise drafts are sampled if they can be.
    if (rule->greedy || rule->argmax)
        *out = both & DSC_DRAFT_TOPK      ? DSC_DRAFT_TOPK
               : both & DSC_DRAFT_SAMPLED ? DSC_DRAFT_SAMPLED
                                          : DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT;
    else
        *out = both & DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT ? DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT
               : both & DSC_DRAFT_SAMPLED                   ? DSC_DRAFT_SAMPLED
                                                            : DSC_DRAFT_TOPK;
    return DSC_OK;
}

// --- the loop ------------------------------------------------------------------------------------

// `context`: tokens of prompt and output before the step. A descriptor from elsewhere may draft
// more than its `limit` and `width` allow.
static int count_step(const dsc_loop *loop, const dsc_drafter_type *drafter, int64_t context,
                      dsc_counts *counts, dsc_error *err)
{
    const dsc_draft *d = &loop->draft;
    int64_t accepted = (int64_t)loop->verdict.accepted, emitted = (int64_t)loop->verdict.count;
    const int64_t width = dsc_draft_width(d), steps = counts->parallel_length;
    if (accepted >= counts->histogram_length || (counts->width && width > counts->width_length) ||
        (counts->parallel_steps && (width > steps || d->draft_calls >= steps)))
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s: a step accepted %" PRId64 " tokens of a pass on %" PRId64
                        ", more than its functions limit and width allow",
                        drafter->name, accepted, width);
    counts->target_calls++;
    counts->num_drafts_started += d->started;
    counts->num_drafts += d->proposed > 0;
    counts->num_draft_tokens += (int64_t)d->proposed;
    counts->num_accepted_tokens += accepted;
    counts->output_tokens += emitted;
    counts->draft_calls += d->draft_calls;
    counts->draft_call_tokens += d->draft_call_tokens;
    counts->target_call_tokens += width;
    counts->target_call_context += context;
    counts->output_context += emitted * context + emitted * (emitted - 1) / 2;
    counts->histogram[accepted]++;
    if (counts->lengths) {
        int64_t length = dsc_draft_length(d), longest = counts->lengths_length - 1;
        counts->lengths[length < longest ? length : longest]++;
        counts->whole[accepted] += accepted == length;
    }
    if (counts->width)
        counts->width[width - 1]++;
    if (counts->parallel_steps)
        counts->parallel_steps[d->draft_calls * steps + width - 1]++;
    return DSC_OK;
}

static int record_step(const dsc_loop *loop, const dsc_loop_input *in, int64_t step,
                       int64_t context, dsc_error *err)
{
    const dsc_draft *d = &loop->draft;
    const dsc_step_record record = {.request = in->request->index,
                                    .step = step,
                                    .draft_calls = d->draft_calls,
                                    .draft_call_tokens = d->draft_call_tokens,
                                    .target_call_tokens = dsc_draft_width(d),
                                    .context = context,
                                    .draft_tokens = (int64_t)d->proposed,
                                    .accepted_tokens = (int64_t)loop->verdict.accepted,
                                    .emitted_tokens = (int64_t)loop->verdict.count,
                                    .draft_length = in->step ? dsc_draft_length(d) : 0,
                                    .parallel = in->config->drafter->parallel};
    return in->step ? in->step(in->user, &record, err) : DSC_OK;
}

static int commit(const dsc_models *models, const dsc_verdict *v, dsc_error *err)
{
    dsc_model *const all[] = {models->target, models->draft, models->middle};
    int rc = DSC_OK;
    for (size_t m = 0; m < 3 && !rc; m++)
        if (all[m])
            rc = all[m]->type->commit(all[m], v->token, v->count, err);
    return rc;
}

// Asks in->end whether the output ends within the tokens of the step. As at an EOS token, the last
// one is then the target's own.
static int end_output(dsc_loop *loop, const dsc_loop_input *in, bool *ends, dsc_error *err)
{
    dsc_verdict *v = &loop->verdict;
    size_t kept = v->count;
    *ends = false;
    if (!in->end || !v->count)
        return DSC_OK;
    int rc = in->end(in->end_user, in->models->target, v->token, v->count, &kept, ends, err);
    if (!rc && *ends) {
        v->count = kept;
        v->accepted = v->accepted < kept ? v->accepted : kept - 1;
    }
    return rc;
}

// `prefill`: the step is the pass over the prompt, without a draft.
static int step(dsc_loop *loop, const dsc_loop_input *in, void *state, bool prefill, dsc_error *err)
{
    const dsc_drafter_type *drafter = in->config->drafter;
    dsc_model *target = in->models->target;
    dsc_verify_input verify = {in->models,         &loop->draft, in->seed,
                               in->request->index, &loop->room,  in->rule};
    bool ends = false;
    dsc_draft_clear(&loop->draft);
    int rc = prefill ? DSC_OK
                     : drafter->propose(state, target->output, target->length, &loop->draft, err);
    if (!rc)
        rc = target->type->score(target, &loop->draft, err);
    if (!rc && loop->draft.untested)
        dsc_verdict_clear(&loop->verdict);
    else if (!rc)
        rc = in->rule->verify(&verify, &loop->verdict, err);
    if (!rc && !loop->verdict.count && !loop->draft.untested)
        rc = dsc_fail(err, DSC_ECHECK, "the rule emitted no token in a step");
    if (!rc)
        rc = end_output(loop, in, &ends, err);
    if (!rc && drafter->observe && !prefill)
        rc = drafter->observe(state, &loop->draft, &loop->verdict, err);
    if (!rc && in->steps == DSC_STEPS_EVERYWHERE && loop->verdict.count > 1)
        loop->verdict.count = 1;
    if (!rc)
        rc = commit(in->models, &loop->verdict, err);
    target->ended |= ends;
    return rc;
}

int dsc_loop_begin(void *state, const dsc_drafter_input *in, dsc_error *err)
{
    const dsc_drafter_type *drafter = in->config->drafter;
    if (drafter->begin)
        return drafter->begin(state, in, err);
    memcpy(state, in, drafter->state_size < sizeof *in ? drafter->state_size : sizeof *in);
    return DSC_OK;
}

int dsc_loop_run(dsc_loop *loop, const dsc_loop_input *in, dsc_counts *counts, dsc_error *err)
{
    const dsc_drafter_type *drafter = in->config->drafter;
    dsc_request given = *in->request;
    if (!drafter->sees_output)
        given.output = (dsc_token_view){0};
    dsc_drafter_input input = {.request = &given,
                               .config = in->config,
                               .parameter = in->config->parameter,
                               .seed = in->seed,
                               .arena = in->arena,
                               .models = in->models,
                               .kind = in->kind,
                               .history = in->history,
                               .extra = counts->extra};
    void *state;
    int rc = dsc_arena_alloc(in->arena, &state, drafter->state_size, 1, err);
    if (!rc)
        rc = dsc_loop_begin(state, &input, err);
    counts->requests++;
    loop->room.arena = &loop->arena;
    for (int64_t i = 0; !rc && !in->models->target->ended; i++) {
        int64_t context = in->request->prompt.count + in->models->target->length;
        rc = step(loop, in, state, !i && in->steps == DSC_STEPS_AFTER_PREFILL, err);
        if (!rc)
            rc = count_step(loop, drafter, context, counts, err);
        if (!rc)
            rc = record_step(loop, in, i, context, err);
    }
    return rc;
}

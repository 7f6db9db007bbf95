// SPDX-License-Identifier: Apache-2.0
#include "sim/loop.h"

void dsc_loop_fini(dsc_loop *loop)
{
    dsc_draft_fini(&loop->draft);
    dsc_verdict_fini(&loop->verdict);
}

static void count_step(const dsc_loop *loop, dsc_counts *counts)
{
    int64_t accepted = (int64_t)loop->verdict.accepted;
    counts->target_calls++;
    counts->num_drafts += loop->draft.started;
    counts->num_draft_tokens += (int64_t)loop->draft.count;
    counts->num_accepted_tokens += accepted;
    counts->output_tokens += accepted + 1;
    counts->histogram[accepted]++;
}

static int step(dsc_loop *loop, const dsc_config *config, void *state,
                const dsc_verifier_type *rule, dsc_model *target, dsc_error *err)
{
    dsc_draft_clear(&loop->draft);
    int rc = config->drafter->propose(state, target->output, target->length, &loop->draft, err);
    if (!rc)
        rc = target->type->score(target, &loop->draft, err);
    if (!rc)
        rc = rule->verify(target, &loop->draft, &loop->verdict, err);
    if (!rc)
        rc = target->type->commit(target, loop->verdict.token, loop->verdict.accepted + 1, err);
    return rc;
}

int dsc_loop_run(dsc_loop *loop, const dsc_config *config, const dsc_verifier_type *rule,
                 dsc_model *target, const dsc_request *request, uint64_t seed, dsc_arena *arena,
                 dsc_counts *counts, dsc_error *err)
{
    dsc_request given = *request;
    if (!config->drafter->sees_output)
        given.output = (dsc_token_view){0};
    dsc_drafter_input input = {&given, config->parameter, seed, arena};
    void *state;
    int rc = dsc_arena_alloc(arena, &state, config->drafter->state_size, 1, err);
    if (!rc && config->drafter->begin)
        rc = config->drafter->begin(state, &input, err);
    counts->requests++;
    while (!rc && !target->ended) {
        rc = step(loop, config, state, rule, target, err);
        if (!rc)
            count_step(loop, counts);
    }
    return rc;
}

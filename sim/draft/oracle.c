// SPDX-License-Identifier: Apache-2.0
// An oracle, the upper end of every table: each draft is the next k tokens of the recorded output,
// up to the token before the last, which is the target's own. Where the target is a model, the
// draft model is a copy of it, so that no sample is rejected.
#include "sim/draft/draft_next.h"

enum { K };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "18", .min = 0, .max = 1000000, .length = true,
     .help = "number of correct tokens drafted per step"},
};
// clang-format on

static int64_t right_tokens(int64_t count, int64_t position)
{
    return count - 1 - position;
}

// Drafts with the copy of the target. A TOPK draft ends before an EOS token. A sampled draft
// includes it, because whether the output ends there is part of the sample.
static int draft_with_copy(const dsc_drafter_input *in, int64_t length, dsc_draft *draft,
                           dsc_error *err)
{
    const dsc_model *target = in->models->target;
    const int64_t room = right_tokens(target->limit, length), k = in->parameter[K];
    const int64_t n = room < k ? room : k;
    bool ends = false;
    int rc = DSC_OK;
    draft->kind = in->kind;
    for (int64_t i = 0; i < n && !ends && !rc; i++) {
        const int32_t parent = (int32_t)i - 1;
        int32_t token;
        rc = dsc_draft_next_score(in, 1, draft, err);
        if (!rc)
            rc = dsc_draft_next_token(in, length, parent, (uint32_t)draft->count, &token, err);
        ends = !rc && dsc_model_is_end(target, token);
        if (!rc && !(ends && draft->kind == DSC_DRAFT_TOPK))
            rc = dsc_draft_append_chain(draft, parent, &token, 1, err);
    }
    draft->started = draft->count > 0;
    draft->draft_calls = draft->draft_call_tokens = 0; // an oracle is free
    return rc;
}

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const dsc_drafter_input *in = state;
    const dsc_token_view right = in->request->output;
    (void)output;
    if (in->models->draft && !right.id)
        return draft_with_copy(in, length, draft, err);
    const int64_t n = right_tokens(right.count, length), k = in->parameter[K];
    draft->started = n > 0;
    return dsc_draft_append_chain(draft, -1, right.id + length, (size_t)(n < k ? n : k), err);
}

static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    const int64_t length = in[0].request->output.count;
    (void)err;
    for (size_t j = 0; j < count; j++)
        for (int64_t i = 0; i < length; i++) {
            const int64_t left = right_tokens(length, i), n = left < longest ? left : longest;
            out[j].run[i] = (int32_t)n;
            out[j].available[i] = left > 0 ? (int32_t)n : -1;
        }
    return DSC_OK;
}

static bool is_bound(const dsc_config *config)
{
    (void)config;
    return true;
}

const dsc_drafter_type dsc_drafter_oracle = {
    .name = "oracle",
    .summary = "drafts the target's own next tokens (upper bound)",
    .source = "no paper: an upper bound",
    .engines = "none",
    .recording = "token ids",
    .sees_output = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(dsc_drafter_input),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .is_bound = is_bound,
    .propose = propose,
    .match_lengths = match_lengths,
};

// SPDX-License-Identifier: Apache-2.0
// The suffix automaton of TensorRT-LLM next to a neural drafter: sa_config of MTP, Eagle3 and PARD
// (tensorrt_llm/_torch/speculative/sa_enhancer.py at 1a487b3, suffix_automaton.py at 1412a49,
// cpp/.../suffixAutomaton/suffixAutomaton.h at b120c7c). The draft model drafts in every step. If
// the longest suffix of the text that occurred before has the threshold's length, the draft is
// replaced by the tokens after its first occurrence (sim/draft/suffix_index.h); the draft model's
// passes were made all the same.
//
// The first output token, which is that of the prompt's pass, does not enter the automaton, and the
// draft after it is not replaced: only requests in generation extend theirs. Fewer tokens than a
// draft has may follow the occurrence. TensorRT-LLM then leaves the tokens of earlier drafts in the
// rest of its buffer; here the draft is shorter.
#include "sim/drafter.h"
#include "sim/loop.h"

#include "sim/draft/suffix_index.h"

#include <string.h>

enum { LENGTH, THRESHOLD };
enum { COPIED };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "5", .min = 0, .max = 100000,
     .help = "number of tokens that the draft model drafts per step; at most as many are copied"},
    {.name = "match-threshold", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "4", .min = 1,
     .max = 1000000,
     .help = "last tokens that must have occurred before for a copy to replace the draft"},
};
static const dsc_extra extra[] = {
    {"num_copied_drafts", "drafts copied from the text in place of the draft model's"},
};
// clang-format on

// The draft model drafts by this method, whose only option is the length.
static const dsc_drafter_type *const base = &dsc_drafter_draft_model;

// The longest match is all that is read from the index, so that it counts single tokens only.
enum { DEPTH = 1 };
enum { UNINDEXED = 1 }; // output tokens that it lacks

typedef struct state {
    dsc_drafter_input in;
    dsc_config config;      // of the draft model's method
    dsc_suffix_index index; // of the prompt and the output after its first token
    int64_t known;          // output tokens that are in it or before it
    // The draft model's draft where it is replaced. Its session reads it until the step is
    // committed, so that it cannot be overwritten.
    dsc_draft replaced;
    void *base; // its state
} state;

// The replaced draft has the memory of the longest one, so that it never grows out of the arena.
static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const size_t most = (size_t)in->parameter[LENGTH];
    *s = (state){.in = *in, .known = UNINDEXED};
    dsc_config_init(&s->config, base);
    s->config.parameter[0] = in->parameter[LENGTH];
    dsc_drafter_input drafts = *in;
    drafts.config = &s->config;
    drafts.parameter = s->config.parameter;
    s->replaced.token_capacity = s->replaced.parent_capacity = most;
    int rc = dsc_arena_new(in->arena, &s->replaced.token, most, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->replaced.parent, most, err);
    if (!rc)
        rc = dsc_arena_alloc(in->arena, &s->base, base->state_size, 1, err);
    if (!rc)
        rc = dsc_loop_begin(s->base, &drafts, err);
    if (!rc)
        rc = dsc_suffix_begin(&s->index, DEPTH, in->arena, err);
    return rc ? rc
              : dsc_suffix_append(&s->index, in->request->prompt.id, in->request->prompt.count,
                                  err);
}

// Where the copy starts in the text of the index; 0: nothing is copied.
static int find(state *s, const int32_t *output, int64_t length, int64_t *start, dsc_error *err)
{
    int32_t matched;
    *start = 0;
    if (length <= s->known)
        return DSC_OK;
    const int rc = dsc_suffix_append(&s->index, output + s->known, length - s->known, err);
    s->known = length;
    const int32_t end = rc ? 0 : dsc_suffix_repeated(&s->index, &matched);
    if (end && matched >= s->in.parameter[THRESHOLD])
        *start = end;
    return rc;
}

// Appends the tokens from `start` on, those of the prompt first.
static int copy(const state *s, const int32_t *output, int64_t start, dsc_draft *draft,
                dsc_error *err)
{
    const dsc_token_view prompt = s->in.request->prompt;
    const int64_t left = s->index.count - start, most = s->in.parameter[LENGTH];
    const int64_t count = left < most ? left : most, there = prompt.count - start;
    const int64_t first = there < 0 ? 0 : there < count ? there : count;
    int rc = DSC_OK;
    if (first)
        rc = dsc_draft_append_chain(draft, -1, prompt.id + start, (size_t)first, err);
    if (!rc && first < count)
        rc = dsc_draft_append_chain(draft, (int32_t)first - 1,
                                    output + UNINDEXED + (start + first - prompt.count),
                                    (size_t)(count - first), err);
    return rc;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    int64_t start;
    int rc = find(s, output, length, &start, err);
    if (rc || !start || !s->in.parameter[LENGTH])
        return rc ? rc : base->propose(s->base, output, length, draft, err);
    dsc_draft_clear(&s->replaced);
    rc = base->propose(s->base, output, length, &s->replaced, err);
    draft->draft_calls = s->replaced.draft_calls;
    draft->draft_call_tokens = s->replaced.draft_call_tokens;
    draft->started = true;
    s->in.extra[COPIED]++;
    return rc ? rc : copy(s, output, start, draft, err);
}

const dsc_drafter_type dsc_drafter_sa_draft_model = {
    .name = "sa-draft-model",
    .summary = "a draft model whose draft is replaced by a copy where the text repeats itself",
    .source = "no paper: sa_config of TensorRT-LLM",
    .engines = "TensorRT-LLM sa_config of Eagle3, MTP",
    .recording = "draft_rank or draft_argmax",
    .needs_draft = true,
    .copies = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .extra = extra,
    .extra_count = sizeof extra / sizeof *extra,
    .begin = begin,
    .propose = propose,
};

// SPDX-License-Identifier: Apache-2.0
// Three models (staged speculation, Spector & Re 2023; the vertical cascade of Chen et al. 2023,
// "Cascade Speculative Drafting"): the smallest model drafts for the middle one, and the output of
// the middle one is the draft for the target. The inner run is speculative decoding with the rules
// of sim/verify/: rejection sampling, or greedy verification for a TOPK draft. Both are lossless,
// so the draft is a chain of samples of the middle model's distribution, and the target's rule
// divides by that distribution (dsc_draft.from_middle).
//
// This requires a draft length that does not depend on what the inner run accepts. A draft that
// ended where its last round ends would have its last tokens only when they were accepted, and they
// would not follow the middle model's distribution. So the last round drafts no more than fits.
#include "sim/draft/draft_next.h"
#include "sim/verify_room.h"

enum { LENGTH, INNER };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "10", .min = 0, .max = 4096, .length = true,
     .help = "number of tokens that the middle model drafts for the target"},
    {.name = "inner-length", .kind = DSC_OPTION_INT, .metavar = "G", .initial = "3", .min = 0,
     .max = 4095,
     .help = "number of tokens that the draft model drafts for the middle model in a round"},
};
// clang-format on

// A model for the inner run, whose output includes the first `ahead` nodes of the draft. The draft
// is a chain, so its node j is node j - ahead of the inner draft.
typedef struct ahead_model {
    dsc_model base;
    dsc_model *of;
    int32_t ahead;
} ahead_model;

static int ahead_next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    const ahead_model *m = (const ahead_model *)base;
    return m->of->type->next(m->of, node + m->ahead, out, err);
}

static int ahead_dist(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    const ahead_model *m = (const ahead_model *)base;
    return dsc_model_dist(m->of, node + m->ahead, out, err);
}

// The queries of rules; scoring and committing are done below.
static const dsc_model_type ahead_type = {.name = "ahead", .next = ahead_next, .dist = ahead_dist};

typedef struct state {
    dsc_drafter_input in;
    ahead_model middle, draft;
    dsc_models models; // these two, the middle one as the target
    dsc_verdict verdict;
    dsc_verify_room room;
} state;

static ahead_model looking_ahead(dsc_model *of, const dsc_model *target)
{
    return (ahead_model){.base = {.type = &ahead_type,
                                  .limit = target->limit,
                                  .end_token = target->end_token,
                                  .more_ends = target->more_ends,
                                  .more = target->more},
                         .of = of};
}

// The verdict has the size of the largest round, so that it never grows out of the arena.
static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    *s = (state){.in = *in,
                 .room = {.arena = in->arena},
                 .middle = looking_ahead(in->models->middle, in->models->target),
                 .draft = looking_ahead(in->models->draft, in->models->target)};
    s->models = (dsc_models){.target = &s->middle.base, .draft = &s->draft.base};
    const size_t n = (size_t)in->parameter[INNER] + 1;
    dsc_verdict *v = &s->verdict;
    int rc = dsc_arena_new(in->arena, &v->token, n, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &v->node, n, err);
    v->token_capacity = v->node_capacity = n;
    return rc;
}

// Appends at most `most` tokens of the draft model and scores them with the middle model.
static int inner_draft(state *s, int64_t length, int64_t most, uint32_t *draws, dsc_draft *draft,
                       dsc_error *err)
{
    const dsc_models *m = s->in.models;
    bool ends = false;
    int64_t written = 0;
    int rc = DSC_OK;
    for (; written < most && !ends && !rc; written++) {
        int32_t token, depth = (int32_t)draft->count;
        rc = dsc_draft_next_score(&s->in, 1, draft, err);
        if (!rc)
            rc = dsc_draft_next_token(&s->in, length, depth - 1, (*draws)++, &token, err);
        if (!rc)
            rc = dsc_draft_append_chain(draft, depth - 1, &token, 1, err);
        ends = !rc && dsc_model_ends(m->target, depth, token);
    }
    draft->draft_calls++;
    draft->draft_call_tokens += 1 + written;
    return rc ? rc : m->middle->type->score(m->middle, draft, err);
}

// The seed of the inner run in the step at this length. The inner run verifies the same positions
// as the target and must not share its random numbers.
static uint64_t inner_seed(uint64_t seed, int64_t length)
{
    return seed ^ ((uint64_t)length + 1) * 0x9e3779b97f4a7c15;
}

// One round: verifies the draft model's tokens after the first `ahead` ones with the middle model
// and replaces them by the verdict.
static int inner_step(state *s, int64_t length, dsc_draft *draft, dsc_error *err)
{
    int32_t ahead = s->middle.ahead;
    s->middle.base.length = s->draft.base.length = length + ahead;
    dsc_draft inner = {.token = draft->count ? draft->token + ahead : NULL,
                       .parent = draft->parent, // of a chain: -1, 0, 1, ...
                       .count = draft->count - (size_t)ahead,
                       .proposed = draft->count - (size_t)ahead,
                       .kind = draft->kind};
    const dsc_verifier_type *rule =
        dsc_pair_rule(s->in.config->drafter, draft->kind == DSC_DRAFT_TOPK);
    dsc_verify_input in = {.models = &s->models,
                           .draft = &inner,
                           .seed = inner_seed(s->in.seed, length),
                           .request = s->in.request->index,
                           .room = &s->room,
                           .rule = rule};
    int rc = rule->verify(&in, &s->verdict, err);
    if (rc)
        return rc;
    draft->count = draft->proposed = (size_t)ahead;
    return dsc_draft_append_chain(draft, ahead - 1, s->verdict.token, s->verdict.count, err);
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    (void)output;
    const dsc_models *m = s->in.models;
    int64_t most = s->in.parameter[LENGTH], inner = s->in.parameter[INNER];
    uint32_t draws = 0;
    bool ends = false;
    int rc = DSC_OK;
    draft->kind = s->in.kind;
    draft->from_middle = true;
    draft->started = most > 0;
    while ((int64_t)draft->count < most && !ends && !rc) {
        int64_t room =
            most - 1 - (int64_t)draft->count; // in addition to the middle model's own token
        s->middle.ahead = s->draft.ahead = (int32_t)draft->count;
        rc = inner_draft(s, length, inner < room ? inner : room, &draws, draft, err);
        if (!rc)
            rc = inner_step(s, length, draft, err);
        if (!rc)
            ends = dsc_model_ends(m->target, (int64_t)draft->count - 1,
                                  draft->token[draft->count - 1]);
    }
    // This costs no further pass: the middle model has scored every node that is queried.
    return rc ? rc : m->middle->type->score(m->middle, draft, err);
}

const dsc_drafter_type dsc_drafter_cascade = {
    .name = "cascade",
    .summary = "a draft model drafts for a middle model, whose output is the draft for the target",
    .source = "Spector and Re 2023, arXiv 2308.04623; Chen et al. 2023, arXiv 2312.11462",
    .engines = "none",
    .recording = "none",
    .needs_draft = true,
    .needs_middle = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .begin = begin,
    .propose = propose,
};

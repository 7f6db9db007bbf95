// SPDX-License-Identifier: Apache-2.0
// EAGLE-2's dynamic draft tree (Li et al. 2024, arXiv 2406.16858): the draft model's probabilities
// decide at each step where the tree grows and which of its nodes are verified
// (sim/draft/candidate_tree.h). The draft model scores only the candidates that are expanded. They
// are a draft of their own, `grown`; the target verifies the other draft. A trace contains the
// candidates of one setting; smaller settings are parts of these as far as all of their candidates
// were recorded.
#include "sim/draft/candidate_tree.h"

#include "theory/tree.h"

#include <inttypes.h>

enum { STEPS, TOPK, TOKENS };
// clang-format off
static const dsc_option options[] = {
    {.name = "num-steps", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "8", .min = 1,
     .sizes = "1,2,3,5,8",
     .max = DSC_MAX_LEVELS, .help = "levels of the tree, each a draft forward pass"},
    {.name = "eagle-topk", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "10", .min = 1,
     .sizes = "1,2,4,10",
     .max = 100, .help = "candidates of a level that are expanded, and children of each; 1: a "
                         "chain"},
    {.name = "num-draft-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "60",
     .sizes = "2,3,4,8,16,32,60", .min = 2, .max = DSC_TREE_NODES,
     .column = "max_num_draft_tokens",
     .help = "tokens in the target call, the root included: the best N - 1 candidates are kept"},
};
// clang-format on

// --- configuration -----------------------------------------------------------------------------

static int64_t most_candidates(const int64_t *p)
{
    return dsc_candidate_tree_most(p[STEPS], p[TOPK]);
}

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    const int64_t *p = config->parameter;
    (void)prepared;
    if (p[TOPK] == 1 && p[TOKENS] != p[STEPS] + 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "with --eagle-topk 1 the tree is a chain, so --num-draft-tokens must be "
                        "--num-steps + 1 = %" PRId64 ", not %" PRId64,
                        p[STEPS] + 1, p[TOKENS]);
    if (p[TOKENS] - 1 > most_candidates(p))
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-draft-tokens %" PRId64 " exceeds the %" PRId64
                        " candidates of --num-steps %" PRId64 " --eagle-topk %" PRId64
                        " and the root; reduce it to at most %" PRId64,
                        p[TOKENS], most_candidates(p), p[STEPS], p[TOPK], most_candidates(p) + 1);
    return DSC_OK;
}

static int64_t limit(const dsc_config *config)
{
    const int64_t *p = config->parameter;
    return p[STEPS] < p[TOKENS] - 1 ? p[STEPS] : p[TOKENS] - 1;
}

static int64_t width(const dsc_config *config)
{
    return config->parameter[TOKENS];
}

static int64_t draft_width(const dsc_config *config)
{
    return 1 + dsc_candidate_tree_expanded(config->parameter[STEPS], config->parameter[TOPK]);
}

static int recorded(const dsc_config *config, const dsc_trace_info *info, dsc_error *err)
{
    const int64_t *p = config->parameter;
    if (!info->has_candidates)
        return dsc_fail(
            err, DSC_EUSAGE,
            "method dynamic-tree needs the candidates of a draft model, which the trace "
            "lacks (draftscope live record --candidates %" PRId64 ":%" PRId64
            ", or use --draft SPEC)",
            p[STEPS], p[TOPK]);
    if (p[STEPS] > info->candidate_steps || p[TOPK] > info->candidate_topk)
        return dsc_fail(err, DSC_EUSAGE,
                        "the trace contains candidates of --num-steps %" PRId32
                        " --eagle-topk %" PRId32 "; --num-steps %" PRId64 " --eagle-topk %" PRId64
                        " is larger (draftscope live record --candidates %" PRId64 ":%" PRId64 ")",
                        info->candidate_steps, info->candidate_topk, p[STEPS], p[TOPK], p[STEPS],
                        p[TOPK]);
    if (p[TOKENS] - 1 > info->candidate_nodes)
        return dsc_fail(err, DSC_EUSAGE,
                        "the trace contains the best %" PRId32
                        " candidates; --num-draft-tokens %" PRId64 " needs %" PRId64
                        " (draftscope live record --candidates %" PRId32 ":%" PRId32 ":%" PRId64
                        ")",
                        info->candidate_nodes, p[TOKENS], p[TOKENS] - 1, info->candidate_steps,
                        info->candidate_topk, p[TOKENS] - 1);
    return DSC_OK;
}

// --- drafting ------------------------------------------------------------------------------------

typedef struct state {
    dsc_candidate_tree tree;
    dsc_draft grown;   // the expanded candidates; its memory is the request's
    int64_t committed; // output tokens at the last proposal
} state;

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const int64_t *p = in->parameter;
    const size_t expanded = (size_t)dsc_candidate_tree_expanded(p[STEPS], p[TOPK]);
    *s = (state){.grown = {.token_capacity = expanded, .parent_capacity = expanded}};
    int rc = dsc_candidate_tree_init(&s->tree, in, p[STEPS], p[TOPK], err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->grown.token, expanded, err);
    return rc ? rc : dsc_arena_new(in->arena, &s->grown.parent, expanded, err);
}

// Appends the best candidates to the draft in their order, in which parents come first.
static int keep_best(dsc_candidate_tree *t, dsc_draft *draft, dsc_error *err)
{
    const int64_t most = t->in.parameter[TOKENS] - 1;
    const int32_t n = dsc_candidate_tree_rank(t, 0);
    int rc = DSC_OK;
    for (int32_t i = 0; i < n && i < most; i++)
        t->candidate[t->ranked[i].candidate].kept = 0;
    for (int32_t i = 0; i < n && !rc; i++) {
        dsc_candidate *c = &t->candidate[i];
        if (c->kept == DSC_CANDIDATE_NONE)
            continue;
        c->kept = (int32_t)draft->count;
        rc = dsc_draft_append_chain(draft, c->parent < 0 ? -1 : t->candidate[c->parent].kept,
                                    &c->token, 1, err);
    }
    return rc;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    dsc_model *m = s->tree.in.models->draft;
    const int64_t fresh = length - s->committed; // the first time, the last token of the prompt
    (void)output;
    s->committed = length;
    dsc_draft_clear(&s->grown);
    draft->kind = s->tree.in.kind;
    draft->started = true;
    if (m->type->candidates)
        return dsc_candidate_tree_replay(&s->tree, s->tree.in.parameter[TOKENS] - 1,
                                         fresh > 0 ? fresh : 1, draft, err);
    int rc = dsc_candidate_tree_grow(&s->tree, fresh > 0 ? fresh : 1, &s->grown, err);
    draft->draft_calls = s->grown.draft_calls;
    draft->draft_call_tokens = s->grown.draft_call_tokens;
    return rc ? rc : keep_best(&s->tree, draft, err);
}

const dsc_drafter_type dsc_drafter_dynamic_tree = {
    .name = "dynamic-tree",
    .synonyms = "eagle2",
    .summary = "a draft model's most probable tree at each step (EAGLE-2)",
    .source = "Li et al. 2024, EAGLE-2, arXiv 2406.16858",
    .engines = "SGLang EAGLE, EAGLE3, STANDALONE with top-k above 1; TensorRT-LLM "
               "use_dynamic_tree",
    .recording = "candidates of live record --candidates (greedy)",
    .needs_draft = true,
    .needs_draft_dists = true,
    .branches = true,
    .kinds = DSC_DRAFT_TOPK,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    .recorded = recorded,
    .limit = limit,
    .width = width,
    .draft_width = draft_width,
    .begin = begin,
    .propose = propose,
};

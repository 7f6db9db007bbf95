// SPDX-License-Identifier: Apache-2.0
// EAGLE-2's dynamic draft tree (Li et al. 2024, arXiv 2406.16858): the draft model's probabilities
// decide at each step where the tree grows and which of its nodes are verified.
//
//   expansion  The first level is the K most probable tokens. The K best candidates of a level get
//              K children each, which are the candidates of the next level; S levels, S passes.
//   reranking  Of the candidates of all levels the N - 1 best are verified after the root.
//
// A candidate's score is the sum of the log-probabilities on its path, before any temperature. No
// score exceeds the parent's and parents come first, so the best candidates are a tree. Candidates
// are numbered level by level, children of the better parent first and by rank below one parent,
// and equal scores are ordered by that number. The names and the order are those of SGLang
// (python/sglang/srt/speculative/spec_utils.py at 2dd501d, select_top_k_tokens; eagle_utils.py at
// 003ddbc, organize_draft_results, whose num_draft_token includes the root) and of the EAGLE
// repository (eagle/model/cnets.py at 148042c, topK_genrate): its top_k is K, its total_token is N,
// and its depth is S - 1, because it does not count the pass over the committed tokens. Both use
// torch.topk, which leaves the order of equal scores open, on float32 scores; here they are double.
// The engines also expand an EOS token, whose children can never be accepted. Here a token that
// ends the output keeps its place among the K best and has no children.
//
// The draft model scores only the candidates that are expanded. They are a draft of their own,
// `grown`; the target verifies the other draft.
#include "sim/draft/draft_next.h"

#include "theory/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { STEPS, TOPK, TOKENS };
// clang-format off
static const dsc_option options[] = {
    {.name = "num-steps", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "8", .min = 1,
     .max = DSC_MAX_LEVELS, .help = "levels of the tree, each a draft forward pass"},
    {.name = "eagle-topk", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "10", .min = 1,
     .max = 100, .help = "candidates of a level that are expanded, and children of each; 1: a "
                         "chain"},
    {.name = "num-draft-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "60",
     .min = 2, .max = DSC_TREE_NODES, .column = "max_num_draft_tokens",
     .help = "tokens in the target call, the root included: the best N - 1 candidates are kept"},
};
// clang-format on

enum { ROOT = -1, NONE = -2 }; // NONE: the candidate is in no draft

typedef struct candidate {
    double score;
    int32_t token;
    int32_t parent; // candidate, or ROOT
    int32_t level;  // 0: after the root
    int32_t grown;  // node of state.grown, or NONE
    int32_t kept;   // node of the verified draft, or NONE
} candidate;

typedef struct ranked {
    double score;
    int32_t candidate;
} ranked;

typedef struct state {
    dsc_drafter_input in;
    dsc_draft grown;      // the expanded candidates; its memory is the request's
    candidate *candidate; // [most_candidates]
    ranked *ranked;       // [most_candidates]
    int32_t *open;        // [K] candidates that get children, or ROOT
    int32_t *top;         // [K] tokens of the children of one candidate
    double *row;          // [vocab] NULL until there is a vocabulary
    int32_t count, opened;
    int64_t committed; // output tokens at the last proposal
} state;

// --- configuration -----------------------------------------------------------------------------

static int64_t most_candidates(const int64_t *p)
{
    return p[TOPK] + (p[STEPS] - 1) * p[TOPK] * p[TOPK];
}

static int64_t most_expanded(const int64_t *p)
{
    return (p[STEPS] - 1) * p[TOPK];
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
    return 1 + most_expanded(config->parameter);
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const size_t candidates = (size_t)most_candidates(in->parameter),
                 expanded = (size_t)most_expanded(in->parameter),
                 most = (size_t)in->parameter[TOPK];
    *s = (state){.in = *in};
    s->grown.token_capacity = s->grown.parent_capacity = expanded;
    int rc = dsc_arena_new(in->arena, &s->candidate, candidates, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->ranked, candidates, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->open, most, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->top, most, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->grown.token, expanded, err);
    return rc ? rc : dsc_arena_new(in->arena, &s->grown.parent, expanded, err);
}

// --- order -------------------------------------------------------------------------------------

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->candidate < y->candidate ? -1 : 1;
}

// Sorts the candidates from `first` on into s->ranked, the best first; returns their number.
static int32_t rank(state *s, int32_t first)
{
    for (int32_t i = first; i < s->count; i++)
        s->ranked[i - first] = (ranked){s->candidate[i].score, i};
    qsort(s->ranked, (size_t)(s->count - first), sizeof *s->ranked, by_score);
    return s->count - first;
}

// --- expansion ---------------------------------------------------------------------------------

// Appends the K most probable tokens after `parent` to the candidates.
static int add_children(state *s, int32_t parent, dsc_error *err)
{
    const candidate *above = parent == ROOT ? NULL : &s->candidate[parent];
    dsc_dist dist;
    int rc = dsc_draft_next_dist(&s->in, above ? above->grown : -1, &dist, err);
    if (!rc && !s->row)
        rc = dsc_arena_new(s->in.arena, &s->row, (size_t)dist.vocab_size, err);
    if (rc)
        return rc;
    const size_t n = dsc_dist_top(&dist, (size_t)s->in.parameter[TOPK], s->row, s->top);
    for (size_t i = 0; i < n; i++) {
        const double gain = fmin(0, log(dsc_dist_probability(&dist, s->top[i])));
        s->candidate[s->count++] = (candidate){.score = gain + (above ? above->score : 0),
                                               .token = s->top[i],
                                               .parent = parent,
                                               .level = above ? above->level + 1 : 0,
                                               .grown = NONE,
                                               .kept = NONE};
    }
    return DSC_OK;
}

// Opens the K best candidates from `first` on, but those with which the output ends.
static int open_best(state *s, int32_t first, dsc_error *err)
{
    const int32_t n = rank(s, first), most = (int32_t)s->in.parameter[TOPK];
    int rc = DSC_OK;
    s->opened = 0;
    for (int32_t i = 0; i < n && i < most && !rc; i++) {
        candidate *c = &s->candidate[s->ranked[i].candidate];
        if (dsc_model_ends(s->in.models->target, c->level, c->token))
            continue;
        const int32_t parent = c->parent == ROOT ? -1 : s->candidate[c->parent].grown;
        c->grown = (int32_t)s->grown.count;
        s->open[s->opened++] = s->ranked[i].candidate;
        rc = dsc_draft_append_chain(&s->grown, parent, &c->token, 1, err);
    }
    return rc;
}

static int grow(state *s, int64_t fresh, dsc_error *err)
{
    const int64_t steps = s->in.parameter[STEPS];
    int rc = DSC_OK;
    s->count = 0;
    s->open[0] = ROOT;
    s->opened = 1;
    for (int64_t step = 0; step < steps && s->opened && !rc; step++) {
        const int32_t first = s->count;
        rc = dsc_draft_next_score(&s->in, step ? s->opened : fresh, &s->grown, err);
        for (int32_t i = 0; i < s->opened && !rc; i++)
            rc = add_children(s, s->open[i], err);
        if (!rc && step + 1 < steps)
            rc = open_best(s, first, err);
    }
    return rc;
}

// --- reranking ---------------------------------------------------------------------------------

// Appends the best candidates to the draft in their order, in which parents come first.
static int keep_best(state *s, dsc_draft *draft, dsc_error *err)
{
    const int32_t n = rank(s, 0), most = (int32_t)s->in.parameter[TOKENS] - 1;
    int rc = DSC_OK;
    for (int32_t i = 0; i < n && i < most; i++)
        s->candidate[s->ranked[i].candidate].kept = 0;
    for (int32_t i = 0; i < n && !rc; i++) {
        candidate *c = &s->candidate[i];
        if (c->kept == NONE)
            continue;
        c->kept = (int32_t)draft->count;
        rc = dsc_draft_append_chain(draft, c->parent == ROOT ? -1 : s->candidate[c->parent].kept,
                                    &c->token, 1, err);
    }
    return rc;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    const int64_t fresh = length - s->committed; // the first time, the last token of the prompt
    (void)output;
    s->committed = length;
    dsc_draft_clear(&s->grown);
    draft->kind = s->in.kind;
    draft->started = true;
    int rc = grow(s, fresh > 0 ? fresh : 1, err);
    draft->draft_calls = s->grown.draft_calls;
    draft->draft_call_tokens = s->grown.draft_call_tokens;
    return rc ? rc : keep_best(s, draft, err);
}

const dsc_drafter_type dsc_drafter_dynamic_tree = {
    .name = "dynamic-tree",
    .synonyms = "eagle2",
    .summary = "a draft model's most probable tree at each step (EAGLE-2)",
    .source = "Li et al. 2024, EAGLE-2, arXiv 2406.16858",
    .engines = "SGLang EAGLE, EAGLE3, STANDALONE with top-k above 1; TensorRT-LLM "
               "use_dynamic_tree",
    .recording = "none",
    .needs_draft = true,
    .needs_draft_dists = true,
    .branches = true,
    .kinds = DSC_DRAFT_TOPK,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    .limit = limit,
    .width = width,
    .draft_width = draft_width,
    .begin = begin,
    .propose = propose,
};

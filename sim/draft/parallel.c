// SPDX-License-Identifier: Apache-2.0
// Parallel drafters: one draft pass yields a distribution for every offset after the output, none
// of which depends on a drafted token: Medusa's heads (Cai et al. 2024), PARD (An et al. 2025),
// P-EAGLE, DFlash. `parallel` drafts a chain, one token of each distribution; `ddtree` drafts the
// most probable paths under a budget of nodes (sim/draft/best_first.h). They are two methods
// because rules for one sequence verify the chain only.
//
// The pass counts as one token, which is what heads read. A drafter that reads a mask token for
// each offset has a wider pass; where that matters, its price is a cost model's matter.
#include "sim/draft/best_first.h"
#include "sim/draft/draft_next.h"

#include <inttypes.h>

enum { LENGTH, NODES };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "4", .min = 0, .max = DSC_MAX_LEVELS,
     .help = "offsets that the draft pass predicts; Medusa heads: at most as many as there are"},
    {.name = "num-draft-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "64", .min = 1,
     .max = 1024, .column = "max_num_draft_tokens",
     .help = "draft tokens of the tree at most, the root excluded"},
};
// clang-format on

typedef struct parallel {
    dsc_drafter_input in;
    double *row;                      // [vocab_size] once known
    int32_t *token;                   // [offsets][nodes] candidates
    double *probability;              // [offsets][nodes]
    bool *ends;                       // [offsets][nodes]
    size_t *known;                    // [offsets] candidates up to which all are known
    dsc_best_first_node *node, *heap; // [nodes], [nodes + 1]
} parallel;

static int begin(void *state, const dsc_drafter_input *in, dsc_error *err)
{
    (void)err;
    *(parallel *)state = (parallel){.in = *in};
    return DSC_OK;
}

// The offsets at which a draft token may be accepted.
static int64_t offsets(const parallel *p)
{
    const dsc_model *target = p->in.models->target;
    const int64_t left = target->limit - target->length, most = p->in.parameter[LENGTH];
    return most < left ? most : left;
}

// The `k` most probable tokens at an offset, before any temperature, with their probabilities.
// *all: there are no others, because the vocabulary is smaller, or these were not recorded.
static int find_top(parallel *p, int64_t offset, size_t k, int32_t *token, double *probability,
                    size_t *count, bool *all, dsc_error *err)
{
    dsc_model *m = p->in.models->draft;
    dsc_dist dist;
    if (m->type->marginal_top)
        return m->type->marginal_top(m, offset, k, token, probability, count, all, err);
    int rc = m->type->marginal(m, offset, true, &dist, err);
    if (!rc && !p->row)
        rc = dsc_arena_new(p->in.arena, &p->row, (size_t)dist.vocab_size, err);
    *count = rc ? 0 : dsc_dist_top(&dist, k, p->row, token);
    *all = true;
    for (size_t i = 0; i < *count; i++)
        probability[i] = dsc_dist_probability(&dist, token[i]);
    return rc;
}

// Checks that the trace has marginals of as many offsets as the method drafts.
static int recorded(const dsc_config *config, const dsc_trace_info *info, dsc_error *err)
{
    const int64_t length = config->parameter[LENGTH];
    if (!info->has_marginals)
        return dsc_fail(
            err, DSC_EUSAGE,
            "method %s needs the marginals of a parallel drafter, which the trace lacks "
            "(draftscope live record --marginals with Medusa heads, or use --draft "
            "markov: or iid:)",
            config->drafter->name);
    if (length > info->marginal_offsets)
        return dsc_fail(err, DSC_EUSAGE,
                        "the trace contains marginals of %" PRId32
                        " offsets; --num-speculative-tokens %" PRId64 " needs more",
                        info->marginal_offsets, length);
    return DSC_OK;
}

// --- chain ---------------------------------------------------------------------------------------

static int choose(parallel *p, int64_t length, int64_t offset, int32_t *token, dsc_error *err)
{
    dsc_model *m = p->in.models->draft;
    dsc_dist dist;
    double probability;
    size_t count;
    bool all;
    if (p->in.kind == DSC_DRAFT_TOPK)
        return find_top(p, offset, 1, token, &probability, &count, &all, err);
    int rc = m->type->marginal(m, offset, false, &dist, err);
    if (!rc)
        *token = dsc_dist_sample(&dist, dsc_draft_uniform(&p->in, length, (uint32_t)offset));
    return rc;
}

static int propose_chain(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                         dsc_error *err)
{
    parallel *p = state;
    dsc_model *m = p->in.models->draft;
    const int64_t most = offsets(p);
    bool ends = false;
    (void)output;
    draft->kind = p->in.kind;
    draft->started = most > 0;
    int rc = most > 0 ? dsc_draft_next_score(&p->in, 1, draft, err) : DSC_OK;
    for (int64_t i = 0; i < most && !ends && !rc; i++) {
        int32_t token = 0;
        rc = choose(p, length, i, &token, err);
        if (!rc)
            rc = dsc_draft_append_chain(draft, (int32_t)i - 1, &token, 1, err);
        ends = dsc_model_ends(p->in.models->target, i, token);
    }
    // The rule asks for the distributions after the nodes, which the pass has computed.
    return rc || most < 1 ? rc : m->type->score(m, draft, err);
}

const dsc_drafter_type dsc_drafter_parallel = {
    .name = "parallel",
    .summary = "one draft pass predicts all offsets (Medusa, PARD, DFlash): a chain",
    .source = "Cai et al. 2024, Medusa, arXiv 2401.10774; An et al. 2025, PARD, arXiv 2504.18583; "
              "Chen et al. 2026, DFlash, arXiv 2602.06036",
    .engines = "vLLM medusa, dflash; SGLang DFLASH",
    .recording = "marginals of live record --marginals, with target_logp to sample",
    .needs_draft = true,
    .needs_marginals = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .replay = DSC_DRAFT_REPLAY_OFFSETS,
    .state_size = sizeof(parallel),
    .option = options,
    .option_count = 1,
    .recorded = recorded,
    .begin = begin,
    .propose = propose_chain,
};

// --- tree ----------------------------------------------------------------------------------------

static int begin_tree(void *state, const dsc_drafter_input *in, dsc_error *err)
{
    parallel *p = state;
    const size_t nodes = (size_t)in->parameter[NODES],
                 cells = (size_t)in->parameter[LENGTH] * nodes;
    int rc = begin(state, in, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &p->token, cells, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &p->probability, cells, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &p->ends, cells, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &p->known, (size_t)in->parameter[LENGTH], err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &p->node, nodes, err);
    return rc ? rc : dsc_arena_new(in->arena, &p->heap, nodes + 1, err);
}

// The candidates of one offset; no tree of `nodes` nodes has more of them.
static int list_candidates(parallel *p, int64_t offset, dsc_error *err)
{
    const size_t nodes = (size_t)p->in.parameter[NODES], first = (size_t)offset * nodes;
    size_t count = 0;
    bool all = true;
    int rc =
        find_top(p, offset, nodes, p->token + first, p->probability + first, &count, &all, err);
    for (size_t i = 0; i < nodes && !rc; i++) {
        const int32_t token = p->token[first + i];
        if (i >= count)
            p->probability[first + i] = 0;
        p->ends[first + i] = i < count && dsc_model_ends(p->in.models->target, offset, token);
    }
    p->known[offset] = all ? nodes : count;
    return rc;
}

// A tree that takes the last recorded candidate of an offset may lack the next one, unless nothing
// less probable is in the tree.
static int check_known(const parallel *p, const dsc_best_first_node *node, size_t count,
                       dsc_error *err)
{
    for (size_t i = 0; i + 1 < count; i++)
        if ((size_t)node[i].rank + 1 >= p->known[node[i].level] &&
            p->known[node[i].level] < (size_t)p->in.parameter[NODES])
            return dsc_fail(err, DSC_EUSAGE,
                            "output position %" PRId64 ": a tree of %" PRId64
                            " nodes takes all of the %zu recorded candidates of an offset "
                            "(draftscope live record --marginals with more of them)",
                            p->in.models->draft->length, p->in.parameter[NODES],
                            p->known[node[i].level]);
    return DSC_OK;
}

static int propose_tree(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                        dsc_error *err)
{
    parallel *p = state;
    const size_t nodes = (size_t)p->in.parameter[NODES];
    const int64_t levels = offsets(p);
    (void)output, (void)length;
    draft->kind = p->in.kind;
    draft->started = levels > 0;
    if (levels < 1)
        return DSC_OK;
    int rc = dsc_draft_next_score(&p->in, 1, draft, err);
    for (int64_t i = 0; i < levels && !rc; i++)
        rc = list_candidates(p, i, err);
    if (rc)
        return rc;
    const dsc_best_first_input in = {p->probability, p->ends, (size_t)levels, nodes};
    const size_t count = dsc_best_first(&in, nodes, p->node, p->heap);
    rc = check_known(p, p->node, count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        const dsc_best_first_node *x = &p->node[i];
        const int32_t *token = &p->token[(size_t)x->level * nodes + (size_t)x->rank];
        rc = dsc_draft_append_chain(draft, x->parent, token, 1, err);
    }
    return rc;
}

static int64_t tree_width(const dsc_config *config)
{
    return config->parameter[LENGTH] ? 1 + config->parameter[NODES] : 1;
}

const dsc_drafter_type dsc_drafter_ddtree = {
    .name = "ddtree",
    .summary = "one draft pass predicts all offsets: the most probable paths (DDTree)",
    .source = "Ringel and Romano 2026, DDTree, arXiv 2604.12989",
    .engines = "none",
    .recording = "marginals of live record --marginals (greedy)",
    .needs_draft = true,
    .needs_marginals = true,
    .branches = true,
    .state_size = sizeof(parallel),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .recorded = recorded,
    .width = tree_width,
    .begin = begin_tree,
    .propose = propose_tree,
};

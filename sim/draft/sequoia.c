// SPDX-License-Identifier: Apache-2.0
// Sequoia (Chen et al. 2024): the tree with the largest expected speedup for given acceptance rates
// by rank and costs (theory/tree.h), drafted without replacement (sim/draft/grow_tree.h). The
// default acceptance rates are the first ten of the 32 that its program contains; lower ranks are
// never drafted.
#include "sim/draft/grow_tree.h"
#include "sim/draft/tree_file.h"

#include <stdlib.h>

enum { BUDGET, DEPTH, ACCEPTANCE, DRAFT_COST, TARGET_SLOPE };
// clang-format off
static const dsc_option options[] = {
    {.name = "budget", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "64", .min = 1,
     .sizes = "2,3,4,8,16,32,64",
     .max = DSC_TREE_NODES, .help = "tokens in the target call at most, the root included"},
    {.name = "depth", .kind = DSC_OPTION_INT, .metavar = "L", .initial = "8", .min = 0,
     .sizes = "1,2,3,4,8",
     .max = DSC_TREE_DEPTH, .help = "levels below the root at most"},
    {.name = "acceptance-by-rank", .kind = DSC_OPTION_TEXT, .metavar = "LIST|FILE",
     .initial = ".6342,.1079,.0570,.0225,.0195,.0150,.0045,.0030,.0120,.0045",
     .help = "acceptance rates of the first candidate, the second, ...; a / or a new line of a "
             "file begins the rates of the next level"},
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "C", .initial = "0", .least = 0,
     .most = 1e6, .help = "time of a draft forward, which makes one level, in target calls on one "
     "token; 0: the most tokens are sought"},
    {.name = "target-slope", .kind = DSC_OPTION_REAL, .metavar = "C", .initial = "0", .least = 0,
     .most = 1e6, .help = "time added to the target call by each further token, same unit"},
};
// clang-format on

static int plan(dsc_tree *tree, const dsc_config *config, const dsc_tree_acceptance *dist,
                dsc_error *err)
{
    dsc_tree_plan *plan;
    double target[DSC_TREE_NODES];
    int depth = (int)config->parameter[DEPTH];
    if (dist->depths > 1 && depth > dist->depths)
        depth = dist->depths;
    for (int m = 0; m < DSC_TREE_NODES; m++)
        target[m] = 1 + m * config->real[TARGET_SLOPE];
    const dsc_tree_cost cost = {config->real[DRAFT_COST], target};
    int rc = dsc_tree_plan_new(&plan, dist, (int)config->parameter[BUDGET], depth, err);
    if (rc)
        return rc;
    dsc_tree_choice best = dsc_tree_plan_best(plan, &cost);
    rc = dsc_tree_plan_tree(plan, best.nodes, best.depth, tree, err);
    dsc_tree_plan_free(plan);
    return rc;
}

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    dsc_tree_acceptance dist;
    double *rate;
    dsc_tree tree;
    int rc = dsc_tree_acceptance_load(&dist, &rate, config->text[ACCEPTANCE], err);
    if (!rc)
        rc = plan(&tree, config, &dist, err);
    free(rate);
    return rc ? rc : dsc_grow_tree_keep(&tree, prepared, err);
}

const dsc_drafter_type dsc_drafter_sequoia = {
    .name = "sequoia",
    .summary = "the best tree for acceptances by rank and costs (Sequoia)",
    .source = "Chen et al. 2024, Sequoia, arXiv 2402.12374",
    .engines = "none",
    .recording = "draft_rank as deep as the tree (greedy)",
    .needs_draft = true,
    .branches = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    DSC_GROW_TREE_MEMBERS,
};

// SPDX-License-Identifier: Apache-2.0
// A draft tree of a fixed shape: EAGLE-1's (Li et al. 2024), Medusa's (Cai et al. 2024), a chain,
// the full tree K^D, or a tree from a file (sim/draft/grow_tree.h).
//
// K^D is a tree of D levels below the root: K + K^2 + ... + K^D draft tokens. Some programs count
// the root as a level, so their k^d has d - 1 levels below it. The Medusa tree here is only
// Medusa's shape: a Medusa head does not read the tokens of the others, and one pass computes all
// heads. A draft model does read them and needs a pass per level.
#include "sim/draft/grow_tree.h"
#include "sim/draft/tree_file.h"

enum { TREE };
// clang-format off
static const dsc_option options[] = {
    {.name = "tree", .kind = DSC_OPTION_TEXT, .metavar = "NAME|FILE", .initial = "eagle",
     .sizes = "chain:1|chain:2|chain:3|chain:5|2^2|2^3|3^2|eagle|medusa",
     .help = "eagle, medusa, chain:L, K^D (K children down to D levels below the root), or a "
             "file's"},
};
// clang-format on

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    dsc_tree tree;
    int rc = dsc_tree_load(&tree, config->text[TREE], err);
    return rc ? rc : dsc_grow_tree_keep(&tree, prepared, err);
}

static const char *const presets[] = {"eagle", "medusa", NULL};

const dsc_drafter_type dsc_drafter_tree = {
    .name = "tree",
    .summary = "a draft model's top candidates along a fixed tree (EAGLE, Medusa)",
    .source = "Li et al. 2024, EAGLE, arXiv 2401.15077; Cai et al. 2024, Medusa, arXiv 2401.10774",
    .engines = "TensorRT-LLM eagle_choices is similar",
    .recording = "draft_rank as deep as the tree (greedy)",
    .presets = presets,
    .needs_draft = true,
    .branches = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    DSC_GROW_TREE_MEMBERS,
};

// SPDX-License-Identifier: Apache-2.0
// SpecTr's prefix tree (Sun et al. 2023, Algorithm 4): a node of depth i has K_(i+1) children, each
// an independent sample of the draft model, so that the K_1 K_2 ... K_L sequences share their
// prefixes (sim/draft/grow_tree.h). Compared with that number of whole sequences
// (sim/draft/spectr.c), it saves target tokens, but no draft model passes.
#include "sim/draft/grow_tree.h"

#include <stdlib.h>

enum { BRANCHES };
// clang-format off
static const dsc_option options[] = {
    {.name = "branches", .kind = DSC_OPTION_TEXT, .metavar = "K1,K2,...", .initial = "2,2,1,1",
     .sizes = "1|1,1|2|2,1|2,2|2,1,1|2,2,1,1|3,1,1",
     .help = "number of tokens sampled after the last token of the output, after each of "
             "these, ..."},
};
// clang-format on

// Parses "K1,K2,..." into children[depth]; *nodes counts the root too.
static int parse_branches(const char *text, int children[DSC_TREE_DEPTH], int *depth, int *nodes,
                          dsc_error *err)
{
    long level = 1, total = 1;
    *depth = 0;
    for (const char *item = text;; item++) {
        char *end = (char *)item;
        long k = *item >= '0' && *item <= '9' ? strtol(item, &end, 10) : 0;
        if (k < 1 || k >= DSC_TREE_NODES || (*end && *end != ',') || *depth == DSC_TREE_DEPTH)
            return dsc_fail(err, DSC_EUSAGE,
                            "--branches '%.60s': 1 to %d numbers from 1 to %d are expected", text,
                            DSC_TREE_DEPTH, DSC_TREE_NODES - 1);
        children[(*depth)++] = (int)k;
        level *= k;
        total += level;
        if (total > DSC_TREE_NODES)
            return dsc_fail(err, DSC_EUSAGE, "--branches '%.60s': more than %d nodes", text,
                            DSC_TREE_NODES);
        item = end;
        if (!*item)
            break;
    }
    *nodes = (int)total;
    return DSC_OK;
}

static int build(dsc_tree *t, const int *children, int depth, int nodes, dsc_error *err)
{
    int rc = dsc_tree_new(t, (size_t)nodes, err);
    t->depth = depth;
    for (int32_t i = 0, next = 1; next < nodes && !rc; i++)
        for (int32_t r = 0; r < children[t->level[i]]; r++, next++) {
            t->parent[next] = i;
            t->rank[next] = r;
            t->level[next] = t->level[i] + 1;
        }
    return rc;
}

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    int children[DSC_TREE_DEPTH], depth = 0, nodes = 0;
    dsc_tree tree;
    int rc = parse_branches(config->text[BRANCHES], children, &depth, &nodes, err);
    if (!rc)
        rc = build(&tree, children, depth, nodes, err);
    return rc ? rc : dsc_grow_tree_keep(&tree, prepared, err);
}

const dsc_drafter_type dsc_drafter_spectr_tree = {
    .name = "spectr-tree",
    .summary = "a tree of tokens sampled from a draft model (SpecTr's prefix tree)",
    .source = "Sun et al. 2023, SpecTr, Algorithm 4, arXiv 2310.15141",
    .engines = "none",
    .recording = "draft_logp, target_logp and the column of the rule (kseq, otm, specinfer)",
    .needs_draft = true,
    .branches = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .replay = DSC_DRAFT_REPLAY_TREE,
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    DSC_GROW_TREE_MEMBERS,
};

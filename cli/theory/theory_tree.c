// SPDX-License-Identifier: Apache-2.0
// draftscope theory tree: the best draft tree for given acceptances and costs, or what a given
// tree is expected to yield.
#include "cli/theory/theory_closed.h"
#include "sim/draft/tree_file.h"

#include <stdlib.h>
#include <string.h>

enum {
    ACCEPTANCE,
    TREE,
    BUDGET,
    DEPTH,
    DRAFT_COST,
    TARGET_COST,
    TARGET_SLOPE,
    SUMMARY,
    JSON,
    OUT,
    FORCE,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "acceptance", .kind = DSC_OPTION_TEXT, .metavar = "P0,P1,...[/...]",
     .help = "of the best candidate, the second, ...; after / one level deeper"},
    {.name = "tree", .kind = DSC_OPTION_TEXT, .metavar = "NAME|FILE",
     .help = "not the best tree but eagle, medusa, chain:L, K^D, or a file's"},
    {.name = "budget", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "64", .min = 1,
     .max = DSC_TREE_NODES, .help = "tokens in the target call at most, the root included"},
    {.name = "depth", .kind = DSC_OPTION_INT, .metavar = "L", .initial = "8", .min = 0,
     .max = DSC_TREE_DEPTH, .help = "levels below the root at most"},
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = ".05", .least = 0,
     .most = 1e100, .help = "time of a draft forward, which makes one level"},
    {.name = "target-cost", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1",
     .least = 1e-100, .most = 1e100, .help = "time of a target call on one token, same unit"},
    {.name = "target-slope", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "0", .least = 0,
     .most = 1e100, .help = "time added by each further token in it"},
    {.name = "summary", .kind = DSC_OPTION_FLAG, .help = "one row of totals, not a row per node"},
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column node_columns[] = {
    {"node", DSC_CELL_INT, "0 is the root, the token already decided"},
    {"parent", DSC_CELL_INT, "its node; -1: none"},
    {"depth", DSC_CELL_INT, "levels below the root"},
    {"rank", DSC_CELL_INT, "among the candidates at its parent, 0 the best; -1: the root"},
    {"path", DSC_CELL_TEXT, "ranks from the root: a line of a tree file"},
    {"probability", DSC_CELL_REAL, "of being accepted: what the node adds to the tokens expected"},
    {"expected_tokens", DSC_CELL_REAL, "from the node and all below it, per target call"},
};
static const dsc_column summary_columns[] = {
    {"tree", DSC_CELL_TEXT, "name or file; best: the optimum"},
    {"nodes", DSC_CELL_INT, "tokens in the target call, the root included"},
    {"depth", DSC_CELL_INT, "levels below the root: draft forwards"},
    {"expected_tokens", DSC_CELL_REAL, "per target call, its own token included"},
    {"step_time", DSC_CELL_REAL, "of the drafts and the target call, in the unit of the costs"},
    {"speedup", DSC_CELL_REAL, "against one token per target call"},
};
static const dsc_column formulas[] = {
    {"probability", DSC_CELL_TEXT, "product of the acceptances on the path; a node of rank r at "
                                   "depth d has P_r (of level d); Sequoia (Chen et al. 2024), "
                                   "tree construction"},
    {"expected_tokens", DSC_CELL_TEXT, "sum of the probabilities, the root's 1 (the target's own "
                                       "token) included; of a chain 1 + a1 + a1 a2 + ..."},
    {"best tree", DSC_CELL_TEXT, "T[l][b][m] = max over s of T[l][b-1][m-s] + P_b max over b' of "
                                 "T[l-1][b'][s], T[l][0][1] = 1: most tokens of m nodes, b "
                                 "children, l levels; ibid. Children are the first "
                                 "candidates, without gaps"},
    {"speedup", DSC_CELL_TEXT, "expected_tokens target-cost/step_time; the best m and l maximise "
                               "it"},
    {"step_time", DSC_CELL_TEXT, "depth draft-cost + target-cost + (nodes - 1) target-slope"},
};
// clang-format on
enum {
    NODE_COLUMNS = sizeof node_columns / sizeof *node_columns,
    SUMMARY_COLUMNS = sizeof summary_columns / sizeof *summary_columns,
    PATH_TEXT = 5 * DSC_TREE_DEPTH,
};

static const cli_theory_help help = {
    .usage = "theory tree --acceptance P0,P1,... [--budget M] [--depth L] [OPTIONS]\n"
             "       draftscope theory tree --acceptance P0,P1,... --tree NAME|FILE [OPTIONS]",
    .about = "The draft tree with the greatest speed-up, or what a given one is expected to yield. "
             "Acceptances without a / hold at every depth. A tree's FILE (a name with a / or . in "
             "it) has a draft token per line, as the ranks on its path from the root: 0,1,0.",
    .option = options,
    .options = OPTIONS,
    .column = node_columns,
    .columns = NODE_COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

typedef struct result {
    const char *name;
    dsc_tree tree;
    double *rate; // of the distribution
    dsc_tree_acceptance dist;
    double *probability;
    double expected, step_time, speedup;
} result;

// "P0,P1/Q0,Q1": rows of equal length.
static int parse_dist(result *r, char *text, dsc_error *err)
{
    size_t capacity = 0;
    int rc = DSC_OK;
    for (char *row = text, *next; row && !rc; row = next) {
        double *value = NULL;
        size_t n, used = (size_t)(r->dist.depths * r->dist.ranks);
        next = strchr(row, '/');
        if (next)
            *next++ = '\0';
        rc = cli_theory_vector("acceptance", row, 0, 1, &value, &n, err);
        if (!rc && (n > DSC_TREE_RANKS || r->dist.depths == DSC_TREE_DEPTH))
            rc = dsc_fail(err, DSC_EUSAGE, "--acceptance: at most %d ranks and %d depths",
                          DSC_TREE_RANKS, DSC_TREE_DEPTH);
        if (!rc && r->dist.depths && (int)n != r->dist.ranks)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--acceptance: %zu values at depth %d, %d above it (give 0 for the rest)",
                          n, r->dist.depths + 1, r->dist.ranks);
        void *p = r->rate;
        if (!rc)
            rc = dsc_grow(&p, &capacity, used + n, sizeof *r->rate, err);
        r->rate = p;
        if (!rc) {
            memcpy(r->rate + used, value, n * sizeof *value);
            r->dist = (dsc_tree_acceptance){r->rate, r->dist.depths + 1, (int)n};
        }
        free(value);
    }
    return rc ? rc : dsc_tree_acceptance_check(&r->dist, err);
}

static int plan_tree(result *r, const dsc_option_value *value, const dsc_tree_cost *cost,
                     dsc_error *err)
{
    dsc_tree_plan *plan;
    int depth = (int)value[DEPTH].integer;
    if (!value[DEPTH].given && r->dist.depths > 1)
        depth = r->dist.depths;
    r->name = "best";
    int rc = dsc_tree_plan_new(&plan, &r->dist, (int)value[BUDGET].integer, depth, err);
    if (rc)
        return rc;
    dsc_tree_choice best = dsc_tree_plan_best(plan, cost);
    rc = dsc_tree_plan_tree(plan, best.nodes, best.depth, &r->tree, err);
    dsc_tree_plan_free(plan);
    return rc;
}

static int evaluate(result *r, const dsc_option_value *value, dsc_error *err)
{
    double target[DSC_TREE_NODES];
    dsc_tree_cost cost = {value[DRAFT_COST].real, target};
    for (int m = 0; m < DSC_TREE_NODES; m++)
        target[m] = value[TARGET_COST].real + m * value[TARGET_SLOPE].real;
    int rc = DSC_OK;
    if (value[TREE].given)
        rc = dsc_tree_load(&r->tree, r->name = value[TREE].text, err);
    else
        rc = plan_tree(r, value, &cost, err);
    if (!rc)
        rc = dsc_new(&r->probability, (size_t)r->tree.nodes, err);
    if (!rc)
        rc = dsc_tree_expect(&r->tree, &r->dist, r->probability, &r->expected, err);
    if (rc)
        return rc;
    r->speedup = dsc_tree_speedup(r->expected, r->tree.nodes, r->tree.depth, &cost);
    r->step_time = r->tree.depth * cost.draft + target[r->tree.nodes - 1];
    return DSC_OK;
}

static void path_of(const dsc_tree *t, int node, char text[PATH_TEXT])
{
    int32_t rank[DSC_TREE_DEPTH];
    size_t used = 0;
    int level = t->level[node];
    for (int i = node; i > 0; i = t->parent[i])
        rank[t->level[i] - 1] = t->rank[i];
    text[0] = '\0';
    for (int d = 0; d < level; d++)
        used += (size_t)snprintf(text + used, PATH_TEXT - used, "%s%d", d ? "," : "", rank[d]);
}

static int add_nodes(dsc_table *t, const result *r, dsc_error *err)
{
    const dsc_tree *tree = &r->tree;
    double *below; // of the node and all its descendants
    char path[PATH_TEXT];
    int rc = dsc_new(&below, (size_t)tree->nodes, err);
    if (rc)
        return rc;
    for (int i = tree->nodes - 1; i >= 0; i--) {
        below[i] += r->probability[i];
        if (i)
            below[tree->parent[i]] += below[i];
    }
    rc = cli_theory_columns(t, node_columns, NODE_COLUMNS, err);
    for (int i = 0; i < tree->nodes && !rc; i++) {
        path_of(tree, i, path);
        dsc_cell cell[NODE_COLUMNS] = {
            {.type = DSC_CELL_INT, .i = i},
            {.type = DSC_CELL_INT, .i = tree->parent[i]},
            {.type = DSC_CELL_INT, .i = tree->level[i]},
            {.type = DSC_CELL_INT, .i = tree->rank[i]},
            {.type = DSC_CELL_TEXT, .text = path},
            {.type = DSC_CELL_REAL, .r = r->probability[i]},
            {.type = DSC_CELL_REAL, .r = below[i]},
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    free(below);
    return rc;
}

static int add_summary(dsc_table *t, const result *r, dsc_error *err)
{
    dsc_cell cell[SUMMARY_COLUMNS] = {
        {.type = DSC_CELL_TEXT, .text = r->name},   {.type = DSC_CELL_INT, .i = r->tree.nodes},
        {.type = DSC_CELL_INT, .i = r->tree.depth}, {.type = DSC_CELL_REAL, .r = r->expected},
        {.type = DSC_CELL_REAL, .r = r->step_time}, {.type = DSC_CELL_REAL, .r = r->speedup},
    };
    int rc = cli_theory_columns(t, summary_columns, SUMMARY_COLUMNS, err);
    return rc ? rc : dsc_table_add_row(t, cell, err);
}

// The totals as comments, so that a table of nodes and its figure have them.
static int add_comments(dsc_table *t, const result *r, dsc_error *err)
{
    char number[DSC_NUMBER_TEXT];
    int rc = cli_theory_comments(t, err);
    if (!rc)
        rc = dsc_table_comment(t, "tree", r->name, err);
    dsc_number_text(r->expected, number);
    if (!rc)
        rc = dsc_table_comment(t, "expected_tokens", number, err);
    dsc_number_text(r->step_time, number);
    if (!rc)
        rc = dsc_table_comment(t, "step_time", number, err);
    dsc_number_text(r->speedup, number);
    return rc ? rc : dsc_table_comment(t, "speedup", number, err);
}

static int check_options(const dsc_option_value *value, dsc_error *err)
{
    if (!value[ACCEPTANCE].given)
        return dsc_fail(err, DSC_EUSAGE, "--acceptance P0,P1,... is expected");
    for (int i = BUDGET; i <= DEPTH; i++)
        if (value[TREE].given && value[i].given)
            return dsc_fail(err, DSC_EUSAGE, "--tree and --%s exclude each other", options[i].name);
    return DSC_OK;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    result r = {0};
    char *text = NULL;
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done) {
        if (!rc)
            cli_print_fields("Columns with --summary", summary_columns, SUMMARY_COLUMNS);
        return rc;
    }
    rc = check_options(value, err);
    if (!rc)
        rc = dsc_strndup(&text, value[ACCEPTANCE].text, strlen(value[ACCEPTANCE].text), err);
    if (!rc)
        rc = parse_dist(&r, text, err);
    if (!rc)
        rc = evaluate(&r, value, err);
    if (!rc)
        rc = value[SUMMARY].given ? cli_theory_comments(&t, err) : add_comments(&t, &r, err);
    if (!rc)
        rc = value[SUMMARY].given ? add_summary(&t, &r, err) : add_nodes(&t, &r, err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    dsc_tree_fini(&r.tree);
    free(r.rate);
    free(r.probability);
    free(text);
    return rc;
}

const cli_command cli_theory_tree = {
    .name = "tree",
    .summary = "the best draft tree, or what a given one yields",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

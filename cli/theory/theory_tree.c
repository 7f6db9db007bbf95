// SPDX-License-Identifier: Apache-2.0
// draftscope theory tree: the draft tree with the highest speedup for given acceptance rates by
// rank (Sequoia, Chen et al. 2024, by dynamic programming), or the expected tokens of a given tree.
#include "cli/theory/theory_closed.h"
#include "sim/draft/tree_file.h"

#include <stdlib.h>
#include <string.h>

enum { ACCEPTANCE, TREE, BUDGET, DEPTH, DRAFT_COST, TARGET_COST, TARGET_SLOPE, SUMMARY };
// clang-format off
static const dsc_option options[] = {
    {.name = "acceptance-by-rank", .kind = DSC_OPTION_TEXT, .metavar = "P0,P1,...[/...]",
     .help = "acceptance probabilities of the candidates, the most probable first; / separates "
             "levels"},
    {.name = "tree", .kind = DSC_OPTION_TEXT, .metavar = "NAME|FILE",
     .help = "evaluate this tree instead of the best one: eagle, medusa, chain:L, K^D, or a FILE"},
    {.name = "budget", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "64", .min = 1,
     .max = DSC_TREE_NODES, .help = "largest number of tokens in the target call, including the "
                                    "root"},
    {.name = "depth", .kind = DSC_OPTION_INT, .metavar = "L", .initial = "8", .min = 0,
     .max = DSC_TREE_DEPTH, .help = "largest number of levels below the root"},
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = ".05", .least = 0,
     .most = 1e100, .help = "time of a draft forward pass, which makes one level"},
    {.name = "target-cost", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1",
     .least = 1e-100, .most = 1e100, .help = "time of a target call on one token, in the unit of "
                                             "--draft-cost"},
    {.name = "target-slope", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "0", .least = 0,
     .most = 1e100, .help = "time that each further token adds to a target call"},
    {.name = "summary", .kind = DSC_OPTION_FLAG, .help = "print one row of totals instead of one "
                                                         "row per node"},
    CLI_OPTIONS_RESULT,
};
static const dsc_column node_columns[] = {
    {"node", DSC_CELL_INT, "number of the node; 0 is the root, the token already decided"},
    {"parent", DSC_CELL_INT, "number of the parent node; -1: none"},
    {"depth", DSC_CELL_INT, "levels below the root"},
    {"rank", DSC_CELL_INT, "rank among the candidates at the parent, 0 the most probable; -1: the "
                           "root"},
    {"path", DSC_CELL_TEXT, "ranks from the root to the node: a line of a tree file"},
    {"probability", DSC_CELL_REAL, "probability that the node is accepted"},
    {"expected_tokens", DSC_CELL_REAL, "expected accepted tokens per target call from the node and "
                                       "its descendants"},
};
static const dsc_column summary_columns[] = {
    {"tree", DSC_CELL_TEXT, "name or file of the tree; best: the optimum"},
    {"nodes", DSC_CELL_INT, "tokens in the target call, including the root"},
    {"depth", DSC_CELL_INT, "levels below the root, which is the number of draft forward passes"},
    {"expected_tokens", DSC_CELL_REAL, "expected output tokens per target call (bonus included)"},
    {"step_time", DSC_CELL_REAL, "time of the draft passes and the target call, in the unit of the "
                                 "costs"},
    {"speedup", DSC_CELL_REAL, "speedup over decoding one token per target call"},
};
static const dsc_column formulas[] = {
    {"probability", DSC_CELL_TEXT, "product of the acceptance probabilities on the path, where a "
                                   "node of rank r at depth d has P_r of level d; Sequoia (Chen et "
                                   "al. 2024), tree construction"},
    {"expected_tokens", DSC_CELL_TEXT, "sum of the probabilities, including the root's 1 (the "
                                       "target's own token); for a chain 1 + a1 + a1 a2 + ..."},
    {"best tree", DSC_CELL_TEXT, "T[l][b][m] = max over s of T[l][b-1][m-s] + P_b max over b' of "
                                 "T[l-1][b'][s], T[l][0][1] = 1: most tokens of m nodes, b "
                                 "children, l levels; ibid. Children are the first candidates, "
                                 "without gaps"},
    {"speedup", DSC_CELL_TEXT, "expected_tokens target-cost/step_time; the best m and l maximize "
                               "it"},
    {"step_time", DSC_CELL_TEXT, "depth draft-cost + target-cost + (nodes - 1) target-slope"},
};
// clang-format on
enum {
    NODE_COLUMNS = sizeof node_columns / sizeof *node_columns,
    SUMMARY_COLUMNS = sizeof summary_columns / sizeof *summary_columns,
    PATH_TEXT = 5 * DSC_TREE_DEPTH,
};

typedef struct result {
    const char *name;
    dsc_tree tree;
    double *rate;                   // [depths][ranks] of `acceptance`
    dsc_tree_acceptance acceptance; // by level and rank
    double *probability;            // [nodes] of being accepted
    double expected, step_time, speedup;
} result;

// Parses "P0,P1/Q0,Q1": one level before each /, the same number of ranks at every level.
static int parse_acceptance(result *r, char *text, dsc_error *err)
{
    size_t capacity = 0;
    int rc = DSC_OK;
    for (char *level = text, *next; level && !rc; level = next) {
        double *value = NULL;
        size_t n, used = (size_t)(r->acceptance.depths * r->acceptance.ranks);
        next = strchr(level, '/');
        if (next)
            *next++ = '\0';
        rc = cli_theory_vector("acceptance-by-rank", level, 0, 1, &value, &n, err);
        if (!rc && (n > DSC_TREE_RANKS || r->acceptance.depths == DSC_TREE_DEPTH))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--acceptance-by-rank: at most %d ranks and %d levels are valid",
                          DSC_TREE_RANKS, DSC_TREE_DEPTH);
        if (!rc && r->acceptance.depths && (int)n != r->acceptance.ranks)
            rc = dsc_fail(
                err, DSC_EUSAGE,
                "--acceptance-by-rank: level %d has %zu values and the one above has %d; give "
                "0 for missing candidates",
                r->acceptance.depths + 1, n, r->acceptance.ranks);
        if (!rc)
            rc = dsc_resize(&r->rate, &capacity, used + n, err);
        if (!rc) {
            memcpy(r->rate + used, value, n * sizeof *value);
            r->acceptance = (dsc_tree_acceptance){r->rate, r->acceptance.depths + 1, (int)n};
        }
        free(value);
    }
    return rc ? rc : dsc_tree_acceptance_check(&r->acceptance, err);
}

static int plan_tree(result *r, const dsc_option_value *value, const dsc_tree_cost *cost,
                     dsc_error *err)
{
    dsc_tree_plan *plan;
    int depth = (int)value[DEPTH].integer;
    if (!value[DEPTH].given && r->acceptance.depths > 1)
        depth = r->acceptance.depths;
    r->name = "best";
    int rc = dsc_tree_plan_new(&plan, &r->acceptance, (int)value[BUDGET].integer, depth, err);
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
        rc = dsc_tree_expect(&r->tree, &r->acceptance, r->probability, &r->expected, err);
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
    double *below; // [nodes] expected tokens from a node and its descendants
    char path[PATH_TEXT];
    int rc = dsc_new(&below, (size_t)tree->nodes, err);
    if (rc)
        return rc;
    for (int i = tree->nodes - 1; i >= 0; i--) {
        below[i] += r->probability[i];
        if (i)
            below[tree->parent[i]] += below[i];
    }
    rc = dsc_table_add_columns(t, node_columns, NODE_COLUMNS, err);
    for (int i = 0; i < tree->nodes && !rc; i++) {
        path_of(tree, i, path);
        dsc_cell cell[NODE_COLUMNS] = {
            cli_integer(i),
            cli_integer(tree->parent[i]),
            cli_integer(tree->level[i]),
            cli_integer(tree->rank[i]),
            cli_text(path),
            cli_real(r->probability[i]),
            cli_real(below[i]),
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    free(below);
    return rc;
}

static int add_summary(dsc_table *t, const result *r, dsc_error *err)
{
    dsc_cell cell[SUMMARY_COLUMNS] = {
        cli_text(r->name),     cli_integer(r->tree.nodes), cli_integer(r->tree.depth),
        cli_real(r->expected), cli_real(r->step_time),     cli_real(r->speedup),
    };
    int rc = dsc_table_add_columns(t, summary_columns, SUMMARY_COLUMNS, err);
    return rc ? rc : dsc_table_add_row(t, cell, err);
}

// Adds the totals as comments to a table of nodes, where its figure finds them.
static int add_comments(dsc_table *t, const result *r, dsc_error *err)
{
    const double total[] = {r->expected, r->step_time, r->speedup};
    int rc = dsc_table_comment(t, "tree", r->name, err);
    for (int i = 0; i < 3 && !rc; i++) {
        char number[DSC_NUMBER_TEXT];
        dsc_number_text(total[i], number);
        rc = dsc_table_comment(t, summary_columns[SUMMARY_COLUMNS - 3 + i].name, number, err);
    }
    return rc;
}

static int check(const dsc_option_value *value, dsc_error *err)
{
    if (!value[ACCEPTANCE].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "give the acceptance rates: --acceptance-by-rank P0,P1,...");
    for (int i = BUDGET; i <= DEPTH; i++)
        if (value[TREE].given && value[i].given)
            return dsc_fail(err, DSC_EUSAGE, "--tree and --%s cannot be combined", options[i].name);
    return DSC_OK;
}

static int fill(dsc_table *t, const dsc_option_value *value, dsc_error *err)
{
    result r = {0};
    char *text = NULL;
    int rc = dsc_strndup(&text, value[ACCEPTANCE].text, strlen(value[ACCEPTANCE].text), err);
    if (!rc)
        rc = parse_acceptance(&r, text, err);
    if (!rc)
        rc = evaluate(&r, value, err);
    if (!rc && !value[SUMMARY].given)
        rc = add_comments(t, &r, err);
    if (!rc)
        rc = value[SUMMARY].given ? add_summary(t, &r, err) : add_nodes(t, &r, err);
    dsc_tree_fini(&r.tree);
    free(r.rate);
    free(r.probability);
    free(text);
    return rc;
}

const cli_command cli_theory_tree = {
    .name = "tree",
    .summary = "the draft tree with the highest speedup, or the yield of a given tree",
    CLI_OPTIONS(options),
    .usage =
        "theory tree --acceptance-by-rank P0,P1,... [--budget M] [--depth L] [OPTIONS]\n"
        "       draftscope theory tree --acceptance-by-rank P0,P1,... --tree NAME|FILE [OPTIONS]",
    .about = "Computes the draft tree with the highest speedup, or the expected tokens of a given "
             "tree. Acceptance rates without a / hold at every level. A tree FILE (a name with a / "
             "or . in it) has one draft token per line, as the ranks on its path from the root: "
             "0,1,0.",
    .fields = {CLI_FIELDS("Columns", node_columns), CLI_FIELDS("Formulas", formulas),
               CLI_FIELDS("Columns with --summary", summary_columns)},
    .execute = cli_closed_execute,
    .form =
        &(const cli_closed){
            .check = check,
            .fill = fill,
        },
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory speedup: accepted drafts, block efficiency and speed-up by draft length.
#include "cli/theory_closed.h"

#include <stdlib.h>

enum { ALPHA, HAZARD, HISTOGRAM, LENGTH, DRAFT_COST, TARGET_SLOPE, JSON, OUT, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    CLI_OPTION_ALPHA,
    CLI_OPTION_HAZARD,
    CLI_OPTION_HISTOGRAM,
    {.name = "length", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "1:16", .min = 0,
     .max = DSC_BLOCK_LONGEST, .list = true, .help = "draft lengths, as in 1:16; 0: none"},
    CLI_OPTION_DRAFT_COST,
    CLI_OPTION_TARGET_SLOPE,
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "acceptance rate of a draft token, the same for each (with hazards: "
                             "the rate that accepts as many of all their positions)"},
    {"length", DSC_CELL_INT, "draft tokens per target call"},
    {"draft_cost", DSC_CELL_REAL, "time of a draft token over that of a target call"},
    {"target_slope", DSC_CELL_REAL, "added to a target call by each further token in it"},
    {"accepted", DSC_CELL_REAL, "draft tokens accepted per target call (bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL, "tokens per target call (bonus included)"},
    {"speedup", DSC_CELL_REAL, "against one token per target call"},
    {"iid_accepted", DSC_CELL_REAL, "only with hazards: accepted, had they all been alpha"},
    {"iid_speedup", DSC_CELL_REAL, "only with hazards: speedup, had they all been alpha"},
    {"iid_error_percent", DSC_CELL_REAL, "only with hazards: by how much that speed-up is wrong"},
};
static const dsc_column formulas[] = {
    {"accepted", DSC_CELL_TEXT, "a (1 - a^L)/(1 - a), L where a = 1; Leviathan, Kalman and Matias "
                                "2023, Eq. (1), less the bonus. With hazards h1, h2, ...: h1 + h1 "
                                "h2 + ... + h1 ... hL; refused beyond the hazards given"},
    {"block_efficiency", DSC_CELL_TEXT, "1 + accepted = (1 - a^(L+1))/(1 - a); ibid., Eq. (1)"},
    {"speedup", DSC_CELL_TEXT, "(1 + accepted)/(1 + L (draft_cost + target_slope)); ibid., Theorem "
                               "3.8, with a target call on 1 + L tokens taking 1 + L target_slope"},
    {"histogram", DSC_CELL_TEXT, "h_j = rounds that accepted j or more/rounds that accepted j - 1 "
                                 "or more (Kaplan and Meier 1958); all rounds drafted as many "
                                 "tokens as the last count is for"},
};
// clang-format on
enum { COLUMNS = sizeof columns / sizeof *columns, IID_COLUMNS = 3 };

static const cli_theory_help help = {
    .usage = "theory speedup --alpha LIST [--length LIST] [--draft-cost LIST] [OPTIONS]",
    .about = "Speed-up of speculative decoding with one draft sequence per target call, for every "
             "combination of acceptance, draft length and costs.",
    .option = options,
    .options = OPTIONS,
    .column = columns,
    .columns = COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

// The rows of one law and one cost; accepted[most + 1] by length.
static int add_rows(dsc_table *t, const cli_laws *laws, size_t law, dsc_block_cost cost,
                    const int64_t *length, size_t lengths, const double *accepted, dsc_error *err)
{
    double alpha = laws->hazard ? cli_laws_iid(laws) : laws->alpha[law];
    int rc = DSC_OK;
    for (size_t i = 0; i < lengths && !rc; i++) {
        int n = (int)length[i];
        double iid = dsc_iid_accepted(alpha, n), speedup = dsc_block_speedup(accepted[n], n, cost);
        double iid_speedup = dsc_block_speedup(iid, n, cost);
        dsc_cell cell[COLUMNS] = {
            {.type = DSC_CELL_REAL, .r = alpha},
            {.type = DSC_CELL_INT, .i = n},
            {.type = DSC_CELL_REAL, .r = cost.draft},
            {.type = DSC_CELL_REAL, .r = cost.slope},
            {.type = DSC_CELL_REAL, .r = accepted[n]},
            {.type = DSC_CELL_REAL, .r = accepted[n] + 1},
            {.type = DSC_CELL_REAL, .r = speedup},
            {.type = DSC_CELL_REAL, .r = iid},
            {.type = DSC_CELL_REAL, .r = iid_speedup},
            {.type = DSC_CELL_REAL, .r = 100 * (iid_speedup / speedup - 1)},
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int fill(dsc_table *t, const cli_laws *laws, const dsc_block_cost *cost, size_t costs,
                const int64_t *length, size_t lengths, dsc_error *err)
{
    int most = 0;
    double *accepted = NULL;
    for (size_t i = 0; i < lengths; i++)
        most = length[i] > most ? (int)length[i] : most;
    int rc = dsc_alloc((void **)&accepted, (size_t)most + 1, sizeof *accepted, err);
    if (!rc)
        rc = cli_theory_columns(t, columns, laws->hazard ? COLUMNS : COLUMNS - IID_COLUMNS, err);
    for (size_t c = 0; c < costs && !rc; c++)
        for (size_t i = 0; i < laws->count && !rc; i++) {
            dsc_block_law law = cli_laws_at(laws, i);
            rc = dsc_block_accepted(&law, most, accepted, err);
            if (!rc)
                rc = add_rows(t, laws, i, cost[c], length, lengths, accepted, err);
        }
    free(accepted);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    cli_laws laws = {0};
    dsc_block_cost *cost = NULL;
    int64_t *length = NULL;
    size_t costs, lengths;
    char all[32];
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done)
        return rc;
    rc = cli_laws_init(&laws, &value[ALPHA], &value[HAZARD], &value[HISTOGRAM], err);
    snprintf(all, sizeof all, "1:%d", laws.hazards); // what the hazards know of
    if (!rc)
        rc = dsc_option_list(&options[LENGTH],
                             laws.hazard && !value[LENGTH].given ? all : value[LENGTH].text,
                             &length, &lengths, err);
    if (!rc)
        rc = cli_theory_costs(&value[DRAFT_COST], &value[TARGET_SLOPE], &cost, &costs, err);
    if (!rc)
        rc = cli_theory_comments(&t, err);
    if (!rc)
        rc = fill(&t, &laws, cost, costs, length, lengths, err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    cli_laws_fini(&laws);
    free(cost);
    free(length);
    return rc;
}

const cli_command cli_theory_speedup = {
    "speedup", "block efficiency and speed-up by acceptance, draft length and cost", run};

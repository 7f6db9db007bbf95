// SPDX-License-Identifier: Apache-2.0
// draftscope theory speedup: accepted drafts, block efficiency and speed-up by draft length.
#include "cli/theory/theory_closed.h"
#include "theory/steps.h"

#include <stdlib.h>

enum {
    ALPHA,
    BY_POSITION,
    HISTOGRAM,
    LENGTH,
    DRAFT_COST,
    TARGET_SLOPE,
    STEPS,
    SEED,
    JSON,
    OUT,
    FORCE,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    CLI_OPTION_ALPHA,
    CLI_OPTION_BY_POSITION,
    CLI_OPTION_HISTOGRAM,
    {CLI_OPTION_LENGTHS, .initial = "1:16", .min = 0,
     .max = DSC_BLOCK_LONGEST, .list = true, .help = "draft lengths, as in 1:16; 0: none"},
    CLI_OPTION_DRAFT_COST,
    CLI_OPTION_TARGET_SLOPE,
    {.name = "steps", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000000, .help = "check: so many simulated target calls for each row"},
    CLI_OPTION_SEED,
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "acceptance rate of every draft token (alpha_iid); with "
                             "--acceptance-by-position "
                             "the rate that gives the same number of accepted tokens"},
    {"length", DSC_CELL_INT, "draft tokens per target call"},
    {"draft_cost", DSC_CELL_REAL, "time of a draft token over that of a target call"},
    {"target_slope", DSC_CELL_REAL, "added to a target call by each further token in it"},
    {"accepted", DSC_CELL_REAL, "draft tokens accepted per target call (bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL, "tokens per target call (bonus included)"},
    {"speedup", DSC_CELL_REAL, "against one token per target call"},
    {"iid_accepted", DSC_CELL_REAL, "only with conditional acceptance rates: accepted, had they "
                                    "all been alpha"},
    {"iid_speedup", DSC_CELL_REAL, "only with conditional acceptance rates: speedup, had they all "
                                   "been alpha"},
    {"iid_error_percent", DSC_CELL_REAL, "only with conditional acceptance rates: by how much "
                                         "that speed-up is wrong"},
    {"simulated_accepted", DSC_CELL_REAL, "only with --steps: mean over the simulated target "
                                           "calls"},
    {"simulated_error", DSC_CELL_REAL, "only with --steps: standard error of that mean"},
};
static const dsc_column formulas[] = {
    {"accepted", DSC_CELL_TEXT, "a (1 - a^L)/(1 - a), L where a = 1; Leviathan, Kalman and Matias "
                                "2023, Eq. (1), less the bonus. With conditional acceptance rates "
                                "h1, h2, ...: h1 + h1 "
                                "h2 + ... + h1 ... hL; refused beyond the conditional acceptance "
                                "rates given"},
    {"block_efficiency", DSC_CELL_TEXT, "1 + accepted = (1 - a^(L+1))/(1 - a); ibid., Eq. (1)"},
    {"speedup", DSC_CELL_TEXT, "(1 + accepted)/(1 + L (draft_cost + target_slope)); ibid., Theorem "
                               "3.8, with a target call on 1 + L tokens taking 1 + L target_slope"},
    {"histogram", DSC_CELL_TEXT, "h_j = rounds that accepted j or more/rounds that accepted j - 1 "
                                 "or more (Kaplan and Meier 1958); all rounds drafted as many "
                                 "tokens as the last count is for"},
};
// clang-format on
enum { COLUMNS = sizeof columns / sizeof *columns, IID_COLUMNS = 3, SIMULATED_COLUMNS = 2 };
enum { PLAIN_COLUMNS = COLUMNS - IID_COLUMNS - SIMULATED_COLUMNS };

static const cli_theory_help help = {
    .usage =
        "theory speedup --alpha LIST [--num-speculative-tokens LIST] [--draft-cost LIST] [OPTIONS]",
    .about = "Speed-up of speculative decoding with one draft sequence per target call, for every "
             "combination of acceptance, draft length and costs.",
    .option = options,
    .options = OPTIONS,
    .column = columns,
    .columns = COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

// What a table is made of.
typedef struct task {
    const cli_acceptance *dists;
    const dsc_block_cost *cost;
    const int64_t *length;
    size_t costs, lengths;
    int64_t steps;
    uint64_t seed;
} task;

// Simulates drafts of n tokens; histogram[n + 1] is room.
static int simulate(const task *k, const dsc_acceptance *dist, int n, int64_t *histogram,
                    dsc_cell out[SIMULATED_COLUMNS], dsc_error *err)
{
    for (int m = 0; m <= n; m++)
        histogram[m] = 0;
    int rc = dsc_steps_sample(dist, n, k->seed, k->steps, histogram, err);
    dsc_steps_mean mean = dsc_steps_summary(histogram, n);
    out[0] = (dsc_cell){.type = DSC_CELL_REAL, .r = mean.accepted};
    out[1] = (dsc_cell){.type = DSC_CELL_REAL, .r = mean.error};
    return rc;
}

// The rows of one distribution and one cost; accepted[most + 1] by length, room for as many counts.
static int add_rows(dsc_table *t, const task *k, size_t i, dsc_block_cost cost,
                    const double *accepted, int64_t *room, dsc_error *err)
{
    const dsc_acceptance dist = cli_acceptance_at(k->dists, i);
    double alpha = k->dists->conditional_rate ? cli_acceptance_iid(k->dists) : k->dists->alpha[i];
    int rc = DSC_OK;
    for (size_t j = 0; j < k->lengths && !rc; j++) {
        int n = (int)k->length[j];
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
        dsc_cell *next = cell + PLAIN_COLUMNS + (k->dists->conditional_rate ? IID_COLUMNS : 0);
        if (k->steps)
            rc = simulate(k, &dist, n, room, next, err);
        if (!rc)
            rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int fill(dsc_table *t, const task *k, dsc_error *err)
{
    int most = 0;
    double *accepted = NULL;
    void *room = NULL;
    for (size_t i = 0; i < k->lengths; i++)
        most = k->length[i] > most ? (int)k->length[i] : most;
    int rc = dsc_new(&accepted, (size_t)most + 1, err);
    if (!rc)
        rc = dsc_alloc(&room, (size_t)most + 1, sizeof(int64_t), err);
    if (!rc)
        rc = cli_theory_columns(t, columns, PLAIN_COLUMNS, err);
    if (!rc && k->dists->conditional_rate)
        rc = cli_theory_columns(t, columns + PLAIN_COLUMNS, IID_COLUMNS, err);
    if (!rc && k->steps)
        rc = cli_theory_columns(t, columns + COLUMNS - SIMULATED_COLUMNS, SIMULATED_COLUMNS, err);
    for (size_t c = 0; c < k->costs && !rc; c++)
        for (size_t i = 0; i < k->dists->count && !rc; i++) {
            dsc_acceptance dist = cli_acceptance_at(k->dists, i);
            rc = dsc_block_accepted(&dist, most, accepted, err);
            if (!rc)
                rc = add_rows(t, k, i, k->cost[c], accepted, room, err);
        }
    free(accepted);
    free(room);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    cli_acceptance dists = {0};
    dsc_block_cost *cost = NULL;
    int64_t *length = NULL;
    size_t costs, lengths;
    char all[32];
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done)
        return rc;
    rc = cli_acceptance_init(&dists, &value[ALPHA], &value[BY_POSITION], &value[HISTOGRAM], err);
    snprintf(all, sizeof all, "1:%d",
             dists.conditional_rates); // what the conditional acceptance rates know of
    if (!rc)
        rc = dsc_option_list(&options[LENGTH],
                             dists.conditional_rate && !value[LENGTH].given ? all
                                                                            : value[LENGTH].text,
                             &length, &lengths, err);
    if (!rc)
        rc = cli_theory_costs(&value[DRAFT_COST], &value[TARGET_SLOPE], &cost, &costs, err);
    if (!rc)
        rc = cli_theory_comments(&t, err);
    if (!rc)
        rc = fill(&t,
                  &(task){&dists, cost, length, costs, lengths, value[STEPS].integer,
                          (uint64_t)value[SEED].integer},
                  err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    cli_acceptance_fini(&dists);
    free(cost);
    free(length);
    return rc;
}

const cli_command cli_theory_speedup = {
    .name = "speedup",
    .summary = "block efficiency and speed-up by acceptance, draft length and cost",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

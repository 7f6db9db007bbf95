// SPDX-License-Identifier: Apache-2.0
// draftscope theory speedup: expected accepted tokens, block efficiency and speedup by draft length
// (Leviathan, Kalman and Matias 2023, Eq. (1) and Theorem 3.8), also for acceptance rates that
// depend on the position, and a Monte Carlo check of the expectation.
#include "cli/theory/theory_closed.h"
#include "theory/steps.h"

#include <stdlib.h>

enum { LENGTH = CLI_CLOSED_RATES, DRAFT_COST, TARGET_SLOPE, STEPS, SEED };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTIONS_ACCEPTANCE,
    {CLI_OPTION_LENGTHS, .initial = "1:16",
     .min = 0, .max = DSC_BLOCK_LONGEST, .list = true,
     .help = "draft lengths, as in 1:16; 0 is no speculation; with rates by position the "
             "default is 1 to the number of rates"},
    CLI_OPTIONS_COST,
    {.name = "steps", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000000,
     .help = "number of steps to simulate for each row, as a check of the closed form"},
    CLI_OPTION_SEED,
    CLI_OPTIONS_RESULT,
};
enum { FIRST_IID = 7, FIRST_SIMULATED = 10, COLUMNS = 12 };
static const dsc_column columns[COLUMNS] = {
    CLI_COLUMN_ALPHA,
    {"length", DSC_CELL_INT, "draft tokens per target call"},
    CLI_COLUMNS_COST,
    {"accepted", DSC_CELL_REAL, "expected accepted draft tokens per target call (bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL, "expected output tokens per target call (bonus included)"},
    {"speedup", DSC_CELL_REAL, "speedup over decoding one token per target call"},
    {"iid_accepted", DSC_CELL_REAL, "only with rates by position: expected accepted draft tokens "
                                    "if every position had rate alpha"},
    {"iid_speedup", DSC_CELL_REAL, "only with rates by position: speedup if every position had "
                                   "rate alpha"},
    {"iid_error_percent", DSC_CELL_REAL, "only with rates by position: relative error of "
                                         "iid_speedup"},
    {"simulated_accepted", DSC_CELL_REAL, "only with --steps: mean accepted draft tokens of the "
                                          "simulated steps"},
    {"simulated_error", DSC_CELL_REAL, "only with --steps: standard error of simulated_accepted"},
};
static const dsc_column formulas[] = {
    {"accepted", DSC_CELL_TEXT, "a (1 - a^L)/(1 - a), which is L at a = 1; Leviathan, Kalman and "
                                "Matias 2023, Eq. (1), less the bonus. With rates by position h1, "
                                "h2, ...: h1 + h1 h2 + ... + h1 ... hL, for at most as many "
                                "positions as there are rates"},
    {"block_efficiency", DSC_CELL_TEXT, "1 + accepted = (1 - a^(L+1))/(1 - a); ibid., Eq. (1)"},
    {"speedup", DSC_CELL_TEXT, "(1 + accepted)/(1 + L (draft_cost + target_slope)); ibid., Theorem "
                               "3.8, with 1 + L target_slope as the time of a target call on 1 + L "
                               "tokens"},
    {"histogram", DSC_CELL_TEXT, "h_j = steps that accepted j or more/steps that accepted j - 1 "
                                 "or more (Kaplan and Meier 1958); every step drafted as many "
                                 "tokens as there are counts, less one"},
};
// clang-format on

static bool shows(const dsc_option_value *value, bool by_position, int c)
{
    return c < FIRST_IID || (c < FIRST_SIMULATED ? by_position : value[STEPS].integer > 0);
}

static int simulate(const cli_point *p, int length, dsc_steps_mean *mean, dsc_error *err)
{
    int64_t *histogram;
    *mean = (dsc_steps_mean){NAN, NAN};
    if (!p->value[STEPS].integer)
        return DSC_OK;
    int rc = dsc_new(&histogram, (size_t)length + 1, err);
    if (!rc)
        rc = dsc_steps_sample(&p->acceptance, length, (uint64_t)p->value[SEED].integer,
                              p->value[STEPS].integer, histogram, err);
    if (!rc)
        *mean = dsc_steps_summary(histogram, length);
    free(histogram);
    return rc;
}

static int compute_row(cli_point *p, double *x, dsc_error *err)
{
    const int length = (int)p->value[LENGTH].integer;
    const dsc_block_cost cost = {p->value[DRAFT_COST].real, p->value[TARGET_SLOPE].real};
    const double accepted = p->accepted[length], iid = dsc_iid_accepted(p->alpha, length);
    const double speedup = dsc_block_speedup(accepted, length, cost);
    const double iid_speedup = dsc_block_speedup(iid, length, cost);
    dsc_steps_mean simulated;
    int rc = simulate(p, length, &simulated, err);
    const double row[] = {p->alpha,
                          length,
                          cost.draft,
                          cost.slope,
                          accepted,
                          accepted + 1,
                          speedup,
                          iid,
                          iid_speedup,
                          100 * (iid_speedup / speedup - 1),
                          simulated.accepted,
                          simulated.error};
    memcpy(x, row, sizeof row);
    return rc;
}

const cli_command cli_theory_speedup = {
    .name = "speedup",
    .summary = "block efficiency and speedup by acceptance rate, draft length and cost",
    CLI_OPTIONS(options),
    .usage = "theory speedup --alpha LIST [--num-speculative-tokens LIST] [--draft-cost LIST] "
             "[OPTIONS]",
    .about = "Computes the speedup of speculative decoding with one draft sequence per target "
             "call, for every combination of acceptance rate, draft length and costs.",
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .optional_columns = true,
    .execute = cli_closed_execute,
    .form =
        &(const cli_closed){
            .by_position = true,
            .axis = {DRAFT_COST, TARGET_SLOPE, CLI_CLOSED_ALPHA, LENGTH},
            .axes = 4,
            .length = {LENGTH},
            .bounded = LENGTH,
            .shows = shows,
            .row = compute_row,
        },
};

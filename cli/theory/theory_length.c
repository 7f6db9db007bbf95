// SPDX-License-Identifier: Apache-2.0
// draftscope theory length: the draft length with the highest speedup (Leviathan, Kalman and Matias
// 2023, section 3.5), the range of lengths that come close to it, and the speedup that other
// lengths lose.
#include "cli/theory/theory_length.h"

// clang-format off
static const dsc_option options[] = {
    CLI_OPTIONS_ACCEPTANCE,
    {.name = "max-speculative-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "64",
     .min = 1, .max = DSC_BLOCK_LONGEST,
     .help = "longest draft to consider; with rates by position the default is the number of "
             "rates"},
    {CLI_OPTION_LENGTHS, .min = 0,
     .max = DSC_BLOCK_LONGEST, .list = true,
     .help = "draft lengths in use; the table has one row for each, with the speedup it loses"},
    {.name = "within", .kind = DSC_OPTION_REAL, .metavar = "PERCENT", .initial = "1", .least = 0,
     .most = 100, .help = "largest loss of speedup from near_from to near_to"},
    CLI_OPTIONS_COST,
    {.name = "trace", .kind = DSC_OPTION_TEXT, .metavar = "TRACE",
     .help = "trace with recorded steps or accept lengths, in place of --alpha: print the expected "
             "curve of all lengths, with and without an effect of each request"},
    {.name = "drafter", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "with --trace: use the accept lengths of this drafter, not the steps"},
    {.name = "fit-length", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 64, .help = "with --trace: fit to drafts cut to N tokens; 0: as long as recorded"},
    {.name = "held-out", .kind = DSC_OPTION_FLAG,
     .help = "with --trace: fit to requests 0, 2, ... and measure requests 1, 3, ..."},
    CLI_OPTIONS_RESULT,
};
enum { FIRST_IID = 9, FIRST_USED = 11, COLUMNS = 14 };
static const dsc_column columns[COLUMNS] = {
    CLI_COLUMN_ALPHA,
    CLI_COLUMNS_COST,
    {"best_length", DSC_CELL_INT, "draft tokens per target call with the highest speedup; 0: do "
                                  "not speculate; where it is the longest draft considered, the "
                                  "optimum may be longer"},
    {"accepted", DSC_CELL_REAL, "expected accepted draft tokens per target call at best_length "
                                "(bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL, "expected output tokens per target call at best_length "
                                        "(bonus included)"},
    {"speedup", DSC_CELL_REAL, "speedup at best_length over decoding one token per target call"},
    {"near_from", DSC_CELL_INT, "shortest draft that loses at most --within percent of speedup"},
    {"near_to", DSC_CELL_INT, "longest draft that loses at most --within percent of speedup"},
    {"iid_best_length", DSC_CELL_INT, "only with rates by position: best length if every position "
                                      "had rate alpha"},
    {"iid_loss_percent", DSC_CELL_REAL, "only with rates by position: speedup that "
                                        "iid_best_length loses"},
    {"used_length", DSC_CELL_INT, "only with --num-speculative-tokens: the draft length in use"},
    {"used_speedup", DSC_CELL_REAL, "only with --num-speculative-tokens: speedup at used_length"},
    {"loss_percent", DSC_CELL_REAL, "only with --num-speculative-tokens: speedup that used_length "
                                    "loses"},
};
static const dsc_column formulas[] = {
    {"best_length", DSC_CELL_TEXT, "argmax over L = 0, 1, ... of (1 + accepted(L))/(1 + L "
                                   "(draft_cost + target_slope)), by enumeration; Leviathan, "
                                   "Kalman and Matias 2023, section 3.5"},
    {"accepted", DSC_CELL_TEXT, "a (1 - a^L)/(1 - a); with rates by position h1 + h1 h2 + ... + h1 "
                                "... hL; ibid., Eq. (1), less the bonus"},
    {"loss_percent", DSC_CELL_TEXT, "100 (1 - speedup(L)/speedup(best_length))"},
    {"effect of a request", DSC_CELL_TEXT, "logit h_ij = b_j + sd z_i with standard normal z_i for "
                                           "position j of request i, by maximum likelihood "
                                           "(Stiratelli, Laird and Ware 1984); tokens per call are "
                                           "the output tokens over the expected calls, each "
                                           "request weighted by its tokens and the posterior of "
                                           "its z_i. With --request-sd: 1/E[1/(1 + accepted(L, "
                                           "z))] over standard normal z"},
    {"histogram", DSC_CELL_TEXT, "h_j = steps that accepted j or more/steps that accepted j - 1 "
                                 "or more (Kaplan and Meier 1958)"},
};
// clang-format on

static bool shows(const dsc_option_value *value, bool by_position, int c)
{
    return c < FIRST_IID || (c < FIRST_USED ? by_position : value[CLI_LENGTH_USED].given);
}

static double speedup_at(const cli_point *p, int length, dsc_block_cost cost)
{
    return dsc_block_speedup(p->accepted[length], length, cost);
}

static double loss(const cli_point *p, int length, dsc_block_cost cost)
{
    return 100 * (1 - speedup_at(p, length, cost) / p->best.speedup);
}

// The speedup has a single peak, since fewer and fewer drafts reach a further position: the lengths
// near the best are one range.
static int compute_row(cli_point *p, double *x, dsc_error *err)
{
    const dsc_block_cost cost = {p->value[CLI_LENGTH_DRAFT_COST].real,
                                 p->value[CLI_LENGTH_TARGET_SLOPE].real};
    const dsc_acceptance iid = {.rate = p->alpha};
    const int used = (int)p->value[CLI_LENGTH_USED].integer;
    dsc_block_best iid_best = {0};
    int rc = DSC_OK;
    if (used > p->longest)
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-speculative-tokens %d exceeds --max-speculative-tokens %d", used,
                        p->longest);
    if (p->first)
        rc = dsc_block_best_length(&p->acceptance, 0, p->longest, cost, &p->best, err);
    if (!rc && p->acceptance.conditional_rate)
        rc = dsc_block_best_length(&iid, 0, p->longest, cost, &iid_best, err);
    if (rc)
        return rc;
    int from = p->best.length, to = p->best.length;
    double enough = p->best.speedup * (1 - p->value[CLI_LENGTH_WITHIN].real / 100);
    while (from > 0 && speedup_at(p, from - 1, cost) >= enough)
        from--;
    while (to < p->longest && speedup_at(p, to + 1, cost) >= enough)
        to++;
    const double row[] = {p->alpha,
                          cost.draft,
                          cost.slope,
                          p->best.length,
                          p->best.accepted,
                          p->best.accepted + 1,
                          p->best.speedup,
                          from,
                          to,
                          iid_best.length,
                          loss(p, iid_best.length, cost),
                          used,
                          speedup_at(p, used, cost),
                          loss(p, used, cost)};
    memcpy(x, row, sizeof row);
    return DSC_OK;
}

static int fill_of_trace(dsc_table *t, const dsc_option_value *value, dsc_error *err)
{
    return cli_length_fill(t, options, value, err);
}

// Options of the two tables do not mix.
static int check(const dsc_option_value *value, dsc_error *err)
{
    const bool trace = value[CLI_LENGTH_TRACE].given;
    bool rates = value[CLI_LENGTH_USED].given;
    for (int o = 0; o < CLI_CLOSED_RATES; o++)
        rates |= value[o].given;
    const bool fit = value[CLI_LENGTH_DRAFTER].given || value[CLI_LENGTH_FIT].given ||
                     value[CLI_LENGTH_HELD_OUT].given;
    if (trace && rates)
        return dsc_fail(err, DSC_EUSAGE,
                        "--trace replaces --alpha, the options --acceptance..., --histogram, "
                        "--request-sd and --num-speculative-tokens");
    if (fit && !trace)
        return dsc_fail(err, DSC_EUSAGE, "--drafter, --fit-length and --held-out need --trace");
    return DSC_OK;
}

const cli_command cli_theory_length = {
    .name = "length",
    .summary = "the best draft length, and the speedup that another length loses",
    CLI_OPTIONS(options),
    .usage =
        "theory length --alpha LIST [--draft-cost LIST] [--num-speculative-tokens LIST] "
        "[OPTIONS]\n"
        "       draftscope theory length --acceptance rates:R1,R2,... [OPTIONS]\n"
        "       draftscope theory length --trace TRACE [--drafter NAME] [--held-out] [OPTIONS]",
    .about = "Computes the best draft length for each acceptance rate and cost, the speedup at "
             "that length, and the speedup that other lengths lose.",
    .fields = {CLI_FIELDS("Columns", columns),
               {"Columns with --trace", cli_length_columns, CLI_LENGTH_COLUMNS},
               CLI_FIELDS("Formulas", formulas)},
    .optional_columns = true,
    .execute = cli_closed_execute,
    .form =
        &(const cli_closed){
            .check = check,
            .fill = fill_of_trace,
            .instead = CLI_LENGTH_TRACE,
            .by_position = true,
            .axis = {CLI_LENGTH_DRAFT_COST, CLI_LENGTH_TARGET_SLOPE, CLI_CLOSED_ALPHA,
                     CLI_LENGTH_USED},
            .axes = 4,
            .length = {CLI_LENGTH_MAX},
            .bounded = CLI_LENGTH_MAX,
            .shows = shows,
            .row = compute_row,
        },
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory length: the best draft length, and what another one would lose.
#include "cli/theory/theory_closed.h"

#include <stdlib.h>

enum {
    ALPHA,
    BY_POSITION,
    HISTOGRAM,
    MOST,
    USED,
    WITHIN,
    DRAFT_COST,
    TARGET_SLOPE,
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
    {.name = "max-speculative-tokens", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "64", .min = 1,
     .max = DSC_BLOCK_LONGEST,
     .help = "longest draft looked at; with conditional acceptance rates all they know"},
    {.name = "used", .kind = DSC_OPTION_INT, .metavar = "LIST", .min = 0, .max = DSC_BLOCK_LONGEST,
     .list = true, .help = "lengths in use: a row for each, with what it loses"},
    {.name = "within", .kind = DSC_OPTION_REAL, .metavar = "PERCENT", .initial = "1", .least = 0,
     .most = 100, .help = "near_from and near_to lose at most this much"},
    CLI_OPTION_DRAFT_COST,
    CLI_OPTION_TARGET_SLOPE,
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "acceptance rate of every draft token (alpha_iid); with "
                             "--acceptance-by-position "
                             "the rate that gives the same number of accepted tokens"},
    {"draft_cost", DSC_CELL_REAL, "time of a draft token over that of a target call"},
    {"target_slope", DSC_CELL_REAL, "added to a target call by each further token in it"},
    {"best_length", DSC_CELL_INT, "draft tokens per target call with the greatest speed-up; 0: do "
                                  "not speculate; the longest allowed is a bound, not an optimum"},
    {"accepted", DSC_CELL_REAL, "draft tokens accepted per target call there (bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL, "tokens per target call there (bonus included)"},
    {"speedup", DSC_CELL_REAL, "there, against one token per target call"},
    {"near_from", DSC_CELL_INT, "shortest draft that loses at most --within"},
    {"near_to", DSC_CELL_INT, "longest draft that loses at most --within"},
    {"iid_best_length", DSC_CELL_INT, "only with conditional acceptance rates: best, had they all "
                                      "been alpha"},
    {"iid_loss_percent", DSC_CELL_REAL, "only with conditional acceptance rates: speed-up lost by "
                                        "that length"},
    {"used_length", DSC_CELL_INT, "only with --used: the draft length in use"},
    {"used_speedup", DSC_CELL_REAL, "only with --used: its speed-up"},
    {"loss_percent", DSC_CELL_REAL, "only with --used: speed-up lost by it"},
};
static const dsc_column formulas[] = {
    {"best_length", DSC_CELL_TEXT, "argmax over L = 0, 1, ... of (1 + accepted(L))/(1 + L "
                                   "(draft_cost + target_slope)), every L looked at; Leviathan, "
                                   "Kalman and Matias 2023, section 3.5"},
    {"accepted", DSC_CELL_TEXT, "a (1 - a^L)/(1 - a); with conditional acceptance rates h1 + h1 "
                                "h2 + ... + h1 ... hL; "
                                "ibid., Eq. (1), less the bonus"},
    {"loss_percent", DSC_CELL_TEXT, "100 (1 - speedup(L)/speedup(best_length))"},
    {"histogram", DSC_CELL_TEXT, "h_j = rounds that accepted j or more/rounds that accepted j - 1 "
                                 "or more (Kaplan and Meier 1958)"},
};
// clang-format on
enum { BEST_COLUMNS = 9, IID_COLUMNS = 2, USED_COLUMNS = 3 };
enum { COLUMNS = sizeof columns / sizeof *columns };

static const cli_theory_help help = {
    .usage = "theory length --alpha LIST [--draft-cost LIST] [--used LIST] [OPTIONS]",
    .about = "The best draft length for each acceptance and cost, the speed-up there, and what "
             "other lengths lose.",
    .option = options,
    .options = OPTIONS,
    .column = columns,
    .columns = COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

typedef struct search {
    cli_acceptance dists;
    int64_t *used;
    size_t useds;
    int most;
    double within;    // per cent
    double *accepted; // [most + 1]
} search;

static double speedup_at(const search *s, int length, dsc_block_cost cost)
{
    return dsc_block_speedup(s->accepted[length], length, cost);
}

// The cells every row has. The speed-up has a single peak, because fewer and fewer drafts reach a
// further position, so what is near the best is one range.
static int best_cells(const search *s, size_t dist, dsc_block_cost cost, dsc_block_best *best,
                      dsc_cell *cell, dsc_error *err)
{
    dsc_acceptance l = cli_acceptance_at(&s->dists, dist);
    int rc = dsc_block_accepted(&l, s->most, s->accepted, err);
    if (!rc)
        rc = dsc_block_best_length(&l, 0, s->most, cost, best, err);
    if (rc)
        return rc;
    int from = best->length, to = best->length;
    double enough = best->speedup * (1 - s->within / 100);
    while (from > 0 && speedup_at(s, from - 1, cost) >= enough)
        from--;
    while (to < s->most && speedup_at(s, to + 1, cost) >= enough)
        to++;
    const dsc_cell row[BEST_COLUMNS] = {
        {.type = DSC_CELL_REAL,
         .r = s->dists.conditional_rate ? cli_acceptance_iid(&s->dists) : s->dists.alpha[dist]},
        {.type = DSC_CELL_REAL, .r = cost.draft},
        {.type = DSC_CELL_REAL, .r = cost.slope},
        {.type = DSC_CELL_INT, .i = best->length},
        {.type = DSC_CELL_REAL, .r = best->accepted},
        {.type = DSC_CELL_REAL, .r = best->accepted + 1},
        {.type = DSC_CELL_REAL, .r = best->speedup},
        {.type = DSC_CELL_INT, .i = from},
        {.type = DSC_CELL_INT, .i = to},
    };
    for (int i = 0; i < BEST_COLUMNS; i++)
        cell[i] = row[i];
    return DSC_OK;
}

static double loss(const search *s, int length, dsc_block_cost cost, double best)
{
    return 100 * (1 - speedup_at(s, length, cost) / best);
}

// The row, or one for each length in use, of a distribution and a cost.
static int add_rows(dsc_table *t, const search *s, size_t dist, dsc_block_cost cost, dsc_error *err)
{
    dsc_cell cell[COLUMNS];
    dsc_block_best best, iid;
    int cells = BEST_COLUMNS, rc = best_cells(s, dist, cost, &best, cell, err);
    if (!rc && s->dists.conditional_rate) {
        dsc_acceptance l = {.rate = cli_acceptance_iid(&s->dists)};
        rc = dsc_block_best_length(&l, 0, s->most, cost, &iid, err);
        cell[cells++] = (dsc_cell){.type = DSC_CELL_INT, .i = iid.length};
        cell[cells++] = (dsc_cell){.type = DSC_CELL_REAL,
                                   .r = rc ? NAN : loss(s, iid.length, cost, best.speedup)};
    }
    if (!rc && !s->useds)
        rc = dsc_table_add_row(t, cell, err);
    for (size_t i = 0; i < s->useds && !rc; i++) {
        int used = (int)s->used[i];
        cell[cells] = (dsc_cell){.type = DSC_CELL_INT, .i = used};
        cell[cells + 1] = (dsc_cell){.type = DSC_CELL_REAL, .r = speedup_at(s, used, cost)};
        cell[cells + 2] = (dsc_cell){.type = DSC_CELL_REAL, .r = loss(s, used, cost, best.speedup)};
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int search_init(search *s, const dsc_option_value *value, dsc_error *err)
{
    int rc =
        cli_acceptance_init(&s->dists, &value[ALPHA], &value[BY_POSITION], &value[HISTOGRAM], err);
    s->within = value[WITHIN].real;
    s->most = s->dists.conditional_rate && !value[MOST].given ? s->dists.conditional_rates
                                                              : (int)value[MOST].integer;
    if (!rc && value[USED].given)
        rc = dsc_option_list(&options[USED], value[USED].text, &s->used, &s->useds, err);
    for (size_t i = 0; i < s->useds && !rc; i++)
        if (s->used[i] > s->most)
            rc = dsc_fail(err, DSC_EUSAGE, "--used: %d is more than --max-speculative-tokens %d",
                          (int)s->used[i], s->most);
    if (!rc)
        rc = dsc_new(&s->accepted, (size_t)s->most + 1, err);
    return rc;
}

static int fill(dsc_table *t, const search *s, const dsc_option_value *value, dsc_error *err)
{
    dsc_block_cost *cost = NULL;
    size_t costs = 0;
    int rc = cli_theory_costs(&value[DRAFT_COST], &value[TARGET_SLOPE], &cost, &costs, err);
    if (!rc)
        rc = cli_theory_columns(t, columns, BEST_COLUMNS, err);
    if (!rc && s->dists.conditional_rate)
        rc = cli_theory_columns(t, columns + BEST_COLUMNS, IID_COLUMNS, err);
    if (!rc && s->useds)
        rc = cli_theory_columns(t, columns + BEST_COLUMNS + IID_COLUMNS, USED_COLUMNS, err);
    for (size_t c = 0; c < costs && !rc; c++)
        for (size_t i = 0; i < s->dists.count && !rc; i++)
            rc = add_rows(t, s, i, cost[c], err);
    free(cost);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    search s = {0};
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done)
        return rc;
    rc = search_init(&s, value, err);
    if (!rc)
        rc = cli_theory_comments(&t, err);
    if (!rc)
        rc = fill(&t, &s, value, err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    cli_acceptance_fini(&s.dists);
    free(s.used);
    free(s.accepted);
    return rc;
}

const cli_command cli_theory_length = {
    .name = "length",
    .summary = "the best draft length, and what another one loses",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory ouroboros: what phrases add to speculative decoding, Ouroboros Eq. (5), (6).
#include "cli/theory/theory_closed.h"
#include "theory/ouroboros.h"

#include <stdlib.h>

enum {
    ALPHA,
    BY_POSITION,
    HISTOGRAM,
    GAMMA,
    PHRASE,
    DRAFT_COST,
    PER_FORWARD,
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
    {CLI_OPTION_LENGTHS, .initial = "4", .min = 0,
     .max = DSC_BLOCK_LONGEST / 2, .list = true, .help = "tokens that the draft model writes"},
    {.name = "phrase", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "6", .min = 0,
     .max = DSC_BLOCK_LONGEST / 2, .list = true,
     .help = "tokens that phrases add behind them for nothing (beta)"},
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = ".2", .least = 0,
     .most = 1e6, .list = true,
     .help = "time of a draft forward over that of a target call (t_S/t_T)"},
    {.name = "tokens-per-forward", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = "2",
     .least = 1e-3, .most = 1e6, .list = true,
     .help = "draft tokens per draft forward (c)"},
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "acceptance rate of every draft token (alpha_iid); with "
                             "--acceptance-by-position "
                             "the rate that gives the same number of accepted tokens"},
    {"gamma", DSC_CELL_INT, "tokens that the draft model writes"},
    {"phrase", DSC_CELL_INT, "tokens that phrases add behind them"},
    {"draft_cost", DSC_CELL_REAL, "time of a draft forward over that of a target call"},
    {"tokens_per_forward", DSC_CELL_REAL, "draft tokens per draft forward"},
    {"block_efficiency", DSC_CELL_REAL, "tokens per target call with phrases (bonus included)"},
    {"speedup", DSC_CELL_REAL, "with phrases, against one token per target call"},
    {"speculative_block_efficiency", DSC_CELL_REAL, "tokens per target call without phrases"},
    {"speculative_speedup", DSC_CELL_REAL, "without phrases, the same gamma"},
    {"gain", DSC_CELL_REAL, "speedup over speculative_speedup"},
};
static const dsc_column formulas[] = {
    {"speedup", DSC_CELL_TEXT, "(A(gamma + phrase) + 1)/(gamma/tokens_per_forward draft_cost + 1); "
                               "Ouroboros (Zhao et al. 2024), Eq. (6)"},
    {"speculative_speedup", DSC_CELL_TEXT, "(A(gamma) + 1)/(gamma draft_cost + 1); ibid., Eq. (5)"},
    {"A", DSC_CELL_TEXT, "accepted drafts of a draft of that length: a (1 - a^L)/(1 - a), or with "
                         "conditional acceptance rates h1 + h1 h2 + ...; phrase tokens are taken "
                         "to be accepted like "
                         "the others, which the paper does not claim"},
};
// clang-format on
enum { COLUMNS = sizeof columns / sizeof *columns };

static const cli_theory_help help = {
    .usage =
        "theory ouroboros --alpha LIST [--num-speculative-tokens LIST] [--phrase LIST] [OPTIONS]",
    .about = "What phrases gain: drafts written in fewer forwards, and lengthened for nothing.",
    .option = options,
    .options = OPTIONS,
    .column = columns,
    .columns = COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

typedef struct grid {
    cli_acceptance dists;
    int64_t *gamma, *phrase;
    double *draft, *per_forward;
    size_t gammas, phrases, drafts, per_forwards;
    double *accepted; // [most + 1]
    int most;
} grid;

static int64_t largest(const int64_t *v, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

static int grid_init(grid *g, const dsc_option_value *value, dsc_error *err)
{
    int rc =
        cli_acceptance_init(&g->dists, &value[ALPHA], &value[BY_POSITION], &value[HISTOGRAM], err);
    if (!rc)
        rc = dsc_option_list(&options[GAMMA], value[GAMMA].text, &g->gamma, &g->gammas, err);
    if (!rc)
        rc = dsc_option_list(&options[PHRASE], value[PHRASE].text, &g->phrase, &g->phrases, err);
    if (!rc)
        rc = dsc_option_reals(&options[DRAFT_COST], value[DRAFT_COST].text, &g->draft, &g->drafts,
                              err);
    if (!rc)
        rc = dsc_option_reals(&options[PER_FORWARD], value[PER_FORWARD].text, &g->per_forward,
                              &g->per_forwards, err);
    g->most = (int)(largest(g->gamma, g->gammas) + largest(g->phrase, g->phrases));
    if (!rc)
        rc = dsc_new(&g->accepted, (size_t)g->most + 1, err);
    return rc;
}

static void grid_fini(grid *g)
{
    cli_acceptance_fini(&g->dists);
    free(g->gamma);
    free(g->phrase);
    free(g->draft);
    free(g->per_forward);
    free(g->accepted);
}

static int add_row(dsc_table *t, const grid *g, size_t dist, const dsc_ouroboros *o, dsc_error *err)
{
    dsc_ouroboros plain = {.length = o->length, .per_forward = 1, .draft = o->draft};
    double with = g->accepted[o->length + o->phrase], without = g->accepted[o->length];
    double speedup = dsc_ouroboros_speedup(o, with), sd = dsc_ouroboros_speedup(&plain, without);
    dsc_cell cell[COLUMNS] = {
        {.type = DSC_CELL_REAL,
         .r = g->dists.conditional_rate ? cli_acceptance_iid(&g->dists) : g->dists.alpha[dist]},
        {.type = DSC_CELL_INT, .i = o->length},
        {.type = DSC_CELL_INT, .i = o->phrase},
        {.type = DSC_CELL_REAL, .r = o->draft},
        {.type = DSC_CELL_REAL, .r = o->per_forward},
        {.type = DSC_CELL_REAL, .r = with + 1},
        {.type = DSC_CELL_REAL, .r = speedup},
        {.type = DSC_CELL_REAL, .r = without + 1},
        {.type = DSC_CELL_REAL, .r = sd},
        {.type = DSC_CELL_REAL, .r = speedup / sd},
    };
    return dsc_table_add_row(t, cell, err);
}

static int fill(dsc_table *t, const grid *g, dsc_error *err)
{
    int rc = cli_theory_columns(t, columns, COLUMNS, err);
    for (size_t i = 0; i < g->dists.count && !rc; i++) {
        dsc_acceptance dist = cli_acceptance_at(&g->dists, i);
        rc = dsc_block_accepted(&dist, g->most, g->accepted, err);
        size_t settings = g->drafts * g->per_forwards * g->gammas * g->phrases;
        for (size_t n = 0; n < settings && !rc; n++) {
            size_t phrase = n % g->phrases, rest = n / g->phrases;
            dsc_ouroboros o = {
                .length = (int)g->gamma[rest % g->gammas],
                .phrase = (int)g->phrase[phrase],
                .per_forward = g->per_forward[rest / g->gammas % g->per_forwards],
                .draft = g->draft[rest / g->gammas / g->per_forwards],
            };
            rc = add_row(t, g, i, &o, err);
        }
    }
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    grid g = {0};
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done)
        return rc;
    rc = grid_init(&g, value, err);
    if (!rc)
        rc = cli_theory_comments(&t, err);
    if (!rc)
        rc = fill(&t, &g, err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    grid_fini(&g);
    return rc;
}

const cli_command cli_theory_ouroboros = {
    .name = "ouroboros",
    .summary = "what phrases add to speculative decoding",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

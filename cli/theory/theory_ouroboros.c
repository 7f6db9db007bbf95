// SPDX-License-Identifier: Apache-2.0
// draftscope theory ouroboros: speedup of speculative decoding with phrases, which speed up
// drafting and lengthen drafts (Ouroboros, Zhao et al. 2024, Eq. (5) and (6)).
#include "cli/theory/theory_closed.h"
#include "theory/ouroboros.h"

enum { LENGTH = CLI_CLOSED_RATES, PHRASE, DRAFT_COST, PER_FORWARD };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTIONS_ACCEPTANCE,
    {CLI_OPTION_LENGTHS, .initial = "4",
     .min = 0, .max = DSC_BLOCK_LONGEST / 2, .list = true,
     .help = "number of tokens that the draft model generates (the paper's gamma)"},
    {.name = "phrase", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "6", .min = 0,
     .max = DSC_BLOCK_LONGEST / 2, .list = true,
     .help = "number of tokens that phrases append to the draft at no cost (the paper's beta)"},
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = ".2", .least = 0,
     .most = 1e6, .list = true,
     .help = "time of a draft forward pass, in units of a target call (the paper's t_S/t_T)"},
    {.name = "tokens-per-forward", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = "2",
     .least = 1e-3, .most = 1e6, .list = true,
     .help = "draft tokens per draft forward pass (the paper's c)"},
    CLI_OPTIONS_RESULT,
};
static const dsc_column columns[] = {
    CLI_COLUMN_ALPHA,
    {"gamma", DSC_CELL_INT, "tokens that the draft model generates"},
    {"phrase", DSC_CELL_INT, "tokens that phrases append to the draft"},
    {"draft_cost", DSC_CELL_REAL, "time of a draft forward pass, in units of a target call"},
    {"tokens_per_forward", DSC_CELL_REAL, "draft tokens per draft forward pass"},
    {"block_efficiency", DSC_CELL_REAL, "output tokens per target call with phrases (bonus "
                                        "included)"},
    {"speedup", DSC_CELL_REAL, "speedup with phrases over decoding one token per target call"},
    {"speculative_block_efficiency", DSC_CELL_REAL, "output tokens per target call without phrases "
                                                    "(bonus included)"},
    {"speculative_speedup", DSC_CELL_REAL, "speedup without phrases, with the same gamma"},
    {"gain", DSC_CELL_REAL, "speedup divided by speculative_speedup"},
};
static const dsc_column formulas[] = {
    {"speedup", DSC_CELL_TEXT, "(A(gamma + phrase) + 1)/(gamma/tokens_per_forward draft_cost + 1); "
                               "Ouroboros (Zhao et al. 2024), Eq. (6)"},
    {"speculative_speedup", DSC_CELL_TEXT, "(A(gamma) + 1)/(gamma draft_cost + 1); ibid., Eq. (5)"},
    {"A", DSC_CELL_TEXT, "expected accepted tokens of a draft of length L: a (1 - a^L)/(1 - a), or "
                         "with rates by position h1 + h1 h2 + ...; phrase tokens are assumed to be "
                         "accepted like the others, which the paper does not claim"},
};
// clang-format on

static int compute_row(cli_point *p, double *x, dsc_error *err)
{
    const dsc_option_value *value = p->value;
    const dsc_ouroboros with = {
        .length = (int)value[LENGTH].integer,
        .phrase = (int)value[PHRASE].integer,
        .per_forward = value[PER_FORWARD].real,
        .draft = value[DRAFT_COST].real,
    };
    const dsc_ouroboros without = {.length = with.length, .per_forward = 1, .draft = with.draft};
    const double accepted = p->accepted[with.length + with.phrase];
    const double plain_accepted = p->accepted[with.length];
    const double speedup = dsc_ouroboros_speedup(&with, accepted);
    const double plain_speedup = dsc_ouroboros_speedup(&without, plain_accepted);
    (void)err;
    const double row[] = {
        p->alpha,     with.length, with.phrase,        with.draft,    with.per_forward,
        accepted + 1, speedup,     plain_accepted + 1, plain_speedup, speedup / plain_speedup};
    memcpy(x, row, sizeof row);
    return DSC_OK;
}

const cli_command cli_theory_ouroboros = {
    .name = "ouroboros",
    .summary = "speedup that phrases add to speculative decoding (Ouroboros)",
    CLI_OPTIONS(options),
    .usage = "theory ouroboros --alpha LIST [--num-speculative-tokens LIST] [--phrase LIST] "
             "[OPTIONS]",
    .about = "Computes the speedup from phrases: drafting needs fewer forward passes, and drafts "
             "get longer at no cost.",
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .execute = cli_closed_execute,
    .form =
        &(const cli_closed){
            .by_position = true,
            .axis = {CLI_CLOSED_ALPHA, DRAFT_COST, PER_FORWARD, LENGTH, PHRASE},
            .axes = 5,
            .length = {LENGTH, PHRASE},
            .row = compute_row,
        },
};

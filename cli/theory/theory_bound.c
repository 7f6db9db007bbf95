// SPDX-License-Identifier: Apache-2.0
// draftscope theory bound: the largest speedup that any lossless drafter can reach on a trace under
// a cost model (sim/cost/speedup_bound.h), and with K independent drafts of the recorded draft
// model (sim/expect/certificate.h).
#include "cli/result.h"
#include "cli/theory/theory_closed.h"
#include "sim/cost/speedup_bound.h"
#include "sim/expect/certificate.h"

#include <stdlib.h>

enum { COST, DRAFT_COST, DRAFTS, LENGTH };
// clang-format off
static const dsc_option options[] = {
    [COST] = CLI_OPTION_COST,
    [DRAFT_COST] = {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "LIST",
     .initial = "0,0.01,0.05,0.1", .least = 0, .most = 1e6, .list = true,
     .help = "time to draft one token, in units of a target call on one token"},
    [DRAFTS] = {.name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "LIST",
     .min = 1, .max = 64, .list = true,
     .help = "also bound drafters that sample K independent sequences of a fixed length from the "
             "recorded draft distributions"},
    [LENGTH] = {.name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",
     .kind = DSC_OPTION_INT, .metavar = "N", .initial = "32", .min = 0, .max = 100000,
     .help = "longest draft, in tokens"},
    CLI_OPTIONS_RESULT,
    CLI_OPTION_THREADS,
};
static const dsc_column columns[] = {
    {"drafts", DSC_CELL_INT, "independent sequences from the recorded draft distributions; empty: "
                             "any drafter, the oracle included"},
    {"draft_cost", DSC_CELL_REAL, "time to draft one token, in units of a target call on one "
                                  "token"},
    {"num_speculative_tokens", DSC_CELL_INT, "longest draft; with --num-drafts, the fixed draft "
                                             "length with the largest bound"},
    {"block_efficiency", DSC_CELL_REAL, "output tokens per target call where the bound is reached"},
    {"speedup", DSC_CELL_REAL, "the bound: no lossless drafter is faster; with --num-drafts an "
                               "estimate"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const dsc_column formulas[] = {
    {"any drafter", DSC_CELL_TEXT, "plain time/min over divisions of each output into steps of n "
     "tokens of sum [target(n) + (n - 1) draft_cost]: a step that emits n tokens verifies at least "
     "n and drafts n - 1; dynamic programming over the positions of each output"},
    {"independent drafts", DSC_CELL_TEXT, "max over L of (1 + accepted_L) target(1)/(target(L + 1) "
     "+ L draft_cost), as if the K sequences shared one path. accepted_L is the smaller of the "
     "bound of theory certify for the first L tokens and K times what block verification accepts "
     "of one sequence, which is optimal for one (Sun et al. 2024, Theorem 2)"},
};
// clang-format on

static int add_row(dsc_table *t, int drafts, double draft_cost, int64_t length, double efficiency,
                   double speedup, dsc_error *err)
{
    const dsc_cell cell[COLUMNS] = {drafts ? cli_integer(drafts) : dsc_cell_absent(),
                                    cli_real(draft_cost), cli_integer(length), cli_real(efficiency),
                                    cli_real(speedup)};
    return dsc_table_add_row(t, cell, err);
}

// What a call on one token of the trace's mean context costs, and the cost of others.
typedef struct pricing {
    const dsc_cost *cost;
    double one, context; // seconds; tokens
} pricing;

// The draft length with the largest bound for `paths` sequences. The expected match of the output
// with each of them is at most what block verification accepts, which is optimal for one sequence;
// so with several it is at most as many times that.
static int add_independent(dsc_table *t, const pricing *p, const dsc_certificate *c, size_t k,
                           int paths, double draft_cost, int longest, dsc_error *err)
{
    double most = 1, efficiency = 1;
    int best = 0, rc = DSC_OK;
    for (int length = 1; length <= longest && c->positions[length - 1] && !rc; length++) {
        const double accepted =
            fmin(c->bound[k][length - 1].accepted, paths * c->block[length - 1].accepted);
        const dsc_pass pass = {length + 1, p->context, 1, true};
        double seconds;
        rc = dsc_cost_target(p->cost, pass, &seconds, err);
        const double speedup = (1 + accepted) * p->one / (seconds + length * draft_cost * p->one);
        if (!rc && speedup > most) {
            most = speedup;
            efficiency = 1 + accepted;
            best = length;
        }
    }
    return rc ? rc : add_row(t, paths, draft_cost, best, efficiency, most, err);
}

static int fill_independent(dsc_table *t, const cli_call *call, const dsc_cost *cost,
                            const double *draft_cost, size_t costs, const dsc_speedup_bound *any,
                            dsc_error *err)
{
    const int64_t k = call->value[LENGTH].integer;
    const int longest = k < DSC_CERTIFICATE_LENGTH ? (int)k : DSC_CERTIFICATE_LENGTH;
    const pricing p = {cost, any->plain_s / (double)any->tokens, any->context};
    dsc_certificate *c = NULL;
    int paths[DSC_CERTIFICATE_PATHS];
    size_t count;
    int rc = cli_certificate_drafts(&options[DRAFTS], call->value[DRAFTS].text, paths, &count, err);
    if (!rc)
        rc = dsc_new(&c, 1, err);
    if (!rc && longest > 0)
        rc = dsc_certify(c, call->trace, paths, count, longest, call->threads, err);
    for (size_t i = 0; i < count && !rc; i++)
        for (size_t d = 0; d < costs && !rc; d++)
            rc = add_independent(t, &p, c, i, paths[i], draft_cost[d], longest, err);
    free(c);
    return rc;
}

static int fill(dsc_table *t, const cli_call *call, const dsc_cost *cost, dsc_error *err)
{
    const int64_t longest = call->value[LENGTH].integer;
    dsc_speedup_bound any = {0};
    double *draft_cost = NULL;
    size_t costs = 0;
    int rc = dsc_option_reals(&options[DRAFT_COST], call->value[DRAFT_COST].text, &draft_cost,
                              &costs, err);
    if (!rc)
        rc = dsc_table_add_columns(t, columns, COLUMNS, err);
    if (!rc) // for the time of a call on one token
        rc = dsc_speedup_bound_of(&any, call->trace, cost, 0, 0, err);
    for (size_t d = 0; d < costs && !rc; d++) {
        dsc_speedup_bound x;
        const double one = any.plain_s / (double)any.tokens;
        rc = dsc_speedup_bound_of(&x, call->trace, cost, longest, draft_cost[d] * one, err);
        if (!rc)
            rc = add_row(t, 0, draft_cost[d], longest, (double)x.tokens / (double)x.calls,
                         x.speedup, err);
    }
    if (!rc && call->value[DRAFTS].given)
        rc = fill_independent(t, call, cost, draft_cost, costs, &any, err);
    free(draft_cost);
    return rc;
}

static int bound(const cli_call *call, dsc_error *err)
{
    dsc_cost cost = {0};
    dsc_table t = {0};
    int rc = dsc_cost_parse(&cost, call->value[COST].text, err);
    if (!rc && cost.no_plain)
        rc = dsc_fail(err, DSC_EUSAGE, "--cost %.200s: %s, and a bound is a speedup",
                      call->value[COST].text, cost.no_plain);
    if (!rc)
        rc = cli_comments(&t, call->trace, 0, call->value[COST].text, err);
    if (!rc)
        rc = fill(&t, call, &cost, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    dsc_table_fini(&t);
    dsc_cost_fini(&cost);
    return rc;
}

const cli_command cli_theory_bound = {
    .name = "bound",
    .summary = "the largest speedup that any lossless drafter can reach on a trace",
    CLI_OPTIONS(options),
    .usage = "theory bound TRACE [--cost SPEC] [--draft-cost LIST] [OPTIONS]",
    .about = "Computes the largest speedup that any lossless drafter can reach on the outputs of a "
             "trace, one sequence at a time, for drafts that are always right and end where it is "
             "best. A speedup of sim, sweep or tune that comes near leaves nothing to gain. With "
             "--num-drafts it also bounds drafters that sample from the recorded draft "
             "distributions (live record --logprobs dense).",
    .least = 1,
    .most = 1,
    .opens_trace = true,
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .execute = bound,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory lossy: what lossy rules accept at a position and what they pay for it, the
// distance of the emitted token's distribution from the target distribution (theory/lossy.h).
#include "cli/guard.h"
#include "cli/theory/theory_closed.h"
#include "cli/theory/theory_rows.h"
#include "sim/rule_text.h"
#include "theory/lossy.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RULE, SUMMARY };
// clang-format off
static const dsc_option options[] = {
    {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "LIST",
     .initial = "rejection,ensemble:0.9,ensemble:0.5,typical,relaxed",
     .help = "rules, of rejection, ensemble:W, typical:EPSILON,DELTA and relaxed:K,DELTA; a name "
             "alone has the parameters that `list rules -v` shows"},
    {.name = "summary", .kind = DSC_OPTION_FLAG,
     .help = "print the means over all pairs, one row per rule"},
    CLI_OPTION_THREADS,
    CLI_OPTIONS_RESULT,
};

enum { PAIR, POSITIONS, NAME, HEAD };
static const dsc_column head_columns[HEAD] = {
    {"pair", DSC_CELL_TEXT, "draft distribution and target distribution"},
    {"positions", DSC_CELL_INT, "only with --summary: number of pairs averaged over"},
    {"rule", DSC_CELL_TEXT, "verification rule; rejection is lossless, all others are LOSSY"},
};
// Of a sampled draft token, then of the draft's argmax token.
enum { ACCEPT, GAINED, TV, KL, OFF_ARGMAX, PRICES, VALUES = 2 * PRICES };
static const dsc_column value_columns[VALUES] = {
    {"acceptance", DSC_CELL_REAL, "probability that one sampled draft token is accepted"},
    {"gained", DSC_CELL_REAL, "acceptance less that of the lossless rule, rejection"},
    {"total_variation", DSC_CELL_REAL,
     "total variation between the emitted token's distribution and the target's: the share of "
     "changed tokens"},
    {"kl", DSC_CELL_REAL,
     "Kullback-Leibler divergence of the emitted token's distribution from the target's, in nats "
     "per token; inf where a token without target probability is emitted"},
    {"off_argmax", DSC_CELL_REAL,
     "probability that the emitted token is not the target's argmax, which greedy decoding emits"},
    {"argmax_acceptance", DSC_CELL_REAL,
     "probability that the draft model's argmax token is accepted"},
    {"argmax_gained", DSC_CELL_REAL,
     "argmax_acceptance less the target probability of that token, its lossless acceptance"},
    {"argmax_total_variation", DSC_CELL_REAL, "total_variation when drafts are argmax tokens"},
    {"argmax_kl", DSC_CELL_REAL, "kl when drafts are argmax tokens"},
    {"argmax_off_argmax", DSC_CELL_REAL, "off_argmax when drafts are argmax tokens"},
};
static const dsc_column formulas[] = {
    {"o, p, q", DSC_CELL_TEXT, "distribution of the emitted token, of the draft token and of the "
     "target; p is all on one token when drafts are argmax tokens"},
    {"total_variation", DSC_CELL_TEXT, "sum (q - o)+: under the maximal coupling, which no other "
     "coupling exceeds, the emitted token equals a sample of the target with probability 1 - "
     "total_variation"},
    {"kl", DSC_CELL_TEXT, "sum o ln(o/q)"},
    {"gained", DSC_CELL_TEXT, "at most total_variation for any rule: acceptance <= 1 - TV(p, o) <= "
     "1 - TV(p, q) + TV(o, q), by the coupling and the triangle inequality"},
    {"rejection", DSC_CELL_TEXT, "acceptance sum min(p, q), o = q. Leviathan et al. 2023, Alg. 1"},
    {"ensemble:W", DSC_CELL_TEXT, "acceptance 1 - W TV(p, q), o = W q + (1 - W) p, so gained "
     "equals total_variation. Fu et al. 2025, arXiv 2502.01662"},
    {"typical:EPSILON,DELTA", DSC_CELL_TEXT, "acceptance p(A) with A = {q > min(EPSILON, DELTA "
     "exp(-entropy of q))}, o = p on A, and 1 - p(A) more on the argmax of q. Medusa (Cai et al. "
     "2024), section 3.3.1"},
    {"relaxed:K,DELTA", DSC_CELL_TEXT, "acceptance p(A) with A = the tokens among the K most "
     "probable of q with q >= max q - DELTA, o = p on A, and 1 - p(A) more on the argmax of q. "
     "TensorRT-LLM, relaxed_topk and relaxed_delta, mtpRelaxedAcceptanceKernel at 3585984b"},
};
// clang-format on

enum { MOST_RULES = 64, MOST_ROWS = 1000000 };

typedef struct request {
    const dsc_verifier_type *rule[MOST_RULES];
    size_t rules;
    bool summary;
    int threads;
} request;

// --- a pair --------------------------------------------------------------------------------------

static dsc_lossy_price price_of(const dsc_verifier_type *rule, const double *draft,
                                const double *target, size_t vocab)
{
    const double *value = rule->parameter;
    if (rule->lossless)
        return dsc_ensemble_price(1, draft, target, vocab);
    if (rule->verify == dsc_verifier_ensemble.verify)
        return dsc_ensemble_price(value[0], draft, target, vocab);
    return dsc_accepted_set_price(rule->verify == dsc_verifier_typical.verify
                                      ? dsc_typical_set(target, vocab, value[0], value[1])
                                      : dsc_relaxed_set(target, vocab, (int)value[0], value[1]),
                                  draft, target, vocab);
}

static void put(const dsc_lossy_price *price, double lossless, double *x)
{
    x[ACCEPT] = price->accept;
    x[GAINED] = price->accept - lossless;
    x[TV] = price->tv;
    x[KL] = price->kl;
    x[OFF_ARGMAX] = price->off_argmax;
}

// x[rules][VALUES] of a pair. `one` is room for a distribution, which stays zero.
static void price_pair(const request *q, const cli_pair *p, double *one, double *x)
{
    const size_t vocab = (size_t)p->vocab;
    size_t best = 0;
    for (size_t t = 1; t < vocab; t++)
        best = p->draft[t] > p->draft[best] ? t : best;
    one[best] = 1;
    const double *draft[2] = {p->draft, one};
    const double lossless[2] = {dsc_ensemble_price(1, p->draft, p->target, vocab).accept,
                                p->target[best]};
#pragma omp parallel for schedule(dynamic) num_threads(q->threads) if (vocab > 4096)
    for (size_t i = 0; i < 2 * q->rules; i++) {
        const dsc_lossy_price price = price_of(q->rule[i / 2], draft[i % 2], p->target, vocab);
        put(&price, lossless[i % 2], x + i * PRICES);
    }
    one[best] = 0;
}

// --- the table -----------------------------------------------------------------------------------

static int add_rows(dsc_table *t, const request *q, const char *label, int64_t positions,
                    const double *x, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t r = 0; r < q->rules && !rc; r++) {
        dsc_cell cell[HEAD + VALUES];
        size_t n = 0;
        cell[n++] = cli_text(label);
        if (q->summary)
            cell[n++] = cli_integer(positions);
        cell[n++] = cli_text(q->rule[r]->name);
        for (int v = 0; v < VALUES; v++)
            cell[n++] = cli_real(x[r * VALUES + (size_t)v] / (double)positions);
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int add_columns(dsc_table *t, const request *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (int c = 0; c < HEAD && !rc; c++)
        if (c != POSITIONS || q->summary)
            rc = dsc_table_add_columns(t, &head_columns[c], 1, err);
    return rc ? rc : dsc_table_add_columns(t, value_columns, VALUES, err);
}

static int read_pair(cli_rows *rows, int64_t i, cli_pair *p, dsc_error *err)
{
    int rc = cli_signal() ? dsc_fail(err, DSC_EINTERRUPT, "interrupted; no result was written")
                          : rows->read(rows, i, p, err);
    if (!rc && !p->whole)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: some probability mass is unlisted, and a price needs complete "
                      "distributions; record all tokens (live record --logprobs dense)",
                      p->label);
    return rc;
}

static int fill(dsc_table *t, const request *q, cli_rows *rows, dsc_error *err)
{
    double x[MOST_RULES * VALUES], sum[MOST_RULES * VALUES] = {0}, *one = NULL;
    size_t room = 0;
    cli_pair p = {0};
    char label[64];
    int rc = add_columns(t, q, err);
    for (int64_t i = 0; i < rows->count && !rc; i++) {
        rc = read_pair(rows, i, &p, err);
        if (!rc && room < (size_t)p.vocab) {
            free(one);
            room = (size_t)p.vocab;
            rc = dsc_new(&one, room, err);
        }
        if (rc)
            break;
        price_pair(q, &p, one, x);
        for (size_t v = 0; v < q->rules * VALUES && q->summary; v++)
            sum[v] += x[v];
        if (!q->summary)
            rc = add_rows(t, q, p.label, 1, x, err);
    }
    snprintf(label, sizeof label, "mean of %" PRId64 " position%s", rows->count,
             rows->count == 1 ? "" : "s");
    if (!rc && q->summary)
        rc = add_rows(t, q, label, rows->count, sum, err);
    free(one);
    cli_pair_fini(&p);
    return rc;
}

// --- the command ---------------------------------------------------------------------------------

static bool has_price(const dsc_verifier_type *rule)
{
    return !rule->lossless || rule == &dsc_verifier_rejection;
}

static int read_rules(request *q, const char *list, dsc_error *err)
{
    for (const char *at = list; at; q->rules++) {
        char text[128] = "";
        const size_t n = dsc_rule_text_length(at);
        if (q->rules == MOST_RULES)
            return dsc_fail(err, DSC_EUSAGE, "--rule: at most %d rules can be compared",
                            MOST_RULES);
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text), at);
        const dsc_verifier_type *rule = dsc_verifier_find(text, err);
        if (!rule)
            return DSC_EUSAGE;
        if (!has_price(rule))
            return dsc_fail(err, DSC_EUSAGE,
                            "--rule: %s is lossless and has no price; give rejection, ensemble, "
                            "typical or relaxed (theory accept compares lossless rules)",
                            rule->name);
        q->rule[q->rules] = rule;
        at = at[n] ? at + n + 1 : NULL;
    }
    return DSC_OK;
}

static int lossy(const cli_call *call, dsc_error *err)
{
    request q = {.summary = call->value[SUMMARY].given, .threads = call->threads};
    cli_rows rows = {0};
    dsc_table t = {0};
    int rc = read_rules(&q, call->value[RULE].text, err);
    if (!rc)
        rc = cli_rows_open(&rows, call->more, q.summary, err);
    if (!rc && !q.summary && rows.count > MOST_ROWS / (int64_t)q.rules)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "%" PRId64 " pairs and %zu rules give more than %d rows; add --summary, or "
                      "select pairs with --rows or --request",
                      rows.count, q.rules, MOST_ROWS);
    if (!rc)
        rc = cli_result_comments(&t, err);
    if (!rc && rows.comments)
        rc = rows.comments(&rows, &t, err);
    if (!rc)
        rc = fill(&t, &q, &rows, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    dsc_table_fini(&t);
    cli_rows_close(&rows);
    return rc;
}

const cli_command cli_theory_lossy = {
    .name = "lossy",
    .summary = "what lossy rules accept, and how far their output is from the target",
    CLI_OPTIONS(options),
    .more = {"Distributions", cli_rows_options, CLI_ROWS_OPTIONS},
    .more_first = true,
    .usage = "theory lossy DISTRIBUTIONS [--rule LIST] [OPTIONS]",
    .about = "Computes what lossy verification rules accept of one draft token, and the price: the "
             "exact distance between the distribution of the emitted token and the target's. "
             "DISTRIBUTIONS are a family (--bernoulli, --uniform, --zipf), rows of files (--draft "
             "and --target), or positions recorded in a trace (--trace with --request, or with "
             "--summary). A lossy rule changes the output; whether the answers are still good "
             "enough is not computed.",
    .what = "options only",
    .fields = {CLI_FIELDS("Columns", head_columns),
               {NULL, value_columns, VALUES},
               CLI_FIELDS("Formulas", formulas)},
    .optional_columns = true,
    .execute = lossy,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory certify: what verification rules accept on the recorded distributions of a
// trace, and the bound of all rules (sim/expect/certificate.h).
#include "cli/result.h"
#include "cli/theory/theory_closed.h"
#include "sim/expect/certificate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAFTS, LENGTH };
// clang-format off
static const dsc_option options[] = {
    [DRAFTS] = {.name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "LIST",
     .initial = "1,2,4,8", .min = 1, .max = 64, .list = true,
     .help = "numbers of independent sequences"},
    [LENGTH] = {.name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",
     .kind = DSC_OPTION_INT, .metavar = "N", .initial = "4", .min = 1,
     .max = DSC_CERTIFICATE_LENGTH, .help = "longest draft; the table has every length up to it"},
    CLI_OPTIONS_RESULT,
    CLI_OPTION_THREADS,
};
// clang-format on
static const dsc_column columns[] = {
    {"rule", DSC_CELL_TEXT, "verification rule; bound: no lossless rule accepts more"},
    {"drafts", DSC_CELL_INT, "independent sequences; empty: the rule verifies one"},
    {"num_speculative_tokens", DSC_CELL_INT, "draft tokens of each sequence"},
    {"block_efficiency", DSC_CELL_REAL, "accepted + 1"},
    {"accepted", DSC_CELL_REAL, "mean accepted draft tokens, the bonus excluded"},
    {"accepted_half", DSC_CELL_REAL, "half of the 95 % interval over requests; nan: not known"},
    {"positions", DSC_CELL_INT, "output positions where such a draft was verified"},
    {"below_block", DSC_CELL_INT,
     "positions where the last token is accepted less often than by block verification, given the "
     "output (rejection) or over all tokens (gbv, drafts of one token); of block, than by "
     "rejection"},
    {"above_bound", DSC_CELL_INT,
     "positions where more than the optimum of one token is accepted; anything but 0 contradicts "
     "the theory; drafts of one token only"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const dsc_column formulas[] = {
    {"rejection", DSC_CELL_TEXT,
     "product of min(1, draft/target) along the output (Leviathan, "
     "Kalman and Matias 2023)"},
    {"block", DSC_CELL_TEXT,
     "running minimum of the product of draft/target along the output (Sun "
     "et al. 2024, Algorithm 2)"},
    {"gbv", DSC_CELL_TEXT,
     "the same with the distribution of the best of K sequences in place of "
     "the draft's (Thomas and Pal 2026)"},
    {"bound", DSC_CELL_TEXT,
     "one token: 1 - max over A of draft(A)^K - target(A) at each position "
     "(SpecTr Eq. (4)). i tokens: the same over sets of paths A = "
     "{target/draft <= c}, in the mean"},
};

static int add_row(dsc_table *t, const dsc_certificate *c, const char *rule, int drafts, int i,
                   const dsc_certified *x, bool below, dsc_error *err)
{
    const dsc_cell none = dsc_cell_absent();
    const bool bound = !strcmp(rule, "bound");
    const dsc_cell cell[COLUMNS] = {
        cli_text(rule),
        drafts ? cli_integer(drafts) : none,
        cli_integer(i + 1),
        cli_real(1 + x->accepted),
        cli_real(x->accepted),
        cli_real(x->half),
        cli_integer(c->positions[i]),
        below ? cli_integer(x->below) : none,
        bound || i ? none : cli_integer(x->above),
    };
    return dsc_table_add_row(t, cell, err);
}

static int fill(dsc_table *t, const dsc_certificate *c, const int *paths, size_t count, int length,
                dsc_error *err)
{
    int rc = dsc_table_add_columns(t, columns, COLUMNS, err);
    for (int i = 0; i < length && c->positions[i] && !rc; i++) {
        rc = add_row(t, c, "rejection", 0, i, &c->rejection[i], true, err);
        if (!rc)
            rc = add_row(t, c, "block", 0, i, &c->block[i], true, err);
        for (size_t k = 0; k < count && !rc; k++)
            rc = add_row(t, c, "gbv", paths[k], i, &c->gbv[k][i], i == 0, err);
        for (size_t k = 0; k < count && !rc; k++)
            rc = add_row(t, c, "bound", paths[k], i, &c->bound[k][i], false, err);
    }
    return rc;
}

static int compute(dsc_table *t, const cli_call *call, const int *paths, size_t count,
                   dsc_error *err)
{
    const int length = (int)call->value[LENGTH].integer;
    dsc_certificate *c;
    int rc = dsc_new(&c, 1, err);
    if (rc)
        return rc;
    rc = dsc_certify(c, call->trace, paths, count, length, call->threads, err);
    if (!rc)
        rc = cli_comments(t, call->trace, 0, NULL, err);
    if (!rc)
        rc = fill(t, c, paths, count, length, err);
    free(c);
    return rc;
}

int cli_certificate_drafts(const dsc_option *option, const char *text, int *paths, size_t *count,
                           dsc_error *err)
{
    int64_t *list = NULL;
    *count = 0;
    int rc = dsc_option_list(option, text, &list, count, err);
    if (!rc && *count > DSC_CERTIFICATE_PATHS)
        rc = dsc_fail(err, DSC_EUSAGE, "--num-drafts: %zu values; at most %d can be compared",
                      *count, DSC_CERTIFICATE_PATHS);
    for (size_t k = 0; k < *count && !rc; k++)
        paths[k] = (int)list[k];
    free(list);
    return rc;
}

// Block verification accepts at least as much as rejection sampling. GBV of several sequences does
// not always accept as much as block verification of one: the count decides for this trace.
static void print_closing(const dsc_table *t)
{
    const int rule = dsc_table_find(t, "rule"), below = dsc_table_find(t, "below_block"),
              drafts = dsc_table_find(t, "drafts"),
              length = dsc_table_find(t, "num_speculative_tokens"),
              positions = dsc_table_find(t, "positions");
    bool any = false;
    for (size_t r = 0; r < t->rows; r++) {
        const int64_t count = dsc_table_at(t, r, (size_t)below)->i;
        if (strcmp(dsc_table_at(t, r, (size_t)rule)->text, "gbv") ||
            dsc_table_at(t, r, (size_t)length)->i != 1)
            continue;
        fprintf(
            stderr, "%s of %" PRId64 " sequences at %" PRId64 " of %" PRId64 " positions (%.3g %%)",
            any ? "," : "draftscope: block <= GBV, over drafts of one token, fails with GBV",
            dsc_table_at(t, r, (size_t)drafts)->i, count, dsc_table_at(t, r, (size_t)positions)->i,
            100 * (double)count / (double)dsc_table_at(t, r, (size_t)positions)->i);
        any = true;
    }
    if (any)
        fputc('\n', stderr);
}

static int certify(const cli_call *call, dsc_error *err)
{
    dsc_table t = {0};
    int paths[DSC_CERTIFICATE_PATHS];
    size_t count;
    int rc = cli_certificate_drafts(&options[DRAFTS], call->value[DRAFTS].text, paths, &count, err);
    if (!rc)
        rc = compute(&t, call, paths, count, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    if (!rc)
        print_closing(&t);
    dsc_table_fini(&t);
    return rc;
}

const cli_command cli_theory_certify = {
    .name = "certify",
    .summary = "what rules accept on recorded distributions, and the bound of all rules",
    CLI_OPTIONS(options),
    .usage = "theory certify TRACE [--num-drafts LIST] [--num-speculative-tokens N] [OPTIONS]",
    .about = "Computes what rejection sampling, block verification and GBV accept at every "
             "position of a trace with recorded distributions (live record --logprobs dense), and "
             "an upper bound for every lossless rule on as many independent sequences. It counts "
             "the positions where the theory would be contradicted. `draftscope plot rules` draws "
             "the table.",
    .least = 1,
    .most = 1,
    .opens_trace = true,
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .execute = certify,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope theory accept: the probability that a verification rule accepts one of K drafts at a
// position, and its upper bounds, for pairs of draft and target distributions. Formulas and sources
// are in theory_quantities.c.
#include "cli/theory/theory_closed.h"
#include "cli/theory/theory_quantities.h"
#include "cli/guard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { K, SUMMARY, COMPLETE };
// clang-format off
static const dsc_option options[] = {
    {.name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "LIST",
     .initial = "1:8", .min = 1, .max = DSC_MAX_DRAFTS, .list = true,
     .help = "numbers of drafts per position, as in 1:16 or 1,2,4,8"},
    {.name = "summary", .kind = DSC_OPTION_FLAG,
     .help = "print the means over all pairs, one row per number of drafts, of rejection, "
             "specinfer, kseq, kseq_rho and otm; probabilities are exact within 2e-6"},
    {.name = "complete", .kind = DSC_OPTION_FLAG,
     .help = "with --summary: compute all columns and do not round; this takes far longer"},
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
    CLI_OPTIONS_RESULT,
};
static const dsc_column head_columns[] = {
    {"pair", DSC_CELL_TEXT, "draft distribution and target distribution"},
    {"positions", DSC_CELL_INT, "only with --summary: number of pairs averaged over"},
    {"k", DSC_CELL_INT, "number of drafts per position"},
};
// clang-format on
enum { PAIR, POSITIONS, DRAFTS, HEAD };

enum { MOST_ROWS = 1000000 }; // of the table

typedef struct request {
    int *k; // [count] numbers of drafts, in the order given
    size_t count;
    bool summary, quick; // quick: only the quantities that one pass over the vocabulary gives
    int threads;
    cli_progress progress;
    bool show_progress;
} request;

// One result per pair, or one in all with --summary.
typedef struct results {
    char (*label)[sizeof((cli_pair *)0)->label]; // [count]
    dsc_interval *x;                             // [count][values], of each k and quantity
    size_t count, values;
} results;

// A pair that a thread works on.
typedef struct job {
    cli_pair pair;
    dsc_interval *x; // [k][CLI_QUANTITIES]
    dsc_acceptance_work *work;
    dsc_error err;
    int rc;
} job;

// --- computing -----------------------------------------------------------------------------------

static void free_jobs(job *j, size_t count)
{
    for (size_t i = 0; j && i < count; i++) {
        cli_pair_fini(&j[i].pair);
        dsc_acceptance_work_free(j[i].work);
        free(j[i].x);
    }
    free(j);
}

static int make_jobs(job **out, size_t count, size_t values, dsc_error *err)
{
    int rc = dsc_new(out, count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = dsc_new(&(*out)[i].x, values, err);
        if (!rc)
            rc = dsc_acceptance_work_new(&(*out)[i].work, err);
    }
    return rc;
}

static void work_on(const request *q, job *j)
{
    for (size_t i = 0; i < q->count * CLI_QUANTITIES; i++)
        j->x[i] = (dsc_interval){NAN, NAN};
    j->rc = q->quick ? cli_quick_quantities(&j->pair, q->k, q->count, j->x, j->work, &j->err)
                     : cli_quantities(&j->pair, q->k, q->count, j->x, &j->err);
}

// Reads a batch of pairs that begins with pair `first`: some for each thread, fewer where the
// vocabulary is large.
static int read_batch(const request *q, cli_rows *rows, int64_t first, job *j, size_t most,
                      size_t *count, dsc_error *err)
{
    int64_t enough = q->quick ? 1 << 22 : 1 << 17; // tokens: some tenths of a second of work
    int64_t tokens = 0, all = rows->count;
    int rc = DSC_OK;
    for (*count = 0; *count < most && first + (int64_t)*count < all && !rc; ++*count) {
        if (tokens >= enough && *count >= (size_t)q->threads)
            break;
        rc = rows->read(rows, first + (int64_t)*count, &j[*count].pair, err);
        tokens += j[*count].pair.whole ? j[*count].pair.vocab : 0;
    }
    return rc;
}

// Takes the batch that begins with pair `first` into the results. With --summary they are sums.
static int take_batch(const request *q, const job *j, size_t count, size_t first, results *out,
                      dsc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const size_t to = q->summary ? 0 : first + i;
        dsc_interval *x = out->x + to * out->values;
        if (j[i].rc)
            return dsc_fail(err, j[i].rc, "%s: %s", j[i].pair.label, j[i].err.message);
        if (!q->summary)
            memcpy(out->label[to], j[i].pair.label, sizeof *out->label);
        for (size_t v = 0; v < out->values; v++) {
            x[v].low += j[i].x[v].low;
            x[v].high += j[i].x[v].high;
        }
    }
    return DSC_OK;
}

// Computes all pairs, in batches. Reading and summation are in order, so that no result depends on
// the number of threads.
static int compute_pairs(request *q, cli_rows *rows, results *out, dsc_error *err)
{
    size_t most = (size_t)q->threads * 64, count;
    int64_t all = rows->count;
    job *j = NULL;
    most = (int64_t)most > all ? (size_t)all : most;
    int rc = make_jobs(&j, most, out->values, err);
    for (int64_t done = 0; done < all && !rc; done += (int64_t)count) {
        rc = read_batch(q, rows, done, j, most, &count, err);
        if (rc)
            break;
#pragma omp parallel for schedule(dynamic) num_threads(q->threads) if (count > 1)
        for (size_t i = 0; i < count; i++)
            if (!cli_signal())
                work_on(q, &j[i]);
        if (cli_signal())
            rc = dsc_fail(err, DSC_EINTERRUPT, "interrupted; no result was written");
        if (!rc)
            rc = take_batch(q, j, count, (size_t)done, out, err);
        if (!rc && q->show_progress)
            cli_progress_step(&q->progress, done + (int64_t)count, all);
    }
    free_jobs(j, most);
    return rc;
}

// Computes the results, which with --summary are the means over the pairs.
static int compute(request *q, cli_rows *rows, results *out, dsc_error *err)
{
    const int64_t all = rows->count;
    *out = (results){.count = q->summary ? 1 : (size_t)all, .values = q->count * CLI_QUANTITIES};
    int rc = dsc_new(&out->label, out->count, err);
    if (!rc)
        rc = dsc_new(&out->x, out->count * out->values, err);
    if (!rc)
        rc = compute_pairs(q, rows, out, err);
    if (rc || !q->summary)
        return rc;
    snprintf(*out->label, sizeof *out->label, "mean of %" PRId64 " position%s", all,
             all == 1 ? "" : "s");
    for (size_t i = 0; i < out->values; i++) {
        out->x[i].low /= (double)all;
        out->x[i].high /= (double)all;
    }
    return DSC_OK;
}

// --- the table -----------------------------------------------------------------------------------

static bool is_number(const dsc_interval *x)
{
    return x->high - x->low <= 1e-10;
}

static bool is_shown(const request *q, int quantity)
{
    return !q->quick || cli_quantity_is_quick(quantity);
}

// Returns whether only bounds of a quantity are known in some row.
static bool has_ranges(const results *r, size_t rows, int quantity)
{
    for (size_t i = 0; i < rows; i++) {
        const dsc_interval *x = &r->x[i * CLI_QUANTITIES + (size_t)quantity];
        if (!isnan(x->low) && !is_number(x))
            return true;
    }
    return false;
}

static int add_range_columns(dsc_table *t, int quantity, dsc_error *err)
{
    static const char *const end[2] = {"low", "high"};
    int rc = DSC_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        char name[64], help[64];
        snprintf(name, sizeof name, "%s_%s", cli_quantity[quantity].name, end[i]);
        snprintf(help, sizeof help, "%s bound of %s", i ? "upper" : "lower",
                 cli_quantity[quantity].name);
        rc = dsc_table_add_column(t, name, DSC_CELL_REAL, help, err);
    }
    return rc;
}

static int add_columns(dsc_table *t, const request *q, const bool *range, dsc_error *err)
{
    int rc = DSC_OK;
    for (int c = 0; c < HEAD && !rc; c++)
        if (c != POSITIONS || q->summary)
            rc = dsc_table_add_columns(t, &head_columns[c], 1, err);
    for (int i = 0; i < CLI_QUANTITIES && !rc; i++)
        if (is_shown(q, i))
            rc = dsc_table_add_columns(t, &cli_quantity[i], 1, err);
    for (int i = 0; i < CLI_QUANTITIES && !rc; i++)
        if (range[i])
            rc = add_range_columns(t, i, err);
    return rc;
}

static int add_row(dsc_table *t, const request *q, const bool *range, const char *label,
                   int64_t positions, int k, const dsc_interval *x, dsc_error *err)
{
    dsc_cell cell[HEAD + 3 * CLI_QUANTITIES];
    size_t n = 0;
    cell[n++] = cli_text(label);
    if (q->summary)
        cell[n++] = cli_integer(positions);
    cell[n++] = cli_integer(k);
    for (int i = 0; i < CLI_QUANTITIES; i++)
        if (is_shown(q, i))
            cell[n++] = cli_real(is_number(&x[i]) ? (x[i].low + x[i].high) / 2 : (double)NAN);
    for (int i = 0; i < CLI_QUANTITIES; i++)
        if (range[i]) {
            cell[n++] = cli_real(x[i].low);
            cell[n++] = cli_real(x[i].high);
        }
    return dsc_table_add_row(t, cell, err);
}

static int tabulate(const request *q, const results *r, int64_t positions, dsc_table *t,
                    dsc_error *err)
{
    bool range[CLI_QUANTITIES];
    for (int i = 0; i < CLI_QUANTITIES; i++)
        range[i] = is_shown(q, i) && has_ranges(r, r->count * q->count, i);
    int rc = add_columns(t, q, range, err);
    for (size_t i = 0; i < r->count * q->count && !rc; i++)
        rc = add_row(t, q, range, r->label[i / q->count], positions, q->k[i % q->count],
                     r->x + i * CLI_QUANTITIES, err);
    return rc;
}

// --- the command -------------------------------------------------------------------------------

static int make_request(request *q, const cli_call *call, int64_t pairs, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    int64_t *list = NULL;
    int rc = dsc_option_list(&options[K], value[K].text, &list, &q->count, err);
    if (!rc)
        rc = dsc_new(&q->k, q->count, err);
    for (size_t i = 0; i < q->count && !rc; i++)
        q->k[i] = (int)list[i];
    free(list);
    q->summary = value[SUMMARY].given;
    q->quick = q->summary && !value[COMPLETE].given;
    q->threads = call->threads;
    q->show_progress = q->summary || pairs > 16 || call->progress;
    cli_progress_init(&q->progress, call->progress, "positions");
    if (!rc && !q->summary && pairs > MOST_ROWS / (int64_t)q->count)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "%" PRId64 " pairs and %zu numbers of drafts give more than %d rows; add "
                      "--summary, or select pairs with --rows or --request",
                      pairs, q->count, MOST_ROWS);
    return rc;
}

// The check that cli_result_write makes at the end of a long run.
static int check_out(const char *out, bool force, dsc_error *err)
{
    if (force || strcmp(out, "-") == 0 || access(out, F_OK))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE, "%s exists already; replace it with --force", out);
}

static int compute_table(cli_rows *rows, const cli_call *call, dsc_error *err)
{
    request q = {0};
    results r = {0};
    dsc_table t = {0};
    int rc = check_out(call->out, call->force, err);
    if (!rc)
        rc = make_request(&q, call, rows->count, err);
    if (!rc)
        rc = compute(&q, rows, &r, err);
    cli_progress_end(&q.progress);
    if (!rc)
        rc = cli_result_comments(&t, err);
    if (!rc && rows->comments)
        rc = rows->comments(rows, &t, err);
    if (!rc)
        rc = tabulate(&q, &r, rows->count, &t, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    dsc_table_fini(&t);
    free(r.label);
    free(r.x);
    free(q.k);
    return rc;
}

static int accept(const cli_call *call, dsc_error *err)
{
    const bool summary = call->value[SUMMARY].given;
    cli_rows rows;
    if (call->value[COMPLETE].given && !summary)
        return dsc_fail(err, DSC_EUSAGE,
                        "--complete requires --summary; all columns are computed without it");
    int rc = cli_rows_open(&rows, call->more, summary, err);
    if (!rc)
        rc = compute_table(&rows, call, err);
    cli_rows_close(&rows);
    return rc;
}

const cli_command cli_theory_accept = {
    .name = "accept",
    .summary = "acceptance probability of k drafts for each rule, and upper bounds",
    CLI_OPTIONS(options),
    .more = {"Distributions", cli_rows_options, CLI_ROWS_OPTIONS},
    .more_first = true,
    .usage = "theory accept DISTRIBUTIONS [--num-drafts LIST] [OPTIONS]",
    .about =
        "Computes the probability that one of k drafts at a position is accepted, for each "
        "verification rule, and the optimum. DISTRIBUTIONS are a family (--bernoulli, --uniform, "
        "--zipf), rows of files (--draft and --target), or positions recorded in a trace (--trace "
        "with --request, or with --summary). Where only bounds can be computed (probabilities with "
        "an unlisted tail; SpecInfer without replacement over many tokens), the column is nan or "
        "null, and columns NAME_low and NAME_high at the end of the table hold the bounds. Bounds "
        "within 1e-10 of each other count as one number.",
    .what = "options only",
    .fields = {CLI_FIELDS("Columns", head_columns),
               {NULL, cli_quantity, CLI_QUANTITIES},
               {"Formulas", cli_formula, CLI_FORMULAS}},
    .optional_columns = true,
    .bounds = true,
    .execute = accept,
};

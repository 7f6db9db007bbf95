// SPDX-License-Identifier: Apache-2.0
// draftscope sim: replays one configuration of a drafting method over a trace, or over the output
// of a synthetic model, and prints the totals, a table row per request, or a row per batch size.
#include "base/columns.h"
#include "base/outfile.h"
#include "base/statistics.h"
#include "cli/result.h"
#include "cli/method.h"
#include "cli/simulate.h"
#include "sim/run/result.h"
#include "sim/run/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METHOD, ENGINE, COST, BATCH, BY, JSON, PER_REQUEST, WARMUP, TIMELINE };
// clang-format off
static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "evaluate", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect",
     .initial = "auto",
     .help = "loop: run step by step; expect: exact replay of all positions (no Monte Carlo)"},
    CLI_OPTION_COST,
    {CLI_OPTION_BATCH, .metavar = "B", .initial = "1", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; a list, as in 1,2,4,8, gives a table"},
    CLI_OPTION_BY,
    {.name = "json", .kind = DSC_OPTION_FLAG,
     .help = "print one JSON object, or one per request, batch size or value of --by"},
    {.name = "per-request", .kind = DSC_OPTION_FLAG,
     .help = "print a table row per request instead of the totals"},
    {.name = "warmup", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000,
     .help = "first requests that are run but left out of the results; they fill the caches that a "
             "method keeps from request to request, as suffix and ngram-tree do"},
    {.name = "timeline", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file for the draft/target timeline of the first request, or of the first after "
             "--warmup"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on
enum { RESAMPLES = 1000 };

typedef struct context {
    cli_simulation s; // the first field, as the user of dsc_run
    const cli_call *call;
    dsc_bootstrap *bootstrap; // [groups] of all requests, then of the values of --by
    size_t groups;
    dsc_table table; // the result: its comment lines, then totals
    dsc_outfile timeline_file;
    dsc_table timeline;
    double now_s; // end of the timeline so far
    bool per_request;
    dsc_engine_choice engine;
    dsc_config config;
} context;

static int expected(const context *c)
{
    return c->engine.expected ? DSC_RESULT_EXPECTED : 0;
}

static int print_request(context *c, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    char *id;
    dsc_table t = {0};
    int rc = dsc_strndup(&id, q->id.bytes, (size_t)q->id.length, err);
    dsc_result result = {.config = &c->config,
                         .rule = c->s.run.rule,
                         .counts = counts,
                         .cost = &c->s.cost,
                         .request = q->index,
                         .id = id};
    if (!rc)
        rc = dsc_result_columns(&t, &c->config.drafter, 1, DSC_RESULT_REQUEST | expected(c), err);
    if (!rc)
        rc = dsc_result_row(&t, &result, DSC_RESULT_REQUEST | expected(c), err);
    if (!rc && c->call->json)
        dsc_table_write_jsonl_row(&t, 0, stdout);
    else if (!rc)
        dsc_table_write_tsv_row(&t, 0, stdout);
    dsc_table_fini(&t);
    free(id);
    return rc;
}

static int on_step(void *user, const dsc_step_record *step, dsc_error *err)
{
    context *c = user;
    return dsc_timeline_add(&c->timeline, &c->now_s, &c->s.cost, step, err);
}

static int on_request(void *user, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    enum { UNIT = 1 << 20 }; // of a call: expectations are not whole
    context *c = user;
    if (c->per_request)
        return print_request(c, q, counts, err);
    const int64_t tokens = counts->output_tokens * UNIT,
                  calls = (int64_t)(dsc_counts_real(counts).target_calls * UNIT);
    dsc_bootstrap_add(&c->bootstrap[0], q->index, tokens, calls);
    if (c->s.run.group)
        dsc_bootstrap_add(&c->bootstrap[1 + c->s.run.group[q->index]], q->index, tokens, calls);
    return DSC_OK;
}

// Whether a column is a total over the requests, of which the mean per request is of interest.
static bool is_total(const char *column)
{
    static const char *const total[] = {DSC_COL_OUTPUT_TOKENS,      DSC_COL_TARGET_CALLS,
                                        DSC_COL_NUM_DRAFTS_STARTED, DSC_COL_NUM_DRAFTS,
                                        DSC_COL_NUM_DRAFT_TOKENS,   DSC_COL_NUM_ACCEPTED_TOKENS};
    for (size_t i = 0; i < sizeof total / sizeof *total; i++)
        if (!strcmp(column, total[i]))
            return true;
    return false;
}

static void print_list(const char *name, const dsc_cell *x)
{
    printf("%-32s", name);
    for (int64_t i = 0; i < x->i; i++)
        printf(i ? " %.3f" : "%.3f", dsc_cell_element(x, i));
    putchar('\n');
}

// Prints the result for reading: one line per column, with means and intervals. The histograms are
// left to --json.
static void print_text(const dsc_table *t, const dsc_counts *counts, const char *cost)
{
    double n = (double)counts->requests;
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *x = dsc_table_at(t, 0, c);
        const char *name = t->column[c].name;
        if (x->type == DSC_CELL_TEXT)
            printf("%-32s%s\n", name, x->text);
        else if (x->type == DSC_CELL_LIST && x->reals)
            print_list(name, x);
        else if (x->type == DSC_CELL_INT && !is_total(name))
            printf("%-32s%" PRId64 "\n", name, x->i);
        else if (x->type == DSC_CELL_INT)
            printf("%-32s%" PRId64 "%*s%.2f per request\n", name, x->i,
                   14 - snprintf(NULL, 0, "%" PRId64, x->i), "", n > 0 ? (double)x->i / n : 0);
        else if (strcmp(name, DSC_COL_BLOCK_EFFICIENCY) == 0)
            printf("%-32s%-14.4f95 %% over requests: %.4f to %.4f\n", name, x->r,
                   dsc_table_real(t, 0, (size_t)dsc_table_find(t, DSC_COL_BLOCK_EFFICIENCY_LOW)),
                   dsc_table_real(t, 0, (size_t)dsc_table_find(t, DSC_COL_BLOCK_EFFICIENCY_HIGH)));
        else if (strcmp(name, DSC_COL_SPEEDUP) == 0)
            printf("%-32s%-14.4fcost %s\n", name, x->r, cost);
        else if (x->type == DSC_CELL_REAL && !strstr(name, "block_efficiency_"))
            printf("%-32s%.4f\n", name, x->r);
    }
}

// Adds the rows of one group of requests: one for each batch size.
static int add_group(context *c, size_t group, const dsc_counts *counts, int parts, dsc_error *err)
{
    const dsc_trace_groups *by = &c->s.by;
    dsc_result result = {.config = &c->config,
                         .rule = c->s.run.rule,
                         .counts = counts,
                         .cost = &c->s.cost,
                         .by = by->field,
                         .value = group ? by->value[group - 1] : DSC_GROUP_ALL};
    int rc = dsc_bootstrap_interval(&c->bootstrap[group], &result.low, &result.high, err);
    for (size_t i = 0; i < c->s.batches && !rc; i++) {
        result.batch = c->s.batch[i];
        rc = dsc_result_row(&c->table, &result, parts, err);
    }
    return rc;
}

// The table of totals: of all requests, then of each group.
static int add_totals(context *c, const dsc_counts *counts, dsc_error *err)
{
    int parts = DSC_RESULT_INTERVAL | expected(c) |
                (c->call->value[BATCH].given ? DSC_RESULT_BATCH : 0) |
                (c->s.cost.spread ? DSC_RESULT_SPREAD : 0);
    int rc = dsc_result_columns_by(&c->table, c->s.by.field, &c->config.drafter, 1, parts, err);
    for (size_t g = 0; g < c->groups && !rc; g++)
        rc = add_group(c, g, &counts[g], parts, err);
    return rc;
}

// The smallest batch size at which the method is slower than no speculation; 0: there is none.
static int64_t break_even(const dsc_table *t)
{
    int64_t least = 0;
    size_t batch = (size_t)dsc_table_find(t, "batch");
    for (size_t r = 0; r < t->rows; r++) {
        int64_t b = dsc_table_at(t, r, batch)->i;
        if (dsc_table_real(t, r, (size_t)dsc_table_find(t, "speedup")) < 1 && (!least || b < least))
            least = b;
    }
    return least;
}

static void print_batches(const dsc_table *t)
{
    int64_t least = break_even(t);
    printf("\n%-10s%-14s%s\n", "batch", "speedup", "tokens_per_s");
    for (size_t r = 0; r < t->rows; r++)
        printf("%-10" PRId64 "%-14.4f%.4g\n",
               dsc_table_at(t, r, (size_t)dsc_table_find(t, "batch"))->i,
               dsc_table_real(t, r, (size_t)dsc_table_find(t, "speedup")),
               dsc_table_real(t, r, (size_t)dsc_table_find(t, "tokens_per_s")));
    if (isnan(dsc_table_real(t, 0, (size_t)dsc_table_find(t, "speedup"))))
        return;
    if (least)
        printf("smallest batch size that is slower than no speculation: %" PRId64 "\n", least);
    else
        puts("no batch size is slower than no speculation");
}

// The comment lines, then a JSON object for each batch size.
static int print_batch_lines(dsc_table *t, dsc_error *err)
{
    char text[24] = "none";
    int64_t least = break_even(t);
    if (least)
        snprintf(text, sizeof text, "%" PRId64, least);
    int rc = dsc_table_comment(t, "break_even_batch", text, err);
    if (!rc)
        cli_result_print(t, true, true, stdout);
    return rc;
}

static int print_totals(context *c, const dsc_counts *counts, const char *cost, dsc_error *err)
{
    int rc = add_totals(c, counts, err);
    if (!rc && c->s.by.field) {
        cli_result_print(&c->table, c->call->json, true, stdout);
        return DSC_OK;
    }
    if (!rc && c->call->json && c->s.batches > 1)
        return print_batch_lines(&c->table, err);
    if (!rc && c->call->json)
        dsc_table_write_jsonl_row(&c->table, 0, stdout);
    else if (!rc)
        print_text(&c->table, counts, cost);
    if (!rc && !c->call->json && c->s.batches > 1)
        print_batches(&c->table);
    return rc;
}

static int make_comments(context *c, dsc_error *err)
{
    int rc = cli_simulation_comments(&c->s, c->call, &c->table, err);
    if (!rc && c->engine.expected)
        rc = dsc_table_comment(&c->table, "evaluate", c->engine.why, err);
    if (!rc && c->s.cost.note[0])
        rc = dsc_table_comment(&c->table, "cost_note", c->s.cost.note, err);
    if (!rc && c->s.run.warmup)
        rc = dsc_table_comment(&c->table, "warmup", c->call->value[WARMUP].text, err);
    return rc;
}

// Comment lines and, for TSV, the header of a per-request table.
static int print_head(context *c, dsc_error *err)
{
    int rc =
        dsc_result_columns(&c->table, &c->config.drafter, 1, DSC_RESULT_REQUEST | expected(c), err);
    if (!rc)
        cli_result_print(&c->table, c->call->json, true, stdout);
    return rc;
}

// Prepares the table of --timeline and opens its file before anything is printed.
static int begin_timeline(context *c, dsc_error *err)
{
    if (c->s.run.engine == DSC_ENGINE_EXPECT)
        return dsc_fail(err, DSC_EUSAGE,
                        "--evaluate expect runs no steps for --timeline; use --evaluate loop");
    int rc = cli_simulation_comments(&c->s, c->call, &c->timeline, err);
    if (!rc)
        rc = dsc_table_comment(&c->timeline, "request", c->call->value[WARMUP].text, err);
    if (!rc)
        rc = dsc_timeline_columns(&c->timeline, err);
    if (!rc)
        rc =
            dsc_outfile_open(&c->timeline_file, c->call->value[TIMELINE].text, c->call->force, err);
    return rc;
}

// Notes on stderr: why this engine runs, how well a fitted cost model agrees with what it was
// fitted to, and what it cannot tell.
static void print_notes(const context *c)
{
    const dsc_run_options *run = &c->s.run;
    cli_note_temperature(c->s.trace, c->config.drafter, &c->engine);
    if (c->per_request)
        return;
    if (c->engine.expected)
        fprintf(stderr, "draftscope: evaluate: expect, %s\n", c->engine.why);
    else if (run->engine == DSC_ENGINE_AUTO && !run->workload->target &&
             (run->widths || (c->config.drafter->needs_draft && !run->workload->draft)))
        fprintf(stderr, "draftscope: evaluate: loop, %s\n", c->engine.why);
    if (c->s.cost.type->linear && c->s.cost.note[0])
        fprintf(stderr, "draftscope: cost: %s\n", c->s.cost.note);
    if (c->s.cost.no_plain)
        fprintf(stderr, "draftscope: cost: no speedup: %s\n", c->s.cost.no_plain);
}

// Prepares the outputs and chooses the engine, up to the first request.
static int prepare(context *c, dsc_error *err)
{
    int rc = DSC_OK;
    if (c->call->value[TIMELINE].given) {
        c->s.run.step = on_step;
        rc = begin_timeline(c, err);
    }
    if (!rc)
        rc = cli_note_missing_references(c->s.trace, c->s.target, c->config.drafter,
                                         c->call->list[0], err);
    if (!rc)
        rc = dsc_run_choose(c->s.trace, &c->config, 1, &c->s.run, &c->engine, err);
    if (!rc)
        print_notes(c);
    if (!rc)
        rc = dsc_new(&c->bootstrap, 1 + c->s.by.count, err);
    for (; !rc && c->groups < 1 + c->s.by.count; c->groups++)
        rc = dsc_bootstrap_init(&c->bootstrap[c->groups], RESAMPLES, c->s.run.seed, err);
    if (!rc)
        rc = make_comments(c, err);
    return !rc && c->per_request ? print_head(c, err) : rc;
}

static int simulate(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    dsc_results results = {0};
    c->s.run.request = on_request;
    c->s.run.warmup = c->s.run.watched = value[WARMUP].integer;
    c->s.run.rule =
        cli_simulation_rule(&c->s, c->call->more[CLI_WORKLOAD_RULE].text, c->config.drafter, err);
    int rc = c->s.run.rule ? prepare(c, err) : DSC_EUSAGE;
    cli_progress_init(&c->s.progress, c->call->progress, "tokens");
    if (!rc)
        rc = dsc_run(c->s.trace, &c->config, 1, &c->s.run, &results, err);
    cli_progress_end(&c->s.progress);
    if (!rc && value[TIMELINE].given) {
        cli_result_print(&c->timeline, false, true, c->timeline_file.stream);
        rc = dsc_outfile_commit(&c->timeline_file, err);
    }
    if (!rc && !c->per_request)
        rc = print_totals(c, results.counts, value[COST].text, err);
    dsc_results_fini(&results);
    return rc;
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call,
                 .per_request = call->value[PER_REQUEST].given,
                 .config = {.drafter = call->method[0]}};
    if (c.per_request && call->value[BATCH].given)
        return dsc_fail(err, DSC_EUSAGE, "--batch-size and --per-request cannot be combined");
    if (c.per_request && call->value[BY].given)
        return dsc_fail(err, DSC_EUSAGE, "--by and --per-request cannot be combined");
    int rc = cli_config_fill(&c.config, call->list[0], err);
    if (!rc)
        rc = cli_simulation_open(&c.s, call, err);
    if (!rc)
        rc = simulate(&c, err);
    for (size_t g = 0; g < c.groups; g++)
        dsc_bootstrap_fini(&c.bootstrap[g]);
    free(c.bootstrap);
    dsc_outfile_abort(&c.timeline_file);
    dsc_table_fini(&c.timeline);
    dsc_table_fini(&c.table);
    cli_simulation_close(&c.s);
    dsc_config_fini(&c.config);
    return rc;
}

const cli_command cli_sim = {
    .name = "sim",
    .summary = "run one configuration of a method over a trace or a synthetic model",
    CLI_OPTIONS(options),
    .more = {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS},
    .methods = CLI_METHOD_ONE,
    .usage = "sim TRACE --method NAME [OPTIONS]",
    .about =
        "Runs one configuration of a drafting method over the recorded outputs of a trace, or over "
        "the output of a synthetic model, and prints the numbers of drafted and accepted tokens, "
        "target calls and the speedup. --per-request prints a table row per request; several "
        "--batch-size values print a row per size; --by prints a table with a row for all requests "
        "and one per value of a metadata field.",
    .execute = execute,
};

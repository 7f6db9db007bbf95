// SPDX-License-Identifier: Apache-2.0
// draftscope sim: one configuration over a trace.
#include "base/file.h"
#include "base/statistics.h"
#include "cli/simulate.h"
#include "cli/workload.h"
#include "sim/cost.h"
#include "sim/result.h"
#include "sim/run.h"
#include "sim/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { METHOD, ENGINE, COST, JSON, PER_REQUEST, TIMELINE, FORCE, SEED, THREADS, PROGRESS, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect", .initial = "auto",
     .help = "loop: step by step; expect: exact replay of all positions, without draws"},
    CLI_OPTION_COST,
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "one JSON object (a line per request)"},
    {.name = "per-request", .kind = DSC_OPTION_FLAG,
     .help = "a row per request instead of the totals"},
    {.name = "timeline", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "write here when the models were at work, step by step, in the first request"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on
static const char usage[] = "sim TRACE --method NAME [OPTIONS]";
static const char about[] =
    "Runs one configuration of a drafting method and prints what was drafted, accepted and saved: "
    "over the recorded outputs of a trace, or over what a synthetic model writes. With "
    "--per-request a table, a row per request.";

enum { RESAMPLES = 1000 };

typedef struct context {
    cli_progress progress;
    dsc_bootstrap bootstrap;
    dsc_table rows; // one request at a time, with --per-request
    dsc_outfile timeline_file;
    dsc_table timeline;
    double now_s; // where it ends
    bool per_request, json;
    dsc_engine_choice engine;
    const dsc_config *config;
    const dsc_verifier_type *rule;
    const dsc_cost *cost;
} context;

static int on_progress(void *user, int64_t done, int64_t total)
{
    return cli_progress_step(&((context *)user)->progress, done, total);
}

static int expected(const context *c)
{
    return c->engine.expected ? DSC_RESULT_EXPECTED : 0;
}

static int print_request(context *c, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    char *id;
    dsc_table *t = &c->rows;
    int rc = dsc_strndup(&id, q->id.bytes, (size_t)q->id.length, err);
    dsc_result result = {c->config, c->rule, counts, c->cost, q->index, id, 0, 0};
    if (!rc)
        rc = dsc_result_columns(t, &c->config->drafter, 1, DSC_RESULT_REQUEST | expected(c), err);
    if (!rc)
        rc = dsc_result_row(t, &result, DSC_RESULT_REQUEST | expected(c), err);
    if (!rc && c->json)
        dsc_table_write_jsonl_row(t, 0, stdout);
    else if (!rc)
        dsc_table_write_tsv_row(t, 0, stdout);
    dsc_table_fini(t);
    free(id);
    return rc;
}

static int on_step(void *user, const dsc_step_record *step, dsc_error *err)
{
    context *c = user;
    return dsc_timeline_add(&c->timeline, &c->now_s, c->cost, step, err);
}

static int write_timeline(context *c, dsc_error *err)
{
    dsc_table_write_tsv_head(&c->timeline, c->timeline_file.stream);
    for (size_t i = 0; i < c->timeline.rows; i++)
        dsc_table_write_tsv_row(&c->timeline, i, c->timeline_file.stream);
    return dsc_outfile_commit(&c->timeline_file, err);
}

static int on_request(void *user, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    enum { UNIT = 1 << 20 }; // of a call: expectations are not whole
    context *c = user;
    if (c->per_request)
        return print_request(c, q, counts, err);
    dsc_bootstrap_add(&c->bootstrap, q->index, counts->output_tokens * UNIT,
                      (int64_t)(dsc_counts_real(counts).target_calls * UNIT));
    return DSC_OK;
}

// Totals and means for a person.
static void print_text(const dsc_table *t, const dsc_counts *counts, const char *cost)
{
    double n = (double)counts->requests;
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *x = dsc_table_at(t, 0, c);
        const char *name = t->column[c].name;
        if (x->type == DSC_CELL_TEXT)
            printf("%-22s%s\n", name, x->text);
        else if (x->type == DSC_CELL_INT && !strstr(name, "_tokens") && !strstr(name, "num_") &&
                 strcmp(name, "target_calls"))
            printf("%-22s%" PRId64 "\n", name, x->i);
        else if (x->type == DSC_CELL_INT)
            printf("%-22s%" PRId64 "%*s%.2f per request\n", name, x->i,
                   14 - snprintf(NULL, 0, "%" PRId64, x->i), "", n > 0 ? (double)x->i / n : 0);
        else if (strcmp(name, "block_efficiency") == 0)
            printf("%-22s%-14.4f95 %% over requests: %.4f to %.4f\n", name, x->r,
                   dsc_table_real(t, 0, (size_t)dsc_table_find(t, "block_efficiency_low")),
                   dsc_table_real(t, 0, (size_t)dsc_table_find(t, "block_efficiency_high")));
        else if (strcmp(name, "speedup") == 0)
            printf("%-22s%-14.4fcost %s\n", name, x->r, cost);
        else if (x->type == DSC_CELL_REAL && !strstr(name, "block_efficiency_"))
            printf("%-22s%.4f\n", name, x->r);
    }
}

static int print_totals(const context *c, const dsc_counts *counts, const char *cost,
                        dsc_error *err)
{
    dsc_table t = {0};
    dsc_result result = {.config = c->config, .rule = c->rule, .counts = counts, .cost = c->cost};
    int rc = dsc_bootstrap_interval(&c->bootstrap, &result.low, &result.high, err);
    if (!rc)
        rc = dsc_result_columns(&t, &c->config->drafter, 1, DSC_RESULT_INTERVAL | expected(c), err);
    if (!rc)
        rc = dsc_result_row(&t, &result, DSC_RESULT_INTERVAL | expected(c), err);
    if (!rc && c->json)
        dsc_table_write_jsonl_row(&t, 0, stdout);
    else if (!rc)
        print_text(&t, counts, cost);
    dsc_table_fini(&t);
    return rc;
}

// Comment lines and, for TSV, the header of a per-request table.
static int print_head(const context *c, const dsc_trace *trace, uint64_t seed, const char *cost,
                      const dsc_option_value *load, dsc_error *err)
{
    dsc_table head = {0};
    int rc = cli_comments(&head, trace, seed, cost, err);
    if (!rc)
        rc = cli_workload_comments(&head, load, err);
    if (!rc && c->engine.expected)
        rc = dsc_table_comment(&head, "engine", c->engine.why, err);
    if (!rc)
        rc = dsc_result_columns(&head, &c->config->drafter, 1, DSC_RESULT_REQUEST | expected(c),
                                err);
    if (!rc && c->json)
        dsc_table_write_jsonl_head(&head, stdout);
    else if (!rc)
        dsc_table_write_tsv_head(&head, stdout);
    dsc_table_fini(&head);
    return rc;
}

// Its comment lines and columns, and the file, before anything is printed.
static int begin_timeline(context *c, const dsc_trace *trace, const dsc_option_value *value,
                          const dsc_option_value *load, dsc_error *err)
{
    if (value[ENGINE].integer == DSC_ENGINE_EXPECT)
        return dsc_fail(err, DSC_EUSAGE,
                        "--timeline shows the steps of the loop: --engine expect has none");
    int rc =
        cli_comments(&c->timeline, trace, (uint64_t)value[SEED].integer, value[COST].text, err);
    if (!rc)
        rc = cli_workload_comments(&c->timeline, load, err);
    if (!rc)
        rc = dsc_table_comment(&c->timeline, "request", "0", err);
    if (!rc)
        rc = dsc_timeline_columns(&c->timeline, err);
    if (!rc)
        rc = dsc_outfile_open(&c->timeline_file, value[TIMELINE].text, value[FORCE].given, err);
    return rc;
}

static int simulate(const dsc_trace *trace, const dsc_config *config, const dsc_option_value *value,
                    const dsc_option_value *load, const dsc_option_value *parameter, dsc_error *err)
{
    cli_workload models;
    dsc_cost cost;
    uint64_t seed = (uint64_t)value[SEED].integer;
    context c = {.per_request = value[PER_REQUEST].given,
                 .json = value[JSON].given,
                 .config = config,
                 .cost = &cost};
    dsc_run_options run = {.engine = (dsc_engine)value[ENGINE].integer,
                           .threads = cli_threads(value[THREADS].integer),
                           .seed = seed,
                           .workload = &models.load,
                           .progress = on_progress,
                           .request = on_request,
                           .user = &c};
    dsc_results results = {0};
    int rc = cli_workload_make(&models, load, &config->drafter, 1, trace != NULL, err);
    if (rc)
        return rc;
    run.rule = c.rule =
        cli_workload_rule(&models, load[CLI_WORKLOAD_RULE].text, config->drafter, err);
    if (!c.rule)
        rc = DSC_EUSAGE;
    if (!rc)
        rc = dsc_cost_parse(&cost, value[COST].text, err);
    if (!rc && value[TIMELINE].given) {
        run.step = on_step;
        rc = begin_timeline(&c, trace, value, load, err);
    }
    if (!rc)
        rc = cli_note_missing_references(trace, models.target, config->drafter, parameter, err);
    if (!rc)
        rc = dsc_run_choose(trace, config, 1, &run, &c.engine, err);
    if (!rc && c.engine.expected && !c.per_request)
        fprintf(stderr, "draftscope: engine: expect, %s\n", c.engine.why);
    if (!rc)
        rc = dsc_bootstrap_init(&c.bootstrap, RESAMPLES, seed, err);
    if (!rc && c.per_request)
        rc = print_head(&c, trace, seed, value[COST].text, load, err);
    cli_progress_init(&c.progress, value[PROGRESS].integer, "tokens");
    cli_catch_signals();
    if (!rc)
        rc = dsc_run(trace, config, 1, &run, &results, err);
    cli_progress_end(&c.progress);
    if (!rc && value[TIMELINE].given)
        rc = write_timeline(&c, err);
    if (!rc && !c.per_request)
        rc = print_totals(&c, &results.counts[0], value[COST].text, err);
    dsc_results_fini(&results);
    dsc_bootstrap_fini(&c.bootstrap);
    dsc_outfile_abort(&c.timeline_file);
    dsc_table_fini(&c.timeline);
    cli_workload_free(&models);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        cli_print_method_help(usage, about, options, OPTIONS, true, argc, argv);
        return DSC_OK;
    }
    dsc_config config = {0};
    dsc_option_value value[OPTIONS], load[CLI_WORKLOAD_OPTIONS], parameter[DSC_MAX_PARAMETERS];
    size_t words;
    int rc = cli_find_method(argc, argv, &config.drafter, err);
    if (rc)
        return rc;
    dsc_option_set sets[] = {
        {options, OPTIONS, value, false, NULL},
        {cli_workload_options, CLI_WORKLOAD_OPTIONS, load, false, NULL},
        {config.drafter->option, config.drafter->option_count, parameter, false, NULL},
    };
    rc = dsc_options_parse(sets, 3, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 0, 1, "one trace", err);
    if (!rc)
        rc = cli_config_fill(&config, parameter, err);
    dsc_trace *trace = NULL;
    if (!rc && words)
        rc = dsc_trace_open(&trace, argv[0], err);
    if (!rc)
        rc = simulate(trace, &config, value, load, parameter, err);
    dsc_trace_close(trace);
    dsc_config_fini(&config);
    return rc;
}

const cli_command cli_sim = {"sim", "run one configuration of a method over a trace or a model",
                             run};

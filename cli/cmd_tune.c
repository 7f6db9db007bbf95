// SPDX-License-Identifier: Apache-2.0
// draftscope tune: finds the best configuration for a trace or a synthetic model, with confidence
// intervals over requests.
#include "base/file.h"
#include "cli/result.h"
#include "cli/simulate.h"
#include "cli/tune/tune.h"
#include "cli/workload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    METHOD,
    OBJECTIVE,
    SEARCH,
    START,
    SPLIT,
    RESAMPLES,
    TOP,
    ENGINE_LINES,
    ENGINE,
    COST,
    BATCH,
    OUT,
    JSON,
    FORCE,
    SEED,
    THREADS,
    PROGRESS,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME[,NAME...]",
     .help = "drafting methods to choose from"},
    {.name = "objective", .kind = DSC_OPTION_CHOICE,
     .choices = "speedup|throughput|block_efficiency", .initial = "speedup",
     .help = "what to maximize: speedup, tokens per second, or tokens per target forward pass"},
    {.name = "search", .kind = DSC_OPTION_CHOICE, .choices = "grid|coordinate|golden",
     .initial = "grid",
     .help = "grid: all combinations; coordinate: one parameter at a time until nothing improves; "
             "golden: golden-section search on one parameter"},
    {.name = "start", .kind = DSC_OPTION_TEXT, .metavar = "[NAME.]PARAMETER=VALUE",
     .help = "where a coordinate search begins; may be repeated (default: each parameter's default "
             "where the list has it, else its middle value)"},
    {.name = "split", .kind = DSC_OPTION_REAL, .metavar = "SHARE", .initial = "0.5", .least = 0,
     .most = 0.99,
     .help = "share of the requests in the selection set; the others are the test set; 0: all "
             "requests are in both"},
    {.name = "resamples", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "2000", .min = 100,
     .max = 1000000, .help = "number of bootstrap resamples"},
    {.name = "top", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "10", .min = 0,
     .max = INT64_MAX, .help = "number of configurations to print; 0: all that were tried"},
    {.name = "engine-lines", .kind = DSC_OPTION_CHOICE, .choices = CLI_ENGINES,
     .help = "also print the best configuration as settings of this engine"},
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect", .initial = "auto",
     .help = "loop: run step by step; expect: exact replay of all positions (no Monte Carlo)"},
    CLI_OPTION_COST,
    {CLI_OPTION_BATCH, .metavar = "LIST", .initial = "1", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; the best configuration is found for each"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file for the table: JSON lines when the name ends in .jsonl, else TSV"},
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "print the table as JSON lines"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on
static const char usage[] = "tune TRACE --method NAME[,NAME...] [--PARAMETER LIST]... [OPTIONS]";
static const char about[] =
    "Finds the best configuration of one or several drafting methods, over the recorded outputs of "
    "a trace or over the output of a synthetic model. Every parameter of a method takes a list, as "
    "in sweep: --num-speculative-tokens 1:8, or --METHOD.PARAMETER LIST for one of several "
    "methods; an option with a text value is given once per value. The configuration is chosen on "
    "one part "
    "of the requests (selection set) and reported on the others (test set), with 95 % intervals "
    "over requests, next to all configurations that are not significantly different from it.";

// The parsed command line.
typedef struct request {
    const dsc_drafter_type *method[CLI_MAX_METHODS];
    dsc_option_uses given[CLI_MAX_METHODS]; // options of each method, with their lists
    dsc_option_value list[CLI_MAX_METHODS][DSC_MAX_PARAMETERS]; // the last of each
    const char **start;
    size_t methods, starts;
    dsc_space *space; // [methods]
    const dsc_option_value *value, *load;
    dsc_cost cost;
    dsc_tune_price *price; // [prices] for each batch size
    size_t prices;
} request;

static void request_fini(request *r)
{
    for (size_t m = 0; r->space && m < r->methods; m++)
        dsc_space_fini(&r->space[m]);
    for (size_t m = 0; m < r->methods; m++)
        free(r->given[m].use);
    free(r->space);
    free(r->start);
    free(r->price);
    dsc_cost_fini(&r->cost);
    *r = (request){0};
}

// Collects all values of an option that may be repeated: the parser keeps only the last one.
static int collect(int argc, char **argv, const char *option, const char ***out, size_t *count,
                   dsc_error *err)
{
    void *all;
    size_t n = strlen(option);
    int rc = dsc_alloc(&all, (size_t)argc, sizeof(char *), err);
    *out = all;
    *count = 0;
    for (int a = 0; a < argc && !rc && strcmp(argv[a], "--"); a++)
        if (strcmp(argv[a], option) == 0 && a + 1 < argc)
            (*out)[(*count)++] = argv[++a];
        else if (strncmp(argv[a], option, n) == 0 && argv[a][n] == '=')
            (*out)[(*count)++] = argv[a] + n + 1;
    return rc;
}

static int read_spaces(request *r, dsc_error *err)
{
    void *all;
    int rc = dsc_alloc(&all, r->methods, sizeof *r->space, err);
    r->space = all;
    for (size_t i = 0; i < r->starts && !rc; i++)
        rc = dsc_space_check_start(r->start[i], r->method, r->methods, err);
    for (size_t m = 0; m < r->methods && !rc; m++)
        rc = dsc_space_init(&r->space[m], r->method[m], &r->given[m], r->start, r->starts, err);
    for (size_t m = 0; m < r->methods && !rc; m++)
        rc = dsc_tune_check((dsc_search_kind)r->value[SEARCH].integer, &r->space[m], err);
    return rc;
}

// Refuses an engine that has none of the methods before the search starts.
static int check_engine(const request *r, dsc_error *err)
{
    cli_engine engine = (cli_engine)r->value[ENGINE_LINES].integer;
    bool any = !r->value[ENGINE_LINES].given;
    for (size_t m = 0; m < r->methods; m++)
        any |= cli_engine_has(engine, r->method[m]);
    if (any)
        return DSC_OK;
    dsc_buffer has = {0};
    int rc = cli_engine_methods(&has, engine, err);
    if (!rc)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--engine-lines %s: the engine supports none of the methods; it supports %s",
                      r->value[ENGINE_LINES].text, has.data);
    dsc_buffer_fini(&has);
    return rc;
}

// --- running -----------------------------------------------------------------------------------

static int note_references(const dsc_trace *trace, const dsc_language *target,
                           const dsc_space *space, dsc_error *err)
{
    dsc_option_value list[DSC_MAX_PARAMETERS] = {{0}};
    for (size_t o = 0; o < space->drafter->option_count; o++)
        list[o].text = space->list[o];
    return cli_note_missing_references(trace, target, space->drafter, list, err);
}

static int note_engine(dsc_table *t, const dsc_trace *trace, const dsc_space *space,
                       const dsc_run_options *run, dsc_error *err)
{
    const char *name = space->drafter->name;
    dsc_engine_choice engine;
    dsc_config last = dsc_space_at(space, space->total - 1);
    if (dsc_config_prepare(&last, err)) // a combination that the method refuses
        return DSC_OK;
    bool learns = last.drafter->uses_history && last.drafter->uses_history(&last);
    int rc = dsc_run_choose(trace, &last, 1, run, &engine, err);
    dsc_config_fini(&last);
    if (!rc)
        cli_note_temperature(trace, space->drafter, &engine);
    if (!rc && engine.expected)
        rc = cli_tune_comment(t, err, "engine_", name, "%s", engine.why);
    if (!rc && learns)
        rc = cli_tune_comment(t, err, "note_", name,
                              "requests learn from those before them: they are not independent, "
                              "and intervals are too narrow");
    return rc;
}

static int run_method(dsc_tune *found, const request *r, const dsc_space *space,
                      const dsc_trace *trace, const cli_workload *models, cli_progress *progress,
                      dsc_table *t, dsc_error *err)
{
    const dsc_run_options run = {
        .engine = (dsc_engine)r->value[ENGINE].integer,
        .rule =
            cli_workload_rule(models, trace, r->load[CLI_WORKLOAD_RULE].text, space->drafter, err),
        .threads = cli_threads(r->value[THREADS].integer),
        .seed = (uint64_t)r->value[SEED].integer,
        .workload = &models->load,
        .widths = !r->cost.type->linear,
        .progress = cli_progress_step,
        .user = progress};
    int rc = run.rule ? note_references(trace, models->target, space, err) : DSC_EUSAGE;
    if (!rc)
        rc = note_engine(t, trace, space, &run, err);
    return rc ? rc : dsc_tune_run(found, trace, space, &run, err);
}

static int run_methods(dsc_tune *found, const request *r, const dsc_trace *trace, dsc_table *t,
                       dsc_error *err)
{
    cli_workload models;
    cli_progress progress;
    int rc = cli_workload_make(&models, r->load, r->method, r->methods, trace != NULL, err);
    if (rc)
        return rc;
    cli_progress_init(&progress, r->value[PROGRESS].integer, "token-configurations");
    for (size_t m = 0; m < r->methods && !rc; m++)
        rc = run_method(found, r, &r->space[m], trace, &models, &progress, t, err);
    cli_progress_end(&progress);
    cli_workload_free(&models);
    return rc;
}

// --- output ------------------------------------------------------------------------------------

static int write_result(dsc_table *t, size_t first, const char *lines, const request *r,
                        dsc_outfile *file, dsc_error *err)
{
    size_t end = t->comments;
    int rc = cli_tune_comment_lines(t, lines, err);
    if (!rc && r->value[OUT].given) {
        cli_result_print(t, cli_ends_with(r->value[OUT].text, ".jsonl"), true, file->stream);
        rc = dsc_outfile_commit(file, err);
    }
    if (!rc && r->value[JSON].given)
        cli_result_print(t, true, true, stdout);
    else if (!rc)
        cli_tune_print(t, first, end, lines);
    return rc;
}

// `first`: the first comment that the text output prints.
static int report(const dsc_tune *found, const request *r, dsc_table *t, size_t first,
                  dsc_outfile *file, dsc_error *err)
{
    const cli_tune_naming name = {r->value[OBJECTIVE].text, r->value[SEARCH].text,
                                  r->value[ENGINE_LINES].text};
    void *all = NULL;
    dsc_buffer lines = {0};
    if (!found->trials)
        return dsc_fail(err, DSC_EUSAGE, "no configuration to try: %s", found->why_refused);
    int rc = dsc_alloc(&all, found->options.prices, sizeof(dsc_standing *), err);
    dsc_standing **standing = all;
    for (size_t p = 0; p < found->options.prices && !rc; p++)
        rc = dsc_tune_rank(found, p, cli_threads(r->value[THREADS].integer), &standing[p], err);
    if (!rc)
        rc = cli_tune_describe(t, found, standing, &name, err);
    if (!rc)
        rc = cli_tune_rows(t, found, standing, r->value[TOP].integer, err);
    if (!rc && r->value[ENGINE_LINES].given)
        rc = cli_tune_engine_lines(&lines, found, standing,
                                   (cli_engine)r->value[ENGINE_LINES].integer, &name, err);
    if (!rc)
        rc = write_result(t, first, lines.data, r, file, err);
    for (size_t p = 0; standing && p < found->options.prices; p++)
        free(standing[p]);
    free(all);
    dsc_buffer_fini(&lines);
    return rc;
}

static int tune(const dsc_trace *trace, const request *r, dsc_error *err)
{
    dsc_tune found = {0};
    dsc_outfile file = {0};
    dsc_table t = {0};
    const dsc_tune_options o = {
        .objective = (dsc_objective)r->value[OBJECTIVE].integer,
        .search = (dsc_search_kind)r->value[SEARCH].integer,
        .price = r->price,
        .prices = r->prices,
        .split = r->value[SPLIT].real,
        .resamples = (int)(r->value[RESAMPLES].integer & ~(int64_t)3),
        .seed = (uint64_t)r->value[SEED].integer,
        .requests =
            trace ? dsc_trace_get_info(trace)->requests : r->load[CLI_WORKLOAD_REQUESTS].integer,
    };
    int rc = dsc_tune_init(&found, &o, err);
    if (!rc && r->value[OUT].given)
        rc = dsc_outfile_open(&file, r->value[OUT].text, r->value[FORCE].given, err);
    if (!rc)
        rc = cli_comments(&t, trace, o.seed, r->value[COST].text, err);
    if (!rc)
        rc = cli_workload_comments(&t, r->load, err);
    size_t first = t.comments;
    if (!rc)
        rc = run_methods(&found, r, trace, &t, err);
    if (!rc)
        rc = report(&found, r, &t, first, &file, err);
    dsc_outfile_abort(&file);
    dsc_table_fini(&t);
    dsc_tune_fini(&found);
    return rc;
}

// Reads --cost and --batch-size.
static int read_prices(request *r, dsc_error *err)
{
    void *price;
    int64_t *batch = NULL;
    int rc = dsc_cost_parse(&r->cost, r->value[COST].text, err);
    if (!rc)
        rc = dsc_option_list(&options[BATCH], r->value[BATCH].text, &batch, &r->prices, err);
    if (!rc)
        rc = dsc_alloc(&price, r->prices, sizeof *r->price, err);
    if (!rc)
        r->price = price;
    for (size_t p = 0; p < r->prices && !rc; p++)
        r->price[p] = (dsc_tune_price){batch[p], &r->cost};
    free(batch);
    return rc;
}

// Parses the command's options and those of the methods, with every use of these.
static int parse(request *r, dsc_option_value *value, dsc_option_value *load, int argc, char **argv,
                 size_t *words, dsc_error *err)
{
    dsc_option_set sets[2 + CLI_MAX_METHODS] = {
        {.table = options, .count = OPTIONS, .value = value},
        {.table = cli_workload_options, .count = CLI_WORKLOAD_OPTIONS, .value = load}};
    int rc = cli_find_methods(sets, 2, argc, argv, r->method, &r->methods, err);
    if (!rc)
        rc = collect(argc, argv, "--start", &r->start, &r->starts, err);
    for (size_t m = 0; m < r->methods && !rc; m++)
        sets[2 + m] = (dsc_option_set){.table = r->method[m]->option,
                                       .count = r->method[m]->option_count,
                                       .value = r->list[m],
                                       .lists = true,
                                       .owner = r->method[m]->name,
                                       .synonyms = r->method[m]->synonyms,
                                       .uses = &r->given[m]};
    if (!rc)
        rc = cli_parse(sets, 2 + r->methods, argc, argv, words, err);
    for (size_t m = 0; m < r->methods && !rc; m++)
        if (cli_apply_preset(value[METHOD].text, r->method[m], r->list[m])) {
            const dsc_option_use use = {&r->method[m]->option[0], r->list[m][0].text, false};
            rc = dsc_option_uses_add(&r->given[m], &use, err);
        }
    return rc ? rc : cli_check_positionals(*words, 0, 1, "one trace", err);
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        const cli_help_section section[] = {{"Options", options, OPTIONS},
                                            {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS}};
        cli_print_method_help(usage, about, section, 2, argc, argv);
        cli_print_fields("Columns", cli_tune_columns, CLI_TUNE_COLUMNS);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS], load[CLI_WORKLOAD_OPTIONS];
    size_t words;
    request r = {.value = value, .load = load};
    int rc = parse(&r, value, load, argc, argv, &words, err);
    if (!rc)
        rc = read_spaces(&r, err);
    if (!rc)
        rc = check_engine(&r, err);
    if (!rc)
        rc = read_prices(&r, err);
    dsc_trace *trace = NULL;
    if (!rc && words)
        rc = dsc_trace_open(&trace, argv[0], err);
    if (!rc)
        rc = tune(trace, &r, err);
    dsc_trace_close(trace);
    request_fini(&r);
    return rc;
}

const cli_command cli_tune = {
    .name = "tune",
    .summary = "find the best configuration, with confidence intervals",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

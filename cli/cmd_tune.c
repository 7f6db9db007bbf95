// SPDX-License-Identifier: Apache-2.0
// draftscope tune: finds the best configuration for a trace or a synthetic model, with confidence
// intervals over requests.
#include "base/outfile.h"
#include "cli/guard.h"
#include "cli/result.h"
#include "cli/simulate.h"
#include "cli/tune/tune.h"

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
    ENGINE,
    DRAFT_KIND,
    ACCEPTANCE,
    EVALUATE,
    COST
};
// clang-format off
static const dsc_option options[] = {
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
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = CLI_ENGINES,
     .help = "look n-grams up as this engine does, choose among configurations that it has "
             "settings for, and print these settings"},
    CLI_OPTION_DRAFT_KIND,
    CLI_OPTION_ACCEPTANCE,
    {.name = "evaluate", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect",
     .initial = "auto",
     .help = "loop: run step by step; expect: exact replay of all positions (no Monte Carlo)"},
    CLI_OPTION_COST,
    {CLI_OPTION_BATCH, .metavar = "LIST", .initial = "1", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; the best configuration is found for each"},
    CLI_OPTION_BY,
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file for the table: JSON lines when the name ends in .jsonl, else TSV; - is "
             "standard output"},
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "print the table as JSON lines"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on
typedef struct context {
    cli_simulation s; // the first field, as the user of dsc_tune_run
    const cli_call *call;
    const char **start; // [starts] values of --start
    size_t starts;
    dsc_arena texts; // of dsc_option.sizes
    // The methods of the call, and `none`, which always competes.
    const dsc_drafter_type *method[CLI_MAX_METHODS + 1];
    size_t methods;
    dsc_space *space;      // [methods]
    dsc_tune_price *price; // for each batch size
    dsc_table table;
    const cli_engine_use *use; // of --engine, or NULL
    cli_engine_use engine;
    cli_verdict *verdict; // for each batch size
    dsc_standing **standing;
    bool stopped;           // by a signal; finished methods are ranked
    int64_t finished, work; // tokens x configurations: of methods before this one, of all in a grid
    dsc_outfile file;
    dsc_tune found;
} context;

static void context_fini(context *c)
{
    for (size_t m = 0; c->space && m < c->methods; m++)
        dsc_space_fini(&c->space[m]);
    for (size_t p = 0; c->standing && p < c->found.options.prices; p++)
        free(c->standing[p]);
    free(c->standing);
    free(c->verdict);
    free(c->space);
    free(c->start);
    free(c->price);
    cli_simulation_close(&c->s);
    dsc_arena_fini(&c->texts);
    dsc_outfile_abort(&c->file);
    dsc_table_fini(&c->table);
    dsc_tune_fini(&c->found);
}

// Adds the texts of a list that | divides, one use for each.
static int add_texts(context *c, dsc_option_uses *uses, const dsc_option *o, dsc_error *err)
{
    char *text, *rest;
    int rc = dsc_arena_new(&c->texts, &text, strlen(o->sizes) + 1, err);
    if (rc)
        return rc;
    strcpy(text, o->sizes);
    for (text = strtok_r(text, "|", &rest); text && !rc; text = strtok_r(NULL, "|", &rest))
        rc = dsc_option_uses_add(uses, &(dsc_option_use){o, text, false}, err);
    return rc;
}

// The draft lengths up to that of the acceptance rates, which is among them.
static int add_lengths(context *c, dsc_option_uses *uses, const dsc_option *o, int64_t most,
                       dsc_error *err)
{
    int64_t *list;
    size_t n;
    dsc_buffer b = {0};
    char *text;
    int rc = dsc_option_list(o, o->sizes, &list, &n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n && !rc; i++)
        rc = list[i] < most ? dsc_buffer_printf(&b, err, "%" PRId64 ",", list[i]) : DSC_OK;
    rc = rc ?: dsc_buffer_printf(&b, err, "%" PRId64, most < o->max ? most : o->max);
    rc = rc ?: dsc_arena_new(&c->texts, &text, strlen(b.data) + 1, err);
    if (!rc)
        strcpy(text, b.data);
    rc = rc ?: dsc_option_uses_add(uses, &(dsc_option_use){o, text, false}, err);
    dsc_buffer_fini(&b);
    free(list);
    return rc;
}

// The sizes that are tried of a method that is given no option: defaults alone may be too large for
// the machine of the cost model.
static int add_sizes(context *c, dsc_option_uses *uses, const dsc_drafter_type *d, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        const dsc_option *option = &d->option[o];
        if (option->sizes && option->kind == DSC_OPTION_TEXT && !option->list)
            rc = add_texts(c, uses, option, err);
        else if (option->sizes && option->length && c->s.draft && c->s.draft->positions)
            rc = add_lengths(c, uses, option, c->s.draft->positions, err);
        else if (option->sizes)
            rc = dsc_option_uses_add(uses, &(dsc_option_use){option, option->sizes, false}, err);
    }
    return rc;
}

// The values of a method's options. With --engine, n-grams are looked up as the engine does unless
// the command line says otherwise.
static int read_space(context *c, size_t m, const dsc_option_uses *given, dsc_error *err)
{
    const dsc_drafter_type *d = c->method[m];
    const dsc_option *o = dsc_option_find(d->option, d->option_count, "semantics");
    const char *own = c->use && d == &dsc_drafter_ngram ? cli_engine_semantics(c->use) : NULL;
    dsc_option_uses uses = {0};
    int rc = DSC_OK;
    for (size_t u = 0; u < given->count && !rc; u++) {
        own = given->use[u].option == o ? NULL : own;
        rc = dsc_option_uses_add(&uses, &given->use[u], err);
    }
    if (!rc && !given->count)
        rc = add_sizes(c, &uses, d, err);
    const dsc_option_use use = {o, own, false};
    if (!rc && own)
        rc = dsc_option_uses_add(&uses, &use, err);
    rc = rc ?: dsc_space_init(&c->space[m], d, &uses, c->start, c->starts, err);
    free(uses.use);
    return rc;
}

static int read_spaces(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const dsc_option_uses *uses = &call->uses;
    int rc = dsc_new(&c->start, uses->count, err);
    for (size_t u = 0; u < uses->count && !rc; u++)
        if (uses->use[u].option == &call->command->option[START])
            c->start[c->starts++] = uses->use[u].text;
    bool none = false;
    for (; c->methods < call->methods; c->methods++) {
        c->method[c->methods] = call->method[c->methods];
        none |= c->method[c->methods] == &dsc_drafter_none;
    }
    if (!none)
        c->method[c->methods++] = &dsc_drafter_none;
    rc = rc ?: dsc_new(&c->space, c->methods, err);
    for (size_t i = 0; i < c->starts && !rc; i++)
        rc = dsc_space_check_start(c->start[i], call->method, call->methods, err);
    const dsc_option_uses no_uses = {0};
    for (size_t m = 0; m < c->methods && !rc; m++)
        rc = read_space(c, m, m < call->methods ? &call->list_uses[m] : &no_uses, err);
    for (size_t m = 0; m < c->methods && !rc; m++)
        rc = dsc_tune_check((dsc_search_kind)call->value[SEARCH].integer, &c->space[m], err);
    return rc;
}

// --- running -----------------------------------------------------------------------------------

static int note_references(const context *c, const dsc_space *space, dsc_error *err)
{
    dsc_option_value list[DSC_MAX_PARAMETERS] = {{0}};
    for (size_t o = 0; o < space->drafter->option_count; o++)
        list[o].text = space->list[o];
    return cli_note_missing_references(c->s.trace, c->s.target, space->drafter, list, err);
}

static int note_engine(context *c, const dsc_space *space, dsc_error *err)
{
    const char *name = space->drafter->name;
    dsc_engine_choice engine;
    dsc_config last = dsc_space_at(space, space->total - 1);
    if (dsc_config_prepare(&last, err)) // a combination that the method refuses
        return DSC_OK;
    bool learns = last.drafter->uses_history && last.drafter->uses_history(&last);
    int rc = dsc_run_choose(c->s.trace, &last, 1, &c->s.run, &engine, err);
    dsc_config_fini(&last);
    if (!rc)
        cli_note_temperature(c->s.trace, space->drafter, &engine);
    if (!rc && engine.expected)
        rc = cli_tune_comment(&c->table, err, "evaluate_", name, "%s", engine.why);
    if (!rc && learns)
        rc = cli_tune_comment(&c->table, err, "note_", name,
                              "requests learn from those before them: they are not independent, "
                              "and intervals are too narrow");
    return rc;
}

static int run_method(context *c, const dsc_space *space, dsc_error *err)
{
    if (space->drafter == &dsc_drafter_none) { // no draft, no rule to choose
        c->s.run.rule = &dsc_verifier_greedy;
        return dsc_tune_run(&c->found, c->s.trace, space, &c->s.run, err);
    }
    c->s.run.rule =
        cli_simulation_rule(&c->s, c->call->more[CLI_WORKLOAD_RULE].text, space->drafter, err);
    int rc = c->s.run.rule ? note_references(c, space, err) : DSC_EUSAGE;
    rc = rc ?: note_engine(c, space, err);
    return rc ? rc : dsc_tune_run(&c->found, c->s.trace, space, &c->s.run, err);
}

// The tokens x configurations of a method; a search other than a grid does not run all of them.
static int64_t work_of(const context *c, size_t m)
{
    const int64_t tokens = c->s.trace ? dsc_trace_get_info(c->s.trace)->output_tokens
                                      : c->s.load.requests * c->s.load.max_tokens;
    return (int64_t)c->space[m].total * tokens;
}

// The progress of one method as that of all.
static int on_progress(void *user, int64_t done, int64_t total)
{
    context *c = user;
    const bool grid = c->found.options.search == DSC_SEARCH_GRID;
    return cli_progress_step(&c->s.progress, grid ? c->finished + done : done,
                             grid ? c->work : total);
}

// Method none comes first: without it there is no verdict on what an interrupted search leaves.
static int run_methods(context *c, dsc_error *err)
{
    int rc = DSC_OK;
    size_t none = 0;
    while (c->method[none] != &dsc_drafter_none)
        none++;
    cli_set_patience(30); // to rank and print what was finished
    cli_progress_init(&c->s.progress, c->call->progress, "token-configurations");
    c->s.run.progress = on_progress;
    for (size_t m = 0; m < c->methods; m++)
        c->work += work_of(c, m);
    for (size_t i = 0; i < c->methods && !rc; i++) {
        const size_t m = i == 0 ? none : i <= none ? i - 1 : i;
        rc = run_method(c, &c->space[m], err);
        c->finished += work_of(c, m);
    }
    cli_progress_end(&c->s.progress);
    return cli_tune_ended(&c->found, rc, &c->stopped, err);
}

// --- output ------------------------------------------------------------------------------------

// For a person: a row per batch size, and the settings.
static int print_terminal(const context *c, const char *lines, const char *acceptance,
                          dsc_error *err)
{
    const char *note;
    int rc = cli_tune_print_verdicts(&c->found, c->standing, c->verdict, c->use, err);
    if (rc)
        return rc;
    printf("\n%zu configurations; chosen on %zu requests, judged on %zu%s.\n", c->found.trials,
           c->found.selection, c->found.test, c->found.options.split > 0 ? " others" : "");
    for (size_t i = 0; i < c->table.comments; i++) {
        note = c->table.key[i];
        if (!strncmp(note, "note", 4) || !strcmp(note, "caveat") || !strcmp(note, "interrupted"))
            printf("%s.\n", c->table.value[i]);
    }
    puts("All figures: -o FILE, or a pipe.");
    if (lines)
        printf("\n%s", lines);
    if (acceptance)
        printf("\n%s", acceptance);
    return DSC_OK;
}

static int write_result(context *c, const char *lines, const char *acceptance, dsc_error *err)
{
    dsc_table *t = &c->table;
    const cli_call *call = c->call;
    int rc = cli_tune_comment_lines(t, "engine_line", lines, err);
    rc = rc ?: cli_tune_comment_lines(t, "acceptance_line", acceptance, err);
    if (!rc && call->out) {
        cli_result_print(t, cli_ends_with(call->out, ".jsonl"), true, c->file.stream);
        rc = dsc_outfile_commit(&c->file, err);
        if (!strcmp(call->out, "-")) // standard output has the table and nothing else
            return rc;
    }
    if (!rc && !call->json && (call->out || cli_result_terminal()))
        return print_terminal(c, lines, acceptance, err);
    if (!rc)
        cli_result_print(t, call->json, true, stdout);
    return rc;
}

// The verdict and the rows of the requests with one value of --by.
static int report_group(context *c, size_t group, dsc_error *err)
{
    const dsc_trace_groups *by = &c->s.by;
    dsc_tune own;
    int rc = dsc_tune_group(&c->found, by->of, (int32_t)group, &own, err);
    for (size_t p = 0; p < own.options.prices && !rc; p++) {
        dsc_standing *standing;
        rc = dsc_tune_rank(&own, p, c->s.run.threads, &standing, err);
        if (!rc)
            rc = cli_tune_describe_group(&c->table, &own, p, standing, by->value[group], group + 1,
                                         c->s.run.threads, err);
        if (!rc)
            rc = cli_tune_price_rows(&c->table, &own, p, standing, c->call->value[TOP].integer,
                                     by->value[group], err);
        free(standing);
    }
    dsc_tune_group_fini(&own);
    return rc;
}

static int judge(context *c, dsc_error *err)
{
    const dsc_tune *found = &c->found;
    const int threads = c->s.run.threads;
    int rc = dsc_new(&c->standing, found->options.prices, err);
    for (size_t p = 0; p < found->options.prices && !rc; p++)
        rc = dsc_tune_rank(found, p, threads, &c->standing[p], err);
    return rc ? rc : cli_tune_judge(&c->verdict, found, c->standing, c->use, threads, err);
}

static int report(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    const dsc_tune *found = &c->found;
    const cli_tune_naming name = {value[OBJECTIVE].text, value[SEARCH].text};
    dsc_buffer lines = {0}, acceptance = {0};
    if (found->trials < 1 + (c->methods > c->call->methods)) // nothing but the added `none`
        return dsc_fail(err, DSC_EUSAGE, "no configuration to try: %s", found->why_refused);
    int rc = judge(c, err);
    if (!rc && c->stopped)
        rc = dsc_table_comment(&c->table, "interrupted",
                               "the search was interrupted: the verdict is on the configurations "
                               "that were finished",
                               err);
    rc = rc ?: cli_tune_describe(&c->table, found, c->standing, &name, c->use, c->verdict, err);
    rc = rc ?: cli_tune_table_columns(&c->table, c->s.by.field, err);
    for (size_t p = 0; p < found->options.prices && !rc; p++)
        rc = cli_tune_price_rows(&c->table, found, p, c->standing[p], value[TOP].integer,
                                 DSC_GROUP_ALL, err);
    for (size_t g = 0; g < c->s.by.count && !rc; g++)
        rc = report_group(c, g, err);
    if (!rc && c->use)
        rc = cli_tune_engine_lines(&lines, found, c->standing, c->use, c->verdict, err);
    if (!rc && value[ACCEPTANCE].given)
        rc = cli_tune_acceptance_lines(&acceptance, found, c->standing, c->verdict,
                                       (cli_acceptance)value[ACCEPTANCE].integer, err);
    rc = rc ?: write_result(c, lines.data, acceptance.data, err);
    dsc_buffer_fini(&lines);
    dsc_buffer_fini(&acceptance);
    if (!rc && c->stopped)
        rc = dsc_fail(err, DSC_EINTERRUPT,
                      "interrupted: %zu configurations were finished and are %s", found->trials,
                      c->call->out ? "in the table" : "printed");
    return rc;
}

static int tune(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    int rc = dsc_new(&c->price, c->s.batches, err);
    for (size_t p = 0; p < c->s.batches && !rc; p++)
        c->price[p] = (dsc_tune_price){c->s.batch[p], &c->s.cost};
    const dsc_tune_options o = {
        .objective = (dsc_objective)value[OBJECTIVE].integer,
        .search = (dsc_search_kind)value[SEARCH].integer,
        .price = c->price,
        .prices = c->s.batches,
        .split = value[SPLIT].real,
        .resamples = (int)(value[RESAMPLES].integer & ~(int64_t)3),
        .seed = c->s.run.seed,
        .requests = c->s.trace ? dsc_trace_get_info(c->s.trace)->requests : c->s.load.requests,
    };
    rc = rc ?: dsc_tune_init(&c->found, &o, err);
    if (!rc && c->call->out)
        rc = dsc_outfile_open(&c->file, c->call->out, c->call->force, err);
    rc = rc ?: cli_simulation_comments(&c->s, c->call, &c->table, err);
    rc = rc ?: run_methods(c, err);
    return rc ? rc : report(c, err);
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    c.engine = (cli_engine_use){(cli_engine)call->value[ENGINE].integer,
                                (cli_draft_kind)call->value[DRAFT_KIND].integer};
    c.use = call->value[ENGINE].given ? &c.engine : NULL;
    int rc = cli_simulation_open(&c.s, call, err);
    rc = rc ?: read_spaces(&c, err);
    bool head = false;
    rc = rc ?: cli_recorded_head(&head, c.s.trace, err);
    if (!rc) {
        c.engine.kind = cli_tune_draft_kind(&call->value[DRAFT_KIND], head);
        rc = c.use ? cli_engine_check(c.use, call->method, call->methods, err) : DSC_OK;
    }
    rc = rc ?: tune(&c, err);
    context_fini(&c);
    return rc;
}

const cli_command cli_tune = {
    .name = "tune",
    .summary = "find the best configuration, with confidence intervals",
    CLI_OPTIONS(options),
    .more = {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS},
    .methods = CLI_METHOD_OWNED,
    .usage = "tune TRACE --method NAME[,NAME...] [--PARAMETER LIST]... [OPTIONS]",
    .about =
        "Finds the best configuration of one or several drafting methods, over the recorded "
        "outputs of a trace or over the output of a synthetic model. Every parameter of a method "
        "takes a list, as in sweep: --num-speculative-tokens 1:8, or --METHOD.PARAMETER LIST for "
        "one of several methods; an option with a text value is given once per value. A method "
        "that is given none is tried at small and large sizes. The "
        "configuration is chosen on one part of the requests (selection set) and reported on the "
        "others (test set), with 95 % intervals over requests, next to all configurations that are "
        "not significantly different from it. --by FIELD gives a verdict for the requests with "
        "each "
        "value of a metadata field, too, on their own selection set and test set.",
    .fields = {{"Columns", cli_tune_columns, CLI_TUNE_COLUMNS}},
    .execute = execute,
};

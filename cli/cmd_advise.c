// SPDX-License-Identifier: Apache-2.0
// draftscope advise: from logs to a verdict in one command. It imports the logs, tunes every method
// that the data can answer, prints a line per batch size, the settings of the engine and what is
// missing, and writes the report.
#include "base/outfile.h"
#include "cli/advise/advise.h"
#include "cli/result.h"
#include "cli/simulate.h"
#include "cli/tune/tune.h"
#include "plots/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COST, BATCH, ENGINE, TOKENIZER, VOCAB, FORMAT, QUESTIONS, OUT, RESAMPLES };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_COST,
    {CLI_OPTION_BATCH, .metavar = "LIST", .initial = "1,4,16,64", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; there is a verdict for each"},
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = CLI_ENGINES,
     .help = "print settings of this engine, and look n-grams up as it does"},
    {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes",
     .help = "a Hugging Face tokenizer.json, or bytes; not needed when every text is token ids"},
    {.name = "vocab-size", .kind = DSC_OPTION_INT, .metavar = "V", .initial = "0", .min = 0,
     .max = 1 << 24, .help = "vocabulary size, for token ids without a tokenizer"},
    {.name = "format", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "format of the logs (see draftscope list formats); detected from the first line by "
             "default"},
    {.name = "questions", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file with the questions for specbench, mtbench and eagle"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .initial = "advice",
     .help = "writes NAME.dst (the logs as a trace), NAME.tsv (all configurations) and NAME.html "
             "(the report)"},
    {.name = "resamples", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "2000", .min = 100,
     .max = 1000000, .help = "number of bootstrap resamples"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on

// The configurations of a method that compete. "@" stands for the engine's prompt lookup.
static const struct {
    const dsc_drafter_type *drafter;
    const char *option[3][2]; // name, list
} candidates[] = {
    {&dsc_drafter_ngram,
     {{"semantics", "@"},
      {"num-speculative-tokens", "2,3,4,5,6,8,10,12,16"},
      {"prompt-lookup-max", "2:4"}}},
    {&dsc_drafter_suffix, {{"num-speculative-tokens", "4,8,16,32"}}},
    {&dsc_drafter_llma, {{"n", "1:3"}, {"num-speculative-tokens", "4,8,16,32"}}},
    {&dsc_drafter_draft_model, {{"num-speculative-tokens", "1:10"}}},
    {&dsc_drafter_hf_dynamic, {{"num-assistant-tokens", "2,5,10"}}},
    {&dsc_drafter_tree, {{"tree", "eagle"}}},
    {&dsc_drafter_spectr, {{"num-drafts", "2,4,8"}, {"num-speculative-tokens", "2:6"}}},
    {&dsc_drafter_pearl, {{"num-speculative-tokens", "2:8"}}},
    {&dsc_drafter_none, {{0}}},
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

typedef struct context {
    cli_simulation s; // the first field, as the user of dsc_tune_run
    const cli_call *call;
    dsc_space space[CANDIDATES];
    const dsc_verifier_type *rule[CANDIDATES]; // NULL: the data cannot answer the method
    char why[CANDIDATES][200];
    dsc_tune_price *price;
    dsc_tune found;
    dsc_standing **standing; // [batches]
    dsc_table table;
    char *cache, *tsv, *html;
} context;

static void context_fini(context *c)
{
    for (size_t p = 0; c->standing && p < c->s.batches; p++)
        free(c->standing[p]);
    free(c->standing);
    dsc_table_fini(&c->table);
    dsc_tune_fini(&c->found);
    for (size_t m = 0; m < CANDIDATES; m++)
        dsc_space_fini(&c->space[m]);
    free(c->price);
    cli_simulation_close(&c->s);
    free(c->cache);
    free(c->tsv);
    free(c->html);
}

// --- the logs ------------------------------------------------------------------------------------

static int make_name(char **out, const char *stem, const char *end, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s%s", stem, end);
    *out = b.data;
    return rc;
}

static int open_logs(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const dsc_option_value *value = call->value;
    int rc = make_name(&c->cache, call->out, ".dst", err);
    if (!rc)
        rc = make_name(&c->tsv, call->out, ".tsv", err);
    if (!rc)
        rc = make_name(&c->html, call->out, ".html", err);
    const char *const written[] = {c->tsv, c->html};
    for (size_t i = 0; i < 2 && !rc; i++) {
        rc = cli_check_written(call, written[i], err);
        if (!rc)
            rc = dsc_outfile_check(written[i], call->force, err);
    }
    const cli_advise_logs logs = {.path = (const char *const *)call->word,
                                  .paths = call->words,
                                  .format = value[FORMAT].text,
                                  .tokenizer = value[TOKENIZER].text,
                                  .questions = value[QUESTIONS].text,
                                  .vocab_size = (int32_t)value[VOCAB].integer,
                                  .cache = c->cache,
                                  .force = call->force,
                                  .threads = call->threads,
                                  .progress = call->progress};
    return rc ? rc : cli_advise_open(&c->s.trace, &logs, err);
}

// --- the methods ---------------------------------------------------------------------------------

static const char *lookup_of(const dsc_option_value *engine)
{
    return engine->given && engine->integer == CLI_HF ? "transformers" : "vllm";
}

static int make_space(context *c, size_t m, dsc_error *err)
{
    const dsc_drafter_type *d = candidates[m].drafter;
    dsc_option_uses uses = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < 3 && candidates[m].option[i][0] && !rc; i++) {
        const char *list = candidates[m].option[i][1];
        const dsc_option_use use = {
            dsc_option_find(d->option, d->option_count, candidates[m].option[i][0]),
            strcmp(list, "@") ? list : lookup_of(&c->call->value[ENGINE]), false};
        rc = dsc_option_uses_add(&uses, &use, err);
    }
    if (!rc)
        rc = dsc_space_init(&c->space[m], d, &uses, NULL, 0, err);
    free(uses.use);
    return rc;
}

// Returns whether the cost model prices a pass of a draft model at more than nothing.
static bool prices_drafts(const dsc_cost *cost)
{
    double seconds = 0;
    return !dsc_cost_draft(cost, (dsc_pass){1, 1, 1, false}, &seconds, NULL) && seconds > 0;
}

// Decides whether the data can answer a method; if not, c->why says what is missing.
static void check_method(context *c, size_t m)
{
    dsc_error why = {0};
    dsc_engine_choice engine;
    const dsc_drafter_type *d = candidates[m].drafter;
    dsc_config last = dsc_space_at(&c->space[m], c->space[m].total - 1);
    const dsc_verifier_type *rule =
        d->needs_draft ? cli_simulation_rule(&c->s, NULL, d, &why) : &dsc_verifier_greedy;
    c->s.run.rule = rule;
    int rc = rule ? dsc_config_prepare(&last, &why) : why.status;
    if (!rc) {
        rc = dsc_run_choose(c->s.trace, &last, 1, &c->s.run, &engine, &why);
        dsc_config_fini(&last);
    }
    if (!rc && d == &dsc_drafter_llma && !dsc_trace_get_info(c->s.trace)->references)
        rc = dsc_fail(&why, DSC_EUSAGE,
                      "method llma needs references to copy from, which no request has");
    if (!rc && d->needs_draft && !prices_drafts(&c->s.cost))
        rc = dsc_fail(&why, DSC_EUSAGE,
                      "method %s needs a cost model with the time of a pass of the draft model",
                      d->name);
    c->rule[m] = rc ? NULL : rule;
    // What is in parentheses at the end names options of other commands.
    const char *hint = strstr(why.message, " (");
    snprintf(c->why[m], sizeof c->why[m], "%.*s",
             hint ? (int)(hint - why.message) : (int)sizeof c->why[m] - 1, why.message);
}

static int tune(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    int rc = dsc_new(&c->price, c->s.batches, err);
    for (size_t p = 0; p < c->s.batches && !rc; p++)
        c->price[p] = (dsc_tune_price){c->s.batch[p], &c->s.cost};
    const dsc_tune_options o = {.objective = DSC_OBJECTIVE_SPEEDUP,
                                .price = c->price,
                                .prices = c->s.batches,
                                .split = 0.5,
                                .resamples = (int)(call->value[RESAMPLES].integer & ~(int64_t)3),
                                .seed = call->seed,
                                .requests = dsc_trace_get_info(c->s.trace)->requests};
    if (!rc)
        rc = dsc_tune_init(&c->found, &o, err);
    cli_progress_init(&c->s.progress, call->progress, "token-configurations");
    for (size_t m = 0; m < CANDIDATES && !rc; m++) {
        rc = make_space(c, m, err);
        if (rc)
            break;
        check_method(c, m);
        c->s.run.rule = c->rule[m];
        if (c->rule[m])
            rc = dsc_tune_run(&c->found, c->s.trace, &c->space[m], &c->s.run, err);
    }
    cli_progress_end(&c->s.progress);
    if (!rc)
        rc = dsc_new(&c->standing, c->s.batches, err);
    for (size_t p = 0; p < c->s.batches && !rc; p++)
        rc = dsc_tune_rank(&c->found, p, call->threads, &c->standing[p], err);
    return rc;
}

// --- output --------------------------------------------------------------------------------------

// "   8  1.62      1.45 to 1.89      run ngram ..."; `head`: the batch size, or the engine.
static int print_verdict(const context *c, size_t p, const char *head, dsc_advice_fits *fits,
                         const void *user, dsc_error *err)
{
    static const char *const verb[] = {[DSC_ADVICE_ABSTAIN] = "no verdict: ",
                                       [DSC_ADVICE_OFF] = "leave speculation off; the best was ",
                                       [DSC_ADVICE_ON] = "run "};
    dsc_advice a;
    dsc_buffer name = {0};
    char speedup[32] = "-", interval[64] = "-";
    int rc = dsc_tune_advise(&c->found, p, c->standing[p], fits, user, c->call->threads, &a, err);
    if (!rc)
        rc = cli_tune_name(&name, &c->found.trial[c->standing[p][a.standing].trial], err);
    if (!rc && a.speedup > 0) {
        snprintf(speedup, sizeof speedup, "%.2f", a.speedup);
        snprintf(interval, sizeof interval, "%.2f to %.2f", a.low, a.high);
    }
    if (!rc)
        printf("%8s  %-7s  %-16s  %s%s\n", head, speedup, interval, verb[a.kind],
               a.kind == DSC_ADVICE_ABSTAIN ? a.why : name.data);
    dsc_buffer_fini(&name);
    return rc;
}

// A line per batch size, and one for the engine where it lacks the best configuration.
static int print_verdicts(const context *c, dsc_error *err)
{
    const dsc_option_value *given = &c->call->value[ENGINE];
    const cli_engine engine = (cli_engine)given->integer;
    int rc = DSC_OK;
    printf("\n%8s  %-7s  %-16s  %s\n", "batch", "speedup", "95 % interval", "verdict");
    for (size_t p = 0; p < c->s.batches && !rc; p++) {
        char batch[32];
        snprintf(batch, sizeof batch, "%" PRId64, c->s.batch[p]);
        rc = print_verdict(c, p, batch, NULL, NULL, err);
        const dsc_trial *best = &c->found.trial[c->standing[p][0].trial];
        if (!rc && given->given && !cli_tune_engine_fits(&engine, best))
            rc = print_verdict(c, p, given->text, cli_tune_engine_fits, &engine, err);
    }
    return rc;
}

// Conditions under which the figures hold, from facts of the data.
static void print_caveats(const context *c)
{
    const dsc_trace_info *info = dsc_trace_get_info(c->s.trace);
    puts("\nConditions");
    printf("  The verdict is chosen on %zu requests and judged on %zu others.\n",
           c->found.selection, c->found.test);
    if (c->found.test < 30)
        printf("  With only %zu test requests the intervals are too narrow.\n", c->found.test);
    if (!info->prompt_tokens)
        puts("  The prompts are empty, so methods that copy from them look worse than they are.");
    if (c->s.cost.caveat)
        printf("  About the costs: %s.\n", c->s.cost.caveat);
    if (!strcmp(c->s.cost.type->name, "unit"))
        puts("  Without costs there is no verdict: give --cost, for example a table of draftscope "
             "live profile (see: draftscope list costs).");
    puts("  Not modeled: arrival of requests, queueing, other work of the server, memory.");
}

static void print_missing(const context *c)
{
    bool any = false;
    for (size_t m = 0; m < CANDIDATES; m++) {
        if (c->rule[m])
            continue;
        if (!any)
            puts("\nWhat these data cannot answer");
        any = true;
        printf("  %s\n", c->why[m]);
    }
    if (any)
        puts("  draftscope live record --draft DIR records what methods with a draft model need.");
}

static int write_files(context *c, dsc_error *err)
{
    dsc_outfile f = {0};
    const char *result[] = {c->tsv};
    const dsc_report_options o = {.force = c->call->force};
    int rc = dsc_outfile_open(&f, c->tsv, c->call->force, err);
    if (!rc) {
        cli_result_print(&c->table, false, true, f.stream);
        rc = dsc_outfile_commit(&f, err);
    }
    dsc_outfile_abort(&f);
    return rc ? rc : dsc_report_write(result, 1, c->html, &o, err);
}

static int report(context *c, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(c->s.trace);
    const dsc_option_value *engine = &c->call->value[ENGINE];
    const cli_tune_naming name = {"speedup", "grid", engine->text};
    dsc_buffer lines = {0};
    int rc = cli_comments(&c->table, c->s.trace, c->call->seed, c->call->value[COST].text, err);
    if (!rc)
        rc = cli_tune_describe(&c->table, &c->found, c->standing, &name, c->call->threads, err);
    if (!rc && engine->given)
        rc = cli_tune_engine_lines(&lines, &c->found, c->standing, (cli_engine)engine->integer,
                                   &name, c->call->threads, err);
    if (!rc)
        rc = cli_tune_comment_lines(&c->table, lines.data, err);
    if (!rc)
        rc = cli_tune_rows(&c->table, &c->found, c->standing, 0, err);
    if (!rc) {
        printf("%s: %" PRId64 " requests, %" PRId64 " output tokens; cost %s\n",
               dsc_trace_path(c->s.trace), info->requests, info->output_tokens,
               c->call->value[COST].text);
        rc = print_verdicts(c, err);
    }
    if (!rc) {
        print_caveats(c);
        print_missing(c);
        if (engine->given)
            printf("\nSettings of %s\n%s", engine->text, lines.data);
        rc = write_files(c, err); // last: the verdict does not depend on the disk
    }
    if (!rc)
        printf("\nWritten: %s (%zu configurations), %s (report)\n", c->tsv, c->found.trials,
               c->html);
    dsc_buffer_fini(&lines);
    return rc;
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    int rc = dsc_cost_parse(&c.s.cost, call->value[COST].text, err);
    if (!rc)
        rc = dsc_option_list(&options[BATCH], call->value[BATCH].text, &c.s.batch, &c.s.batches,
                             err);
    c.s.run = (dsc_run_options){.threads = call->threads,
                                .seed = call->seed,
                                .widths = !rc && !c.s.cost.type->linear,
                                .progress = cli_progress_step,
                                .user = &c.s};
    if (!rc)
        rc = open_logs(&c, err);
    if (!rc)
        rc = tune(&c, err);
    if (!rc)
        rc = report(&c, err);
    context_fini(&c);
    return rc;
}

const cli_command cli_advise = {
    .name = "advise",
    .summary = "from logs to a verdict: which method and setting, at which batch size",
    CLI_OPTIONS(options),
    .usage = "advise LOGS... --cost COST [--engine NAME] [OPTIONS]",
    .about =
        "Imports logs (or takes a trace), tries every method that the data can answer, and prints "
        "for each batch size which configuration to run, with the 95 % interval of its speedup on "
        "requests that it was not chosen on, or to leave speculation off. It lists what the data "
        "cannot answer, prints the settings of an inference engine, and writes the table and a "
        "report. The imported trace is used again while the logs stay the same.",
    .least = 1,
    .most = -1,
    .what = "log files or a trace",
    .execute = execute,
};

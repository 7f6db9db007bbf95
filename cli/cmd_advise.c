// SPDX-License-Identifier: Apache-2.0
// draftscope advise: from logs to a verdict in one command. It imports the logs, tunes every method
// that the data can answer, prints a line per batch size, the settings of the engine and what is
// missing, and writes the report.
#include "base/outfile.h"
#include "cli/advise/advise.h"
#include "cli/advise/advise_load.h"
#include "cli/guard.h"
#include "cli/result.h"
#include "cli/serve/serve.h"
#include "cli/simulate.h"
#include "cli/trace/trace.h"
#include "cli/tune/tune.h"
#include "plots/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COST,
    METRICS,
    TARGET_SHAPE,
    DRAFT_SHAPE,
    GPU,
    BATCH,
    ENGINE,
    DRAFT_KIND,
    TOKENIZER,
    VOCAB,
    FORMAT,
    QUESTIONS,
    LOGS,
    OUT = LOGS + CLI_LOGS_COUNT,
    JSON,
    RESAMPLES,
    ARRIVALS,
    SLO,
    PREFILL
};
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_COST,
    {.name = "metrics", .kind = DSC_OPTION_TEXT, .metavar = "BEFORE,AFTER[,BEFORE,AFTER...]",
     .help = "snapshots of the server's /metrics page (vLLM): prints today's step time, batch size "
             "and acceptance, and without --cost is the cost model prometheus:BEFORE,AFTER..."},
    {.name = "target-shape", .kind = DSC_OPTION_TEXT, .metavar = "SHAPE",
     .help = "with --gpu: a roofline for a target of this shape, a name of draftscope list costs "
             "-v or a config.json, instead of --cost"},
    {.name = "draft-shape", .kind = DSC_OPTION_TEXT, .metavar = "SHAPE", .initial = "none",
     .help = "shape of the draft model, with --target-shape"},
    {.name = "gpu", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "hardware of the roofline, with --target-shape (see: draftscope list costs -v)"},
    {CLI_OPTION_BATCH, .metavar = "LIST", .initial = "1,4,16,64", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; there is a verdict for each"},
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = CLI_ENGINES,
     .help = "look n-grams up as this engine does, choose among configurations that it has "
             "settings for, price a roofline with its overheads, and print these settings"},
    CLI_OPTION_DRAFT_KIND,
    {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes",
     .help = "a Hugging Face tokenizer.json, or bytes; not needed when every text is token ids"},
    {.name = "vocab-size", .kind = DSC_OPTION_INT, .metavar = "V", .initial = "0", .min = 0,
     .max = 1 << 24, .help = "vocabulary size, for token ids without a tokenizer"},
    {.name = "format", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "format of the logs (see draftscope list formats); detected from the first line by "
             "default"},
    {.name = "questions", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file with the questions for specbench, mtbench and eagle"},
    CLI_OPTIONS_LOGS,
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .initial = "advice",
     .help = "writes NAME.dst (the logs as a trace), NAME.tsv (all configurations), NAME-load.tsv "
             "(the loads, if any) and NAME.html (the report)"},
    {.name = "json", .kind = DSC_OPTION_FLAG,
     .help = "print the table of NAME.tsv as JSON lines, the verdicts in its comments, instead of "
             "the text"},
    {.name = "resamples", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "2000", .min = 100,
     .max = 1000000, .help = "number of bootstrap resamples"},
    {.name = "arrivals", .kind = DSC_OPTION_TEXT,
     .metavar = "auto|closed:C|constant:QPS|poisson:QPS|gamma:QPS,CV|recorded[:xSPEED]|file:CSV",
     .help = "also answer up to which load speculation pays: serve requests at each of these "
             "loads with the best configurations, as draftscope serve does; may be "
             "repeated (default: recorded arrivals, where every request has arrival_s)"},
    {.name = "slo", .kind = DSC_OPTION_TEXT, .metavar = "ttft=S,tpot=S",
     .help = "limits in seconds that a request must keep: under load, goodput decides"},
    {.name = "prefill-time", .kind = DSC_OPTION_REAL, .metavar = "S", .least = 0, .most = 1e6,
     .help = "under load, seconds of each prefill token (default: as draftscope serve)"},
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on

// The configurations of a method that compete; `none` first, as every verdict needs it. "@" stands
// for the engine's prompt lookup, "@drafters" for the recorded drafters and "@lengths" for lengths
// that all of them have.
static const struct {
    const dsc_drafter_type *drafter;
    const char *option[3][2]; // name, list
} candidates[] = {
    {&dsc_drafter_none, {{0}}},
    {&dsc_drafter_ngram,
     {{"semantics", "@"},
      {"num-speculative-tokens", "2,3,4,5,6,8,10,12,16"},
      {"prompt-lookup-max", "2:4"}}},
    {&dsc_drafter_ngram_tree, {{"num-draft-tokens", "8,16"}, {"match-type", "BFS,PROB"}}},
    {&dsc_drafter_suffix, {{"num-speculative-tokens", "4,8,16,32"}}},
    {&dsc_drafter_llma, {{"n", "1:3"}, {"num-speculative-tokens", "4,8,16,32"}}},
    {&dsc_drafter_draft_model, {{"num-speculative-tokens", "1:10"}}},
    {&dsc_drafter_hf_dynamic, {{"num-assistant-tokens", "2,5,10"}}},
    {&dsc_drafter_threshold,
     {{"num-speculative-tokens", "4,8,16"}, {"assistant-confidence-threshold", "0.2,0.4,0.6"}}},
    {&dsc_drafter_tree, {{"tree", "eagle"}}},
    {&dsc_drafter_dynamic_tree, {{"eagle-topk", "4,10"}, {"num-draft-tokens", "16,32"}}},
    {&dsc_drafter_parallel, {{"num-speculative-tokens", "1:4"}}},
    {&dsc_drafter_ddtree, {{"num-draft-tokens", "16,64"}}},
    {&dsc_drafter_spectr, {{"num-drafts", "2,4,8"}, {"num-speculative-tokens", "2:6"}}},
    {&dsc_drafter_spectr_tree, {{0}}},
    {&dsc_drafter_pearl, {{"num-speculative-tokens", "2:8"}}},
    {&dsc_drafter_recorded, {{"drafter", "@drafters"}, {"num-speculative-tokens", "@lengths"}}},
    {&dsc_drafter_cascade, {{0}}},
    {&dsc_drafter_lookahead, {{0}}},
    {&dsc_drafter_ouroboros, {{0}}},
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

typedef struct context {
    cli_simulation s; // the first field, as the user of dsc_tune_run
    const cli_call *call;
    dsc_space space[CANDIDATES];
    char drafters[DSC_DRAFTERS_MAX * DSC_DRAFTER_NAME_BYTES], lengths[16];
    const dsc_verifier_type *rule[CANDIDATES]; // NULL: the data cannot answer the method
    char why[CANDIDATES][200];
    dsc_tune_price *price;
    dsc_tune found;
    dsc_standing **standing; // [batches]
    cli_engine_use engine;
    const cli_engine_use *use; // of --engine, or NULL
    cli_verdict *verdict;      // [batches]
    dsc_table table;
    cli_advise_facts facts;
    char *cost;         // the text of the cost model
    const char *preset; // the engine whose constants a roofline has in place of --engine's, or NULL
    char *cache, *tsv, *load_tsv, *html;
    bool under_load;        // a server is simulated, too
    int64_t finished, work; // output tokens x configurations: of methods before this one, of all
    bool stopped;           // by a signal
} context;

static void context_fini(context *c)
{
    for (size_t p = 0; c->standing && p < c->s.batches; p++)
        free(c->standing[p]);
    free(c->standing);
    free(c->verdict);
    dsc_table_fini(&c->table);
    dsc_tune_fini(&c->found);
    for (size_t m = 0; m < CANDIDATES; m++)
        dsc_space_fini(&c->space[m]);
    free(c->price);
    cli_simulation_close(&c->s);
    free(c->cost);
    free(c->cache);
    free(c->tsv);
    free(c->load_tsv);
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
    rc = rc ?: make_name(&c->tsv, call->out, ".tsv", err);
    rc = rc ?: make_name(&c->load_tsv, call->out, "-load.tsv", err);
    rc = rc ?: make_name(&c->html, call->out, ".html", err);
    const char *const written[] = {c->tsv, c->html};
    for (size_t i = 0; i < 2 && !rc; i++) {
        rc = cli_check_written(call, written[i], err);
        rc = rc ?: dsc_outfile_check(written[i], call->force, err);
    }
    const cli_advise_logs logs = {.path = (const char *const *)call->word,
                                  .paths = call->words,
                                  .format = value[FORMAT].text,
                                  .tokenizer = value[TOKENIZER].text,
                                  .questions = value[QUESTIONS].text,
                                  .how = value + LOGS,
                                  .vocab_size = (int32_t)value[VOCAB].integer,
                                  .cache = c->cache,
                                  .force = call->force,
                                  .threads = call->threads,
                                  .progress = call->progress};
    return rc ? rc : cli_advise_open(&c->s.trace, &logs, err);
}

// --- the methods ---------------------------------------------------------------------------------

// As the engine; without one, or if it does not look n-grams up as we do, as vLLM.
static const char *lookup_of(const cli_engine_use *use)
{
    const char *own = use ? cli_engine_semantics(use) : NULL;
    return own ? own : "vllm";
}

// The names of the recorded drafters, and the draft lengths up to 10 that all of them have.
static void name_drafters(context *c)
{
    const dsc_trace_info *info = dsc_trace_get_info(c->s.trace);
    size_t n = 0;
    int32_t cap = 10;
    for (int32_t d = 0; d < info->drafters; d++) {
        n += (size_t)snprintf(c->drafters + n, sizeof c->drafters - n, "%s%s", d ? "," : "",
                              info->drafter[d].name);
        cap = info->drafter[d].cap < cap ? info->drafter[d].cap : cap;
    }
    snprintf(c->lengths, sizeof c->lengths, "1:%d", cap);
}

// The values of a candidate's option; empty: it has none.
static const char *list_of(const context *c, const char *list)
{
    return strcmp(list, "@") == 0           ? lookup_of(c->use)
           : strcmp(list, "@drafters") == 0 ? c->drafters
           : strcmp(list, "@lengths") == 0  ? c->lengths
                                            : list;
}

static int make_space(context *c, size_t m, dsc_error *err)
{
    const dsc_drafter_type *d = candidates[m].drafter;
    dsc_option_uses uses = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < 3 && candidates[m].option[i][0] && !rc; i++) {
        const char *list = list_of(c, candidates[m].option[i][1]);
        if (!*list)
            continue;
        const dsc_option_use use = {
            dsc_option_find(d->option, d->option_count, candidates[m].option[i][0]), list, false};
        rc = dsc_option_uses_add(&uses, &use, err);
    }
    rc = rc ?: dsc_space_init(&c->space[m], d, &uses, NULL, 0, err);
    free(uses.use);
    return rc;
}

// Returns whether the cost model prices a pass of a draft model at more than nothing.
static bool prices_drafts(const dsc_cost *cost)
{
    double seconds = 0;
    return !dsc_cost_draft(cost, (dsc_pass){1, 1, 1, false}, &seconds, NULL) && seconds > 0;
}

// Whether the trace has what the configuration needs with this rule.
static int check_rule(context *c, const dsc_config *config, const dsc_verifier_type *rule,
                      dsc_error *why)
{
    dsc_engine_choice engine;
    c->s.run.rule = rule;
    return dsc_run_choose(c->s.trace, config, 1, &c->s.run, &engine, why);
}

// The rule with which the data can answer a configuration, or NULL.
static const dsc_verifier_type *find_rule(context *c, const dsc_config *config, dsc_error *why)
{
    const dsc_drafter_type *d = config->drafter;
    dsc_error sampled;
    if (!d->needs_draft)
        return check_rule(c, config, &dsc_verifier_greedy, why) ? NULL : &dsc_verifier_greedy;
    if (check_rule(c, config, &dsc_verifier_greedy, why) &&
        check_rule(c, config, dsc_pair_rule(d, false), &sampled))
        return NULL;
    const dsc_verifier_type *rule = cli_simulation_rule(&c->s, NULL, d, why);
    return rule && !check_rule(c, config, rule, why) ? rule : NULL;
}

// Decides whether the data can answer a method; if not, c->why says what is missing.
static void check_method(context *c, size_t m)
{
    dsc_error why = {0};
    const dsc_verifier_type *rule = NULL;
    const dsc_drafter_type *d = candidates[m].drafter;
    dsc_config last = dsc_space_at(&c->space[m], c->space[m].total - 1);
    if (!dsc_config_prepare(&last, &why)) {
        rule = find_rule(c, &last, &why);
        dsc_config_fini(&last);
    }
    if (rule && d == &dsc_drafter_llma && !dsc_trace_get_info(c->s.trace)->references) {
        rule = NULL;
        dsc_fail(&why, DSC_EUSAGE,
                 "method llma needs references to copy from, which no request has");
    } else if (rule && (d->needs_draft || d == &dsc_drafter_recorded) &&
               !prices_drafts(&c->s.cost)) { // a recorded drafter makes a pass for each draft token
        rule = NULL;
        dsc_fail(&why, DSC_EUSAGE,
                 "method %s needs a cost model with the time of a pass of the draft model",
                 d->name);
    }
    c->rule[m] = rule;
    // What is in parentheses at the end names options of other commands.
    const char *hint = strstr(why.message, " (");
    snprintf(c->why[m], sizeof c->why[m], "%.*s",
             hint ? (int)(hint - why.message) : (int)sizeof c->why[m] - 1, why.message);
}

static bool has_memory(const context *c, int64_t batch, dsc_error *why)
{
    double seconds;
    const dsc_pass pass = {1, (double)c->facts.longest, (double)batch, false};
    return c->s.cost.type != &dsc_cost_roofline ||
           !dsc_cost_target(&c->s.cost, pass, &seconds, why);
}

// Leaves out the batch sizes at which a roofline has no memory for the longest request, so that the
// others have a verdict.
static int keep_batches(context *c, dsc_error *err)
{
    size_t kept = 0;
    dsc_error why = {0};
    for (size_t i = 0; i < c->s.batches; i++)
        kept += has_memory(c, c->s.batch[i], &why);
    if (!kept)
        return dsc_fail(err, why.status, "no batch size is left: %s", why.message);
    kept = 0;
    for (size_t i = 0; i < c->s.batches; i++)
        if (has_memory(c, c->s.batch[i], &why))
            c->s.batch[kept++] = c->s.batch[i];
        else
            fprintf(stderr, "draftscope: note: batch size %" PRId64 " is left out: %s\n",
                    c->s.batch[i], why.message);
    c->s.batches = kept;
    return DSC_OK;
}

// The progress of one method as that of all.
static int on_progress(void *user, int64_t done, int64_t total)
{
    context *c = user;
    (void)total;
    return cli_progress_step(&c->s.progress, c->finished + done, c->work);
}

// Decides for every method whether it runs, before the first one does.
static int make_spaces(context *c, dsc_error *err)
{
    int rc = DSC_OK;
    name_drafters(c);
    for (size_t m = 0; m < CANDIDATES && !rc; m++) {
        rc = make_space(c, m, err);
        if (rc)
            break;
        check_method(c, m);
        if (c->rule[m])
            c->work += (int64_t)c->space[m].total * dsc_trace_get_info(c->s.trace)->output_tokens;
    }
    return rc;
}

static int run_methods(context *c, dsc_error *err)
{
    int rc = DSC_OK;
    cli_set_patience(30); // to rank and print what was finished
    cli_progress_init(&c->s.progress, c->call->progress, "token-configurations");
    for (size_t m = 0; m < CANDIDATES && !rc; m++) {
        c->s.run.rule = c->rule[m];
        if (!c->rule[m])
            continue;
        rc = dsc_tune_run(&c->found, c->s.trace, &c->space[m], &c->s.run, err);
        c->finished += (int64_t)c->space[m].total * dsc_trace_get_info(c->s.trace)->output_tokens;
    }
    cli_progress_end(&c->s.progress);
    return cli_tune_ended(&c->found, rc, &c->stopped, err);
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
    rc = rc ?: dsc_tune_init(&c->found, &o, err);
    rc = rc ?: make_spaces(c, err);
    rc = rc ?: run_methods(c, err);
    rc = rc ?: dsc_new(&c->standing, c->s.batches, err);
    for (size_t p = 0; p < c->s.batches && !rc; p++)
        rc = dsc_tune_rank(&c->found, p, call->threads, &c->standing[p], err);
    return rc ? rc
              : cli_tune_judge(&c->verdict, &c->found, c->standing, c->use, call->threads, err);
}

// --- under load ----------------------------------------------------------------------------------

// The command line of draftscope serve, but for its methods. *arrivals are the values of
// --arrivals.
static int load_words(const context *c, cli_words *w, const char *trace, dsc_error *err)
{
    const cli_call *call = c->call;
    const char **arrivals;
    char prefill[DSC_NUMBER_TEXT];
    cli_advise_load load = {.slo = call->value[SLO].text,
                            .prefill_time = call->value[PREFILL].given ? prefill : NULL,
                            .cost = c->cost,
                            .output = c->load_tsv ? c->load_tsv : "-",
                            .use = c->use};
    dsc_number_text(call->value[PREFILL].real, prefill);
    int rc = dsc_new(&arrivals, call->uses.count + 1, err);
    for (size_t u = 0; u < call->uses.count && !rc; u++)
        if (call->uses.use[u].option == &options[ARRIVALS])
            arrivals[load.arrivals_count++] = call->uses.use[u].text;
    load.arrivals = arrivals;
    rc = rc ?: cli_words_add(w, trace, err);
    rc = rc ?: cli_advise_load_options(w, &load, call, err);
    if (!rc && call->force)
        rc = cli_words_add(w, "--force", err);
    free(arrivals);
    return rc;
}

// Refuses what draftscope serve would refuse after the search.
static int check_load(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    const dsc_cost *cost = &c->s.cost;
    cli_words w = {0};
    cli_serve_loads loads = {0};
    dsc_serve_options limits;
    cli_call serve = {0};
    cli_command check = cli_serve;
    check.without = NULL; // the command line that is recorded stays this one
    c->under_load = value[ARRIVALS].given;
    int rc = cli_serve_read_slo(value[SLO].text, &limits, err);
    if (rc || !c->under_load)
        return rc;
    if (cost->type == &dsc_cost_unit)
        return dsc_fail(err, DSC_EUSAGE,
                        "--arrivals needs costs in seconds: --cost, or --target-shape and --gpu");
    if (!value[PREFILL].given && !cost->type->linear && cost->type != &dsc_cost_roofline)
        return dsc_fail(err, DSC_EUSAGE,
                        "--arrivals: --cost %.60s has no time of prefill tokens: --prefill-time S "
                        "gives the seconds of each",
                        cost->type->name);
    rc = load_words(c, &w, "logs", err);
    rc = rc ?: cli_words_add(&w, "--method=none", err);
    rc = rc ?: cli_call_init(&serve, &check, (int)w.count, w.word, err);
    rc = rc ?: cli_serve_loads_read(&loads, &serve, err);
    cli_serve_loads_fini(&loads);
    cli_call_fini(&serve);
    cli_words_fini(&w);
    return rc;
}

// Decides whether a server is simulated, now that the logs are open.
static int plan_load(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    const dsc_cost *cost = &c->s.cost;
    const bool recorded = c->facts.requests > 1 && c->facts.arrivals == c->facts.requests,
               priced =
                   cost->type->linear || cost->type == &dsc_cost_roofline || value[PREFILL].given;
    const char *option = value[SLO].given ? "slo" : value[PREFILL].given ? "prefill-time" : NULL;
    for (size_t u = 0; u < c->call->uses.count; u++)
        if (c->call->uses.use[u].option == &options[ARRIVALS] &&
            !strncmp(c->call->uses.use[u].text, "recorded", 8) &&
            c->facts.arrivals < c->facts.requests)
            return dsc_fail(err, DSC_EUSAGE,
                            "--arrivals recorded: %" PRId64 " of %" PRId64
                            " requests have arrival_s; --arrivals poisson:QPS or file:CSV needs "
                            "none",
                            c->facts.arrivals, c->facts.requests);
    if (option && !c->under_load && !recorded)
        return dsc_fail(err, DSC_EUSAGE,
                        "--%s needs loads: --arrivals A, or logs in which every request has "
                        "arrival_s",
                        option);
    c->under_load |= recorded && priced && cost->type != &dsc_cost_unit;
    int rc = c->under_load ? cli_check_written(c->call, c->load_tsv, err) : DSC_OK;
    return rc || !c->under_load ? rc : dsc_outfile_check(c->load_tsv, c->call->force, err);
}

// The command without what changes no row.
static void print_command(const cli_words *w)
{
    fputs("\nUnder load\n  draftscope serve", stdout);
    for (size_t i = 0; i < w->count; i++) {
        const char *word = w->word[i];
        const bool option = !strcmp(word, "--threads") || !strcmp(word, "--progress");
        i += option;
        if (!option && strcmp(word, "--force") != 0)
            printf(strpbrk(word, " *?$'\"\\<>|&;()") ? " '%s'" : " %s", word);
    }
    puts("");
}

// Runs draftscope serve; with --json it prints nothing, and the loads are in their file.
static int run_serve(const context *c, const cli_words *w, dsc_error *err)
{
    cli_call call;
    int rc = cli_call_init(&call, &cli_serve, (int)w->count, w->word, err);
    call.quiet = c->call->json;
    rc = rc ?: cli_serve.execute(&call, err);
    cli_call_fini(&call);
    return rc;
}

// Serves the best configurations, and prints the answer after the command that repeats it.
static int serve(context *c, dsc_error *err)
{
    cli_words w = {0};
    size_t methods = 0;
    int rc = load_words(c, &w, dsc_trace_path(c->s.trace), err);
    if (!rc)
        rc = cli_advise_load_methods(&w, &methods, c->s.trace, &c->found, c->standing, c->use,
                                     c->call, err);
    if (!rc && !methods) {
        if (!c->call->json)
            puts("\nUnder load\n  No method that was tried can be served.");
        c->under_load = false;
    } else if (!rc) {
        if (!c->call->json)
            print_command(&w);
        rc = run_serve(c, &w, err);
    }
    cli_words_fini(&w);
    return rc;
}

// --- output --------------------------------------------------------------------------------------

// Conditions under which the figures hold, from facts of the data.
static void print_caveats(const context *c)
{
    puts("\nConditions");
    if (c->stopped)
        printf("  The search was interrupted: the verdict is on the %zu configurations that were "
               "finished.\n",
               c->found.trials);
    printf("  The verdict is chosen on %zu requests and judged on %zu others.\n",
           c->found.selection, c->found.test);
    if (c->found.test < 30)
        printf("  With only %zu test requests the intervals are too narrow.\n", c->found.test);
    cli_advise_print_facts(&c->facts);
    if (c->s.cost.caveat)
        printf("  About the costs: %s.\n", c->s.cost.caveat);
    if (c->preset)
        printf("  The roofline has the shares and overheads of %s, because there are none of %s.\n",
               c->preset, cli_engine_word[c->use->engine]);
    if (!strcmp(c->s.cost.type->name, "unit"))
        puts("  Without costs there is no verdict: give --target-shape and --gpu, or --cost with a "
             "table of draftscope live profile (see: draftscope list costs).");
    if (c->s.cost.type->linear && c->s.cost.note[0])
        printf("  Cost: %s.\n", c->s.cost.note);
    if (c->s.cost.spread_caveat[0])
        printf("  Cost: %s.\n", c->s.cost.spread_caveat);
    printf("  Not modeled: %s.\n", cli_tune_not_modeled(&c->s.cost));
}

// The recording that would answer a method.
static const char *recording_for(const dsc_drafter_type *d, const char *why)
{
    return d->needs_draft && strstr(why, "cost model")
               ? "give a cost with the draft model: --draft-shape, or a third number of linear"
           : !strcmp(d->recording, "none") ? "run it live: draftscope live run"
           : d->needs_draft ? "record the draft model: draftscope live record --draft DIR"
           : d == &dsc_drafter_recorded
               ? "import accept lengths: draftscope trace import --format acclen"
               : "import logs with the documents of the prompts as references";
}

// What a method needs, "needs a third model"; *length without what follows.
static const char *need_of(const char *why, int *length)
{
    const char *needs = strstr(why, "needs ");
    needs = needs ? needs : why;
    *length = (int)strcspn(needs, ",;");
    return needs;
}

// A line for each recording, with the methods that it would answer, and what they need where that
// is one method.
static void print_missing(const context *c)
{
    bool any = false, printed[CANDIDATES] = {false};
    for (size_t m = 0; m < CANDIDATES; m++) {
        const char *recording = recording_for(candidates[m].drafter, c->why[m]);
        int length, methods = 0;
        if (c->rule[m] || printed[m])
            continue;
        puts(any ? "" : "\nWhat these data cannot answer, and what would");
        for (size_t o = m; o < CANDIDATES; o++) {
            if (c->rule[o] || strcmp(recording_for(candidates[o].drafter, c->why[o]), recording))
                continue;
            printed[o] = true;
            printf("%s%s", methods++ ? ", " : "  ", candidates[o].drafter->name);
        }
        any = true;
        const char *needs = need_of(c->why[m], &length);
        printf(": %.*s%s%s", methods == 1 ? length : 0, needs, methods == 1 ? ": " : "", recording);
    }
    if (any)
        puts("");
}

static int write_files(context *c, dsc_error *err)
{
    dsc_outfile f = {0};
    const char *result[] = {c->tsv, c->load_tsv};
    const dsc_report_options o = {.force = c->call->force};
    int rc = dsc_outfile_open(&f, c->tsv, c->call->force, err);
    if (!rc) {
        cli_result_print(&c->table, false, true, f.stream);
        rc = dsc_outfile_commit(&f, err);
    }
    dsc_outfile_abort(&f);
    // gnuplot may have got the signal as well.
    return rc || c->stopped ? rc
                            : dsc_report_write(result, c->under_load ? 2 : 1, c->html, &o, err);
}

static int describe(context *c, dsc_buffer *lines, dsc_error *err)
{
    const cli_tune_naming name = {"speedup", "grid"};
    int rc = cli_comments(&c->table, c->s.trace, c->call->seed, c->cost, err);
    if (!rc && c->stopped)
        rc = dsc_table_comment(&c->table, "interrupted", "configurations are missing", err);
    rc = rc ?: cli_tune_describe(&c->table, &c->found, c->standing, &name, c->use, c->verdict, err);
    if (!rc && c->use)
        rc = cli_tune_engine_lines(lines, &c->found, c->standing, c->use, c->verdict, err);
    rc = rc ?: cli_tune_comment_lines(&c->table, "engine_line", lines->data, err);
    return rc ? rc : cli_tune_rows(&c->table, &c->found, c->standing, 0, err);
}

// What was found on the terminal, before anything is written.
static int print(const context *c, const char *lines, dsc_error *err)
{
    if (c->call->json) {
        cli_result_print(&c->table, true, true, stdout);
        return DSC_OK;
    }
    const dsc_trace_info *info = dsc_trace_get_info(c->s.trace);
    printf("%s: %" PRId64 " requests, %" PRId64 " output tokens; cost %s\n\n",
           dsc_trace_path(c->s.trace), info->requests, info->output_tokens, c->cost);
    int rc = cli_tune_print_verdicts(&c->found, c->standing, c->verdict, c->use, err);
    if (rc)
        return rc;
    print_caveats(c);
    print_missing(c);
    if (c->use)
        printf("\nSettings of %s\n%s", cli_engine_word[c->use->engine], lines);
    return DSC_OK;
}

// A server that cannot be simulated does not take the verdict away: the error is returned last.
static int report(context *c, dsc_error *err)
{
    dsc_buffer lines = {0};
    dsc_error load = {0};
    int rc = describe(c, &lines, err), load_rc = DSC_OK;
    rc = rc ?: print(c, lines.data, err);
    dsc_buffer_fini(&lines);
    if (!rc && c->under_load && !c->stopped)
        load_rc = serve(c, &load);
    c->stopped = c->stopped || load_rc == DSC_EINTERRUPT;
    c->under_load = c->under_load && !load_rc;
    if (!rc)
        rc = write_files(c, err); // last: the verdict does not depend on the disk
    if (rc)
        return rc;
    if (c->stopped)
        return dsc_fail(err, DSC_EINTERRUPT,
                        "interrupted: %zu configurations were finished and are in %s; draftscope "
                        "report writes a report of it",
                        c->found.trials, c->tsv);
    if (!c->call->json)
        printf("\nWritten: %s (%zu configurations), %s%s%s (report)\n", c->tsv, c->found.trials,
               c->under_load ? c->load_tsv : "", c->under_load ? " (loads), " : "", c->html);
    return load_rc ? dsc_fail(err, load_rc, "under load: %s", load.message) : DSC_OK;
}

// --target-shape and --gpu are another way to write the cost of a roofline, and without a cost
// --metrics is one.
static int read_cost(context *c, dsc_error *err)
{
    const dsc_option_value *value = c->call->value;
    const bool shape = value[TARGET_SHAPE].given, gpu = value[GPU].given,
               measured = value[METRICS].given && !value[COST].given;
    dsc_buffer b = {0};
    int rc = DSC_OK;
    if (shape != gpu || (value[DRAFT_SHAPE].given && !shape))
        return dsc_fail(err, DSC_EUSAGE, "--target-shape and --gpu are given together");
    if (shape && value[COST].given)
        return dsc_fail(err, DSC_EUSAGE, "--target-shape and --cost are two ways to give a cost");
    rc = shape      ? dsc_buffer_printf(&b, err, "roofline:%s,%s,%s", value[TARGET_SHAPE].text,
                                        value[DRAFT_SHAPE].text, value[GPU].text)
         : measured ? dsc_buffer_printf(&b, err, "prometheus:%s", value[METRICS].text)
                    : dsc_buffer_puts(&b, value[COST].text, err);
    if (!rc && c->use)
        rc = cli_advise_preset(&b, cli_engine_word[c->use->engine], &c->preset, err);
    c->cost = b.data;
    return rc ? rc : dsc_cost_parse(&c->s.cost, c->cost, err);
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    bool head = false;
    const char *metrics = call->value[METRICS].text;
    c.engine.engine = (cli_engine)call->value[ENGINE].integer;
    c.use = call->value[ENGINE].given ? &c.engine : NULL;
    int rc = metrics ? cli_advise_check_metrics(metrics, err) : DSC_OK;
    rc = rc ?: read_cost(&c, err);
    if (rc == DSC_EINPUT && metrics && !call->value[COST].given)
        (void)cli_advise_metrics(metrics, call->json, NULL); // worth having without a cost
    rc = rc ?: check_load(&c, err);
    if (!rc)
        rc = dsc_option_list(&options[BATCH], call->value[BATCH].text, &c.s.batch, &c.s.batches,
                             err);
    c.s.run = (dsc_run_options){.threads = call->threads,
                                .seed = call->seed,
                                .widths = !rc && !c.s.cost.type->linear,
                                .progress = on_progress,
                                .user = &c};
    rc = rc ?: open_logs(&c, err);
    if (!rc && metrics)
        rc = cli_advise_metrics(metrics, call->json, err);
    rc = rc ?: cli_recorded_head(&head, c.s.trace, err);
    if (!rc)
        c.engine.kind = cli_tune_draft_kind(&call->value[DRAFT_KIND], head);
    rc = rc ?: cli_advise_facts_of(&c.facts, c.s.trace, err);
    rc = rc ?: plan_load(&c, err);
    rc = rc ?: keep_batches(&c, err);
    rc = rc ?: tune(&c, err);
    rc = rc ?: report(&c, err);
    context_fini(&c);
    return rc;
}

const cli_command cli_advise = {
    .name = "advise",
    .summary = "from logs to a verdict: which method and setting, at which batch size",
    CLI_OPTIONS(options),
    .usage = "advise LOGS... --cost COST|--target-shape SHAPE --gpu NAME [--engine NAME] [OPTIONS]",
    .about =
        "Imports logs (or takes a trace), tries every method that the data can answer, and prints "
        "for each batch size which configuration to run, with the 95 % interval of its speedup on "
        "requests that it was not chosen on, or to leave speculation off. With arrivals it also "
        "says up to which load speculation pays. It lists what the data "
        "cannot answer, prints the settings of an inference engine, and writes the table and a "
        "report. The imported trace is used again while the logs stay the same.",
    .least = 1,
    .most = -1,
    .what = "log files or a trace",
    .fields = {{"Columns", cli_tune_columns, CLI_TUNE_COLUMNS}},
    .execute = execute,
};

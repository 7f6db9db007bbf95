// SPDX-License-Identifier: Apache-2.0
// draftscope live run: runs a method on real models, measures it, and compares it with plain
// decoding on request.
#include "base/outfile.h"
#include "cli/method.h"
#include "live/program/live.h"
#include "live/program/run_detail.h"
#include "live/program/run_report.h"
#include "traces/import/import_record.h"
#include "cli/guard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    METHOD,
    RULE,
    PROMPTS,
    PROMPT,
    REPLAY,
    REPLAY_DRAFT,
    REQUESTS,
    SKIP,
    MAX_TOKENS,
    BASELINE,
    OUTPUT,
    FORCE,
    JSON,
    SEED,
    PROGRESS,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "verification rule (default: greedy at temperature 0, else rejection, kseq or "
             "specinfer, by how the method drafts)"},
    {.name = "prompts", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "prompts as JSON lines {\"prompt\": TEXT or ids, \"references\": [...]}, plain, .gz "
             "or .zst; - is standard input"},
    {.name = "prompt", .letter = 'p', .kind = DSC_OPTION_FLAG,
     .help = "take the arguments as prompts"},
    {.name = "replay", .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "replay the prompts and outputs of a trace: the models run every pass of the steps "
             "that draftscope sim takes on it, and their own tokens are ignored"},
    {.name = "replay-draft", .kind = DSC_OPTION_FLAG,
     .help = "with --replay: the trace decides which draft tokens are accepted. Greedy drafts are "
             "accepted by their recorded ranks; for sampled drafts, the number accepted is sampled "
             "from the recorded acceptance distribution of --rule"},
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000, .help = "number of prompts of the file or trace to run; 0: all"},
    {.name = "skip", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000,
     .help = "skip the first N prompts; the others keep their index and random seed"},
    {.name = "max-tokens", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "256", .min = 1,
     .max = 1 << 24,
     .help = "maximum new tokens per request; generation stops earlier at EOS"},
    {.name = "baseline", .kind = DSC_OPTION_FLAG,
     .help = "also decode the same requests without drafts: adds the measured speedup and, at "
             "temperature 0, whether the outputs are equal"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE.jsonl",
     .help = "write texts and tokens to this file, in the format of trace import --format jsonl"},
    CLI_OPTION_FORCE,
    {.name = "json", .kind = DSC_OPTION_FLAG,
     .help = "print one JSON object and no texts; a file of such lines is the input of draftscope "
             "validate --live"},
    CLI_OPTION_SEED,
    CLI_OPTION_PROGRESS,
};
// clang-format on
static const char usage[] =
    "live run --target DIR --method NAME --prompts FILE|-p TEXT...|--replay NAME.dst "
    "[OPTIONS]";
static const char about[] =
    "Runs a drafting method on real models: prints the outputs, the drafted and accepted tokens, "
    "and the seconds. When interrupted, it finishes the step and prints the results so far.";

typedef struct context {
    const dsc_option_value *value, *models;
    live_pair pair;
    live_prompts prompts;
    dsc_config config, none;
    const dsc_verifier_type *rule;
    dsc_trace *replayed;      // --replay
    live_draft_record record; // --replay-draft
    live_run run, plain;
    live_report report;
    live_detail detail;
    dsc_outfile output;
    cli_progress progress;
    int64_t done;   // output tokens of finished requests
    int32_t *token; // a copy of the method's output
    float *margin;
    size_t token_capacity, margin_capacity;
} context;

// --- what was written ----------------------------------------------------------------------------

static live_output output_of(const context *c)
{
    const dsc_model *m = live_session_model(c->pair.session[LIVE_TARGET]);
    return (live_output){m->output, live_session_margins(c->pair.session[LIVE_TARGET]), m->length};
}

// Copies the method's output, which plain decoding in the same session would overwrite.
static int copy_output(context *c, live_output *out, dsc_error *err)
{
    const live_output now = output_of(c);
    const size_t n = (size_t)now.count;
    int rc = dsc_resize(&c->token, &c->token_capacity, n + 1, err);
    if (!rc)
        rc = dsc_resize(&c->margin, &c->margin_capacity, n + 1, err);
    if (rc || !n)
        return rc;
    memcpy(c->token, now.token, n * sizeof *c->token);
    memcpy(c->margin, now.margin, n * sizeof *c->margin);
    *out = (live_output){c->token, c->margin, now.count};
    return DSC_OK;
}

// The text of an output; an empty buffer if there is none: no tokenizer, or ids without a text.
static int decode(const context *c, const live_output *out, dsc_buffer *text)
{
    dsc_error ignored;
    if (!c->pair.tokenizer)
        return DSC_OK;
    int rc = dsc_import_decode(c->pair.tokenizer, out->token, (size_t)out->count, text, &ignored);
    if (rc)
        dsc_buffer_fini(text);
    return rc == DSC_EINPUT ? DSC_OK : rc;
}

static void print_text(const context *c, const dsc_request *q, const live_output *out,
                       const dsc_buffer *text)
{
    if (c->prompts.count > 1)
        printf("--- %.*s\n", (int)q->id.length, q->id.bytes);
    if (text->data)
        fwrite(text->data, 1, text->length, stdout);
    for (int64_t i = 0; i < out->count && !text->data; i++)
        printf("%s%" PRId32, i ? " " : "", out->token[i]);
    putchar('\n');
    fflush(stdout);
}

// Builds {"text": ..., "tokens": [...]}. `text` NULL or not UTF-8: tokens only.
static json_t *text_object(const char *text, size_t length, const int32_t *token, int64_t count)
{
    json_t *o = json_object(), *ids = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(ids, json_integer(token[i]));
    if (text)
        json_object_set_new(o, "text", json_stringn(text, length));
    json_object_set_new(o, "tokens", ids);
    return o;
}

static json_t *reference_list(const live_prompt *q)
{
    json_t *list = json_array();
    for (int64_t r = 0; r < q->references; r++) {
        const char *text = q->reference_text[r];
        json_t *o = text_object(text, text ? strlen(text) : 0, q->token + q->prompt + q->offset[r],
                                q->offset[r + 1] - q->offset[r]);
        json_object_set_new(o, "kind",
                            json_string(q->kind[r] == DSC_REFERENCE_TURN ? "turn" : "document"));
        json_array_append_new(list, o);
    }
    return list;
}

// Writes a line of --output in our own format, so that it can be imported.
static int write_line(context *c, const dsc_request *q, const live_output *out,
                      const dsc_buffer *text, bool finished, dsc_error *err)
{
    const live_prompt *p = &c->prompts.item[q->index - c->prompts.skipped];
    const live_measure *m = &c->run.measure;
    const dsc_model *target = live_session_model(c->pair.session[LIVE_TARGET]);
    const bool ended = out->count && dsc_model_is_end(target, out->token[out->count - 1]);
    json_t *line = json_object(), *about_run = json_object();
    json_object_set_new(line, "id", json_string(p->id));
    json_object_set_new(
        line, "prompt",
        text_object(p->text, p->text ? strlen(p->text) : 0, q->prompt.id, q->prompt.count));
    json_object_set_new(line, "output",
                        text_object(text->data, text->length, out->token, out->count));
    if (p->references)
        json_object_set_new(line, "references", reference_list(p));
    json_object_set_new(line, "finish_reason", json_string(ended ? "stop" : "length"));
    json_object_set_new(about_run, "finished", json_boolean(finished));
    json_object_set_new(about_run, "target_calls", json_integer(c->run.counts.target_calls));
    json_object_set_new(about_run, "time_s", json_real(m->time_s));
    json_object_set_new(about_run, "prefill_s", json_real(m->prefill_s));
    json_object_set_new(about_run, "draft_s", json_real(m->draft_s));
    json_object_set_new(about_run, "verify_s", json_real(m->verify_s));
    json_object_set_new(line, "metadata", about_run);
    int rc = json_dumpf(line, c->output.stream, JSON_COMPACT);
    json_decref(line);
    if (!rc)
        rc = fputc('\n', c->output.stream) == EOF;
    return rc ? dsc_fail(err, DSC_EIO, "%s: cannot write request %" PRId64, c->output.path,
                         q->index)
              : DSC_OK;
}

static int keep_output(context *c, const dsc_request *q, const live_output *out, bool finished,
                       dsc_error *err)
{
    dsc_buffer text = {0};
    int rc = decode(c, out, &text);
    if (!rc && !c->value[JSON].given)
        print_text(c, q, out, &text);
    if (!rc && c->output.stream)
        rc = write_line(c, q, out, &text, finished, err);
    dsc_buffer_fini(&text);
    return rc;
}

// --- requests ------------------------------------------------------------------------------------

static int on_step(void *user, const dsc_step_record *step, dsc_error *err)
{
    (void)user, (void)step;
    return cli_signal() ? dsc_fail(err, DSC_EINTERRUPT, "stopped") : DSC_OK;
}

// During a run, DSC_ENOMEM is a lack of device memory: finished requests are kept, as when a device
// is absent.
static int request_failed(const context *c, int64_t i, int rc, dsc_error *err)
{
    char location[512];
    live_prompts_location(&c->prompts, (size_t)i, location, sizeof location);
    if (rc == DSC_ENOMEM)
        rc = err->status = DSC_EABSENT;
    return dsc_error_prefix(err, rc, "%s", location);
}

// For sampled outputs, computes their likelihood under the target; the clock has stopped.
static int score_output(context *c, const dsc_request *q, const live_output *out, dsc_error *err)
{
    const live_pair *p = &c->pair;
    live_likelihood x;
    if (!c->value[JSON].given || c->replayed || p->sampling.temperature == 0)
        return DSC_OK;
    int rc = live_output_likelihood(p->session[LIVE_TARGET], p->weights[LIVE_TARGET]->config.vocab,
                                    &p->sampling, q->prompt,
                                    (dsc_token_view){out->token, out->count}, &x, err);
    if (rc)
        return request_failed(c, q->index - c->prompts.skipped, rc, err);
    live_detail_likelihood(&c->detail, x);
    return DSC_OK;
}

// Runs a request by the method and directly after by plain decoding, so that both meet the same
// machine state.
static int run_request(context *c, int64_t i, dsc_error *err)
{
    const dsc_request q = live_prompts_request(&c->prompts, (size_t)i);
    live_output out = {0};
    int rc = live_run_request(&c->run, &q, err);
    if (rc && rc != DSC_EINTERRUPT)
        return request_failed(c, i, rc, err);
    const int stopped = rc;
    rc = copy_output(c, &out, err);
    if (!rc)
        live_report_add(&c->report, &c->run);
    if (!rc)
        rc = live_detail_add(&c->detail, &c->run, (dsc_token_view){out.token, out.count}, err);
    if (!rc)
        rc = keep_output(c, &q, &out, !stopped, err);
    if (!rc && !stopped)
        rc = score_output(c, &q, &out, err);
    c->done += out.count;
    if (rc || stopped || !c->value[BASELINE].given)
        return rc ? rc : stopped;
    rc = live_run_request(&c->plain, &q, err);
    if (rc)
        return rc == DSC_EINTERRUPT ? rc : request_failed(c, i, rc, err);
    const live_output plain = output_of(c);
    live_detail_compare(&c->detail, &c->plain.measure, plain.count);
    return live_report_compare(&c->report, i, &out, &c->run.measure, &plain, &c->plain.measure,
                               err);
}

// Runs a few uncounted tokens both ways: the first use of memory and kernels would slow down
// whichever comes first.
static int rehearse(context *c, dsc_error *err)
{
    enum { TOKENS = 8 };
    const dsc_request q = live_prompts_request(&c->prompts, 0);
    live_run *const both[] = {&c->run, &c->plain};
    int rc = DSC_OK;
    for (int b = 0; b < 2 && !rc; b++) {
        const int64_t most = both[b]->max_tokens;
        both[b]->max_tokens = most < TOKENS ? most : TOKENS;
        both[b]->rehearsal = true;
        rc = live_run_request(both[b], &q, err);
        both[b]->max_tokens = most;
        both[b]->rehearsal = false;
    }
    return rc && rc != DSC_EINTERRUPT ? request_failed(c, 0, rc, err) : rc;
}

static int run_all(context *c, dsc_error *err)
{
    const int64_t count = (int64_t)c->prompts.count;
    int rc = c->value[BASELINE].given ? rehearse(c, err) : DSC_OK;
    for (int64_t i = 0; i < count && !rc; i++) {
        rc = run_request(c, i, err);
        if (!rc && cli_progress_step(&c->progress, i + 1, count))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    return rc;
}

// --- the result ----------------------------------------------------------------------------------

static void print_summary(const dsc_table *t)
{
    putchar('\n');
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *x = dsc_table_at(t, 0, c);
        const char *name = t->column[c].name;
        if (x->type == DSC_CELL_TEXT)
            printf("%-22s%s\n", name, x->text);
        else if (x->type == DSC_CELL_INT)
            printf("%-22s%" PRId64 "\n", name, x->i);
        else if (x->type == DSC_CELL_REAL)
            printf("%-22s%.4f\n", name, x->r);
    }
}

// Reports where rounding, or an error, decided.
static void print_divergences(const context *c)
{
    for (size_t i = 0; i < c->report.divergences; i++) {
        const live_divergence *d = &c->report.divergence[i];
        char location[512];
        live_prompts_location(&c->prompts, (size_t)d->request, location, sizeof location);
        fprintf(stderr,
                "draftscope: %s: output differs from plain decoding at token %" PRId64
                ", where the largest logit led by %.3g\n",
                location, d->position, d->margin);
    }
}

static int print_line(const context *c, const dsc_table *totals, bool interrupted, dsc_error *err)
{
    const live_origin origin = {.pair = &c->pair,
                                .models = c->models,
                                .prompts = &c->prompts,
                                .counts = &c->report.counts,
                                .trace_hash =
                                    c->replayed ? dsc_trace_get_info(c->replayed)->hash : NULL,
                                .seed = c->run.seed,
                                .max_tokens = c->run.max_tokens,
                                .replay_draft = c->run.record != NULL,
                                .baseline = c->value[BASELINE].given,
                                .interrupted = interrupted};
    dsc_table t = {0};
    int rc = live_detail_extend(&c->detail, &origin, totals, &t, err);
    if (!rc)
        dsc_table_write_jsonl_row(&t, 0, stdout);
    dsc_table_fini(&t);
    return rc;
}

static int print_result(const context *c, bool interrupted, dsc_error *err)
{
    dsc_table t = {0};
    int rc = live_report_table(&c->report, &t, err);
    if (!rc && c->value[JSON].given)
        rc = print_line(c, &t, interrupted, err);
    else if (!rc)
        print_summary(&t);
    dsc_table_fini(&t);
    print_divergences(c);
    return rc;
}

// Keeps finished requests, however the run ended.
static int finish(context *c, int rc, dsc_error *err)
{
    dsc_error second;
    int late = DSC_OK;
    cli_progress_end(&c->progress);
    if (rc == DSC_EIO || (rc && rc != DSC_EINTERRUPT && rc != DSC_EABSENT && !c->done))
        return rc;
    if (c->output.stream)
        late = dsc_outfile_commit(&c->output, &second);
    if (!late)
        late = print_result(c, rc != DSC_OK, &second);
    if (!rc && late)
        *err = second;
    return rc ? rc : late;
}

// --- before the first request --------------------------------------------------------------------

static int read_prompts(context *c, char **word, size_t words, dsc_error *err)
{
    const dsc_option_value *v = c->value;
    const live_pair *p = &c->pair;
    int rc = DSC_OK;
    if (c->replayed)
        return live_prompts_replay(&c->prompts, c->replayed, v[SKIP].integer,
                                   (size_t)v[REQUESTS].integer, p->config[LIVE_TARGET].vocab,
                                   v[REPLAY_DRAFT].given, err);
    if (!v[PROMPT].given)
        return live_prompts_read(&c->prompts, v[PROMPTS].text, v[SKIP].integer,
                                 (size_t)v[REQUESTS].integer, p->tokenizer,
                                 p->config[LIVE_TARGET].vocab, err);
    for (size_t i = 0; i < words && !rc; i++)
        rc =
            live_prompts_add(&c->prompts, word[i], p->tokenizer, p->config[LIVE_TARGET].vocab, err);
    return rc;
}

// Each prompt and its output must fit.
static int check_lengths(const context *c, dsc_error *err)
{
    const int64_t room = live_pair_room(&c->pair, &c->config);
    for (size_t i = 0; i < c->prompts.count; i++) {
        char location[512];
        const int64_t more = c->replayed ? c->prompts.item[i].output : c->run.max_tokens;
        if (c->prompts.item[i].prompt + more <= room)
            continue;
        live_prompts_location(&c->prompts, i, location, sizeof location);
        return dsc_fail(err, c->prompts.item[i].line ? DSC_EINPUT : DSC_EUSAGE,
                        "%s: a prompt of %" PRId64 " tokens with %s %" PRId64
                        " exceeds the context of %" PRId64 " tokens",
                        location, c->prompts.item[i].prompt,
                        c->replayed ? "an output of" : "--max-tokens", more, room);
    }
    return DSC_OK;
}

static int check_words(const dsc_option_value *value, size_t words, dsc_error *err)
{
    const int ways = value[PROMPT].given + value[PROMPTS].given + value[REPLAY].given;
    if (ways != 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "--prompts FILE, -p TEXT... or --replay NAME.dst expected, not %s",
                        ways ? "several" : "none of them");
    if (value[REPLAY_DRAFT].given && !value[REPLAY].given)
        return dsc_fail(err, DSC_EUSAGE, "--replay-draft requires --replay NAME.dst");
    if (value[MAX_TOKENS].given && value[REPLAY].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "--max-tokens and --replay cannot be combined: outputs are as recorded");
    return value[PROMPT].given ? cli_check_positionals(words, 1, -1, "-p: a prompt", err)
                               : cli_check_positionals(words, 0, 0, "no argument without -p", err);
}

static int choose_rule(context *c, bool greedy, dsc_error *err)
{
    const char *name = c->value[RULE].text;
    c->rule = name ? dsc_verifier_find(name, err) : dsc_pair_rule(c->config.drafter, greedy);
    return c->rule ? DSC_OK : DSC_EUSAGE;
}

static int prepare_runs(context *c, dsc_error *err)
{
    const uint64_t seed = (uint64_t)c->value[SEED].integer;
    const bool replayed = c->replayed != NULL;
    const int64_t most = replayed ? dsc_trace_get_info(c->replayed)->max_output_tokens
                                  : c->value[MAX_TOKENS].integer;
    const bool greedy = c->rule->greedy || replayed;
    const live_draft_record *record = c->value[REPLAY_DRAFT].given ? &c->record : NULL;
    c->none.drafter = &dsc_drafter_none;
    live_detail_init(&c->detail);
    int rc =
        record ? live_draft_record_find(&c->record, c->replayed, &c->config, c->rule, err) : DSC_OK;
    if (!rc)
        rc = live_run_init(&c->run, &c->pair, &c->config, c->rule, seed, most, replayed, record,
                           err);
    if (!rc)
        rc = live_run_init(&c->plain, &c->pair, &c->none, dsc_pair_rule(c->none.drafter, greedy),
                           seed, most, replayed, NULL, err);
    c->plain.plain = true;
    c->run.step = c->plain.step = on_step;
    c->report =
        (live_report){.config = &c->config, .rule = c->rule, .baseline = c->value[BASELINE].given};
    return rc ? rc : live_run_counts(&c->run, &c->report.counts, err);
}

// A recorded draft may continue after the end of its output, as far as the draft model could have
// generated.
static int64_t recorded_nodes(const context *c)
{
    const int64_t width = dsc_config_width(&c->config), own = dsc_config_draft_width(&c->config);
    const int64_t most = (width > own ? width : own) - 1;
    const int64_t limit = live_draft_record_limit(&c->record);
    return most < limit ? most : limit;
}

// Runs the cheap checks first, then loads the weights.
static int prepare(context *c, const dsc_option_value *pair, char **word, size_t words,
                   dsc_error *err)
{
    const live_want want = live_want_of(c->config.drafter);
    // In a replay the record contains all answers of the target.
    const bool greedy = pair[LIVE_PAIR_TEMPERATURE].real == 0 || c->value[REPLAY].given;
    int rc = check_words(c->value, words, err);
    if (!rc && c->value[REPLAY].given)
        rc = dsc_trace_open(&c->replayed, c->value[REPLAY].text, err);
    if (!rc)
        rc = choose_rule(c, greedy, err);
    if (!rc)
        rc = prepare_runs(c, err);
    c->report.texts = greedy || (c->rule && c->rule->greedy);
    if (!rc && c->value[OUTPUT].text)
        rc = dsc_outfile_check(c->value[OUTPUT].text, c->value[FORCE].given, err);
    if (!rc)
        rc = live_pair_read(&c->pair, pair, &want, err);
    if (!rc)
        rc = live_pair_check_heads(&c->pair, &c->config, err);
    if (!rc)
        rc = read_prompts(c, word, words, err);
    if (!rc)
        rc = check_lengths(c, err);
    if (!rc)
        rc = live_pair_open(&c->pair, pair, &want, err);
    if (!rc && c->run.record)
        c->pair.least_nodes = recorded_nodes(c);
    if (!rc && c->pair.note)
        fprintf(stderr, "draftscope: note: %s\n", c->pair.note);
    return rc ? rc
              : live_pair_sessions(&c->pair, &c->config, c->prompts.longest + c->run.max_tokens,
                                   err);
}

static void context_fini(context *c)
{
    dsc_outfile_abort(&c->output);
    live_report_fini(&c->report);
    live_detail_fini(&c->detail);
    live_run_fini(&c->run);
    live_run_fini(&c->plain);
    live_prompts_free(&c->prompts);
    dsc_trace_close(c->replayed);
    live_pair_close(&c->pair);
    dsc_config_fini(&c->config);
    free(c->token);
    free(c->margin);
}

static void print_help(int argc, char **argv)
{
    const cli_help_section own[] = {{"Options", options, OPTIONS},
                                    {"Models", live_pair_options, LIVE_PAIR_OPTIONS}};
    size_t fields;
    const dsc_column *field = live_report_fields(&fields);
    cli_print_method_help(usage, about, own, 2, argc, argv);
    cli_print_fields("Measured fields", field, fields);
    field = live_detail_fields(&fields);
    cli_print_fields("Fields of --json only", field, fields);
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        print_help(argc, argv);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS], pair[LIVE_PAIR_OPTIONS], parameter[DSC_MAX_PARAMETERS];
    context c = {.value = value, .models = pair};
    size_t words;
    dsc_option_set sets[3] = {
        {.table = options, .count = OPTIONS, .value = value},
        {.table = live_pair_options, .count = LIVE_PAIR_OPTIONS, .value = pair},
    };
    int rc = cli_find_method(sets, 2, argc, argv, &c.config.drafter, err);
    if (rc)
        return rc;
    sets[2] = (dsc_option_set){.table = c.config.drafter->option,
                               .count = c.config.drafter->option_count,
                               .value = parameter};
    rc = cli_parse(sets, 3, argc, argv, &words, err);
    if (!rc && !cli_apply_preset(value[METHOD].text, c.config.drafter, parameter))
        live_pair_default_tree(pair, c.config.drafter, parameter);
    if (!rc)
        rc = cli_config_fill(&c.config, parameter, err);
    if (!rc)
        rc = prepare(&c, pair, argv, words, err);
    if (!rc) {
        // Texts and a progress bar cannot share the terminal.
        cli_progress_init(&c.progress,
                          value[JSON].given ? value[PROGRESS].integer : CLI_PROGRESS_NEVER,
                          "requests");
        cli_set_patience(LIVE_PATIENCE_S);
        if (value[OUTPUT].text)
            rc = dsc_outfile_open(&c.output, c.value[OUTPUT].text, c.value[FORCE].given, err);
        if (!rc)
            rc = finish(&c, run_all(&c, err), err);
    }
    context_fini(&c);
    return rc;
}

const cli_command live_cmd_run = {
    .name = "run",
    .summary = "run a method on real models and measure it",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

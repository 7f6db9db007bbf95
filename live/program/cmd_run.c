// SPDX-License-Identifier: Apache-2.0
// draftscope live run: runs a method on real models, measures it, and compares it with plain
// decoding on request.
#include "base/json_text.h"
#include "base/outfile.h"
#include "live/program/job.h"
#include "live/program/live.h"
#include "live/program/run_detail.h"
#include "live/program/step_price.h"
#include "traces/import/import_record.h"
#include "cli/guard.h"

#include <inttypes.h>
#include <math.h>
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
    COST,
};
// clang-format off
static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "verification rule (default: greedy at temperature 0, else rejection, kseq or "
             "specinfer, by how the method drafts)"},
    {.name = "prompts", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = LIVE_PROMPTS_HELP},
    {.name = "prompt", .letter = 'p', .kind = DSC_OPTION_FLAG,
     .help = "take the arguments as prompts"},
    {.name = "replay", .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "replay the prompts and outputs of a trace: the models run every pass of the steps "
             "that draftscope sim takes on it, and their own tokens are ignored"},
    {.name = "replay-draft", .kind = DSC_OPTION_FLAG,
     .help = "with --replay: the trace decides which draft tokens are accepted. Greedy drafts are "
             "accepted by their recorded ranks; for sampled drafts, the number accepted is sampled "
             "from the recorded acceptance distribution of --rule. With the methods recorded, "
             "recorded-steps and adaptive-recorded, it is the recorded accept length, and the "
             "draft model makes --draft-passes passes for a draft"},
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
    {.name = "cost", .kind = DSC_OPTION_TEXT, .metavar = "table:FILE|linear:...",
     .help = "cost model of these models' passes, such as the table of draftscope live profile: "
             "prints before the run above how many tokens per step the method pays, and after it "
             "the predicted and the measured speedup"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE.jsonl",
     .help = "write texts and tokens to this file, in the format of trace import --format jsonl; "
             "- is standard output, and the results go to standard error"},
    LIVE_OPTIONS_TEXT,
    CLI_OPTION_FORCE,
    {.name = "json", .kind = DSC_OPTION_FLAG,
     .help = "print one JSON object and no texts; a file of such lines is the input of draftscope "
             "validate --live"},
    CLI_OPTION_SEED,
    CLI_OPTION_PROGRESS,
};
// clang-format on

typedef struct context {
    const cli_call *call;
    live_job job;
    dsc_trace *replayed;      // --replay
    live_draft_record record; // of `replayed`; acceptances with --replay-draft only
    dsc_config none;
    live_run plain;
    live_report report;
    live_detail detail;
    live_draft_vocabulary drafted;
    dsc_cost cost;   // --cost; its type is NULL without
    dsc_price price; // of the run, once it has ended
    dsc_outfile output;
    cli_progress progress;
    dsc_arena arena; // a copy of the method's output
} context;

// Whether outputs go to standard output, and so nothing else does.
static bool is_standard(const char *out)
{
    return out && strcmp(out, "-") == 0;
}

// --- what was written ----------------------------------------------------------------------------

static live_output output_of(const context *c)
{
    const dsc_model *m = live_session_model(c->job.pair.session[LIVE_TARGET]);
    return (live_output){m->output, live_session_margins(c->job.pair.session[LIVE_TARGET]),
                         m->length};
}

// Copies the method's output, which plain decoding in the same session would overwrite.
static int copy_output(context *c, live_output *out, dsc_error *err)
{
    const live_output now = output_of(c);
    const size_t n = (size_t)now.count;
    int32_t *token;
    float *margin;
    dsc_arena_reset(&c->arena);
    int rc = dsc_arena_new(&c->arena, &token, n, err);
    if (!rc)
        rc = dsc_arena_new(&c->arena, &margin, n, err);
    if (rc || !n)
        return rc;
    memcpy(token, now.token, n * sizeof *token);
    memcpy(margin, now.margin, n * sizeof *margin);
    *out = (live_output){token, margin, now.count};
    return DSC_OK;
}

// The text of an output; an empty buffer if there is none: no tokenizer, or ids without a text.
static int decode(const context *c, const live_output *out, dsc_buffer *text)
{
    dsc_error ignored;
    if (!c->job.pair.tokenizer)
        return DSC_OK;
    int rc =
        dsc_import_decode(c->job.pair.tokenizer, out->token, (size_t)out->count, text, &ignored);
    if (rc)
        dsc_buffer_fini(text);
    return rc == DSC_EINPUT ? DSC_OK : rc;
}

static void print_text(const context *c, const dsc_request *q, const live_output *out,
                       const dsc_buffer *text)
{
    if (c->job.prompts.count > 1)
        printf("--- %.*s\n", (int)q->id.length, q->id.bytes);
    if (text->data)
        fwrite(text->data, 1, text->length, stdout);
    for (int64_t i = 0; i < out->count && !text->data; i++)
        printf("%s%" PRId32, i ? " " : "", out->token[i]);
    putchar('\n');
    fflush(stdout);
}

// Builds {"text": ..., "tokens": [...]}. Bytes NULL or not UTF-8: tokens only.
static json_t *text_object(dsc_text_view text, dsc_token_view tokens)
{
    json_t *o = json_object(), *ids = json_array();
    for (int64_t i = 0; i < tokens.count; i++)
        json_array_append_new(ids, json_integer(tokens.id[i]));
    if (text.bytes)
        json_object_set_new(o, "text", json_stringn(text.bytes, (size_t)text.length));
    json_object_set_new(o, "tokens", ids);
    return o;
}

static json_t *reference_list(const live_prompt *p)
{
    json_t *list = json_array();
    for (int64_t r = 0; r < p->request.references; r++) {
        const bool turn = p->request.reference_kind[r] == DSC_REFERENCE_TURN;
        json_t *o = text_object(p->reference_text ? p->reference_text[r] : (dsc_text_view){NULL, 0},
                                dsc_request_reference(&p->request, r));
        json_object_set_new(o, "kind", json_string(turn ? "turn" : "document"));
        json_array_append_new(list, o);
    }
    return list;
}

// Writes a line of --output in our own format, so that it can be imported.
static int write_line(context *c, const dsc_request *q, const live_output *out,
                      const dsc_buffer *text, bool finished, dsc_error *err)
{
    const live_measure *m = &c->job.run.measure;
    const dsc_model *target = live_session_model(c->job.pair.session[LIVE_TARGET]);
    const bool ended = (out->count && dsc_model_is_end(target, out->token[out->count - 1])) ||
                       (c->job.run.stop && c->job.run.stop->ended);
    json_t *references =
        q->references ? reference_list(&c->job.prompts.item[q->index - c->job.prompts.skipped])
                      : NULL;
    json_t *line = json_pack(
        "{s:o*, s:o, s:o, s:o*, s:s, s:{s:b, s:I, s:f, s:f, s:f, s:f}}", "id",
        json_stringn(q->id.bytes, (size_t)q->id.length), "prompt",
        text_object(q->prompt_text, q->prompt), "output",
        text_object((dsc_text_view){text->data, (int64_t)text->length},
                    (dsc_token_view){out->token, out->count}),
        "references", references, "finish_reason", ended ? "stop" : "length", "metadata",
        "finished", finished, "target_calls", (json_int_t)c->job.run.counts.target_calls, "time_s",
        m->time_s, "prefill_s", m->prefill_s, "draft_s", m->draft_s, "verify_s", m->verify_s);
    int rc = json_dumpf(line, c->output.stream, JSON_COMPACT);
    json_decref(line);
    if (!rc)
        rc = fputc('\n', c->output.stream) == EOF;
    return rc ? dsc_fail(err, DSC_EIO, "%s: cannot write request %" PRId64, c->output.path,
                         q->index)
              : DSC_OK;
}

// Opens the file of --output when there is something to keep: before, an interruption that is not
// waited for would leave it.
static int open_output(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    return call->out && !c->output.stream
               ? dsc_outfile_open(&c->output, call->out, call->force, err)
               : DSC_OK;
}

static int keep_output(context *c, const dsc_request *q, const live_output *out, bool finished,
                       dsc_error *err)
{
    dsc_buffer text = {0};
    int rc = decode(c, out, &text);
    if (!rc && !c->call->json && !is_standard(c->call->out))
        print_text(c, q, out, &text);
    if (!rc)
        rc = open_output(c, err);
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

// From the first step on there is something to keep.
static int on_kept_step(void *user, const dsc_step_record *step, dsc_error *err)
{
    cli_set_patience(LIVE_PATIENCE_S);
    return on_step(user, step, err);
}

// For sampled outputs, computes their likelihood under the target and what a reduced vocabulary of
// the draft model allows; the clock has stopped.
static int score_output(context *c, const dsc_request *q, const live_output *out, dsc_error *err)
{
    const live_pair *p = &c->job.pair;
    live_likelihood x;
    if ((!c->call->json && !c->drafted.in) || c->replayed || p->sampling.temperature == 0)
        return DSC_OK;
    int rc = live_output_likelihood(p->session[LIVE_TARGET], p->weights[LIVE_TARGET]->config.vocab,
                                    &p->sampling, q->prompt,
                                    (dsc_token_view){out->token, out->count}, &c->drafted, &x, err);
    if (rc == DSC_EINTERRUPT)
        return rc;
    if (rc)
        return live_job_failed(&c->job, (size_t)(q->index - c->job.prompts.skipped), rc, err);
    live_detail_likelihood(&c->detail, x);
    return DSC_OK;
}

// Runs a request by the method and directly after by plain decoding, so that both meet the same
// machine state.
static int run_request(context *c, int64_t i, dsc_error *err)
{
    const dsc_request q = c->job.prompts.item[i].request;
    live_output out = {0};
    int rc = live_run_request(&c->job.run, &q, err);
    if (rc && rc != DSC_EINTERRUPT)
        return live_job_failed(&c->job, (size_t)i, rc, err);
    const int stopped = rc;
    if (stopped && !c->job.run.counts.output_tokens) // before the first step
        return stopped;
    rc = copy_output(c, &out, err);
    if (!rc)
        live_report_add(&c->report, &c->job.run);
    if (!rc)
        rc = live_detail_add(&c->detail, &c->job.run, (dsc_token_view){out.token, out.count}, err);
    live_draft_vocabulary_add(&c->drafted, (dsc_token_view){out.token, out.count});
    if (!rc)
        rc = keep_output(c, &q, &out, !stopped, err);
    if (!rc && !stopped)
        rc = score_output(c, &q, &out, err);
    if (rc || stopped || !c->call->value[BASELINE].given)
        return rc ? rc : stopped;
    rc = live_run_request(&c->plain, &q, err);
    if (rc)
        return rc == DSC_EINTERRUPT ? rc : live_job_failed(&c->job, (size_t)i, rc, err);
    const live_output plain = output_of(c);
    live_detail_compare(&c->detail, &c->plain.measure, plain.count);
    return live_report_compare(&c->report, i, &out, &c->job.run.measure, &plain, &c->plain.measure,
                               err);
}

// Runs a few uncounted tokens both ways: the first use of memory and kernels would slow down
// whichever comes first.
static int rehearse(context *c, dsc_error *err)
{
    enum { TOKENS = 8 };
    const dsc_request q = c->job.prompts.item[0].request;
    live_run *const both[] = {&c->job.run, &c->plain};
    int rc = DSC_OK;
    for (int b = 0; b < 2 && !rc; b++) {
        const int64_t most = both[b]->max_tokens;
        both[b]->max_tokens = most < TOKENS ? most : TOKENS;
        both[b]->rehearsal = true;
        rc = live_run_request(both[b], &q, err);
        both[b]->max_tokens = most;
        both[b]->rehearsal = false;
    }
    return rc && rc != DSC_EINTERRUPT ? live_job_failed(&c->job, 0, rc, err) : rc;
}

static int run_all(context *c, dsc_error *err)
{
    const int64_t count = (int64_t)c->job.prompts.count;
    int rc = c->call->value[BASELINE].given ? rehearse(c, err) : DSC_OK;
    c->job.run.step = on_kept_step;
    for (int64_t i = 0; i < count && !rc; i++) {
        rc = run_request(c, i, err);
        if (!rc && cli_progress_step(&c->progress, i + 1, count))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    return rc ? rc : live_prompts_check(&c->job.prompts, err);
}

// --- the result ----------------------------------------------------------------------------------

static void print_summary(const dsc_table *t, FILE *f)
{
    fputc('\n', f);
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *x = dsc_table_at(t, 0, c);
        const char *name = t->column[c].name;
        if (x->type == DSC_CELL_TEXT)
            fprintf(f, "%-32s%s\n", name, x->text);
        else if (x->type == DSC_CELL_INT)
            fprintf(f, "%-32s%" PRId64 "\n", name, x->i);
        else if (x->type == DSC_CELL_REAL)
            fprintf(f, "%-32s%.4f\n", name, x->r);
    }
}

// Reports where rounding, or an error, decided.
static void print_divergences(const context *c)
{
    for (size_t i = 0; i < c->report.divergences; i++) {
        const live_divergence *d = &c->report.divergence[i];
        char location[512];
        live_prompts_location(&c->job.prompts, (size_t)d->request, location, sizeof location);
        fprintf(stderr,
                "draftscope: %s: output differs from plain decoding at token %" PRId64
                ", where the largest logit led by %.3g\n",
                location, d->position, d->margin);
    }
}

// Predicted and measured results on stderr. The run's passes may be outside of a table.
static void compare_with_cost(context *c)
{
    live_report *r = &c->report;
    const live_measure *m = &r->measure;
    dsc_error err;
    char measured[80] = "";
    c->price = (dsc_price){NAN, NAN, NAN, NAN, NAN, NAN};
    r->price = &c->price;
    if (dsc_price_run(&c->price, &c->cost, &r->counts, 1, &err)) {
        c->price = (dsc_price){NAN, NAN, NAN, NAN, NAN, NAN};
        fprintf(stderr, "draftscope: note: no predicted speedup: %s\n", err.message);
        return;
    }
    if (r->baseline)
        snprintf(measured, sizeof measured, ", measured %.2f", live_report_decode_speedup(r));
    fprintf(stderr,
            "draftscope: %.2f tokens per step, which cost %.2f plain tokens: predicted speedup "
            "%.2f%s; passes without prefill predicted %.3g s, measured %.3g s%s\n",
            (double)r->counts.output_tokens / (double)r->counts.target_calls,
            live_report_step_cost(r), c->price.speedup, measured, c->price.time_s,
            m->draft_s + m->verify_s, r->baseline ? "" : " (--baseline measures the speedup)");
}

static int print_result(context *c, bool interrupted, dsc_error *err)
{
    const live_run *run = &c->job.run;
    json_t *stops = c->job.stop_texts ? live_stops_json(&c->job) : NULL;
    char *stop = stops ? dsc_json_dump(stops, JSON_COMPACT) : NULL;
    json_decref(stops);
    const live_origin origin = {.pair = &c->job.pair,
                                .prompts = &c->job.prompts,
                                .counts = &c->report.counts,
                                .trace_hash =
                                    c->replayed ? dsc_trace_get_info(c->replayed)->hash : NULL,
                                .seed = run->seed,
                                .max_tokens = run->max_tokens,
                                .ends = &c->job.ends,
                                .stop = stop,
                                .replay_draft = run->record != NULL,
                                .baseline = c->report.baseline,
                                .interrupted = interrupted};
    live_row row = {.err = err};
    if (c->cost.type)
        compare_with_cost(c);
    live_report_put(&c->report, &row);
    live_report_put_vocabulary(&c->drafted, &row);
    if (c->call->json)
        live_detail_put(&c->detail, &origin, &row);
    int rc = live_row_end(&row);
    if (!rc && c->call->json)
        dsc_table_write_jsonl_row(&row.table, 0, stdout);
    else if (!rc)
        print_summary(&row.table, is_standard(c->call->out) ? stderr : stdout);
    live_row_fini(&row);
    free(stop);
    print_divergences(c);
    return rc;
}

// Keeps finished requests, however the run ended.
static int finish(context *c, int rc, dsc_error *err)
{
    dsc_error second;
    cli_progress_end(&c->progress);
    if (rc == DSC_EIO || (rc && rc != DSC_EABSENT && !c->report.counts.output_tokens))
        return rc == DSC_EINTERRUPT ? dsc_fail(err, rc, "interrupted: nothing was written") : rc;
    int late = open_output(c, &second);
    if (!late && c->output.stream)
        late = dsc_outfile_commit(&c->output, &second);
    if (!late)
        late = print_result(c, rc != DSC_OK, &second);
    if (!rc && late)
        *err = second;
    return rc ? rc : late;
}

// --- before the first request --------------------------------------------------------------------

static int read_prompts(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const dsc_option_value *v = call->value;
    live_prompts *p = &c->job.prompts;
    int rc = DSC_OK;
    if (c->replayed)
        return live_prompts_replay(p, c->replayed, v[REPLAY_DRAFT].given ? &c->job.config : NULL,
                                   err);
    if (!v[PROMPT].given)
        return live_prompts_read(p, v[PROMPTS].text, err);
    for (size_t i = 0; i < call->words && !rc; i++)
        rc = live_prompts_add(p, call->word[i], err);
    return rc;
}

// Options that change no recorded output.
static int check_replay(const cli_call *call, dsc_error *err)
{
    static const char *const names[] = {"max-tokens", "eos", "stop", "map", "chat-template"};
    for (size_t i = 0; i < sizeof names / sizeof *names && call->value[REPLAY].given; i++)
        if (cli_call_value(call, names[i])->given)
            return dsc_fail(
                err, DSC_EUSAGE,
                "--%s and --replay cannot be combined: prompts and outputs are as recorded",
                names[i]);
    return call->value[PROMPT].given && cli_call_value(call, "map")->given
               ? dsc_fail(err, DSC_EUSAGE, "--map and -p cannot be combined")
               : DSC_OK;
}

static int check_words(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    const int ways = value[PROMPT].given + value[PROMPTS].given + value[REPLAY].given;
    if (ways != 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "--prompts FILE, -p TEXT... or --replay NAME.dst expected, not %s",
                        ways ? "several" : "none of them");
    if (value[REPLAY_DRAFT].given && !value[REPLAY].given)
        return dsc_fail(err, DSC_EUSAGE, "--replay-draft requires --replay NAME.dst");
    if (value[PROMPT].given && (value[REQUESTS].given || value[SKIP].given))
        return dsc_fail(err, DSC_EUSAGE, "--%s and -p cannot be combined",
                        value[SKIP].given ? "skip" : "requests");
    if (call->json && is_standard(call->out))
        return dsc_fail(err, DSC_EUSAGE,
                        "--json and -o - both use standard output; use -o FILE.jsonl");
    int rc = check_replay(call, err);
    if (rc)
        return rc;
    return value[PROMPT].given
               ? cli_check_positionals(call->words, 1, -1, "-p: a prompt", err)
               : cli_check_positionals(call->words, 0, 0, "no argument without -p", err);
}

static int prepare_runs(context *c, dsc_error *err)
{
    const uint64_t seed = c->call->seed;
    const bool replayed = c->replayed != NULL;
    int64_t most = replayed ? dsc_trace_get_info(c->replayed)->max_output_tokens
                            : c->call->value[MAX_TOKENS].integer;
    const bool greedy = c->job.rule->greedy || replayed;
    const live_draft_record *record = c->call->value[REPLAY_DRAFT].given ? &c->record : NULL;
    c->none.drafter = &dsc_drafter_none;
    live_detail_init(&c->detail);
    int rc = record
                 ? live_draft_record_find(&c->record, c->replayed, &c->job.config, c->job.rule, err)
                 : DSC_OK;
    if (c->record.written)
        most = c->record.written;
    if (replayed && !record) {
        c->record.info = dsc_trace_get_info(c->replayed);
        rc = dsc_trace_recorded_run(&c->record.origin, c->record.info, err);
    }
    if (!rc)
        rc = live_run_init(&c->job.run, &c->job.pair, &c->job.config, c->job.rule, seed, most,
                           replayed, record, err);
    if (!rc)
        rc = live_run_init(&c->plain, &c->job.pair, &c->none,
                           dsc_pair_rule(c->none.drafter, greedy), seed, most, replayed, NULL, err);
    c->job.run.ends = replayed ? &c->record : NULL;
    c->plain.plain = true;
    c->job.run.step = c->plain.step = on_step;
    c->report = (live_report){
        .config = &c->job.config, .rule = c->job.rule, .baseline = c->call->value[BASELINE].given};
    return rc ? rc : live_run_counts(&c->job.run, &c->report.counts, err);
}

// A draft may continue after the end of a replayed output, as far as the recorded run could have
// generated.
static int64_t recorded_nodes(const context *c)
{
    if (c->record.written)
        return c->record.nodes;
    const int64_t width = dsc_config_width(&c->job.config),
                  own = dsc_config_draft_width(&c->job.config);
    const int64_t most = (width > own ? width : own) - 1;
    const int64_t limit = live_draft_record_limit(&c->record);
    return most < limit ? most : limit;
}

// Says before any weights are loaded what a full step costs, for a prompt of mean length.
static int announce_cost(const context *c, dsc_error *err)
{
    const live_prompts *p = &c->job.prompts;
    const char *text = c->call->value[COST].text;
    live_step_price price;
    char line[900];
    int64_t tokens = 0;
    for (size_t i = 0; i < p->count; i++)
        tokens += p->item[i].request.prompt.count;
    int rc = live_step_price_of(&price, &c->cost, &c->job.run,
                                p->count ? tokens / (int64_t)p->count : 1, err);
    if (rc)
        return rc;
    live_step_price_text(&price, &c->job.config, text, line, sizeof line);
    fprintf(stderr, "draftscope: %s\n", line);
    return DSC_OK;
}

// Runs the cheap checks first, then loads the weights.
static int prepare(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    live_job *job = &c->job;
    live_want want = live_want_of(call->method[0]);
    int rc = check_words(call, err);
    if (!rc)
        rc = live_job_begin(job, call, err);
    if (!rc && call->value[COST].text)
        rc = live_cost_open(&c->cost, call->value[COST].text, err);
    if (!rc && call->value[REPLAY].given)
        rc = dsc_trace_open(&c->replayed, call->value[REPLAY].text, err);
    if (!rc)
        rc = prepare_runs(c, err);
    if (!rc && c->record.written)
        want.draft = live_draft_record_passes(&job->config, live_pair_has_draft(job->model)) != 0;
    c->report.texts = job->greedy || (job->rule && job->rule->greedy);
    if (!rc && call->out)
        rc = dsc_outfile_check(call->out, call->force, err);
    if (!rc)
        rc = live_job_read(job, &want, err);
    c->plain.stop = job->run.stop;
    if (!rc)
        rc = read_prompts(c, err);
    // What a full step drafts is known of a method, but not of recorded steps.
    if (!rc && c->cost.type && job->config.drafter != &dsc_drafter_none && !c->record.written)
        rc = announce_cost(c, err);
    if (!rc && job->run.ends)
        job->pair.least_nodes = recorded_nodes(c);
    if (!rc)
        rc = live_job_open(job, 0, err);
    live_draft_vocabulary_init(&c->drafted, job->pair.weights[LIVE_DRAFT],
                               job->pair.sampling.temperature == 0 ||
                                   (job->rule->greedy && !c->replayed));
    return rc;
}

static void context_fini(context *c)
{
    dsc_outfile_abort(&c->output);
    live_report_fini(&c->report);
    live_detail_fini(&c->detail);
    live_run_fini(&c->plain);
    live_job_fini(&c->job);
    dsc_cost_fini(&c->cost);
    dsc_trace_close(c->replayed);
    dsc_arena_fini(&c->arena);
}

static void visit_fields(cli_fields_visit *visit, void *user)
{
    size_t fields;
    const dsc_column *field = live_report_fields(&fields);
    visit(user, "Measured fields", field, fields);
    field = live_report_vocabulary_fields(&fields);
    visit(user, "Fields of EAGLE-3 heads", field, fields);
    field = live_detail_fields(&fields);
    visit(user, "Fields of --json only", field, fields);
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    int rc = prepare(&c, err);
    if (!rc) {
        // Texts and a progress bar cannot share the terminal.
        const bool bar = call->progress == CLI_PROGRESS_AUTO;
        cli_progress_init(&c.progress, bar && !call->json ? CLI_PROGRESS_NEVER : call->progress,
                          "requests");
        rc = finish(&c, run_all(&c, err), err);
    }
    if (!rc && !c.job.rule->lossless)
        fprintf(stderr,
                "draftscope: rule %s is LOSSY: the output does not have the target's distribution; "
                "draftscope theory lossy computes by how much\n",
                c.job.rule->name);
    context_fini(&c);
    return rc;
}

const cli_command live_cmd_run = {
    .name = "run",
    .summary = "run a method on real models and measure it",
    CLI_OPTIONS(options),
    .more = {"Models", live_pair_options, LIVE_PAIR_OPTIONS},
    .methods = CLI_METHOD_ONE,
    .usage = "live run --target DIR --method NAME --prompts FILE|-p TEXT...|--replay NAME.dst "
             "[OPTIONS]",
    .about = "Runs a drafting method on real models: prints the outputs, the drafted and accepted "
             "tokens, and the seconds. When interrupted, it finishes the step and prints the "
             "results so far.",
    .most = -1,
    .repeated = live_repeated,
    .what = "prompts",
    .more_fields = visit_fields,
    .execute = execute,
};

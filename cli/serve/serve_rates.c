// SPDX-License-Identifier: Apache-2.0
// Requests whose drafts are accepted at given rates: those of --target or of a result table, with
// lengths of --prompt-tokens and --max-tokens; and the models of --target.
#include "base/columns.h"
#include "base/file.h"
#include "base/number.h"
#include "cli/serve/serve.h"
#include "sim/model/model_iid.h"
#include "sim/model/model_spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct cli_serve_rates {
    const cli_call *call;
    const char *name;            // of --target or of the table
    dsc_acceptance_rates *rates; // of all requests; without positions:
    dsc_table table;             // a row for each request
    int tokens;                  // column of the table; -1: none
    int64_t longest;             // positions of its longest list,
    bool reached;                // of which a draft of some request accepted the last one
    double *split; // [DSC_IID_LEVELS][length] rates by the effect of a request, or NULL
    dsc_lengths prompt, output;
    int64_t requests;
    bool own_output; // lengths of the table
};

void cli_serve_rates_close(cli_serve_rates *r)
{
    if (!r)
        return;
    dsc_table_fini(&r->table);
    free(r->split);
    free(r->prompt.list);
    free(r->output.list);
    free(r);
}

// --- rates of a request --------------------------------------------------------------------------

static void rates_of_all(void *user, int64_t request, int32_t length, double *rate)
{
    const cli_serve_rates *r = user;
    if (r->split)
        memcpy(rate, r->split + dsc_iid_level(request) * (size_t)length,
               (size_t)length * sizeof *rate);
    else
        dsc_acceptance_rates_fill(r->rates, length, rate);
}

static size_t row_of(const cli_serve_rates *r, int64_t request)
{
    return (size_t)request % r->table.rows;
}

// Positions that no draft of a request reached have the rate of the last one that did.
static void rates_of_row(void *user, int64_t request, int32_t length, double *rate)
{
    const cli_serve_rates *r = user;
    const int c = dsc_table_find(&r->table, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE);
    const dsc_cell *list = dsc_table_at(&r->table, row_of(r, request), (size_t)c);
    double last = 0;
    for (int32_t d = 0; d < length; d++)
        rate[d] = last = d < list->i ? dsc_cell_element(list, d) : last;
}

static void lengths_of(void *user, int64_t request, int32_t *prompt, int32_t *output)
{
    const cli_serve_rates *r = user;
    const uint64_t seed = r->call->seed;
    *prompt = dsc_lengths_draw(&r->prompt, seed, request, r->requests, DSC_LENGTHS_PROMPT);
    *output = r->own_output
                  ? (int32_t)dsc_table_real(&r->table, row_of(r, request), (size_t)r->tokens)
                  : dsc_lengths_draw(&r->output, seed, request, r->requests, DSC_LENGTHS_OUTPUT);
}

// --- lengths -------------------------------------------------------------------------------------

typedef struct lengths_list {
    dsc_lengths *lengths;
    size_t capacity;
    dsc_lengths_use use;
} lengths_list;

static int add_length(lengths_list *l, int64_t tokens, dsc_error *err)
{
    dsc_lengths *x = l->lengths;
    const int rc = dsc_resize(&x->list, &l->capacity, x->count + 1, err);
    if (!rc)
        x->list[x->count++] = (int32_t)tokens;
    return rc;
}

// Requests without output are not served.
static int add_request(void *user, const dsc_request *q, dsc_error *err)
{
    lengths_list *l = user;
    const int64_t prompt = q->prompt.count ? q->prompt.count : 1,
                  tokens = l->use == DSC_LENGTHS_PROMPT ? prompt : q->output.count;
    if (tokens > DSC_LONGEST_SERVED)
        return dsc_fail(err, DSC_EINPUT, "a length of %" PRId64 " tokens; at most %d are possible",
                        tokens, DSC_LONGEST_SERVED);
    return q->output.count ? add_length(l, tokens, err) : DSC_OK;
}

static int read_trace(lengths_list *l, const char *path, dsc_error *err)
{
    dsc_trace *trace;
    int rc = dsc_trace_open(&trace, path, err);
    if (rc)
        return rc;
    rc = dsc_trace_each(trace, add_request, l, err);
    dsc_trace_close(trace);
    return rc;
}

// Two columns, the lengths of a prompt and of its output. The first line may be a heading.
static int read_file(lengths_list *l, const char *path, dsc_error *err)
{
    enum { MOST_BYTES = 1 << 30 };
    char *text = NULL;
    int rc = dsc_read_text(&text, path, MOST_BYTES, err);
    int64_t line = 0;
    for (char *p = text, *next; !rc && p && *p; p = next) {
        char *end, *last;
        next = p + strcspn(p, "\n");
        next += *next == '\n';
        line++;
        const double prompt = dsc_strtod(p, &end);
        const char *second = end + strspn(end, ",;\t ");
        const double output = dsc_strtod(second, &last),
                     tokens = l->use == DSC_LENGTHS_PROMPT ? prompt : output;
        const bool numbers = end != p && second != end && last != second && last <= next;
        if (*p == '\n' || *p == '#' || (!numbers && line == 1))
            continue;
        if (!numbers || !(tokens >= 1 && tokens <= DSC_LONGEST_SERVED) || tokens != floor(tokens))
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s:%" PRId64 ": two numbers of tokens from 1 to %d are expected, of a "
                          "prompt and of its output",
                          path, line, DSC_LONGEST_SERVED);
        else
            rc = add_length(l, (int64_t)tokens, err);
    }
    free(text);
    return rc;
}

static int read_lengths(dsc_lengths *out, const cli_call *call, int option, dsc_lengths_use use,
                        dsc_error *err)
{
    const char *text = call->value[option].text, *name = call->command->option[option].name;
    lengths_list list = {.lengths = out, .use = use};
    int rc;
    if (!strncmp(text, "trace:", 6))
        rc = read_trace(&list, text + 6, err);
    else if (!strncmp(text, "file:", 5))
        rc = read_file(&list, text + 5, err);
    else
        return dsc_lengths_parse(out, name, text, err);
    out->kind = DSC_LENGTHS_LISTED;
    if (!rc && (!out->count || out->count > UINT32_MAX))
        rc = dsc_fail(err, DSC_EINPUT, "%.200s has no requests with output", text);
    return rc ? dsc_error_prefix(err, rc, "--%s", name) : DSC_OK;
}

// --- a table -------------------------------------------------------------------------------------

// A row for each request, with a list of rates of its own.
static bool has_requests(const dsc_table *t)
{
    const int list = dsc_table_find(t, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE);
    return t->rows > 1 && dsc_table_find(t, DSC_COL_REQUEST) >= 0 && list >= 0 &&
           t->column[list].type == DSC_CELL_LIST;
}

static int check_row(cli_serve_rates *r, size_t row, dsc_error *err)
{
    const int c = dsc_table_find(&r->table, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE);
    const dsc_cell *list = dsc_table_at(&r->table, row, (size_t)c);
    r->longest = list->i > r->longest ? list->i : r->longest;
    r->reached |= list->i && dsc_cell_element(list, list->i - 1) > 0;
    for (int64_t i = 0; i < list->i; i++)
        if (!(dsc_cell_element(list, i) >= 0 && dsc_cell_element(list, i) <= 1))
            return dsc_fail(err, DSC_EINPUT, "%s: acceptance rate %" PRId64 " is not in [0, 1]",
                            r->name, i + 1);
    return DSC_OK;
}

// Output lengths: of each request, or the mean of all.
static void find_output(cli_serve_rates *r, size_t row)
{
    const dsc_table *t = &r->table;
    const int requests = dsc_table_find(t, DSC_COL_REQUESTS);
    bool each = r->tokens >= 0 && has_requests(t);
    for (size_t i = 0; i < t->rows && each; i++) {
        const double x = dsc_table_real(t, i, (size_t)r->tokens);
        each = x >= 1 && x <= DSC_LONGEST_SERVED;
    }
    r->own_output = each;
    if (each || has_requests(t) || requests < 0 || r->tokens < 0)
        return;
    const double mean =
        dsc_table_real(t, row, (size_t)r->tokens) / dsc_table_real(t, row, (size_t)requests);
    if (mean >= 1 && mean <= DSC_LONGEST_SERVED)
        r->output = (dsc_lengths){.kind = DSC_LENGTHS_CONSTANT, .least = (int32_t)(mean + 0.5)};
}

static int open_table(cli_serve_rates *r, const char *path, dsc_error *err)
{
    size_t row = 0;
    int rc = dsc_table_read(&r->table, path, err);
    const bool each = !rc && has_requests(&r->table);
    for (size_t i = 0; each && i < r->table.rows && !rc; i++)
        rc = check_row(r, i, err);
    if (!each) {
        rc = rc ?: dsc_acceptance_row(&row, &r->table, path, err);
        rc = rc ?: dsc_acceptance_rates_of_row(r->rates, &r->table, row, path, err);
    }
    if (rc)
        return rc;
    r->tokens = dsc_table_find(&r->table, DSC_COL_OUTPUT_TOKENS);
    if (!r->call->value[SERVE_MAX_TOKENS].given)
        find_output(r, row);
    return DSC_OK;
}

// A table that is given as --target has its lengths, too.
static const char *table_of(const cli_call *call)
{
    const char *target = call->value[SERVE_TARGET].text;
    struct stat st;
    return call->words ? call->word[0] : !stat(target, &st) && S_ISREG(st.st_mode) ? target : NULL;
}

int cli_serve_rates_open(cli_serve_rates **out, cli_simulation *s, const cli_call *call,
                         dsc_error *err)
{
    const char *target = call->value[SERVE_TARGET].text, *table = table_of(call);
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    cli_serve_rates *r = *out;
    r->call = call;
    r->rates = &s->rates;
    r->tokens = -1;
    rc = read_lengths(&r->prompt, call, SERVE_PROMPT_TOKENS, DSC_LENGTHS_PROMPT, err);
    rc = rc ?: read_lengths(&r->output, call, SERVE_MAX_TOKENS, DSC_LENGTHS_OUTPUT, err);
    r->name = table ? table : target;
    rc = rc ?: table ? open_table(r, table, err) : dsc_acceptance_rates_read(r->rates, target, err);
    if (!rc && call->more[SERVE_REQUEST_SD].given && !r->rates->positions)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--request-sd needs the rates of all requests together; a table of requests "
                      "has the rates of each");
    if (!rc && call->more[SERVE_REQUEST_SD].given && r->rates->request_sd > 0)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--request-sd is for rates of all requests together; %.60s has those of the "
                      "median request and its own effect",
                      r->name);
    if (!rc)
        cli_note_acceptance(r->rates->note);
    return rc;
}

// Splits the rates among requests that differ.
static int split_rates(cli_serve_rates *r, int32_t length, dsc_error *err)
{
    const double pooled = r->call->more[SERVE_REQUEST_SD].real, sd = r->rates->request_sd;
    double *rate;
    free(r->split);
    r->split = NULL;
    if (!(pooled > 0 || sd > 0) || !length)
        return DSC_OK;
    int rc = dsc_new(&rate, (size_t)length, err);
    if (rc)
        return rc;
    dsc_acceptance_rates_fill(r->rates, length, rate);
    rc = dsc_new(&r->split, (size_t)length * DSC_IID_LEVELS, err);
    if (!rc && pooled > 0)
        dsc_iid_split_rates(r->split, rate, (size_t)length, pooled);
    else if (!rc)
        dsc_iid_spread_rates(r->split, rate, (size_t)length, sd);
    free(rate);
    return rc;
}

int cli_serve_rates_draw(cli_serve_rates *r, cli_serve_method *m, int64_t requests, dsc_error *err)
{
    const dsc_drafter_type *d = m->config.drafter;
    const bool drafts = d == &dsc_drafter_draft_model;
    const int64_t limit = drafts ? dsc_config_limit(&m->config) : 0;
    if (!drafts && d != &dsc_drafter_none)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s needs the tokens of a trace; with %.60s, serve takes "
                        "draft-model, whose draft tokens are accepted at the given rates",
                        d->name, r->name);
    const int64_t known = r->rates->positions ? r->rates->positions : r->longest;
    if (limit > known && (r->rates->positions ? isnan(r->rates->later) : r->reached))
        return dsc_error_prefix(err, dsc_acceptance_too_long(known, err),
                                "--num-speculative-tokens %" PRId64 ": %.200s", limit, r->name);
    if (limit > DSC_SERVE_LONGEST)
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-speculative-tokens %" PRId64
                        ": a served draft has at most %d tokens",
                        limit, DSC_SERVE_LONGEST);
    // Each row of a table of requests counts equally often.
    const int64_t rows = r->rates->positions ? 1 : (int64_t)r->table.rows;
    if (rows > 1 && !r->call->value[SERVE_DRAIN].given)
        requests = (requests + rows - 1) / rows * rows;
    r->requests = requests;
    const int rc = split_rates(r, (int32_t)limit, err);
    const dsc_serve_rates rates = {.requests = requests,
                                   .length = (int32_t)limit,
                                   .lengths = lengths_of,
                                   .rates = r->rates->positions ? rates_of_all : rates_of_row,
                                   .user = r,
                                   .seed = r->call->seed};
    return rc ? rc
              : dsc_serve_source_rates(&m->source, &rates,
                                       drafts ? DSC_SERVE_DRAFT_EACH : DSC_SERVE_DRAFT_FREE, err);
}

// --- models --------------------------------------------------------------------------------------

// clang-format off
const dsc_option cli_serve_models_options[SERVE_MODELS_OPTIONS] = {
    [SERVE_DRAFT] = {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "draft model, with a trace or --target (default: as for draftscope sim)"},
    [SERVE_MIDDLE] = {.name = "middle", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "model between draft and target of a cascade (default: as for draftscope sim)"},
    [SERVE_TOKENIZER] = {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes",
     .initial = "bytes", .help = "tokenizer of the text that an n-gram model is trained on"},
    [SERVE_TEMPERATURE] = {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T",
     .initial = "0", .least = 0, .most = 1000,
     .help = "sampling temperature of the models of --target and --draft; at 0 every method writes "
             "the same outputs"},
    [SERVE_REQUEST_SD] = {.name = "request-sd", .kind = DSC_OPTION_REAL, .metavar = "S",
     .initial = "0", .least = 0, .most = 10,
     .help = "standard deviation of the requests' effects on the logit of the acceptance rates, "
             "which remain those of all requests together (theory length --trace "
             "estimates it)"},
};
// clang-format on

// The target that runs, or NULL.
static const char *model_of(const cli_call *call)
{
    const char *target = call->value[SERVE_TARGET].text;
    return target && !dsc_acceptance_is(target) ? target : NULL;
}

int cli_serve_models_check(const cli_simulation *s, const cli_call *call, dsc_error *err)
{
    const dsc_option_value *more = call->more;
    const bool model = model_of(call), drafts = more[SERVE_DRAFT].text || more[SERVE_MIDDLE].text;
    if (!s->trace && !model && (call->value[SERVE_RULE].given || drafts))
        return dsc_fail(err, DSC_EUSAGE,
                        "%s needs a trace or --target ngram:FILE or markov:V; acceptance rates "
                        "hold for the rule and the draft model that they were measured with",
                        drafts ? "--draft" : "--rule");
    if (!model && !drafts && (more[SERVE_TOKENIZER].given || more[SERVE_TEMPERATURE].given))
        return dsc_fail(err, DSC_EUSAGE,
                        "%s is for models, which --target ngram:FILE or markov:V, --draft and "
                        "--middle name",
                        more[SERVE_TOKENIZER].given ? "--tokenizer" : "--temperature");
    return more[SERVE_REQUEST_SD].given && (s->trace || model)
               ? dsc_fail(err, DSC_EUSAGE,
                          "--request-sd is for acceptance rates of a table; requests of a trace "
                          "or a model differ by themselves")
               : DSC_OK;
}

// A plain number of tokens.
static int read_number(int64_t *out, const cli_call *call, int option, dsc_error *err)
{
    const char *name = call->command->option[option].name;
    dsc_lengths lengths;
    const int rc = dsc_lengths_parse(&lengths, name, call->value[option].text, err);
    if (!rc && lengths.kind == DSC_LENGTHS_CONSTANT) {
        *out = lengths.least;
        return DSC_OK;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--%s %.60s: --target %.60s takes a number; distributions are for acceptance "
                    "rates and tables",
                    name, call->value[option].text, call->value[SERVE_TARGET].text);
}

int cli_serve_models_open(cli_simulation *s, const cli_call *call, int64_t requests, dsc_error *err)
{
    const dsc_option_value *more = call->more;
    const cli_model_specs spec = {.target = model_of(call),
                                  .draft = more[SERVE_DRAFT].text,
                                  .middle = more[SERVE_MIDDLE].text,
                                  .tokenizer = more[SERVE_TOKENIZER].text};
    int rc = DSC_OK;
    s->load = (dsc_workload){.temperature = more[SERVE_TEMPERATURE].real, .requests = requests};
    if (spec.target)
        rc = read_number(&s->load.prompt_tokens, call, SERVE_PROMPT_TOKENS, err);
    if (!rc && spec.target)
        rc = read_number(&s->load.max_tokens, call, SERVE_MAX_TOKENS, err);
    return rc ? rc : cli_simulation_models(s, call, &spec, err);
}

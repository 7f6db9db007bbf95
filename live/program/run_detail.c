// SPDX-License-Identifier: Apache-2.0
// Per-request columns, pass counts and provenance of a result line of `live run --json`.
#include "live/program/run_detail.h"

#include "base/columns.h"
#include "traces/trace/token_hash.h"

#include <stdlib.h>
#include <string.h>

enum {
    DRAFT_CALL_TOKENS,
    TARGET_CALL_TOKENS,
    TARGET_CALL_CONTEXT,
    OUTPUT_CONTEXT,
    WIDTHS,
    PARALLEL,
    // Lists of integers, then lists of seconds; those of the baseline come last in each.
    REQUEST_OUTPUT_TOKENS,
    REQUEST_TARGET_CALLS,
    REQUEST_DRAFT_TOKENS,
    REQUEST_ACCEPTED_TOKENS,
    REQUEST_DRAFT_CALLS,
    REQUEST_PLAIN_TOKENS,
    REQUEST_TIME,
    REQUEST_PREFILL,
    REQUEST_NLL, // temperature > 0 only
    REQUEST_ENTROPY,
    REQUEST_PLAIN_TIME,
    REQUEST_PLAIN_PREFILL,
    REQUEST_HISTOGRAM,
    SCHEMA,
    PROGRAM_VERSION,
    INTERRUPTED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    SEED,
    MAX_TOKENS,
    DEVICE,
    THREADS,
    BATCH_INVARIANT,
    TRACE_HASH,
    REPLAY_DRAFT,
    FIRST_REQUEST,
    PROMPTS_HASH,
    OUTPUTS_HASH,
    MODELS, // ARCHITECTURE and what follows it, for each model
    FIELDS = MODELS + 4 * LIVE_SIDES
};
enum { ARCHITECTURE, DTYPE, CONFIG_HASH, WEIGHTS_HASH, OF_MODEL };
enum { INTEGERS = REQUEST_TIME - REQUEST_OUTPUT_TOKENS, REALS = REQUEST_HISTOGRAM - REQUEST_TIME };
// clang-format off
static const dsc_column fields[FIELDS] = {
    [DRAFT_CALL_TOKENS] = {DSC_COL_DRAFT_CALL_TOKENS, DSC_CELL_INT,
     "tokens in the forward passes of the draft model"},
    [TARGET_CALL_TOKENS] = {DSC_COL_TARGET_CALL_TOKENS, DSC_CELL_INT,
     "tokens in the forward passes of the target, the last committed token of each included"},
    [TARGET_CALL_CONTEXT] = {DSC_COL_TARGET_CALL_CONTEXT, DSC_CELL_INT,
     "context length before the draft, summed over the target's forward passes"},
    [OUTPUT_CONTEXT] = {DSC_COL_OUTPUT_CONTEXT, DSC_CELL_INT,
     "context length summed over one forward pass for each output token, as without speculation"},
    [WIDTHS] = {DSC_COL_WIDTH_HISTOGRAM, DSC_CELL_LIST,
     "forward passes of the target on 1, 2, ... tokens"},
    [PARALLEL] = {DSC_COL_OVERLAP_HISTOGRAM, DSC_CELL_LIST,
     "for a method whose draft model runs while the target verifies: steps by forward passes of "
     "the draft model (0, 1, ...) and tokens of the target (1, 2, ...), a square matrix by rows"},
    [REQUEST_OUTPUT_TOKENS] = {DSC_COL_REQUEST_OUTPUT_TOKENS, DSC_CELL_LIST,
     "output_tokens of each request, in order"},
    [REQUEST_TARGET_CALLS] = {DSC_COL_REQUEST_TARGET_CALLS, DSC_CELL_LIST,
     "target_calls of each request, in order"},
    [REQUEST_DRAFT_TOKENS] = {DSC_COL_REQUEST_NUM_DRAFT_TOKENS, DSC_CELL_LIST,
     "num_draft_tokens of each request, in order"},
    [REQUEST_ACCEPTED_TOKENS] = {DSC_COL_REQUEST_NUM_ACCEPTED_TOKENS, DSC_CELL_LIST,
     "num_accepted_tokens of each request, in order"},
    [REQUEST_DRAFT_CALLS] = {DSC_COL_REQUEST_DRAFT_CALLS, DSC_CELL_LIST,
     "draft_calls of each request, in order"},
    [REQUEST_PLAIN_TOKENS] = {"request_baseline_output_tokens", DSC_CELL_LIST,
     "output tokens of each request by plain decoding (--baseline)"},
    [REQUEST_TIME] = {"request_time_s", DSC_CELL_LIST, "seconds of each request, prefill included"},
    [REQUEST_PREFILL] = {"request_prefill_s", DSC_CELL_LIST,
     "seconds of each request in passes over the prompt, summed over all models"},
    [REQUEST_NLL] = {"request_output_nll", DSC_CELL_LIST,
     "-ln p of each output under the target's sampling distribution (temperature > 0)"},
    [REQUEST_ENTROPY] = {"request_output_entropy", DSC_CELL_LIST,
     "sum of the target's per-token entropies: the expected value of request_output_nll"},
    [REQUEST_PLAIN_TIME] = {"request_baseline_time_s", DSC_CELL_LIST,
     "seconds of each request by plain decoding (--baseline)"},
    [REQUEST_PLAIN_PREFILL] = {"request_baseline_prefill_s", DSC_CELL_LIST,
     "seconds of each request in plain decoding's pass over the prompt (--baseline)"},
    [REQUEST_HISTOGRAM] = {DSC_COL_REQUEST_ACCEPT_HISTOGRAM, DSC_CELL_LIST,
     "accept_histogram of each request, concatenated; all have the length of the longest"},
    [SCHEMA] = {"schema", DSC_CELL_INT, "schema version of this line: 1"},
    [PROGRAM_VERSION] = {"version", DSC_CELL_TEXT, "version of the program"},
    [INTERRUPTED] = {"interrupted", DSC_CELL_INT,
     "1: stopped before the last request ended; 0: complete"},
    [TEMPERATURE] = {"temperature", DSC_CELL_REAL, "value of --temperature"},
    [TOP_K] = {"top_k", DSC_CELL_INT, "value of --top-k"},
    [TOP_P] = {"top_p", DSC_CELL_REAL, "value of --top-p"},
    [SEED] = {"seed", DSC_CELL_INT, "value of --seed"},
    [MAX_TOKENS] = {"max_tokens", DSC_CELL_INT,
     "value of --max-tokens; in a replay, length of the longest recorded output"},
    [DEVICE] = {"device", DSC_CELL_TEXT, "device of the target"},
    [THREADS] = {"threads", DSC_CELL_INT, "number of CPU threads"},
    [BATCH_INVARIANT] = {"batch_invariant", DSC_CELL_INT, "1 with --batch-invariant, else 0"},
    [TRACE_HASH] = {"trace_hash", DSC_CELL_TEXT, "hash of the replayed trace"},
    [REPLAY_DRAFT] = {"replay_draft", DSC_CELL_INT,
     "in a replay: 1 if the trace's drafts are replayed, 0 if the draft model drafts"},
    [FIRST_REQUEST] = {"first_request", DSC_CELL_INT,
     "index of the first request in the file or trace, from 0 (--skip)"},
    [PROMPTS_HASH] = {"prompts_sha256", DSC_CELL_TEXT,
     "SHA-256 of the prompts' token ids, each prompt preceded by its length"},
    [OUTPUTS_HASH] = {"outputs_sha256", DSC_CELL_TEXT,
     "SHA-256 of the outputs' token ids, each output preceded by its length"},
    [MODELS] =
    {"target_architecture", DSC_CELL_TEXT, "target: model_type in config.json"},
    {"target_dtype", DSC_CELL_TEXT, "target: dtype of the stored weights"},
    {"target_config_sha256", DSC_CELL_TEXT,
     "target: SHA-256 of config.json; empty for random weights"},
    {"target_weights_sha256", DSC_CELL_TEXT,
     "target: SHA-256 of the file sizes and of each tensor's name, dtype, shape, first and last "
     "4 KiB"},
    {"draft_architecture", DSC_CELL_TEXT, "draft model: model_type in config.json"},
    {"draft_dtype", DSC_CELL_TEXT, "draft model: dtype of the stored weights"},
    {"draft_config_sha256", DSC_CELL_TEXT,
     "draft model: SHA-256 of config.json; empty for random weights"},
    {"draft_weights_sha256", DSC_CELL_TEXT,
     "draft model: SHA-256 of its weights, as for target_weights_sha256"},
    {"middle_architecture", DSC_CELL_TEXT, "middle model: model_type in config.json"},
    {"middle_dtype", DSC_CELL_TEXT, "middle model: dtype of the stored weights"},
    {"middle_config_sha256", DSC_CELL_TEXT,
     "middle model: SHA-256 of config.json; empty for random weights"},
    {"middle_weights_sha256", DSC_CELL_TEXT,
     "middle model: SHA-256 of its weights, as for target_weights_sha256"},
};
// clang-format on

const dsc_column *live_detail_fields(size_t *count)
{
    *count = FIELDS;
    return fields;
}

void live_detail_init(live_detail *d)
{
    *d = (live_detail){0};
    dsc_sha256_init(&d->outputs);
}

void live_detail_fini(live_detail *d)
{
    free(d->request);
    free(d->histogram);
    *d = (live_detail){0};
}

int live_detail_add(live_detail *d, const live_run *run, dsc_token_view output, dsc_error *err)
{
    const dsc_counts *c = &run->counts;
    const live_measure *m = &run->measure;
    const size_t n = (size_t)c->histogram_length; // equal for all requests
    int rc = dsc_resize(&d->request, &d->capacity, d->requests + 1, err);
    if (!rc)
        rc = dsc_resize(&d->histogram, &d->histogram_capacity, (d->requests + 1) * n, err);
    if (rc)
        return rc;
    d->histogram_length = n;
    memcpy(d->histogram + d->requests * n, c->histogram, n * sizeof *d->histogram);
    d->request[d->requests++] = (live_request_detail){.output_tokens = c->output_tokens,
                                                      .target_calls = c->target_calls,
                                                      .num_draft_tokens = c->num_draft_tokens,
                                                      .num_accepted_tokens = c->num_accepted_tokens,
                                                      .draft_calls = c->draft_calls,
                                                      .time_s = m->time_s,
                                                      .prefill_s = m->prefill_s};
    dsc_token_hash_add(&d->outputs, output);
    return DSC_OK;
}

void live_detail_compare(live_detail *d, const live_measure *plain, int64_t tokens)
{
    live_request_detail *q = &d->request[d->requests - 1];
    q->baseline_output_tokens = tokens;
    q->baseline_time_s = plain->time_s;
    q->baseline_prefill_s = plain->prefill_s;
}

void live_detail_likelihood(live_detail *d, live_likelihood x)
{
    d->request[d->requests - 1].likelihood = x;
    d->likelihood = true;
}

// --- cells ---------------------------------------------------------------------------------------

static dsc_cell integer(int64_t i)
{
    return (dsc_cell){.type = DSC_CELL_INT, .i = i};
}

static dsc_cell real(double x)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = x};
}

static dsc_cell text(const char *s)
{
    return (dsc_cell){.type = DSC_CELL_TEXT, .text = s};
}

// The row being built.
typedef struct draft_row {
    dsc_cell cell[FIELDS];
    bool has[FIELDS];
    char prompts[DSC_SHA256_HEX], outputs[DSC_SHA256_HEX];
    live_identity model[LIVE_SIDES];
    int64_t *integers, *histogram; // owned
    double *reals;                 // owned
} draft_row;

static void put(draft_row *r, int field, dsc_cell cell)
{
    r->cell[field] = cell;
    r->has[field] = true;
}

static void put_list(draft_row *r, int field, const int64_t *list, int64_t count)
{
    put(r, field, (dsc_cell){.type = DSC_CELL_LIST, .list = list, .i = count});
}

static void put_passes(draft_row *r, const dsc_counts *c)
{
    int64_t widths = c->width_length;
    put(r, DRAFT_CALL_TOKENS, integer(c->draft_call_tokens));
    put(r, TARGET_CALL_TOKENS, integer(c->target_call_tokens));
    put(r, TARGET_CALL_CONTEXT, integer(c->target_call_context));
    put(r, OUTPUT_CONTEXT, integer(c->output_context));
    while (widths > 1 && !c->width[widths - 1])
        widths--;
    if (widths)
        put_list(r, WIDTHS, c->width, widths);
    if (c->parallel_steps)
        put_list(r, PARALLEL, c->parallel_steps, c->parallel_length * c->parallel_length);
}

// Up to the longest accepted length of all requests.
static void put_histograms(draft_row *r, const live_detail *d)
{
    int64_t *out = r->histogram;
    const size_t n = d->histogram_length;
    size_t length = 1;
    for (size_t i = 0; i < d->requests; i++)
        for (size_t m = length; m < n; m++)
            if (d->histogram[i * n + m])
                length = m + 1;
    for (size_t i = 0; i < d->requests; i++)
        memcpy(out + i * length, d->histogram + i * n, length * sizeof *out);
    put_list(r, REQUEST_HISTOGRAM, out, (int64_t)(d->requests * length));
}

static int put_requests(draft_row *r, const live_detail *d, bool baseline, dsc_error *err)
{
    const size_t n = d->requests;
    int rc = dsc_new(&r->integers, n * INTEGERS, err);
    if (!rc)
        rc = dsc_new(&r->reals, n * REALS, err);
    if (!rc)
        rc = dsc_new(&r->histogram, n * d->histogram_length, err);
    if (rc)
        return rc;
    int64_t *whole = r->integers;
    double *seconds = r->reals;
    for (size_t i = 0; i < n; i++) {
        const live_request_detail *q = &d->request[i];
        const int64_t integers[INTEGERS] = {q->output_tokens,    q->target_calls,
                                            q->num_draft_tokens, q->num_accepted_tokens,
                                            q->draft_calls,      q->baseline_output_tokens};
        const double reals[REALS] = {q->time_s,          q->prefill_s,
                                     q->likelihood.nll,  q->likelihood.entropy,
                                     q->baseline_time_s, q->baseline_prefill_s};
        for (size_t f = 0; f < INTEGERS; f++)
            whole[f * n + i] = integers[f];
        for (size_t f = 0; f < REALS; f++)
            seconds[f * n + i] = reals[f];
    }
    for (int f = 0; f < INTEGERS; f++)
        if (baseline || f + REQUEST_OUTPUT_TOKENS != REQUEST_PLAIN_TOKENS)
            put_list(r, REQUEST_OUTPUT_TOKENS + f, whole + (size_t)f * n, (int64_t)n);
    for (int f = 0; f < REALS; f++) {
        const int at = REQUEST_TIME + f;
        const bool plain = at >= REQUEST_PLAIN_TIME;
        const bool drawn = at == REQUEST_NLL || at == REQUEST_ENTROPY;
        if ((!plain || baseline) && (!drawn || d->likelihood))
            put(r, at,
                (dsc_cell){
                    .type = DSC_CELL_LIST, .reals = seconds + (size_t)f * n, .i = (int64_t)n});
    }
    put_histograms(r, d);
    return DSC_OK;
}

static void put_models(draft_row *r, const live_origin *o)
{
    for (int side = 0; side < LIVE_SIDES; side++) {
        live_identity *m = &r->model[side];
        const int at = MODELS + side * OF_MODEL;
        if (!live_identify(m, o->pair, (live_side)side))
            continue;
        put(r, at + ARCHITECTURE, text(m->architecture));
        put(r, at + DTYPE, text(m->dtype));
        put(r, at + CONFIG_HASH, text(m->config_sha256));
        put(r, at + WEIGHTS_HASH, text(m->weights_sha256));
    }
}

static void put_origin(draft_row *r, const live_detail *d, const live_origin *o)
{
    const live_sampling *s = &o->pair->sampling;
    dsc_sha256 outputs = d->outputs;
    dsc_sha256_final(&outputs, r->outputs);
    live_hash_prompts(o->prompts, r->prompts);
    put(r, SCHEMA, integer(LIVE_RESULT_SCHEMA));
    put(r, PROGRAM_VERSION, text(PACKAGE_VERSION));
    put(r, INTERRUPTED, integer(o->interrupted));
    put(r, TEMPERATURE, real(s->temperature));
    put(r, TOP_K, integer(s->top_k));
    put(r, TOP_P, real(s->top_p));
    put(r, SEED, integer((int64_t)o->seed));
    put(r, MAX_TOKENS, integer(o->max_tokens));
    put(r, DEVICE, text(o->pair->backend[LIVE_TARGET]->device));
    put(r, THREADS, integer(o->pair->all_threads));
    put(r, BATCH_INVARIANT, integer(o->pair->option[LIVE_PAIR_BATCH_INVARIANT].given));
    if (o->trace_hash)
        put(r, TRACE_HASH, text(o->trace_hash));
    if (o->trace_hash)
        put(r, REPLAY_DRAFT, integer(o->replay_draft));
    put(r, FIRST_REQUEST, integer(o->prompts->skipped));
    put(r, PROMPTS_HASH, text(r->prompts));
    put(r, OUTPUTS_HASH, text(r->outputs));
    put_models(r, o);
}

// --- the row -------------------------------------------------------------------------------------

static int append(const draft_row *r, const dsc_table *line, dsc_table *t, dsc_error *err)
{
    dsc_cell *cell;
    int rc = dsc_new(&cell, line->columns + FIELDS, err);
    if (rc)
        return rc;
    size_t n = 0;
    for (size_t c = 0; c < line->columns && !rc; c++) {
        const dsc_column *x = &line->column[c];
        rc = dsc_table_add_column(t, x->name, x->type, x->help, err);
        cell[n++] = *dsc_table_at(line, 0, c);
    }
    for (int f = 0; f < FIELDS && !rc; f++) {
        if (!r->has[f])
            continue;
        rc = dsc_table_add_column(t, fields[f].name, fields[f].type, fields[f].help, err);
        cell[n++] = r->cell[f];
    }
    if (!rc)
        rc = dsc_table_add_row(t, cell, err);
    free(cell);
    return rc;
}

int live_detail_extend(const live_detail *d, const live_origin *o, const dsc_table *line,
                       dsc_table *t, dsc_error *err)
{
    draft_row r = {.integers = NULL};
    int rc = put_requests(&r, d, o->baseline, err);
    put_passes(&r, o->counts);
    put_origin(&r, d, o);
    if (!rc)
        rc = append(&r, line, t, err);
    free(r.integers);
    free(r.reals);
    free(r.histogram);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Per-request columns, pass counts and provenance of a result line of `live run --json`.
#include "live/program/run_detail.h"
#include "live/program/run_report.h"

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
// The lists of live_detail begin with these.
enum { FIRST_INTEGER = REQUEST_OUTPUT_TOKENS, FIRST_REAL = REQUEST_TIME };
_Static_assert(FIRST_REAL - FIRST_INTEGER == LIVE_DETAIL_INTEGERS, "the lists of integers");
_Static_assert(REQUEST_HISTOGRAM - FIRST_REAL == LIVE_DETAIL_REALS, "the lists of seconds");
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
    for (int f = 0; f < LIVE_DETAIL_INTEGERS; f++)
        free(d->integer[f]);
    for (int f = 0; f < LIVE_DETAIL_REALS; f++)
        free(d->real[f]);
    free(d->histogram);
    *d = (live_detail){0};
}

int live_detail_add(live_detail *d, const live_run *run, dsc_token_view output, dsc_error *err)
{
    const dsc_counts *c = &run->counts;
    const live_measure *m = &run->measure;
    const int64_t integer[LIVE_DETAIL_INTEGERS] = {c->output_tokens, c->target_calls,
                                                   c->num_draft_tokens, c->num_accepted_tokens,
                                                   c->draft_calls};
    const double real[LIVE_DETAIL_REALS] = {m->time_s, m->prefill_s};
    const size_t n = (size_t)c->histogram_length, at = d->requests; // n is equal for all requests
    int rc = dsc_resize(&d->histogram, &d->histogram_capacity, (at + 1) * n, err);
    for (int f = 0; f < LIVE_DETAIL_INTEGERS && !rc; f++) {
        rc = dsc_resize(&d->integer[f], &d->integer_capacity[f], at + 1, err);
        if (!rc)
            d->integer[f][at] = integer[f];
    }
    for (int f = 0; f < LIVE_DETAIL_REALS && !rc; f++) {
        rc = dsc_resize(&d->real[f], &d->real_capacity[f], at + 1, err);
        if (!rc)
            d->real[f][at] = real[f];
    }
    if (rc)
        return rc;
    d->histogram_length = n;
    memcpy(d->histogram + at * n, c->histogram, n * sizeof *d->histogram);
    d->requests++;
    dsc_token_hash_add(&d->outputs, output);
    return DSC_OK;
}

void live_detail_compare(live_detail *d, const live_measure *plain, int64_t tokens)
{
    const size_t last = d->requests - 1;
    d->integer[REQUEST_PLAIN_TOKENS - FIRST_INTEGER][last] = tokens;
    d->real[REQUEST_PLAIN_TIME - FIRST_REAL][last] = plain->time_s;
    d->real[REQUEST_PLAIN_PREFILL - FIRST_REAL][last] = plain->prefill_s;
}

void live_detail_likelihood(live_detail *d, live_likelihood x)
{
    d->real[REQUEST_NLL - FIRST_REAL][d->requests - 1] = x.nll;
    d->real[REQUEST_ENTROPY - FIRST_REAL][d->requests - 1] = x.entropy;
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
    int64_t *histogram; // owned
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
static int put_histograms(draft_row *r, const live_detail *d, dsc_error *err)
{
    const size_t n = d->histogram_length;
    size_t length = 1;
    int rc = dsc_new(&r->histogram, d->requests * n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < d->requests; i++)
        for (size_t m = length; m < n; m++)
            if (d->histogram[i * n + m])
                length = m + 1;
    for (size_t i = 0; i < d->requests; i++)
        memcpy(r->histogram + i * length, d->histogram + i * n, length * sizeof *r->histogram);
    put_list(r, REQUEST_HISTOGRAM, r->histogram, (int64_t)(d->requests * length));
    return DSC_OK;
}

static void put_requests(draft_row *r, const live_detail *d, bool baseline)
{
    const int64_t n = (int64_t)d->requests;
    for (int f = FIRST_INTEGER; f < FIRST_REAL; f++)
        if (baseline || f != REQUEST_PLAIN_TOKENS)
            put_list(r, f, d->integer[f - FIRST_INTEGER], n);
    for (int f = FIRST_REAL; f < REQUEST_HISTOGRAM; f++) {
        const bool plain = f >= REQUEST_PLAIN_TIME, drawn = !plain && f >= REQUEST_NLL;
        if ((!plain || baseline) && (!drawn || d->likelihood))
            put(r, f, (dsc_cell){.type = DSC_CELL_LIST, .reals = d->real[f - FIRST_REAL], .i = n});
    }
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

int live_detail_extend(const live_detail *d, const live_origin *o, const dsc_table *line,
                       dsc_table *t, dsc_error *err)
{
    draft_row r = {.histogram = NULL};
    put_passes(&r, o->counts);
    put_requests(&r, d, o->baseline);
    put_origin(&r, d, o);
    int rc = put_histograms(&r, d, err);
    if (!rc)
        rc = live_report_extend(t, line, fields, r.cell, r.has, FIELDS, err);
    free(r.histogram);
    return rc;
}

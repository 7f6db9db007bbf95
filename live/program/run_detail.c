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
    EOS,
    STOP,
    DEVICE,
    THREADS,
    BATCH_INVARIANT,
    TRACE_HASH,
    REPLAY_DRAFT,
    FIRST_REQUEST,
    PROMPTS_HASH,
    OUTPUTS_HASH,
    DRAFT_LAYERS,
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
    [EOS] = {"eos", DSC_CELL_LIST, "EOS tokens of the target"},
    [STOP] = {"stop", DSC_CELL_TEXT, "texts of --stop, as a JSON list"},
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
    [DRAFT_LAYERS] = {"draft_layers", DSC_CELL_TEXT,
     "value of --draft-layers: the layers of the target that are the draft model"},
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
    const size_t n = (size_t)c->histogram_length, at = d->requests; // n is equal for all requests
    int rc = dsc_resize(&d->histogram, &d->histogram_capacity, (at + 1) * n, err);
    if (!rc)
        rc = dsc_resize(&d->request, &d->capacity, at + 1, err);
    if (rc)
        return rc;
    d->request[at] = (live_request_detail){{c->output_tokens, c->target_calls, c->num_draft_tokens,
                                            c->num_accepted_tokens, c->draft_calls},
                                           {m->time_s, m->prefill_s}};
    d->histogram_length = n;
    memcpy(d->histogram + at * n, c->histogram, n * sizeof *d->histogram);
    d->requests++;
    dsc_token_hash_add(&d->outputs, output);
    return DSC_OK;
}

void live_detail_compare(live_detail *d, const live_measure *plain, int64_t tokens)
{
    live_request_detail *last = &d->request[d->requests - 1];
    last->integer[REQUEST_PLAIN_TOKENS - FIRST_INTEGER] = tokens;
    last->real[REQUEST_PLAIN_TIME - FIRST_REAL] = plain->time_s;
    last->real[REQUEST_PLAIN_PREFILL - FIRST_REAL] = plain->prefill_s;
}

void live_detail_likelihood(live_detail *d, live_likelihood x)
{
    live_request_detail *last = &d->request[d->requests - 1];
    last->real[REQUEST_NLL - FIRST_REAL] = x.nll;
    last->real[REQUEST_ENTROPY - FIRST_REAL] = x.entropy;
    d->likelihood = true;
}

// --- cells ---------------------------------------------------------------------------------------

static void put_integer(live_row *r, int field, int64_t x)
{
    live_row_put(r, &fields[field], dsc_cell_int(x));
}

static void put_text(live_row *r, int field, const char *text)
{
    live_row_put(r, &fields[field], dsc_cell_text(text));
}

static void put_list(live_row *r, int field, const int64_t *list, int64_t count)
{
    live_row_put(r, &fields[field], live_cell_list(list, (size_t)count));
}

static void put_passes(live_row *r, const dsc_counts *c)
{
    int64_t widths = c->width_length;
    put_integer(r, DRAFT_CALL_TOKENS, c->draft_call_tokens);
    put_integer(r, TARGET_CALL_TOKENS, c->target_call_tokens);
    put_integer(r, TARGET_CALL_CONTEXT, c->target_call_context);
    put_integer(r, OUTPUT_CONTEXT, c->output_context);
    while (widths > 1 && !c->width[widths - 1])
        widths--;
    if (widths)
        put_list(r, WIDTHS, c->width, widths);
    if (c->parallel_steps)
        put_list(r, PARALLEL, c->parallel_steps, c->parallel_length * c->parallel_length);
}

// Up to the longest accepted length of all requests.
static void put_histograms(live_row *r, const live_detail *d)
{
    const size_t n = d->histogram_length;
    size_t length = 1;
    for (size_t i = 0; i < d->requests; i++)
        for (size_t m = length; m < n; m++)
            if (d->histogram[i * n + m])
                length = m + 1;
    int64_t *list = live_row_new(r, d->requests * length, sizeof *list);
    for (size_t i = 0; i < d->requests && !r->rc; i++)
        memcpy(list + i * length, d->histogram + i * n, length * sizeof *list);
    put_list(r, REQUEST_HISTOGRAM, list, (int64_t)(d->requests * length));
}

static void put_requests(live_row *r, const live_detail *d, bool baseline)
{
    const size_t n = d->requests;
    for (int f = FIRST_INTEGER; f < FIRST_REAL; f++) {
        if (f == REQUEST_PLAIN_TOKENS && !baseline)
            continue;
        int64_t *list = live_row_new(r, n, sizeof *list);
        for (size_t i = 0; i < n && !r->rc; i++)
            list[i] = d->request[i].integer[f - FIRST_INTEGER];
        put_list(r, f, list, (int64_t)n);
    }
    for (int f = FIRST_REAL; f < REQUEST_HISTOGRAM; f++) {
        const bool plain = f >= REQUEST_PLAIN_TIME, drawn = !plain && f >= REQUEST_NLL;
        if ((plain && !baseline) || (drawn && !d->likelihood))
            continue;
        double *list = live_row_new(r, n, sizeof *list);
        for (size_t i = 0; i < n && !r->rc; i++)
            list[i] = d->request[i].real[f - FIRST_REAL];
        live_row_put(r, &fields[f], live_cell_reals(list, n));
    }
}

static void put_models(live_row *r, const live_pair *p)
{
    live_identity *m = live_row_new(r, LIVE_SIDES, sizeof *m);
    for (int side = 0; side < LIVE_SIDES && m; side++, m++) {
        const int at = MODELS + side * OF_MODEL;
        if (!live_identify(m, p, (live_side)side))
            continue;
        if (m->layers)
            put_text(r, DRAFT_LAYERS, m->layers);
        put_text(r, at + ARCHITECTURE, m->architecture);
        put_text(r, at + DTYPE, m->dtype);
        put_text(r, at + CONFIG_HASH, m->config_sha256);
        put_text(r, at + WEIGHTS_HASH, m->weights_sha256);
    }
}

static void put_hashes(live_row *r, const live_prompts *prompts, dsc_sha256 outputs)
{
    char(*hex)[DSC_SHA256_HEX] = live_row_new(r, 2, sizeof *hex);
    if (!hex)
        return;
    live_hash_prompts(prompts, hex[0]);
    dsc_sha256_final(&outputs, hex[1]);
    put_text(r, PROMPTS_HASH, hex[0]);
    put_text(r, OUTPUTS_HASH, hex[1]);
}

static void put_ends(live_row *r, const live_origin *o)
{
    int64_t *list = live_row_new(r, (size_t)o->ends->count, sizeof *list);
    for (int i = 0; i < o->ends->count && !r->rc; i++)
        list[i] = o->ends->id[i];
    put_list(r, EOS, list, o->ends->count);
    if (o->stop)
        put_text(r, STOP, o->stop);
}

void live_detail_put(const live_detail *d, const live_origin *o, live_row *r)
{
    const live_sampling *s = &o->pair->sampling;
    put_passes(r, o->counts);
    put_requests(r, d, o->baseline);
    put_histograms(r, d);
    put_integer(r, SCHEMA, LIVE_RESULT_SCHEMA);
    put_text(r, PROGRAM_VERSION, PACKAGE_VERSION);
    put_integer(r, INTERRUPTED, o->interrupted);
    live_row_put(r, &fields[TEMPERATURE], dsc_cell_real(s->temperature));
    put_integer(r, TOP_K, s->top_k);
    live_row_put(r, &fields[TOP_P], dsc_cell_real(s->top_p));
    put_integer(r, SEED, (int64_t)o->seed);
    put_integer(r, MAX_TOKENS, o->max_tokens);
    put_ends(r, o);
    put_text(r, DEVICE, o->pair->backend[LIVE_TARGET]->device);
    put_integer(r, THREADS, o->pair->all_threads);
    put_integer(r, BATCH_INVARIANT, o->pair->option[LIVE_PAIR_BATCH_INVARIANT].given);
    if (o->trace_hash) {
        put_text(r, TRACE_HASH, o->trace_hash);
        put_integer(r, REPLAY_DRAFT, o->replay_draft);
    }
    put_integer(r, FIRST_REQUEST, o->prompts->skipped);
    put_hashes(r, o->prompts, d->outputs);
    put_models(r, o->pair);
}

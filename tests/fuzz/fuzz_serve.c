// SPDX-License-Identifier: Apache-2.0
// Loads, policies and limits of draftscope serve, and runs under them. Input: a byte (the method's
// draft length), a byte (bits 0-1: who drafts, 2: few KV blocks, 3: few sequences, 4: recorded
// drafts, 5: requests are served; without it only texts are read, many times as fast), then
// arrivals
// ("file" stands for the file of times), a policy, limits, and the file, with NUL between them.
#include "cli/serve/serve.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

FUZZ_FORMAT(serve, .head = 2, .parts = 4, .mark = 0, .change = {fuzz_change_table})

enum { ITEMS = 3, LONGEST = 40, LEVELS = 16, REQUESTS = 24 };

static const dsc_option options[SERVE_ARRIVALS + 1] = {
    [SERVE_ARRIVALS] = {.name = "arrivals", .kind = DSC_OPTION_TEXT, .metavar = "A"}};
static const cli_command command = {.name = "serve", CLI_OPTIONS(options)};

typedef struct bounds {
    int64_t completed, kv_blocks;
} bounds;

static int on_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    const bounds *b = user;
    (void)err;
    fuzz_require(e->running_count <= e->options->max_num_seqs, "sequences in their limit", NULL);
    fuzz_require(!b->kv_blocks || (e->free_blocks >= 0 && e->free_blocks <= b->kv_blocks),
                 "blocks of the KV cache", NULL);
    fuzz_require(e->step.decode_tokens + e->step.prefill_tokens <=
                     e->options->max_num_batched_tokens,
                 "tokens of a step in their limit", NULL);
    return DSC_OK;
}

static int on_complete(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    bounds *b = user;
    (void)err;
    fuzz_require(s->emitted == s->output, "all tokens of the output", NULL);
    fuzz_require(s->arrival_s <= s->first_s && s->first_s <= s->last_s, "times in order", NULL);
    b->completed++;
    return DSC_OK;
}

static void check_totals(const dsc_serve_totals *t, const dsc_serve_options *o, const bounds *b)
{
    fuzz_require(t->completed == o->requests && b->completed == o->requests, "all are served",
                 NULL);
    fuzz_require(isfinite(t->end_s) && t->end_s >= t->begin_s, "the clock", NULL);
    fuzz_require(t->num_accepted_tokens <= t->num_draft_tokens, "accepted tokens were drafted",
                 NULL);
    fuzz_require(t->good <= t->measured, "good requests were measured", NULL);
}

// Serves some requests of three lengths.
static void run(const dsc_arrivals *arrivals, dsc_serve_policy *policy, dsc_serve_options *o,
                uint8_t choice)
{
    static dsc_serve_draft drafts[ITEMS][LONGEST];
    static const double survival[LEVELS] = {.9, .8, .7, .6, .5, .4, .3, .2, .1};
    dsc_serve_item item[ITEMS];
    dsc_cost cost;
    dsc_error err = {0};
    if (dsc_cost_parse(&cost, "linear:0.01,0.001,0.002", &err))
        exit(99);
    for (int i = 0; i < ITEMS; i++) {
        item[i] = (dsc_serve_item){.prompt = 1 + 100 * i,
                                   .output = 1 + (LONGEST - 1) * i / 2,
                                   .draft = choice & 16 ? drafts[i] : NULL};
        for (int t = 0; t < LONGEST; t++)
            drafts[i][t] = (dsc_serve_draft){4, (uint16_t)((i + t) % 5)};
    }
    bounds b = {.kv_blocks = choice & 4 ? 40 : 0};
    const dsc_serve_pool pool = {
        .item = item, .count = ITEMS, .survival = survival, .levels = LEVELS};
    const dsc_serve_price price = {
        .cost = &cost, .drafting = (dsc_serve_drafting)(choice % 3), .prefill_s = NAN};
    dsc_serve_totals totals;
    o->max_num_seqs = choice & 8 ? 2 : 64;
    o->max_num_batched_tokens = 64;
    o->kv_blocks = b.kv_blocks;
    o->block_size = 16;
    o->lookahead = choice & 4 ? 8 : 0;
    o->step = on_step;
    o->complete = on_complete;
    o->user = &b;
    const int rc = dsc_serve_run(&totals, &pool, arrivals, &price, policy, o, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        check_totals(&totals, o, &b);
    dsc_serve_totals_fini(&totals);
    dsc_cost_fini(&cost);
}

// One load of those that the arrivals name.
static void serve_load(const cli_serve_load *load, const char *policy_text, const char *slo,
                       uint8_t k, uint8_t choice)
{
    static const double recorded[REQUESTS] = {0, 0, .5, 1, 1, 1, 2, 9, 30, 1e3, 1e3, 1e4};
    dsc_error err = {0};
    dsc_serve_options o = {.requests = REQUESTS, .drain = true};
    dsc_arrivals arrivals = load->arrivals;
    dsc_serve_policy policy;
    if (arrivals.kind == DSC_ARRIVALS_LISTED) {
        o.requests = load->recorded ? 12 : load->times < REQUESTS ? load->times : REQUESTS;
        arrivals.time = load->recorded ? recorded : load->time;
        arrivals.times = o.requests;
    }
    int rc = cli_serve_read_slo(slo, &o, &err);
    if (!rc)
        fuzz_require(o.slo_ttft_s > 0 && o.slo_tpot_s > 0, "limits above 0", NULL);
    if (!rc)
        rc = dsc_serve_policy_parse(&policy, policy_text, k % (DSC_SERVE_LONGEST + 1), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    fuzz_require(policy.k >= 0 && policy.k <= DSC_SERVE_LONGEST, "a draft length", NULL);
    if (policy.k <= LEVELS && choice & 32)
        run(&arrivals, &policy, &o, choice);
    dsc_serve_policy_fini(&policy);
}

static char *text_of(fuzz_bytes part)
{
    char *text = strndup((const char *)part.data, part.size);
    if (!text)
        exit(99);
    return text;
}

FUZZ_TARGET(serve)
{
    enum { LOADS = 4 };
    fuzz_bytes in = {data, size};
    const uint8_t k = fuzz_byte(&in), choice = fuzz_byte(&in);
    char *arrivals = text_of(fuzz_before(&in, '\0')), *policy = text_of(fuzz_before(&in, '\0')),
         *slo = text_of(fuzz_before(&in, '\0')), named[600];
    dsc_error err = {0};
    const char *path = fuzz_file("times.csv", in.data, in.size);
    const bool file = !strcmp(arrivals, "file");
    snprintf(named, sizeof named, "file:%s", path);
    dsc_option_use use = {.option = &options[SERVE_ARRIVALS], .text = file ? named : arrivals};
    const cli_call call = {.command = &command, .uses = {&use, 1, 1}};
    cli_serve_loads loads = {0};
    // No other file is read, and a list of thousands of rates takes long.
    if (file || (!strstr(arrivals, "file:") && strlen(arrivals) < 40)) {
        const int rc = cli_serve_loads_read(&loads, &call, &err);
        if (rc)
            fuzz_refused(rc, &err);
        for (size_t l = 0; l < loads.count && l < LOADS && !rc; l++)
            serve_load(&loads.load[l], policy, slo, k, choice);
    }
    cli_serve_loads_fini(&loads);
    free(arrivals);
    free(policy);
    free(slo);
    return 0;
}

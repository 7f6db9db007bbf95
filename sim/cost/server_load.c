// SPDX-License-Identifier: Apache-2.0
// The differences of two pages. Names of vLLM (vllm/v1/metrics/loggers.py), with or without
// "_total":
//   inter_token_latency_seconds_{sum,count}   time between two outputs of a request; before 0.11
//                                             time_per_output_token_seconds
//   time_to_first_token_seconds_count         first tokens, which end a prefill
//   generation_tokens, prompt_tokens, iteration_tokens_total_count, num_requests_running
//   spec_decode_num_{drafts,draft_tokens,accepted_tokens}
// An output is what one step of the engine generated for a request, whatever the number of its
// tokens (IterationStats.update_from_output in vllm/v1/metrics/stats.py observes one latency for
// each, since commit 0015f3f), so the mean latency is the mean time of a step also with
// speculation. The counts check this: tokens after the first = observations + accepted tokens.
// Where observations are as many as these tokens, the histogram is of tokens, and a step takes the
// time of all it generated.
#include "sim/cost/server_load.h"

#include "traces/files/metrics_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum metric {
    LATENCY_SUM,
    LATENCY_COUNT,
    FIRST_TOKENS,
    OUTPUT,
    PROMPT,
    ITERATIONS,
    DRAFTS,
    DRAFT_TOKENS,
    ACCEPTED,
    COUNTERS, // the following are gauges
    RUNNING = COUNTERS,
    STARTED, // Unix time of the process
    METRICS
} metric;

static const struct {
    const char *name, *older;
} names[METRICS] = {
    [LATENCY_SUM] = {"inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"},
    [LATENCY_COUNT] = {"inter_token_latency_seconds_count", "time_per_output_token_seconds_count"},
    [FIRST_TOKENS] = {"time_to_first_token_seconds_count", NULL},
    [OUTPUT] = {"generation_tokens", NULL},
    [PROMPT] = {"prompt_tokens", NULL},
    [ITERATIONS] = {"iteration_tokens_total_count", NULL},
    [DRAFTS] = {"spec_decode_num_drafts", NULL},
    [DRAFT_TOKENS] = {"spec_decode_num_draft_tokens", NULL},
    [ACCEPTED] = {"spec_decode_num_accepted_tokens", NULL},
    [RUNNING] = {"num_requests_running", NULL},
    [STARTED] = {"process_start_time_seconds", NULL},
};

typedef struct page {
    double value[METRICS];      // sum over engines; NaN: not on the page
    bool older[METRICS];        // by its older name
    char seen[METRICS][64][64]; // the engines, to find a line that comes twice
    int engines[METRICS];
    char model[128];
} page;

static bool is_name(const char *name, size_t length, const char *wanted)
{
    return wanted && strlen(wanted) == length && memcmp(name, wanted, length) == 0;
}

static metric find_metric(const char *name, size_t length, bool *older)
{
    dsc_metric_stem(&name, &length);
    dsc_metric_without(name, &length, "_total");
    for (metric m = 0; m < METRICS; m++) {
        *older = is_name(name, length, names[m].older);
        if (*older || is_name(name, length, names[m].name))
            return m;
    }
    return METRICS;
}

static bool is_wanted(const char *name, size_t length)
{
    bool older;
    return find_metric(name, length, &older) != METRICS;
}

// Copies a label's value.
static void copy_label(const dsc_metric_sample *m, const char *name, char *out, size_t size)
{
    const char *value = dsc_metric_label(m, name);
    snprintf(out, size, "%.*s", value ? (int)(strlen(value) - 1) : 0, value ? value : "");
}

static int check_model(page *p, const dsc_metric_sample *m, dsc_error *err)
{
    char model[sizeof p->model];
    copy_label(m, "model_name", model, sizeof model);
    if (*model && *p->model && strcmp(model, p->model) != 0)
        return dsc_fail(err, DSC_EINPUT,
                        "the page has metrics of '%.60s' and of '%.60s'; times of several models "
                        "cannot be separated: keep the lines of one",
                        p->model, model);
    if (*model)
        memcpy(p->model, model, sizeof model);
    return DSC_OK;
}

static int check_engine(page *p, metric which, const dsc_metric_sample *m, dsc_error *err)
{
    char engine[64];
    copy_label(m, "engine", engine, sizeof engine);
    for (int i = 0; i < p->engines[which]; i++)
        if (strcmp(p->seen[which][i], engine) == 0)
            return dsc_fail(err, DSC_EINPUT,
                            "the metric occurs twice for engine '%.60s': the page is of several "
                            "servers",
                            engine);
    if (p->engines[which] == 64)
        return dsc_fail(err, DSC_EINPUT, "the page has more than 64 engines");
    memcpy(p->seen[which][p->engines[which]++], engine, sizeof engine);
    return DSC_OK;
}

static int keep(void *user, const dsc_metric_sample *m, dsc_error *err)
{
    page *p = user;
    bool older;
    const metric which = find_metric(m->name, m->length, &older);
    if (!isnan(p->value[which]) && older != p->older[which]) {
        if (older) // newer versions have both for a while, with the same values
            return DSC_OK;
        p->value[which] = (double)NAN;
        p->engines[which] = 0;
    }
    if (!(m->value >= 0 && m->value <= 0x1p53))
        return dsc_fail(err, DSC_EINPUT, "%s is '%.60s'; it must be a number from 0 to 2^53",
                        names[which].name, m->text);
    int rc = which == STARTED ? DSC_OK : check_model(p, m, err);
    if (!rc)
        rc = check_engine(p, which, m, err);
    p->older[which] = older;
    p->value[which] = (isnan(p->value[which]) ? 0 : p->value[which]) + m->value;
    return rc;
}

static int read_page(page *p, const char *path, dsc_error *err)
{
    memset(p, 0, sizeof *p);
    for (metric m = 0; m < METRICS; m++)
        p->value[m] = (double)NAN;
    int rc = dsc_metrics_page_read(path, is_wanted, keep, p, err);
    static const metric needed[] = {LATENCY_SUM, LATENCY_COUNT, OUTPUT, RUNNING};
    for (size_t i = 0; i < sizeof needed / sizeof *needed && !rc; i++)
        if (isnan(p->value[needed[i]]))
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s: no metric vllm:%s; is this the /metrics page of "
                          "a vLLM server?",
                          path, names[needed[i]].name);
    return rc;
}

// The increase of each counter; one that a page lacks counts as 0 there.
static int subtract(double out[COUNTERS], const page *b, const page *a, const char *after,
                    dsc_error *err)
{
    if (strcmp(a->model, b->model) != 0)
        return dsc_fail(err, DSC_EINPUT, "%s: the model is '%.60s', and before it was '%.60s'",
                        after, a->model, b->model);
    if (!isnan(a->value[STARTED]) && !isnan(b->value[STARTED]) &&
        a->value[STARTED] != b->value[STARTED])
        return dsc_fail(err, DSC_EINPUT,
                        "%s: process_start_time_seconds differs: the server was restarted between "
                        "the snapshots, or they are of two servers",
                        after);
    for (metric m = 0; m < COUNTERS; m++) {
        const double from = isnan(b->value[m]) ? 0 : b->value[m];
        const double to = isnan(a->value[m]) ? 0 : a->value[m];
        out[m] = to - from;
        if (a->older[m] != b->older[m] || out[m] < 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: counter %s decreased or disappeared: the server was restarted "
                            "between the snapshots, or they are in the wrong order",
                            after, names[m].name);
    }
    return DSC_OK;
}

static bool about(double x, double y)
{
    return fabs(x - y) <= .1 * fmax(x, y);
}

// Decoding steps and their mean time.
static int read_steps(dsc_server_load *out, const double by[COUNTERS], const char *after,
                      dsc_error *err)
{
    const double seen = by[LATENCY_COUNT], later = by[OUTPUT] - by[FIRST_TOKENS];
    const double steps = later - by[ACCEPTED];
    if (!(seen > 0) || !(by[LATENCY_SUM] > 0))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: no token was generated between the snapshots, or they are the same",
                        after);
    const bool of_steps = fabs(seen - steps) <= fabs(seen - later);
    if (!about(seen, of_steps ? steps : later))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: %.0f latencies, but %.0f tokens after the first ones of which %.0f "
                        "were drafts: the metrics are not of the same requests",
                        after, seen, later, by[ACCEPTED]);
    out->steps = of_steps ? seen : steps;
    out->step_s = by[LATENCY_SUM] / out->steps;
    return DSC_OK;
}

int dsc_server_load_read(dsc_server_load *out, const char *before, const char *after,
                         dsc_error *err)
{
    page b, a;
    double by[COUNTERS];
    if (!out || !before || !after)
        return dsc_fail(err, DSC_EUSAGE, "out, before and after must not be NULL");
    *out = (dsc_server_load){0};
    int rc = read_page(&b, before, err);
    if (!rc)
        rc = read_page(&a, after, err);
    if (!rc)
        rc = subtract(by, &b, &a, after, err);
    if (!rc)
        rc = read_steps(out, by, after, err);
    if (rc)
        return rc;
    memcpy(out->model, a.model, sizeof out->model);
    out->engines = a.engines[RUNNING];
    out->running[0] = b.value[RUNNING];
    out->running[1] = a.value[RUNNING];
    out->output_tokens = by[OUTPUT];
    out->prompt_tokens = by[PROMPT];
    out->num_drafts = by[DRAFTS];
    out->num_draft_tokens = by[DRAFT_TOKENS];
    out->num_accepted_tokens = by[ACCEPTED];
    out->batch = by[ITERATIONS] > 0 ? out->steps / by[ITERATIONS]
                                    : (out->running[0] + out->running[1]) / 2 / out->engines;
    if (!(out->batch > 0))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: no request runs at either snapshot, and the page lacks "
                        "vllm:iteration_tokens_total: the batch size is unknown",
                        after);
    return DSC_OK;
}

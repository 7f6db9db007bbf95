// SPDX-License-Identifier: Apache-2.0
// The figures of a served run: their columns, and the intervals of means over batches of
// consecutive requests (batch means; Schmeiser 1982, "Batch size effects in the analysis of
// simulation output", advises 10 to 30 batches).
#include "base/columns.h"
#include "cli/serve/serve.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define REAL(name, help)                                                                           \
    {                                                                                              \
        name, DSC_CELL_REAL, help                                                                  \
    }
#define COUNT(name, help)                                                                          \
    {                                                                                              \
        name, DSC_CELL_INT, help                                                                   \
    }
#define QUANTILES(name, what)                                                                      \
    REAL(name "_p50_s", "median " what), REAL(name "_p90_s", "90th percentile of the " what),      \
        REAL(name "_p95_s", "95th percentile of the " what),                                       \
        REAL(name "_p99_s", "99th percentile of the " what)
#define TTFT "time to first token, in seconds, from the arrival on"
#define TPOT "time per output token after the first, in seconds, of a request"
#define ITL "time between two passes that emit tokens of a request, in seconds"
#define ITL_TOKEN "time between two passes, divided among the tokens that the second one emits"
#define E2E "time from the arrival to the last token, in seconds"
#define HALF "half of the 95 % interval of the mean, by batches of requests"

static const dsc_column columns[] = {
    REAL("largest_stable_qps",
         "requests per second that are completed while others wait: at a higher rate of arrivals "
         "the queue grows; nan for closed loops, and where the cost model has no times for as many "
         "requests as may run"),
    COUNT(DSC_COL_REQUESTS, "measured requests, which the times and shares of an SLO describe"),
    COUNT(DSC_COL_OUTPUT_TOKENS, "their output tokens"),
    REAL("requests_per_s",
         "requests completed per second in the window, while the measured requests "
         "arrived; with --drain, in the whole run"),
    REAL(DSC_COL_TOKENS_PER_S, "output tokens per second of all requests together"),
    REAL("goodput",
         "requests_per_s times the share of the measured requests that are within every limit "
         "of --slo"),
    REAL("ttft_mean_s", "mean " TTFT),
    REAL("ttft_mean_half_s", "time to first token: " HALF),
    QUANTILES("ttft", TTFT),
    REAL("tpot_mean_s", "mean " TPOT),
    REAL("tpot_mean_half_s", "time per output token: " HALF),
    QUANTILES("tpot", TPOT),
    REAL("itl_mean_s", "mean " ITL),
    QUANTILES("itl", ITL),
    REAL("itl_token_mean_s", "mean " ITL_TOKEN),
    QUANTILES("itl_token", ITL_TOKEN),
    REAL("e2e_mean_s", "mean " E2E),
    REAL("e2e_mean_half_s", "time from arrival to last token: " HALF),
    QUANTILES("e2e", E2E),
    REAL("mean_running", "mean number of running requests in the window"),
    REAL("mean_waiting", "mean number of waiting requests in the window"),
    COUNT("most_running", "largest number of running requests"),
    COUNT("most_waiting", "largest number of waiting requests"),
    REAL("kv_use", "mean share of the KV blocks in use; nan without a limit"),
    REAL("kv_use_most", "largest share of the KV blocks in use; nan without a limit"),
    COUNT("preemptions", "requests that lost their KV cache to others"),
    COUNT("recomputed_tokens", "tokens that were computed again after preemptions"),
    COUNT("steps", "steps of the engine in the window, as all counts below"),
    COUNT(DSC_COL_NUM_DRAFTS, "passes of a request that verified a draft"),
    COUNT(DSC_COL_NUM_DRAFT_TOKENS, "draft tokens that were verified"),
    COUNT(DSC_COL_NUM_ACCEPTED_TOKENS, "draft tokens that were accepted"),
    COUNT("wasted_tokens", "draft tokens that were verified and rejected"),
    REAL("draft_share", "share of the engine's time in passes of the draft model"),
    REAL("target_share", "share of the engine's time in passes of the target"),
    REAL("overhead_share", "share of the engine's time in the host's overhead"),
    REAL("idle_share", "share of the window without any request"),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

const dsc_column *cli_serve_columns(size_t *count)
{
    *count = COLUMNS;
    return columns;
}

double cli_serve_figure(const cli_serve_run *run, const char *column)
{
    size_t i = 0;
    while (strcmp(columns[i].name, column))
        i++;
    return run->figure[i];
}

// --- intervals -----------------------------------------------------------------------------------

enum { NO_MEAN, TTFT_MEAN, TPOT_MEAN, E2E_MEAN };

static double mean_of(const cli_serve_sums *x, int which)
{
    return which == TPOT_MEAN   ? x->tpot_s / (double)x->tpots
           : which == TTFT_MEAN ? x->ttft_s / (double)x->requests
                                : x->latency_s / (double)x->requests;
}

// Half of the interval; NaN where a batch is empty.
static double half_interval(const cli_serve_blocks *b, int which)
{
    const double student = 2.093024054408263; // 0.975 quantile, 19 degrees of freedom
    double mean = 0, square = 0;
    for (int i = 0; i < CLI_SERVE_BATCHES; i++) {
        const double x = mean_of(&b->batch[i], which);
        const double before = mean;
        mean += (x - mean) / (i + 1);
        square += (x - before) * (x - mean);
    }
    return student * sqrt(square / (CLI_SERVE_BATCHES - 1) / CLI_SERVE_BATCHES);
}

// --- figures -------------------------------------------------------------------------------------

static double *put_times(double *v, const dsc_latency *x, const cli_serve_blocks *b, int which)
{
    *v++ = dsc_latency_mean(x);
    if (which != NO_MEAN)
        *v++ = half_interval(b, which);
    *v++ = dsc_latency_quantile(x, 0.50);
    *v++ = dsc_latency_quantile(x, 0.90);
    *v++ = dsc_latency_quantile(x, 0.95);
    *v++ = dsc_latency_quantile(x, 0.99);
    return v;
}

static double *put_engine(double *v, const dsc_serve_totals *t, const dsc_serve_options *o)
{
    const double run_s = t->end_s - t->begin_s, busy_s = run_s - t->idle_s;
    const double blocks = o->kv_blocks ? (double)o->kv_blocks : NAN;
    *v++ = t->running_area / run_s;
    *v++ = t->waiting_area / run_s;
    *v++ = (double)t->most_running;
    *v++ = (double)t->most_waiting;
    *v++ = t->block_area / run_s / blocks;
    *v++ = (double)t->most_blocks / blocks;
    *v++ = (double)t->preemptions;
    *v++ = (double)t->recomputed_tokens;
    *v++ = (double)t->steps;
    *v++ = (double)t->num_drafts;
    *v++ = (double)t->num_draft_tokens;
    *v++ = (double)t->num_accepted_tokens;
    *v++ = (double)(t->num_draft_tokens - t->num_accepted_tokens);
    *v++ = t->draft_s / busy_s;
    *v++ = t->target_s / busy_s;
    *v++ = t->overhead_s / busy_s;
    *v++ = t->idle_s / run_s;
    return v;
}

// Where a queue grows, times from the arrival on grow with it: they are no property of the load.
static void leave_out_waits(cli_serve_run *run, const dsc_serve_options *o)
{
    static const char *const wait[] = {"ttft_", "e2e_", "mean_waiting"};
    for (size_t i = 0; i < COLUMNS; i++) {
        for (size_t w = 0; w < sizeof wait / sizeof *wait; w++)
            if (!strncmp(columns[i].name, wait[w], strlen(wait[w])))
                run->figure[i] = NAN;
        if (!strcmp(columns[i].name, "goodput") && isfinite(o->slo_ttft_s))
            run->figure[i] = 0; // after long enough, none is in time
    }
}

void cli_serve_figures(cli_serve_run *run, const dsc_serve_totals *t, const dsc_serve_options *o)
{
    const cli_serve_blocks *b = &run->blocks;
    static_assert((int)COLUMNS <= (int)CLI_SERVE_FIGURES, "room for every column");
    double *v = run->figure;
    const bool open = run->load->arrivals.kind != DSC_ARRIVALS_CLOSED && !run->capacity->bounded;
    *v++ = open ? run->capacity->qps : NAN;
    *v++ = (double)t->measured;
    *v++ = (double)t->measured_tokens;
    const double run_s = t->end_s - t->begin_s;
    *v++ = (double)t->completed / run_s;
    *v++ = (double)t->output_tokens / run_s;
    *v++ = (double)t->good / (double)t->measured * ((double)t->completed / run_s);
    v = put_times(v, &t->ttft, b, TTFT_MEAN);
    v = put_times(v, &t->tpot, b, TPOT_MEAN);
    v = put_times(v, &t->itl, b, NO_MEAN);
    v = put_times(v, &t->itl_token, b, NO_MEAN);
    v = put_times(v, &t->e2e, b, E2E_MEAN);
    v = put_engine(v, t, o);
    assert(v == run->figure + COLUMNS);
    if (run->saturated && !o->drain)
        leave_out_waits(run, o);
}

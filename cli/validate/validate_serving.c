// SPDX-License-Identifier: Apache-2.0
// A measured server: Llama-3.1-8B with and without EAGLE-3, two workloads, a closed loop of 1 to 64
// clients. The serving engine (sim/serve) predicts throughput and latencies from step times of
// four sources:
//
// - measured: the median step of each cell, and one prefill time for each token and workload, which
//   is fitted to one throughput;
// - extrapolated: with speculation only the step of one client is known. With more clients, a step
//   takes what the measured step without speculation takes, and the difference that drafting and
//   verifying makes: that of one client, and what the roofline adds to it;
// - strict: the same with a roofline whose constants know no step of speculation with more clients;
// - roofline: no time is measured here. Its constants are calibrated on the steps of HumanEval
//   (sim/cost/presets.c), so GSM8K is held out.
//
// A draft token is accepted independently of the others, at the rate that gives the measured mean
// acceptance length.
#include "cli/validate/validate.h"
#include "base/rng.h"
#include "base/statistics.h"
#include "sim/serve/mean_field.h"
#include "sim/serve/serve_policy.h"
#include "theory/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAFTED = 5, RUNS = 6, LOADS = 4, MOST_CLIENTS = 256 };
enum {
    MOST_TOKENS = 100000,
    REQUESTS_PER_CLIENT = 8,
    MOST_REQUESTS = REQUESTS_PER_CLIENT * MOST_CLIENTS
};
enum { NONE, EAGLE3, METHODS };
enum { MEASURED, EXTRAPOLATED, STRICT, ROOFLINE, SOURCES };
enum { GSM8K, HUMANEVAL, WORKLOADS };

static const double loads[LOADS] = {1, 8, 32, 64}; // clients
static const char *const workload_names[WORKLOADS] = {"GSM8K", "HumanEval"};
static const char *const names[WORKLOADS][METHODS] = {{"GSM8K, none", "GSM8K, eagle3"},
                                                      {"HumanEval, none", "HumanEval, eagle3"}};
static const char *const rooflines[METHODS] = {"roofline:llama-3.1-8b,a100-80",
                                               "roofline:llama-3.1-8b,eagle3,a100-80"};

// Least squares as in sim/cost/presets.c, over the steps of HumanEval without speculation and of
// one client with it, and of one H100, with the prefill time that is fitted here for GSM8K (65 us).
static const char strict_roofline[] =
    "roofline:llama-3.1-8b,eagle3,a100-80,bandwidth-efficiency=0.894,compute-efficiency=0.671,"
    "overlap=0.505,overhead=0.0024858,draft-overhead=0.0001019";

typedef struct outcome {
    double tokens_per_s, e2e_p50_s, ttft_p50_s;
} outcome;

typedef struct cell {
    double requests, prompt_tokens, output_tokens, acceptance_length, step_s; // given
    outcome by[SOURCES];
    double closed_form; // output tokens per second
} cell;

// Seconds of a step with loads[i] sequences.
typedef struct steps {
    double seconds[LOADS];
} steps;

typedef struct workload {
    cell cell[METHODS][LOADS];
    double deviation, most; // of the output tokens; 0: all requests have the mean
    double prefill_s;       // of a token, fitted
    steps steps[METHODS][ROOFLINE];
    double crossover[SOURCES]; // clients from which on speculation does not pay
} workload;

typedef struct serving {
    workload workload[WORKLOADS];
    dsc_cost roofline[METHODS], strict;
    dsc_serve_item *item; // [MOST_REQUESTS]
    double *score;        // [MOST_REQUESTS] standard scores of the items' outputs
    uint64_t seed;        // of the run
} serving;

// --- step times by the number of sequences -------------------------------------------------------

// Linear between and beyond the measured numbers of sequences.
static int step_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    const double *s = ((const steps *)cost->model)->seconds;
    int i = 0;
    (void)err;
    while (i < LOADS - 2 && pass.batch > loads[i + 1])
        i++;
    *seconds = s[i] + (pass.batch - loads[i]) / (loads[i + 1] - loads[i]) * (s[i + 1] - s[i]);
    return DSC_OK;
}

static const dsc_cost_type by_sequences = {
    .name = "steps", .summary = "by the number of sequences", .target = step_time};

// What the roofline adds to a step for drafting and for verifying the draft.
static int find_difference(double *seconds, const dsc_cost *roofline, const cell *c, double clients,
                           dsc_error *err)
{
    const double context = c->prompt_tokens + c->output_tokens / 2;
    double one, all, drafting;
    int rc = dsc_cost_target(roofline, (dsc_pass){1, context, clients, false}, &one, err);
    if (!rc)
        rc = dsc_cost_target(roofline, (dsc_pass){1 + DRAFTED, context, clients, false}, &all, err);
    if (!rc)
        rc = dsc_cost_drafts(roofline, (dsc_pass){1, context, clients, false}, 1 + DRAFTED, DRAFTED,
                             1, &drafting, err);
    if (!rc)
        *seconds = all - one + drafting;
    return rc;
}

static int extrapolate(workload *w, int source, const dsc_cost *roofline, dsc_error *err)
{
    const cell *plain = w->cell[NONE], *speculative = w->cell[EAGLE3];
    double first = 0, difference;
    for (int i = 0; i < LOADS; i++) {
        const int rc = find_difference(&difference, roofline, &plain[i], loads[i], err);
        if (rc)
            return rc;
        first = i ? first : difference;
        w->steps[EAGLE3][source].seconds[i] =
            plain[i].step_s + speculative[0].step_s - plain[0].step_s + difference - first;
    }
    return DSC_OK;
}

static int find_steps(workload *w, const serving *v, dsc_error *err)
{
    for (int i = 0; i < LOADS; i++)
        for (int m = 0; m < METHODS; m++)
            for (int source = 0; source < ROOFLINE; source++)
                w->steps[m][source].seconds[i] = w->cell[m][i].step_s;
    const int rc = extrapolate(w, EXTRAPOLATED, &v->roofline[EAGLE3], err);
    return rc ? rc : extrapolate(w, STRICT, &v->strict, err);
}

// --- requests ------------------------------------------------------------------------------------

// A cell, or one with its lengths and acceptance and another number of clients.
typedef struct load {
    const cell *cell;
    double requests, clients;
    int method, source, runs;
} load;

// Outputs at equidistant quantiles of a normal distribution that is cut at 1 and at the most
// tokens, with the mean of the cell.
static void find_outputs(serving *v, const workload *w, const load *of)
{
    const cell *c = of->cell;
    const int count = (int)of->requests;
    double center = c->output_tokens;
    for (int i = 0; i < count; i++)
        v->score[i] = w->deviation > 0 ? dsc_normal_quantile((i + .5) / count) : 0;
    for (int pass = 0; pass < 20; pass++) { // cutting moves the mean
        double sum = 0;
        for (int i = 0; i < count; i++) {
            const double x = round(center + w->deviation * v->score[i]);
            v->item[i].prompt = (int32_t)lround(c->prompt_tokens);
            v->item[i].output = (int32_t)fmin(fmax(x, 1), w->most);
            sum += v->item[i].output;
        }
        center += c->output_tokens - sum / count;
    }
}

static void shuffle(dsc_serve_item *item, int count, uint64_t seed)
{
    for (int i = count; i-- > 1;) {
        const uint32_t j = dsc_rng_below(seed, (uint64_t)i, 0, DSC_RNG_ORDER, (uint32_t)i + 1);
        const dsc_serve_item other = item[j];
        item[j] = item[i];
        item[i] = other;
    }
}

// --- runs ----------------------------------------------------------------------------------------

static int serve_once(dsc_serve_totals *t, const serving *v, const load *of,
                      const dsc_serve_price *price, dsc_error *err)
{
    const int k = of->method == NONE ? 0 : DRAFTED;
    const double rate = k ? dsc_iid_rate(of->cell->acceptance_length - 1, k) : 0;
    double survival[DRAFTED];
    for (int i = 0; i < DRAFTED; i++)
        survival[i] = i ? survival[i - 1] * rate : rate;
    const dsc_serve_pool pool = {.item = v->item,
                                 .count = (size_t)of->requests,
                                 .survival = survival,
                                 .levels = DRAFTED,
                                 .seed = v->seed};
    const dsc_arrivals arrivals = {.kind = DSC_ARRIVALS_CLOSED, .clients = (int64_t)of->clients};
    const dsc_serve_options options = {.requests = (int64_t)of->requests,
                                       .drain = true,
                                       .max_num_seqs = MOST_CLIENTS,
                                       .max_num_batched_tokens = 2048, // vLLM's default
                                       .block_size = 16,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY};
    dsc_serve_policy policy;
    int rc = dsc_serve_policy_parse(&policy, "fixed", k, err);
    if (rc)
        return rc;
    rc = dsc_serve_run(t, &pool, &arrivals, price, &policy, &options, err);
    dsc_serve_policy_fini(&policy);
    return rc;
}

// The means of some runs, each with the requests in another order and other accepted tokens.
static int serve(outcome *out, serving *v, const workload *w, const load *of, dsc_error *err)
{
    const bool roofline = of->source == ROOFLINE;
    steps given = w->steps[of->method][roofline ? MEASURED : of->source];
    const dsc_cost cost = {.type = &by_sequences, .model = &given};
    const dsc_serve_price price = {
        .cost = roofline ? &v->roofline[of->method] : &cost,
        .drafting = roofline && of->method != NONE ? DSC_SERVE_DRAFT_EACH : DSC_SERVE_DRAFT_FREE,
        .prefill_s = roofline ? (double)NAN : w->prefill_s};
    int rc = DSC_OK;
    *out = (outcome){0};
    find_outputs(v, w, of);
    for (v->seed = 1; v->seed <= (uint64_t)of->runs && !rc; v->seed++) {
        dsc_serve_totals t = {0};
        shuffle(v->item, (int)of->requests, v->seed);
        rc = serve_once(&t, v, of, &price, err);
        if (!rc) {
            out->tokens_per_s += (double)t.output_tokens / (t.end_s - t.begin_s) / of->runs;
            out->e2e_p50_s += dsc_latency_quantile(&t.e2e, .5) / of->runs;
            out->ttft_p50_s += dsc_latency_quantile(&t.ttft, .5) / of->runs;
        }
        dsc_serve_totals_fini(&t);
    }
    return rc;
}

static load cell_load(const workload *w, int method, int i, int source)
{
    const cell *c = &w->cell[method][i];
    return (load){c, c->requests, loads[i], method, source, RUNS};
}

// Fits the prefill time of a token to the throughput without speculation with the most clients.
static int fit_prefill(serving *v, workload *w, double tokens_per_s, dsc_error *err)
{
    const load of = cell_load(w, NONE, LOADS - 1, MEASURED);
    double low = 0, high = 1e-3;
    int rc = DSC_OK;
    for (int i = 0; i < 20 && !rc; i++) {
        outcome got;
        w->prefill_s = (low + high) / 2;
        rc = serve(&got, v, w, &of, err);
        *(got.tokens_per_s > tokens_per_s ? &low : &high) = w->prefill_s;
    }
    return rc;
}

// The least number of clients, up to MOST_CLIENTS, with which speculation does not pay; the
// lengths and the acceptance are those of the cell with the most clients.
static int find_crossover(serving *v, workload *w, int source, dsc_error *err)
{
    int pays = 0, does_not = MOST_CLIENTS, rc = DSC_OK;
    while (does_not - pays > 1 && !rc) {
        const int clients = (pays + does_not) / 2;
        outcome got[METHODS];
        for (int m = 0; m < METHODS && !rc; m++) {
            load of = cell_load(w, m, LOADS - 1, source);
            of.runs = 1;
            of.clients = clients;
            of.requests = REQUESTS_PER_CLIENT * clients;
            rc = serve(&got[m], v, w, &of, err);
        }
        if (!rc)
            *(got[EAGLE3].tokens_per_s > got[NONE].tokens_per_s ? &pays : &does_not) = clients;
    }
    w->crossover[source] = does_not;
    return rc;
}

// --- the row -------------------------------------------------------------------------------------

static int read_cell(cell *c, const validate_row *row, const char *where, double clients,
                     dsc_error *err)
{
    const struct {
        const char *name;
        double *value, most;
    } given[] = {{"requests", &c->requests, MOST_REQUESTS},
                 {"prompt_tokens", &c->prompt_tokens, MOST_TOKENS},
                 {"output_tokens", &c->output_tokens, MOST_TOKENS},
                 {"mean_acceptance_length", &c->acceptance_length, DRAFTED + 1},
                 {"step_ms", &c->step_s, 1e6}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const int rc = validate_given(row, where, given[i].name, clients, given[i].value, err);
        if (rc)
            return rc;
        if (!(*given[i].value >= 1 && *given[i].value <= given[i].most))
            return dsc_fail(err, DSC_EINPUT, "%s: '%.60s': '%s' at %g is not from 1 to %g",
                            row->path, where, given[i].name, clients, given[i].most);
    }
    c->step_s /= 1e3;
    return DSC_OK;
}

static int read_workload(workload *w, const validate_row *row, int which, dsc_error *err)
{
    const char *plain = names[which][NONE];
    double median, high;
    int rc = DSC_OK;
    for (int m = 0; m < METHODS && !rc; m++)
        for (int i = 0; i < LOADS && !rc; i++)
            rc = read_cell(&w->cell[m][i], row, names[which][m], loads[i], err);
    if (!rc)
        rc = validate_given(row, plain, "max_tokens", NAN, &w->most, err);
    if (!rc && !(w->most >= 1 && w->most <= MOST_TOKENS))
        rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s': 'max_tokens' is not from 1 to %d", row->path,
                      plain, MOST_TOKENS);
    if (rc || which == GSM8K)
        return rc;
    // Without speculation a client's time grows by a step with each token.
    rc = validate_given(row, plain, "e2e_p50_ms", loads[0], &median, err);
    if (!rc)
        rc = validate_given(row, plain, "e2e_p95_ms", loads[0], &high, err);
    if (!rc)
        w->deviation = (high - median) / 1e3 / w->cell[NONE][0].step_s / dsc_normal_quantile(.95);
    return rc;
}

static int predict_cells(serving *v, workload *w, dsc_error *err)
{
    int rc = DSC_OK;
    for (int m = 0; m < METHODS; m++)
        for (int i = 0; i < LOADS; i++) {
            cell *c = &w->cell[m][i];
            const double further = (c->output_tokens - 1) / c->acceptance_length;
            for (int source = 0; source < SOURCES && !rc; source++) {
                const load of = cell_load(w, m, i, source);
                rc = serve(&c->by[source], v, w, &of, err);
            }
            c->closed_form =
                c->output_tokens * dsc_serve_closed_rate(loads[i], c->prompt_tokens * w->prefill_s,
                                                         further, c->step_s);
        }
    return rc;
}

static int predict_workload(serving *v, int which, const validate_row *row, dsc_error *err)
{
    workload *w = &v->workload[which];
    double fitted;
    int rc = read_workload(w, row, which, err);
    if (!rc)
        rc =
            validate_given(row, names[which][NONE], "tokens_per_s", loads[LOADS - 1], &fitted, err);
    if (!rc)
        rc = find_steps(w, v, err);
    if (!rc)
        rc = fit_prefill(v, w, fitted, err);
    if (!rc)
        rc = predict_cells(v, w, err);
    for (int source = EXTRAPOLATED; source < SOURCES && !rc; source++)
        rc = find_crossover(v, w, source, err);
    return rc;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    serving *v = state;
    int rc = dsc_new(&v->item, MOST_REQUESTS, err);
    if (!rc)
        rc = dsc_new(&v->score, MOST_REQUESTS, err);
    for (int m = 0; m < METHODS && !rc; m++)
        rc = dsc_cost_parse(&v->roofline[m], rooflines[m], err);
    if (!rc)
        rc = dsc_cost_parse(&v->strict, strict_roofline, err);
    for (int i = 0; i < WORKLOADS && !rc; i++)
        rc = predict_workload(v, i, row, err);
    return rc;
}

static void end(void *state)
{
    serving *v = state;
    free(v->item);
    free(v->score);
    for (int m = 0; m < METHODS; m++)
        dsc_cost_fini(&v->roofline[m]);
    dsc_cost_fini(&v->strict);
}

static double speedup(const workload *w, int i, int source)
{
    return w->cell[EAGLE3][i].by[source].tokens_per_s / w->cell[NONE][i].by[source].tokens_per_s;
}

// The largest of the measured numbers of clients with which speculation pays; 0: none.
static double pays_up_to(const workload *w, int source)
{
    double most = 0;
    for (int i = 0; i < LOADS; i++)
        most = speedup(w, i, source) > 1 ? loads[i] : most;
    return most;
}

static void predict_of_cell(validate_figure *f, const cell *c)
{
    const outcome *measured = &c->by[MEASURED], *roofline = &c->by[ROOFLINE];
    const struct {
        const char *quantity;
        double value;
    } values[] = {{"tokens_per_s", measured->tokens_per_s},
                  {"e2e_p50_ms", 1e3 * measured->e2e_p50_s},
                  {"ttft_p50_ms", 1e3 * measured->ttft_p50_s},
                  {"tokens_per_s_closed_form", c->closed_form},
                  {"tokens_per_s_roofline", roofline->tokens_per_s},
                  {"e2e_p50_ms_roofline", 1e3 * roofline->e2e_p50_s}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (validate_is(f, values[i].quantity))
            f->predicted = values[i].value;
}

// The figures that compare a workload with and without speculation.
static void predict_of_workload(validate_figure *f, const workload *w)
{
    static const struct {
        const char *pays, *crossover, *speedup;
    } names_of[SOURCES] = {
        [MEASURED] = {.pays = "pays_up_to"},
        [EXTRAPOLATED] = {"pays_up_to_extrapolated", "crossover_extrapolated",
                          "speedup_extrapolated"},
        [STRICT] = {"pays_up_to_strict", "crossover_strict", "speedup_strict"},
        [ROOFLINE] = {.pays = "pays_up_to_roofline", .crossover = "crossover_roofline"}};
    for (int source = 0; source < SOURCES; source++) {
        if (validate_is(f, names_of[source].pays))
            f->predicted = pays_up_to(w, source);
        if (names_of[source].crossover && validate_is(f, names_of[source].crossover))
            f->predicted = w->crossover[source];
        for (int i = 0; i < LOADS && names_of[source].speedup; i++)
            if (validate_is(f, names_of[source].speedup) && f->at == loads[i])
                f->predicted = speedup(w, i, source);
    }
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const serving *v = row->state;
    (void)err;
    for (int which = 0; which < WORKLOADS; which++) {
        const workload *w = &v->workload[which];
        if (strcmp(f->where, workload_names[which]) == 0)
            predict_of_workload(f, w);
        for (int m = 0; m < METHODS; m++)
            for (int i = 0; i < LOADS; i++)
                if (strcmp(f->where, names[which][m]) == 0 && f->at == loads[i])
                    predict_of_cell(f, &w->cell[m][i]);
    }
    return DSC_OK;
}

const validate_row_type validate_serving = {
    .name = "serving",
    .summary = "vLLM with 1 to 64 clients, with and without EAGLE-3: throughput and latencies "
               "from step times, and up to which load speculation pays",
    .state_size = sizeof(serving),
    .begin = begin,
    .end = end,
    .predict = predict,
};

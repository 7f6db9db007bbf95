// SPDX-License-Identifier: Apache-2.0
// Compares prediction and measurement of a configuration, quantity by quantity: counts (equal, or
// within sampling error by a bootstrap over requests), likelihood, outputs, latencies and speedup.
#include "cli/validate/validate_live.h"

#include "base/columns.h"
#include "cli/result.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
enum { METHOD, RULE, PARAMETERS, TEMPERATURE, QUANTITY, AT, PREDICTED, MEASURED, ERROR, PERCENT, SE,
       Z, TOLERANCE, VERDICT, SOURCE, NOTE };
const dsc_column validate_live_columns[VALIDATE_LIVE_COLUMNS] = {
    {"method", DSC_CELL_TEXT, "drafting method"},
    {"rule", DSC_CELL_TEXT, "verification rule"},
    {"parameters", DSC_CELL_TEXT, "parameters that differ from their defaults; all: pooled over "
                                  "parameters"},
    {"temperature", DSC_CELL_REAL, "sampling temperature of the run"},
    {"quantity", DSC_CELL_TEXT,
     "draft_acceptance_rate (accepted / drafted tokens); block_efficiency; accept_share: share of "
     "target calls that accepted `at` draft tokens; accept_distance: largest difference of the "
     "cumulative accept_share; output_nll: mean -ln of the target's probability of the sampled "
     "tokens, predicted by the mean entropy; draft_s_per_call, verify_s_per_call: "
     "seconds of a pass; speedup: without prefill; outputs, divergences: equality of greedy texts"},
    {"at", DSC_CELL_REAL, "number of accepted tokens, for accept_share; nan: none"},
    {"predicted", DSC_CELL_REAL, "value predicted by the simulator"},
    {"measured", DSC_CELL_REAL, "value measured live; for latencies and speedup the median of the "
                                "runs"},
    {"error", DSC_CELL_REAL, "predicted - measured"},
    {"error_percent", DSC_CELL_REAL, "error in percent of the measured value"},
    {"se", DSC_CELL_REAL, "standard error of error, by a bootstrap over requests; 0: nothing was "
                          "sampled"},
    {"z", DSC_CELL_REAL, "error / se"},
    {"tolerance", DSC_CELL_TEXT,
     "largest |z|, or largest |error_percent| with a %; equal: deterministic counts must be equal; "
     "shown: not judged"},
    {"verdict", DSC_CELL_TEXT, "pass, fail, shown or not predicted"},
    {"source", DSC_CELL_TEXT,
     "origin of the prediction: expect: COLUMNS of the trace; loop; replayed run; measured counts; "
     "entropy; trace"},
    {"note", DSC_CELL_TEXT, "remark; -: none"},
};
// clang-format on

// --- rows ----------------------------------------------------------------------------------------

typedef enum verdict { PASS, FAIL, SHOWN, NOT_PREDICTED, VERDICTS } verdict;
static const char *const verdicts[VERDICTS] = {"pass", "fail", "shown", "not predicted"};

typedef struct row {
    const char *quantity;
    double at;
    dsc_comparison x;
    const char *tolerance;
    verdict verdict;
    const char *source, *note;              // NULL: -
    char tolerance_text[64], note_text[96]; // what these may point to
} row;

static dsc_cell text_or_dash(const char *s)
{
    return cli_text(s && *s ? s : "-");
}

// Takes a row into the summary.
static void summarize(validate_comparison *c, const validate_group *g, const char *parameters,
                      const row *r)
{
    validate_summary *s = c->summary;
    if (r->verdict == FAIL && !s->first[0])
        snprintf(s->first, sizeof s->first, "%s, rule %s, %s: %s %.6g predicted, %.6g measured",
                 g->first->config.drafter->name, g->first->rule->name, parameters, r->quantity,
                 r->x.predicted, r->x.measured);
    c->failed |= r->verdict == FAIL;
    c->unknown |= r->verdict == NOT_PREDICTED && strcmp(r->quantity, "block_efficiency") == 0;
    if (r->verdict != SHOWN)
        s->worst_z = fmax(s->worst_z, fabs(r->x.z));
    if (strcmp(r->quantity, "speedup") == 0 && r->x.measured > 0)
        s->worst_speedup = fmax(s->worst_speedup, fabs(100 * r->x.error / r->x.measured));
}

static int put(validate_comparison *c, const validate_group *g, const char *parameters,
               const row *r, dsc_error *err)
{
    const dsc_comparison *x = &r->x;
    const dsc_cell cell[VALIDATE_LIVE_COLUMNS] = {
        [METHOD] = text_or_dash(g->first->config.drafter->name),
        [RULE] = text_or_dash(g->first->rule->name),
        [PARAMETERS] = text_or_dash(parameters),
        [TEMPERATURE] = cli_real(g->first->temperature),
        [QUANTITY] = text_or_dash(r->quantity),
        [AT] = cli_real(r->at),
        [PREDICTED] = cli_real(x->predicted),
        [MEASURED] = cli_real(x->measured),
        [ERROR] = cli_real(x->error),
        [PERCENT] = cli_real(x->measured > 0 ? 100 * x->error / x->measured : (double)NAN),
        [SE] = cli_real(x->se),
        [Z] = cli_real(x->z),
        [TOLERANCE] = text_or_dash(r->tolerance),
        [VERDICT] = text_or_dash(verdicts[r->verdict]),
        [SOURCE] = text_or_dash(r->source),
        [NOTE] = text_or_dash(r->note)};
    summarize(c, g, parameters, r);
    return dsc_table_add_row(c->table, cell, err);
}

static dsc_comparison difference(double predicted, double measured)
{
    return (dsc_comparison){predicted, measured, predicted - measured, NAN, NAN};
}

// --- counts --------------------------------------------------------------------------------------

static dsc_resampling resampling(const validate_comparison *c, size_t requests)
{
    return (dsc_resampling){.request = c->request,
                            .requests = requests,
                            .resamples = (int)(c->value[VALIDATE_BOOTSTRAP].integer & ~3),
                            .seed = (uint64_t)c->value[VALIDATE_SEED].integer,
                            .threads = 1};
}

// Judges a difference of sampled counts by the family-wise threshold.
static void judge_sampled(const validate_comparison *c, size_t requests, row *r)
{
    const double limit =
        dsc_error_limit(c->value[VALIDATE_Z].real, requests, c->sampled ? c->sampled : 1);
    r->tolerance = r->tolerance_text;
    snprintf(r->tolerance_text, sizeof r->tolerance_text, "|z| <= %.3g", limit);
    r->verdict = isnan(r->x.z) ? SHOWN : fabs(r->x.z) <= limit ? PASS : FAIL;
    r->note = isnan(r->x.z) ? "a single request has no standard error" : NULL;
}

// Judges counts, which must be equal where the outputs are greedy and equal.
static void judge_counts(const validate_comparison *c, const validate_group *g, row *r)
{
    judge_sampled(c, g->measured.requests, r);
    if (!g->predicted.exact || !g->first->outputs_equal)
        return;
    r->tolerance = "equal";
    r->verdict = dsc_compare_equal(r->x.predicted, r->x.measured) ? PASS : FAIL;
    r->note = NULL;
}

// Passes an error within the tolerance, or one that the number of requests cannot resolve.
static void judge_share(const validate_comparison *c, row *r)
{
    const double limit = c->value[VALIDATE_POOLED].real, z = c->value[VALIDATE_Z].real;
    const bool within = 100 * fabs(r->x.error) <= limit * r->x.measured;
    r->tolerance = r->tolerance_text;
    snprintf(r->tolerance_text, sizeof r->tolerance_text, "%g %% or |z| <= %g", limit, z);
    r->verdict = within || fabs(r->x.z) <= z ? PASS : isnan(r->x.z) ? SHOWN : FAIL;
}

static int put_ratio(validate_comparison *c, const validate_group *g, const char *quantity, int top,
                     int bottom, dsc_error *err)
{
    const validate_requests *p = g->predicted.requests, *m = &g->measured;
    const dsc_resampling how = resampling(c, m->requests);
    const dsc_ratio measured = {m->list[top], m->list[bottom]};
    row r = {.quantity = quantity, .at = NAN, .source = g->predicted.source};
    if (!g->predicted.known) {
        r.x = difference(NAN, dsc_ratio_value(&measured, how.request, how.requests, NULL));
        r.verdict = NOT_PREDICTED;
        r.tolerance = "shown";
        r.note = g->predicted.why;
        return put(c, g, g->parameters, &r, err);
    }
    const dsc_ratio predicted = {p->list[top], p->list[bottom]};
    int rc = dsc_compare_ratios(&how, &predicted, &measured, &r.x, err);
    if (rc)
        return rc;
    if (isnan(r.x.predicted) && isnan(r.x.measured)) // nothing was drafted
        return DSC_OK;
    judge_counts(c, g, &r);
    if (r.verdict == FAIL && g->predicted.ends_unknown && bottom == VALIDATE_DRAFT_TOKENS) {
        judge_share(c, &r);
        r.note = "the trace does not contain the EOS tokens of drafts that leave the output";
    }
    return put(c, g, g->parameters, &r, err);
}

// Copies the histograms to a length that is not shorter than the used one.
static int widen(double **out, const validate_requests *r, size_t length, dsc_error *err)
{
    const size_t own = r->histogram_length < length ? r->histogram_length : length;
    int rc = dsc_alloc(out, r->requests, length * sizeof **out, err);
    for (size_t i = 0; i < r->requests && !rc; i++)
        memcpy(*out + i * length, r->histogram + i * r->histogram_length, own * sizeof(double));
    return rc;
}

// One more than the largest number of accepted tokens of any call.
static size_t used_length(const validate_requests *r)
{
    size_t length = 0;
    for (size_t i = 0; i < r->requests; i++)
        for (size_t m = length; m < r->histogram_length; m++)
            if (r->histogram[i * r->histogram_length + m] > 0)
                length = m + 1;
    return length;
}

static double share(const double *histogram, size_t requests, size_t length, size_t at)
{
    double these = 0, all = 0;
    for (size_t i = 0; i < requests * length; i++) {
        all += histogram[i];
        these += i % length == at ? histogram[i] : 0;
    }
    return these / all;
}

static int put_dist(validate_comparison *c, const validate_group *g, dsc_error *err)
{
    const size_t a = used_length(g->predicted.requests), b = used_length(&g->measured);
    const size_t length = a > b ? a : b, n = g->measured.requests;
    const dsc_resampling how = resampling(c, n);
    double *predicted = NULL, *measured = NULL;
    row r = {.source = g->predicted.source};
    int rc = widen(&predicted, g->predicted.requests, length, err);
    if (!rc)
        rc = widen(&measured, &g->measured, length, err);
    for (size_t m = 0; m < length && !rc; m++) {
        r.quantity = "accept_share";
        r.at = (double)m;
        r.tolerance = "shown";
        r.verdict = SHOWN;
        r.x = difference(share(predicted, n, length, m), share(measured, n, length, m));
        rc = put(c, g, g->parameters, &r, err);
    }
    r.quantity = "accept_distance";
    r.at = NAN;
    if (!rc)
        rc = dsc_compare_dists(&how, predicted, measured, length, &r.x, err);
    if (!rc) {
        judge_counts(c, g, &r);
        rc = put(c, g, g->parameters, &r, err);
    }
    free(predicted);
    free(measured);
    return rc;
}

// --- texts ---------------------------------------------------------------------------------------

// At temperature 0 the output of every method equals that of the target alone. On a GPU, passes of
// different widths round differently, so that the argmax may differ; the row is then shown only.
static int put_texts(validate_comparison *c, const validate_group *g, dsc_error *err)
{
    bool equal = true, exact = true;
    double divergences = NAN;
    for (size_t i = 0; i < g->lines; i++) {
        equal = equal && g->line[i]->outputs_equal;
        exact = exact && g->line[i]->same_rounding;
        divergences = fmax(divergences, g->line[i]->divergences); // fmax ignores a NaN
    }
    const char *note = exact ? NULL : "passes of different widths round differently on this device";
    const row outputs = {.quantity = "outputs",
                         .at = NAN,
                         .x = difference(1, equal),
                         .tolerance = exact ? "equal" : "shown",
                         .verdict = !exact  ? SHOWN
                                    : equal ? PASS
                                            : FAIL,
                         .source = "trace",
                         .note = equal  ? NULL
                                 : note ? note
                                        : "1: equal to those of the trace; 0: different"};
    const row diverged = {.quantity = "divergences",
                          .at = NAN,
                          .x = difference(0, divergences),
                          .tolerance = exact ? "equal" : "shown",
                          .verdict = !exact            ? SHOWN
                                     : divergences > 0 ? FAIL
                                                       : PASS,
                          .source = "trace",
                          .note = note};
    if (g->first->temperature > 0 || g->first->trace_hash || !g->first->rule->lossless)
        return DSC_OK;
    int rc = put(c, g, g->parameters, &outputs, err);
    return rc || isnan(divergences) ? rc : put(c, g, g->parameters, &diverged, err);
}

// --- times ---------------------------------------------------------------------------------------

static double sum(const double *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += x[i];
    return s;
}

// Ratio of tokens per second to those of plain decoding, both without prefill, which is the same
// work and which the cost model of draft and target passes does not contain.
static double measured_speedup(const validate_line *l)
{
    const validate_requests *r = &l->requests;
    const size_t n = r->requests;
    if (!l->baseline)
        return NAN;
    const double time = sum(r->list[VALIDATE_TIME], n) - sum(r->list[VALIDATE_PREFILL], n);
    const double plain =
        sum(r->list[VALIDATE_PLAIN_TIME], n) - sum(r->list[VALIDATE_PLAIN_PREFILL], n);
    const double tokens = sum(r->list[VALIDATE_OUTPUT_TOKENS], n);
    const double plain_tokens = sum(r->list[VALIDATE_PLAIN_TOKENS], n);
    return time > 0 && plain > 0 && plain_tokens > 0 ? tokens / time * plain / plain_tokens
                                                     : (double)NAN;
}

static double draft_s(const validate_line *l)
{
    return l->counts.draft_calls ? l->draft_s / (double)l->counts.draft_calls : (double)NAN;
}

static double verify_s(const validate_line *l)
{
    return l->counts.target_calls ? l->verify_s / (double)l->counts.target_calls : (double)NAN;
}

// Computes the median over the lines of a configuration where `of` is not NaN.
static int median(const validate_group *g, double (*of)(const validate_line *), double *out,
                  dsc_error *err)
{
    double *x;
    size_t n = 0;
    int rc = dsc_new(&x, g->lines, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < g->lines; i++) {
        x[n] = of(g->line[i]);
        n += !isnan(x[n]);
    }
    *out = dsc_summarize(x, n).median;
    free(x);
    return DSC_OK;
}

static int put_time(validate_comparison *c, const validate_group *g, const char *quantity,
                    double predicted, double (*of)(const validate_line *), double limit,
                    dsc_error *err)
{
    const validate_prediction *p = &g->predicted;
    char tolerance[32], note[64];
    double measured;
    int rc = median(g, of, &measured, err);
    if (rc || isnan(measured)) // the runs have no such passes, or no baseline
        return rc;
    const dsc_comparison x = difference(predicted, measured);
    const bool known = !isnan(predicted), within = 100 * fabs(x.error) <= limit * measured;
    snprintf(tolerance, sizeof tolerance, "%g %%", limit);
    snprintf(note, sizeof note, "median of %zu runs", g->lines);
    const row r = {.quantity = quantity,
                   .at = NAN,
                   .x = x,
                   .tolerance = tolerance,
                   .verdict = !known   ? NOT_PREDICTED
                              : within ? PASS
                                       : FAIL,
                   .source = p->measured_counts ? "measured counts" : p->source,
                   .note = !known         ? p->cost_note
                           : g->lines > 1 ? note
                                          : NULL};
    return put(c, g, g->parameters, &r, err);
}

static int put_times(validate_comparison *c, const validate_group *g, dsc_error *err)
{
    const validate_prediction *p = &g->predicted;
    const double seconds = c->value[VALIDATE_SECONDS].real;
    if (!c->costs)
        return DSC_OK;
    int rc = put_time(c, g, "draft_s_per_call", p->draft_s_per_call, draft_s, seconds, err);
    if (!rc)
        rc = put_time(c, g, "verify_s_per_call", p->verify_s_per_call, verify_s, seconds, err);
    return rc ? rc
              : put_time(c, g, "speedup", p->speedup, measured_speedup,
                         c->value[VALIDATE_SPEEDUP].real, err);
}

// --- a configuration -----------------------------------------------------------------------------

// Above temperature 0 a lossless rule samples from the target's distributions, so the expected -ln
// p of a token is the entropy of its distribution. This comparison needs no trace.
static int put_likelihood(validate_comparison *c, const validate_group *g, dsc_error *err)
{
    const validate_requests *m = &g->measured;
    const dsc_resampling how = resampling(c, m->requests);
    const double *tokens = m->list[VALIDATE_OUTPUT_TOKENS];
    const dsc_ratio predicted = {m->list[VALIDATE_ENTROPY], tokens};
    const dsc_ratio measured = {m->list[VALIDATE_NLL], tokens};
    row r = {.quantity = "output_nll", .at = NAN, .source = "entropy"};
    if (!g->first->requests.list[VALIDATE_NLL] || g->first->trace_hash ||
        !g->first->rule->lossless || g->first->rule->greedy)
        return DSC_OK;
    int rc = dsc_compare_ratios(&how, &predicted, &measured, &r.x, err);
    if (rc)
        return rc;
    judge_sampled(c, m->requests, &r);
    return put(c, g, g->parameters, &r, err);
}

int validate_put_group(validate_comparison *c, const validate_group *g, dsc_error *err)
{
    validate_summary *s = c->summary;
    c->failed = c->unknown = false;
    int rc = put_ratio(c, g, DSC_COL_DRAFT_ACCEPTANCE_RATE, VALIDATE_ACCEPTED_TOKENS,
                       VALIDATE_DRAFT_TOKENS, err);
    if (!rc)
        rc =
            put_ratio(c, g, "block_efficiency", VALIDATE_OUTPUT_TOKENS, VALIDATE_TARGET_CALLS, err);
    if (!rc && g->predicted.known)
        rc = put_dist(c, g, err);
    if (!rc)
        rc = put_likelihood(c, g, err);
    if (!rc)
        rc = put_texts(c, g, err);
    if (!rc)
        rc = put_times(c, g, err);
    s->configurations++;
    s->failed += c->failed;
    s->unknown += !c->failed && c->unknown;
    s->passed += !c->failed && !c->unknown;
    return rc;
}

// --- pooled --------------------------------------------------------------------------------------

bool validate_pools(const validate_group *a, const validate_group *b)
{
    return a->predicted.known && b->predicted.known && !a->first->trace_hash &&
           !b->first->trace_hash && a->first->config.drafter == b->first->config.drafter &&
           a->first->rule == b->first->rule;
}

// Adds a note where the standard error is too large to resolve the tolerance.
static void note_power(const validate_comparison *c, row *r)
{
    const double limit = c->value[VALIDATE_POOLED].real, z = c->value[VALIDATE_Z].real;
    if (!(100 * z * r->x.se > limit * r->x.measured))
        return;
    snprintf(r->note_text, sizeof r->note_text, "se %.2g %%: too few requests to resolve %g %%",
             100 * r->x.se / r->x.measured, limit);
    r->note = r->note_text;
}

int validate_put_pooled(validate_comparison *c, size_t first, dsc_error *err)
{
    const validate_group *g = &c->group[first];
    validate_requests p = {0}, m = {0};
    size_t n = 0;
    for (size_t i = first; i < c->groups; i++)
        if (validate_pools(g, &c->group[i]) && validate_end(c->group[i].first) > n)
            n = validate_end(c->group[i].first);
    int rc = validate_requests_init(&p, n, 1, VALIDATE_COUNTS, err);
    if (!rc)
        rc = validate_requests_init(&m, n, 1, VALIDATE_COUNTS, err);
    for (size_t i = first; i < c->groups && !rc; i++) {
        const validate_group *x = &c->group[i];
        const size_t at = (size_t)x->first->first_request;
        for (size_t q = 0; validate_pools(g, x) && q < x->measured.requests; q++)
            for (int l = VALIDATE_OUTPUT_TOKENS; l <= VALIDATE_TARGET_CALLS; l++) {
                p.list[l][at + q] += x->predicted.requests->list[l][q] * (double)x->seeds;
                m.list[l][at + q] += x->measured.list[l][q];
            }
    }
    row r = {.quantity = "block_efficiency", .at = NAN, .source = g->predicted.source};
    const dsc_resampling how = resampling(c, n);
    const dsc_ratio predicted = {p.list[VALIDATE_OUTPUT_TOKENS], p.list[VALIDATE_TARGET_CALLS]};
    const dsc_ratio measured = {m.list[VALIDATE_OUTPUT_TOKENS], m.list[VALIDATE_TARGET_CALLS]};
    if (!rc)
        rc = dsc_compare_ratios(&how, &predicted, &measured, &r.x, err);
    if (!rc) {
        judge_share(c, &r);
        note_power(c, &r);
        c->failed = false;
        rc = put(c, g, "all", &r, err);
        c->summary->pooled_failed += c->failed;
    }
    validate_requests_fini(&p);
    validate_requests_fini(&m);
    return rc;
}

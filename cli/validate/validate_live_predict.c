// SPDX-License-Identifier: Apache-2.0
// Predicts the counts of a configuration that was run live, by simulation on the trace, and its
// times by a cost model.
#include "cli/simulate.h"
#include "cli/validate/validate_live.h"
#include "sim/cost/price.h"
#include "sim/model/workload.h"
#include "sim/run/run.h"

#include <math.h>

static void set_unknown(validate_prediction *p, const char *why)
{
    p->known = false;
    snprintf(p->why, sizeof p->why, "%s", why);
}

void validate_prediction_fini(validate_prediction *p)
{
    validate_requests_fini(&p->own);
    *p = (validate_prediction){0};
}

// --- the simulator -------------------------------------------------------------------------------

// Destination of the counts of each request.
typedef struct destination {
    validate_requests *out;
    int64_t first, requests;
} destination;

static int take(void *user, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    destination *t = user;
    validate_requests *out = t->out;
    const dsc_expected x = dsc_counts_real(counts);
    const size_t i = (size_t)(q->index - t->first), length = (size_t)counts->histogram_length;
    int rc = out->histogram
                 ? DSC_OK
                 : validate_requests_init(out, (size_t)t->requests, length, VALIDATE_COUNTS, err);
    if (rc)
        return rc;
    out->list[VALIDATE_OUTPUT_TOKENS][i] = (double)counts->output_tokens;
    out->list[VALIDATE_TARGET_CALLS][i] = x.target_calls;
    out->list[VALIDATE_DRAFT_TOKENS][i] = x.num_draft_tokens;
    out->list[VALIDATE_ACCEPTED_TOKENS][i] = x.num_accepted_tokens;
    out->list[VALIDATE_DRAFT_CALLS][i] = x.draft_calls;
    for (size_t m = 0; m < length; m++)
        out->histogram[i * length + m] =
            x.histogram ? x.histogram[m] : (double)counts->histogram[m];
    return DSC_OK;
}

// Returns whether the recorded distributions apply to this line.
static bool applies(validate_prediction *p, const validate_line *l, const dsc_engine_choice *engine)
{
    if (l->trace_hash)
        return true;
    if (l->temperature > 0 && (l->rule->greedy || !l->rule->lossless))
        set_unknown(p,
                    "above temperature 0 this rule does not sample from the target distribution, "
                    "and the recorded outputs do");
    else if (l->temperature == 0 && engine->expected && !cli_reads_ranks(engine))
        set_unknown(
            p, "a trace recorded at temperature 0 contains the probabilities of temperature 1, "
               "from which no token was sampled");
    else
        return true;
    return false;
}

static void put_source(validate_prediction *p, const dsc_drafter_type *d,
                       const dsc_engine_choice *engine)
{
    if (engine->expected)
        snprintf(p->source, sizeof p->source, "expect: %s", engine->reads);
    else
        snprintf(p->source, sizeof p->source, "%s",
                 engine->engine == DSC_ENGINE_EXPECT ? "expect: output"
                 : engine->recorded && d->recorded
                     ? d->needs_marginals ? "loop: marginals" : "loop: candidates"
                 : engine->recorded ? "loop: draft_rank"
                                    : "loop");
}

// For greedy rules the loop can end a recorded draft at EOS; where the loop does not apply,
// expectations do.
static dsc_engine engine_of(const dsc_trace *trace, const validate_line *l)
{
    const dsc_run_options loop = {.engine = DSC_ENGINE_LOOP, .rule = l->rule, .threads = 1};
    dsc_engine_choice choice;
    dsc_error ignored;
    return l->config.drafter->needs_draft && l->rule->greedy &&
                   !dsc_run_choose(trace, &l->config, 1, &loop, &choice, &ignored)
               ? DSC_ENGINE_LOOP
               : DSC_ENGINE_AUTO;
}

static dsc_run_options options_of(const dsc_trace *trace, const validate_line *l, int threads)
{
    static const dsc_workload none = {0};
    return (dsc_run_options){.engine = engine_of(trace, l),
                             .rule = l->rule,
                             .workload = &none,
                             .threads = threads,
                             .seed = (uint64_t)l->seed,
                             .first_request = l->first_request,
                             .end_request = l->first_request + (int64_t)l->requests.requests};
}

// Simulates the line: counts of each request go to p->own, their sum to *results.
static int simulate(validate_prediction *p, const dsc_trace *trace, const validate_line *l,
                    int threads, dsc_results *results, dsc_error *err)
{
    dsc_engine_choice engine;
    destination t = {&p->own, l->first_request, (int64_t)l->requests.requests};
    dsc_run_options run = options_of(trace, l, threads);
    int rc = dsc_run_choose(trace, &l->config, 1, &run, &engine, err);
    if (rc || !applies(p, l, &engine))
        return rc;
    run.request = take;
    run.user = &t;
    rc = dsc_run(trace, &l->config, 1, &run, results, err);
    if (rc)
        return rc;
    p->known = true;
    // Drafts also go on after a stop string, where the recording ends.
    p->ends_unknown =
        engine.expected || engine.recorded || json_object_get(l->root, "stop") != NULL;
    // A replayed run may sample acceptances from the recorded distributions.
    p->exact = l->trace_hash ? !engine.expected || cli_reads_ranks(&engine) : l->temperature == 0;
    put_source(p, l->config.drafter, &engine);
    return DSC_OK;
}

// Simulates the line with the width of every pass, for cost models that need more than sums. The
// expectation engine computes sums only, so the loop replays the steps; under a lossless rule a
// deterministic draft is accepted as long as it equals the recorded output, as under `greedy`.
static int simulate_widths(const dsc_trace *trace, const validate_line *l, int threads,
                           dsc_results *results, dsc_error *err)
{
    dsc_engine_choice engine;
    dsc_results wide = {0};
    dsc_run_options run = options_of(trace, l, threads);
    int rc = dsc_run_choose(trace, &l->config, 1, &run, &engine, err);
    if (rc || engine.expected)
        return rc;
    if (engine.engine == DSC_ENGINE_EXPECT)
        run.rule = &dsc_verifier_greedy;
    run.widths = true;
    rc = dsc_run(trace, &l->config, 1, &run, &wide, err);
    if (rc)
        return rc;
    dsc_results_fini(results);
    *results = wide;
    return DSC_OK;
}

// --- prices --------------------------------------------------------------------------------------

static void price(validate_prediction *p, const dsc_cost *cost, const dsc_counts *counts)
{
    const dsc_expected x = dsc_counts_real(counts);
    dsc_price out;
    dsc_error why;
    p->draft_s_per_call = p->verify_s_per_call = p->speedup = NAN;
    if (!cost)
        return;
    if (dsc_price_run(&out, cost, counts, 1, &why)) {
        snprintf(p->cost_note, sizeof p->cost_note, "%s", why.message);
        return;
    }
    p->draft_s_per_call = x.draft_calls > 0 ? out.draft_s / x.draft_calls : (double)NAN;
    p->verify_s_per_call = x.target_calls > 0 ? out.verify_s / x.target_calls : (double)NAN;
    p->speedup = out.speedup;
}

int validate_predict(validate_prediction *p, const dsc_trace *trace, const validate_line *line,
                     const validate_line *replayed, const dsc_cost *cost, int threads,
                     dsc_error *err)
{
    dsc_results results = {0};
    dsc_error why;
    *p = (validate_prediction){.requests = &p->own};
    int rc = simulate(p, trace, line, threads, &results, &why);
    if (rc && rc != DSC_EUSAGE) {
        *err = why;
        return rc;
    }
    if (rc)
        set_unknown(p, why.message);
    rc = DSC_OK;
    if (p->known && cost && !cost->type->linear)
        rc = simulate_widths(trace, line, threads, &results, err);
    if (!rc && p->known) {
        price(p, cost, &results.counts[0]);
    } else if (!rc && replayed) {
        p->known = true;
        p->requests = &replayed->requests;
        p->exact = line->temperature == 0;
        p->ends_unknown = true; // the EOS tokens of the output are the recorded ones
        snprintf(p->source, sizeof p->source, "replayed run");
        price(p, cost, &replayed->counts);
    } else if (!rc) {
        p->measured_counts = true;
        price(p, cost, &line->counts);
    }
    dsc_results_fini(&results);
    return rc;
}

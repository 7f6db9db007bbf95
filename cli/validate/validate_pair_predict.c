// SPDX-License-Identifier: Apache-2.0
// Predicts the speedup of a recorded run from the other one or from its own steps: by step times
// that are fitted to the other groups of requests, by a cost model on the recorded steps, or by a
// method that is replayed on the text of the run without speculation.
#include "cli/simulate.h"
#include "cli/validate/validate_pair.h"
#include "sim/cost/price.h"
#include "sim/run/run.h"

#include <math.h>
#include <stdlib.h>

// --- fitted step times ---------------------------------------------------------------------------

// Adds the predicted times of the turns of one group, by a model fitted to the others.
static int predict_times(const validate_pair *p, int run, int32_t group, double *time_s,
                         dsc_error *err)
{
    const validate_turns *t = &p->turns[run];
    double x[VALIDATE_TERMS];
    int rc = validate_turns_fit(t, dsc_trace_path(p->trace[run]), group, x, err);
    for (size_t i = 0; i < t->count && !rc; i++)
        if (t->turn[i].group == group)
            time_s[t->turn[i].request] += validate_turn_time(&t->turn[i], x);
    return rc;
}

// The ratio of seconds per token of the pairs of a group; all pairs: group -1.
static double speedup_of(const validate_pair *p, double *const time_s[VALIDATE_RUNS], int32_t group)
{
    double sum[VALIDATE_RUNS] = {0}, tokens[VALIDATE_RUNS] = {0};
    for (size_t i = 0; i < p->matches.count; i++)
        for (int r = 0; r < VALIDATE_RUNS; r++)
            if (group < 0 || validate_pair_group(p, i) == group) {
                sum[r] += time_s[r][i];
                tokens[r] += p->tokens[r][i];
            }
    return sum[0] / tokens[0] / (sum[1] / tokens[1]);
}

// With a single group, requests with even and with odd numbers take the part of groups.
static int predict_held_out(validate_pair *p, dsc_error *err)
{
    double *time_s[VALIDATE_RUNS] = {NULL, NULL};
    const bool halves = p->groups < 2;
    int rc = DSC_OK;
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++) {
        rc = dsc_new(&time_s[r], p->matches.count, err);
        for (size_t i = 0; halves && i < p->turns[r].count; i++)
            p->turns[r].turn[i].group = (int32_t)(p->turns[r].turn[i].request % 2);
        for (size_t g = 0; g < (halves ? 2 : p->groups) && !rc; g++)
            rc = predict_times(p, r, (int32_t)g, time_s[r], err);
    }
    for (size_t g = 0; g <= p->groups && !rc; g++)
        p->predicted[g] = speedup_of(p, time_s, (int32_t)g - 1);
    for (int r = 0; r < VALIDATE_RUNS; r++)
        free(time_s[r]);
    return rc;
}

// --- recorded steps ------------------------------------------------------------------------------

typedef struct step_counts {
    const validate_pair *pair;
    dsc_counts *counts; // [1 + groups]
} step_counts;

// The calls and tokens of one step that wrote after `context` tokens. A draft model is called once
// for each draft token.
static void add_step(dsc_counts *c, int64_t drafted, int64_t accepted, int64_t context)
{
    const int64_t emitted = accepted + 1;
    c->output_tokens += emitted;
    c->target_calls++;
    c->num_drafts_started++;
    c->num_drafts += drafted > 0;
    c->num_draft_tokens += drafted;
    c->num_accepted_tokens += accepted;
    c->draft_calls += drafted;
    c->draft_call_tokens += drafted;
    c->target_call_tokens += drafted + 1;
    c->target_call_context += context;
    c->output_context += emitted * context + emitted * (emitted - 1) / 2;
    c->width[drafted]++;
}

static int add_steps(void *context, const dsc_request *q, dsc_error *err)
{
    const step_counts *s = context;
    const int64_t pair = s->pair->matches.pair[VALIDATE_B][q->index];
    int64_t before = q->prompt.count;
    (void)err;
    if (pair < 0)
        return DSC_OK;
    dsc_counts *of[2] = {&s->counts[0], &s->counts[1 + validate_pair_group(s->pair, (size_t)pair)]};
    for (int64_t i = 0; i < q->steps.count; i++) {
        for (int j = 0; j < 2; j++)
            add_step(of[j], q->steps.drafted[i], q->steps.accepted[i], before);
        before += q->steps.accepted[i] + 1;
    }
    return DSC_OK;
}

// The counts [1 + groups] by the cost model.
static int price(validate_pair *p, const dsc_counts *counts, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t g = 0; g <= p->groups && !rc; g++) {
        dsc_price x;
        rc = dsc_price_run(&x, &p->cost, &counts[g], 1, err);
        p->predicted[g] = rc ? (double)NAN : x.speedup;
    }
    return rc;
}

static int predict_steps(validate_pair *p, dsc_error *err)
{
    enum { WIDTHS = 1 << 16 };
    const dsc_trace_info *b = dsc_trace_get_info(p->trace[VALIDATE_B]);
    step_counts s = {.pair = p};
    int64_t *width = NULL;
    if (!b->steps || !b->has_step_drafted)
        return dsc_fail(err, DSC_EINPUT,
                        "%s does not contain how many tokens each step drafted, so --cost cannot "
                        "price its steps: leave --cost out for fitted step times, or give the "
                        "method (--method)",
                        dsc_trace_path(p->trace[VALIDATE_B]));
    int rc = dsc_new(&s.counts, 1 + p->groups, err);
    if (!rc)
        rc = dsc_new(&width, (1 + p->groups) * WIDTHS, err);
    for (size_t g = 0; g <= p->groups && !rc; g++) {
        s.counts[g].width = width + g * WIDTHS;
        s.counts[g].width_length = WIDTHS;
    }
    if (!rc)
        rc = dsc_trace_each(p->trace[VALIDATE_B], add_steps, &s, err);
    for (size_t g = 0; g <= p->groups && !rc; g++)
        while (s.counts[g].width_length > 1 && !s.counts[g].width[s.counts[g].width_length - 1])
            s.counts[g].width_length--;
    if (!rc)
        rc = price(p, s.counts, err);
    free(s.counts);
    free(width);
    return rc;
}

// --- a method ------------------------------------------------------------------------------------

// The group of each of A's requests; those without a partner are in one group after the others.
static int list_groups(const validate_pair *p, int32_t **out, dsc_error *err)
{
    const size_t n = (size_t)dsc_trace_get_info(p->trace[VALIDATE_A])->requests;
    int rc = dsc_new(out, n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        const int64_t pair = p->matches.pair[VALIDATE_A][i];
        (*out)[i] = pair < 0 ? (int32_t)p->groups : validate_pair_group(p, (size_t)pair);
    }
    return rc;
}

static int predict_method(validate_pair *p, const dsc_config *config, const cli_call *call,
                          int threads, dsc_error *err)
{
    const dsc_workload none = {0};
    const cli_simulation s = {.trace = p->trace[VALIDATE_A]};
    int32_t *group = NULL;
    dsc_results results = {0};
    int rc = list_groups(p, &group, err);
    const dsc_run_options run = {.rule = cli_simulation_rule(&s, NULL, config->drafter, err),
                                 .workload = &none,
                                 .widths = !p->cost.type->linear,
                                 .threads = threads,
                                 .seed = call->seed,
                                 .group = group,
                                 .groups = (int32_t)p->groups + 1};
    if (!rc)
        rc = cli_note_missing_references(s.trace, NULL, config->drafter, call->list[0], err);
    if (!rc)
        rc = dsc_run(s.trace, config, 1, &run, &results, err);
    if (!rc && results.counts[1 + p->groups].requests) { // without those that have no partner
        dsc_counts_clear(&results.counts[0]);
        for (size_t g = 0; g < p->groups; g++)
            dsc_counts_add(&results.counts[0], &results.counts[1 + g]);
    }
    if (!rc)
        rc = price(p, results.counts, err);
    dsc_results_fini(&results);
    free(group);
    return rc;
}

int validate_pair_predict(validate_pair *p, const dsc_config *config, const cli_call *call,
                          int threads, dsc_error *err)
{
    int rc = dsc_new(&p->predicted, 1 + p->groups, err);
    if (rc)
        return rc;
    return p->source == VALIDATE_METHOD  ? predict_method(p, config, call, threads, err)
           : p->source == VALIDATE_STEPS ? predict_steps(p, err)
                                         : predict_held_out(p, err);
}

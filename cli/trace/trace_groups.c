// SPDX-License-Identifier: Apache-2.0
// Counts of all requests of a trace and of groups of them, and the JSON object that describes a
// group: metrics of the recorded steps and accept lengths, entropies, measured speed.
#include "cli/trace/trace_groups.h"

#include "traces/trace/trace_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int trace_groups_init(trace_groups *g, const dsc_trace *t, const char *by, dsc_error *err)
{
    *g = (trace_groups){0};
    int rc = by ? dsc_trace_groups_init(&g->by, t, by, err) : DSC_OK;
    if (!rc)
        rc = dsc_new(&g->group, 1 + g->by.count, err);
    for (size_t i = 0; i < g->by.count && !rc; i++)
        g->group[1 + i].value = g->by.value[i];
    return rc;
}

void trace_groups_fini(trace_groups *g)
{
    for (size_t i = 0; g->group && i < 1 + g->by.count; i++) {
        trace_group *group = &g->group[i];
        dsc_accept_tally_fini(&group->steps);
        for (int d = 0; d < DSC_DRAFTERS_MAX; d++)
            dsc_accept_tally_fini(&group->drafter[d]);
    }
    free(g->group);
    dsc_trace_groups_fini(&g->by);
    *g = (trace_groups){0};
}

// --- counting ----------------------------------------------------------------------------------

// Returns a number, or the sum of a list of numbers; NaN for any other value.
static double sum_of(const json_t *value)
{
    double sum = 0;
    if (json_is_number(value))
        return json_number_value(value);
    if (!json_is_array(value))
        return NAN;
    for (size_t i = 0; i < json_array_size(value); i++)
        sum += sum_of(json_array_get(value, i));
    return sum;
}

// Adds tokens and time by the field names of Spec-Bench logs.
static void add_source(trace_group *g, const json_t *metadata)
{
    double tokens = sum_of(json_object_get(metadata, "new_tokens"));
    double s = sum_of(json_object_get(metadata, "wall_time"));
    if (!(tokens >= 0 && tokens < 1e15 && s >= 0))
        return;
    g->source_tokens += (int64_t)tokens;
    g->source_s += s;
}

static int add_request(trace_group *g, const dsc_trace_info *info, const dsc_request *q,
                       dsc_error *err)
{
    int rc = DSC_OK;
    int64_t n = q->output.count, emitted = 0;
    g->requests++;
    g->output_tokens += n;
    dsc_accept_tally_begin(&g->steps);
    for (int64_t i = 0; i < q->steps.count && !rc; i++) {
        emitted += q->steps.accepted[i] + 1;
        rc = dsc_accept_tally_add(&g->steps, q->steps.accepted[i],
                                  q->steps.drafted ? q->steps.drafted[i] : -1, err);
    }
    // Aligned steps emitted the output; one token more than they emitted is the prefill's.
    g->target_calls += q->steps.count + (n > emitted);
    for (int32_t d = 0; d < info->drafters && !rc; d++) {
        const dsc_drafter_record *drafter = &info->drafter[d];
        dsc_accept_tally_begin(&g->drafter[d]);
        for (int64_t j = 0; j < n && !rc; j++) { // a draft ends at the end of the output
            int64_t cap = n - j < drafter->cap ? n - j : drafter->cap;
            int32_t accepted = q->accept[d][j];
            rc = dsc_accept_tally_add(&g->drafter[d], accepted,
                                      accepted > cap ? accepted : (int32_t)cap, err);
        }
    }
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        for (int64_t j = 0; j < n && q->replayed.entropy[side]; j++)
            g->entropy[side] += (double)q->replayed.entropy[side][j];
    return rc;
}

int trace_groups_add(trace_groups *g, const dsc_trace_info *info, const dsc_request *q,
                     dsc_error *err)
{
    trace_group *own = g->by.field ? &g->group[1 + g->by.of[q->index]] : NULL;
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, q, err);
    if (!rc)
        rc = add_request(&g->group[0], info, q, err);
    add_source(&g->group[0], metadata);
    if (!rc && own) {
        rc = add_request(own, info, q, err);
        add_source(own, metadata);
    }
    json_decref(metadata);
    return rc;
}

// --- describing --------------------------------------------------------------------------------

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *list_of(const double *x, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, real_or_null(x[i]));
    return list;
}

static void put_count(json_t *to, const char *name, double count)
{
    json_object_set_new(to, name, isnan(count) ? json_null() : json_integer((json_int_t)count));
}

static int describe_tally(const dsc_accept_tally *t, const dsc_metric_counts *c, json_t *to,
                          dsc_error *err)
{
    static const dsc_column column[] = {DSC_METRIC_COLUMNS};
    dsc_arena arena = {0};
    dsc_metrics m;
    dsc_cell cell[DSC_METRICS];
    int rc = dsc_metrics_init(&m, c, &arena, err);
    if (rc)
        return rc;
    dsc_metrics_cells(&m, cell);
    for (int i = 0; i < DSC_METRICS; i++)
        json_object_set_new(to, column[i].name,
                            cell[i].type == DSC_CELL_LIST ? list_of(cell[i].reals, cell[i].i)
                                                          : real_or_null(cell[i].r));
    json_t *reached = json_array();
    for (int64_t i = 0; i < m.positions; i++)
        json_array_append_new(reached, json_integer((json_int_t)m.reached[i]));
    json_object_set_new(to, DSC_COL_CONDITIONAL_REACHED, reached);
    put_count(to, DSC_COL_NUM_DRAFTS, c->num_drafts);
    put_count(to, DSC_COL_NUM_DRAFT_TOKENS, c->num_draft_tokens);
    put_count(to, DSC_COL_NUM_ACCEPTED_TOKENS, c->num_accepted_tokens);
    json_object_set_new(to, "autocorrelation", real_or_null(dsc_accept_tally_autocorrelation(t)));
    dsc_arena_fini(&arena);
    return DSC_OK;
}

// Accept lengths are of drafts that begin at every output position, so there are no target calls.
static int describe_drafters(const trace_group *g, const dsc_trace_info *info, json_t *to,
                             dsc_error *err)
{
    json_t *drafters = json_object();
    int rc = DSC_OK;
    for (int32_t d = 0; d < info->drafters && !rc; d++) {
        json_t *o = json_object();
        dsc_metric_counts c = dsc_accept_tally_counts(&g->drafter[d]);
        c.output_tokens = c.target_calls = NAN;
        json_object_set_new(o, "cap", json_integer(info->drafter[d].cap));
        rc = describe_tally(&g->drafter[d], &c, o, err);
        json_object_set_new(drafters, info->drafter[d].name, o);
    }
    json_object_set_new(to, "drafters", drafters);
    return rc;
}

int trace_group_describe(const trace_group *g, const dsc_trace_info *info, json_t *to,
                         dsc_error *err)
{
    static const char *const entropy[DSC_SIDES] = {"mean_draft_entropy_nats",
                                                   "mean_target_entropy_nats"};
    int rc = DSC_OK;
    if (info->steps) {
        dsc_metric_counts c = dsc_accept_tally_counts(&g->steps);
        // A log may lack the prefill and steps without a draft, so its number of forward passes is
        // unknown.
        const bool known = info->steps == DSC_STEPS_ALIGNED;
        c.output_tokens = known ? (double)g->output_tokens : (double)NAN;
        c.target_calls = known ? (double)g->target_calls : (double)NAN;
        rc = describe_tally(&g->steps, &c, to, err);
    }
    if (info->drafters && !rc)
        rc = describe_drafters(g, info, to, err);
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        if (info->has_entropy[side] && g->output_tokens)
            json_object_set_new(to, entropy[side],
                                json_real(g->entropy[side] / (double)g->output_tokens));
    if (g->source_s > 0) {
        json_object_set_new(to, "source_output_tokens", json_integer(g->source_tokens));
        json_object_set_new(to, "source_s", json_real(g->source_s));
        json_object_set_new(to, "source_tokens_per_s",
                            json_real((double)g->source_tokens / g->source_s));
    }
    return rc;
}

int trace_groups_describe(const trace_groups *g, const dsc_trace_info *info, json_t *to,
                          dsc_error *err)
{
    json_t *all = json_object();
    int rc = DSC_OK;
    for (size_t i = 1; i <= g->by.count && !rc; i++) {
        const trace_group *group = &g->group[i];
        json_t *o = json_object();
        json_object_set_new(o, "requests", json_integer(group->requests));
        json_object_set_new(o, "output_tokens", json_integer(group->output_tokens));
        if (info->steps)
            json_object_set_new(o, "steps", json_integer(group->steps.steps));
        rc = trace_group_describe(group, info, o, err);
        json_object_set_new(all, group->value, o);
    }
    json_object_set_new(to, "groups", all);
    return rc;
}

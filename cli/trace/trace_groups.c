// SPDX-License-Identifier: Apache-2.0
// Adds up tokens, accepted lengths and entropies of requests, in all and by the values of a
// metadata field, and describes the sums as JSON.
#include "cli/trace/trace_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 1000 };

static int new_group(trace_groups *g, const char *value, dsc_error *err)
{
    if (g->count > GROUPS_MAX)
        return dsc_fail(err, DSC_EUSAGE, "--by %s: the metadata field has more than %d values",
                        g->by, GROUPS_MAX);
    int rc = dsc_resize(&g->group, &g->capacity, g->count + 1, err);
    if (rc)
        return rc;
    trace_group *group = &g->group[g->count];
    *group = (trace_group){0};
    if (value)
        rc = dsc_strndup(&group->value, value, strlen(value), err);
    g->count += !rc;
    return rc;
}

int trace_groups_init(trace_groups *g, const char *by, dsc_error *err)
{
    *g = (trace_groups){.by = by};
    return new_group(g, NULL, err);
}

void trace_groups_fini(trace_groups *g)
{
    for (size_t i = 0; i < g->count; i++) {
        trace_group *group = &g->group[i];
        dsc_accept_tally_fini(&group->steps);
        for (int d = 0; d < DSC_DRAFTERS_MAX; d++)
            dsc_accept_tally_fini(&group->drafter[d]);
        free(group->value);
    }
    free(g->group);
    *g = (trace_groups){0};
}

// --- counting ----------------------------------------------------------------------------------

// Finds or adds the group of a request. Values other than strings are written as JSON; "" is the
// group of the requests without the field.
static int find_group(trace_groups *g, const json_t *metadata, size_t *found, dsc_error *err)
{
    const json_t *value = json_object_get(metadata, g->by);
    char *text = NULL;
    if (value && !json_is_string(value)) {
        text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
            return dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    const char *name = text ? text : value ? json_string_value(value) : "";
    size_t i = 1;
    while (i < g->count && strcmp(g->group[i].value, name) != 0)
        i++;
    int rc = i < g->count ? DSC_OK : new_group(g, name, err);
    free(text);
    *found = i;
    return rc;
}

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
    int64_t n = q->output.count;
    g->requests++;
    g->output_tokens += n;
    dsc_accept_tally_begin(&g->steps);
    for (int64_t i = 0; i < q->steps.count && !rc; i++)
        rc = dsc_accept_tally_add(&g->steps, q->steps.accepted[i],
                                  q->steps.drafted ? q->steps.drafted[i] : -1, err);
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
    size_t found = 0;
    json_t *metadata = json_loadb(q->metadata.bytes, (size_t)q->metadata.length, 0, NULL);
    int rc = add_request(&g->group[0], info, q, err);
    add_source(&g->group[0], metadata);
    if (!rc && g->by)
        rc = find_group(g, metadata, &found, err);
    if (!rc && g->by) {
        rc = add_request(&g->group[found], info, q, err);
        add_source(&g->group[found], metadata);
    }
    json_decref(metadata);
    return rc;
}

// --- describing --------------------------------------------------------------------------------

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void describe_tally(const dsc_accept_tally *t, json_t *to)
{
    json_t *conditional_rate = json_array(), *reached = json_array();
    for (int32_t i = 1; i <= dsc_accept_tally_depth(t); i++) {
        int64_t n;
        json_array_append_new(conditional_rate,
                              real_or_null(dsc_accept_tally_conditional_rate(t, i, &n)));
        json_array_append_new(reached, json_integer(n));
    }
    json_object_set_new(to, "conditional_acceptance_rate", conditional_rate);
    json_object_set_new(to, "conditional_acceptance_reached", reached);
    json_object_set_new(to, "autocorrelation", real_or_null(dsc_accept_tally_autocorrelation(t)));
}

static json_t *describe_drafters(const trace_group *g, const dsc_trace_info *info)
{
    json_t *drafters = json_object();
    for (int32_t d = 0; d < info->drafters; d++) {
        json_t *o = json_object();
        const dsc_accept_tally *t = &g->drafter[d];
        json_object_set_new(o, "cap", json_integer(info->drafter[d].cap));
        json_object_set_new(o, "mean_accepted",
                            real_or_null(t->steps ? (double)t->accepted / (double)t->steps : NAN));
        describe_tally(t, o);
        json_object_set_new(drafters, info->drafter[d].name, o);
    }
    return drafters;
}

void trace_group_describe(const trace_group *g, const dsc_trace_info *info, json_t *to)
{
    static const char *const entropy[DSC_SIDES] = {"mean_draft_entropy_nats",
                                                   "mean_target_entropy_nats"};
    if (info->steps) {
        json_object_set_new(to, "block_efficiency",
                            real_or_null(dsc_accept_tally_block_efficiency(&g->steps)));
        describe_tally(&g->steps, to);
    }
    if (info->drafters)
        json_object_set_new(to, "drafters", describe_drafters(g, info));
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
}

json_t *trace_groups_describe(const trace_groups *g, const dsc_trace_info *info)
{
    json_t *all = json_object();
    for (size_t i = 1; i < g->count; i++) {
        const trace_group *group = &g->group[i];
        json_t *o = json_object();
        json_object_set_new(o, "requests", json_integer(group->requests));
        json_object_set_new(o, "output_tokens", json_integer(group->output_tokens));
        if (info->steps)
            json_object_set_new(o, "steps", json_integer(group->steps.steps));
        trace_group_describe(group, info, o);
        json_object_set_new(all, group->value, o);
    }
    return all;
}

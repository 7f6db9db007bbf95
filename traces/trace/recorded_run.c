// SPDX-License-Identifier: Apache-2.0
// Reads the settings of the recording run from a trace's provenance. A trace that was derived from
// others has their provenance in "sources" and "appended"; a setting is known when all agree.
#include "traces/trace/recorded_run.h"

#include "traces/trace/trace_json.h"

#include <math.h>

enum { DEEPEST = 64 }; // levels of derived traces that are read

static const dsc_recorded_run unknown = {NAN, 0, -1};

static dsc_recorded_run read_one(const json_t *o)
{
    const json_t *temperature = json_object_get(o, "temperature");
    const json_t *most = json_object_get(o, "max_tokens");
    const json_t *head = json_object_get(json_object_get(o, "draft"), "head");
    dsc_recorded_run run = unknown;
    if (json_is_number(temperature) && json_number_value(temperature) >= 0)
        run.temperature = json_number_value(temperature);
    const bool stops = json_array_size(json_object_get(o, "stop")) > 0;
    if (json_is_integer(most) && json_integer_value(most) > 0 && !stops)
        run.max_tokens = json_integer_value(most);
    if (json_is_boolean(head))
        run.head = json_is_true(head);
    return run;
}

static void agree(dsc_recorded_run *all, const dsc_recorded_run *x)
{
    if (!(x->temperature == all->temperature)) // NaN too
        all->temperature = NAN;
    if (x->head != all->head)
        all->head = -1;
    all->max_tokens = 0; // the outputs of a derived trace may have been cut
}

// Combines the provenance of a trace with that of its sources and of the traces appended to it.
static dsc_recorded_run read_any(const json_t *o, int depth)
{
    const json_t *sources = json_object_get(o, "sources"), *more = json_object_get(o, "appended");
    const size_t count = json_array_size(sources);
    if (depth == DEEPEST)
        return unknown;
    dsc_recorded_run all = read_one(o);
    for (size_t i = 0; i < count; i++) {
        const json_t *from = json_object_get(json_array_get(sources, i), "provenance");
        const dsc_recorded_run x = read_any(from, depth + 1);
        if (!i)
            all = x;
        agree(&all, &x);
    }
    for (size_t i = 0; i < json_array_size(more); i++) {
        const dsc_recorded_run x = read_any(json_array_get(more, i), depth + 1);
        agree(&all, &x);
    }
    return all;
}

int dsc_trace_recorded_run(dsc_recorded_run *out, const dsc_trace_info *info, dsc_error *err)
{
    json_t *o;
    int rc = dsc_trace_provenance(&o, info, err);
    *out = rc ? unknown : read_any(o, 0);
    json_decref(o);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Recovers counts from the conditional acceptance rates that `draftscope trace info --json` prints.
// With rate h_j at position j and n_j cases that reached it, h_j n_j cases accepted position j and
// h_(j+1) n_(j+1) of them the next, so h_j n_j - h_(j+1) n_(j+1) accepted exactly j tokens, where
// h_0 n_0 = n_1.
#include "base/json_file.h"
#include "plots/draw/join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 65536 }; // positions of a draft

typedef struct row_name {
    const char *trace, *group, *source;
} row_name;

typedef struct scratch {
    int64_t histogram[DEEPEST + 1], reached[DEEPEST];
} scratch;

static int add_row(dsc_table *t, row_name name, const json_t *from, scratch *s, dsc_error *err)
{
    const json_t *conditional_rate = json_object_get(from, "conditional_acceptance_rate");
    const json_t *reached = json_object_get(from, "conditional_acceptance_reached");
    size_t depth = json_array_size(conditional_rate);
    if (!depth || depth != json_array_size(reached))
        return DSC_OK;
    if (depth > DEEPEST)
        return dsc_fail(err, DSC_EINPUT, "conditional acceptance rates of more than %d positions",
                        DEEPEST);
    int64_t passed = json_integer_value(json_array_get(reached, 0));
    for (size_t j = 0; j < depth; j++) {
        double h = json_number_value(json_array_get(conditional_rate, j)); // null (no case) is 0
        int64_t n = json_integer_value(json_array_get(reached, j));
        if (!(h >= 0 && h <= 1 && n >= 0 && n <= passed && n < (int64_t)1 << 53))
            return dsc_fail(err, DSC_EINPUT,
                            "conditional acceptance rate %zu is not in [0, 1], or more cases "
                            "reached it than the position before",
                            j + 1);
        int64_t next = llround(h * (double)n);
        s->reached[j] = n;
        s->histogram[j] = passed - next;
        passed = next;
    }
    s->histogram[depth] = passed;
    const dsc_cell cell[] = {
        {.type = DSC_CELL_TEXT, .text = name.trace},
        {.type = DSC_CELL_TEXT, .text = name.group},
        {.type = DSC_CELL_TEXT, .text = name.source},
        {.type = DSC_CELL_LIST, .list = s->histogram, .i = (int64_t)depth + 1},
        {.type = DSC_CELL_LIST, .list = s->reached, .i = (int64_t)depth},
    };
    return dsc_table_add_row(t, cell, err);
}

// Adds the rows of all requests or of one group.
static int add_rows(dsc_table *t, row_name name, const json_t *from, scratch *s, dsc_error *err)
{
    const char *drafter;
    json_t *o;
    name.source = "steps";
    int rc = add_row(t, name, from, s, err);
    json_object_foreach(json_object_get(from, "drafters"), drafter, o)
    {
        name.source = drafter;
        if (!rc)
            rc = add_row(t, name, o, s, err);
    }
    return rc;
}

static int fill(dsc_table *t, const json_t *info, dsc_error *err)
{
    static const char *const text[] = {"trace", "group", "source"};
    const char *group, *trace = json_string_value(json_object_get(info, "trace"));
    json_t *o;
    scratch *s = NULL;
    int rc = trace ? DSC_OK
                   : dsc_fail(err, DSC_EINPUT,
                              "not the output of trace info --json: field 'trace' is missing");
    for (int i = 0; i < 3 && !rc; i++)
        rc = dsc_table_add_column(t, text[i], DSC_CELL_TEXT, NULL, err);
    if (!rc)
        rc = dsc_table_add_column(t, "accept_histogram", DSC_CELL_LIST,
                                  "cases that accepted 0, 1, 2, ... draft tokens", err);
    if (!rc)
        rc = dsc_table_add_column(t, "conditional_acceptance_reached", DSC_CELL_LIST,
                                  "cases that drafted a position and accepted every earlier one",
                                  err);
    if (!rc)
        rc = dsc_new(&s, 1, err);
    if (!rc)
        rc = add_rows(t, (row_name){trace, "all", NULL}, info, s, err);
    json_object_foreach(json_object_get(info, "groups"), group, o)
    {
        if (!rc)
            rc = add_rows(t, (row_name){trace, group, NULL}, o, s, err);
    }
    if (!rc && !t->rows)
        rc = dsc_fail(err, DSC_EINPUT,
                      "the trace has no conditional acceptance rates: it contains neither steps "
                      "nor drafters");
    free(s);
    return rc;
}

int dsc_read_trace_info(dsc_table *t, const char *text, dsc_error *err)
{
    json_error_t e;
    json_t *info;
    *t = (dsc_table){0};
    int rc = dsc_json_load(&info, text, strlen(text), 0, &e, err);
    if (rc == DSC_EINPUT)
        dsc_fail(err, rc, "line %d: %s", e.line, e.text);
    if (!rc && !json_is_object(info))
        rc = dsc_fail(err, DSC_EINPUT, "a JSON object was expected");
    if (!rc)
        rc = fill(t, info, err);
    json_decref(info);
    if (rc)
        dsc_table_fini(t);
    return rc;
}

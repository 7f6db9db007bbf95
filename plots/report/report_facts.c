// SPDX-License-Identifier: Apache-2.0
// Reads the facts of a trace from its manifest or from the output of `trace info --json`: every
// number and text, also of the objects one level below.
#include "base/json_file.h"
#include "plots/report/report_result.h"

#include <string.h>

static int add(dsc_result_view *r, const char *key, const char *value)
{
    dsc_plot *m = &r->memory;
    if (!m->rc)
        m->rc = dsc_arena_resize(&m->arena, &r->fact, &r->fact_capacity, r->facts + 1, m->err);
    if (!m->rc)
        r->fact[r->facts++] = (dsc_fact){dsc_text(m, "%s", key), dsc_text(m, "%s", value)};
    return m->rc;
}

// Objects whose members are facts too. Their keys are prefixed by the name of the object, except
// for "totals".
static const char *const inner[] = {"totals", "tokenizer", "source", "provenance"};

static int add_scalars(dsc_result_view *r, const json_t *o, const char *of)
{
    const char *key;
    json_t *value;
    int rc = DSC_OK;
    json_object_foreach((json_t *)o, key, value)
    {
        char number[DSC_NUMBER_TEXT], name[128];
        bool enter = false;
        if (rc)
            break;
        snprintf(name, sizeof name, "%s%s%.100s", of ? of : "", of && *of ? " " : "", key);
        for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
            enter = enter || (!of && !strcmp(key, inner[i]) && json_is_object(value));
        if (json_is_string(value)) {
            rc = add(r, name, json_string_value(value));
        } else if (json_is_number(value)) {
            dsc_number_text(json_number_value(value), number);
            rc = add(r, name, number);
        } else if (enter) {
            rc = add_scalars(r, value, strcmp(key, "totals") ? key : "");
        }
    }
    return rc;
}

int dsc_read_facts(dsc_result_view *r, const char *json, dsc_error *err)
{
    json_error_t e;
    json_t *o;
    int rc = dsc_json_load(&o, json, strlen(json), 0, &e, err);
    if (rc == DSC_EINPUT)
        dsc_fail(err, rc, "line %d: %s", e.line, e.text);
    if (!rc && !json_is_object(o))
        rc = dsc_fail(err, DSC_EINPUT, "a JSON object was expected");
    rc = rc ?: add_scalars(r, o, NULL);
    json_decref(o);
    return rc;
}

const char *dsc_fact_find(const dsc_result_view *r, const char *key)
{
    for (size_t i = 0; i < r->facts; i++)
        if (!strcmp(r->fact[i].key, key))
            return r->fact[i].value;
    return NULL;
}

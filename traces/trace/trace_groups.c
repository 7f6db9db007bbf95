// SPDX-License-Identifier: Apache-2.0
// Groups of requests by a metadata field: one pass over the metadata gives the values and the
// requests that have them. Conditions on fields are sets of these groups.
#include "traces/trace/trace_groups.h"

#include "base/json_file.h"
#include "base/json_text.h"
#include "traces/trace/trace_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 24 }; // names that a message lists at most

void dsc_trace_groups_fini(dsc_trace_groups *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->value[i]);
    free(g->value);
    free(g->size);
    free(g->of);
    free(g->field);
    *g = (dsc_trace_groups){0};
}

static int add_value(dsc_trace_groups *g, const char *value, dsc_error *err)
{
    if (g->count == DSC_GROUPS_MAX)
        return dsc_fail(err, DSC_EUSAGE, "metadata field '%.60s' has more than %d values", g->field,
                        DSC_GROUPS_MAX);
    if (strcmp(value, DSC_GROUP_ALL) == 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "metadata field '%.60s' has the value '%s', which is the name of all "
                        "requests in a table; rename it in the source of the trace",
                        g->field, DSC_GROUP_ALL);
    int rc = dsc_resize(&g->value, &g->value_capacity, g->count + 1, err);
    if (!rc)
        rc = dsc_resize(&g->size, &g->size_capacity, g->count + 1, err);
    if (!rc)
        rc = dsc_strndup(&g->value[g->count], value, strlen(value), err);
    if (!rc)
        g->size[g->count++] = 0;
    return rc;
}

static size_t index_of(const dsc_trace_groups *g, const char *value)
{
    size_t i = 0;
    while (i < g->count && strcmp(g->value[i], value) != 0)
        i++;
    return i;
}

// --- reading ------------------------------------------------------------------------------------

typedef struct reader {
    dsc_trace_groups *groups;
    json_t *fields; // the names of all fields, as keys
    bool found;     // a request has the field
} reader;

static int add_request(void *context, const dsc_request *q, dsc_error *err)
{
    reader *r = context;
    dsc_trace_groups *g = r->groups;
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, q, err);
    if (rc)
        return rc;
    const json_t *value = json_object_get(metadata, g->field);
    char *text = value && !json_is_string(value)
                     ? dsc_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
                     : NULL;
    const char *name = text ? text : value ? json_string_value(value) : DSC_GROUP_NONE;
    rc = name ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    r->found |= value != NULL;
    if (!rc && metadata && !r->found && json_object_update(r->fields, metadata))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    const size_t i = rc ? 0 : index_of(g, name);
    if (!rc && i == g->count)
        rc = add_value(g, name, err);
    if (!rc) {
        g->of[q->index] = (int32_t)i;
        g->size[i]++;
    }
    free(text);
    json_decref(metadata);
    return rc;
}

// Lists the names that exist, the first ones if there are many.
static int refuse(const char *what, const char *word, const char *of, const char *const *name,
                  size_t count, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < count && i < NAMED && !rc; i++)
        rc = dsc_buffer_printf(&b, err, "%s%.60s", i ? ", " : "", name[i]);
    if (!rc)
        rc = dsc_fail(err, DSC_EUSAGE, "no request has the %s '%.60s'; %.60s has %s%s", what, word,
                      of, count ? b.data : "none", count > NAMED ? " and others" : "");
    dsc_buffer_fini(&b);
    return rc;
}

static int refuse_field(const dsc_trace *t, const char *field, const json_t *fields, dsc_error *err)
{
    const char *key, **name;
    json_t *unused;
    size_t n = 0;
    int rc = dsc_new(&name, json_object_size(fields), err);
    if (rc)
        return rc;
    json_object_foreach((json_t *)fields, key, unused)
    {
        name[n++] = key;
    }
    rc = refuse("metadata field", field, dsc_trace_path(t), name, n, err);
    free(name);
    return rc;
}

int dsc_trace_groups_init(dsc_trace_groups *g, const dsc_trace *t, const char *field,
                          dsc_error *err)
{
    const int64_t n = dsc_trace_get_info(t)->requests;
    reader r = {.groups = g, .fields = json_object()};
    *g = (dsc_trace_groups){0};
    int rc = r.fields ? dsc_strndup(&g->field, field, strlen(field), err)
                      : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_new(&g->of, (size_t)n, err);
    if (!rc)
        rc = dsc_trace_each(t, add_request, &r, err);
    if (!rc && n && !r.found)
        rc = refuse_field(t, field, r.fields, err);
    json_decref(r.fields);
    if (rc)
        dsc_trace_groups_fini(g);
    return rc;
}

// The index of a value. DSC_EUSAGE lists the values that exist.
static int find_value(const dsc_trace_groups *g, const char *value, size_t *index, dsc_error *err)
{
    *index = index_of(g, value);
    return *index < g->count
               ? DSC_OK
               : refuse("value", value, g->field, (const char *const *)g->value, g->count, err);
}

// --- as text ------------------------------------------------------------------------------------

int dsc_trace_groups_text(char **out, const dsc_trace_groups *g, dsc_error *err)
{
    json_t *list = json_array();
    int failed = 0;
    for (size_t i = 0; i < g->count; i++)
        failed |= json_array_append_new(list, json_string(g->value[i]));
    *out = failed ? NULL : dsc_json_dump(list, JSON_COMPACT);
    json_decref(list);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory for the values of a field");
}

int dsc_trace_groups_parse(dsc_trace_groups *g, const char *field, const char *text, dsc_error *err)
{
    json_t *list;
    json_error_t e;
    int rc = dsc_json_load(&list, text, strlen(text), 0, &e, err);
    if (!rc)
        rc = json_is_array(list) ? dsc_strndup(&g->field, field, strlen(field), err) : DSC_EINPUT;
    for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
        const char *value = json_string_value(json_array_get(list, i));
        rc = value ? add_value(g, value, err) : DSC_EINPUT;
    }
    json_decref(list);
    return rc == DSC_EINPUT
               ? dsc_fail(err, rc, "'%.150s' is not a list of the values of %.60s", text, field)
               : rc;
}

// --- conditions ----------------------------------------------------------------------------------

// Marks in wanted[groups] the values that a list names. A value may contain commas: the longest
// one that the rest of the list begins with is taken.
static int mark_values(const dsc_trace_groups *g, const char *list, bool *wanted, dsc_error *err)
{
    for (bool more = true; more;) {
        size_t best = g->count, length = 0;
        for (size_t i = 0; i < g->count; i++) {
            const size_t n = strlen(g->value[i]);
            if (strncmp(list, g->value[i], n) == 0 && (!list[n] || list[n] == ',') &&
                (best == g->count || n > length)) {
                best = i;
                length = n;
            }
        }
        if (best == g->count) {
            char value[128];
            snprintf(value, sizeof value, "%.*s", (int)strcspn(list, ","), list);
            return find_value(g, value, &best, err);
        }
        wanted[best] = true;
        more = list[length] == ',';
        list += length + more;
    }
    return DSC_OK;
}

int dsc_trace_where(const dsc_trace *t, const char *condition, uint8_t *keeps, dsc_error *err)
{
    dsc_trace_groups g = {0};
    bool *wanted = NULL;
    char *field = NULL;
    const char *equals = strchr(condition, '=');
    if (!equals || equals == condition)
        return dsc_fail(err, DSC_EUSAGE, "'%.60s' is not of the form FIELD=VALUE[,VALUE...]",
                        condition);
    int rc = dsc_strndup(&field, condition, (size_t)(equals - condition), err);
    if (!rc)
        rc = dsc_trace_groups_init(&g, t, field, err);
    if (!rc)
        rc = dsc_new(&wanted, g.count, err);
    if (!rc)
        rc = mark_values(&g, equals + 1, wanted, err);
    for (int64_t i = 0; i < dsc_trace_get_info(t)->requests && !rc; i++)
        keeps[i] = keeps[i] && wanted[g.of[i]];
    free(field);
    free(wanted);
    dsc_trace_groups_fini(&g);
    return rc;
}

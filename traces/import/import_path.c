// SPDX-License-Identifier: Apache-2.0
// Looks up fields by path and gathers them into requests by tables (import_path.h).
#include "traces/import/import_path.h"

#include "base/option.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { NAME_BYTES = 256 }; // of a member in a path; longer ones are not found

// The first path of a row, for "%.*s".
#define FIRST(f) (int)strcspn((f)->from, "|"), (f)->from

const dsc_import_field dsc_import_common[] = {
    {"id", "id|custom_id|request_id|conversation_id", 0, false},
    {"finish_reason", "finish_reason|choices.0.finish_reason", 0, false},
    {"references", "references", 0, false},
    {"metadata.model", "model|metadata.model", 0, false},
    {"metadata.category", "category|metadata.category", 0, false},
    {"metadata.arrival_s", "arrival_s|metadata.arrival_s", 1, false},
    {"metadata.ttft_s", "ttft_s|metadata.ttft_s", 1, false},
    {"metadata.wall_time", "wall_time|metadata.wall_time", 1, false},
    {0},
};

const dsc_import_field dsc_import_usage[] = {
    {"metadata.new_tokens",
     "usage.completion_tokens|usage.output_tokens|response.usage.completion_tokens", 0, false},
    {0},
};

// The member of an object that the first `length` bytes of `path` name.
static json_t *find_member(const json_t *object, const char *path, size_t length)
{
    char name[NAME_BYTES];
    if (length >= sizeof name)
        return NULL;
    memcpy(name, path, length);
    name[length] = '\0';
    return json_object_get(object, name);
}

static json_t *find_element(const json_t *array, const char *path, size_t length, size_t index)
{
    size_t i = 0;
    if (length == 1 && *path == '#')
        return json_array_get(array, index);
    for (size_t k = 0; k < length; k++) {
        if (!isdigit((unsigned char)path[k]) || i > (size_t)1 << 32)
            return NULL;
        i = 10 * i + (size_t)(path[k] - '0');
    }
    return length ? json_array_get(array, i) : NULL;
}

json_t *dsc_import_at(const json_t *line, const char *path, size_t index)
{
    const json_t *v = line;
    while (v && *path && *path != '|') {
        const size_t rest = strcspn(path, "|"), length = strcspn(path, ".|");
        const json_t *next =
            json_is_array(v) ? find_element(v, path, length, index) : find_member(v, path, length);
        const bool whole = !next && rest > length; // a name that contains dots
        v = whole ? find_member(v, path, rest) : next;
        path += whole ? rest : length + (path[length] == '.');
    }
    return json_is_null(v) ? NULL : (json_t *)(uintptr_t)v; // as Jansson's own look-ups
}

json_t *dsc_import_any(const json_t *line, const char *paths, size_t index)
{
    json_t *v = NULL;
    while (paths && !v) {
        v = dsc_import_at(line, paths, index);
        paths = strchr(paths, '|');
        paths = paths ? paths + 1 : NULL;
    }
    return v;
}

int dsc_import_put_at(json_t *request, const char *path, json_t *value, dsc_error *err)
{
    char name[NAME_BYTES];
    const char *dot;
    int rc = value ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    while (!rc && (dot = strchr(path, '.')) != NULL && (size_t)(dot - path) < sizeof name) {
        memcpy(name, path, (size_t)(dot - path));
        name[dot - path] = '\0';
        json_t *inner = json_object_get(request, name);
        if (!inner && !json_object_set_new(request, name, json_object()))
            inner = json_object_get(request, name);
        if (!json_is_object(inner))
            rc = dsc_fail(err, DSC_EINPUT, "field '%s' must be an object", name);
        request = inner;
        path = dot + 1;
    }
    if (!rc && json_object_set(request, path, value))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(value);
    return rc;
}

// A number of at least 0 times the unit; integers with unit 1 stay integers.
static int read_number(json_t **out, json_t *value, const dsc_import_field *f, dsc_error *err)
{
    const double x = json_number_value(value);
    if (!json_is_number(value))
        return dsc_import_wrong_type(value, "a number", err, "%.*s", FIRST(f));
    if (!(x >= 0 && x <= 1e15))
        return dsc_fail(err, DSC_EINPUT, "field '%.*s' is %g; it must be at least 0", FIRST(f), x);
    *out = f->unit == 1 ? json_incref(value) : json_real(x * f->unit);
    return DSC_OK;
}

bool dsc_import_is_cut(const json_t *reason)
{
    static const char names[] = "length|limit|max_tokens|max_output_tokens";
    const char *name = json_string_value(reason);
    return name && dsc_is_listed(names, name, strlen(name));
}

static int gather_one(json_t *request, const dsc_import_field *f, json_t *value, dsc_error *err)
{
    json_t *copy = NULL;
    int rc = DSC_OK;
    if (f->unit != 0)
        rc = read_number(&copy, value, f, err);
    else if (!strcmp(f->to, "finish_reason"))
        copy = json_string(dsc_import_is_cut(value) ? "length" : "stop");
    else if (!strcmp(f->to, "references") && !json_is_array(value))
        copy = json_pack("[O]", value);
    else
        copy = json_incref(value);
    return rc ? rc : dsc_import_put_at(request, f->to, copy, err);
}

int dsc_import_gather(json_t *request, const dsc_import_field *fields, const json_t *line,
                      size_t index, dsc_error *err)
{
    int rc = DSC_OK;
    for (const dsc_import_field *f = fields; f->to && !rc; f++) {
        json_t *value = dsc_import_any(line, f->from, index);
        if (value)
            rc = gather_one(request, f, value, err);
        else if (f->required)
            rc = dsc_import_wrong_type(NULL, "", err, "%.*s", FIRST(f));
    }
    return rc;
}

int dsc_import_request_new(json_t **out, const dsc_import_field *fields, const json_t *line,
                           size_t index, dsc_error *err)
{
    json_t *request = json_object();
    int rc = request ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_gather(request, dsc_import_common, line, index, err);
    if (!rc)
        rc = dsc_import_gather(request, fields, line, index, err);
    if (!rc && !json_object_get(request, "prompt"))
        rc = dsc_import_put_at(request, "prompt", json_array(), err);
    if (rc) {
        json_decref(request);
        request = NULL;
    }
    *out = request;
    return rc;
}

int dsc_import_add_request(json_t *requests, json_t *request, size_t number, size_t count,
                           dsc_error *err)
{
    const json_t *id = json_object_get(request, "id");
    int rc = DSC_OK;
    if (count > 1 && json_is_string(id))
        rc = dsc_import_put_at(request, "id", json_sprintf("%s/%zu", json_string_value(id), number),
                               err);
    else if (count > 1 && json_is_integer(id))
        rc = dsc_import_put_at(request, "id",
                               json_sprintf("%lld/%zu", (long long)json_integer_value(id), number),
                               err);
    if (!rc && json_array_append(requests, request))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(request);
    return rc;
}

// The counts of the source, as the readers of other formats keep them. An output that is a text
// then ends with the EOS token when the source counted it.
static int read_counts(const json_t *request, dsc_import_record *out, dsc_error *err)
{
    const json_t *tokens = dsc_import_at(request, "metadata.new_tokens", 0);
    const json_t *s = dsc_import_at(request, "metadata.wall_time", 0);
    int64_t count = -1;
    int rc = tokens ? dsc_import_integer(&count, tokens, 0, INT32_MAX, err, "new_tokens") : DSC_OK;
    if (rc || count < 0)
        return rc;
    out->recorded_s =
        json_is_number(s) && isfinite(json_number_value(s)) ? json_number_value(s) : 0;
    if (out->output.has_tokens)
        out->recorded_tokens = count;
    else
        rc = dsc_import_add_turn(out, 0, (size_t)out->output.text.length, count,
                                 out->eos != DSC_IMPORT_EOS_NEVER, err);
    out->eos = DSC_IMPORT_EOS_NEVER; // the count decides
    return rc;
}

int dsc_import_request_read(const json_t *request, const dsc_import_options *options,
                            dsc_import_record *out, dsc_error *err)
{
    int rc = dsc_import_jsonl.read(request, options, out, err);
    return rc ? rc : read_counts(request, out, err);
}

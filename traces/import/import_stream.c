// SPDX-License-Identifier: Apache-2.0
// Reads responses in OpenAI's form that were logged as the chunks of a stream, one per line:
//   {"id": "...", "choices": [{"index": 0, "delta": {"content": "..."}, "finish_reason": null}]}
// (of a completion: "text" in place of "delta"). The inputs are read in advance and the chunks of
// an id are joined; the chunk with the finish_reason of a choice then stands for the whole
// response, in the form that import_vllm.c reads. Usage and metrics are in the last chunk, which
// has no choice.
#include "base/json_text.h"
#include "traces/import/import_path.h"
#include "traces/import/import_response.h"

#include <stdlib.h>
#include <string.h>

// The joined responses by id: {"choices": {INDEX: {"text": [...], "token_ids": [...], ...}},
// "model", "usage", "metrics", "prompt_token_ids"}.
typedef struct streams {
    json_t *by_id;
    bool failed; // memory is short
} streams;

static int probe(const json_t *line)
{
    const json_t *choice = json_array_get(json_object_get(line, "choices"), 0);
    const json_t *reason = json_object_get(choice, "finish_reason");
    return 6 * (json_object_get(choice, "delta") ||
                (json_object_get(choice, "text") && json_is_null(reason)));
}

// The member `name` of an object, made by `make` when it is absent.
static json_t *member(streams *s, json_t *object, const char *name, json_t *(*make)(void))
{
    json_t *found = json_object_get(object, name);
    if (!found && object) {
        s->failed = json_object_set_new(object, name, make()) || s->failed;
        found = json_object_get(object, name);
    }
    return found;
}

static void add_choice(streams *s, json_t *joined, const json_t *choice)
{
    char index[24];
    json_t *text = dsc_import_any(choice, "delta.content|text", 0);
    const json_t *ids = dsc_import_at(choice, "token_ids", 0);
    snprintf(index, sizeof index, "%lld",
             (long long)json_integer_value(json_object_get(choice, "index")));
    json_t *whole = member(s, member(s, joined, "choices", json_object), index, json_object);
    if (json_is_string(text))
        s->failed = json_array_append(member(s, whole, "text", json_array), text) || s->failed;
    if (ids)
        s->failed = json_array_extend(member(s, whole, "token_ids", json_array),
                                      (json_t *)(uintptr_t)ids) ||
                    s->failed;
    if (dsc_import_at(choice, "finish_reason", 0)) {
        const json_int_t ends = json_integer_value(json_object_get(whole, "ends"));
        s->failed = json_object_set_new(whole, "ends", json_integer(ends + 1)) || s->failed;
    }
    static const char *const last[] = {"finish_reason", "prompt_token_ids"};
    for (size_t i = 0; i < 2; i++) {
        json_t *v = dsc_import_at(choice, last[i], 0);
        s->failed = (v && json_object_set(whole, last[i], v)) || s->failed;
    }
}

static void add_chunk(void *state, const json_t *line)
{
    static const char *const kept[] = {"model", "usage", "metrics", "prompt_token_ids", "timings"};
    streams *s = state;
    const char *id = json_string_value(json_object_get(line, "id"));
    const json_t *choices = json_object_get(line, "choices");
    if (!id || s->failed)
        return;
    json_t *joined = member(s, s->by_id, id, json_object);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_t *v = dsc_import_at(line, kept[i], 0);
        s->failed = (v && json_object_set(joined, kept[i], v)) || s->failed;
    }
    for (size_t i = 0; i < json_array_size(choices); i++)
        add_choice(s, joined, json_array_get(choices, i));
}

static size_t count_open(const streams *s)
{
    size_t open = 0;
    const char *id, *index;
    json_t *joined, *choice;
    json_object_foreach(s->by_id, id, joined)
        json_object_foreach(json_object_get(joined, "choices"), index, choice) open +=
        !json_object_get(choice, "finish_reason");
    return open;
}

static void release(void *state)
{
    streams *s = state;
    if (s)
        json_decref(s->by_id);
    free(s);
}

static int prepare(void **state, const char *const *paths, size_t count, char note[DSC_IMPORT_NOTE],
                   dsc_error *err)
{
    streams *s;
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
    *state = s;
    s->by_id = json_object();
    for (size_t i = 0; i < count && !rc; i++)
        if (!dsc_import_rereadable(paths[i]))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "%s: chunks of streams are joined in a first pass, so the input must be "
                          "a file",
                          paths[i]);
        else
            rc = dsc_import_scan(paths[i], add_chunk, s, err);
    if (!rc && (s->failed || !s->by_id))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    const size_t open = rc ? 0 : count_open(s);
    if (open)
        snprintf(note, DSC_IMPORT_NOTE,
                 "%zu streams have no chunk with a finish_reason and were left out", open);
    return rc;
}

// Joins the texts of a choice.
static json_t *join(const json_t *pieces, dsc_error *err)
{
    dsc_buffer all = {0};
    int rc = dsc_buffer_puts(&all, "", err);
    for (size_t i = 0; i < json_array_size(pieces) && !rc; i++) {
        const json_t *piece = json_array_get(pieces, i);
        rc = dsc_buffer_append(&all, json_string_value(piece), json_string_length(piece), err);
    }
    json_t *text = rc ? NULL : json_stringn_nocheck(all.data, all.length);
    dsc_buffer_fini(&all);
    return text;
}

// The members of a joined response but its choices.
static json_t *copy_response(const json_t *joined)
{
    json_t *copy = json_object(), *value;
    const char *name;
    bool failed = !copy;
    json_object_foreach((json_t *)(uintptr_t)joined, name, value) if (strcmp(name, "choices") != 0)
        failed = failed || json_object_set_new(copy, name, dsc_json_copy(value));
    if (failed)
        json_decref(copy);
    return failed ? NULL : copy;
}

static int add_response(json_t *requests, const json_t *line, const json_t *joined,
                        const json_t *chunk, dsc_error *err)
{
    char index[24];
    const json_t *choices = json_object_get(joined, "choices");
    const long long number = (long long)json_integer_value(json_object_get(chunk, "index"));
    snprintf(index, sizeof index, "%lld", number);
    if (json_integer_value(dsc_import_at(json_object_get(choices, index), "ends", 0)) > 1)
        return dsc_fail(err, DSC_EINPUT, "stream '%.100s' has two chunks with a finish_reason",
                        json_string_value(json_object_get(line, "id")));
    // Threads share the joined responses, so that values are copied.
    json_t *response = copy_response(joined);
    json_t *choice = dsc_json_copy(json_object_get(choices, index));
    int rc = response && choice ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_put_at(choice, "text", join(json_object_get(choice, "text"), err), err);
    if (!rc)
        rc = dsc_import_put_at(response, "choices", json_pack("[O]", choice), err);
    if (!rc)
        rc = dsc_import_put_at(response, "id", json_incref(json_object_get(line, "id")), err);
    if (json_object_size(choices) > 1)
        json_object_del(response, "usage"); // counts of all choices
    json_decref(choice);
    if (!rc)
        return dsc_import_add_request(requests, response, (size_t)number + 1,
                                      json_object_size(choices), err);
    json_decref(response);
    return rc;
}

static int expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                  dsc_error *err)
{
    const streams *s = options->prepared;
    const json_t *id = json_object_get(line, "id"), *choices = json_object_get(line, "choices");
    int rc = json_is_string(id) ? DSC_OK : dsc_import_wrong_type(id, "a string", err, "id");
    for (size_t i = 0; i < json_array_size(choices) && !rc; i++) {
        const json_t *chunk = json_array_get(choices, i);
        if (dsc_import_at(chunk, "finish_reason", 0))
            rc = add_response(requests, line, json_object_get(s->by_id, json_string_value(id)),
                              chunk, err);
    }
    return rc;
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    return dsc_import_vllm.read(line, options, out, err);
}

const dsc_import_driver dsc_import_stream = {
    .name = "stream",
    .summary = "chunks of streamed responses, joined by id: choices[].delta or text",
    .needs = "choices id",
    .probe = probe,
    .expand = expand,
    .read = read_line,
    .prepare = prepare,
    .release = release,
};

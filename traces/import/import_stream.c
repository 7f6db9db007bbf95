// SPDX-License-Identifier: Apache-2.0
// Reads responses that were logged as the chunks of a stream, one per line:
//   {"id": "...", "choices": [{"index": 0, "delta": {"content": "..."}, "finish_reason": null}]}
// (of a completion: "text" in place of "delta"). The inputs are read in advance and the chunks of
// an id are joined; the chunk with the finish_reason of a choice then stands for the whole
// response, in the form that import_vllm.c reads. Usage and metrics are in the last chunk, which
// has no choice. A delta may have all that a message has (import_message.h); calls are joined by
// their index.
//
// Events of Anthropic's API have the id in the first alone, {"type": "message_start", "message":
// {...}}, so that the streams of a file follow each other; that event stands for the response.
// Streams of the Responses API end with the whole response, {"type": "response.completed",
// "response": {...}}, and the events before it are passed over.
#include "base/json_text.h"
#include "base/option.h"
#include "traces/import/import_path.h"
#include "traces/import/import_response.h"

#include <stdlib.h>
#include <string.h>

// The joined responses by id: {"choices": {INDEX: {"text": [...], "token_ids": [...], "message":
// {FIELD: [...], "calls": {INDEX: {...}}}, ...}}, "model", "usage", "metrics", "prompt_token_ids"}.
// A response of Anthropic's: {"starts": 1, "blocks": {INDEX: {"start": {...}, "pieces": [...]}},
// "model", "usage", "stop_reason", "stopped": true}.
typedef struct streams {
    json_t *by_id;
    json_t *current; // the response whose events follow, in `by_id`; or NULL
    bool failed;     // memory is short
} streams;

static const char *type_of(const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    return type ? type : "";
}

static bool is_event(const json_t *line)
{
    static const char names[] = "message_start|message_delta|message_stop|content_block_start|"
                                "content_block_delta|content_block_stop|ping";
    const char *type = type_of(line);
    return dsc_is_listed(names, type, strlen(type)) || !strncmp(type, "response.", 9);
}

static int probe(const json_t *line)
{
    const json_t *choice = json_array_get(json_object_get(line, "choices"), 0);
    const json_t *reason = json_object_get(choice, "finish_reason");
    return 6 * (json_object_get(choice, "delta") || is_event(line) ||
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

static void append(streams *s, json_t *object, const char *name, json_t *piece)
{
    if (json_is_string(piece) && json_string_length(piece))
        s->failed = json_array_append(member(s, object, name, json_array), piece) || s->failed;
}

static json_t *at_index(streams *s, json_t *object, const char *name, const json_t *from)
{
    char index[24];
    snprintf(index, sizeof index, "%lld",
             (long long)json_integer_value(json_object_get(from, "index")));
    return member(s, member(s, object, name, json_object), index, json_object);
}

static void set(streams *s, json_t *object, const char *name, json_t *value)
{
    s->failed = (value && object && json_object_set(object, name, value)) || s->failed;
}

// What a delta has besides its content.
static void add_delta(streams *s, json_t *whole, const json_t *delta)
{
    static const char *const texts[] = {"reasoning_content", "reasoning", "thinking", "refusal"};
    const json_t *calls = dsc_import_at(delta, "tool_calls", 0);
    const json_t *one = dsc_import_at(delta, "function_call", 0);
    bool found = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *piece = dsc_import_at(delta, texts[i], 0);
        if (json_string_length(piece))
            append(s, member(s, whole, "message", json_object), texts[i], piece);
        found = found || json_string_length(piece);
    }
    const json_t *details = found ? NULL : dsc_import_at(delta, "reasoning_details", 0);
    for (size_t i = 0; i < json_array_size(details); i++)
        append(s, member(s, whole, "message", json_object), texts[0],
               dsc_import_at(json_array_get(details, i), "text", 0));
    if (dsc_import_at(delta, "audio", 0))
        set(s, member(s, whole, "message", json_object), "audio", dsc_import_at(delta, "audio", 0));
    for (size_t i = 0; i < json_array_size(calls) + (one != NULL); i++) {
        const json_t *call = i < json_array_size(calls) ? json_array_get(calls, i) : NULL;
        const json_t *function = call ? dsc_import_at(call, "function", 0) : one;
        json_t *joined = at_index(s, member(s, whole, "message", json_object), "calls", call);
        set(s, joined, "id", dsc_import_at(call, "id", 0));
        set(s, joined, "has_arguments", dsc_import_at(function, "arguments", 0));
        append(s, joined, "name", dsc_import_at(function, "name", 0));
        append(s, joined, "arguments", dsc_import_at(function, "arguments", 0));
    }
}

static void add_choice(streams *s, json_t *joined, const json_t *choice)
{
    json_t *text = dsc_import_any(choice, "delta.content|text", 0);
    const json_t *ids = dsc_import_at(choice, "token_ids", 0);
    json_t *whole = at_index(s, joined, "choices", choice);
    add_delta(s, whole, json_object_get(choice, "delta"));
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

// An event of Anthropic's API. Each block is one of the parts of a message.
static void add_event(streams *s, const json_t *line)
{
    const char *type = type_of(line), *id;
    const json_t *delta = json_object_get(line, "delta"), *message;
    if (!strcmp(type, "message_start")) {
        message = json_object_get(line, "message");
        id = json_string_value(json_object_get(message, "id"));
        s->current = id ? member(s, s->by_id, id, json_object) : NULL;
        const json_int_t starts = json_integer_value(json_object_get(s->current, "starts"));
        json_t *more = json_integer(starts + 1);
        s->failed = !more || s->failed;
        set(s, s->current, "starts", more);
        set(s, s->current, "model", dsc_import_at(message, "model", 0));
        json_decref(more);
    } else if (!s->current) {
        return;
    } else if (!strcmp(type, "content_block_start")) {
        json_t *block = at_index(s, s->current, "blocks", line);
        set(s, block, "start", json_object_get(line, "content_block"));
    } else if (!strcmp(type, "content_block_delta")) {
        json_t *block = at_index(s, s->current, "blocks", line);
        append(s, block, "pieces", dsc_import_any(delta, "text|thinking|partial_json", 0));
    } else if (!strcmp(type, "message_delta")) {
        set(s, s->current, "stop_reason", dsc_import_at(delta, "stop_reason", 0));
        set(s, s->current, "usage", dsc_import_at(line, "usage", 0));
    } else if (!strcmp(type, "message_stop")) {
        s->failed = json_object_set_new(s->current, "stopped", json_true()) || s->failed;
        s->current = NULL;
    }
}

static void add_chunk(void *state, const json_t *line)
{
    static const char *const kept[] = {"model", "usage", "metrics", "prompt_token_ids", "timings"};
    streams *s = state;
    const char *id = json_string_value(json_object_get(line, "id"));
    const json_t *choices = json_object_get(line, "choices");
    if (!s->failed && is_event(line))
        add_event(s, line);
    if (!id || s->failed || is_event(line))
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
    {
        json_object_foreach(json_object_get(joined, "choices"), index, choice) open +=
            !json_object_get(choice, "finish_reason");
        open += json_object_get(joined, "starts") && !json_object_get(joined, "stopped");
    }
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

// The message of a choice: its text, and the other fields joined. NULL: memory is short.
static json_t *join_message(const json_t *pieces, json_t *text, dsc_error *err)
{
    json_t *m = json_pack("{s:s, s:O}", "role", "assistant", "content", text), *list;
    json_t *calls = json_object_get(pieces, "calls"), *call;
    const char *name, *index;
    int rc = m ? DSC_OK : DSC_ENOMEM;
    json_object_foreach((json_t *)(uintptr_t)pieces, name, list)
    {
        json_t *whole = json_is_array(list) ? join(list, err) : json_incref(list);
        if (!rc && strcmp(name, "calls") != 0)
            rc = dsc_import_put_at(m, name, whole, err);
        else
            json_decref(whole);
    }
    if (!rc && calls)
        rc = dsc_import_put_at(m, "tool_calls", json_array(), err);
    json_object_foreach(calls, index, call)
    {
        const bool has = json_object_get(call, "has_arguments");
        json_t *made =
            json_pack("{s:O*, s:{s:o, s:o*}}", "id", json_object_get(call, "id"), "function",
                      "name", join(json_object_get(call, "name"), err), "arguments",
                      has ? join(json_object_get(call, "arguments"), err) : NULL);
        if (!rc && json_array_append_new(json_object_get(m, "tool_calls"), made))
            rc = DSC_ENOMEM;
    }
    if (rc)
        json_decref(m);
    return rc ? NULL : m;
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
    json_t *text = join(json_object_get(choice, "text"), err);
    const json_t *pieces = json_object_get(choice, "message");
    const bool is_message = pieces != NULL;
    if (!rc && is_message)
        rc = dsc_import_put_at(choice, "message", join_message(pieces, text, err), err);
    if (!rc && is_message)
        json_object_del(choice, "text");
    else if (!rc)
        rc = dsc_import_put_at(choice, "text", json_incref(text), err);
    json_decref(text);
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

// A block with the pieces that followed its start.
static json_t *join_block(const json_t *block, dsc_error *err)
{
    json_t *whole = dsc_json_copy(json_object_get(block, "start"));
    json_t *pieces = json_object_get(block, "pieces"), *text = NULL;
    const char *type = type_of(whole);
    const char *name = !strcmp(type, "tool_use")   ? "input"
                       : !strcmp(type, "thinking") ? "thinking"
                                                   : "text";
    if (whole && pieces)
        text = join(pieces, err);
    if (text && json_object_set(whole, name, text)) {
        json_decref(whole);
        whole = NULL;
    }
    json_decref(text);
    return whole;
}

// The response that a message_start of Anthropic's API begins, in that API's form.
static int add_blocks(json_t *requests, const json_t *line, const json_t *joined,
                      const dsc_import_options *options, dsc_error *err)
{
    const json_t *id = dsc_import_at(line, "message.id", 0);
    json_t *blocks = json_object_get(joined, "blocks"), *block;
    json_t *response = json_pack("{s:s, s:s, s:O, s:o}", "type", "message", "role", "assistant",
                                 "id", id, "content", json_array());
    static const char *const kept[] = {"model", "usage", "stop_reason"};
    const char *index;
    bool failed = !response;
    for (size_t i = 0; i < sizeof kept / sizeof *kept && !failed; i++) {
        json_t *value = json_object_get(joined, kept[i]);
        failed = value && json_object_set_new(response, kept[i], dsc_json_copy(value));
    }
    int rc = failed ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
    json_object_foreach(blocks, index, block)
    {
        if (!rc && !json_is_object(json_object_get(block, "start")))
            rc = dsc_fail(err, DSC_EINPUT, "stream '%.100s' has no start of block %s",
                          json_string_value(id), index);
        if (!rc &&
            json_array_append_new(json_object_get(response, "content"), join_block(block, err)))
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    rc = rc ?: dsc_import_response_expand(response, options, requests, err);
    json_decref(response);
    return rc;
}

// An event of Anthropic's API or of the Responses API.
static int expand_event(const json_t *line, const dsc_import_options *options, json_t *requests,
                        dsc_error *err)
{
    static const char ends[] = "response.completed|response.incomplete";
    const streams *s = options->prepared;
    const char *type = type_of(line);
    const char *id = json_string_value(dsc_import_at(line, "message.id", 0));
    const json_t *joined = id ? json_object_get(s->by_id, id) : NULL;
    json_t *response = json_object_get(line, "response");
    if (!strcmp(type, "response.failed")) // counted, left out
        return json_array_append_new(requests, json_null())
                   ? dsc_fail(err, DSC_ENOMEM, "out of memory")
                   : DSC_OK;
    if (json_integer_value(json_object_get(joined, "starts")) > 1)
        return dsc_fail(err, DSC_EINPUT, "stream '%.100s' begins twice", id);
    if (!strcmp(type, "message_start") && json_object_get(joined, "stopped"))
        return add_blocks(requests, line, joined, options, err);
    if (dsc_is_listed(ends, type, strlen(type)) && dsc_import_response(response))
        return dsc_import_response_expand(response, options, requests, err);
    return DSC_OK;
}

static int expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                  dsc_error *err)
{
    if (is_event(line))
        return expand_event(line, options, requests, err);
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
    .chats = true,
    .probe = probe,
    .expand = expand,
    .read = read_line,
    .prepare = prepare,
    .release = release,
};

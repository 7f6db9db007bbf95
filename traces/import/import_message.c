// SPDX-License-Identifier: Apache-2.0
// Reads messages of several APIs into one form (import_message.h).
#include "traces/import/import_message.h"

#include "traces/import/import_path.h"

#include <stdlib.h>
#include <string.h>

// A text that is gathered from pieces: a view of the first, and a copy as soon as there are two.
typedef struct gathered {
    dsc_text_view view;
    dsc_buffer joined;
} gathered;

// The message that is being read.
typedef struct reader {
    dsc_chat *chat;
    bool is_open, is_typed; // `is_typed`: it consists of items of the Responses API
    dsc_chat_message m;
    gathered text, thoughts;
    bool has_text; // even an empty one
    dsc_chat_call *call;
    size_t capacity;
    char where[48]; // its place, for messages
} reader;

static int short_of_memory(dsc_error *err)
{
    return dsc_fail(err, DSC_ENOMEM, "out of memory");
}

static int gather(gathered *g, dsc_text_view piece, dsc_error *err)
{
    int rc = DSC_OK;
    if (!piece.length)
        return DSC_OK;
    if (!g->view.length) {
        g->view = piece;
        return DSC_OK;
    }
    if (!g->joined.length)
        rc = dsc_buffer_append(&g->joined, g->view.bytes, (size_t)g->view.length, err);
    rc = rc ?: dsc_buffer_append(&g->joined, piece.bytes, (size_t)piece.length, err);
    g->view.length += piece.length; // its bytes are taken from `joined`
    return rc;
}

// Keeps a new value until the chat ends.
static int own(dsc_chat *c, json_t *value, dsc_error *err)
{
    if (!c->owned)
        c->owned = json_array();
    return json_array_append_new(c->owned, value) ? short_of_memory(err) : DSC_OK;
}

static int settle(dsc_chat *c, gathered *g, dsc_text_view *out, dsc_error *err)
{
    int rc = DSC_OK;
    if (g->joined.length) {
        json_t *text = json_stringn_nocheck(g->joined.data, g->joined.length);
        g->view = (dsc_text_view){json_string_value(text), (int64_t)json_string_length(text)};
        rc = text ? own(c, text, err) : short_of_memory(err);
    }
    *out = g->view;
    dsc_buffer_fini(&g->joined);
    *g = (gathered){0};
    return rc;
}

// --- the message that is open --------------------------------------------------------------------

static bool is_empty(const reader *r)
{
    return !r->has_text && !r->thoughts.view.length && !r->m.calls && !r->m.lost;
}

// Appends the open message to the chat.
static int close_message(reader *r, dsc_error *err)
{
    dsc_chat *c = r->chat;
    dsc_text_view text = {0};
    if (!r->is_open)
        return DSC_OK;
    r->is_open = false;
    int rc = settle(c, &r->text, &text, err);
    rc = rc ?: settle(c, &r->thoughts, &r->m.thoughts, err);
    rc = rc ?: dsc_resize(&c->message, &c->capacity, c->count + 1, err);
    if (r->call) {
        rc = rc ?: dsc_resize(&c->calls, &c->call_capacity, c->call_lists + 1, err);
        if (rc)
            free(r->call);
        else
            c->calls[c->call_lists++] = r->call;
    }
    r->m.call = r->call;
    r->m.text = text.bytes ? text.bytes : "";
    r->m.length = (size_t)text.length;
    r->call = NULL;
    if (rc)
        return rc;
    c->message[c->count++] = r->m;
    c->answers += r->m.role == DSC_CHAT_ASSISTANT;
    return DSC_OK;
}

static int open_message(reader *r, dsc_chat_role role, size_t source, dsc_error *err)
{
    int rc = close_message(r, err);
    r->m = (dsc_chat_message){.role = role, .source = source};
    r->is_open = true;
    r->is_typed = r->has_text = false;
    r->capacity = 0;
    return rc;
}

static int fail_field(reader *r, const json_t *value, const char *expected, const char *field,
                      dsc_error *err)
{
    return dsc_import_wrong_type(value, expected, err, "%s%s%s", r->where, *field ? "." : "",
                                 field);
}

static int add_text(reader *r, const json_t *value, const char *field, dsc_error *err)
{
    const dsc_text_view s = {json_string_value(value), (int64_t)json_string_length(value)};
    if (!json_is_string(value))
        return fail_field(r, value, "a string", field, err);
    r->has_text = true;
    if (s.length && r->m.calls)
        r->m.lost |= DSC_CHAT_ORDER;
    return gather(&r->text, s, err);
}

static int add_thoughts(reader *r, const json_t *value, const char *field, dsc_error *err)
{
    const dsc_text_view s = {json_string_value(value), (int64_t)json_string_length(value)};
    if (!json_is_string(value))
        return fail_field(r, value, "a string", field, err);
    if (s.length && (r->text.view.length || r->m.calls))
        r->m.lost |= DSC_CHAT_ORDER;
    return gather(&r->thoughts, s, err);
}

// --- calls ---------------------------------------------------------------------------------------

// Arguments are an object, or a text that should contain one.
static int read_arguments(reader *r, const json_t *value, const json_t **out, dsc_error *err)
{
    *out = value;
    if (!json_is_string(value))
        return DSC_OK;
    const size_t length = json_string_length(value);
    json_t *parsed = length ? json_loadb(json_string_value(value), length, 0, NULL) : json_object();
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return DSC_OK;
    }
    *out = parsed;
    return own(r->chat, parsed, err);
}

static dsc_text_view view_of(const json_t *value)
{
    return (dsc_text_view){json_string_value(value), (int64_t)json_string_length(value)};
}

// A call with its arguments under one of two names.
static int add_call(reader *r, const json_t *function, const json_t *id, const char *field,
                    dsc_error *err)
{
    const json_t *name = json_object_get(function, "name");
    const json_t *arguments = dsc_import_any(function, "arguments|input|parameters", 0);
    if (!json_is_string(name) || !json_string_length(name))
        return dsc_import_wrong_type(name, "the name of a tool", err, "%s.%s.name", r->where,
                                     field);
    if (!arguments)
        return dsc_fail(err, DSC_EINPUT,
                        "field '%s.%s.arguments' is missing; a tool that takes none is called with "
                        "\"{}\"",
                        r->where, field);
    if (!json_is_object(arguments) && !json_is_string(arguments))
        return dsc_import_wrong_type(arguments, "an object or a string", err, "%s.%s.arguments",
                                     r->where, field);
    int rc = dsc_resize(&r->call, &r->capacity, r->m.calls + 1, err);
    if (rc)
        return rc;
    dsc_chat_call *call = &r->call[r->m.calls++];
    *call = (dsc_chat_call){.name = view_of(name), .id = view_of(id)};
    return read_arguments(r, arguments, &call->arguments, err);
}

static int read_calls(reader *r, const json_t *message, dsc_error *err)
{
    const json_t *list = dsc_import_at(message, "tool_calls", 0);
    const json_t *one = dsc_import_at(message, "function_call", 0);
    int rc = DSC_OK;
    if (list && !json_is_array(list))
        return fail_field(r, list, "an array", "tool_calls", err);
    for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
        const json_t *call = json_array_get(list, i),
                     *function = dsc_import_at(call, "function", 0);
        char field[64];
        snprintf(field, sizeof field, "tool_calls[%zu]%s", i, function ? ".function" : "");
        if (!json_is_object(function ? function : call))
            rc = fail_field(r, function ? function : call, "an object", field, err);
        else if (json_object_get(call, "custom"))
            r->m.lost |= DSC_CHAT_CALLS; // a free text, which each template writes in its own way
        else
            rc = add_call(r, function ? function : call, json_object_get(call, "id"), field, err);
    }
    if (one && !list)
        rc = rc
                 ?: json_is_object(one) ? add_call(r, one, NULL, "function_call", err)
                                        : fail_field(r, one, "an object", "function_call", err);
    return rc;
}

// --- parts ---------------------------------------------------------------------------------------

enum { DEPTH = 4 }; // of parts in parts

static int read_content(reader *r, const json_t *content, const char *field, int depth,
                        dsc_error *err);

// A list of thoughts or a text: "thinking": "...", or [{"text": "..."}, ...]
static int read_thoughts(reader *r, const json_t *value, const char *field, dsc_error *err)
{
    int rc = DSC_OK;
    if (!json_is_array(value))
        return add_thoughts(r, value, field, err);
    for (size_t i = 0; i < json_array_size(value) && !rc; i++) {
        const json_t *part = json_array_get(value, i);
        const json_t *text = json_is_string(part) ? part : dsc_import_any(part, "text|thinking", 0);
        if (text)
            rc = add_thoughts(r, text, field, err);
        else
            r->m.lost |= DSC_CHAT_THOUGHTS; // encrypted, or a summary
    }
    return rc;
}

// An item {"type": "reasoning"}: its content, or nothing but a summary or what is encrypted.
static int read_reasoning(reader *r, const json_t *item, dsc_error *err)
{
    const json_t *content = dsc_import_any(item, "content|text", 0);
    if (!content || (json_is_array(content) && !json_array_size(content))) {
        r->m.lost |= DSC_CHAT_THOUGHTS;
        return DSC_OK;
    }
    return read_thoughts(r, content, "content", err);
}

// A result in Anthropic's form is a part of a message of the user; here it is a message.
static int read_result(reader *r, const json_t *part, const char *field, int depth, dsc_error *err)
{
    const json_t *content = dsc_import_any(part, "content|output", 0);
    const size_t source = r->m.source;
    const dsc_chat_role role = r->m.role;
    int rc = DSC_OK;
    if (is_empty(r))
        r->is_open = false; // nothing came before the result
    rc = open_message(r, DSC_CHAT_TOOL, source, err);
    r->m.call_id = view_of(dsc_import_any(part, "tool_use_id|call_id|tool_call_id", 0));
    r->has_text = true;
    if (content)
        rc = rc ?: read_content(r, content, field, depth, err);
    rc = rc ?: open_message(r, role, source, err);
    return rc;
}

static const struct {
    const char *type, *member;
    enum { TEXT, THOUGHTS, REASONING, CALL, RESULT, PARTS } is;
} kinds[] = {
    {"text", "text", TEXT},
    {"input_text", "text", TEXT},
    {"output_text", "text", TEXT},
    {"refusal", "refusal", TEXT},
    {"thinking", "thinking", THOUGHTS},
    {"reasoning_text", "text", THOUGHTS},
    {"reasoning", NULL, REASONING},
    {"tool_use", NULL, CALL},
    {"function_call", NULL, CALL},
    {"tool_result", NULL, RESULT},
    {"message", "content", PARTS},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void lose(reader *r, const char *type)
{
    if (strstr(type, "thinking"))
        r->m.lost |= DSC_CHAT_THOUGHTS; // redacted
    else
        r->m.lost |=
            strstr(type, "_call") || strstr(type, "tool") ? DSC_CHAT_CALLS : DSC_CHAT_MEDIA;
}

static int read_part(reader *r, const json_t *part, const char *field, int depth, dsc_error *err)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    char inside[64];
    size_t k = 0;
    if (json_is_string(part))
        return add_text(r, part, field, err);
    if (!json_is_object(part))
        return fail_field(r, part, "an object", field, err);
    while (type && k < KINDS && strcmp(kinds[k].type, type) != 0)
        k++;
    if (k == KINDS || depth == DEPTH) {
        lose(r, type ? type : "");
        return DSC_OK;
    }
    const char *member = kinds[k].member;
    const json_t *value = member ? dsc_import_at(part, member, 0) : NULL;
    snprintf(inside, sizeof inside, "%.40s.%s", field, member ? member : "");
    switch (kinds[k].is) {
    case TEXT: return add_text(r, value, inside, err);
    case THOUGHTS: return read_thoughts(r, value, inside, err);
    case REASONING: return read_reasoning(r, part, err);
    case CALL: return add_call(r, part, dsc_import_any(part, "call_id|id", 0), field, err);
    case RESULT: return read_result(r, part, field, depth + 1, err);
    default: return read_content(r, value, field, depth + 1, err);
    }
}

// A text, or a list of parts.
static int read_content(reader *r, const json_t *content, const char *field, int depth,
                        dsc_error *err)
{
    char part[64];
    int rc = DSC_OK;
    if (!json_is_array(content))
        return add_text(r, content, field, err);
    r->has_text = r->has_text || r->m.role != DSC_CHAT_USER;
    for (size_t p = 0; p < json_array_size(content) && !rc; p++) {
        snprintf(part, sizeof part, "%.40s[%zu]", field, p);
        rc = read_part(r, json_array_get(content, p), part, depth, err);
    }
    return rc;
}

// --- messages ------------------------------------------------------------------------------------

static const struct {
    const char *name;
    dsc_chat_role role;
} roles[] = {
    {"system", DSC_CHAT_SYSTEM},       {"developer", DSC_CHAT_SYSTEM},
    {"user", DSC_CHAT_USER},           {"human", DSC_CHAT_USER},
    {"gpt", DSC_CHAT_ASSISTANT},       {"model", DSC_CHAT_ASSISTANT},
    {"assistant", DSC_CHAT_ASSISTANT}, {"tool", DSC_CHAT_TOOL},
    {"function", DSC_CHAT_TOOL},       {"ipython", DSC_CHAT_TOOL},
    {"observation", DSC_CHAT_TOOL},
};
enum { ROLES = sizeof roles / sizeof *roles };

// ShareGPT's files for tools: {"from": "function_call", "value": "{\"name\": ..., \"arguments\":
// ...}"}, also a list of calls.
static bool is_call(const json_t *message)
{
    const char *from = json_string_value(json_object_get(message, "from"));
    return from && (!strcmp(from, "function_call") || !strcmp(from, "tool_call"));
}

static int read_call_text(reader *r, const json_t *message, size_t source, dsc_error *err)
{
    const json_t *value = json_object_get(message, "value");
    json_t *call = json_loads(json_is_string(value) ? json_string_value(value) : "", 0, NULL);
    json_t *list = json_is_array(call) ? call : json_pack("[o]", call);
    int rc = open_message(r, DSC_CHAT_ASSISTANT, source, err);
    if (list)
        rc = rc ?: own(r->chat, list, err);
    for (size_t i = 0; i < json_array_size(list) && !rc; i++)
        rc = add_call(r, json_array_get(list, i), NULL, "value", err);
    if (!rc && !r->m.calls)
        rc =
            dsc_fail(err, DSC_EINPUT,
                     "field '%s.value' must be a call in JSON, {\"name\": ..., \"arguments\": ...}",
                     r->where);
    return rc;
}

static int read_role(reader *r, const json_t *message, dsc_chat_role *out, dsc_error *err)
{
    const json_t *role = dsc_import_any(message, "role|from", 0);
    const char *name = json_string_value(role);
    if (!name)
        return fail_field(r, role, "a string", "role", err);
    for (size_t i = 0; i < ROLES; i++)
        if (!strcmp(roles[i].name, name)) {
            *out = roles[i].role;
            return DSC_OK;
        }
    return dsc_fail(err, DSC_EINPUT,
                    "field '%s.role' is \"%.60s\"; it must be system, developer, user, assistant "
                    "or tool",
                    r->where, name);
}

// What an answer has besides its content. Servers give the same thoughts under several names.
static int read_answer(reader *r, const json_t *message, dsc_error *err)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking",
                                        "reasoning_details", "thinking_blocks"};
    const json_t *content = dsc_import_any(message, "content|value", 0);
    const json_t *refusal = dsc_import_at(message, "refusal", 0);
    int rc = DSC_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && !r->thoughts.view.length; i++) {
        const json_t *thoughts = dsc_import_at(message, names[i], 0);
        if (thoughts)
            rc = rc ?: read_thoughts(r, thoughts, names[i], err);
    }
    if (json_object_get(message, "audio") && !json_is_null(json_object_get(message, "audio")))
        r->m.lost |= DSC_CHAT_MEDIA;
    if (content)
        rc = rc ?: read_content(r, content, "content", 0, err);
    if (json_string_length(refusal))
        rc = rc ?: add_text(r, refusal, "refusal", err);
    rc = rc ?: read_calls(r, message, err);
    if (!rc && is_empty(r))
        rc = dsc_fail(err, DSC_EINPUT,
                      "field '%s.content' is missing, and the answer has no reasoning, tool calls "
                      "or refusal",
                      r->where);
    return rc;
}

static int read_message(reader *r, const json_t *message, size_t source, dsc_error *err)
{
    const json_t *content = dsc_import_any(message, "content|value", 0);
    dsc_chat_role role = DSC_CHAT_USER;
    int rc = read_role(r, message, &role, err);
    // The items of one answer follow each other.
    const bool typed = json_object_get(message, "type");
    if (!(typed && role == DSC_CHAT_ASSISTANT && r->is_open && r->is_typed))
        rc = rc ?: open_message(r, role, source, err);
    r->is_typed = typed && role == DSC_CHAT_ASSISTANT;
    if (rc || role == DSC_CHAT_ASSISTANT)
        return rc ?: read_answer(r, message, err);
    if (role == DSC_CHAT_TOOL) {
        r->m.call_id = view_of(dsc_import_any(message, "tool_call_id|id", 0));
        r->m.tool = view_of(json_object_get(message, "name"));
    }
    if (!content && role == DSC_CHAT_TOOL) // a tool that returned nothing
        return DSC_OK;
    if (!content)
        return fail_field(r, NULL, "", "content", err);
    rc = read_content(r, content, "content", 0, err);
    if (!rc && role == DSC_CHAT_USER && is_empty(r))
        r->is_open = false; // it consisted of results
    return rc;
}

// An item of the Responses API that is no message: a part of an answer, or the result of a call.
static int read_item(reader *r, const json_t *item, const char *type, size_t source, dsc_error *err)
{
    const size_t length = strlen(type);
    int rc = DSC_OK;
    if (length > 7 && !strcmp(type + length - 7, "_output")) {
        rc = open_message(r, DSC_CHAT_TOOL, source, err);
        rc = rc ?: read_result(r, item, "output", 0, err);
        r->is_open = false; // what follows the result
        return rc;
    }
    if (!(r->is_open && r->is_typed))
        rc = open_message(r, DSC_CHAT_ASSISTANT, source, err);
    r->is_typed = true;
    return rc ?: read_part(r, item, type, 0, err);
}

static int read_element(reader *r, const json_t *item, size_t source, dsc_error *err)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    snprintf(r->where, sizeof r->where, "messages[%zu]", source);
    if (!json_is_object(item))
        return fail_field(r, item, "an object", "", err);
    if (is_call(item))
        return read_call_text(r, item, source, err);
    if (type && strcmp(type, "message") != 0 && !dsc_import_any(item, "role|from", 0))
        return read_item(r, item, type, source, err);
    return read_message(r, item, source, err);
}

static int finish(reader *r, int rc, dsc_error *err)
{
    rc = rc ?: close_message(r, err);
    dsc_buffer_fini(&r->text.joined);
    dsc_buffer_fini(&r->thoughts.joined);
    free(r->call);
    return rc;
}

int dsc_chat_read(dsc_chat *c, const json_t *list, size_t count, dsc_error *err)
{
    reader r = {.chat = c};
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_element(&r, json_array_get(list, i), i, err);
    return finish(&r, rc, err);
}

int dsc_chat_read_system(dsc_chat *c, const json_t *content, dsc_error *err)
{
    reader r = {.chat = c, .where = "system"};
    int rc = open_message(&r, DSC_CHAT_SYSTEM, 0, err);
    rc = rc ?: read_content(&r, content, "", 0, err);
    return finish(&r, rc, err);
}

int dsc_chat_read_answer(dsc_chat *c, const json_t *message, const char *where, dsc_error *err)
{
    reader r = {.chat = c};
    snprintf(r.where, sizeof r.where, "%s", where);
    if (!json_is_object(message))
        return fail_field(&r, message, "an object", "", err);
    int rc = open_message(&r, DSC_CHAT_ASSISTANT, 0, err);
    rc = rc ?: read_answer(&r, message, err);
    return finish(&r, rc, err);
}

void dsc_chat_fini(dsc_chat *c)
{
    for (size_t i = 0; i < c->call_lists; i++)
        free(c->calls[i]);
    free(c->calls);
    free(c->message);
    json_decref(c->owned);
    *c = (dsc_chat){0};
}

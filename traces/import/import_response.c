// SPDX-License-Identifier: Apache-2.0
// Finds responses of chats in lines of logs. Proxies and batch files put them next to the request:
// {"request": {"messages": [...]}, "response": {"choices": [...]}}, or, in OpenAI's batches,
// {"custom_id": "...", "response": {"body": {"choices": [...]}}}. Responses of OpenAI's Responses
// API, {"object": "response", "input", "output": [...]}, and Anthropic's messages, {"type":
// "message", "role": "assistant", "content": [...]}, become responses of a chat with one choice.
#include "traces/import/import_response.h"

#include "traces/import/import_chat.h"
#include "traces/import/import_path.h"

#include <string.h>

static bool is_text(const json_t *object, const char *name, const char *text)
{
    const char *s = json_string_value(json_object_get(object, name));
    return s && !strcmp(s, text);
}

static bool is_item(const json_t *value)
{
    return json_is_string(json_object_get(value, "type"));
}

static bool is_responses_api(const json_t *o)
{
    const json_t *output = json_object_get(o, "output");
    return json_is_array(output) &&
           (is_text(o, "object", "response") || is_item(json_array_get(output, 0)));
}

static bool is_anthropic(const json_t *o)
{
    return is_text(o, "type", "message") && is_text(o, "role", "assistant") &&
           json_object_get(o, "content");
}

json_t *dsc_import_response(const json_t *line)
{
    static const char *const paths[] = {"", "response", "response.body", NULL};
    for (const char *const *p = paths; *p; p++) {
        json_t *r = dsc_import_at(line, *p, 0);
        if (json_is_array(json_object_get(r, "choices")) || is_responses_api(r) || is_anthropic(r))
            return r;
    }
    return NULL;
}

// The members of a response of another API that one of a chat has under other names.
static const dsc_import_field renamed[] = {
    {"id", "id", 0, false},
    {"model", "model", 0, false},
    {"usage.completion_tokens", "usage.output_tokens", 0, false},
    {"usage.completion_tokens_details", "usage.output_tokens_details", 0, false},
    {0},
};

// The same response in the form of a chat's: a new reference, or NULL when memory is short.
static json_t *as_choices(json_t *response)
{
    static const char reasons[] = "incomplete_details.reason|stop_reason";
    if (json_is_array(json_object_get(response, "choices")))
        return json_incref(response);
    json_t *out = json_object();
    json_t *parts = dsc_import_any(response, is_responses_api(response) ? "output" : "content", 0);
    json_t *choice = json_pack("{s:{s:s, s:O}, s:O*}", "message", "role", "assistant", "content",
                               parts, "finish_reason", dsc_import_any(response, reasons, 0));
    if (choice && !json_object_get(choice, "finish_reason") &&
        is_text(response, "status", "completed") &&
        json_object_set_new(choice, "finish_reason", json_string("stop"))) {
        json_decref(choice);
        choice = NULL;
    }
    if (!out || !choice || dsc_import_gather(out, renamed, response, 0, NULL) ||
        json_object_set_new(out, "choices", json_pack("[O]", choice))) {
        json_decref(out);
        out = NULL;
    }
    json_decref(choice);
    return out;
}

// What surrounds a response and belongs to each of its choices.
static const dsc_import_field around[] = {
    {"id", "id|custom_id|request_id", 0, false},
    {"prompt", "prompt|request.prompt|body.prompt|request.body.prompt", 0, false},
    {"category", "category", 0, false},
    {"arrival_s", "arrival_s", 1, false},
    {0},
};

static int set_prompt(json_t *one, const dsc_import_prompt *prompt, dsc_error *err)
{
    if (!prompt->text)
        return DSC_OK;
    json_t *about = json_pack("{s:i, s:b, s:b}", "lost", (int)prompt->lost, "after_result",
                              prompt->after_result, "tools_left_out", prompt->tools_left_out);
    int rc = dsc_import_put_at(one, "prompt", json_incref(prompt->text), err);
    return rc ?: dsc_import_put_at(one, DSC_IMPORT_ABOUT_PROMPT, about, err);
}

// A response with choice i alone. Counts of the response are of all choices.
static int add_choice(json_t *requests, const json_t *line, json_t *response,
                      const dsc_import_prompt *prompt, size_t i, dsc_error *err)
{
    const json_t *choices = json_object_get(response, "choices");
    json_t *one = json_object();
    int rc = one ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    rc = rc ?: dsc_import_gather(one, around, line, 0, err);
    if (!rc && json_object_update(one, response))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    rc = rc ?: set_prompt(one, prompt, err);
    rc = rc ?: dsc_import_put_at(one, "choices", json_pack("[O]", json_array_get(choices, i)), err);
    if (json_array_size(choices) > 1) {
        json_object_del(one, "usage");
        json_object_del(one, "metrics");
        json_object_del(one, "timings");
    }
    if (!rc)
        return dsc_import_add_request(requests, one, i + 1, json_array_size(choices), err);
    json_decref(one);
    return rc;
}

// Whether a line is a response of one choice and nothing else.
static bool is_plain(const json_t *line)
{
    static const char *const around_it[] = {"messages", "request", "body", "conversations",
                                            DSC_IMPORT_ABOUT_PROMPT};
    bool plain = json_array_size(json_object_get(line, "choices")) == 1;
    for (size_t i = 0; i < sizeof around_it / sizeof *around_it && plain; i++)
        plain = !json_object_get(line, around_it[i]);
    return plain;
}

// The messages of a line; those of the Responses API may be one text. *out is a new reference, or
// NULL.
static int find_messages(json_t **out, const json_t *line, dsc_error *err)
{
    json_t *input = dsc_import_any(line, "input|request.input|body.input|request.body.input", 0);
    *out = json_incref(dsc_import_messages(line));
    if (*out || !input)
        return DSC_OK;
    *out = json_is_array(input) ? json_incref(input)
                                : json_pack("[{s:s, s:O}]", "role", "user", "content", input);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
}

static int find_prompt(dsc_import_prompt *out, const json_t *line, const json_t *response,
                       const dsc_import_options *options, dsc_error *err)
{
    const json_t *message = dsc_import_at(response, "choices.0.message", 0);
    json_t *messages;
    bool silent = true;
    int rc = find_messages(&messages, line, err);
    if (rc || !messages)
        return rc;
    if (message && !dsc_import_is_plain_answer(message))
        rc = dsc_import_answer(message, "choices[0].message", false, options, &silent, NULL, NULL,
                               err);
    rc = rc
             ?: dsc_import_chat_prompt(out, line, messages, json_array_size(messages), silent,
                                       options, err);
    json_decref(messages);
    return rc;
}

int dsc_import_response_expand(const json_t *line, const dsc_import_options *options,
                               json_t *requests, dsc_error *err)
{
    json_t *found = is_plain(line) ? NULL : dsc_import_response(line);
    json_t *response = found ? as_choices(found) : NULL;
    dsc_import_prompt prompt = {0};
    const size_t choices = json_array_size(json_object_get(response, "choices"));
    int rc = found && !response ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
    if (!choices) {
        json_decref(response);
        return rc
                   ?: json_array_append(requests, (json_t *)(uintptr_t)line)
                      ? dsc_fail(err, DSC_ENOMEM, "out of memory")
                      : DSC_OK;
    }
    rc = find_prompt(&prompt, line, response, options, err);
    for (size_t i = 0; i < choices && !rc; i++)
        rc = add_choice(requests, line, response, &prompt, i, err);
    json_decref(prompt.text);
    json_decref(response);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Finds responses in OpenAI's form in lines of logs. Proxies and batch files put them next to the
// request: {"request": {"messages": [...]}, "response": {"choices": [...]}}, or, in OpenAI's
// batches,
// {"custom_id": "...", "response": {"body": {"choices": [...]}}}.
#include "traces/import/import_response.h"

#include "traces/import/import_chat.h"
#include "traces/import/import_path.h"

json_t *dsc_import_response(const json_t *line)
{
    static const char *const paths[] = {"", "response", "response.body", NULL};
    for (const char *const *p = paths; *p; p++) {
        json_t *r = dsc_import_at(line, *p, 0);
        if (json_is_array(json_object_get(r, "choices")))
            return r;
    }
    return NULL;
}

// What surrounds a response and belongs to each of its choices.
static const dsc_import_field around[] = {
    {"id", "id|custom_id|request_id", 0, false},
    {"prompt", "prompt|request.prompt|body.prompt|request.body.prompt", 0, false},
    {"category", "category", 0, false},
    {"arrival_s", "arrival_s", 1, false},
    {0},
};

// A response with choice i alone. Counts of the response are of all choices.
static int add_choice(json_t *requests, const json_t *line, json_t *response, json_t *prompt,
                      size_t i, dsc_error *err)
{
    const json_t *choices = json_object_get(response, "choices");
    json_t *one = json_object();
    int rc = one ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_gather(one, around, line, 0, err);
    if (!rc && json_object_update(one, response))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc && prompt)
        rc = dsc_import_put_at(one, "prompt", json_incref(prompt), err);
    if (!rc)
        rc = dsc_import_put_at(one, "choices", json_pack("[O]", json_array_get(choices, i)), err);
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
    static const char *const around_it[] = {"messages", "request", "body", "conversations"};
    bool plain = json_array_size(json_object_get(line, "choices")) == 1;
    for (size_t i = 0; i < sizeof around_it / sizeof *around_it && plain; i++)
        plain = !json_object_get(line, around_it[i]);
    return plain;
}

int dsc_import_response_expand(const json_t *line, const dsc_import_options *options,
                               json_t *requests, dsc_error *err)
{
    const bool plain = is_plain(line);
    json_t *response = plain ? NULL : dsc_import_response(line), *prompt = NULL;
    const json_t *messages = plain ? NULL : dsc_import_messages(line);
    const size_t choices = json_array_size(json_object_get(response, "choices"));
    if (!choices)
        return json_array_append(requests, (json_t *)(uintptr_t)line)
                   ? dsc_fail(err, DSC_ENOMEM, "out of memory")
                   : DSC_OK;
    int rc = DSC_OK;
    if (messages)
        rc = dsc_import_chat_prompt(&prompt, messages, json_array_size(messages), options, err);
    for (size_t i = 0; i < choices && !rc; i++)
        rc = add_choice(requests, line, response, prompt, i, err);
    json_decref(prompt);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Reads pairs of a prompt and a completion under their usual names, and the responses of
// llama.cpp's server to /completion: "content" or, with return_tokens, "tokens"; "stop_type"; and
// "timings" with prompt_ms, predicted_n, predicted_ms and, if it speculated, draft_n and
// draft_n_accepted. Source: llama.cpp, tools/server/server-task.cpp (00efb3e),
// result_timings::to_json.
#include "traces/import/import_chat.h"
#include "traces/import/import_path.h"

static const char prompts[] = "prompt|input|prompt_token_ids";
static const char completions[] = "completion|response|generated_text|output_text";

static const dsc_import_field pair_fields[] = {
    {"prompt", prompts, 0, true},
    {"output", completions, 0, true},
    {"metadata.new_tokens", "usage.completion_tokens", 0, false},
    {0},
};

static bool is_text(const json_t *value)
{
    return json_is_string(value) || json_is_integer(json_array_get(value, 0));
}

static int probe_pair(const json_t *line)
{
    return 3 * (is_text(dsc_import_any(line, prompts, 0)) &&
                is_text(dsc_import_any(line, completions, 0)));
}

// Reasoning and calls of tools may be next to the completion.
static int complete(json_t *request, const json_t *line, const dsc_import_options *options,
                    dsc_error *err)
{
    json_t *text = json_object_get(request, "output"), *message = NULL;
    dsc_buffer all = {0};
    unsigned lost = 0;
    int rc = json_is_string(text) ? dsc_import_beside(&message, line, text, err) : DSC_OK;
    if (!rc && message && !dsc_import_is_plain_answer(message)) {
        rc = dsc_import_answer(message, "completion", false, options, NULL, &lost, &all, err);
        rc = rc
                 ?: dsc_import_put_at(request, "output", json_stringn_nocheck(all.data, all.length),
                                      err);
        if (lost && !json_object_get(request, "metadata"))
            rc = rc ?: dsc_import_put_at(request, "metadata", json_object(), err);
        rc = rc ?: dsc_import_mark(json_object_get(request, "metadata"), lost, false, err);
    }
    json_decref(message);
    dsc_buffer_fini(&all);
    return rc;
}

static int expand_pair(const json_t *line, const dsc_import_options *options, json_t *requests,
                       dsc_error *err)
{
    json_t *request;
    int rc = dsc_import_request_new(&request, pair_fields, line, 0, err);
    if (rc)
        return rc;
    rc = complete(request, line, options, err);
    if (!rc)
        return dsc_import_add_request(requests, request, 1, 1, err);
    json_decref(request);
    return rc;
}

const dsc_import_driver dsc_import_pairs = {
    .name = "completion",
    .summary = "pairs: prompt (or input) and completion (or response, generated_text)",
    .needs = "prompt completion",
    .documents = true,
    .chats = true,
    .probe = probe_pair,
    .expand = expand_pair,
    .read = dsc_import_request_read,
};

// --- llama.cpp -----------------------------------------------------------------------------------

static const dsc_import_field llamacpp_fields[] = {
    {"prompt", "prompt", 0, false},
    {"output", "content", 0, true},
    {"finish_reason", "stop_type", 0, false},
    {"metadata.ttft_s", "timings.prompt_ms", 1e-3, false},
    {"metadata.wall_time", "timings.predicted_ms", 1e-3, false},
    {"metadata.new_tokens", "timings.predicted_n|tokens_predicted", 0, false},
    {"metadata.num_draft_tokens", "timings.draft_n", 1, false},
    {"metadata.num_accepted_draft_tokens", "timings.draft_n_accepted", 1, false},
    {0},
};

static int probe_llamacpp(const json_t *line)
{
    return 4 * (dsc_import_at(line, "content", 0) && dsc_import_any(line, "timings|stop_type", 0));
}

static int expand_llamacpp(const json_t *line, const dsc_import_options *options, json_t *requests,
                           dsc_error *err)
{
    json_t *request, *tokens = dsc_import_at(line, "tokens", 0);
    (void)options;
    int rc = dsc_import_request_new(&request, llamacpp_fields, line, 0, err);
    if (!rc && json_array_size(tokens)) { // empty without return_tokens
        rc = dsc_import_put_at(request, "output", json_incref(tokens), err);
        if (rc)
            json_decref(request);
    }
    return rc ? rc : dsc_import_add_request(requests, request, 1, 1, err);
}

const dsc_import_driver dsc_import_llamacpp = {
    .name = "llamacpp",
    .summary = "llama.cpp's /completion: content or tokens, and timings with draft_n",
    .needs = "content timings",
    .documents = true,
    .probe = probe_llamacpp,
    .expand = expand_llamacpp,
    .read = dsc_import_request_read,
};

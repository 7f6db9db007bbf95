// SPDX-License-Identifier: Apache-2.0
// Reads vLLM's responses of /v1/completions and /v1/chat/completions, one per line, or JSON
// documents, and those of other servers with OpenAI's API (also the Responses API and Anthropic's
// messages: import_response.c):
//   "choices": [{"text" or "message.content", "token_ids", "prompt_token_ids", "logprobs",
//                "finish_reason"}, ...]             a request each; ids with return_token_ids.
//                                                   What a message has besides its content is
//                                                   written as the model did (import_message.h)
//   "prompt_token_ids"                              in a chat
//   "timings": {"predicted_ms", "draft_n", ...}     llama.cpp (import_completion.c)
//   "metrics": {"speculative_decoding": {...}}      --per-request-spec-decode-metrics, with
//     "per_step_accepted", "per_step_drafted"       "detailed": the steps, bonus EXCLUDED
//     "num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens", "acceptance_histogram",
//     "acceptance_histogram_by_draft_length": {"3": [39, 1, 0, 3]}, by the drafted tokens
//   "metrics": {"time_to_first_token_ms", "generation_time_ms"}     --enable-per-request-metrics
// These counts exclude steps without a draft and the prefill, which generates the first token, and
// "accepted" includes tokens of the last step after the end of the output. With N output tokens and
// S written by the steps, N - 1 - S steps certainly had no draft; each token of the last step that
// was cut off hides one more. The certain ones are added to the steps, at the end, because their
// places are unknown (the steps are recorded as logged). A response does not contain its prompt: it
// is empty without prompt_token_ids or the request next to the response (import_response.c).
// Sources: vLLM, docs/features/speculative_decoding/acceptance_metrics.md (02cf515) and
// docs/features/per_request_metrics.md (0377ba9).
#include "base/json_text.h"
#include "base/option.h"
#include "traces/import/import_chat.h"
#include "traces/import/import_path.h"
#include "traces/import/import_response.h"
#include "traces/trace/trace_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const json_t *find_choice(const json_t *line)
{
    return json_array_get(json_object_get(line, "choices"), 0);
}

static const json_t *find_metrics(const json_t *line)
{
    line = dsc_import_response(line);
    const json_t *m = json_object_get(json_object_get(line, "metrics"), "speculative_decoding");
    return json_is_null(m) ? NULL : m;
}

// The value of a field; NULL when it is absent or null.
static const json_t *given(const json_t *object, const char *field)
{
    const json_t *v = json_object_get(object, field);
    return json_is_null(v) ? NULL : v;
}

static int probe(const json_t *line)
{
    const json_t *response = dsc_import_response(line), *c = find_choice(response);
    const bool answer = json_object_get(c, "text") || json_object_get(c, "message") ||
                        (response && !json_object_get(response, "choices"));
    return 2 * (find_metrics(line) != NULL) + 4 * answer;
}

// --- steps -------------------------------------------------------------------------------------

typedef struct steps {
    size_t count, added;             // steps of the metrics; steps without a draft after them
    int64_t accepted, drafted, last; // tokens of all steps; tokens accepted in the last step
} steps;

// Steps that the metrics leave out. `tokens`: of the output, -1: unknown.
static void count_missing(const json_t *accepted, int64_t tokens, dsc_import_record *out,
                          steps *sum)
{
    const size_t n = sum->count;
    int64_t written = (int64_t)n, last = 0; // the bonus tokens
    for (size_t i = 0; i < n; i++) {
        last = json_integer_value(json_array_get(accepted, i));
        if (last < 0 || last > UINT16_MAX)
            return; // read_steps reports it
        written += last;
    }
    const int64_t missing = tokens - 1 - written;
    if (tokens < 1 || missing + last < 0)
        return;
    sum->added = missing > 0 ? (size_t)missing : 0;
    out->steps_added = (int64_t)sum->added;
    out->steps_unknown = missing > 0 ? last : missing + last;
}

static int read_steps(const json_t *accepted, const json_t *drafted, int64_t tokens,
                      dsc_import_record *out, steps *sum, dsc_error *err)
{
    void *a, *d;
    sum->count = json_array_size(accepted);
    if (!json_is_array(accepted))
        return dsc_import_wrong_type(accepted, "an array", err, "per_step_accepted");
    if (!json_is_array(drafted) || json_array_size(drafted) != sum->count)
        return dsc_fail(err, DSC_EINPUT,
                        "fields 'per_step_accepted' and 'per_step_drafted' must be arrays of the "
                        "same length");
    count_missing(accepted, tokens, out, sum);
    const size_t all = sum->count + sum->added;
    int rc = dsc_import_column_start(out, COL_STEP_ACCEPTED, all, &a, err);
    if (!rc)
        rc = dsc_import_column_start(out, COL_STEP_DRAFTED, all, &d, err);
    for (size_t i = sum->count; i < all && !rc; i++)
        ((uint16_t *)a)[i] = ((uint16_t *)d)[i] = 0;
    for (size_t i = 0; i < sum->count && !rc; i++) {
        int64_t draft = 0;
        rc = dsc_import_integer(&sum->last, json_array_get(accepted, i), 0, UINT16_MAX, err,
                                "per_step_accepted[%zu]", i);
        if (!rc)
            rc = dsc_import_integer(&draft, json_array_get(drafted, i), 0, UINT16_MAX, err,
                                    "per_step_drafted[%zu]", i);
        if (!rc && sum->last > draft)
            rc = dsc_fail(err, DSC_EINPUT, "step %zu accepted %lld tokens, but drafted only %lld",
                          i, (long long)sum->last, (long long)draft);
        if (rc)
            return rc;
        ((uint16_t *)a)[i] = (uint16_t)sum->last;
        ((uint16_t *)d)[i] = (uint16_t)draft;
        sum->accepted += sum->last;
        sum->drafted += draft;
    }
    out->recorded.steps = DSC_STEPS_LOGGED;
    return rc;
}

// A total in the response must be the sum over the steps.
static int check_total(const json_t *metrics, const char *field, int64_t sum, dsc_error *err)
{
    const json_t *v = given(metrics, field);
    if (!v || (json_is_integer(v) && json_integer_value(v) == sum))
        return DSC_OK;
    if (!json_is_integer(v))
        return dsc_import_wrong_type(v, "an integer", err, "%s", field);
    return dsc_fail(err, DSC_EINPUT, "field '%s' is %lld, but the steps add up to %lld", field,
                    (long long)json_integer_value(v), (long long)sum);
}

static int check_histogram(const json_t *metrics, const json_t *accepted, dsc_error *err)
{
    const json_t *h = given(metrics, "acceptance_histogram");
    if (!h)
        return DSC_OK;
    if (!json_is_array(h))
        return dsc_import_wrong_type(h, "an array", err, "acceptance_histogram");
    size_t n = json_array_size(h), all = json_array_size(accepted), beyond = 0;
    int64_t *count; // [n] steps that accepted 0, 1, ... tokens
    int rc = dsc_new(&count, n, err);
    for (size_t i = 0; i < all && !rc; i++) {
        json_int_t m = json_integer_value(json_array_get(accepted, i));
        if ((size_t)m < n)
            count[m]++;
        else
            beyond++;
    }
    for (size_t m = 0; m < n && !rc; m++) {
        const json_t *v = json_array_get(h, m);
        if (!json_is_integer(v) || json_integer_value(v) != count[m])
            rc =
                dsc_fail(err, DSC_EINPUT,
                         "field 'acceptance_histogram[%zu]' must be %lld, the number of steps that "
                         "accepted %zu tokens",
                         m, (long long)count[m], m);
    }
    if (!rc && beyond)
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'acceptance_histogram' has %zu counts, but %zu steps accepted more "
                      "tokens",
                      n, beyond);
    free(count);
    return rc;
}

// The same by the number of drafted tokens. Each step is taken away from its count in a copy.
static int check_lengths(const json_t *metrics, const json_t *accepted, const json_t *drafted,
                         dsc_error *err)
{
    static const char name[] = "acceptance_histogram_by_draft_length";
    const json_t *given_counts = given(metrics, name);
    if (!given_counts)
        return DSC_OK;
    if (!json_is_object(given_counts))
        return dsc_import_wrong_type(given_counts, "an object", err, "%s", name);
    json_t *counts = dsc_json_copy(given_counts), *list;
    const char *length;
    int64_t rest = 0;
    int rc = counts ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(accepted) && !rc; i++) {
        const long long d = (long long)json_integer_value(json_array_get(drafted, i));
        const json_int_t a = json_integer_value(json_array_get(accepted, i));
        char key[24];
        snprintf(key, sizeof key, "%lld", d);
        json_t *count = json_array_get(json_object_get(counts, key), (size_t)a);
        if (json_integer_value(count) < 1 || json_integer_set(count, json_integer_value(count) - 1))
            rc = dsc_fail(err, DSC_EINPUT,
                          "field '%s' lacks step %zu, which accepted %lld of %s tokens", name, i,
                          (long long)a, key);
    }
    json_object_foreach(counts, length, list) for (size_t j = 0; j < json_array_size(list); j++)
        rest += json_integer_value(json_array_get(list, j)) != 0;
    if (!rc && rest)
        rc =
            dsc_fail(err, DSC_EINPUT, "field '%s' counts other steps than per_step_accepted", name);
    json_decref(counts);
    return rc;
}

// The number of output tokens, where it is sure: a text has at least a byte for each but the last.
static int64_t known_tokens(const dsc_import_record *out, int64_t tokens)
{
    if (out->output.has_tokens)
        return (int64_t)out->output.tokens.count;
    return tokens <= out->output.text.length + 1 ? tokens : -1;
}

static int read_metrics(const json_t *metrics, int64_t tokens, dsc_import_record *out,
                        dsc_error *err)
{
    const json_t *accepted = given(metrics, "per_step_accepted");
    const json_t *drafted = given(metrics, "per_step_drafted");
    steps sum = {0};
    if (!accepted && !drafted)
        return DSC_OK; // "summary": totals only, kept in the metadata
    int rc = read_steps(accepted, drafted, known_tokens(out, tokens), out, &sum, err);
    if (!rc)
        rc = check_total(metrics, "num_spec_steps", (int64_t)sum.count, err);
    if (!rc)
        rc = check_total(metrics, "num_accepted_draft_tokens", sum.accepted, err);
    if (!rc)
        rc = check_total(metrics, "num_draft_tokens", sum.drafted, err);
    if (!rc)
        rc = check_histogram(metrics, accepted, err);
    if (!rc)
        rc = check_lengths(metrics, accepted, drafted, err);
    int64_t before_last = sum.accepted - sum.last + (int64_t)sum.count - 1;
    if (!rc && sum.count && tokens >= 0 && tokens <= before_last)
        rc = dsc_fail(err, DSC_EINPUT,
                      "all steps but the last wrote %lld tokens, but the output has only %lld",
                      (long long)before_last, (long long)tokens);
    return rc ? dsc_error_prefix(err, rc, "metrics.speculative_decoding") : DSC_OK;
}

// --- texts and tokens --------------------------------------------------------------------------

// choices[0].logprobs: token_logprobs of a completion, content[].logprob of a chat.
static int read_logprobs(const json_t *logprobs, dsc_import_record *out, dsc_error *err)
{
    const json_t *list = given(logprobs, "token_logprobs"), *content = given(logprobs, "content");
    const json_t *array = list ? list : content;
    size_t n = out->output.tokens.count;
    void *data;
    if (!array)
        return DSC_OK;
    if (!json_is_array(array) || json_array_size(array) != n)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'choices[0].logprobs' must have a number for each of the %zu output "
                        "tokens",
                        n);
    int rc = dsc_import_column_start(out, COL_TARGET_LOGP, n, &data, err);
    for (size_t i = 0; i < n && !rc; i++) {
        const json_t *v = json_array_get(array, i);
        if (!list)
            v = json_object_get(v, "logprob");
        float x = (float)json_number_value(v);
        if (!json_is_number(v) || !(x <= 0) || !isfinite(x))
            rc = dsc_fail(
                err, DSC_EINPUT,
                "field 'choices[0].logprobs': element %zu must be a finite number, at most "
                "0",
                i);
        else
            ((float *)data)[i] = x;
    }
    return rc;
}

static int read_prompt(const json_t *line, const json_t *choice, int32_t vocab_size,
                       dsc_import_record *out, dsc_error *err)
{
    const json_t *ids = given(choice, "prompt_token_ids");
    if (!ids)
        ids = given(line, "prompt_token_ids");
    const json_t *prompt = given(line, "prompt"); // of the request
    if (!ids && json_is_array(prompt))
        ids = prompt;
    if (ids)
        return dsc_import_token_ids(ids, vocab_size, "prompt_token_ids", &out->prompt, err);
    if (json_is_object(prompt)) // rendered
        return dsc_import_prompt_value(prompt, vocab_size, out, err);
    if (prompt)
        return dsc_import_string(&out->prompt.text, prompt, err, "prompt");
    out->prompt.has_tokens = true; // an empty prompt
    return DSC_OK;
}

// Whether the source says that the answer calls a tool, and has no call.
static bool lacks_call(const json_t *choice, const json_t *message)
{
    static const char names[] = "tool_calls|function_call|tool_use";
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    return reason && dsc_is_listed(names, reason, strlen(reason)) &&
           !json_array_size(given(message, "tool_calls")) && !given(message, "function_call") &&
           !json_is_array(given(message, "content"));
}

// Tokens of reasoning that the source counted.
static json_int_t count_reasoning(const json_t *line)
{
    static const char path[] = "usage.completion_tokens_details.reasoning_tokens|"
                               "usage.reasoning_tokens";
    return json_integer_value(dsc_import_any(line, path, 0));
}

// What the source says that the answer has, and the message lacks.
static int check_parts(const json_t *line, const json_t *choice, const json_t *message, bool silent,
                       const dsc_import_options *options, unsigned *lost, dsc_error *err)
{
    const json_int_t reasoning = silent ? count_reasoning(line) : 0;
    const bool calls = lacks_call(choice, message);
    *lost |= (reasoning > 0 ? DSC_CHAT_THOUGHTS : 0) | (calls ? DSC_CHAT_CALLS : 0);
    if (options->lossy || (reasoning <= 0 && !calls))
        return DSC_OK;
    if (calls)
        return dsc_fail(
            err, DSC_EINPUT,
            "field 'choices[0].finish_reason' says that the answer calls a tool, but it "
            "has no call, which the trace would lose; trace import --lossy goes on "
            "without it and marks the trace");
    return dsc_fail(err, DSC_EINPUT,
                    "field 'usage' counts %lld tokens of reasoning, but the answer has none, which "
                    "the trace would lose; trace import --lossy goes on without it and marks the "
                    "trace",
                    (long long)reasoning);
}

// The text of a message: its content, or all that the model wrote.
static int read_message(const json_t *line, const json_t *choice, const json_t *message,
                        const dsc_import_options *options, dsc_import_record *out, unsigned *lost,
                        dsc_error *err)
{
    static const char where[] = "choices[0].message";
    const json_t *prompt = json_object_get(line, DSC_IMPORT_ABOUT_PROMPT);
    const bool after_result = json_is_true(json_object_get(prompt, "after_result"));
    const dsc_chat_template *t = options->chat ? options->chat->format : NULL;
    const json_t *content = json_object_get(message, "content");
    const bool plain = dsc_import_is_plain_answer(message);
    bool silent = plain && !strstr(json_string_value(content), "</think>");
    int rc = plain ? DSC_OK
                   : dsc_import_answer(message, where, false, options, &silent, NULL, NULL, err);
    rc = rc ?: check_parts(line, choice, message, silent, options, lost, err);
    if (rc)
        return rc;
    if (plain && !(t && dsc_chat_frames(t)))
        return dsc_import_string(&out->output.text, content, err, "%s.content", where);
    rc = dsc_import_answer(message, where, after_result, options, NULL, lost, &out->output.built,
                           err);
    out->output.text = (dsc_text_view){out->output.built.data, (int64_t)out->output.built.length};
    return rc;
}

static int read_output(const json_t *line, const json_t *choice, int64_t tokens,
                       const dsc_import_options *options, dsc_import_record *out, unsigned *lost,
                       dsc_error *err)
{
    const json_t *ids = given(choice, "token_ids"), *text = given(choice, "text");
    const json_t *message = given(choice, "message");
    const json_t *reason = json_object_get(choice, "finish_reason");
    int rc = DSC_OK;
    if (text || !message) {
        if (!ids || text)
            rc = dsc_import_string(&out->output.text, text, err, "choices[0].%s",
                                   message ? "message.content" : "text");
    } else if (!ids) {
        rc = read_message(line, choice, message, options, out, lost, err);
    } else if (dsc_import_is_plain_answer(message)) {
        rc = dsc_import_string(&out->output.text, json_object_get(message, "content"), err,
                               "choices[0].message.content");
    } // with ids, all that the model wrote is decoded from them
    if (rc)
        return rc;
    if (!ids && tokens < 0) {
        out->eos = json_is_string(reason) && !dsc_import_is_cut(reason) ? DSC_IMPORT_EOS_IF_KNOWN
                                                                        : DSC_IMPORT_EOS_NEVER;
        return DSC_OK;
    }
    if (!ids)
        return dsc_import_add_turn(out, 0, (size_t)out->output.text.length, tokens,
                                   !dsc_import_is_cut(reason), err);
    rc = dsc_import_token_ids(ids, options->vocab_size, "choices[0].token_ids", &out->output, err);
    if (!rc && tokens >= 0 && tokens != (int64_t)out->output.tokens.count)
        rc = dsc_fail(
            err, DSC_EINPUT,
            "field 'choices[0].token_ids' has %zu ids, but usage.completion_tokens is %lld",
            out->output.tokens.count, (long long)tokens);
    return rc ? rc : read_logprobs(given(choice, "logprobs"), out, err);
}

static const dsc_import_field around[] = {
    {"category", "category", 0, false},
    {"arrival_s", "arrival_s", 1, false},
    {0},
};
static const dsc_import_field times[] = {
    {"ttft_s", "metrics.time_to_first_token_ms|timings.prompt_ms", 1e-3, false},
    {"wall_time", "metrics.generation_time_ms|timings.predicted_ms", 1e-3, false},
    {"num_draft_tokens", "timings.draft_n", 1, false},
    {"num_accepted_draft_tokens", "timings.draft_n_accepted", 1, false},
    {0},
};

// The times of the source; `tokens`: of the output.
static int keep_times(const json_t *line, int64_t tokens, dsc_import_record *out, dsc_error *err)
{
    const json_t *metrics = json_object_get(line, "metrics");
    int rc = dsc_import_gather(out->kept, around, line, 0, err);
    // Most lines have no times, whose paths take longer to look up than the rest of the metadata.
    if (!rc &&
        (json_object_size(metrics) > (json_object_get(metrics, "speculative_decoding") != NULL) ||
         json_object_get(line, "timings")))
        rc = dsc_import_gather(out->kept, times, line, 0, err);
    const json_t *s = json_object_get(out->kept, "wall_time");
    if (rc || !s || tokens < 0)
        return rc;
    out->recorded_s = json_number_value(s);
    out->recorded_tokens = tokens;
    return dsc_import_put_at(out->kept, "new_tokens", json_integer(tokens), err);
}

static int fill_metadata(const json_t *line, const json_t *choice, int64_t tokens,
                         dsc_import_record *out, dsc_error *err)
{
    static const char *const of_line[] = {"model", NULL}, *const of_choice[] = {"finish_reason",
                                                                                NULL};
    const json_t *metrics = find_metrics(line);
    int rc = dsc_import_keep(out, line, of_line, err);
    if (!rc)
        rc = dsc_import_keep(out, choice, of_choice, err);
    if (!rc)
        rc = keep_times(line, tokens, out, err);
    if (rc || !metrics)
        return rc;
    json_t *totals = json_copy((json_t *)(uintptr_t)metrics); // shallow; does not change its source
    const bool whole = json_object_size(totals) == json_object_size(metrics);
    json_object_del(totals, "per_step_accepted"); // these are columns
    json_object_del(totals, "per_step_drafted");
    return json_object_set_new(out->kept, "speculative_decoding", totals) || !whole
               ? dsc_fail(err, DSC_ENOMEM, "out of memory")
               : DSC_OK;
}

static int read_tokens_used(const json_t *line, int64_t *out, dsc_error *err)
{
    const json_t *v = given(json_object_get(line, "usage"), "completion_tokens");
    *out = -1;
    if (!v)
        return DSC_OK;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'usage.completion_tokens' must be an integer from 0 to %d",
                        INT32_MAX);
    *out = json_integer_value(v);
    return DSC_OK;
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    const json_t *choices = json_object_get(line, "choices"), *choice = find_choice(line);
    const json_t *id = given(line, "id"), *metrics = find_metrics(line);
    const json_t *prompt = json_object_get(line, DSC_IMPORT_ABOUT_PROMPT);
    unsigned lost = (unsigned)json_integer_value(json_object_get(prompt, "lost"));
    int64_t tokens;
    if (!json_is_array(choices))
        return dsc_import_wrong_type(choices, "an array", err, "choices");
    if (json_array_size(choices) != 1)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'choices' has %zu elements; it must have at least one",
                        json_array_size(choices));
    int rc = read_tokens_used(line, &tokens, err);
    if (!rc && id)
        rc = dsc_import_id(out, id, err);
    if (!rc)
        rc = read_prompt(line, choice, options->vocab_size, out, err);
    if (!rc)
        rc = read_output(line, choice, tokens, options, out, &lost, err);
    if (!rc && metrics)
        rc = read_metrics(metrics, tokens, out, err);
    rc = rc ?: fill_metadata(line, choice, tokens, out, err);
    return rc
               ?: dsc_import_mark(out->kept, lost,
                                  json_is_true(json_object_get(prompt, "tools_left_out")), err);
}

const dsc_import_driver dsc_import_vllm = {
    .name = "vllm",
    .summary = "responses of vLLM, OpenAI's and Anthropic's APIs, with their requests or metrics",
    .needs = "choices",
    .documents = true,
    .chats = true,
    .probe = probe,
    .expand = dsc_import_response_expand,
    .read = read_line,
};

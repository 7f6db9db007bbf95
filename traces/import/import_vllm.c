// SPDX-License-Identifier: Apache-2.0
// Reads vLLM's responses of /v1/completions and /v1/chat/completions, one per line, or JSON
// documents:
//   "choices": [{"text" or "message.content", "token_ids", "prompt_token_ids", "logprobs",
//                "finish_reason"}]                  one choice; token ids with return_token_ids
//   "prompt_token_ids"                              in a chat
//   "metrics": {"speculative_decoding": {...}}      --per-request-spec-decode-metrics, with
//     "per_step_accepted", "per_step_drafted"       "detailed": the steps, bonus EXCLUDED
//     "num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens", "acceptance_histogram"
// These counts exclude steps without a draft and the prefill, which generates the first token, and
// "accepted" includes tokens of the last step after the end of the output. So the steps need not
// add up to the output (they are recorded as logged), but they may not write more than it. A
// response does not contain its prompt: without prompt_token_ids the prompt is empty. Source:
// vllm/docs/features/speculative_decoding/acceptance_metrics.md.
#include "traces/import/import_record.h"
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
    const json_t *c = find_choice(line);
    bool answer = json_object_get(c, "text") || json_object_get(c, "message");
    return 2 * (find_metrics(line) != NULL) + 2 * answer;
}

// --- steps -------------------------------------------------------------------------------------

typedef struct steps {
    size_t count;
    int64_t accepted, drafted, last; // tokens of all steps; tokens accepted in the last step
} steps;

static int read_steps(const json_t *accepted, const json_t *drafted, dsc_import_record *out,
                      steps *sum, dsc_error *err)
{
    void *a, *d;
    sum->count = json_array_size(accepted);
    if (!json_is_array(accepted))
        return dsc_import_wrong_type(accepted, "an array", err, "per_step_accepted");
    if (!json_is_array(drafted) || json_array_size(drafted) != sum->count)
        return dsc_fail(err, DSC_EINPUT,
                        "fields 'per_step_accepted' and 'per_step_drafted' must be arrays of the "
                        "same length");
    int rc = dsc_import_column_start(out, COL_STEP_ACCEPTED, sum->count, &a, err);
    if (!rc)
        rc = dsc_import_column_start(out, COL_STEP_DRAFTED, sum->count, &d, err);
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
        if (rc) // the numbers may be any
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

static int read_metrics(const json_t *metrics, int64_t tokens, dsc_import_record *out,
                        dsc_error *err)
{
    const json_t *accepted = given(metrics, "per_step_accepted");
    const json_t *drafted = given(metrics, "per_step_drafted");
    steps sum = {0};
    if (!accepted && !drafted)
        return DSC_OK; // "summary": totals only, kept in the metadata
    int rc = read_steps(accepted, drafted, out, &sum, err);
    if (!rc)
        rc = check_total(metrics, "num_spec_steps", (int64_t)sum.count, err);
    if (!rc)
        rc = check_total(metrics, "num_accepted_draft_tokens", sum.accepted, err);
    if (!rc)
        rc = check_total(metrics, "num_draft_tokens", sum.drafted, err);
    if (!rc)
        rc = check_histogram(metrics, accepted, err);
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
    if (ids)
        return dsc_import_token_ids(ids, vocab_size, "prompt_token_ids", &out->prompt, err);
    out->prompt.has_tokens = true; // an empty prompt
    return DSC_OK;
}

static int read_output(const json_t *choice, int64_t tokens, int32_t vocab_size,
                       dsc_import_record *out, dsc_error *err)
{
    const json_t *ids = given(choice, "token_ids"), *text = given(choice, "text");
    const json_t *message = given(choice, "message");
    int rc = DSC_OK;
    if (!text && message)
        text = given(message, "content");
    if (!ids || text)
        rc = dsc_import_string(&out->output.text, text, err, "choices[0].%s",
                               message ? "message.content" : "text");
    if (rc)
        return rc;
    if (!ids && tokens < 0)
        return DSC_OK;
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    if (!ids)
        return dsc_import_add_turn(out, 0, (size_t)out->output.text.length, tokens,
                                   !reason || strcmp(reason, "length") != 0, err);
    rc = dsc_import_token_ids(ids, vocab_size, "choices[0].token_ids", &out->output, err);
    if (!rc && tokens >= 0 && tokens != (int64_t)out->output.tokens.count)
        rc = dsc_fail(
            err, DSC_EINPUT,
            "field 'choices[0].token_ids' has %zu ids, but usage.completion_tokens is %lld",
            out->output.tokens.count, (long long)tokens);
    return rc ? rc : read_logprobs(given(choice, "logprobs"), out, err);
}

static int fill_metadata(const json_t *line, const json_t *choice, dsc_import_record *out,
                         dsc_error *err)
{
    static const char *const of_line[] = {"model", NULL}, *const of_choice[] = {"finish_reason",
                                                                                NULL};
    const json_t *metrics = find_metrics(line);
    int rc = dsc_import_keep(out, line, of_line, err);
    if (!rc)
        rc = dsc_import_keep(out, choice, of_choice, err);
    if (rc || !metrics)
        return rc;
    json_t *totals = json_copy((json_t *)(uintptr_t)metrics); // shallow; does not change its source
    json_object_del(totals, "per_step_accepted");             // these are columns
    json_object_del(totals, "per_step_drafted");
    return json_object_set_new(out->kept, "speculative_decoding", totals)
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
    int64_t tokens;
    if (!json_is_array(choices))
        return dsc_import_wrong_type(choices, "an array", err, "choices");
    if (json_array_size(choices) != 1)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'choices' has %zu elements; it must have one. Record with n = 1",
                        json_array_size(choices));
    int rc = read_tokens_used(line, &tokens, err);
    if (!rc && id)
        rc = dsc_import_id(out, id, err);
    if (!rc)
        rc = read_prompt(line, choice, options->vocab_size, out, err);
    if (!rc)
        rc = read_output(choice, tokens, options->vocab_size, out, err);
    if (!rc && metrics)
        rc = read_metrics(metrics, tokens, out, err);
    return rc ? rc : fill_metadata(line, choice, out, err);
}

const dsc_import_driver dsc_import_vllm = {
    .name = "vllm",
    .summary = "vLLM's responses, with metrics.speculative_decoding",
    .documents = true,
    .probe = probe,
    .read = read_line,
};

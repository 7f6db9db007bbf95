// SPDX-License-Identifier: Apache-2.0
// Checks the contents of a request before it is written, and again when a trace is verified, so
// that every trace that was written verifies.
#include "base/json_file.h"
#include "base/json_quick.h"
#include "base/utf8.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_values.h"

#include <inttypes.h>
#include <string.h>

static int check_text(dsc_text_view text, int64_t request, const char *what, dsc_error *err)
{
    if (text.length < 0 || (text.length && !text.bytes))
        return dsc_fail(err, DSC_EUSAGE,
                        "request %" PRId64 ": %s has a negative length or no bytes", request, what);
    int64_t i = dsc_bad_utf8(text.bytes, text.length);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": %s is not valid UTF-8 at byte %" PRId64, request,
                        what, i);
    return DSC_OK;
}

static int check_metadata(dsc_text_view metadata, int64_t request, dsc_error *err)
{
    int rc = check_text(metadata, request, "the metadata", err);
    if (rc || !metadata.length)
        return rc;
    json_t *value = NULL;
    if (!memchr(metadata.bytes, '\\', (size_t)metadata.length)) // the quick parser accepts \u0000
        value = dsc_json_quick(metadata.bytes, (size_t)metadata.length, SIZE_MAX);
    if (!value)
        rc = dsc_json_parse(&value, metadata.bytes, (size_t)metadata.length, 0,
                            "the metadata is not valid JSON", err);
    if (rc)
        return rc == DSC_EINPUT ? dsc_error_prefix(err, rc, "request %" PRId64, request) : rc;
    if (!json_is_object(value))
        rc = dsc_fail(err, DSC_EINPUT, "request %" PRId64 ": the metadata must be a JSON object",
                      request);
    json_decref(value);
    return rc;
}

static int check_tokens(const dsc_trace_info *info, dsc_token_view tokens, int64_t request,
                        const char *what, dsc_error *err)
{
    if (tokens.count < 0 || (tokens.count && !tokens.id))
        return dsc_fail(err, DSC_EUSAGE,
                        "request %" PRId64 ": %s has a negative length or no token ids", request,
                        what);
    int64_t i = dsc_bad_token(tokens.id, tokens.count, info->vocab_size);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": %s: token id %" PRId32 " at position %" PRId64
                        " is outside the vocabulary of %" PRId32,
                        request, what, tokens.id[i], i, info->vocab_size);
    return DSC_OK;
}

static int check_references(const dsc_trace_info *info, const dsc_request_input *q, int64_t request,
                            dsc_error *err)
{
    int rc = DSC_OK;
    if (q->references < 0 || (q->references && (!q->reference || !q->kind)) ||
        (q->references && info->has_text && !q->reference_text))
        return dsc_fail(err, DSC_EUSAGE,
                        "request %" PRId64 ": the arrays of its %" PRId64 " references are missing",
                        request, q->references);
    for (int64_t r = 0; r < q->references && !rc; r++) {
        rc = check_tokens(info, q->reference[r], request, "a reference", err);
        if (!rc && info->has_text)
            rc = check_text(q->reference_text[r], request, "a reference's text", err);
        if (!rc && q->kind[r] != DSC_REFERENCE_DOCUMENT && q->kind[r] != DSC_REFERENCE_TURN)
            rc = dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": unknown kind of reference %d",
                          request, (int)q->kind[r]);
    }
    return rc;
}

// Checks the columns that have an element for each output token or step.
static int check_columns(const dsc_trace_info *info, const dsc_input_columns *columns,
                         const dsc_request_input *q, int64_t request, dsc_error *err)
{
    char where[48], name[DSC_COLUMN_NAME_BYTES];
    for (int i = 0; i < columns->count; i++) {
        const int c = columns->column[i];
        const dsc_column_type *type = &dsc_columns[c];
        int64_t n = type->counted_by == COL_STEP_OFFSET ? q->steps.count : q->output.count;
        const void *data = dsc_column_get(q, c, type->input);
        if (n && !data)
            return dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": '%s' is missing", request,
                            dsc_column_name(info, c, name));
        int64_t bad = dsc_bad_value(info, c, type->dtype, data, n * dsc_column_width(info, c));
        if (bad >= 0) {
            snprintf(where, sizeof where, "request %" PRId64 ": ", request);
            return dsc_fail_value(info, c, type->dtype, data, bad, where, err);
        }
    }
    return DSC_OK;
}

// Aligned steps must add up to the output's tokens as defined by dsc_steps_kind.
static int check_steps(const dsc_trace_info *info, const dsc_request_input *q, int64_t request,
                       dsc_error *err)
{
    const dsc_steps *s = &q->steps;
    int64_t tokens = q->output.count, all = 0, before_last = 0;
    int64_t i = info->has_step_drafted ? dsc_bad_step(s->accepted, s->drafted, s->count) : -1;
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": step %" PRId64
                        " accepted %d tokens but drafted only %d",
                        request, i, s->accepted[i], s->drafted[i]);
    for (i = 0; i < s->count; i++) {
        before_last = all;
        all += (int64_t)s->accepted[i] + 1;
    }
    if (info->steps != DSC_STEPS_ALIGNED ||
        ((s->count == 0 || before_last < tokens) && tokens <= 1 + all))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "request %" PRId64 ": the output has %" PRId64
                    " tokens, but its steps wrote %" PRId64 " (%" PRId64
                    " before the last step); aligned steps must add up to the output",
                    request, tokens, all, before_last);
}

int dsc_check_request(const dsc_trace_info *info, const dsc_input_columns *columns,
                      const dsc_request_input *q, int64_t request, dsc_token_marks *marks,
                      dsc_error *err)
{
    int rc = check_text(q->id, request, "the id", err);
    if (!rc)
        rc = check_tokens(info, q->prompt, request, "the prompt", err);
    if (!rc)
        rc = check_tokens(info, q->output, request, "the output", err);
    if (!rc)
        rc = check_references(info, q, request, err);
    if (!rc && info->has_text)
        rc = check_text(q->prompt_text, request, "the prompt's text", err);
    if (!rc && info->has_text)
        rc = check_text(q->output_text, request, "the output's text", err);
    if (!rc && info->steps && q->steps.count < 0)
        rc = dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": the number of steps is negative",
                      request);
    if (!rc)
        rc = check_columns(info, columns, q, request, err);
    if (!rc && info->steps)
        rc = check_steps(info, q, request, err);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        rc = dsc_check_rows(info, side, &q->rows[side], q->output.count, request, marks, err);
    if (!rc)
        rc = check_metadata(q->metadata, request, err);
    return rc;
}

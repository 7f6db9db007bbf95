// SPDX-License-Identifier: Apache-2.0
// What a request must satisfy, asked before it is written and again by the verifier: a trace that
// was written always verifies.
#include "traces/trace_internal.h"

#include <inttypes.h>

int dsc_check_text(dsc_text_view text, int64_t request, const char *what, dsc_error *err)
{
    if (text.length < 0 || (text.length && !text.bytes))
        return dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": %s: impossible length", request,
                        what);
    int64_t i = dsc_bad_utf8(text.bytes, text.length);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": %s is not valid UTF-8 at byte %" PRId64, request,
                        what, i);
    return DSC_OK;
}

int dsc_check_metadata(dsc_text_view metadata, int64_t request, dsc_error *err)
{
    int rc = dsc_check_text(metadata, request, "the metadata", err);
    if (rc || !metadata.length)
        return rc;
    json_error_t e;
    json_t *value = json_loadb(metadata.bytes, (size_t)metadata.length, JSON_REJECT_DUPLICATES, &e);
    if (!value)
        return dsc_fail(err, DSC_EINPUT, "request %" PRId64 ": the metadata is not JSON: %s",
                        request, e.text);
    if (!json_is_object(value))
        rc = dsc_fail(err, DSC_EINPUT, "request %" PRId64 ": the metadata is not a JSON object",
                      request);
    json_decref(value);
    return rc;
}

static int check_tokens(const dsc_trace_info *info, dsc_token_view tokens, const char *what,
                        dsc_error *err)
{
    if (tokens.count < 0 || (tokens.count && !tokens.id))
        return dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": %s: impossible length",
                        info->requests, what);
    int64_t i = dsc_bad_token(tokens.id, tokens.count, info->vocab_size);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": %s: token id %" PRId32 " at position %" PRId64
                        " is outside the vocabulary of %" PRId32,
                        info->requests, what, tokens.id[i], i, info->vocab_size);
    return DSC_OK;
}

static int check_references(const dsc_trace_info *info, const dsc_request_input *q, dsc_error *err)
{
    int rc = DSC_OK;
    if (q->references < 0 || (q->references && (!q->reference || !q->kind)) ||
        (q->references && info->has_text && !q->reference_text))
        return dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": references are missing",
                        info->requests);
    for (int64_t r = 0; r < q->references && !rc; r++) {
        rc = check_tokens(info, q->reference[r], "a reference", err);
        if (!rc && info->has_text)
            rc = dsc_check_text(q->reference_text[r], info->requests, "a reference's text", err);
        if (!rc && q->kind[r] != DSC_REFERENCE_DOCUMENT && q->kind[r] != DSC_REFERENCE_TURN)
            rc = dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": unknown kind of reference %d",
                          info->requests, (int)q->kind[r]);
    }
    return rc;
}

static int check_logp(const dsc_trace_info *info, const dsc_request_input *q, dsc_error *err)
{
    if (q->output.count && !q->target_logp)
        return dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": no log-probabilities",
                        info->requests);
    int64_t i = dsc_bad_logp(q->target_logp, q->output.count);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "request %" PRId64 ": %g at output position %" PRId64
                        " is not a log-probability (finite, <= 0)",
                        info->requests, (double)q->target_logp[i], i);
    return DSC_OK;
}

int dsc_check_request(const dsc_trace_info *info, const dsc_request_input *q,
                      dsc_token_marks *marks, dsc_error *err)
{
    int64_t request = info->requests;
    int rc = dsc_check_text(q->id, request, "the id", err);
    if (!rc)
        rc = check_tokens(info, q->prompt, "the prompt", err);
    if (!rc)
        rc = check_tokens(info, q->output, "the output", err);
    if (!rc)
        rc = check_references(info, q, err);
    if (!rc && info->has_text)
        rc = dsc_check_text(q->prompt_text, request, "the prompt's text", err);
    if (!rc && info->has_text)
        rc = dsc_check_text(q->output_text, request, "the output's text", err);
    if (!rc && info->has_target_logp)
        rc = check_logp(info, q, err);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++) {
        rc = dsc_check_rows(info, side, &q->rows[side], q->output.count, request, marks, err);
        if (!rc && info->rows[side] == DSC_ROWS_DENSE && q->output.count && !q->rows[side].logp)
            rc = dsc_fail(err, DSC_EUSAGE, "request %" PRId64 ": dense rows are written from F32",
                          request);
    }
    if (!rc)
        rc = dsc_check_metadata(q->metadata, request, err);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Verifies what opening a shard does not check: hashes, UTF-8, sums of distributions, steps against
// outputs, metadata, ids, maxima.
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_ids.h"
#include "traces/trace/trace_manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int check_request(const dsc_trace_info *info, const dsc_request *q, dsc_id_set *ids,
                         dsc_token_marks *marks, dsc_error *err)
{
    int rc = dsc_check_text(q->id, q->index, "the id", err);
    if (!rc)
        rc = dsc_id_set_add(ids, q->id, err);
    if (!rc)
        rc = dsc_check_text(q->prompt_text, q->index, "the prompt's text", err);
    if (!rc)
        rc = dsc_check_text(q->output_text, q->index, "the output's text", err);
    for (int64_t r = 0; q->reference_text && r < q->references && !rc; r++) {
        const int64_t *o = q->reference_text_offset + r;
        rc = dsc_check_text((dsc_text_view){q->reference_text + o[0], o[1] - o[0]}, q->index,
                            "a reference's text", err);
    }
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        rc = dsc_check_rows(info, side, &q->rows[side], q->output.count, q->index, marks, err);
    if (!rc)
        rc = dsc_check_steps(info, &q->steps, q->output.count, q->index, err);
    if (!rc)
        rc = dsc_check_metadata(q->metadata, q->index, err);
    return rc;
}

// Collects the maxima in *seen.
static int verify_shard(const dsc_trace *t, size_t index, dsc_id_set *ids, dsc_token_marks *marks,
                        dsc_trace_info *seen, dsc_error *err)
{
    dsc_shard *s;
    char hex[DSC_SHA256_HEX];
    int rc = dsc_shard_open(&s, t, (int64_t)index, err);
    if (rc)
        return rc;
    rc = dsc_sha256_file(s->path, hex, err);
    if (!rc && strcmp(hex, t->shard[index].sha256) != 0)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: its SHA-256 is %s, but the manifest has %s: the file was changed",
                      s->path, hex, t->shard[index].sha256);
    for (int64_t i = 0; i < dsc_shard_requests(s) && !rc; i++) {
        dsc_request q;
        dsc_shard_request(s, i, &q);
        rc = check_request(&t->info, &q, ids, marks, err);
        if (rc)
            dsc_error_prefix(err, rc, "%s", s->path);
        if (q.prompt.count > seen->max_prompt_tokens)
            seen->max_prompt_tokens = q.prompt.count;
        if (q.output.count > seen->max_output_tokens)
            seen->max_output_tokens = q.output.count;
    }
    dsc_shard_close(s);
    return rc;
}

// dsc_trace_open checks the sums of the other totals, and dsc_shard_open their parts.
static int check_maximum(const dsc_trace *t, const char *field, int64_t stored, int64_t seen,
                         dsc_error *err)
{
    if (stored == seen)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s/manifest.json: field \"totals.%s\": %" PRId64
                    ", but the maximum of the requests is %" PRId64,
                    t->path, field, stored, seen);
}

int dsc_trace_verify(const dsc_trace *t, dsc_error *err)
{
    dsc_id_set ids = {0};
    dsc_token_marks marks = {0};
    dsc_trace_info seen = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < t->shards && !rc; i++)
        rc = verify_shard(t, i, &ids, &marks, &seen, err);
    if (!rc)
        rc = check_maximum(t, "max_prompt_tokens", t->info.max_prompt_tokens,
                           seen.max_prompt_tokens, err);
    if (!rc)
        rc = check_maximum(t, "max_output_tokens", t->info.max_output_tokens,
                           seen.max_output_tokens, err);
    dsc_id_set_fini(&ids);
    free(marks.word);
    return rc;
}

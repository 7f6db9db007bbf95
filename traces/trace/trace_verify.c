// SPDX-License-Identifier: Apache-2.0
// Verifies what opening a shard does not check: hashes, UTF-8, sums of distributions, steps against
// outputs, metadata, ids, maxima.
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_copy.h"
#include "traces/trace/trace_ids.h"
#include "traces/trace/trace_manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// What earlier requests leave for the checks of the next one.
typedef struct verifier {
    dsc_id_set ids;
    dsc_token_marks marks;
    dsc_input_columns columns;
    dsc_request_copy copy;
    int64_t max_prompt, max_output;
} verifier;

static int check_request(verifier *v, const dsc_trace_info *info, const dsc_request *q,
                         dsc_error *err)
{
    dsc_request_input in;
    int rc = dsc_request_copy_view(&v->copy, q, &in, err);
    if (!rc)
        rc = dsc_check_request(info, &v->columns, &in, q->index, &v->marks, err);
    if (q->prompt.count > v->max_prompt)
        v->max_prompt = q->prompt.count;
    if (q->output.count > v->max_output)
        v->max_output = q->output.count;
    return rc ? rc : dsc_id_set_add(&v->ids, q->id, err);
}

static int verify_shard(verifier *v, const dsc_trace *t, size_t index, dsc_error *err)
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
        rc = check_request(v, &t->info, &q, err);
        if (rc)
            dsc_error_prefix(err, rc, "%s", s->path);
    }
    if (!rc)
        rc = dsc_shard_check(s, err);
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
    verifier v = {0};
    int rc = DSC_OK;
    if (!t)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_verify: 't' must not be NULL");
    v.columns = dsc_input_columns_of(&t->info);
    const dsc_trace_info *info = &t->info;
    for (size_t i = 0; i < t->shards && !rc; i++)
        rc = verify_shard(&v, t, i, err);
    if (!rc)
        rc = check_maximum(t, "max_prompt_tokens", info->max_prompt_tokens, v.max_prompt, err);
    if (!rc)
        rc = check_maximum(t, "max_output_tokens", info->max_output_tokens, v.max_output, err);
    dsc_id_set_fini(&v.ids);
    dsc_request_copy_fini(&v.copy);
    free(v.marks.word);
    return rc;
}

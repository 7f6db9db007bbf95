// SPDX-License-Identifier: Apache-2.0
// Reads the requests of a trace as prompts with known outputs.
#include "live/program/prompts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int check_tokens(const dsc_trace *t, const dsc_request *q, const char *what,
                        dsc_token_view tokens, int64_t vocab, dsc_error *err)
{
    for (int64_t i = 0; i < tokens.count; i++)
        if (tokens.id[i] >= vocab)
            return dsc_fail(
                err, DSC_EINPUT,
                "%.300s: request %" PRId64 ": token %" PRId32 " of the %s is not in "
                "the target's vocabulary of %" PRId64 " (the trace's is %" PRId32 ", of %.100s)",
                dsc_trace_path(t), q->index, tokens.id[i], what, vocab,
                dsc_trace_get_info(t)->vocab_size, dsc_trace_get_info(t)->tokenizer_name);
    return DSC_OK;
}

static void copy(int32_t **to, dsc_token_view tokens)
{
    if (tokens.count)
        memcpy(*to, tokens.id, (size_t)tokens.count * sizeof **to);
    *to += tokens.count;
}

static int fill(live_prompt *p, const dsc_trace *t, const dsc_request *q, int64_t vocab,
                dsc_error *err)
{
    int64_t references =
        q->references ? q->reference_offset[q->references] - *q->reference_offset : 0;
    int rc = check_tokens(t, q, "prompt", q->prompt, vocab, err);
    if (!rc)
        rc = check_tokens(t, q, "output", q->output, vocab, err);
    if (!rc)
        rc = live_prompt_allocate(p, (size_t)(q->prompt.count + references + q->output.count),
                                  (size_t)q->references, err);
    if (!rc)
        rc = dsc_strndup(&p->id, q->id.bytes, (size_t)q->id.length, err);
    if (rc)
        return rc;
    int32_t *next = p->token;
    copy(&next, q->prompt);
    for (int64_t r = 0; r < q->references; r++) {
        const dsc_token_view reference = dsc_request_reference(q, r);
        copy(&next, reference);
        p->offset[r + 1] = p->offset[r] + reference.count;
        p->kind[r] = q->reference_kind[r];
    }
    copy(&next, q->output);
    p->prompt = q->prompt.count;
    p->references = q->references;
    p->output = q->output.count;
    return rc;
}

static int add(live_prompts *p, const dsc_trace *t, const dsc_request *q, int64_t vocab,
               bool columns, dsc_error *err)
{
    int rc = dsc_resize(&p->item, &p->capacity, p->count + 1, err);
    if (rc)
        return rc;
    live_prompt *next = &p->item[p->count++]; // freed with the others on any failure
    *next = (live_prompt){0};
    rc = fill(next, t, q, vocab, err);
    if (!rc && next->prompt > p->longest)
        p->longest = next->prompt;
    if (columns)
        next->recorded = *q;
    return rc;
}

static int keep_open(live_prompts *p, dsc_shard *shard, dsc_error *err)
{
    int rc = dsc_resize(&p->shard, &p->shard_capacity, p->shards + 1, err);
    if (rc)
        dsc_shard_close(shard);
    else
        p->shard[p->shards++] = shard;
    return rc;
}

int live_prompts_replay(live_prompts *p, const dsc_trace *trace, int64_t skip, size_t most,
                        int64_t vocab, bool columns, dsc_error *err)
{
    int rc = DSC_OK;
    p->source = dsc_trace_path(trace);
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !rc && (!most || p->count < most); s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, trace, s, err);
        if (!rc && columns)
            rc = keep_open(p, shard, err);
        if (rc)
            return rc;
        for (int64_t i = 0; i < dsc_shard_requests(shard) && !rc; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            if (!q.output.count || (most && p->count == most))
                continue;
            if (p->skipped < skip)
                p->skipped++;
            else
                rc = add(p, trace, &q, vocab, columns, err);
        }
        if (!columns)
            dsc_shard_close(shard);
    }
    return rc || !p->skipped || p->count
               ? rc
               : dsc_fail(err, DSC_EUSAGE, "%.300s: %" PRId64 " outputs, all of them skipped",
                          p->source, p->skipped);
}

// SPDX-License-Identifier: Apache-2.0
// Converts a request as read (references by offsets) to the input of a writer (arrays of views).
#include "traces/trace/trace_copy.h"

#include <string.h>

int dsc_request_copy_view(dsc_request_copy *c, const dsc_request *q, dsc_request_input *out,
                          dsc_error *err)
{
    const size_t n = (size_t)q->references;
    const int64_t *text = q->reference_text_offset;
    dsc_token_view *reference;
    dsc_text_view *reference_text;
    dsc_reference_kind *kind;
    dsc_arena_reset(&c->arena);
    int rc = dsc_arena_new(&c->arena, &reference, n, err);
    if (!rc)
        rc = dsc_arena_new(&c->arena, &reference_text, n, err);
    if (!rc)
        rc = dsc_arena_new(&c->arena, &kind, n, err);
    if (rc)
        return rc;
    for (int64_t r = 0; r < q->references; r++) {
        reference[r] = dsc_request_reference(q, r);
        kind[r] = (dsc_reference_kind)q->reference_kind[r];
        reference_text[r] =
            text ? (dsc_text_view){q->reference_text + text[r], text[r + 1] - text[r]}
                 : (dsc_text_view){0};
    }
    *out = (dsc_request_input){
        .id = q->id,
        .prompt = q->prompt,
        .output = q->output,
        .prompt_text = q->prompt_text,
        .output_text = q->output_text,
        .references = q->references,
        .reference = reference,
        .reference_text = reference_text,
        .kind = kind,
        .target_logp = q->target_logp,
        .metadata = q->metadata,
        .draft_logp = q->draft_logp,
        .steps = q->steps,
        .replayed = q->replayed,
        .sufficient = q->sufficient,
        .rollouts = q->rollouts,
        .candidates = q->candidates,
        .marginals = q->marginals,
    };
    memcpy(out->rows, q->rows, sizeof out->rows);
    memcpy(out->accept, q->accept, sizeof out->accept);
    return DSC_OK;
}

void dsc_request_copy_fini(dsc_request_copy *c)
{
    dsc_arena_fini(&c->arena);
}

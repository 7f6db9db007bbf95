// SPDX-License-Identifier: Apache-2.0
// Converts a request as read (references by offsets) to the input of a writer (arrays of views).
#include "traces/trace/trace_copy.h"

#include <stdlib.h>
#include <string.h>

static int reserve(dsc_request_copy *c, size_t references, dsc_error *err)
{
    int rc = dsc_resize(&c->reference, &c->reference_capacity, references, err);
    if (!rc)
        rc = dsc_resize(&c->reference_text, &c->text_capacity, references, err);
    if (!rc)
        rc = dsc_resize(&c->kind, &c->kind_capacity, references, err);
    return rc;
}

int dsc_request_copy_view(dsc_request_copy *c, const dsc_request *q, dsc_request_input *out,
                          dsc_error *err)
{
    int rc = reserve(c, (size_t)q->references, err);
    if (rc)
        return rc;
    for (int64_t r = 0; r < q->references; r++) {
        const int64_t *text = q->reference_text_offset;
        c->reference[r] = dsc_request_reference(q, r);
        c->kind[r] = (dsc_reference_kind)q->reference_kind[r];
        c->reference_text[r] =
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
        .reference = c->reference,
        .reference_text = c->reference_text,
        .kind = c->kind,
        .target_logp = q->target_logp,
        .metadata = q->metadata,
        .draft_logp = q->draft_logp,
        .steps = q->steps,
        .replayed = q->replayed,
        .sufficient = q->sufficient,
        .rollouts = q->rollouts,
    };
    memcpy(out->rows, q->rows, sizeof out->rows);
    memcpy(out->accept, q->accept, sizeof out->accept);
    return DSC_OK;
}

void dsc_request_copy_fini(dsc_request_copy *c)
{
    free(c->reference);
    free(c->reference_text);
    free(c->kind);
    *c = (dsc_request_copy){0};
}

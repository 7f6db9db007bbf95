// SPDX-License-Identifier: Apache-2.0
// The nodes of a draft: growing arrays of tokens and parents.
#include "sim/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void dsc_draft_clear(dsc_draft *d)
{
    d->count = d->proposed = d->unscored = 0;
    d->kind = DSC_DRAFT_TOPK;
    d->started = d->untested = d->from_middle = false;
    d->draft_calls = d->draft_call_tokens = 0;
}

void dsc_draft_fini(dsc_draft *d)
{
    free(d->token);
    free(d->parent);
    *d = (dsc_draft){0};
}

int64_t dsc_draft_length(const dsc_draft *d)
{
    int64_t longest = 0, level = 0;
    for (size_t i = 0; i < d->proposed; i++) {
        if (i && d->parent[i] == (int32_t)i - 1) { // as in a sequence
            level++;
        } else {
            level = 1;
            for (int32_t above = d->parent[i]; above >= 0; above = d->parent[above])
                level++;
        }
        longest = level > longest ? level : longest;
    }
    return longest;
}

int dsc_draft_append_scored(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                            dsc_error *err)
{
    int rc = dsc_resize(&d->token, &d->token_capacity, d->count + n, err);
    if (!rc)
        rc = dsc_resize(&d->parent, &d->parent_capacity, d->count + n, err);
    if (rc)
        return rc;
    if (n)
        memcpy(d->token + d->count, token, n * sizeof *token);
    for (size_t j = 0; j < n; j++)
        d->parent[d->count + j] = j ? (int32_t)(d->count + j - 1) : parent;
    d->count += n;
    return DSC_OK;
}

int dsc_draft_append_chain(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                           dsc_error *err)
{
    assert(d->proposed == d->count);
    int rc = dsc_draft_append_scored(d, parent, token, n, err);
    d->proposed = d->count;
    return rc;
}

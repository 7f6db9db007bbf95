// SPDX-License-Identifier: Apache-2.0
// The nodes of a draft: growing arrays of tokens and parents.
#include "sim/draft.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void dsc_draft_clear(dsc_draft *d)
{
    if (!d)
        return;
    d->count = d->proposed = d->unscored = 0;
    d->kind = DSC_DRAFT_TOPK;
    d->started = d->untested = d->from_middle = false;
    d->draft_calls = d->draft_call_tokens = 0;
}

void dsc_draft_fini(dsc_draft *d)
{
    if (!d)
        return;
    free(d->token);
    free(d->parent);
    *d = (dsc_draft){0};
}

int64_t dsc_draft_length(const dsc_draft *d)
{
    int64_t longest = 0, level = 0;
    for (size_t i = 0; d && i < d->proposed; i++) {
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

static int check_append(const dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                        dsc_error *err)
{
    if (!d || (n && !token))
        return dsc_fail(err, DSC_EUSAGE, "the draft d and its new tokens must not be NULL");
    if (parent < -1 || parent >= (int64_t)d->count)
        return dsc_fail(err, DSC_EUSAGE,
                        "parent is %" PRId32 "; it must be -1 or one of the %zu nodes", parent,
                        d->count);
    if (n > INT32_MAX - d->count)
        return dsc_fail(err, DSC_EUSAGE, "%zu more nodes than %zu: a draft has at most %" PRId32, n,
                        d->count, INT32_MAX);
    return DSC_OK;
}

int dsc_draft_append_scored(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                            dsc_error *err)
{
    int rc = check_append(d, parent, token, n, err);
    if (!rc)
        rc = dsc_resize(&d->token, &d->token_capacity, d->count + n, err);
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
    if (d && d->proposed != d->count)
        return dsc_fail(err, DSC_EUSAGE,
                        "the draft ends with %zu nodes that are only scored; proposed nodes come "
                        "before them",
                        d->count - d->proposed);
    int rc = dsc_draft_append_scored(d, parent, token, n, err);
    if (!rc)
        d->proposed = d->count;
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// A growable list of token ids.
#include "traces/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int dsc_tokens_append(dsc_tokens *t, const int32_t *id, size_t count, dsc_error *err)
{
    if (count > t->capacity - t->count) {
        size_t need;
        if (__builtin_add_overflow(t->count, count, &need))
            return dsc_fail(err, DSC_ENOMEM, "too many tokens");
        int rc = dsc_resize(&t->id, &t->capacity, need, err);
        if (rc)
            return rc;
    }
    if (count)
        memcpy(t->id + t->count, id, count * sizeof *t->id);
    t->count += count;
    return DSC_OK;
}

void dsc_tokens_fini(dsc_tokens *t)
{
    free(t->id);
    *t = (dsc_tokens){0};
}

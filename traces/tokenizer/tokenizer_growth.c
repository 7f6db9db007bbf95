// SPDX-License-Identifier: Apache-2.0
// Bounds how much the steps of a tokenizer may lengthen a text, so that a small file cannot make it
// grow without end.
#include "traces/tokenizer/tokenizer_internal.h"

tok_growth dsc_tok_growth(const char *file, size_t text_length)
{
    size_t limit;
    if (__builtin_mul_overflow(text_length, TOK_GROWTH, &limit) ||
        __builtin_add_overflow(limit, TOK_GROWTH_FREE, &limit))
        limit = SIZE_MAX;
    return (tok_growth){.file = file, .limit = limit, .left = limit};
}

int dsc_tok_grow(tok_growth *g, const tok_step *s, size_t before, size_t after, dsc_error *err)
{
    if (after <= before)
        return DSC_OK;
    if (after - before > g->left)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: %s makes the text too long: all steps together may add %zu bytes, "
                        "which are %d for each byte of the text and %d",
                        g->file, s->where, g->limit, TOK_GROWTH, TOK_GROWTH_FREE);
    g->left -= after - before;
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Internal: which numbers a column may contain.
#ifndef DSC_TRACES_TRACE_VALUES_H
#define DSC_TRACES_TRACE_VALUES_H

#include "traces/trace/trace_columns.h"

// The index of the first of `count` numbers that the column may not contain, or -1. `count` is a
// multiple of the column's width; dtype is the column's or, for dense rows, BF16.
int64_t dsc_bad_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                      int64_t count);
// Returns DSC_EINPUT with the message "WHERE'NAME'[i]: why" for such a number.
int dsc_fail_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                   int64_t i, const char *where, dsc_error *err);
static inline float dsc_of_bf16(uint16_t half) // the upper half of a binary32
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
// The first step that accepted more tokens than it drafted, or -1.
int64_t dsc_bad_step(const uint16_t *accepted, const uint16_t *drafted, int64_t count);

// The index of the first bad element, or -1. These are block loops without branches, which gcc and
// clang vectorize at -O2; a bad block is then searched element by element.
int64_t dsc_bad_token(const int32_t *id, int64_t count, int32_t vocab_size); // outside [0, size)
int64_t dsc_bad_logp(const float *logp, int64_t count);                      // not finite, or > 0
int64_t dsc_bad_log_mass(const float *x, int64_t count);         // > 0 or NaN; -inf is allowed
int64_t dsc_bad_bf16_log_mass(const uint16_t *x, int64_t count); // > 0 or NaN; -inf is allowed
int64_t dsc_bad_kind(const uint8_t *kind, int64_t count);        // not a dsc_reference_kind
int64_t dsc_bad_amount(const float *x, int64_t count);           // not finite, or < 0
// Bad: offset[0] != 0, or offset[i] < offset[i - 1]. count >= 1.
int64_t dsc_bad_offset(const int64_t *offset, int64_t count);

#endif

// SPDX-License-Identifier: Apache-2.0
// The number of distinct experts that a pass touches in one layer.
#ifndef DSC_SIM_EXPERTS_H
#define DSC_SIM_EXPERTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum dsc_experts_rule {
    DSC_EXPERTS_POWER, // k T^A for T adjacent tokens
    DSC_EXPERTS_UNIFORM,
    DSC_EXPERTS_TABLE,
} dsc_experts_rule;

typedef struct dsc_experts {
    dsc_experts_rule rule;
    double exponent;           // of POWER
    double *tokens, *distinct; // [count] of TABLE, ascending
    size_t count;
} dsc_experts;

// "uniform", "power:A" with 0 < A <= 1, or "table:FILE", a result table with the columns tokens and
// distinct. DSC_EUSAGE; DSC_EINPUT for the contents of a file. Freed by dsc_experts_fini.
int dsc_experts_parse(dsc_experts *out, const char *text, dsc_error *err);
void dsc_experts_fini(dsc_experts *e);

// Distinct experts of `experts`, of which each token takes `each`, that `batch` sequences of
// `tokens` adjacent tokens touch. DSC_EINPUT: more tokens than the table has.
int dsc_experts_distinct(const dsc_experts *e, double experts, double each, double tokens,
                         double batch, double *out, dsc_error *err);

#endif

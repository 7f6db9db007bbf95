// SPDX-License-Identifier: Apache-2.0
// Distinct experts of a pass. T adjacent tokens of one sequence touch d(T) of E experts, k each:
//
//   uniform   d(T) = E (1 - (1 - k/E)^T), as if every token chose at random
//   power:A   d(T) = min(E, k T^A): adjacent tokens choose alike
//   table     measured d(T), linear between its rows and from 0 tokens to its first row
//
// The sequences of a batch choose independently, so B of them touch E (1 - (1 - d(T)/E)^B).
// Measured for 256 experts of which a token takes 8: d(8) = 39.4 and d(15) = 58.9, where the
// uniform choice has 57.4 and 97.0. The exponents that meet the two are 0.767 and 0.737; the preset
// is 0.75.
#include "sim/cost/experts.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int read_rows(dsc_experts *e, const dsc_table *t, const char *path, dsc_error *err)
{
    const int tokens = dsc_table_find(t, "tokens"), distinct = dsc_table_find(t, "distinct");
    if (tokens < 0 || distinct < 0 || !t->rows)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: a table of experts needs columns tokens and distinct, and a row",
                        path);
    int rc = dsc_new(&e->tokens, t->rows, err);
    if (!rc)
        rc = dsc_new(&e->distinct, t->rows, err);
    for (size_t r = 0; r < t->rows && !rc; r++) {
        e->tokens[r] = dsc_table_real(t, r, (size_t)tokens);
        e->distinct[r] = dsc_table_real(t, r, (size_t)distinct);
        const bool rises =
            r == 0 || (e->tokens[r] > e->tokens[r - 1] && e->distinct[r] >= e->distinct[r - 1]);
        if (!(rises && e->tokens[r] >= 1 && e->distinct[r] > 0 && isfinite(e->tokens[r]) &&
              isfinite(e->distinct[r])))
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s:%zu: tokens from 1 and distinct experts above 0 must rise", path,
                          t->first_line + r);
    }
    e->count = t->rows;
    return rc;
}

static int read_table(dsc_experts *e, const char *path, dsc_error *err)
{
    dsc_table t = {0};
    int rc = dsc_table_read(&t, path, err);
    if (rc)
        return rc;
    e->rule = DSC_EXPERTS_TABLE;
    rc = read_rows(e, &t, path, err);
    dsc_table_fini(&t);
    if (rc)
        dsc_experts_fini(e);
    return rc;
}

int dsc_experts_parse(dsc_experts *out, const char *text, dsc_error *err)
{
    *out = (dsc_experts){.rule = DSC_EXPERTS_UNIFORM};
    if (strcmp(text, "uniform") == 0)
        return DSC_OK;
    if (strncmp(text, "table:", 6) == 0)
        return read_table(out, text + 6, err);
    if (strncmp(text, "power:", 6) == 0 && strchr("0123456789.", text[6]) && text[6]) {
        char *end;
        out->rule = DSC_EXPERTS_POWER;
        out->exponent = dsc_strtod(text + 6, &end);
        if (!*end && out->exponent > 0 && out->exponent <= 1)
            return DSC_OK;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: experts=%.60s is not uniform, power:A with 0 < A <= 1, or table:FILE",
                    text);
}

void dsc_experts_fini(dsc_experts *e)
{
    free(e->tokens);
    free(e->distinct);
    *e = (dsc_experts){0};
}

static int look_up(const dsc_experts *e, double tokens, double *out, dsc_error *err)
{
    size_t i = 0;
    while (i < e->count && e->tokens[i] < tokens)
        i++;
    if (i == e->count)
        return dsc_fail(err, DSC_EINPUT,
                        "--cost: %.6g tokens of a sequence are more than the table of experts has, "
                        "which goes to %.0f and is not extrapolated",
                        tokens, e->tokens[e->count - 1]);
    const double before = i ? e->tokens[i - 1] : 0, least = i ? e->distinct[i - 1] : 0;
    *out = least + (e->distinct[i] - least) * (tokens - before) / (e->tokens[i] - before);
    return DSC_OK;
}

int dsc_experts_distinct(const dsc_experts *e, double experts, double each, double tokens,
                         double batch, double *out, dsc_error *err)
{
    double one = 0;
    switch (e->rule) {
    case DSC_EXPERTS_POWER: one = each * pow(tokens, e->exponent); break;
    case DSC_EXPERTS_UNIFORM: one = experts * (1 - pow(1 - each / experts, tokens)); break;
    default: {
        int rc = look_up(e, tokens, &one, err);
        if (rc)
            return rc;
    }
    }
    *out = experts * (1 - pow(1 - fmin(one / experts, 1), batch));
    return DSC_OK;
}

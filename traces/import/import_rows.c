// SPDX-License-Identifier: Apache-2.0
// Reads next-token distributions from JSON: for each output token an array of pairs [token id,
// natural log-probability], optionally followed by one number: the logarithm of the total
// probability not listed (null: none). Without that number, this probability is 1 minus the sum of
// the pairs.
#include "traces/import/import_record.h"

#include <math.h>
#include <stdlib.h>

void dsc_import_rows_reset(dsc_import_rows *r)
{
    r->given = false;
    r->rows = r->count = 0;
}

void dsc_import_rows_fini(dsc_import_rows *r)
{
    free(r->token);
    free(r->logp);
    free(r->offset);
    free(r->tail);
    *r = (dsc_import_rows){0};
}

dsc_rows dsc_import_rows_view(const dsc_import_rows *r)
{
    return (dsc_rows){.kind = r->given ? DSC_ROWS_LISTED : DSC_ROWS_NONE,
                      .offset = r->offset,
                      .token = r->token,
                      .logp = r->logp,
                      .tail = r->tail};
}

static int reserve(dsc_import_rows *out, size_t count, dsc_error *err)
{
    int rc = dsc_resize(&out->token, &out->token_capacity, count, err);
    return rc ? rc : dsc_resize(&out->logp, &out->logp_capacity, count, err);
}

// Reads a finite float that is at most 0.
static int read_log(const json_t *value, float *out, const char *field, size_t row, size_t i,
                    dsc_error *err)
{
    double x = json_number_value(value);
    *out = (float)x;
    if (*out <= 0 && isfinite(*out))
        return DSC_OK;
    return dsc_fail(
        err, DSC_EINPUT,
        "field '%s[%zu][%zu]' is %g; the logarithm of a probability must be at most 0 and "
        "above -3.4e38",
        field, row, i, x);
}

static int read_pair(dsc_import_rows *out, const json_t *pair, int32_t vocab_size,
                     const char *field, size_t row, size_t i, dsc_error *err)
{
    const json_t *id = json_array_get(pair, 0), *logp = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(id) || !json_is_number(logp))
        return dsc_fail(err, DSC_EINPUT,
                        "field '%s[%zu][%zu]' must be a pair [token id, log-probability]", field,
                        row, i);
    json_int_t n = json_integer_value(id);
    if (n < 0 || n >= vocab_size)
        return dsc_fail(err, DSC_EINPUT,
                        "field '%s[%zu][%zu]': token id %lld; ids of this vocabulary are 0 to %d",
                        field, row, i, (long long)n, vocab_size - 1);
    int rc = reserve(out, out->count + 1, err);
    if (rc)
        return rc;
    out->token[out->count] = (int32_t)n;
    return read_log(logp, &out->logp[out->count++], field, row, i, err);
}

// The logarithm of 1 minus the sum of the listed probabilities, which belongs to the other tokens.
static float rest(const float *logp, size_t count, int32_t vocab_size)
{
    double sum = 0;
    if (count == (size_t)vocab_size)
        return -INFINITY;
    for (size_t i = 0; i < count; i++)
        sum += exp((double)logp[i]);
    return sum < 1 ? (float)log(1 - sum) : -INFINITY;
}

static int read_row(dsc_import_rows *out, const json_t *array, int32_t vocab_size,
                    const char *field, dsc_error *err)
{
    size_t row = out->rows, first = out->count, n = json_array_size(array), i = 0;
    int rc = DSC_OK;
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array of pairs", err, "%s[%zu]", field, row);
    for (; i < n && !rc; i++) {
        const json_t *v = json_array_get(array, i);
        if (i + 1 == n && (json_is_number(v) || json_is_null(v)))
            break;
        rc = read_pair(out, v, vocab_size, field, row, i, err);
    }
    const json_t *tail = json_array_get(array, i); // NULL when all were pairs
    if (rc)
        return rc;
    if (!tail)
        out->tail[row] = rest(out->logp + first, out->count - first, vocab_size);
    else if (json_is_null(tail))
        out->tail[row] = -INFINITY;
    else
        rc = read_log(tail, &out->tail[row], field, row, i, err);
    out->offset[++out->rows] = (int64_t)out->count;
    return rc;
}

int dsc_import_rows_read(dsc_import_rows *out, const json_t *array, int32_t vocab_size,
                         const char *field, dsc_error *err)
{
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array of arrays of pairs", err, "%s", field);
    size_t n = json_array_size(array);
    int rc = dsc_resize(&out->offset, &out->offset_capacity, n + 1, err);
    if (!rc)
        rc = dsc_resize(&out->tail, &out->tail_capacity, n + 1, err);
    if (!rc)
        rc = reserve(out, 1, err); // even when all rows are empty
    if (rc)
        return rc;
    out->given = true;
    out->offset[0] = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = read_row(out, json_array_get(array, i), vocab_size, field, err);
    return rc;
}

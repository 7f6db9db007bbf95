// SPDX-License-Identifier: Apache-2.0
// Reads next-token distributions from JSON: for each output token an array of pairs [token id,
// natural log-probability], optionally followed by one number: the logarithm of the total
// probability not listed (null: none). Without that number, this probability is 1 minus the sum of
// the pairs.
#include "traces/import/import_record.h"

#include <math.h>

// The distributions being read: the four columns of one model.
typedef struct rows {
    dsc_import_column *offset, *token, *logp, *tail;
    int32_t vocab_size;
    const char *field;
    dsc_error *err;
} rows;

// Reads a finite float that is at most 0.
static int read_log(const rows *r, const json_t *value, float *out, size_t row, size_t i)
{
    double x = json_number_value(value);
    *out = (float)x;
    if (*out <= 0 && isfinite(*out))
        return DSC_OK;
    return dsc_fail(
        r->err, DSC_EINPUT,
        "field '%s[%zu][%zu]' is %g; the logarithm of a probability must be at most 0 and "
        "above -3.4e38",
        r->field, row, i, x);
}

static int read_pair(const rows *r, const json_t *pair, size_t row, size_t i)
{
    const json_t *id = json_array_get(pair, 0), *logp = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(id) || !json_is_number(logp))
        return dsc_fail(r->err, DSC_EINPUT,
                        "field '%s[%zu][%zu]' must be a pair [token id, log-probability]", r->field,
                        row, i);
    json_int_t n = json_integer_value(id);
    if (n < 0 || n >= r->vocab_size)
        return dsc_fail(r->err, DSC_EINPUT,
                        "field '%s[%zu][%zu]': token id %lld; ids of this vocabulary are 0 to %d",
                        r->field, row, i, (long long)n, r->vocab_size - 1);
    size_t at = r->token->count++;
    r->logp->count = r->token->count;
    int rc = dsc_grow(&r->token->data, &r->token->capacity, at + 1, sizeof(int32_t), r->err);
    if (!rc)
        rc = dsc_grow(&r->logp->data, &r->logp->capacity, at + 1, sizeof(float), r->err);
    if (rc)
        return rc;
    ((int32_t *)r->token->data)[at] = (int32_t)n;
    return read_log(r, logp, (float *)r->logp->data + at, row, i);
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

static int read_row(const rows *r, const json_t *array, size_t row)
{
    size_t first = r->logp->count, n = json_array_size(array), i = 0;
    float *tail_logp = (float *)r->tail->data + row;
    int rc = DSC_OK;
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array of pairs", r->err, "%s[%zu]", r->field, row);
    for (; i < n && !rc; i++) {
        const json_t *v = json_array_get(array, i);
        if (i + 1 == n && (json_is_number(v) || json_is_null(v)))
            break;
        rc = read_pair(r, v, row, i);
    }
    const json_t *tail = json_array_get(array, i); // NULL when all were pairs
    if (rc)
        return rc;
    if (!tail)
        *tail_logp = rest((float *)r->logp->data + first, r->logp->count - first, r->vocab_size);
    else if (json_is_null(tail))
        *tail_logp = -INFINITY;
    else
        rc = read_log(r, tail, tail_logp, row, i);
    ((int64_t *)r->offset->data)[row + 1] = (int64_t)r->logp->count;
    return rc;
}

int dsc_import_rows_read(dsc_import_record *out, dsc_model_side side, const json_t *array,
                         int32_t vocab_size, dsc_error *err)
{
    const int first = dsc_row_column(side, COL_DRAFT_ROW_OFFSET); // token, logp and tail follow
    dsc_import_column *c = &out->column[first];
    rows r = {c, c + 1, c + 2, c + 3, vocab_size, dsc_rows_name(side, DSC_ROWS_LISTED), err};
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array of arrays of pairs", err, "%s", r.field);
    size_t n = json_array_size(array);
    int rc = DSC_OK;
    for (int i = 0; i < 4 && !rc; i++) {
        void *data;
        rc = dsc_import_column_start(out, first + i, n + 1, &data, err);
    }
    if (rc)
        return rc;
    ((int64_t *)r.offset->data)[0] = 0;
    r.tail->count = n;
    r.token->count = r.logp->count = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = read_row(&r, json_array_get(array, i), i);
    return rc;
}

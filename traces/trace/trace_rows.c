// SPDX-License-Identifier: Apache-2.0
// Next-token distributions (rows) at the output positions: views of them, and the checks that a
// listed or dense distribution must pass.
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- views -------------------------------------------------------------------------------------

static dsc_row row_at(const dsc_rows *rows, int64_t position)
{
    if (rows->kind == DSC_ROWS_LISTED) {
        int64_t begin = rows->offset[position];
        return (dsc_row){.token = rows->token + begin,
                         .logp = rows->logp + begin,
                         .count = rows->offset[position + 1] - begin,
                         .tail = rows->tail[position]};
    }
    int64_t begin = position * rows->vocab_size;
    return (dsc_row){.logp = rows->logp ? rows->logp + begin : NULL,
                     .bf16 = rows->bf16 ? rows->bf16 + begin : NULL,
                     .count = rows->vocab_size,
                     .tail = -INFINITY};
}

bool dsc_request_row(const dsc_request *q, dsc_model_side side, int64_t position, dsc_row *out)
{
    if (!q || !out || (unsigned)side >= DSC_SIDES)
        return false;
    const dsc_rows *rows = &q->rows[side];
    if (rows->kind == DSC_ROWS_NONE || position < 0 || position >= q->output.count)
        return false;
    *out = row_at(rows, position);
    return true;
}

float dsc_row_logp(const dsc_row *r, int64_t i)
{
    if (!r || i < 0 || i >= r->count || (!r->logp && !r->bf16))
        return NAN;
    return r->logp ? r->logp[i] : dsc_of_bf16(r->bf16[i]);
}

double dsc_row_dist(const dsc_row *r, int32_t vocab_size, double *dist)
{
    if (!r || !dist)
        return NAN;
    if (r->token)
        for (int32_t x = 0; x < vocab_size; x++)
            dist[x] = 0;
    for (int64_t i = 0; i < r->count; i++) {
        int64_t x = r->token ? r->token[i] : i;
        if (x < 0 || x >= vocab_size)
            return NAN;
        dist[x] = exp((double)dsc_row_logp(r, i));
    }
    return exp((double)r->tail);
}

// --- checks ------------------------------------------------------------------------------------

static const char *const side_name[DSC_SIDES] = {"draft", "target"};

// The first token that is listed twice, or -1.
static int64_t find_duplicate(const dsc_row *r, dsc_token_marks *marks)
{
    int64_t i = 0, bad = -1;
    for (; i < r->count && bad < 0; i++) {
        uint32_t x = (uint32_t)r->token[i];
        uint64_t bit = (uint64_t)1 << x % 64;
        if (marks->word[x / 64] & bit)
            bad = x;
        marks->word[x / 64] |= bit;
    }
    while (i-- > 0)
        marks->word[(uint32_t)r->token[i] / 64] = 0;
    return bad;
}

// The sum of the probabilities lies in [*low, *high]. A bfloat16 has 8 significant bits, so one
// that was rounded to nearest, y, was between y / (1 - 2^-8) and y / (1 + 2^-8).
static void sum_row(const dsc_row *r, double *low, double *high)
{
    const double down = 1 / (1 - 0x1p-8), up = 1 / (1 + 0x1p-8);
    *low = *high = exp((double)r->tail);
    for (int64_t i = 0; i < r->count; i++) {
        double y = (double)dsc_row_logp(r, i);
        *low += exp(r->bf16 ? y * down : y);
        *high += r->bf16 ? exp(y * up) : 0;
    }
    *high = r->bf16 ? *high : *low;
}

static int check_row(const dsc_row *r, int32_t vocab_size, dsc_token_marks *marks, const char *what,
                     dsc_error *err)
{
    int64_t x = r->token ? find_duplicate(r, marks) : -1;
    if (x >= 0)
        return dsc_fail(err, DSC_EINPUT, "%s lists token id %" PRId64 " twice", what, x);
    if (r->token && r->count == vocab_size && r->tail > -INFINITY)
        return dsc_fail(err, DSC_EINPUT, "%s lists every token, so its tail must be empty", what);
    double low, high;
    sum_row(r, &low, &high);
    if (low <= 1 + DSC_ROW_TOLERANCE && high >= 1 - DSC_ROW_TOLERANCE)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s sums to %.9g, but must sum to 1 within %g", what,
                    low > 1 ? low : high, DSC_ROW_TOLERANCE);
}

static int bad_element(const char *what, int64_t i, const char *why, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s: element %" PRId64 " %s", what, i, why);
}

static int check_listed(const dsc_rows *rows, int64_t positions, int32_t vocab_size,
                        const char *what, dsc_error *err)
{
    const int64_t *offset = rows->offset;
    bool falls = offset[0] < 0;
    for (int64_t j = 0; j < positions; j++)
        falls |= offset[j + 1] < offset[j];
    if (falls)
        return dsc_fail(err, DSC_EUSAGE, "%s: the offsets must not decrease", what);
    int64_t begin = offset[0], n = offset[positions] - begin, i;
    if ((i = dsc_bad_token(rows->token + begin, n, vocab_size)) >= 0)
        return bad_element(what, i, "is not a token id of the vocabulary", err);
    if ((i = dsc_bad_logp(rows->logp + begin, n)) >= 0)
        return bad_element(what, i, "is not a log-probability (finite, <= 0)", err);
    if ((i = dsc_bad_log_mass(rows->tail, positions)) >= 0)
        return bad_element(what, i, "of the tails is not a log-probability (<= 0)", err);
    return DSC_OK;
}

static int check_dense(const dsc_rows *rows, int64_t positions, const char *what, dsc_error *err)
{
    int64_t n = positions * rows->vocab_size;
    int64_t i = rows->bf16 ? dsc_bad_bf16_log_mass(rows->bf16, n) : dsc_bad_log_mass(rows->logp, n);
    return i < 0 ? DSC_OK
                 : bad_element(what, i, "is not the logarithm of a probability (<= 0)", err);
}

int dsc_check_rows(const dsc_trace_info *info, dsc_model_side side, const dsc_rows *rows,
                   int64_t positions, int64_t request, dsc_token_marks *marks, dsc_error *err)
{
    char what[80];
    bool listed = info->rows[side] == DSC_ROWS_LISTED;
    int rc = DSC_OK;
    if (info->rows[side] == DSC_ROWS_NONE || positions == 0)
        return DSC_OK;
    snprintf(what, sizeof what, "request %" PRId64 ": the %s distributions", request,
             side_name[side]);
    if (rows->kind != info->rows[side])
        return dsc_fail(err, DSC_EUSAGE, "%s must be %s, as in the trace's description", what,
                        listed ? "listed" : "dense");
    if (listed ? !rows->offset || !rows->token || !rows->logp || !rows->tail
               : !rows->logp == !rows->bf16)
        return dsc_fail(err, DSC_EUSAGE, "%s are missing", what);
    if (!listed && rows->vocab_size != info->vocab_size)
        return dsc_fail(err, DSC_EUSAGE, "%s have %" PRId64 " tokens; the vocabulary has %" PRId32,
                        what, rows->vocab_size, info->vocab_size);
    rc = listed ? check_listed(rows, positions, info->vocab_size, what, err)
                : check_dense(rows, positions, what, err);
    if (!rc && listed && !marks->word)
        rc = dsc_new(&marks->word, ((size_t)info->vocab_size + 63) / 64, err);
    for (int64_t j = 0; j < positions && !rc; j++) {
        dsc_row row = row_at(rows, j);
        snprintf(what, sizeof what, "request %" PRId64 ": %s distribution %" PRId64, request,
                 side_name[side], j);
        rc = check_row(&row, info->vocab_size, marks, what, err);
    }
    return rc;
}

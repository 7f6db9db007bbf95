// SPDX-License-Identifier: Apache-2.0
// One shard: mapped, checked column by column, handed out request by request.
#include "traces/trace_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int64_t last_offset(const dsc_shard *s, int column)
{
    return ((const int64_t *)s->column[column])[s->count[column] - 1];
}

// The length a column must have; its offsets (if it has any) are checked already.
static int check_length(const dsc_shard *s, int c, dsc_error *err)
{
    const dsc_column_type *type = &dsc_columns[c];
    int64_t want = type->counted_by < 0 ? s->entry->requests : last_offset(s, type->counted_by);
    if (s->count[c] - type->extra == want) // written so that nothing overflows
        return DSC_OK;
    if (type->counted_by < 0)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' has %" PRId64
                        " elements; wanted is one more than the %" PRId64
                        " requests of the manifest",
                        s->path, type->name, s->count[c], want);
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' has %" PRId64 " elements; wanted is the length %" PRId64
                    " given by '%s'%s",
                    s->path, type->name, s->count[c], want, dsc_columns[type->counted_by].name,
                    type->extra ? " and one more" : "");
}

// Tails and dense rows: masses, whose logarithm may be -inf; but not of all tokens.
static int check_masses(const dsc_shard *s, int c, dsc_error *err)
{
    const char *name = dsc_columns[c].name;
    int64_t width = dsc_column_dense(c) ? s->trace->info.vocab_size : 1, n = s->count[c] * width;
    bool bf16 = s->dtype[c] == DSC_BF16;
    const dsc_row all = {.logp = bf16 ? NULL : s->column[c], .bf16 = bf16 ? s->column[c] : NULL};
    int64_t i = bf16 ? dsc_bad_bf16_log_mass(all.bf16, n) : dsc_bad_log_mass(all.logp, n);
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s'[%" PRId64 "]: %g is not the logarithm of a mass (<= 0)",
                        s->path, name, i, (double)dsc_row_logp(&all, i));
    for (i = 0; dsc_column_dense(c) && i < n; i += width) {
        int64_t j = 0;
        while (j < width && dsc_row_logp(&all, i + j) == -INFINITY)
            j++;
        if (j == width)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: tensor '%s'[%" PRId64 "]: no token of the row has any mass",
                            s->path, name, i);
    }
    return DSC_OK;
}

static int check_values(const dsc_shard *s, int c, dsc_error *err)
{
    const char *name = dsc_columns[c].name, *path = s->path;
    const void *data = s->column[c];
    int64_t n = s->count[c], i, id;
    if (c == COL_DRAFT_ROW_TAIL || c == COL_TARGET_ROW_TAIL || dsc_column_dense(c))
        return check_masses(s, c, err);
    switch (dsc_columns[c].dtype) {
    case DSC_I64:
        i = dsc_bad_offset(data, n);
        if (i >= 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: tensor '%s'[%" PRId64 "]: offset %" PRId64
                            ": offsets must begin at 0 and never fall",
                            path, name, i, ((const int64_t *)data)[i]);
        break;
    case DSC_U32:
        i = dsc_bad_token(data, n, s->trace->info.vocab_size);
        if (i >= 0) {
            id = ((const uint32_t *)data)[i];
            return dsc_fail(err, DSC_EINPUT,
                            "%s: tensor '%s'[%" PRId64 "]: token id %" PRId64
                            " is outside the vocabulary of %" PRId32,
                            path, name, i, id, s->trace->info.vocab_size);
        }
        break;
    case DSC_F32:
        i = dsc_bad_logp(data, n);
        if (i >= 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: tensor '%s'[%" PRId64 "]: %g is not a log-probability (finite, "
                            "<= 0)",
                            path, name, i, (double)((const float *)data)[i]);
        break;
    default:
        i = c == COL_REFERENCE_KIND ? dsc_bad_kind(data, n) : -1;
        if (i >= 0)
            return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s'[%" PRId64 "]: unknown kind %d", path,
                            name, i, ((const uint8_t *)data)[i]);
    }
    return DSC_OK;
}

static int read_column(dsc_shard *s, int c, dsc_error *err)
{
    const dsc_column_type *type = &dsc_columns[c];
    const dsc_tensor *t = dsc_safetensors_find(s->file, type->name);
    if (!t)
        return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' is missing", s->path, type->name);
    bool dense = dsc_column_dense(c);
    int rank = dense ? 2 : 1;
    if ((t->dtype != type->dtype && !(dense && t->dtype == DSC_BF16)) || t->rank != rank)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' is %s of rank %d, must be %s%s of rank %d", s->path,
                        type->name, dsc_dtype_name(t->dtype), t->rank, dsc_dtype_name(type->dtype),
                        dense ? " or BF16" : "", rank);
    if (dense && t->shape[1] != s->trace->info.vocab_size)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' has rows of %" PRId64 ", the vocabulary has %" PRId32,
                        s->path, type->name, t->shape[1], s->trace->info.vocab_size);
    s->column[c] = t->data;
    s->count[c] = t->shape[0];
    s->dtype[c] = t->dtype;
    s->unknown--;
    int rc = check_length(s, c, err);
    return rc ? rc : check_values(s, c, err);
}

// Offsets of requests first, then offsets of references (whose number the former give), then
// what they divide.
static int turn(int c)
{
    return dsc_columns[c].counted_by < 0 ? 0 : dsc_columns[c].dtype == DSC_I64 ? 1 : 2;
}

static int read_columns(dsc_shard *s, dsc_error *err)
{
    int rc = DSC_OK;
    s->unknown = (int64_t)dsc_safetensors_count(s->file);
    for (int pass = 0; pass < 3; pass++)
        for (int c = 0; c < DSC_COLUMNS && !rc; c++)
            if (turn(c) == pass && dsc_column_recorded(&s->trace->info, c))
                rc = read_column(s, c, err);
    return rc;
}

static int check_total(const dsc_shard *s, const char *what, int64_t have, int64_t want,
                       dsc_error *err)
{
    if (have == want)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: %" PRId64 " %s, the manifest says %" PRId64, s->path,
                    have, what, want);
}

static int check_totals(const dsc_shard *s, dsc_error *err)
{
    const dsc_shard_entry *e = s->entry;
    int rc = check_total(s, "prompt tokens", s->count[COL_PROMPT_TOK], e->prompt_tokens, err);
    if (!rc)
        rc = check_total(s, "output tokens", s->count[COL_OUTPUT_TOK], e->output_tokens, err);
    if (!rc)
        rc = check_total(s, "reference tokens", s->count[COL_REFERENCE_TOK], e->reference_tokens,
                         err);
    if (!rc)
        rc = check_total(s, "references", s->count[COL_REFERENCE_KIND], e->references, err);
    return rc;
}

// Before the file is read: a shard cut short deserves the plain sentence.
static int check_size(const dsc_shard *s, dsc_error *err)
{
    struct stat st;
    if (stat(s->path, &st))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", s->path);
    if (st.st_size != s->entry->bytes)
        return dsc_fail(err, DSC_EINPUT, "%s: %s: %lld bytes, the manifest says %" PRId64, s->path,
                        st.st_size < s->entry->bytes ? "truncated" : "too long",
                        (long long)st.st_size, s->entry->bytes);
    return DSC_OK;
}

int dsc_shard_open(dsc_shard **out, const dsc_trace *t, int64_t index, dsc_error *err)
{
    void *p;
    *out = NULL;
    if (index < 0 || index >= (int64_t)t->shards)
        return dsc_fail(err, DSC_EUSAGE, "%s: no shard %" PRId64 " among %zu", t->path, index,
                        t->shards);
    int rc = dsc_alloc(&p, 1, sizeof **out, err);
    if (rc)
        return rc;
    dsc_shard *s = p;
    s->trace = t;
    s->entry = &t->shard[index];
    rc = dsc_trace_shard_path(&s->path, t->path, (size_t)index, err);
    if (!rc)
        rc = check_size(s, err);
    if (!rc)
        rc = dsc_safetensors_open(&s->file, s->path, err);
    if (!rc)
        rc = read_columns(s, err);
    if (!rc)
        rc = check_totals(s, err);
    if (rc)
        dsc_shard_close(s);
    else
        *out = s;
    return rc;
}

void dsc_shard_close(dsc_shard *s)
{
    if (!s)
        return;
    dsc_safetensors_close(s->file);
    free(s->path);
    free(s);
}

int64_t dsc_shard_requests(const dsc_shard *s)
{
    return s->entry->requests;
}

int64_t dsc_shard_unknown(const dsc_shard *s)
{
    return s->unknown;
}

// Element i of a column divided by its offsets, as bytes.
static dsc_text_view text_at(const dsc_shard *s, int column, int64_t i)
{
    if (!s->column[column])
        return (dsc_text_view){NULL, 0};
    const int64_t *offset = s->column[dsc_columns[column].counted_by];
    return (dsc_text_view){(const char *)s->column[column] + offset[i], offset[i + 1] - offset[i]};
}

static dsc_token_view tokens_at(const dsc_shard *s, int column, int64_t i)
{
    const int64_t *offset = s->column[dsc_columns[column].counted_by];
    return (dsc_token_view){(const int32_t *)s->column[column] + offset[i],
                            offset[i + 1] - offset[i]};
}

// The rows of the output that begins at position `first` of the shard.
static dsc_rows rows_at(const dsc_shard *s, dsc_model_side side, int64_t first)
{
    dsc_rows rows = {.kind = s->trace->info.rows[side]};
    if (rows.kind == DSC_ROWS_LISTED) {
        const int64_t *offset = s->column[dsc_row_column(side, COL_DRAFT_ROW_OFFSET)];
        const float *tail = s->column[dsc_row_column(side, COL_DRAFT_ROW_TAIL)];
        rows.offset = offset + first;
        rows.token = s->column[dsc_row_column(side, COL_DRAFT_ROW_TOKEN)];
        rows.logp = s->column[dsc_row_column(side, COL_DRAFT_ROW_LOGP)];
        rows.tail = tail + first;
    } else if (rows.kind == DSC_ROWS_DENSE) {
        int c = dsc_row_column(side, COL_DRAFT_ROW_DENSE);
        rows.vocab_size = s->trace->info.vocab_size;
        if (s->dtype[c] == DSC_BF16)
            rows.bf16 = (const uint16_t *)s->column[c] + first * rows.vocab_size;
        else
            rows.logp = (const float *)s->column[c] + first * rows.vocab_size;
    }
    return rows;
}

void dsc_shard_request(const dsc_shard *s, int64_t i, dsc_request *out)
{
    const int64_t *request = s->column[COL_REQUEST_REFERENCE]; // first reference of each request
    const int64_t *output = s->column[COL_OUTPUT_OFFSET];
    const int64_t *reference_text = s->column[COL_REFERENCE_TEXT_OFFSET];
    const float *logp = s->column[COL_TARGET_LOGP];
    *out = (dsc_request){
        .index = s->entry->first_request + i,
        .id = text_at(s, COL_REQUEST_ID, i),
        .prompt = tokens_at(s, COL_PROMPT_TOK, i),
        .output = tokens_at(s, COL_OUTPUT_TOK, i),
        .references = request[i + 1] - request[i],
        .reference_offset = (const int64_t *)s->column[COL_REFERENCE_OFFSET] + request[i],
        .reference_token = s->column[COL_REFERENCE_TOK],
        .reference_kind = (const uint8_t *)s->column[COL_REFERENCE_KIND] + request[i],
        .target_logp = logp ? logp + output[i] : NULL,
        .prompt_text = text_at(s, COL_PROMPT_TEXT, i),
        .output_text = text_at(s, COL_OUTPUT_TEXT, i),
        .reference_text_offset = reference_text ? reference_text + request[i] : NULL,
        .reference_text = s->column[COL_REFERENCE_TEXT],
        .metadata = text_at(s, COL_METADATA, i),
        .rows = {rows_at(s, DSC_SIDE_DRAFT, output[i]), rows_at(s, DSC_SIDE_TARGET, output[i])},
    };
}

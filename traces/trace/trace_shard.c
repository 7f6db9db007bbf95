// SPDX-License-Identifier: Apache-2.0
// Reads one shard: maps the safetensors file, checks it column by column, and gives views of its
// requests.
#include "base/file.h"
#include "traces/trace/trace_manifest.h"
#include "traces/trace/trace_values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t last_offset(const dsc_shard *s, int column)
{
    return ((const int64_t *)s->column[column])[s->count[column] - 1];
}

// Checks the length of a column. Its offsets, if it has any, were checked before.
static int check_length(const dsc_shard *s, int c, const char *name, dsc_error *err)
{
    const dsc_column_type *type = &dsc_columns[c];
    int64_t want = type->counted_by < 0 ? s->entry->requests : last_offset(s, type->counted_by);
    if (s->count[c] - type->extra == want) // this form cannot overflow
        return DSC_OK;
    if (type->counted_by < 0)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' has %" PRId64
                        " elements; it must have one more than the %" PRId64
                        " requests of the manifest",
                        s->path, name, s->count[c], want);
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' has %" PRId64
                    " elements; by the last entry of '%s' it must have %" PRId64 "%s",
                    s->path, name, s->count[c], dsc_columns[type->counted_by].name, want,
                    type->extra ? " + 1" : "");
}

// The first element of a dense row whose probabilities are all 0, or -1.
static int64_t empty_row(const dsc_shard *s, int c)
{
    int64_t width = s->trace->info.vocab_size, n = s->count[c] * width;
    bool bf16 = s->dtype[c] == DSC_BF16;
    const dsc_row all = {
        .logp = bf16 ? NULL : s->column[c], .bf16 = bf16 ? s->column[c] : NULL, .count = n};
    for (int64_t i = 0; i < n; i += width) {
        int64_t j = 0;
        while (j < width && dsc_row_logp(&all, i + j) == -INFINITY)
            j++;
        if (j == width)
            return i;
    }
    return -1;
}

static int check_values(const dsc_shard *s, int c, dsc_error *err)
{
    const dsc_trace_info *info = &s->trace->info;
    const void *data = s->column[c];
    int64_t n = s->count[c] * dsc_column_width(info, c);
    int64_t i = dsc_bad_value(info, c, s->dtype[c], data, n);
    if (i >= 0) {
        int rc = dsc_fail_value(info, c, s->dtype[c], data, i, "tensor ", err);
        return dsc_error_prefix(err, rc, "%s", s->path);
    }
    i = dsc_column_dense(c) ? empty_row(s, c) : -1;
    if (i >= 0)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s'[%" PRId64 "]: all probabilities of the row are 0", s->path,
                        dsc_columns[c].name, i);
    return DSC_OK;
}

// Checks type and shape, except the first dimension (check_length).
static int check_type(const dsc_shard *s, int c, const char *name, const dsc_tensor *t,
                      dsc_error *err)
{
    int64_t shape[2];
    int inner = dsc_column_shape(&s->trace->info, c, shape);
    bool dense = dsc_column_dense(c);
    dsc_dtype dtype = dsc_columns[c].dtype;
    if ((t->dtype != dtype && !(dense && t->dtype == DSC_BF16)) || t->rank != 1 + inner)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' is %s of rank %d; it must be %s%s of rank %d", s->path,
                        name, dsc_dtype_name(t->dtype), t->rank, dsc_dtype_name(dtype),
                        dense ? " or BF16" : "", 1 + inner);
    for (int i = 0; i < inner; i++)
        if (t->shape[1 + i] != shape[i])
            return dsc_fail(err, DSC_EINPUT,
                            "%s: dimension %d of tensor '%s' is %" PRId64
                            "; by the manifest it must be %" PRId64,
                            s->path, 1 + i, name, t->shape[1 + i], shape[i]);
    return DSC_OK;
}

static int read_column(dsc_shard *s, int c, dsc_error *err)
{
    char buffer[DSC_COLUMN_NAME_BYTES];
    const char *name = dsc_column_name(&s->trace->info, c, buffer);
    const dsc_tensor *t = dsc_safetensors_find(s->file, name);
    if (!t)
        return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' is missing", s->path, name);
    int rc = check_type(s, c, name, t, err);
    if (rc)
        return rc;
    s->column[c] = t->data;
    s->count[c] = t->shape[0];
    s->dtype[c] = t->dtype;
    s->unknown--;
    rc = check_length(s, c, name, err);
    return rc ? rc : check_values(s, c, err);
}

// The pass in which a column is read: first the offsets of requests, then the offsets of references
// (whose number the former give), then the columns that the offsets divide.
static int pass_of(int c)
{
    return dsc_columns[c].counted_by < 0 ? 0 : dsc_columns[c].dtype == DSC_I64 ? 1 : 2;
}

static int check_drafted(const dsc_shard *s, dsc_error *err)
{
    const uint16_t *accepted = s->column[COL_STEP_ACCEPTED], *drafted = s->column[COL_STEP_DRAFTED];
    int64_t i = drafted ? dsc_bad_step(accepted, drafted, s->count[COL_STEP_DRAFTED]) : -1;
    if (i < 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor 'step.accepted'[%" PRId64
                    "]: %d tokens were accepted, but only %d drafted",
                    s->path, i, accepted[i], drafted[i]);
}

static int read_columns(dsc_shard *s, dsc_error *err)
{
    int rc = DSC_OK;
    s->unknown = (int64_t)dsc_safetensors_count(s->file);
    for (int pass = 0; pass < 3; pass++)
        for (int c = 0; c < DSC_COLUMNS && !rc; c++)
            if (pass_of(c) == pass && dsc_column_recorded(&s->trace->info, c))
                rc = read_column(s, c, err);
    return rc ? rc : check_drafted(s, err);
}

static int check_total(const dsc_shard *s, const char *what, int64_t have, int64_t want,
                       dsc_error *err)
{
    if (have == want)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: %" PRId64 " %s, but the manifest has %" PRId64, s->path,
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

// Checked before the file is read, because "truncated" is the clearest message.
static int check_size(dsc_shard *s, dsc_error *err)
{
    if (stat(s->path, &s->opened))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", s->path);
    if (s->opened.st_size != s->entry->bytes)
        return dsc_fail(err, DSC_EINPUT, "%s: %s: %lld bytes, but the manifest has %" PRId64,
                        s->path, s->opened.st_size < s->entry->bytes ? "truncated" : "too long",
                        (long long)s->opened.st_size, s->entry->bytes);
    return DSC_OK;
}

int dsc_shard_open(dsc_shard **out, const dsc_trace *t, int64_t index, dsc_error *err)
{
    dsc_shard *s;
    if (out)
        *out = NULL;
    if (!out || !t)
        return dsc_fail(err, DSC_EUSAGE, "dsc_shard_open: 'out' and 't' must not be NULL");
    if (index < 0 || index >= (int64_t)t->shards)
        return dsc_fail(err, DSC_EUSAGE, "%s: shard %" PRId64 " does not exist; the trace has %zu",
                        t->path, index, t->shards);
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
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

int dsc_shard_check(const dsc_shard *s, dsc_error *err)
{
    if (!s)
        return dsc_fail(err, DSC_EUSAGE, "dsc_shard_check: 's' must not be NULL");
    return dsc_check_unchanged(s->path, &s->opened, err);
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
    return s ? s->entry->requests : 0;
}

int64_t dsc_shard_recorded_bytes(const dsc_shard *s, int i)
{
    if (!s)
        return 0;
    const dsc_trace_info *info = &s->trace->info;
    dsc_field field = dsc_field_at(info, i);
    int64_t bytes = 0;
    for (int c = 0; c < DSC_COLUMNS; c++)
        if (s->column[c] && dsc_columns[c].field == field)
            bytes +=
                s->count[c] * dsc_column_width(info, c) * (int64_t)dsc_dtype_bytes(s->dtype[c]);
    return bytes;
}

int64_t dsc_shard_unknown(const dsc_shard *s)
{
    return s ? s->unknown : 0;
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

// The distributions at the output that begins at position `first` of the shard.
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

// Sets the columns that have an element for each output token or step, from the request's first on.
static void view_columns(const dsc_shard *s, int64_t i, dsc_request *q)
{
    for (int c = COL_TARGET_LOGP; c < DSC_COLUMNS; c++) {
        const dsc_column_type *type = &dsc_columns[c];
        if (!type->view || !s->column[c])
            continue;
        int64_t first = ((const int64_t *)s->column[type->counted_by])[i];
        size_t size = dsc_dtype_bytes(type->dtype) * (size_t)dsc_column_width(&s->trace->info, c);
        dsc_column_set(q, c, type->view, (const char *)s->column[c] + (size_t)first * size);
    }
}

static void view_request(const dsc_shard *s, int64_t i, dsc_request *out)
{
    const int64_t *request = s->column[COL_REQUEST_REFERENCE]; // first reference of each request
    const int64_t *output = s->column[COL_OUTPUT_OFFSET];
    const int64_t *reference_text = s->column[COL_REFERENCE_TEXT_OFFSET];
    const int64_t *step = s->column[COL_STEP_OFFSET];
    *out = (dsc_request){
        .index = s->entry->first_request + i,
        .id = text_at(s, COL_REQUEST_ID, i),
        .prompt = tokens_at(s, COL_PROMPT_TOK, i),
        .output = tokens_at(s, COL_OUTPUT_TOK, i),
        .references = request[i + 1] - request[i],
        .reference_offset = (const int64_t *)s->column[COL_REFERENCE_OFFSET] + request[i],
        .reference_token = s->column[COL_REFERENCE_TOK],
        .reference_kind = (const uint8_t *)s->column[COL_REFERENCE_KIND] + request[i],
        .prompt_text = text_at(s, COL_PROMPT_TEXT, i),
        .output_text = text_at(s, COL_OUTPUT_TEXT, i),
        .reference_text_offset = reference_text ? reference_text + request[i] : NULL,
        .reference_text = s->column[COL_REFERENCE_TEXT],
        .metadata = text_at(s, COL_METADATA, i),
        .rows = {rows_at(s, DSC_SIDE_DRAFT, output[i]), rows_at(s, DSC_SIDE_TARGET, output[i])},
        .steps.count = step ? step[i + 1] - step[i] : 0,
    };
    view_columns(s, i, out);
}

void dsc_shard_request(const dsc_shard *s, int64_t i, dsc_request *out)
{
    if (out && i >= 0 && i < dsc_shard_requests(s))
        view_request(s, i, out);
    else if (out)
        *out = (dsc_request){0};
}

int dsc_trace_each(const dsc_trace *t, dsc_request_visitor visit, void *context, dsc_error *err)
{
    int rc = DSC_OK;
    if (!t || !visit)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_each: 't' and 'visit' must not be NULL");
    for (int64_t s = 0; s < dsc_trace_shards(t) && !rc; s++) {
        dsc_shard *shard;
        dsc_request q;
        rc = dsc_shard_open(&shard, t, s, err);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard); i++) {
            dsc_shard_request(shard, i, &q);
            rc = visit(context, &q, err);
        }
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Writes traces as text, request by request, with one shard mapped at a time. JSON lines have the
// format of traces/import/import_jsonl.c, with texts and tokens, and with enough digits to restore
// every number exactly. CSV: export_csv.c.
#include "base/json_file.h"
#include "base/utf8.h"
#include "traces/export/export_internal.h"
#include "traces/import/import_record.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static int put_json(json_t *value, FILE *out, int64_t request, const char *what, dsc_error *err)
{
    if (!value)
        return dsc_fail(err, DSC_EINPUT, "request %lld: the %s cannot be written as JSON",
                        (long long)request, what);
    // The caller checks ferror(out) once per request.
    const int bad = json_dumpf(value, out, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(value);
    return bad && !ferror(out) ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
}

static int put_string(dsc_text_view text, FILE *out, int64_t request, const char *what,
                      dsc_error *err)
{
    const char *bytes = text.length ? text.bytes : "";
    json_t *value = json_stringn(bytes, (size_t)text.length);
    if (!value && dsc_bad_utf8(bytes, text.length) < 0)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return put_json(value, out, request, what, err);
}

// Token ids are most of the text. This is five times as fast as fprintf.
static void put_tokens(dsc_token_view t, FILE *out)
{
    enum { BLOCK = 4096, LONGEST = 12 }; // a comma and -2147483648
    char block[BLOCK];
    size_t n = 0;
    putc('[', out);
    for (int64_t i = 0; i < t.count; i++) {
        char digits[LONGEST], *d = digits + LONGEST;
        uint32_t id = (uint32_t)t.id[i]; // never negative: dsc_shard_open has checked
        do
            *--d = (char)('0' + id % 10);
        while (id /= 10);
        if (i)
            *--d = ',';
        size_t length = (size_t)(digits + LONGEST - d);
        if (n + length > BLOCK) {
            fwrite(block, 1, n, out);
            n = 0;
        }
        memcpy(block + n, d, length);
        n += length;
    }
    fwrite(block, 1, n, out);
    putc(']', out);
}

// {"text":...,"tokens":[...] without the closing brace. `text` NULL: not recorded.
static int put_text(const dsc_text_view *text, dsc_token_view tokens, FILE *out, int64_t request,
                    const char *what, dsc_error *err)
{
    int rc = DSC_OK;
    putc('{', out);
    if (text) {
        fputs("\"text\":", out);
        rc = put_string(*text, out, request, what, err);
        putc(',', out);
    }
    fputs("\"tokens\":", out);
    put_tokens(tokens, out);
    return rc;
}

static int put_references(const dsc_request *q, FILE *out, dsc_error *err)
{
    int rc = DSC_OK;
    fputs(",\"references\":[", out);
    for (int64_t r = 0; !rc && r < q->references; r++) {
        dsc_text_view text = {0};
        if (q->reference_text) {
            const int64_t *at = q->reference_text_offset;
            text = (dsc_text_view){q->reference_text + at[r], at[r + 1] - at[r]};
        }
        if (r)
            putc(',', out);
        rc = put_text(q->reference_text ? &text : NULL, dsc_request_reference(q, r), out, q->index,
                      "reference", err);
        fprintf(out, ",\"kind\":\"%s\"}",
                q->reference_kind[r] == DSC_REFERENCE_TURN ? "turn" : "document");
    }
    putc(']', out);
    return rc;
}

static void put_float(float x, FILE *out) // nine digits identify every float
{
    if (x == 0) // "-0" would be read as an integer, which has no negative zero
        fputs(signbit(x) ? "-0.0" : "0", out);
    else
        fprintf(out, "%.9g", (double)x);
}

// Numbers of a column from element *at on, as arrays of shape[0] x shape[1] x ...
static void put_numbers(const dsc_column_type *type, const void *data, int64_t *at, int dimensions,
                        const int64_t *shape, FILE *out)
{
    if (dimensions == 0) {
        int64_t i = (*at)++;
        if (type->dtype == DSC_F32 && isinf(((const float *)data)[i]))
            fputs("null", out);
        else if (type->dtype == DSC_F32)
            put_float(((const float *)data)[i], out);
        else if (type->dtype == DSC_U32)
            fprintf(out, "%" PRIu32, ((const uint32_t *)data)[i]);
        else if (dsc_column_is_none(type, ((const uint16_t *)data)[i]))
            fputs("null", out);
        else
            fprintf(out, "%d", ((const uint16_t *)data)[i]);
        return;
    }
    putc('[', out);
    for (int64_t i = 0; i < shape[0]; i++) {
        if (i)
            putc(',', out);
        put_numbers(type, data, at, dimensions - 1, shape + 1, out);
    }
    putc(']', out);
}

static void put_column(const dsc_trace_info *info, const dsc_request *q, int column, FILE *out)
{
    const dsc_column_type *type = &dsc_columns[column];
    int64_t shape[3], at = 0;
    int dimensions = 1 + dsc_column_shape(info, column, shape + 1);
    shape[0] = type->counted_by == COL_STEP_OFFSET ? q->steps.count : q->output.count;
    put_numbers(type, dsc_column_get(q, column, type->view), &at, dimensions, shape, out);
}

// The columns of one of dsc_json_objects, in braces and with their parameters unless it is the
// line.
static void put_object(const dsc_trace_info *info, const dsc_request *q, int object, FILE *out)
{
    const dsc_json_object *o = &dsc_json_objects[object];
    bool open = false;
    for (const dsc_json_column *j = dsc_json_columns; j->name; j++) {
        if (j->object != object || !dsc_column_recorded(info, j->column))
            continue;
        if (o->name && !open) {
            fprintf(out, ",\"%s\":{", o->name);
            for (int i = 0; i < o->parameters; i++)
                fprintf(out, "\"%s\":%d,", o->member[i],
                        (int)dsc_parameter_value(info, o->parameter + i));
            if (object == DSC_JSON_STEPS)
                fprintf(out, "\"%s\":%s,", o->member[0],
                        info->steps == DSC_STEPS_ALIGNED ? "true" : "false");
        }
        fprintf(out, "%s\"%s\":", o->name && !open ? "" : ",", j->name);
        open = o->name != NULL;
        put_column(info, q, j->column, out);
    }
    if (open)
        putc('}', out);
}

static void put_columns(const dsc_trace_info *info, const dsc_request *q, FILE *out)
{
    for (int i = 0; i == 0 || dsc_json_objects[i].name; i++)
        put_object(info, q, i, out);
    for (int i = 0; i < info->drafters; i++) {
        fprintf(out, "%s\"%s\":{\"cap\":%d,\"accepted\":", i ? "," : ",\"accept\":{",
                info->drafter[i].name, (int)info->drafter[i].cap);
        put_column(info, q, COL_ACCEPT + i, out);
        fputs(i + 1 < info->drafters ? "}" : "}}", out);
    }
}

// Writes distributions; a dense one becomes a list of the tokens with a probability above 0. The
// total probability not listed is always written.
static void put_rows(const dsc_request *q, dsc_model_side side, FILE *out)
{
    dsc_row row;
    fprintf(out, ",\"%s\":[", dsc_rows_name(side, DSC_ROWS_LISTED));
    for (int64_t j = 0; dsc_request_row(q, side, j, &row); j++) {
        fputs(j ? ",[" : "[", out);
        for (int64_t i = 0; i < row.count; i++) {
            float logp = dsc_row_logp(&row, i);
            if (isinf(logp))
                continue;
            fprintf(out, "[%lld,", (long long)(row.token ? row.token[i] : i));
            put_float(logp, out);
            fputs("],", out);
        }
        if (isinf(row.tail))
            fputs("null", out);
        else
            put_float(row.tail, out);
        putc(']', out);
    }
    putc(']', out);
}

static int put_jsonl(const dsc_export_format *f, const dsc_trace_info *info, const dsc_request *q,
                     FILE *out, dsc_error *err)
{
    (void)f;
    bool has_text = info->has_text;
    fputs("{\"id\":", out);
    int rc = put_string(q->id, out, q->index, "id", err);
    fputs(",\"prompt\":", out);
    if (!rc)
        rc = put_text(has_text ? &q->prompt_text : NULL, q->prompt, out, q->index, "prompt", err);
    fputs("},\"output\":", out);
    if (!rc)
        rc = put_text(has_text ? &q->output_text : NULL, q->output, out, q->index, "output", err);
    putc('}', out);
    if (!rc && q->references)
        rc = put_references(q, out, err);
    if (!rc)
        put_columns(info, q, out);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        if (q->rows[side].kind != DSC_ROWS_NONE)
            put_rows(q, side, out);
    if (!rc && q->metadata.length) {
        fputs(",\"metadata\":", out);
        // The metadata are parsed and written again, because those of other writers may span lines.
        json_t *metadata;
        json_error_t e;
        rc = dsc_json_load(&metadata, q->metadata.bytes, (size_t)q->metadata.length, JSON_ALLOW_NUL,
                           &e, err);
        if (rc != DSC_ENOMEM)
            rc = put_json(metadata, out, q->index, "metadata", err);
    }
    fputs("}\n", out);
    return rc;
}

static const dsc_export_format jsonl = {"jsonl", NULL, DSC_COLUMNS, put_jsonl};

static const dsc_export_format *find_format(const char *name)
{
    if (strcmp(name, jsonl.name) == 0)
        return &jsonl;
    for (int i = 0; i < DSC_CSV_FORMATS; i++)
        if (strcmp(name, dsc_csv_formats[i].name) == 0)
            return &dsc_csv_formats[i];
    return NULL;
}

typedef struct exporter {
    const dsc_trace_info *info;
    const dsc_export_format *format;
    FILE *out;
} exporter;

static int export_request(void *context, const dsc_request *q, dsc_error *err)
{
    const exporter *e = context;
    int rc = e->format->put(e->format, e->info, q, e->out, err);
    if (rc || !ferror(e->out))
        return rc;
    errno = 0; // the original value is lost; another try sets it again
    fflush(e->out);
    return dsc_fail_errno(err, DSC_EIO, errno ? errno : EIO,
                          "cannot write the export (request %lld)", (long long)q->index);
}

int dsc_trace_export(const dsc_trace *t, const char *format, FILE *out, dsc_error *err)
{
    const dsc_export_format *f = find_format(format);
    if (!f)
        return dsc_fail(err, DSC_EUSAGE,
                        "unknown export format '%s' (jsonl, csv, csv-steps or csv-positions)",
                        format);
    exporter e = {dsc_trace_get_info(t), f, out};
    int rc = f->head ? dsc_csv_begin(f, e.info, out, err) : DSC_OK;
    if (!rc)
        rc = dsc_trace_each(t, export_request, &e, err);
    if (!rc && (fflush(out) || ferror(out)))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot write the export");
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Writes CSV (RFC 4180): a row per request, per step or per output token. Numbers have 17 digits,
// so that a reader in double precision gets the recorded value. csv-steps and csv-positions have
// the recorded columns; arrays (ranks, statistics, rollouts) become a column for each element.
#include "traces/export/export_internal.h"

#include <inttypes.h>

// An id with commas, quotes or line ends is quoted, with quotes doubled.
static void put_id(const dsc_request *q, FILE *out)
{
    bool quote = false;
    for (int64_t i = 0; i < q->id.length; i++)
        quote = quote || strchr("\",\r\n", q->id.bytes[i]);
    fprintf(out, quote ? "%" PRId64 ",\"" : "%" PRId64 ",", q->index);
    for (int64_t i = 0; i < q->id.length; i++) {
        if (q->id.bytes[i] == '"')
            putc('"', out);
        putc(q->id.bytes[i], out);
    }
    if (quote)
        putc('"', out);
}

// --- requests ----------------------------------------------------------------------------------

static int put_request(const dsc_export_format *f, const dsc_trace_info *info, const dsc_request *q,
                       FILE *out, dsc_error *err)
{
    (void)f, (void)info, (void)err;
    put_id(q, out);
    fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\r\n", q->prompt.count,
            q->output.count, q->references,
            q->reference_offset[q->references] - q->reference_offset[0]);
    return DSC_OK;
}

// --- steps and positions -----------------------------------------------------------------------

static bool is_listed(const dsc_trace_info *info, int column, int counted_by)
{
    return dsc_columns[column].view && dsc_columns[column].counted_by == counted_by &&
           dsc_column_recorded(info, column);
}

// ",NAME" of each element of a column.
static void put_names(const dsc_trace_info *info, int column, FILE *out)
{
    const dsc_column_type *type = &dsc_columns[column];
    const char *name = dsc_field_name(type->field, 1);
    char buffer[DSC_COLUMN_NAME_BYTES];
    int64_t width = dsc_column_width(info, column);
    if (type->counted_by == COL_STEP_OFFSET) {
        fprintf(out, ",%s", type->name + strlen("step."));
    } else if (column >= COL_ACCEPT) {
        fprintf(out, ",%s", dsc_column_name(info, column, buffer));
    } else if (type->shape == SHAPE_KSEQ) {
        for (int k = 1; k <= info->statistics_k; k++)
            fprintf(out, ",kseq_rho_%d,kseq_beta_%d", k, k);
    } else if (type->shape == SHAPE_OTM) {
        for (int k = 1; k <= info->statistics_k; k++)
            for (int i = 0; i <= k; i++)
                fprintf(out, ",otm_%d_%d", k, i);
    } else if (type->shape == SHAPE_NUMBER) {
        fprintf(out, ",%s", name);
    } else if (type->field == FIELD_CANDIDATES || type->field == FIELD_MARGINALS) {
        const char *part = strchr(type->name, '.') + 1; // a field of several columns
        for (int64_t i = 0; i < width; i++)
            fprintf(out, ",%.*s_%s_%" PRId64, (int)(part - 1 - type->name), type->name, part, i);
    } else { // c_1 is the first of specinfer, the others are counted from 0
        for (int64_t i = 0; i < width; i++)
            fprintf(out, ",%s_%" PRId64, name, i + (type->shape == SHAPE_SPECINFER));
    }
}

static void put_values(const dsc_trace_info *info, const dsc_request *q, int column, int64_t place,
                       FILE *out)
{
    const dsc_column_type *type = &dsc_columns[column];
    const void *data = dsc_column_get(q, column, type->view);
    int64_t width = dsc_column_width(info, column);
    for (int64_t i = place * width; i < (place + 1) * width; i++) {
        if (type->dtype == DSC_F32)
            fprintf(out, ",%.17g", (double)((const float *)data)[i]);
        else if (type->dtype == DSC_U32)
            fprintf(out, ",%" PRIu32, ((const uint32_t *)data)[i]);
        else if (dsc_column_is_none(type, ((const uint16_t *)data)[i]))
            putc(',', out);
        else
            fprintf(out, ",%d", ((const uint16_t *)data)[i]);
    }
}

int dsc_csv_begin(const dsc_export_format *f, const dsc_trace_info *info, FILE *out, dsc_error *err)
{
    if (f->counted_by == COL_STEP_OFFSET && !info->steps)
        return dsc_fail(err, DSC_EUSAGE, "the trace has no steps; use csv or csv-positions");
    fputs(f->head, out);
    for (int c = 0; c < DSC_COLUMNS; c++)
        if (is_listed(info, c, f->counted_by))
            put_names(info, c, out);
    fputs("\r\n", out);
    return DSC_OK;
}

// A row for each step or output token.
static int put_places(const dsc_export_format *f, const dsc_trace_info *info, const dsc_request *q,
                      FILE *out, dsc_error *err)
{
    (void)err;
    const bool steps = f->counted_by == COL_STEP_OFFSET;
    const int64_t count = steps ? q->steps.count : q->output.count;
    for (int64_t i = 0; i < count && !ferror(out); i++) {
        put_id(q, out);
        fprintf(out, ",%" PRId64, i);
        if (!steps)
            fprintf(out, ",%" PRId32, q->output.id[i]);
        for (int c = 0; c < DSC_COLUMNS; c++)
            if (is_listed(info, c, f->counted_by))
                put_values(info, q, c, i, out);
        fputs("\r\n", out);
    }
    return DSC_OK;
}

const dsc_export_format dsc_csv_formats[DSC_CSV_FORMATS] = {
    {"csv", "request,id,prompt_tokens,output_tokens,references,reference_tokens", DSC_COLUMNS,
     put_request},
    {"csv-steps", "request,id,step", COL_STEP_OFFSET, put_places},
    {"csv-positions", "request,id,position,token", COL_OUTPUT_OFFSET, put_places},
};

// SPDX-License-Identifier: Apache-2.0
// Writes traces as NumPy's .npy files (numpy/lib/format, version 1.0), a file per column. The
// length of a column is known after the last shard, so the header is written again at the end. A
// column may be larger than memory, and every shard is read once.
#include "base/outfile.h"
#include "traces/import/import.h"
#include "traces/trace/trace_folder.h"
#include "traces/trace/trace_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { HEADER_BYTES = 128 }; // a multiple of 64; the longest header of three dimensions fits

typedef struct npy_column {
    FILE *file; // NULL: not recorded
    int64_t count;
    int64_t last; // the last offset written, for an offset column
} npy_column;

typedef struct npy_export {
    const dsc_trace_info *info;
    dsc_outfolder folder;
    npy_column column[DSC_COLUMNS];
} npy_export;

static bool is_npy(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

static const dsc_folder_kind npy_folder = {is_npy,        "folder", "a folder of .npy files",
                                           "a .npy file", "FOLDER", NULL};

// --- files -------------------------------------------------------------------------------------

static const char *descr(dsc_dtype dtype)
{
    switch (dtype) {
    case DSC_U8: return "|u1";
    case DSC_U16: return "<u2";
    case DSC_U32: return "<u4";
    case DSC_I64: return "<i8";
    default: return "<f4";
    }
}

static void put_header(const npy_export *e, int c)
{
    char shape[64], header[HEADER_BYTES + 1];
    int64_t inner[2];
    int dimensions = dsc_column_shape(e->info, c, inner);
    int n = snprintf(shape, sizeof shape, "%" PRId64 ",", e->column[c].count);
    for (int d = 0; d < dimensions; d++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, " %" PRId64 ",", inner[d]);
    if (dimensions)
        shape[n - 1] = '\0'; // only a tuple of one ends in a comma
    n = snprintf(header, sizeof header,
                 "\x93NUMPY\1%c\x76%c{'descr': '%s', 'fortran_order': False"
                 ", 'shape': (%s), }",
                 0, 0, descr(dsc_columns[c].dtype), shape);
    memset(header + n, ' ', (size_t)(HEADER_BYTES - 1 - n));
    header[HEADER_BYTES - 1] = '\n';
    fwrite(header, 1, HEADER_BYTES, e->column[c].file);
}

static int fail_write(const npy_export *e, int c, dsc_error *err)
{
    char name[DSC_COLUMN_NAME_BYTES];
    return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s/%s.npy", e->folder.temporary,
                          dsc_column_name(e->info, c, name));
}

static int open_column(npy_export *e, int c, dsc_error *err)
{
    char name[DSC_COLUMN_NAME_BYTES];
    dsc_buffer path = {0};
    npy_column *column = &e->column[c];
    int rc = dsc_buffer_printf(&path, err, "%s/%s.npy", e->folder.temporary,
                               dsc_column_name(e->info, c, name));
    if (rc)
        return rc;
    column->file = fopen(path.data, "wbx");
    dsc_buffer_fini(&path);
    if (!column->file)
        return fail_write(e, c, err);
    put_header(e, c);
    if (dsc_columns[c].values == VALUES_OFFSET) { // the first 0; those of the shards are dropped
        fwrite(&column->last, sizeof column->last, 1, column->file);
        column->count = 1;
    }
    return ferror(column->file) ? fail_write(e, c, err) : DSC_OK;
}

static int close_column(npy_export *e, int c, dsc_error *err)
{
    npy_column *column = &e->column[c];
    FILE *f = column->file;
    int rc = DSC_OK;
    if (!f)
        return DSC_OK;
    if (fseek(f, 0, SEEK_SET) == 0)
        put_header(e, c);
    if (ferror(f) || fflush(f) || fsync(fileno(f)))
        rc = fail_write(e, c, err);
    column->file = NULL;
    if (fclose(f) && !rc)
        rc = fail_write(e, c, err);
    return rc;
}

// --- data --------------------------------------------------------------------------------------

// Offsets of a shard continue those of the shards before it.
static void append_offsets(npy_column *column, const int64_t *offset, int64_t count)
{
    int64_t base = column->last;
    for (int64_t i = 1; i < count; i++) {
        column->last = base + offset[i];
        fwrite(&column->last, sizeof column->last, 1, column->file);
    }
    column->count += count - 1;
}

// bfloat16 is the upper half of a float.
static void append_bf16(npy_column *column, const uint16_t *x, int64_t count)
{
    enum { BLOCK = 4096 }; // numbers converted at a time
    uint32_t block[BLOCK];
    for (int64_t i = 0; i < count;) {
        int64_t n = count - i < BLOCK ? count - i : BLOCK;
        for (int64_t j = 0; j < n; j++)
            block[j] = (uint32_t)x[i + j] << 16;
        fwrite(block, sizeof *block, (size_t)n, column->file);
        i += n;
    }
}

static int append_shard(npy_export *e, const dsc_shard *s, dsc_error *err)
{
    for (int c = 0; c < DSC_COLUMNS; c++) {
        npy_column *column = &e->column[c];
        int64_t numbers = s->count[c] * dsc_column_width(e->info, c);
        if (!column->file)
            continue;
        if (dsc_columns[c].values == VALUES_OFFSET) {
            append_offsets(column, s->column[c], s->count[c]);
        } else {
            column->count += s->count[c];
            if (s->dtype[c] == DSC_BF16)
                append_bf16(column, s->column[c], numbers);
            else if (numbers)
                fwrite(s->column[c], dsc_dtype_bytes(s->dtype[c]), (size_t)numbers, column->file);
        }
        if (ferror(column->file))
            return fail_write(e, c, err);
    }
    return DSC_OK;
}

static int write_columns(npy_export *e, const dsc_trace *t, dsc_error *err)
{
    int rc = DSC_OK;
    for (int c = 0; c < DSC_COLUMNS && !rc; c++)
        if (dsc_column_recorded(e->info, c))
            rc = open_column(e, c, err);
    for (int64_t i = 0; i < dsc_trace_shards(t) && !rc; i++) {
        dsc_shard *s;
        rc = dsc_shard_open(&s, t, i, err);
        if (!rc)
            rc = append_shard(e, s, err);
        if (!rc)
            rc = dsc_shard_check(s, err);
        dsc_shard_close(s);
    }
    for (int c = 0; c < DSC_COLUMNS && !rc; c++)
        rc = close_column(e, c, err);
    return rc;
}

// Makes the files durable before the folder gets its final name.
static int publish(npy_export *e, dsc_error *err)
{
    char name[DSC_COLUMN_NAME_BYTES];
    dsc_buffer inside = {0};
    int rc = dsc_buffer_printf(&inside, err, "%s/%s.npy", e->folder.temporary,
                               dsc_column_name(e->info, COL_REQUEST_ID, name));
    if (!rc)
        rc = dsc_sync_folder(inside.data, err);
    dsc_buffer_fini(&inside);
    return rc ? rc : dsc_outfolder_commit(&e->folder, err);
}

int dsc_trace_export_npy(const dsc_trace *t, const char *path, bool force, dsc_error *err)
{
    npy_export e = {.info = dsc_trace_get_info(t)};
    int rc = dsc_outfolder_open(&e.folder, &npy_folder, path, force, err);
    if (!rc)
        rc = write_columns(&e, t, err);
    if (!rc)
        rc = publish(&e, err);
    for (int c = 0; c < DSC_COLUMNS; c++)
        if (e.column[c].file)
            fclose(e.column[c].file);
    dsc_outfolder_abort(&e.folder);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Resumable files of rows that are finished in any order, and their final order.
#include "sim/sweep/row_file.h"

#include "base/outfile.h"
#include "sim/sweep/resume.h"
#include "sim/sweep/row_table.h"
#include "sim/sweep/row_units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Hands out what is complete; *end: where it ends.
static int take_units(const dsc_row_file *f, dsc_shard_reader *r, size_t *end,
                      dsc_row_file_take *take, void *user, dsc_error *err)
{
    dsc_row_units units;
    dsc_row_memory memory = {0};
    dsc_cell *cell = NULL;
    int rc = dsc_row_units_init(&units, f->split.configurations, err);
    if (!rc)
        rc = dsc_row_units_read(&units, r, end, err);
    if (!rc)
        rc = dsc_new(&cell, f->head->columns, err);
    for (size_t i = 0; i < units.count && !rc; i++) {
        if (!units.unit[i].text)
            continue;
        rc = dsc_row_units_last(&units.unit[i], f->head, &memory, cell, err);
        if (!rc)
            rc = take(user, i, cell, err);
    }
    free(cell);
    dsc_row_memory_fini(&memory);
    dsc_row_units_fini(&units);
    return rc;
}

int dsc_row_file_open(dsc_row_file *f, const char *path, bool force, const dsc_table *head,
                      const dsc_split *split, dsc_row_file_take *take, void *user, dsc_error *err)
{
    dsc_shard_reader r = {0};
    bool fresh = true;
    size_t end = 0;
    *f = (dsc_row_file){.head = head, .split = *split, .synced_s = now_s()};
    int rc = dsc_part_file_open(&f->file, path, force, err);
    if (!rc)
        rc = dsc_resume_shard(&f->file, head, split, &r, &fresh, err);
    if (!rc && !fresh)
        rc = take_units(f, &r, &end, take, user, err);
    if (!rc && !fresh)
        rc = dsc_part_file_cut(&f->file, (long)end, err);
    dsc_shard_reader_close(&r);
    if (!rc && fresh)
        rc = dsc_row_table_head(head, split, f->file.stream, err);
    if (!rc && fresh)
        rc = dsc_part_file_flush(&f->file, err);
    if (rc)
        dsc_part_file_close(&f->file);
    return rc;
}

int dsc_row_file_add(dsc_row_file *f, int64_t unit, const dsc_table *rows, int64_t left,
                     dsc_error *err)
{
    const int64_t n = (int64_t)rows->rows;
    for (int64_t i = 0; i < n; i++)
        dsc_row_table_row(rows, (size_t)i, unit, left + n - 1 - i, f->file.stream);
    return ferror(f->file.stream) ? dsc_part_file_flush(&f->file, err) : DSC_OK;
}

// Waiting for the disk after each row would take longer than many a row.
int dsc_row_file_flush(dsc_row_file *f, dsc_error *err)
{
    enum { SECONDS = 1 };
    if (now_s() - f->synced_s < SECONDS && !fflush(f->file.stream))
        return DSC_OK;
    f->synced_s = now_s();
    return dsc_part_file_flush(&f->file, err);
}

// --- the final order -----------------------------------------------------------------------------

// The rows in their order, before they get the final name. A command that is killed here leaves it
// to the next one, which makes it anew, so the name is not a random one.
typedef struct sorted {
    dsc_buffer name;
    FILE *stream;
} sorted;

static int sorted_error(const sorted *s, dsc_error *err)
{
    return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", s->name.data);
}

static int open_sorted(sorted *s, const dsc_row_file *f, dsc_error *err)
{
    int rc = dsc_buffer_printf(&s->name, err, "%s.sorted", f->file.part);
    if (rc)
        return rc;
    unlink(s->name.data);
    const int fd = open(s->name.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    s->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (s->stream)
        return DSC_OK;
    rc = sorted_error(s, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int publish(sorted *s, const dsc_row_file *f, dsc_error *err)
{
    if (fflush(s->stream) || ferror(s->stream) || fsync(fileno(s->stream)))
        return sorted_error(s, err);
    return dsc_publish(s->name.data, f->file.path, f->file.force, err);
}

static void close_sorted(sorted *s, bool published)
{
    if (s->stream)
        fclose(s->stream);
    if (s->stream && !published)
        unlink(s->name.data);
    dsc_buffer_fini(&s->name);
}

static int write_head(const dsc_row_file *f, bool shard, bool jsonl, FILE *out, dsc_error *err)
{
    dsc_table result = {0};
    if (shard)
        return dsc_row_table_head(f->head, &f->split, out, err);
    const int rc = dsc_row_table_result(&result, f->head, err);
    if (!rc && jsonl)
        dsc_table_write_jsonl_head(&result, out);
    else if (!rc)
        dsc_table_write_tsv_head(&result, out);
    dsc_table_fini(&result);
    return rc;
}

int dsc_row_file_finish(dsc_row_file *f, bool shard, bool jsonl, dsc_error *err)
{
    dsc_shard_reader r = {0};
    dsc_row_units units = {0};
    sorted out = {0};
    size_t end;
    int rc = dsc_part_file_flush(&f->file, err);
    if (!rc)
        rc = dsc_shard_reader_open(&r, f->file.part, err);
    if (!rc)
        rc = dsc_row_units_init(&units, f->split.configurations, err);
    if (!rc)
        rc = dsc_row_units_read(&units, &r, &end, err);
    if (!rc)
        rc = open_sorted(&out, f, err);
    if (!rc)
        rc = write_head(f, shard, jsonl, out.stream, err);
    if (!rc)
        rc = dsc_row_units_write(&units, f->head, shard, jsonl && !shard, out.stream, err);
    if (!rc)
        rc = publish(&out, f, err);
    close_sorted(&out, !rc);
    dsc_row_units_fini(&units);
    dsc_shard_reader_close(&r);
    if (!rc)
        dsc_row_file_close(f, false);
    return rc;
}

void dsc_row_file_close(dsc_row_file *f, bool keep)
{
    if (f->file.stream && !keep)
        unlink(f->file.part);
    dsc_part_file_close(&f->file);
}

// SPDX-License-Identifier: Apache-2.0
// Resumable result files: locking, cutting after complete lines, syncing and renaming.
#include "sim/sweep/part_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_error(const dsc_part_file *f, dsc_error *err)
{
    return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", f->part);
}

int dsc_part_file_open(dsc_part_file *f, const char *path, bool force, dsc_error *err)
{
    struct stat st;
    bool exists = lstat(path, &st) == 0;
    *f = (dsc_part_file){.path = path};
    if (exists && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s is not a regular file", path);
    if (exists && !force)
        return dsc_fail(err, DSC_EUSAGE, "%s exists already (--force to replace it)", path);
    dsc_buffer part = {0};
    int rc = dsc_buffer_printf(&part, err, "%s.part", path);
    f->part = part.data;
    if (rc)
        return rc;
    int fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return write_error(f, err);
    if (flock(fd, LOCK_EX | LOCK_NB))
        rc = dsc_fail(err, DSC_EUSAGE, "%s is being written by another sweep", f->part);
    else if (force && ftruncate(fd, 0))
        rc = write_error(f, err);
    else if (!(f->stream = fdopen(fd, "r+b")))
        rc = write_error(f, err);
    if (!f->stream)
        close(fd);
    return rc;
}

int dsc_part_file_cut(dsc_part_file *f, long length, dsc_error *err)
{
    if (fseek(f->stream, length, SEEK_SET) || ftruncate(fileno(f->stream), length))
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot take up %s", f->part);
    return DSC_OK;
}

int dsc_part_file_cut_lines(dsc_part_file *f, size_t count, long *length, dsc_error *err)
{
    int c;
    size_t lines = 0;
    rewind(f->stream);
    while ((c = getc(f->stream)) != EOF)
        lines += c == '\n';
    rewind(f->stream);
    *length = 0;
    for (size_t kept = 0; kept + count < lines && (c = getc(f->stream)) != EOF; ++*length)
        kept += c == '\n';
    if (ferror(f->stream))
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot take up %s", f->part);
    return dsc_part_file_cut(f, *length, err);
}

int dsc_part_file_flush(dsc_part_file *f, dsc_error *err)
{
    if (fflush(f->stream) || ferror(f->stream) || fsync(fileno(f->stream)))
        return write_error(f, err);
    return DSC_OK;
}

int dsc_part_file_finish(dsc_part_file *f, dsc_error *err)
{
    int rc = dsc_part_file_flush(f, err);
    if (!rc && rename(f->part, f->path))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s", f->part);
    return rc ? rc : dsc_sync_folder(f->path, err);
}

void dsc_part_file_close(dsc_part_file *f)
{
    if (f->stream)
        fclose(f->stream);
    free(f->part);
    *f = (dsc_part_file){0};
}

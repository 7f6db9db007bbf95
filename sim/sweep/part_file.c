// SPDX-License-Identifier: Apache-2.0
// Resumable result files: locking, cutting after complete lines, syncing and renaming.
#include "sim/sweep/part_file.h"

#include "base/outfile.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_error(const dsc_part_file *f, dsc_error *err)
{
    return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", f->part ? f->part : f->path);
}

// Returns whether the file is empty or begins, as far as it goes, like a table of a sweep.
static bool is_ours(int fd)
{
    static const char *const head[] = {"# draftscope: ", "{\"#\": {\"drafts"};
    char begin[14];
    const ssize_t n = pread(fd, begin, sizeof begin, 0);
    for (size_t i = 0; i < sizeof head / sizeof *head && n >= 0; i++)
        if (!memcmp(begin, head[i], (size_t)n))
            return true;
    return false;
}

// Returns whether PATH.part still leads to the open file. Another sweep may have renamed it to PATH
// between open and lock.
static bool is_current(int fd, const char *part)
{
    struct stat opened, named;
    return !fstat(fd, &opened) && !lstat(part, &named) && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

static int check_part(int fd, const char *part, dsc_error *err)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return dsc_fail(err, DSC_EUSAGE, "%s is being written by another sweep", part);
    if (!is_current(fd, part))
        return dsc_fail(err, DSC_EUSAGE, "%s was just finished by another sweep; try again", part);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_ours(fd))
        return dsc_fail(
            err, DSC_EUSAGE,
            "%s is not the file of an unfinished sweep; rename it (nothing was changed)", part);
    return DSC_OK;
}

static int open_part(dsc_part_file *f, bool force, dsc_error *err)
{
    int fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0)
        return errno == ELOOP
                   ? dsc_fail(err, DSC_EUSAGE, "%s is a symbolic link; remove it", f->part)
                   : write_error(f, err);
    int rc = check_part(fd, f->part, err);
    if (!rc && force && ftruncate(fd, 0))
        rc = write_error(f, err);
    if (!rc && !(f->stream = fdopen(fd, "r+b")))
        rc = write_error(f, err);
    if (!f->stream)
        close(fd);
    return rc;
}

int dsc_part_file_open(dsc_part_file *f, const char *path, bool force, dsc_error *err)
{
    *f = (dsc_part_file){.path = path, .force = force};
    if (!strcmp(path, "-")) {
        f->stream = tmpfile();
        return f->stream ? DSC_OK
                         : dsc_fail_errno(err, DSC_EIO, errno, "cannot make a temporary file");
    }
    dsc_buffer part = {0};
    int rc = dsc_outfile_check(path, force, err);
    if (!rc)
        rc = dsc_buffer_printf(&part, err, "%s.part", path);
    f->part = part.data;
    return rc ? rc : open_part(f, force, err);
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

// Copies the table to the path "-".
static int copy_out(dsc_part_file *f, dsc_error *err)
{
    char block[1 << 14];
    size_t n;
    dsc_outfile out;
    int rc = dsc_outfile_open(&out, f->path, false, err);
    if (rc)
        return rc;
    rewind(f->stream);
    while ((n = fread(block, 1, sizeof block, f->stream)))
        fwrite(block, 1, n, out.stream);
    if (ferror(f->stream))
        rc = write_error(f, err);
    if (!rc)
        rc = dsc_outfile_commit(&out, err);
    dsc_outfile_abort(&out);
    return rc;
}

int dsc_part_file_finish(dsc_part_file *f, dsc_error *err)
{
    int rc = dsc_part_file_flush(f, err);
    if (rc)
        return rc;
    return f->part ? dsc_publish(f->part, f->path, f->force, err) : copy_out(f, err);
}

void dsc_part_file_close(dsc_part_file *f)
{
    if (f->stream)
        fclose(f->stream);
    free(f->part);
    *f = (dsc_part_file){0};
}

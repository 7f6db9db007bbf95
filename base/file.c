// SPDX-License-Identifier: Apache-2.0
// Whole input files, read or mapped. base/file.h.
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int append_chunk(dsc_buffer *b, const char *chunk, size_t n, const char *path, size_t limit,
                        bool text, dsc_error *err)
{
    if (n > limit - b->length)
        return dsc_fail(err, DSC_EINPUT, "%s: longer than the limit of %zu bytes", path, limit);
    const char *nul = text ? memchr(chunk, 0, n) : NULL;
    if (nul)
        return dsc_fail(err, DSC_EINPUT, "%s: not a text file: byte %zu is NUL", path,
                        b->length + (size_t)(nul - chunk));
    return dsc_buffer_append(b, chunk, n, err);
}

static int read_whole(char **out, size_t *length, const char *path, size_t limit, bool text,
                      dsc_error *err)
{
    *out = NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    dsc_buffer b = {0};
    struct stat st;
    int rc = dsc_buffer_append(&b, "", 0, err);
    if (!rc && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) && (uintmax_t)st.st_size > limit)
        rc = dsc_fail(err, DSC_EINPUT, "%s: longer than the limit of %zu bytes", path, limit);
    char chunk[1 << 16];
    size_t n;
    while (!rc && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        rc = append_chunk(&b, chunk, n, path, limit, text, err);
    if (!rc && ferror(f))
        rc = dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    fclose(f);
    if (rc) {
        dsc_buffer_fini(&b);
        return rc;
    }
    *out = b.data;
    *length = b.length;
    return DSC_OK;
}

int dsc_read_file(char **out, size_t *length, const char *path, size_t limit, dsc_error *err)
{
    return read_whole(out, length, path, limit, false, err);
}

int dsc_read_text(char **out, const char *path, size_t limit, dsc_error *err)
{
    size_t length;
    return read_whole(out, &length, path, limit, true, err);
}

int dsc_check_regular(const char *path, dsc_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    return S_ISREG(st.st_mode) ? DSC_OK : dsc_fail(err, DSC_EINPUT, "%s: not a regular file", path);
}

int dsc_check_unchanged(const char *path, const struct stat *before, dsc_error *err)
{
    struct stat now;
    if (!stat(path, &now) && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
        now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: changed while it was read. Run the command again after the program that "
                    "writes the file has ended",
                    path);
}

int dsc_map_file(void **map, size_t *bytes, const char *path, size_t least, const char *kind,
                 dsc_error *err)
{
    struct stat st;
    int rc = DSC_OK;
    // O_NONBLOCK: a FIFO under this name must be refused, not waited for.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st))
        rc = dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        rc = dsc_fail(err, DSC_EINPUT, "%s: not a regular file", path);
    else if (st.st_size == 0 && least == 1)
        rc = dsc_fail(err, DSC_EINPUT, "%s: empty file", path);
    else if ((uintmax_t)st.st_size < least)
        rc = dsc_fail(err, DSC_EINPUT, "%s: truncated: %lld bytes, %s has %zu at least", path,
                      (long long)st.st_size, kind, least);
    else if ((uintmax_t)st.st_size > SIZE_MAX / 2)
        rc = dsc_fail(err, DSC_ENOMEM, "%s: too large to be mapped", path);
    if (!rc) {
        *bytes = (size_t)st.st_size;
        *map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (*map == MAP_FAILED) {
            *map = NULL;
            rc = dsc_fail_errno(err, DSC_EINPUT, errno, "%s: cannot map %zu bytes", path, *bytes);
        }
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Output files by rename: PATH.tmp is written, flushed, synced and renamed, and the folder is
// synced; and whole input files, read or mapped. base/file.h.
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

int dsc_outfile_open(dsc_outfile *f, const char *path, bool force, dsc_error *err)
{
    *f = (dsc_outfile){0};
    struct stat st;
    bool exists = lstat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s is %s", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    if (exists && !force)
        return dsc_fail(err, DSC_EUSAGE, "%s exists already (--force to replace it)", path);
    dsc_buffer temporary = {0};
    int rc = dsc_strndup(&f->path, path, strlen(path), err);
    if (!rc)
        rc = dsc_buffer_printf(&temporary, err, "%s.tmp", path);
    if (rc) {
        dsc_outfile_abort(f);
        return rc;
    }
    f->temporary = temporary.data;
    f->stream = fopen(f->temporary, "wb");
    if (!f->stream) {
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", path);
        dsc_outfile_abort(f);
    }
    return rc;
}

int dsc_sync_folder(const char *path, dsc_error *err)
{
    char *folder = strdup(path);
    if (!folder)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY), rc = DSC_OK;
    // Some file systems cannot sync a folder and return EINVAL. Nothing more can be done there.
    if (fd < 0 || (fsync(fd) && errno != EINVAL))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot sync the folder of %s", path);
    if (fd >= 0)
        close(fd);
    free(folder);
    return rc;
}

int dsc_outfile_commit(dsc_outfile *f, dsc_error *err)
{
    int rc = DSC_OK;
    errno = 0;
    bool bad = fflush(f->stream) || ferror(f->stream) || fsync(fileno(f->stream));
    int why = errno;
    if (fclose(f->stream)) {
        why = bad ? why : errno;
        bad = true;
    }
    f->stream = NULL;
    if (bad && why)
        rc = dsc_fail_errno(err, DSC_EIO, why, "cannot write %s", f->path);
    else if (bad) // stdio records that a write failed, not why
        rc = dsc_fail(err, DSC_EIO, "cannot write %s: a write failed (disk full?)", f->path);
    else if (rename(f->temporary, f->path))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s", f->temporary);
    else
        rc = dsc_sync_folder(f->path, err);
    if (!rc) {
        free(f->temporary);
        f->temporary = NULL;
    }
    dsc_outfile_abort(f);
    return rc;
}

void dsc_outfile_abort(dsc_outfile *f)
{
    if (f->stream)
        fclose(f->stream);
    if (f->temporary)
        unlink(f->temporary);
    free(f->path);
    free(f->temporary);
    *f = (dsc_outfile){0};
}

int dsc_read_file(char **out, size_t *length, const char *path, size_t limit, dsc_error *err)
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
    while (!rc && (n = fread(chunk, 1, sizeof chunk, f)) > 0) {
        if (n > limit - b.length)
            rc = dsc_fail(err, DSC_EINPUT, "%s: longer than the limit of %zu bytes", path, limit);
        else
            rc = dsc_buffer_append(&b, chunk, n, err);
    }
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

int dsc_check_regular(const char *path, dsc_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    return S_ISREG(st.st_mode) ? DSC_OK : dsc_fail(err, DSC_EINPUT, "%s: not a regular file", path);
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

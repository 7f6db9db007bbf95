// SPDX-License-Identifier: Apache-2.0
// Checks, locks, makes, renames and removes folders. Only a folder that contains nothing but files
// of its kind is replaced or removed, so that no other file of the user is lost.
#include "traces/trace/trace_folder.h"

#include "base/memory.h"
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

// The length of the final name that a temporary name begins with: NAME.RANDOM.tmp, or NAME.tmp of
// contrib/python/draftscope/_writer.py. 0: the name is not temporary.
static size_t final_length(const char *name)
{
    size_t n = strlen(name), length = dsc_outfile_final_length(name, n);
    return length || n <= 4 || strcmp(name + n - 4, ".tmp") != 0 ? length : n - 4;
}

// "manifest.json" or "shard-NNNNN.safetensors" (five digits or more), or a temporary
// name of either.
static bool is_part(const char *name)
{
    size_t n = final_length(name), digits;
    if (n == 0)
        n = strlen(name);
    if (n == strlen("manifest.json") && !memcmp(name, "manifest.json", n))
        return true;
    if (strncmp(name, "shard-", 6) != 0)
        return false;
    digits = strspn(name + 6, "0123456789");
    return digits >= 5 && n == 6 + digits + strlen(".safetensors") &&
           !memcmp(name + 6 + digits, ".safetensors", strlen(".safetensors"));
}

const dsc_folder_kind dsc_trace_folder = {is_part,           "trace",    "a trace folder",
                                          "part of a trace", "NAME.dst", "manifest.json"};

// *out is NULL when nothing has that name.
static int open_folder(DIR **out, const dsc_folder_kind *kind, const char *path, dsc_error *err)
{
    *out = NULL;
    struct stat st;
    if (lstat(path, &st))
        return errno == ENOENT ? DSC_OK
                               : dsc_fail_errno(err, DSC_EIO, errno, "cannot stat %s", path);
    // The folder that a symbolic link points to is not replaced.
    if (!S_ISDIR(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s exists and is not %s", path, kind->name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot open %s", path);
    *out = fdopendir(fd);
    if (*out)
        return DSC_OK;
    int why = errno;
    close(fd);
    return dsc_fail_errno(err, DSC_EIO, why, "cannot read %s", path);
}

// Checks all names, and removes the files if `removing`. Callers check all names first.
static int scan_folder(DIR *folder, const dsc_folder_kind *kind, const char *path, bool removing,
                       bool *indexed, dsc_error *err)
{
    struct dirent *entry;
    rewinddir(folder);
    while ((errno = 0, entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (!kind->is_part(name))
            return dsc_fail(err, DSC_EUSAGE,
                            "%s contains '%.255s', which is not %s; nothing was changed", path,
                            name, kind->part);
        *indexed |= kind->index && !strcmp(name, kind->index);
        if (removing && unlinkat(dirfd(folder), name, 0))
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/%.255s", path, name);
    }
    return errno ? dsc_fail_errno(err, DSC_EIO, errno, "cannot read %s", path) : DSC_OK;
}

// *exists: whether anything has that name. It must be a folder of its kind, with its index if it is
// `complete`.
static int check_folder(const dsc_folder_kind *kind, const char *path, bool complete, bool *exists,
                        dsc_error *err)
{
    DIR *folder;
    bool indexed = false;
    int rc = open_folder(&folder, kind, path, err);
    *exists = rc || folder;
    if (rc || !folder)
        return rc;
    rc = scan_folder(folder, kind, path, false, &indexed, err);
    if (!rc && complete && kind->index && !indexed)
        rc = dsc_fail(err, DSC_EUSAGE, "%s has no %s, so it is not a trace; nothing was changed",
                      path, kind->index);
    closedir(folder);
    return rc;
}

static int remove_folder(const dsc_folder_kind *kind, const char *path, dsc_error *err)
{
    DIR *folder;
    bool indexed = false;
    int rc = open_folder(&folder, kind, path, err);
    if (rc || !folder)
        return rc;
    rc = scan_folder(folder, kind, path, false, &indexed, err);
    // The index goes first, so that a kill halfway leaves no manifest of missing shards.
    if (!rc && indexed && unlinkat(dirfd(folder), kind->index, 0))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/%s", path, kind->index);
    if (!rc)
        rc = scan_folder(folder, kind, path, true, &indexed, err);
    closedir(folder);
    if (!rc && rmdir(path))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s", path);
    return rc;
}

// On a file system without locks (ENOLCK, EOPNOTSUPP) the folder is used without a lock.
static int lock(int fd, const char *path, dsc_error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return dsc_fail(err, DSC_EUSAGE, "%s is being written by another run", path);
    return DSC_OK;
}

// Locks an existing folder for one writer; closing *fd releases the lock.
static int lock_folder(const char *path, int *fd, dsc_error *err)
{
    struct stat locked, named;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return dsc_fail_errno(err, DSC_EINPUT, errno, "cannot open %s", path);
    int rc = lock(*fd, path, err);
    // Another run may have replaced the folder since it was opened.
    if (!rc && (fstat(*fd, &locked) || stat(path, &named) || locked.st_ino != named.st_ino ||
                locked.st_dev != named.st_dev))
        rc = dsc_fail(err, DSC_EUSAGE, "%s was just replaced by another run; try again", path);
    if (rc) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

static int set_path(dsc_outfolder *f, const char *path, dsc_error *err)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    int rc = dsc_strndup(&f->path, path, n, err);
    if (rc)
        return rc;
    const char *slash = strrchr(f->path, '/'), *base = slash ? slash + 1 : f->path;
    if (!*base || !strcmp(base, ".") || !strcmp(base, "..") || !strcmp(f->path, "-"))
        rc = dsc_fail(err, DSC_EUSAGE, "'%s' cannot be the name of a %s; use %s", path,
                      f->kind->noun, f->kind->example);
    return rc;
}

static int extend_path(char **out, const dsc_outfolder *f, const char *end, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s%s", f->path, end);
    *out = b.data;
    return rc;
}

// Checks that the final name is free or may be replaced, before any work and again at the end.
static int check_target(const dsc_outfolder *f, bool *exists, dsc_error *err)
{
    struct stat st;
    bool old;
    *exists = lstat(f->path, &st) == 0;
    if (!*exists)
        return DSC_OK;
    if (!f->force)
        return dsc_fail(err, DSC_EUSAGE, "%s exists already (--force replaces it)", f->path);
    int rc = check_folder(f->kind, f->path, true, exists, err);
    return rc ? rc : check_folder(f->kind, f->old, false, &old, err);
}

// Makes and locks the temporary folder.
static int make_temporary(dsc_outfolder *f, dsc_error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int rc = DSC_OK, left = open(f->temporary, flags); // by a killed run
    if (left >= 0) {
        rc = lock(left, f->temporary, err);
        if (!rc)
            rc = remove_folder(f->kind, f->temporary, err);
        close(left);
    }
    if (!rc && mkdir(f->temporary, 0777))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot make the folder %s", f->temporary);
    if (rc)
        return rc;
    f->lock = open(f->temporary, flags);
    if (f->lock < 0)
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot open %s", f->temporary);
    rc = lock(f->lock, f->temporary, err);
    if (rc) {
        close(f->lock); // an abort must not remove what another run holds
        f->lock = -1;
    }
    return rc;
}

int dsc_outfolder_open(dsc_outfolder *f, const dsc_folder_kind *kind, const char *path, bool force,
                       dsc_error *err)
{
    bool exists;
    *f = (dsc_outfolder){.kind = kind, .lock = -1, .force = force};
    int rc = set_path(f, path, err);
    if (!rc)
        rc = extend_path(&f->temporary, f, ".tmp", err);
    if (!rc)
        rc = extend_path(&f->old, f, ".old", err);
    if (!rc)
        rc = check_target(f, &exists, err);
    return rc ? rc : make_temporary(f, err);
}

int dsc_outfolder_append(dsc_outfolder *f, const char *path, dsc_error *err)
{
    *f = (dsc_outfolder){.kind = &dsc_trace_folder, .lock = -1};
    int rc = set_path(f, path, err);
    return rc ? rc : lock_folder(f->path, &f->lock, err);
}

// Renames the temporary folder to the final name. An existing folder is moved aside first, and back
// on failure.
static int take_name(const dsc_outfolder *f, bool exists, dsc_error *err)
{
    int rc = DSC_OK;
    if (exists)
        rc = remove_folder(f->kind, f->old, err); // left by a killed run
    if (!rc && exists && rename(f->path, f->old))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s", f->path);
    if (rc || !rename(f->temporary, f->path))
        return rc;
    rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s to %s", f->temporary, f->path);
    if (exists)
        rename(f->old, f->path);
    return rc;
}

// An existing folder is locked first, so that no other run appends to it while it is replaced.
int dsc_outfolder_commit(dsc_outfolder *f, dsc_error *err)
{
    bool exists;
    int held = -1, rc = check_target(f, &exists, err);
    if (rc)
        return rc;
    if (exists)
        rc = lock_folder(f->path, &held, err);
    if (!rc)
        rc = take_name(f, exists, err);
    f->keep = rc;
    if (rc)
        dsc_error_prefix(err, rc, "the %s is complete and kept in %s", f->kind->noun, f->temporary);
    if (!rc) {
        free(f->temporary); // an abort has nothing to remove
        f->temporary = NULL;
        rc = dsc_sync_folder(f->path, err);
    }
    if (!rc && exists && (rc = remove_folder(f->kind, f->old, err)))
        dsc_error_prefix(err, rc, "%s is complete, but the %s it replaced was not removed", f->path,
                         f->kind->noun);
    if (held >= 0)
        close(held);
    return rc;
}

void dsc_outfolder_abort(dsc_outfolder *f)
{
    if (f->lock >= 0) {
        if (f->temporary && !f->keep)
            remove_folder(f->kind, f->temporary, NULL);
        close(f->lock);
    }
    free(f->path);
    free(f->temporary);
    free(f->old);
    *f = (dsc_outfolder){.lock = -1};
}

int dsc_trace_folder_trim(const char *path, size_t shards, dsc_error *err)
{
    struct dirent *entry;
    int rc = DSC_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot read %s", path);
    while (!rc && (errno = 0, entry = readdir(folder))) {
        const char *name = entry->d_name;
        bool beyond = !strncmp(name, "shard-", 6) && strtoull(name + 6, NULL, 10) >= shards;
        if (is_part(name) && (beyond || final_length(name)) && unlinkat(dirfd(folder), name, 0))
            rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/%.255s", path, name);
    }
    if (!rc && errno)
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot read %s", path);
    closedir(folder);
    return rc;
}

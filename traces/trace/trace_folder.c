// SPDX-License-Identifier: Apache-2.0
// Checks, locks, makes and removes the folders of traces. Only a folder that contains nothing but
// files of a trace is replaced or removed, so that no other file of the user is lost.
#include "traces/trace/trace_folder.h"

#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

// The length of the final name behind a temporary one: NAME.RANDOM.tmp, or NAME.tmp of
// contrib/write_trace.py. 0: the name is not temporary.
static size_t final_length(const char *name)
{
    size_t n = strlen(name), length = dsc_outfile_final_length(name, n);
    return length || n <= 4 || strcmp(name + n - 4, ".tmp") != 0 ? length : n - 4;
}

// "manifest.json" or "shard-NNNNN.safetensors" (five digits or more), or a temporary name of
// either.
static bool ours(const char *name)
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

// *out is NULL when nothing has that name.
static int open_folder(DIR **out, const char *path, dsc_error *err)
{
    *out = NULL;
    struct stat st;
    if (lstat(path, &st))
        return errno == ENOENT ? DSC_OK
                               : dsc_fail_errno(err, DSC_EIO, errno, "cannot stat %s", path);
    // The folder that a symbolic link points to is not replaced.
    if (!S_ISDIR(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s exists and is not a trace folder", path);
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
static int scan_folder(DIR *folder, const char *path, bool removing, bool *manifest, dsc_error *err)
{
    struct dirent *entry;
    rewinddir(folder);
    while ((errno = 0, entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (!ours(name))
            return dsc_fail(
                err, DSC_EUSAGE,
                "%s contains '%.255s', which is not part of a trace; nothing was changed", path,
                name);
        *manifest |= !strcmp(name, "manifest.json");
        if (removing && unlinkat(dirfd(folder), name, 0))
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/%.255s", path, name);
    }
    return errno ? dsc_fail_errno(err, DSC_EIO, errno, "cannot read %s", path) : DSC_OK;
}

int dsc_trace_folder_check(const char *path, bool with_manifest, bool *exists, dsc_error *err)
{
    DIR *folder;
    bool manifest = false;
    *exists = false;
    int rc = open_folder(&folder, path, err);
    if (rc || !folder)
        return rc;
    *exists = true;
    rc = scan_folder(folder, path, false, &manifest, err);
    if (!rc && with_manifest && !manifest)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "%s has no manifest.json, so it is not a trace; nothing was changed", path);
    closedir(folder);
    return rc;
}

int dsc_trace_folder_remove(const char *path, dsc_error *err)
{
    DIR *folder;
    bool manifest = false;
    int rc = open_folder(&folder, path, err);
    if (rc || !folder)
        return rc;
    rc = scan_folder(folder, path, false, &manifest, err);
    // The manifest goes first, so that a kill halfway leaves no manifest of missing shards.
    if (!rc && manifest && unlinkat(dirfd(folder), "manifest.json", 0))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/manifest.json", path);
    if (!rc)
        rc = scan_folder(folder, path, true, &manifest, err);
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
        if (ours(name) && (beyond || final_length(name)) && unlinkat(dirfd(folder), name, 0))
            rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot remove %s/%.255s", path, name);
    }
    if (!rc && errno)
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot read %s", path);
    closedir(folder);
    return rc;
}

int dsc_trace_folder_lock(const char *path, int *fd, dsc_error *err)
{
    struct stat locked, named;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return dsc_fail_errno(err, DSC_EINPUT, errno, "cannot open %s", path);
    int rc = lock(*fd, path, err);
    // Another run may have replaced the trace since it was opened.
    if (!rc && (fstat(*fd, &locked) || stat(path, &named) || locked.st_ino != named.st_ino ||
                locked.st_dev != named.st_dev))
        rc = dsc_fail(err, DSC_EUSAGE, "%s was just replaced by another run; try again", path);
    if (rc) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

int dsc_trace_folder_make(const char *path, int *fd, dsc_error *err)
{
    int rc = DSC_OK;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0) {
        rc = lock(*fd, path, err);
        if (!rc)
            rc = dsc_trace_folder_remove(path, err);
        close(*fd);
        *fd = -1;
        if (rc)
            return rc;
    }
    if (mkdir(path, 0777))
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot make the folder %s", path);
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot open %s", path);
    if (!rc)
        rc = lock(*fd, path, err);
    if (rc && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

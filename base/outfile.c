// SPDX-License-Identifier: Apache-2.0
// Writes NAME.RANDOM.tmp (created exclusively, following no link), syncs it, and links or renames
// it to NAME. linkat refuses a name that is taken, so a file is replaced only on request.
#include "base/outfile.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
enum {
    RANDOM = 8,              // letters in a temporary name
    SUFFIX = 1 + RANDOM + 4, // ".RANDOM.tmp"
    ATTEMPTS = 100,          // names tried before giving up
    MODE_BITS = S_IRWXU | S_IRWXG | S_IRWXO,
};

static int exists_already(const char *path, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE, "%s exists already (--force to replace it)", path);
}

static int check_name(const char *path, bool force, dsc_error *err)
{
    struct stat st;
    if (!*path)
        return dsc_fail(err, DSC_EUSAGE, "the name of the output is empty");
    if (lstat(path, &st))
        return DSC_OK; // a missing folder shows when the file is created
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s is %s", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    return force ? DSC_OK : exists_already(path, err);
}

// Creates the file of a random name. `name` ends in SUFFIX bytes to be filled in.
static int create(char *name, size_t length)
{
    unsigned char byte[RANDOM];
    char *at = name + length - SUFFIX;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (getrandom(byte, sizeof byte, 0) != (ssize_t)sizeof byte)
            return -1;
        for (int k = 0; k < RANDOM; k++)
            at[1 + k] = letters[byte[k] % (sizeof letters - 1)];
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int open_temporary(dsc_outfile *f, dsc_error *err)
{
    dsc_buffer name = {0};
    int rc = dsc_buffer_printf(&name, err, "%s.%*s.tmp", f->path, RANDOM, "");
    if (rc)
        return rc;
    int fd = create(name.data, name.length);
    if (fd >= 0)
        f->stream = fdopen(fd, "wb");
    if (f->stream) {
        f->temporary = name.data;
        return DSC_OK;
    }
    rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", f->path);
    if (fd >= 0) {
        close(fd);
        unlink(name.data);
    }
    dsc_buffer_fini(&name);
    return rc;
}

int dsc_outfile_open(dsc_outfile *f, const char *path, bool force, dsc_error *err)
{
    *f = (dsc_outfile){.replace = force};
    bool standard = strcmp(path, "-") == 0;
    int rc = standard ? DSC_OK : check_name(path, force, err);
    if (!rc)
        rc = dsc_strndup(&f->path, standard ? "standard output" : path,
                         standard ? strlen("standard output") : strlen(path), err);
    if (!rc && standard)
        f->stream = stdout;
    else if (!rc)
        rc = open_temporary(f, err);
    if (rc)
        dsc_outfile_abort(f);
    return rc;
}

// The folder of a path, to be freed; NULL when out of memory.
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

// A nameless file shows as well as one with a name that its folder can be written to, and a process
// that is killed at this moment leaves nothing. Some file systems have only files with names.
int dsc_outfile_check(const char *path, bool force, dsc_error *err)
{
    char *folder = strcmp(path, "-") ? folder_of(path) : NULL;
    int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    free(folder);
    if (fd >= 0) {
        close(fd);
        return check_name(path, force, err);
    }
    dsc_outfile f;
    int rc = dsc_outfile_open(&f, path, force, err);
    dsc_outfile_abort(&f);
    return rc;
}

bool dsc_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int dsc_sync_folder(const char *path, dsc_error *err)
{
    char *folder = folder_of(path);
    if (!folder)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = DSC_OK;
    // Some file systems cannot sync a folder and return EINVAL. Nothing more can be done there.
    if (fd < 0 || (fsync(fd) && errno != EINVAL))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot sync the folder of %s", path);
    if (fd >= 0)
        close(fd);
    free(folder);
    return rc;
}

// The new file gets the mode and, as far as permitted, the owner of the file that it replaces. The
// bits set-user-ID and set-group-ID are not passed on.
static int keep_owner(const char *temporary, const char *path, dsc_error *err)
{
    struct stat old, new;
    if (lstat(path, &old) || !S_ISREG(old.st_mode) || lstat(temporary, &new))
        return DSC_OK; // there is nothing to keep
    bool same = old.st_uid == new.st_uid &&old.st_gid == new.st_gid;
    mode_t mode = old.st_mode & MODE_BITS;
    if (!same && lchown(temporary, old.st_uid, old.st_gid))
        mode &= (mode_t) ~(S_IRWXG | S_IRWXO); // the group is another one now
    return chmod(temporary, mode)
               ? dsc_fail_errno(err, DSC_EIO, errno, "cannot set the mode of %s", temporary)
               : DSC_OK;
}

// Gives a file a name that nobody has. Some file systems have no hard links; there RENAME_NOREPLACE
// does the same.
static int take_free_name(const char *temporary, const char *path)
{
    if (linkat(AT_FDCWD, temporary, AT_FDCWD, path, 0) == 0) {
        unlink(temporary);
        return 0;
    }
    return errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK
               ? renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE)
               : -1;
}

int dsc_publish(const char *temporary, const char *path, bool replace, dsc_error *err)
{
    int rc = replace ? keep_owner(temporary, path, err) : DSC_OK;
    if (rc)
        return rc;
    if (replace ? rename(temporary, path) : take_free_name(temporary, path))
        return errno == EEXIST
                   ? dsc_fail(err, DSC_EUSAGE,
                              "%s was written by another run meanwhile; this result is in %s", path,
                              temporary)
                   : dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s to %s", temporary, path);
    return dsc_sync_folder(path, err);
}

static int finish_stream(dsc_outfile *f, dsc_error *err)
{
    errno = 0;
    bool sync = f->temporary != NULL;
    bool bad = fflush(f->stream) || ferror(f->stream) || (sync && fsync(fileno(f->stream)));
    int why = errno;
    if (sync && fclose(f->stream)) {
        why = bad ? why : errno;
        bad = true;
    }
    f->stream = NULL;
    if (bad && why)
        return dsc_fail_errno(err, DSC_EIO, why, "cannot write %s", f->path);
    if (bad) // stdio records that a write failed, not why
        return dsc_fail(err, DSC_EIO, "cannot write %s: a write failed (disk full?)", f->path);
    return DSC_OK;
}

// A complete file whose name was taken is kept.
static int publish(dsc_outfile *f, dsc_error *err)
{
    if (!f->temporary)
        return DSC_OK;
    int rc = dsc_publish(f->temporary, f->path, f->replace, err);
    if (!rc || rc == DSC_EUSAGE) {
        free(f->temporary);
        f->temporary = NULL;
    }
    return rc;
}

int dsc_outfile_commit_all(dsc_outfile *f, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = finish_stream(&f[i], err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = publish(&f[i], err);
    for (size_t i = 0; i < count; i++)
        dsc_outfile_abort(&f[i]);
    return rc;
}

int dsc_outfile_commit(dsc_outfile *f, dsc_error *err)
{
    return dsc_outfile_commit_all(f, 1, err);
}

void dsc_outfile_abort(dsc_outfile *f)
{
    if (f->stream && f->stream != stdout)
        fclose(f->stream);
    if (f->temporary)
        unlink(f->temporary);
    free(f->path);
    free(f->temporary);
    *f = (dsc_outfile){0};
}

size_t dsc_outfile_final_length(const char *name, size_t length)
{
    if (length <= SUFFIX || memcmp(name + length - 4, ".tmp", 4) != 0 ||
        name[length - SUFFIX] != '.')
        return 0;
    for (size_t i = length - SUFFIX + 1; i < length - 4; i++)
        if (!memchr(letters, name[i], sizeof letters - 1))
            return 0;
    return length - SUFFIX;
}

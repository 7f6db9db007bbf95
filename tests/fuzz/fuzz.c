// SPDX-License-Identifier: Apache-2.0
// Helpers of the fuzz targets: temporary files in a folder that the process removes at its exit,
// inputs cut into parts, and the checks that abort on a defect.
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    if (owner == getpid())
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/dsc-fuzz-XXXXXX", parent);
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(99);
    }
    owner = getpid();
    atexit(remove_folder);
}

const char *fuzz_path(const char *name)
{
    static char path[8][128];
    static int next;
    if (!*folder)
        make_folder();
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

const char *fuzz_file(const char *name, const void *bytes, size_t size)
{
    const char *path = fuzz_path(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd)) {
        perror(path);
        exit(99);
    }
    return path;
}

void fuzz_require(bool holds, const char *what, const dsc_error *err)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s (%s)\n", what, err ? err->message : "");
    abort();
}

void fuzz_refused(int rc, const dsc_error *err)
{
    fuzz_require(rc == DSC_EINPUT || rc == DSC_EUSAGE || rc == DSC_ENOMEM, "refused as input", err);
    fuzz_require(err->status == rc && *err->message, "the refusal has a sentence", err);
    fuzz_require(!strpbrk(err->message, "\n\r\t"), "the sentence is one line", err);
}

uint8_t fuzz_byte(fuzz_bytes *in)
{
    if (!in->size)
        return 0;
    in->size--;
    return *in->data++;
}

fuzz_bytes fuzz_before(fuzz_bytes *in, uint8_t mark)
{
    const uint8_t *at = in->size ? memchr(in->data, mark, in->size) : NULL;
    fuzz_bytes out = {in->data, at ? (size_t)(at - in->data) : in->size};
    size_t taken = out.size + (at != NULL);
    in->data += taken;
    in->size -= taken;
    return out;
}

void fuzz_use(const void *bytes, size_t size)
{
    static volatile unsigned char sink;
    unsigned char s = sink;
    for (size_t i = 0; i < size; i++)
        s = (unsigned char)(s ^ ((const unsigned char *)bytes)[i]);
    sink = s;
}

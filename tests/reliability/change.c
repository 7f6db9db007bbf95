// SPDX-License-Identifier: Apache-2.0
// Changes a file at the moment at which a program maps it: preloaded, it gives the file DSC_CHANGE
// another time of its last modification as soon as mmap returns. So a test of files that change
// while they are read depends on no timing.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef void *map_function(void *at, size_t length, int protection, int flags, int fd, off_t from);

static void change(int fd)
{
    const char *path = getenv("DSC_CHANGE");
    struct stat mapped, named;
    const struct timespec times[2] = {{.tv_sec = 981158400}, {.tv_sec = 981158400}}; // 2001-02-03
    if (fd >= 0 && path && !fstat(fd, &mapped) && !stat(path, &named) &&
        mapped.st_dev == named.st_dev && mapped.st_ino == named.st_ino)
        utimensat(AT_FDCWD, path, times, 0);
}

static void *map(const char *name, void *at, size_t length, int protection, int flags, int fd,
                 off_t from)
{
    map_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    void *mapped = next(at, length, protection, flags, fd, from);
    if (mapped != MAP_FAILED)
        change(fd);
    return mapped;
}

#define EXPORTED __attribute__((visibility("default")))
#undef mmap
#undef mmap64
EXPORTED void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t from)
{
    return map("mmap", at, length, protection, flags, fd, from);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t from);
EXPORTED void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t from)
{
    return map("mmap64", at, length, protection, flags, fd, from);
}

// SPDX-License-Identifier: Apache-2.0
// Memory that runs out once: linked into a program, it fails the N-th allocation of at least LARGE
// bytes, N of the environment's DSC_SCARCE, and leaves the file `scarce` to say that it did. Stands
// in for malloc, as far as the C library and the sanitizers allow.
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define STANDS_IN 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STANDS_IN 0
#endif
#endif
#if !defined STANDS_IN && defined __GLIBC__
#define STANDS_IN 1
#elif !defined STANDS_IN
#define STANDS_IN 0
#endif

#if STANDS_IN
enum { LARGE = 200 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Atomic long taken;

static int fails(size_t size)
{
    const char *which = size < LARGE ? NULL : getenv("DSC_SCARCE");
    if (!which || atomic_fetch_add(&taken, 1) + 1 != atol(which))
        return 0;
    int file = open("scarce", O_WRONLY | O_CREAT, 0600);
    if (file >= 0)
        close(file);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails(size) ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return fails(n * size) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    return fails(size) ? NULL : __libc_realloc(p, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(size) ? NULL : __libc_memalign(alignment, size);
}
#endif

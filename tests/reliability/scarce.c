// SPDX-License-Identifier: Apache-2.0
// Lets memory run out once. Linked into a program, and with DSC_SCARCE in the environment, it runs
// the program repeatedly, each time in its own process and folder, 1, 2, 3 ... In the N-th run the
// N-th allocation of at least LARGE bytes fails, which the file `scarce` records. The first run
// that needs fewer allocations is the last. A folder also has `out`, `err` and the exit status,
// `code`. Processes fork before main, because loading the libraries takes longer than the test. It
// replaces malloc, as far as the C library and the sanitizers allow.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dladdr
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
static long which; // 0: none fails

// Whether the caller is code of this project: OpenMP, for one, ends the process.
static int is_ours(void *caller)
{
    Dl_info found;
    return dladdr(caller, &found) &&
           (strstr(found.dli_fname, "scarce") || strstr(found.dli_fname, "draftscope"));
}

static int fails(size_t size, void *caller)
{
    if (size < LARGE || !which || !is_ours(caller) || atomic_fetch_add(&taken, 1) + 1 != which)
        return 0;
    int file = open("scarce", O_WRONLY | O_CREAT, 0600);
    if (file >= 0)
        close(file);
    errno = ENOMEM;
    return 1;
}

// Shared libraries of the build are to call these, too.
#pragma GCC visibility push(default)
void *malloc(size_t size)
{
    return fails(size, __builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return fails(n * size, __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    return fails(size, __builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(size, __builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}
#pragma GCC visibility pop

// In the folder of run n, whose output goes to files: what main finds.
static void enter(long n)
{
    char name[32];
    snprintf(name, sizeof name, "%ld", n);
    if (mkdir(name, 0700) || chdir(name) || !freopen("out", "w", stdout) ||
        !freopen("err", "w", stderr))
        _exit(99);
    which = n;
}

// Whether memory ran out in run n, once its process has ended.
static int ran_out(long n, int status)
{
    char name[64];
    snprintf(name, sizeof name, "%ld/code", n);
    FILE *f = fopen(name, "w");
    if (!f)
        _exit(99);
    fprintf(f, "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (fclose(f))
        _exit(99);
    snprintf(name, sizeof name, "%ld/scarce", n);
    return !access(name, F_OK);
}

static __attribute__((constructor)) void run_each(void)
{
    if (!getenv("DSC_SCARCE"))
        return;
    for (long n = 1;; n++) {
        int status;
        pid_t child = fork();
        if (!child) {
            enter(n);
            return; // to main
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            _exit(99);
        if (!ran_out(n, status))
            _exit(0);
    }
}
#endif

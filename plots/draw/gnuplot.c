// SPDX-License-Identifier: Apache-2.0
// Runs gnuplot with posix_spawn. Its input, output and messages are anonymous files and not pipes:
// there is no SIGPIPE, and no deadlock between a child that waits for its reader and a reader that
// waits for its child.
#include "plots/draw/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    PICTURE_LIMIT = 256 << 20, // bytes; figures have under a million
    MESSAGE_LIMIT = 1 << 16,
};

// Moves a descriptor above 2. The caller's 0, 1, 2 may be closed; a descriptor that landed there
// would be overwritten by the child's dup2 calls.
static int above_stdio(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return moved;
}

static int anonymous_file(dsc_error *err)
{
    int fd = above_stdio(memfd_create("draftscope-gnuplot", MFD_CLOEXEC));
    return fd < 0 ? dsc_fail_errno(err, DSC_EIO, errno, "cannot make a file for gnuplot") : fd;
}

// Writes the script to a file and rewinds that.
static int write_script(int fd, const char *script, dsc_error *err)
{
    size_t left = strlen(script);
    while (left) {
        ssize_t n = write(fd, script, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot write gnuplot's script");
        script += n;
        left -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return DSC_OK;
}

// Copies the caller's environment without the variables that change gnuplot's output. The caller
// frees *out, but not its strings.
static int child_environment(char ***out, dsc_error *err)
{
    size_t n = 0, kept = 0;
    while (environ && environ[n])
        n++;
    int rc = dsc_new(out, n + 2, err);
    for (size_t i = 0; !rc && i < n; i++)
        if (strncmp(environ[i], "GNUTERM=", 8) && strncmp(environ[i], "GNUPLOT", 7) &&
            strncmp(environ[i], "LC_", 3) && strncmp(environ[i], "LANG", 4))
            (*out)[kept++] = environ[i];
    if (!rc)
        (*out)[kept] = (char *)"LC_ALL=C";
    return rc;
}

static int spawn(pid_t *pid, int in, int out, int messages, char **environment)
{
    posix_spawn_file_actions_t act;
    posix_spawnattr_t attr;
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    int rc = posix_spawn_file_actions_init(&act);
    if (rc)
        return rc;
    if ((rc = posix_spawnattr_init(&attr))) {
        posix_spawn_file_actions_destroy(&act);
        return rc;
    }
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &standard);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&act, in, 0);
    posix_spawn_file_actions_adddup2(&act, out, 1);
    posix_spawn_file_actions_adddup2(&act, messages, 2);
    static char *const argv[] = {(char *)"gnuplot", (char *)"--default-settings", NULL};
    rc = posix_spawnp(pid, "gnuplot", &act, &attr, argv, environment);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&act);
    return rc;
}

// Appends the first `limit` bytes of a file.
static int append_file(int fd, size_t limit, dsc_buffer *to, dsc_error *err)
{
    char chunk[1 << 14];
    int rc = DSC_OK;
    lseek(fd, 0, SEEK_SET);
    while (limit && !rc) {
        ssize_t n = read(fd, chunk, limit < sizeof chunk ? limit : sizeof chunk);
        if (n < 0 && errno != EINTR)
            rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot read from gnuplot");
        if (!n)
            break;
        if (n > 0 && !(rc = dsc_buffer_append(to, chunk, (size_t)n, err)))
            limit -= (size_t)n;
    }
    return rc;
}

// Extracts the error. gnuplot repeats the offending line, marks the place, and then prints
// "line N: reason". That last line is preferred, any other but a warning is the second choice.
static void quote_error(const dsc_buffer *message, char *line, size_t size)
{
    const char *at = message->data ? message->data : "", *best = NULL;
    while (*at) {
        size_t n = strcspn(at, "\n"), blank = strspn(at, " \t\n");
        bool warning = memmem(at, n, "warning:", 8);
        bool found = !warning && memmem(at, n, "line ", 5) && memchr(at, ':', n);
        if (blank < n && (found || (!best && !warning)))
            best = at + blank;
        if (found)
            break;
        at += n + (at[n] == '\n');
    }
    snprintf(line, size, "%.*s", best ? (int)strcspn(best, "\n") : 0, best ? best : "");
}

// Checks the exit status; NULL: it is unknown because the caller ignores SIGCHLD, and any message
// counts as a failure.
static int check_exit(const int *known, const dsc_buffer *message, bool drew, dsc_error *err)
{
    int status = known ? *known : 0;
    bool failed = known ? !WIFEXITED(status) || WEXITSTATUS(status) : message->length > 0;
    char why[256];
    quote_error(message, why, sizeof why);
    if (known && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return dsc_fail(err, DSC_EABSENT, "gnuplot cannot be run: %s", why);
    if (failed && strstr(why, "terminal type"))
        return dsc_fail(err, DSC_EABSENT, "this gnuplot lacks a terminal (Debian: gnuplot-nox): %s",
                        why);
    if (known && WIFSIGNALED(status))
        return dsc_fail(err, DSC_EIO, "gnuplot was killed by signal %d", WTERMSIG(status));
    if (failed)
        return dsc_fail(err, DSC_EIO, "gnuplot failed: %s",
                        why[0] ? why : "it printed no error message");
    if (!drew)
        return dsc_fail(err, DSC_EIO, "gnuplot drew nothing%s%s", why[0] ? ": " : "", why);
    return DSC_OK;
}

enum { SCRIPT, PICTURE, MESSAGES, FILES };

// Runs gnuplot on the files, waits for it, and reads what it wrote.
static int run(const int file[FILES], dsc_buffer *picture, dsc_buffer *message, dsc_error *err)
{
    char **environment;
    pid_t pid, got;
    int status, rc = child_environment(&environment, err);
    if (rc)
        return rc;
    int why = spawn(&pid, file[SCRIPT], file[PICTURE], file[MESSAGES], environment);
    free(environment);
    if (why == ENOENT)
        return dsc_fail(err, DSC_EABSENT, "gnuplot not found; install it (Debian: gnuplot-nox)");
    if (why)
        return dsc_fail_errno(err, DSC_EABSENT, why, "cannot start gnuplot");
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    off_t size = lseek(file[PICTURE], 0, SEEK_END);
    rc = append_file(file[MESSAGES], MESSAGE_LIMIT, message, err);
    if (!rc && size > PICTURE_LIMIT)
        rc = dsc_fail(err, DSC_EIO, "gnuplot wrote more than %d bytes", PICTURE_LIMIT);
    if (!rc)
        rc = append_file(file[PICTURE], PICTURE_LIMIT, picture, err);
    return rc ? rc : check_exit(got == pid ? &status : NULL, message, size > 0, err);
}

int dsc_gnuplot_run(const char *script, dsc_buffer *picture, dsc_error *err)
{
    int file[FILES] = {-1, -1, -1}, rc = DSC_OK;
    dsc_buffer message = {0};
    for (int i = 0; i < FILES && !rc; i++) {
        file[i] = anonymous_file(err);
        rc = file[i] < 0 ? file[i] : DSC_OK;
    }
    if (!rc)
        rc = write_script(file[SCRIPT], script, err);
    if (!rc)
        rc = run(file, picture, &message, err);
    for (int i = 0; i < FILES; i++)
        if (file[i] >= 0)
            close(file[i]);
    dsc_buffer_fini(&message);
    return rc;
}

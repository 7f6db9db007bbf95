// SPDX-License-Identifier: Apache-2.0
// Runs gnuplot with posix_spawn. The script is passed as an anonymous file, so nothing is ever
// written to a pipe: there is no SIGPIPE, and no deadlock between a child that waits for its reader
// and a reader that waits for its child.
#include "plots/draw/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    PICTURE_LIMIT = 256 << 20, // bytes; figures have under a million
    TIME_LIMIT_S = 120,        // figures take under a second
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

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int script_file(const char *script, dsc_error *err)
{
    int fd = above_stdio(memfd_create("draftscope-gnuplot", MFD_CLOEXEC));
    if (fd < 0)
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot make a file for gnuplot");
    size_t left = strlen(script);
    while (left) {
        ssize_t n = write(fd, script, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int why = errno;
            close(fd);
            return dsc_fail_errno(err, DSC_EIO, why, "cannot write gnuplot's script");
        }
        script += n;
        left -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
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

// The path of gnuplot in `path`. Unlike execvp, an empty entry of PATH is skipped: it would mean
// the current folder, where a file of that name is data. Returns 0 or an errno.
static int find_program(char *path, size_t size)
{
    const char *at = getenv("PATH");
    if (!at)
        at = "/usr/local/bin:/usr/bin:/bin";
    for (size_t n; n = strcspn(at, ":"), *at; at += n + (at[n] == ':')) {
        const int length = snprintf(path, size, "%.*s/gnuplot", (int)n, at);
        if (n && (size_t)length < size && access(path, X_OK) == 0)
            return 0;
    }
    return ENOENT;
}

static int spawn(pid_t *pid, int in, int out, int messages, char **environment)
{
    posix_spawn_file_actions_t act;
    posix_spawnattr_t attr;
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    char program[4096];
    int rc = find_program(program, sizeof program);
    if (!rc)
        rc = posix_spawn_file_actions_init(&act);
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
    rc = posix_spawn(pid, program, &act, &attr, argv, environment);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&act);
    return rc;
}

// Appends what the pipe contains; returns false at its end. Bytes beyond the limit are dropped.
static bool drain(int fd, dsc_buffer *b, size_t limit, bool *over, int *rc, dsc_error *err)
{
    char chunk[1 << 14];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = limit - b->length, take = (size_t)n < room ? (size_t)n : room;
    *over |= take < (size_t)n;
    if (n && !*rc)
        *rc = dsc_buffer_append(b, chunk, take, err);
    return n > 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Reads until both pipes end, the time is over, or a signal interrupts it.
static int read_both(int out, int messages, dsc_buffer *picture, dsc_buffer *message,
                     dsc_error *err)
{
    struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = messages, .events = POLLIN}};
    int rc = DSC_OK;
    bool over = false, ignored = false;
    size_t limit = picture->length + PICTURE_LIMIT;
    const int64_t deadline = now_ms() + TIME_LIMIT_S * 1000;
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        const int64_t left = deadline - now_ms();
        const int ready = left > 0 ? poll(p, 2, (int)left) : 0;
        if (ready == 0)
            return dsc_fail(err, DSC_EIO, "gnuplot did not end within %d s", TIME_LIMIT_S);
        if (ready < 0)
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot read from gnuplot");
        if (p[0].revents && !drain(out, picture, limit, &over, &rc, err))
            p[0].fd = -1;
        if (p[1].revents && !drain(messages, message, MESSAGE_LIMIT, &ignored, &rc, err))
            p[1].fd = -1;
    }
    if (!rc && over)
        rc = dsc_fail(err, DSC_EIO, "gnuplot wrote more than %d bytes", PICTURE_LIMIT);
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

static int check_exit(pid_t pid, const dsc_buffer *message, bool drew, dsc_error *err)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        kill(pid, SIGKILL);
    // If the caller ignores SIGCHLD there is no status; then any message counts as a failure.
    bool failed = got == pid ? !WIFEXITED(status) || WEXITSTATUS(status) : message->length > 0;
    char why[256];
    quote_error(message, why, sizeof why);
    if (got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return dsc_fail(err, DSC_EABSENT, "gnuplot cannot be run: %s", why);
    if (failed && strstr(why, "terminal type"))
        return dsc_fail(err, DSC_EABSENT, "this gnuplot lacks a terminal (Debian: gnuplot-nox): %s",
                        why);
    if (got == pid && WIFSIGNALED(status))
        return dsc_fail(err, DSC_EIO, "gnuplot was killed by signal %d", WTERMSIG(status));
    if (failed)
        return dsc_fail(err, DSC_EIO, "gnuplot failed: %s",
                        why[0] ? why : "it printed no error message");
    if (!drew)
        return dsc_fail(err, DSC_EIO, "gnuplot drew nothing%s%s", why[0] ? ": " : "", why);
    return DSC_OK;
}

int dsc_gnuplot_run(const char *script, dsc_buffer *picture, dsc_error *err)
{
    int out[2] = {-1, -1}, messages[2] = {-1, -1};
    char **environment = NULL;
    dsc_buffer message = {0};
    size_t before = picture->length;
    int in = script_file(script, err), rc = in < 0 ? in : child_environment(&environment, err);
    if (rc)
        goto done;
    if (pipe2(out, O_CLOEXEC) || pipe2(messages, O_CLOEXEC)) {
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot make a pipe for gnuplot");
        goto done;
    }
    for (int i = 0; i < 2; i++) {
        out[i] = above_stdio(out[i]);
        messages[i] = above_stdio(messages[i]);
    }
    pid_t pid;
    int why = spawn(&pid, in, out[1], messages[1], environment);
    if (why) {
        rc = why == ENOENT
                 ? dsc_fail(err, DSC_EABSENT, "gnuplot not found; install it (Debian: gnuplot-nox)")
                 : dsc_fail_errno(err, DSC_EABSENT, why, "cannot start gnuplot");
        goto done;
    }
    close_fd(&out[1]); // otherwise the reads below would never reach the end
    close_fd(&messages[1]);
    rc = read_both(out[0], messages[0], picture, &message, err);
    if (rc)
        kill(pid, SIGKILL);
    close_fd(&out[0]);
    close_fd(&messages[0]);
    dsc_error failure = {0};
    int failed = check_exit(pid, &message, picture->length > before, &failure);
    if (!rc && failed)
        rc = dsc_fail(err, failed, "%s", failure.message);
done:
    close_fd(&in);
    for (int i = 0; i < 2; i++) {
        close_fd(&out[i]);
        close_fd(&messages[i]);
    }
    free(environment);
    dsc_buffer_fini(&message);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Signal handlers of the programs, and /dev/null for closed standard streams. Handlers call only
// functions that are safe in them.
#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 800, // by default
    TICK_MS = 50,      // interval at which blocking calls are interrupted after the request
    ECHO_MS = 2000,    // a second signal before that is taken for an echo: a process group and its
                       // leader often both get the signal
};

static volatile sig_atomic_t caught, caught_at_ms, patience_ms = PATIENCE_MS;
static timer_t ticks;
static bool has_ticks;

static sig_atomic_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (sig_atomic_t)((t.tv_sec * 1000 + t.tv_nsec / 1000000) & INT32_MAX);
}

static sig_atomic_t waited_ms(void)
{
    return (now_ms() - caught_at_ms) & INT32_MAX;
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; // there is nowhere else to say it
}

static void end_now(void)
{
    say("draftscope: interrupted\n");
    _exit(128 + caught);
}

static void on_signal(int number)
{
    const int before = errno;
    const struct timespec tick = {0, TICK_MS * 1000000L};
    if (!caught) {
        caught_at_ms = now_ms();
        caught = number;
        if (has_ticks)
            timer_settime(ticks, 0, &(struct itimerspec){tick, tick}, NULL);
    } else if (waited_ms() >= ECHO_MS) {
        end_now();
    }
    errno = before;
}

static void on_tick(int number)
{
    const int before = errno;
    (void)number;
    if (waited_ms() > patience_ms)
        end_now();
    errno = before;
}

int cli_signal(void)
{
    return caught;
}

void cli_set_patience(int seconds)
{
    patience_ms = seconds * 1000;
}

// --- files that shrink --------------------------------------------------------------------------

// Reads the list of mappings character by character.
typedef struct maps {
    int fd;
    bool ended;
    ssize_t at, count; // of block, the characters used and read
    char block[1024];
} maps;

static int next_char(maps *m)
{
    if (m->at == m->count) {
        m->at = 0;
        m->count = read(m->fd, m->block, sizeof m->block);
        if (m->count <= 0) {
            m->count = 0;
            m->ended = true;
            return -1;
        }
    }
    return (unsigned char)m->block[m->at++];
}

static uintptr_t next_address(maps *m)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t value = 0;
    const char *digit;
    int c;
    while ((c = next_char(m)) > 0 && (digit = strchr(digits, c)))
        value = value << 4 | (uintptr_t)(digit - digits);
    return value;
}

// Finds the file that is mapped at an address: "begin-end mode offset device inode path". Returns
// the bytes of its path in name[size], 0: none.
static size_t find_mapped(uintptr_t address, char *name, size_t size)
{
    maps m = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    size_t length = 0;
    while (m.fd >= 0 && !m.ended && !length) {
        const uintptr_t begin = next_address(&m), end = next_address(&m);
        bool path = false;
        for (int c; (c = next_char(&m)) > 0 && c != '\n';) {
            path |= c == '/';
            if (path && address >= begin && address < end && length < size)
                name[length++] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
        }
    }
    if (m.fd >= 0)
        close(m.fd);
    return length;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char line[1200] = "draftscope: ";
    const size_t head = strlen(line);
    (void)context;
    size_t n = find_mapped((uintptr_t)info->si_addr, line + head, 1024);
    if (!n) { // not a file: the standard action, when the instruction is repeated
        signal(number, SIG_DFL);
        return;
    }
    line[head + n] = '\0';
    say(line);
    say(": the file became shorter, or could not be read, while it was used; run the command "
        "again\n");
    _exit(4);
}

// --- installation -------------------------------------------------------------------------------

static void open_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(1); // nothing can be said without standard error
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}; // without SA_RESTART: calls are interrupted
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void cli_guard(void)
{
    struct sigaction hangup, bus = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    open_closed_streams();
    signal(SIGPIPE, SIG_IGN); // a closed pipe is a write error like any other
    signal(SIGXFSZ, SIG_IGN); // and so is a file that reached its size limit
    has_ticks = timer_create(CLOCK_MONOTONIC, &event, &ticks) == 0;
    handle(SIGALRM, on_tick);
    handle(SIGINT, on_signal);
    handle(SIGTERM, on_signal);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        handle(SIGHUP, on_signal);
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
}

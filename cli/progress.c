// SPDX-License-Identifier: Apache-2.0
// Progress on standard error, as a bar on a terminal or as JSON lines, and the request to stop that
// SIGINT and SIGTERM make.
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t caught, caught_at_s;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The first signal requests a stop. A second one at least 2 s later ends the program at once; an
// earlier one is taken for an echo (a process group and its leader often both get the signal).
static void on_signal(int number)
{
    if (!caught) {
        caught_at_s = (sig_atomic_t)now_s();
        caught = number;
    } else if ((sig_atomic_t)now_s() - caught_at_s >= 2) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int cli_signal(void)
{
    return caught;
}

void cli_progress_init(cli_progress *p, int64_t mode, const char *unit)
{
    *p = (cli_progress){.mode = mode, .unit = unit};
    p->bar = mode == CLI_PROGRESS_AUTO && isatty(STDERR_FILENO);
    p->started_s = now_s();
    cli_catch_signals();
}

static void draw_bar(double share, double rate, double left_s, const char *unit)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    int full = (int)(share * WIDTH);
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)full);
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %5.1f %%  %.3g %s/s  ", bar, 100 * share, rate, unit);
    if (share < 1)
        fprintf(stderr, "%.0f s left   ", left_s);
    else
        fputs("             ", stderr);
    fflush(stderr);
}

int cli_progress_step(void *user, int64_t done, int64_t total)
{
    cli_progress *p = user;
    double t = now_s();
    if (!p->begun) {
        p->begun = true;
        p->done_before = done;
    }
    bool finished = total > 0 && done >= total;
    double interval = p->mode == CLI_PROGRESS_JSON ? 1.0 : 0.1;
    if ((p->bar || p->mode == CLI_PROGRESS_JSON) && (t - p->shown_s >= interval || finished)) {
        double elapsed = t - p->started_s;
        double rate = elapsed > 0 ? (double)(done - p->done_before) / elapsed : 0;
        double share = total > 0 ? (double)done / (double)total : 0;
        double left = rate > 0 && total > done ? (double)(total - done) / rate : 0;
        p->shown_s = t;
        if (p->mode == CLI_PROGRESS_JSON)
            fprintf(stderr,
                    "{\"done\": %" PRId64 ", \"total\": %" PRId64 ", \"unit\": \"%s\", "
                    "\"per_s\": %.6g, \"left_s\": %.3g}\n",
                    done, total, p->unit, rate, left);
        else
            draw_bar(share > 1 ? 1 : share, rate, left, p->unit);
    }
    return caught != 0;
}

void cli_progress_end(cli_progress *p)
{
    if (p->bar && p->shown_s > 0)
        fputc('\n', stderr);
}

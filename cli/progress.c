// SPDX-License-Identifier: Apache-2.0
// Progress on standard error, as a bar on a terminal or as JSON lines.
#include "cli/cli.h"
#include "cli/guard.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_init(cli_progress *p, int64_t mode, const char *unit)
{
    *p = (cli_progress){.mode = mode, .unit = unit};
    p->bar = mode == CLI_PROGRESS_AUTO && isatty(STDERR_FILENO);
    p->started_s = now_s();
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
    bool finished = total > 0 && done >= total;
    double interval = p->mode == CLI_PROGRESS_JSON ? 1.0 : 0.1;
    if ((p->bar || p->mode == CLI_PROGRESS_JSON) && (t - p->shown_s >= interval || finished)) {
        double elapsed = t - p->started_s;
        double rate = elapsed > 0 ? ((double)done - p->share_before * (double)total) / elapsed : 0;
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
    return cli_signal() != 0;
}

void cli_progress_end(cli_progress *p)
{
    if (p->bar && p->shown_s > 0)
        fputc('\n', stderr);
}

void cli_progress_resume(cli_progress *p, size_t done, size_t total, const char *units)
{
    p->share_before = total ? (double)done / (double)total : 0;
    fprintf(stderr, "draftscope: going on after %zu of %zu %s\n", done, total, units);
}

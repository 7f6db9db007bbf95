// SPDX-License-Identifier: Apache-2.0
// A ring of pieces between two threads. A piece fits the L2 cache, so that inspecting it costs no
// memory traffic; the kernel is advised well ahead of reading, so that the disk always has
// requests.
#include "live/model/stream.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 16, AHEAD = 32 << 20, AHEAD_STEP = 4 << 20 };

struct live_stream {
    const live_span *span;
    size_t count;
    live_look look;
    void *user;
    unsigned char *memory; // [PIECES][LIVE_PIECE_UNIT]
    live_piece piece[PIECES];
    size_t filled, used; // since the beginning; filled - used <= PIECES
    bool stop, held;     // held: the caller has piece `used`
    int status;
    dsc_error err;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool running;
};

// The open file, and the offset up to which the kernel has been advised to read.
typedef struct open_file {
    const char *path;
    int fd;
    uint64_t advised;
} open_file;

static int open_for(open_file *f, const char *path, dsc_error *err)
{
    if (f->path && strcmp(f->path, path) == 0)
        return DSC_OK;
    if (f->fd >= 0)
        close(f->fd);
    *f = (open_file){path, open(path, O_RDONLY | O_CLOEXEC), 0};
    if (f->fd < 0)
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s: cannot be opened", path);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return DSC_OK;
}

static int fill(open_file *f, const live_span *span, live_piece *p, unsigned char *to,
                dsc_error *err)
{
    uint64_t at = span->begin + p->offset, ahead = at + AHEAD;
    if (f->advised < at)
        f->advised = at;
    if (f->advised + AHEAD_STEP <= ahead) {
        posix_fadvise(f->fd, (off_t)f->advised, (off_t)(ahead - f->advised), POSIX_FADV_WILLNEED);
        f->advised = ahead;
    }
    for (size_t got = 0; got < p->bytes;) {
        ssize_t n = pread(f->fd, to + got, p->bytes - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dsc_fail_errno(err, DSC_EINPUT, errno, "%s: reading byte %" PRIu64, span->path,
                                  at + got);
        if (n == 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: ends at byte %" PRIu64
                            ": the file was truncated while it was read",
                            span->path, at + got);
        got += (size_t)n;
    }
    return DSC_OK;
}

// Waits for a free entry of the ring; false: stop.
static bool wait_free(live_stream *s)
{
    pthread_mutex_lock(&s->mutex);
    while (!s->stop && s->filled - s->used == PIECES)
        pthread_cond_wait(&s->changed, &s->mutex);
    bool go = !s->stop;
    pthread_mutex_unlock(&s->mutex);
    return go;
}

static void hand_over(live_stream *s, int status)
{
    pthread_mutex_lock(&s->mutex);
    s->status = status;
    s->filled++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void *run(void *user)
{
    live_stream *s = user;
    open_file f = {NULL, -1, 0};
    int rc = DSC_OK;
    for (size_t i = 0; i <= s->count && !rc; i++) {
        uint64_t length = i < s->count ? s->span[i].end - s->span[i].begin : 1, at = 0;
        for (; at < length && !rc; at += LIVE_PIECE_UNIT) {
            if (!wait_free(s))
                goto out;
            size_t entry = s->filled % PIECES;
            unsigned char *to = s->memory + entry * LIVE_PIECE_UNIT;
            uint64_t left = length - at;
            live_piece *p = &s->piece[entry];
            *p = (live_piece){i, at, left < LIVE_PIECE_UNIT ? left : LIVE_PIECE_UNIT, to};
            if (i == s->count)
                p->bytes = 0; // the end
            else if (s->span[i].make)
                s->span[i].make(s->span[i].from, at, p->bytes, to);
            else if (!(rc = open_for(&f, s->span[i].path, &s->err)))
                rc = fill(&f, &s->span[i], p, to, &s->err);
            if (!rc && s->look && p->bytes)
                rc = s->look(s->user, p, &s->err);
            hand_over(s, rc);
        }
    }
out:
    if (f.fd >= 0)
        close(f.fd);
    return NULL;
}

int live_stream_open(live_stream **out, const live_span *span, size_t count, live_look look,
                     void *user, dsc_error *err)
{
    live_stream *s;
    *out = NULL;
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
    s->span = span;
    s->count = count;
    s->look = look;
    s->user = user;
    s->memory = aligned_alloc(64, (size_t)PIECES * LIVE_PIECE_UNIT);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // signals go to the caller's thread
    s->running = s->memory && pthread_create(&s->thread, NULL, run, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!s->running) {
        live_stream_close(s);
        return dsc_fail(err, DSC_ENOMEM,
                        "cannot start the thread that reads weights: no memory or no thread");
    }
    *out = s;
    return DSC_OK;
}

int live_stream_next(live_stream *s, live_piece *out, dsc_error *err)
{
    pthread_mutex_lock(&s->mutex);
    if (s->held) {
        s->used++;
        pthread_cond_broadcast(&s->changed);
    }
    while (s->filled == s->used)
        pthread_cond_wait(&s->changed, &s->mutex);
    // A failure belongs to the last piece that was handed over.
    int rc = s->filled - s->used == 1 ? s->status : DSC_OK;
    s->held = true;
    *out = s->piece[s->used % PIECES];
    pthread_mutex_unlock(&s->mutex);
    return rc ? dsc_fail(err, rc, "%s", s->err.message) : DSC_OK;
}

void live_stream_close(live_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (s->running)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s->memory);
    free(s);
}

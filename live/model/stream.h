// SPDX-License-Identifier: Apache-2.0
// Reads parts of files in order, in a thread that stays a few pieces ahead of the consumer.
#ifndef DSC_LIVE_STREAM_H
#define DSC_LIVE_STREAM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// Writes bytes [offset, offset + count) of a span.
typedef void (*live_make)(const void *from, uint64_t offset, size_t count, unsigned char *to);

typedef struct live_span {
    const char *path;
    uint64_t begin, end; // bytes of the file, begin < end
    live_make make;      // NULL: the span is read from the file; else it is written by this
    const void *from;
} live_span;

typedef struct live_piece {
    size_t span;
    uint64_t offset; // of the span's bytes
    size_t bytes;    // a multiple of LIVE_PIECE_UNIT except at the span's end; 0: all has been read
    const unsigned char *data; // 64-byte aligned, valid until the next call of live_stream_next
} live_piece;

enum { LIVE_PIECE_UNIT = 1 << 20 };

typedef struct live_stream live_stream;

// Inspects every piece in the reading thread, while the piece is in the cache. Its failure becomes
// the stream's.
typedef int (*live_look)(void *user, const live_piece *p, dsc_error *err);

// The caller keeps the spans and their paths. `look` may be NULL. DSC_ENOMEM: no memory or no
// thread.
int live_stream_open(live_stream **out, const live_span *span, size_t count, live_look look,
                     void *user, dsc_error *err);
// DSC_EINPUT: a file cannot be opened, ends early or cannot be read. Otherwise returns the failure
// of `look`.
int live_stream_next(live_stream *s, live_piece *out, dsc_error *err);
void live_stream_close(live_stream *s); // NULL allowed; may be called before the end

#endif

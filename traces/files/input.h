// SPDX-License-Identifier: Apache-2.0
// Lines of a text file that may be compressed, read as a stream.
//
// Plain, gzip (any number of members) and zstd (any number of frames, skippable ones too) are told
// apart by the first bytes, never by the name. Memory is one line and a few hundred KiB (and the
// window of a zstd frame, 128 MiB at most). What an archive may do to us is bounded: a line by
// DSC_INPUT_LINE_MAX, the expansion by DSC_INPUT_RATIO once DSC_INPUT_RATIO_FREE bytes came out.
#ifndef DSC_TRACES_INPUT_H
#define DSC_TRACES_INPUT_H

#include "base/sha256.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DSC_INPUT_LINE_MAX = 128 << 20, // bytes of one line
    DSC_INPUT_RATIO = 1000,         // decoded bytes per compressed byte ...
    DSC_INPUT_RATIO_FREE = 8 << 20, // ... looked at beyond this many decoded bytes
    DSC_INPUT_WINDOW_LOG = 27,      // log2 of the largest zstd window, 128 MiB
};

typedef struct dsc_input dsc_input;

// One line, valid until the next call. Never blank, no NUL byte, not NUL-terminated.
typedef struct dsc_line {
    const char *bytes; // NULL: the end of the file
    size_t length;     // without the line end (\n or \r\n)
    int64_t number;    // 1-based, blank lines counted
    int64_t column;    // characters before `bytes` in its line: 0 of a whole line
} dsc_line;

// Opens `path` ("-": standard input). DSC_EINPUT when it cannot be read. *out is owned by the
// caller.
int dsc_input_open(dsc_input **out, const char *path, dsc_error *err);
void dsc_input_close(dsc_input *in); // NULL allowed

// The next line that is not blank (spaces and tabs only). The last line needs no line end; a UTF-8
// byte order mark at the start of the file is left out.
// DSC_EINPUT: a NUL byte in the line (reading may go on with the next line); or, for good
// (dsc_input_broken): line too long, archive truncated, corrupt, followed by something else, or
// expanding beyond the guard, with the byte of the compressed file.
int dsc_input_line(dsc_input *in, dsc_line *out, dsc_error *err);
bool dsc_input_broken(const dsc_input *in);

const char *dsc_input_name(const dsc_input *in); // for messages: the path, or "stdin"
int64_t dsc_input_size(const dsc_input *in);     // bytes as stored, -1 when unknown (a pipe)
int64_t dsc_input_position(const dsc_input *in); // bytes as stored that were taken so far

// SHA-256 of the bytes as stored, of the whole file once dsc_input_line has reported its end.
void dsc_input_sha256(const dsc_input *in, char hex[DSC_SHA256_HEX]);

#endif

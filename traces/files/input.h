// SPDX-License-Identifier: Apache-2.0
// Reads the lines of a text file, which may be compressed, as a stream.
//
// Plain text, gzip (any number of members) and zstd (any number of frames, including skippable
// ones) are recognized by the first bytes, never by the name. Memory is one line and a few hundred
// KiB, for zstd also the window (at most 128 MiB). Hostile archives are bounded: a line by
// DSC_INPUT_LINE_MAX, the expansion by DSC_INPUT_RATIO after the first DSC_INPUT_RATIO_FREE bytes.
#ifndef DSC_TRACES_INPUT_H
#define DSC_TRACES_INPUT_H

#include "base/sha256.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DSC_INPUT_LINE_MAX = 128 << 20, // bytes of one line
    DSC_INPUT_RATIO = 1000,         // most decoded bytes per compressed byte,
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    DSC_INPUT_RATIO_FREE = 64 << 10, // a fuzzer reaches the limit 50 times as often
#else
    DSC_INPUT_RATIO_FREE = 8 << 20, // enforced after this many decoded bytes
#endif
    DSC_INPUT_WINDOW_LOG = 27, // log2 of the largest zstd window, 128 MiB
};

typedef struct dsc_input dsc_input;

// One line, valid until the next call. It is not blank, has no NUL byte and is not NUL-terminated.
typedef struct dsc_line {
    const char *bytes; // NULL at the end of the file
    size_t length;     // without the line end (\n or \r\n)
    int64_t number;    // from 1, blank lines included
    int64_t column;    // characters before `bytes` in its line; 0 for a whole line
} dsc_line;

// Opens `path` ("-": standard input). DSC_EINPUT when it cannot be read. *out is owned by the
// caller.
int dsc_input_open(dsc_input **out, const char *path, dsc_error *err);
void dsc_input_close(dsc_input *in); // NULL is allowed

// Reads the next line that is not blank (spaces and tabs only). The last line needs no line end; a
// UTF-8 byte order mark at the start of the file is skipped.
// DSC_EINPUT: a NUL byte in the line, after which the next line can be read. The following are
// final (dsc_input_broken) and name the byte of the compressed file: a line too long; an archive
// that is truncated, corrupt, followed by other data, or expands beyond the limit.
int dsc_input_line(dsc_input *in, dsc_line *out, dsc_error *err);
bool dsc_input_broken(const dsc_input *in);

const char *dsc_input_name(const dsc_input *in); // for messages: the path, or "stdin"
int64_t dsc_input_position(const dsc_input *in); // bytes as stored, decoded so far

// SHA-256 of the bytes as stored; of the whole file once dsc_input_line has reported its end.
void dsc_input_sha256(const dsc_input *in, char hex[DSC_SHA256_HEX]);

#endif

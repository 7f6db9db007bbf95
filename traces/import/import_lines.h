// SPDX-License-Identifier: Apache-2.0
// Lines from an input to records, many at a time, without ever looking at the trace.
//
// A chunk is a stretch of lines (or of values of a document: import_source.h), copied. Three things
// happen to it, in this order: it is read, its lines become records (by any thread), and the
// records are taken. What a chunk holds is bounded: so many bytes and lines, or one line.
#ifndef DSC_TRACES_IMPORT_LINES_H
#define DSC_TRACES_IMPORT_LINES_H

#include "traces/import/import_record.h"
#include "traces/import/import_source.h"

// What is the same for all lines. `driver` is NULL until the first line was probed.
typedef struct dsc_import_job {
    const dsc_tokenizer *tokenizer; // or NULL
    dsc_import_options options;     // the caller's, completed: semantics, vocab_size, threads
    const dsc_import_driver *driver;
    int32_t eos; // or -1
} dsc_import_job;

typedef struct dsc_import_entry {
    int64_t number, column; // as in dsc_line
    size_t begin, length;   // in the chunk's bytes
    dsc_error *bad;         // what is wrong with it, or NULL; owned, or the chunk's `failed`
    bool fatal;             // bad for all that come after it, too
    json_t *json;           // what the record's views point into
    dsc_import_record record;
} dsc_import_entry;

// Zero-initialise.
typedef struct dsc_import_chunk {
    dsc_buffer bytes;
    dsc_import_entry *entry; // [count]
    size_t count, capacity;
    int64_t position; // of the input behind the last line
    bool last;        // nothing comes after it
    dsc_error failed; // for want of memory; status DSC_OK otherwise
} dsc_import_chunk;

// Fills an empty chunk. Bad lines, and what breaks the input (`fatal`), become entries.
void dsc_import_chunk_read(dsc_import_chunk *c, dsc_import_source *source, bool documents);

// The first line that is JSON, and its value, a new reference; NULL when there is none, or, unless
// errors are skipped, a bad line before it.
dsc_import_entry *dsc_import_chunk_first(const dsc_import_chunk *c, const dsc_import_job *job,
                                         const char *name, json_t **json);
// Ends the input with a line, which is bad and fatal for the reason given.
void dsc_import_chunk_end(dsc_import_chunk *c, dsc_import_entry *e, const dsc_error *why);

// Makes the records of all lines; unless errors are skipped, up to the first bad one.
void dsc_import_chunk_parse(dsc_import_chunk *c, const dsc_import_job *job, dsc_encoder *encoder,
                            const char *name);

// Empties the chunk for the next lines and keeps some of its memory.
void dsc_import_chunk_reset(dsc_import_chunk *c);
void dsc_import_chunk_fini(dsc_import_chunk *c);

#endif

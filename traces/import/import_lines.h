// SPDX-License-Identifier: Apache-2.0
// Turns the lines of an input into records, a chunk at a time, independently of the trace.
//
// A chunk is a copy of successive lines (or values of a document: import_source.h). It is read, any
// thread parses its lines into records, and the importer adds the records to the trace. The size of
// a chunk is bounded in bytes and lines; a longer line is a chunk of its own.
#ifndef DSC_TRACES_IMPORT_LINES_H
#define DSC_TRACES_IMPORT_LINES_H

#include "traces/import/import_record.h"
#include "traces/import/import_source.h"

// The settings for all lines. `driver` is NULL until the first line was probed.
typedef struct dsc_import_job {
    const dsc_tokenizer *tokenizer; // or NULL
    dsc_import_options options;     // the caller's, with semantics, vocab_size and threads set
    const dsc_import_driver *driver;
    dsc_ends ends; // the EOS tokens
} dsc_import_job;

typedef struct dsc_import_entry {
    int64_t number, column; // as in dsc_line
    size_t begin, length;   // in the chunk's bytes
    dsc_error *bad;         // the line's error, or NULL; owned, or the chunk's `failed`
    bool fatal;             // no line after it can be read
    json_t *json;           // the records' views point into it
    size_t records;         // requests of the line: the first one, and more
    dsc_import_record record;
    dsc_import_record *more; // [capacity]
    size_t capacity;
    int64_t failed; // requests of the line that the source records as failed
} dsc_import_entry;

// Request i of a line.
static inline dsc_import_record *dsc_import_entry_record(dsc_import_entry *e, size_t i)
{
    return i ? &e->more[i - 1] : &e->record;
}

// Zero-initialize.
typedef struct dsc_import_chunk {
    dsc_buffer bytes;
    dsc_import_entry *entry; // [count]
    size_t count, capacity;
    int64_t position; // position of the input after the last line
    bool last;        // the last chunk of the input
    dsc_error failed; // out of memory; otherwise its status is DSC_OK
} dsc_import_chunk;

// Fills an empty chunk. Bad lines and fatal errors of the input become entries.
void dsc_import_chunk_read(dsc_import_chunk *c, dsc_import_source *source, bool documents);

// The first line that is JSON, with its value as a new reference. NULL when there is none or,
// unless errors are skipped, when a bad line comes before it.
dsc_import_entry *dsc_import_chunk_first(const dsc_import_chunk *c, const dsc_import_job *job,
                                         const char *name, json_t **json);
// Ends the input at this line, which becomes a fatal error with the given message.
void dsc_import_chunk_end(dsc_import_chunk *c, dsc_import_entry *e, const dsc_error *why);

// Makes the records of all lines or, unless errors are skipped, up to the first bad line.
void dsc_import_chunk_parse(dsc_import_chunk *c, const dsc_import_job *job, dsc_encoder *encoder,
                            const char *name);

// Empties the chunk for the next lines and keeps a bounded amount of memory.
void dsc_import_chunk_reset(dsc_import_chunk *c);
void dsc_import_chunk_fini(dsc_import_chunk *c);

#endif

// SPDX-License-Identifier: Apache-2.0
// Imports files of other programs as traces. Each format has a driver in an explicit list.
#ifndef DSC_TRACES_IMPORT_H
#define DSC_TRACES_IMPORT_H

#include "traces/tokenizer/tokenizer.h"
#include "traces/trace/trace.h"

#include <jansson.h>
#include <stdio.h>

enum { DSC_IMPORT_NOTE = 512 }; // bytes of a note

typedef struct dsc_import_options {
    const char *format;    // a driver's name; NULL: recognized by the first line of the first input
    const char *semantics; // "paper" (also NULL) or "code"
    const char *eos;       // "ID|TOKEN,...": tokens that end an output; NULL: dsc_ends_read
    int32_t vocab_size;    // required without a tokenizer; with one, 0 or the tokenizer's size
    const char *questions; // file of the questions that the answers belong to (specbench, mtbench)
    const char *map;       // "prompt=question,output=answer": the fields of the lines; or NULL
    const char *chat_template; // name of a chat template, "none"; NULL: found next to the tokenizer
    const char *tokenizer_path; // where that, and the EOS tokens, are looked for; NULL: nowhere
    const char *model;          // only requests of this model are imported; NULL: all
    bool last_turn;             // of a chat, the last assistant turn is a request, not every one
    bool lossy; // what a model wrote and a text cannot hold is left out and marked, not refused
    // Callers leave the next four NULL: the questions, the map and the chat template as they were
    // read, and the state of the driver.
    const json_t *asked;
    const struct dsc_import_map *fields;
    const struct dsc_import_chat *chat;
    const void *prepared;
    bool skip_errors;     // false: stop at the first bad line; true: skip bad lines and count them
    bool force;           // replace an existing output
    int threads;          // threads that parse lines; 0: the number OpenMP would use
    int64_t shard_tokens; // see dsc_trace_writer_open
    const char *version, *command; // for the provenance record
    // The functions below are called one at a time, from any of the threads. Each may be NULL.
    // Called regularly with the bytes read and the total (as stored; -1: unknown); nonzero stops
    // (DSC_EINTERRUPT).
    int (*progress)(void *user, int64_t done, int64_t total);
    // Called for each skipped line with its error message.
    void (*skipped)(void *user, const char *message);
    // Called for each note about the source: data that it lacks, or counts that differ from the
    // trace. The notes are recorded in the provenance as well.
    void (*note)(void *user, const char *message);
    void *user;
} dsc_import_options;

typedef struct dsc_import_record dsc_import_record; // traces/import/import_record.h (for drivers)

typedef struct dsc_import_driver {
    const char *name, *summary;
    const char *needs;    // fields of its lines, separated by blanks, for messages
    bool documents;       // an input may be a JSON document instead of lines (import_source.h)
    bool wants_questions; // the driver uses options.asked
    bool chats;           // the driver uses options.chat
    // Returns how well a first line matches the format: 0: not at all; larger is better.
    int (*probe)(const json_t *line);
    // Appends the requests of a line to an array: none, one or several JSON objects that `read`
    // takes, which may share values with the line; null stands for a request that failed and is
    // left out. Pure as `read`. NULL: a line is one request.
    int (*expand)(const json_t *line, const dsc_import_options *options, json_t *requests,
                  dsc_error *err);
    // Fills the record from one line, a JSON object. Messages name the field. The function is pure,
    // because several threads read lines. options->vocab_size is always set here.
    int (*read)(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                dsc_error *err);
    // Reads all inputs before the first line is read. *state, which is allocated, becomes
    // options->prepared. `note` may stay empty. NULL: the driver prepares nothing.
    int (*prepare)(void **state, const char *const *paths, size_t count, char note[DSC_IMPORT_NOTE],
                   dsc_error *err);
    void (*release)(void *state); // frees *state; NULL: free() does
} dsc_import_driver;

// The NULL-terminated list of all drivers.
const dsc_import_driver *const *dsc_import_drivers(void);

// Imports `count` files (JSONL, or gzip and zstd archives of it, recognized by their first bytes;
// "-": standard input) into the trace `out_path`. `tokenizer` may be NULL only if every field is
// given as token ids; the trace then records no text. Errors name file, line and, for syntax,
// column. DSC_EINPUT: bad input. DSC_EUSAGE: bad options (unknown format, text without a tokenizer,
// ...). The same input and options give the same trace, byte for byte.
// *left_out (may be NULL): the number of lines skipped with skip_errors.
int dsc_import(const char *const *paths, size_t count, const dsc_tokenizer *tokenizer,
               const char *out_path, const dsc_import_options *options, int64_t *left_out,
               dsc_error *err);

// The options that decide how lines become requests, as the provenance of a trace records them
// under "reading": map, chat_template, turns, lossy, model, as far as they are set; absent where
// none is. A new object; NULL: memory is short.
json_t *dsc_import_reading(const dsc_import_options *options);

// Writes a trace to `out` in one of these formats:
//   jsonl          draftscope's JSON lines; importing them again gives identical columns, except
//                  that dense distributions become listed ones
//   csv            CSV (RFC 4180), a row per request: request, id, prompt_tokens, output_tokens,
//                  references, reference_tokens
//   csv-steps      CSV, a row per step with the recorded columns
//   csv-positions  CSV, a row per output token with the recorded columns
// See draftscope-trace(1). DSC_EUSAGE: unknown format, or no steps. DSC_EIO: writing failed.
int dsc_trace_export(const dsc_trace *t, const char *format, FILE *out, dsc_error *err);

// Writes every column as a NumPy file NAME.npy into the new folder `path`, concatenated over the
// shards (offsets are adjusted), where NAME is the tensor's name. BF16 becomes F32, because NumPy
// has no BF16. One shard is mapped at a time. The folder is written as PATH.tmp, synced and
// renamed. With `force` it replaces a folder that contains only .npy files. DSC_EUSAGE: `path`
// exists and cannot be replaced. DSC_EIO: writing failed; nothing is left, unless only the rename
// failed.
int dsc_trace_export_npy(const dsc_trace *t, const char *path, bool force, dsc_error *err);

#endif

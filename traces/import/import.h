// SPDX-License-Identifier: Apache-2.0
// Foreign files into traces. One driver per format, in an explicit list.
#ifndef DSC_TRACES_IMPORT_H
#define DSC_TRACES_IMPORT_H

#include "traces/tokenizer/tokenizer.h"
#include "traces/trace/trace.h"

#include <jansson.h>
#include <stdio.h>

enum { DSC_IMPORT_NOTE = 512 }; // bytes of a note

typedef struct dsc_import_options {
    const char *format;    // a driver's name, or NULL: probed on the first line of the first input
    const char *semantics; // "paper" (also NULL) or "code"
    const char *eos;       // content of the token that ends an output; NULL: dsc_tokenizer_eos
    int32_t vocab_size;    // needed without a tokenizer; with one, 0 or the tokenizer's own
    const char *questions; // file of the questions that answers belong to (specbench, mtbench)
    const void *prepared;  // the driver's: not for callers
    bool skip_errors;      // false: stop at the first bad line; true: leave it out and count it
    bool force;            // replace an existing output
    int threads;           // that read lines; 0: as many as OpenMP would use
    int64_t shard_tokens;  // as of dsc_trace_writer_open
    const char *version, *command; // for the provenance record
    // The calls below come one at a time, from any of the threads.
    // Called now and then with bytes read of bytes in all (as stored; -1 unknown); nonzero stops
    // (DSC_EINTERRUPT). May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    // Called for each line left out, with its message. May be NULL.
    void (*skipped)(void *user, const char *message);
    // Called with each thing about the source that its user should know: what it does not say, or
    // says otherwise than the trace. The notes are in the provenance as well. May be NULL.
    void (*note)(void *user, const char *message);
    void *user;
} dsc_import_options;

typedef struct dsc_import_record dsc_import_record; // traces/import/import_record.h (for drivers)

typedef struct dsc_import_driver {
    const char *name, *summary;
    bool documents;       // an input may be a JSON document instead of lines (import_source.h)
    bool wants_questions; // options.questions means something
    // How well a first line fits: 0 not at all, larger is better.
    int (*probe)(const json_t *line);
    // Fills the record from one line (a JSON value of any type: check it). Messages say which
    // field. Pure: lines may be read by several threads. options->vocab_size is that of the
    // tokenizer here.
    int (*read)(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                dsc_error *err);
    // Looks at all inputs before the first line is read: for a rule that must hold for each, or a
    // file of its own. *state, which may be NULL, becomes options->prepared and is released by
    // finish. `note` may be left empty. NULL: nothing to prepare.
    int (*prepare)(void **state, const char *const *paths, size_t count,
                   const dsc_import_options *options, char note[DSC_IMPORT_NOTE], dsc_error *err);
    void (*finish)(void *state);
} dsc_import_driver;

// NULL-terminated list of all drivers.
DSC_API const dsc_import_driver *const *dsc_import_drivers(void);

// Imports `count` files (JSONL, also .gz and .zst, told by their magic bytes; "-": standard input)
// into the trace `out_path`. `tokenizer` may be NULL only if every field is given as token ids (the
// trace then records no text). Errors name file, line and, for syntax, column. DSC_EINPUT for bad
// input, DSC_EUSAGE for options that do not fit (no such format, text without a tokenizer, ...).
// The same input and options give the same trace, byte for byte.
// *left_out (may be NULL): lines left out with skip_errors.
DSC_API int dsc_import(const char *const *paths, size_t count, const dsc_tokenizer *tokenizer,
                       const char *out_path, const dsc_import_options *options, int64_t *left_out,
                       dsc_error *err);

// Writes a trace to `out`: "jsonl", our own format (importing it again gives the same columns, to
// the bit; dense rows become lists), or CSV (RFC 4180): "csv", a row per request (request, id,
// prompt_tokens, output_tokens, references, reference_tokens), "csv-steps", a row per step,
// "csv-positions", a row per output token, both with the columns that are recorded
// (draftscope-trace(1)). DSC_EUSAGE: no such format, or no steps; DSC_EIO when writing fails.
DSC_API int dsc_trace_export(const dsc_trace *t, const char *format, FILE *out, dsc_error *err);

// Writes every column as NumPy's NAME.npy into the new folder `path`, concatenated over the shards
// (offsets too), under the names of the native tensors; BF16 becomes F32, which NumPy has. One
// shard is mapped at a time. Written to PATH.tmp, synced and renamed; a folder of that name that
// holds nothing but .npy files is replaced if `force`. DSC_EUSAGE: what has that name cannot be
// replaced; DSC_EIO when writing fails, then nothing is left behind.
DSC_API int dsc_trace_export_npy(const dsc_trace *t, const char *path, bool force, dsc_error *err);

#endif

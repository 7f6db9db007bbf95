// SPDX-License-Identifier: Apache-2.0
// What the reader, the writer and the verifier of traces share: the table of a shard's columns,
// the manifest, the folder rules, the set of request ids.
#ifndef DSC_TRACES_TRACE_INTERNAL_H
#define DSC_TRACES_TRACE_INTERNAL_H

#include "traces/safetensors.h"
#include "traces/trace.h"

#include <jansson.h>

// --- columns (trace_columns.c) -----------------------------------------------------------------

// In the order in which they are written.
enum {
    COL_REQUEST_ID,
    COL_REQUEST_ID_OFFSET,
    COL_PROMPT_TOK,
    COL_PROMPT_OFFSET,
    COL_OUTPUT_TOK,
    COL_OUTPUT_OFFSET,
    COL_REFERENCE_TOK,
    COL_REFERENCE_OFFSET,
    COL_REQUEST_REFERENCE,
    COL_REFERENCE_KIND,
    COL_PROMPT_TEXT,
    COL_PROMPT_TEXT_OFFSET,
    COL_OUTPUT_TEXT,
    COL_OUTPUT_TEXT_OFFSET,
    COL_REFERENCE_TEXT,
    COL_REFERENCE_TEXT_OFFSET,
    COL_METADATA,
    COL_METADATA_OFFSET,
    COL_TARGET_LOGP,
    COL_DRAFT_ROW_OFFSET,
    COL_DRAFT_ROW_TOKEN,
    COL_DRAFT_ROW_LOGP,
    COL_DRAFT_ROW_TAIL,
    COL_DRAFT_ROW_DENSE,
    COL_TARGET_ROW_OFFSET, // in the draft's order
    COL_TARGET_ROW_TOKEN,
    COL_TARGET_ROW_LOGP,
    COL_TARGET_ROW_TAIL,
    COL_TARGET_ROW_DENSE,
    DSC_COLUMNS
};

// The column of `side`, given that of the draft.
static inline int dsc_row_column(dsc_model_side side, int draft_column)
{
    return draft_column + (int)side * (COL_TARGET_ROW_OFFSET - COL_DRAFT_ROW_OFFSET);
}

typedef struct dsc_column_type {
    const char *name; // of the tensor
    dsc_dtype dtype;  // I64 columns are offsets: sorted from 0 to the length of what they divide
    // WITH_DENSE: of rank 2, [length, vocabulary], and may also be BF16. All others have rank 1.
    enum { ALWAYS, WITH_TEXT, WITH_LOGP, WITH_LISTS, WITH_DENSE } recorded;
    int counted_by; // length = last entry of this offset column (-1: requests) + extra
    int extra;
} dsc_column_type;

extern const dsc_column_type dsc_columns[DSC_COLUMNS];

bool dsc_column_recorded(const dsc_trace_info *info, int column);

static inline bool dsc_column_dense(int column)
{
    return dsc_columns[column].recorded == WITH_DENSE;
}

// The first element of a column that must not be there, or -1. Block loops without branches that
// gcc and clang vectorise at -O2; the place is looked for only when there is one.
int64_t dsc_bad_token(const int32_t *id, int64_t count, int32_t vocab_size); // outside [0, size)
int64_t dsc_bad_logp(const float *logp, int64_t count);                      // not finite, or > 0
int64_t dsc_bad_log_mass(const float *x, int64_t count);         // > 0 or NaN: -inf is allowed
int64_t dsc_bad_bf16_log_mass(const uint16_t *x, int64_t count); // the same
int64_t dsc_bad_kind(const uint8_t *kind, int64_t count);        // no dsc_reference_kind
// offset[i] that is negative, or not 0 at i = 0, or below offset[i - 1]. count >= 1.
int64_t dsc_bad_offset(const int64_t *offset, int64_t count);
// The byte where the text stops being valid UTF-8 (no surrogates, no overlong forms), or -1.
int64_t dsc_bad_utf8(const char *bytes, int64_t length);

// A bit for each token of the vocabulary, all 0 between uses; made by the first use.
// Zero-initialise, free the words.
typedef struct dsc_token_marks {
    uint64_t *word;
} dsc_token_marks;

// --- requests (trace_check.c) ------------------------------------------------------------------

// `request` is the 0-based number that messages name; `what` the text is ("the prompt's text").
int dsc_check_text(dsc_text_view text, int64_t request, const char *what, dsc_error *err);
// Empty, or a JSON object in UTF-8.
int dsc_check_metadata(dsc_text_view metadata, int64_t request, dsc_error *err);
// Request number info->requests before it is written: all that opening or verifying the trace
// would refuse later. DSC_EINPUT: bad content; DSC_EUSAGE: pointers or lengths that make no sense.
int dsc_check_request(const dsc_trace_info *info, const dsc_request_input *q,
                      dsc_token_marks *marks, dsc_error *err);

// --- rows (trace_rows.c) -----------------------------------------------------------------------

// All that rows[positions] of a request must be, for the writer and the verifier alike.
int dsc_check_rows(const dsc_trace_info *info, dsc_model_side side, const dsc_rows *rows,
                   int64_t positions, int64_t request, dsc_token_marks *marks, dsc_error *err);

// --- manifest (trace_manifest.c) ---------------------------------------------------------------

enum { DSC_MANIFEST_MAX = 64 * 1024 * 1024 }; // bytes

typedef struct dsc_shard_entry {
    int64_t requests, prompt_tokens, output_tokens, reference_tokens, references;
    int64_t bytes;         // size of the file
    int64_t first_request; // index of its first request in the trace
    char sha256[DSC_SHA256_HEX];
} dsc_shard_entry;

struct dsc_trace {
    char *path; // without trailing slashes
    dsc_trace_info info;
    dsc_shard_entry *shard;
    size_t shards;
};

struct dsc_shard {
    const dsc_trace *trace;
    const dsc_shard_entry *entry;
    char *path;
    dsc_safetensors *file;
    const void *column[DSC_COLUMNS]; // NULL: not recorded
    int64_t count[DSC_COLUMNS];      // elements; of a dense column: rows
    dsc_dtype dtype[DSC_COLUMNS];
    int64_t unknown; // tensors that are none of ours
};

// Paths inside a trace folder; *out owned by the caller.
int dsc_trace_shard_path(char **out, const char *folder, size_t shard, dsc_error *err);
int dsc_trace_manifest_path(char **out, const char *folder, dsc_error *err);

// The trace's hash: SHA-256 over "<shard's SHA-256>\n", shard after shard.
void dsc_trace_hash(const dsc_shard_entry *shard, size_t shards, char hex[DSC_SHA256_HEX]);

// The manifest's own hash, kept in its field "manifest_sha256": SHA-256 of the compact JSON text
// with sorted keys of all its other fields. It guards what no shard hash covers (vocabulary
// size, end token, provenance).
int dsc_manifest_seal(const json_t *manifest, char hex[DSC_SHA256_HEX], dsc_error *err);

// The manifest as JSON, sealed. *out owned by the caller (json_decref). The counts and the hash
// in *info must be final.
int dsc_manifest_make(json_t **out, const dsc_trace_info *info, const dsc_shard_entry *shard,
                      size_t shards, dsc_error *err);
// Writes it into `folder`; never replaces one.
int dsc_manifest_write(const json_t *manifest, const char *folder, dsc_error *err);

void dsc_trace_info_fini(dsc_trace_info *info); // frees the strings

// --- folders (trace_folder.c) ------------------------------------------------------------------

// *exists: whether anything has the name `path`. If so it must be a folder that holds nothing but
// a manifest and shards (".tmp" forms allowed), and a manifest if asked; DSC_EUSAGE says what
// else there is. Such a folder, and no other, may be replaced or removed.
int dsc_trace_folder_check(const char *path, bool with_manifest, bool *exists, dsc_error *err);
// The same check without a manifest; then removes the files and the folder. Nothing there is fine.
int dsc_trace_folder_remove(const char *path, dsc_error *err);
// Makes the folder `path` for one writer, with a lock in *fd (close it) that lasts as long as the
// process; what a killed writer left there is removed, a living one is respected (DSC_EUSAGE).
int dsc_trace_folder_make(const char *path, int *fd, dsc_error *err);

// --- request ids (trace_ids.c) -----------------------------------------------------------------

// The ids seen so far; memory proportional to their bytes. Zero-initialise.
typedef struct dsc_id_set {
    dsc_buffer bytes; // all ids, one after the other
    int64_t *end;     // [count] end of id i in bytes
    size_t count, capacity;
    uint32_t *slot; // [slots] open addressing: 1 + index, or 0; at most half full
    size_t slots;   // a power of two
} dsc_id_set;

// Adds the id of request number set->count. DSC_EINPUT when an earlier one has the same; then
// nothing is added.
int dsc_id_set_add(dsc_id_set *set, dsc_text_view id, dsc_error *err);
void dsc_id_set_fini(dsc_id_set *set);

#endif

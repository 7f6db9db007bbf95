// SPDX-License-Identifier: Apache-2.0
// What the reader, the writer and the verifier of traces share: the table of a shard's columns,
// the manifest, the folder rules, the set of request ids.
#ifndef DSC_TRACES_TRACE_INTERNAL_H
#define DSC_TRACES_TRACE_INTERNAL_H

#include "traces/files/safetensors.h"
#include "traces/trace/trace.h"

#include <jansson.h>
#include <string.h>

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
    COL_DRAFT_LOGP,
    COL_DRAFT_ARGMAX,
    COL_TARGET_ARGMAX,
    COL_DRAFT_ENTROPY,
    COL_TARGET_ENTROPY,
    COL_DRAFT_RANK,
    COL_KSEQ,
    COL_SPECINFER,
    COL_OTM,
    COL_DRAFT_ROLLOUT,
    COL_TARGET_ROLLOUT,
    COL_STEP_OFFSET,
    COL_STEP_ACCEPTED,
    COL_STEP_DRAFTED,
    COL_STEP_DRAFT_S,
    COL_STEP_VERIFY_S,
    COL_ACCEPT, // of drafter 0, and so on
    COL_ACCEPT_LAST = COL_ACCEPT + DSC_DRAFTERS_MAX - 1,
    DSC_COLUMNS
};

// The column of `side`, given that of the draft.
static inline int dsc_row_column(dsc_model_side side, int draft_column)
{
    return draft_column + (int)side * (COL_TARGET_ROW_OFFSET - COL_DRAFT_ROW_OFFSET);
}

// What is recorded or not, in the order of the manifest's list. Columns belong to one each.
typedef enum dsc_field {
    FIELD_TOKENS,
    FIELD_REFERENCES,
    FIELD_METADATA,
    FIELD_TEXT,
    FIELD_TARGET_LOGP,
    FIELD_DRAFT_ROWS,
    FIELD_TARGET_ROWS,
    FIELD_DRAFT_LOGP,
    FIELD_DRAFT_ARGMAX,
    FIELD_TARGET_ARGMAX,
    FIELD_DRAFT_ENTROPY,
    FIELD_TARGET_ENTROPY,
    FIELD_DRAFT_RANK,
    FIELD_KSEQ,
    FIELD_SPECINFER,
    FIELD_OTM,
    FIELD_DRAFT_ROLLOUT,
    FIELD_TARGET_ROLLOUT,
    FIELD_STEPS,
    FIELD_STEP_DRAFTED,
    FIELD_STEP_DRAFT_S,
    FIELD_STEP_VERIFY_S,
    FIELD_ACCEPT,
    DSC_FIELDS
} dsc_field;

// How a field is recorded: 0 not at all, else 1 or what dsc_rows_kind or dsc_steps_kind says.
unsigned dsc_field_kind(const dsc_trace_info *info, dsc_field field);
void dsc_field_set(dsc_trace_info *info, dsc_field field, unsigned kind);
// Its name in the manifest's list; NULL: there is no such kind (or kind is 0).
const char *dsc_field_name(dsc_field field, unsigned kind);
// The field of that name and its kind; DSC_FIELDS when there is none.
dsc_field dsc_field_find(const char *name, unsigned *kind);

// The field of dsc_trace_recorded(info, i); DSC_FIELDS when there are not so many.
dsc_field dsc_field_at(const dsc_trace_info *info, int i);

// Parameters of what is recorded, beside the caps of the drafters.
enum { DSC_PARAMETERS = 3 };
typedef struct dsc_parameter {
    const char *name;
    size_t offset;   // of an int32_t in dsc_trace_info
    int32_t largest; // the least is 1
} dsc_parameter;
extern const dsc_parameter dsc_parameters[DSC_PARAMETERS];

static inline int32_t dsc_parameter_value(const dsc_trace_info *info, int parameter)
{
    return *(const int32_t *)(const void *)((const char *)info + dsc_parameters[parameter].offset);
}

static inline int32_t *dsc_parameter_of(dsc_trace_info *info, int parameter)
{
    return (int32_t *)(void *)((char *)info + dsc_parameters[parameter].offset);
}

// The parameter in the column's shape, or -1.
int dsc_column_parameter(int column);
// Whether something that is recorded has the parameter.
bool dsc_parameter_needed(const dsc_trace_info *info, int parameter);

bool dsc_drafter_name_valid(const char *name); // 1 to 63 of [A-Za-z0-9_.+-]

// Copies what says what is recorded: fields, parameters that are needed, drafters.
void dsc_recorded_copy(dsc_trace_info *to, const dsc_trace_info *from);
// Kinds that there are, parameters and caps in range, drafters with good names: DSC_EUSAGE if not.
int dsc_recorded_check(const dsc_trace_info *info, dsc_error *err);

// What an element must be.
typedef enum dsc_values {
    VALUES_ANY,
    VALUES_OFFSET,    // begins at 0, never falls
    VALUES_TOKEN,     // in the vocabulary
    VALUES_KIND,      // a dsc_reference_kind
    VALUES_LOGP,      // finite, <= 0
    VALUES_LOG_MASS,  // <= 0: -inf is allowed
    VALUES_AMOUNT,    // finite, >= 0
    VALUES_RANK,      // in the vocabulary, or DSC_RANK_NONE
    VALUES_LENGTH,    // <= the drafter's cap
    VALUES_KSEQ,      // pairs: rho in [1, k], beta in [0, 1]
    VALUES_SPECINFER, // from 0, never falls, number i (from 0) <= i
    VALUES_OTM,       // distributions
} dsc_values;

// What stands at one place of a column: a number, or numbers of this shape.
typedef enum dsc_shape {
    SHAPE_NUMBER,
    SHAPE_VOCABULARY, // these may be BF16 as well as F32
    SHAPE_RANKS,      // [rank_depth]
    SHAPE_KSEQ,       // [K][2], K = statistics_k
    SHAPE_SPECINFER,  // [K + 1]
    SHAPE_OTM,        // [K (K + 3) / 2]
    SHAPE_DRAFT,      // [rollout_length]
    SHAPE_TARGET,     // [rollout_length + 1]
} dsc_shape;

typedef struct dsc_column_type {
    const char *name; // of the tensor; of accept lengths, what comes before the drafter's name
    dsc_dtype dtype;
    dsc_values values;
    dsc_field field;
    int counted_by; // length = last entry of this offset column (-1: requests) + extra
    int extra;
    unsigned kind; // recorded when the field is recorded so; 0: when it is recorded at all
    dsc_shape shape;
    // Where dsc_request and dsc_request_input have the pointer to it, with an element (of that
    // shape) for each output token or step; 0: it is not handed over as that.
    size_t view, input;
} dsc_column_type;

extern const dsc_column_type dsc_columns[DSC_COLUMNS];

bool dsc_column_recorded(const dsc_trace_info *info, int column);

enum { DSC_COLUMN_NAME_BYTES = 80 };
// The tensor's name.
const char *dsc_column_name(const dsc_trace_info *info, int column,
                            char name[DSC_COLUMN_NAME_BYTES]);

// The shape at one place: how many dimensions, which are written to shape[0..1].
int dsc_column_shape(const dsc_trace_info *info, int column, int64_t shape[2]);
// How many numbers that are.
int64_t dsc_column_width(const dsc_trace_info *info, int column);

static inline bool dsc_column_dense(int column)
{
    return dsc_columns[column].shape == SHAPE_VOCABULARY;
}

// The pointer to the column in *request, a dsc_request or dsc_request_input, at
// dsc_column_type.view or input.
static inline const void *dsc_column_get(const void *request, size_t at)
{
    const void *data;
    memcpy(&data, (const char *)request + at, sizeof data);
    return data;
}

static inline void dsc_column_set(void *request, size_t at, const void *data)
{
    memcpy((char *)request + at, &data, sizeof data);
}

// --- values (trace_values.c) -------------------------------------------------------------------

// The first of `count` numbers that is not what the column wants, or -1. `count` is a multiple of
// the column's width; dtype is the column's or, for dense rows, BF16.
int64_t dsc_bad_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                      int64_t count);
// DSC_EINPUT "WHERE'NAME'[i]: why" for such a number.
int dsc_fail_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                   int64_t i, const char *where, dsc_error *err);
static inline float dsc_of_bf16(uint16_t half) // the upper half of a binary32
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
// The first step that accepted more than was drafted, or -1.
int64_t dsc_bad_step(const uint16_t *accepted, const uint16_t *drafted, int64_t count);

// The first element of a column that must not be there, or -1. Block loops without branches that
// gcc and clang vectorise at -O2; the place is looked for only when there is one.
int64_t dsc_bad_token(const int32_t *id, int64_t count, int32_t vocab_size); // outside [0, size)
int64_t dsc_bad_logp(const float *logp, int64_t count);                      // not finite, or > 0
int64_t dsc_bad_log_mass(const float *x, int64_t count);         // > 0 or NaN: -inf is allowed
int64_t dsc_bad_bf16_log_mass(const uint16_t *x, int64_t count); // the same
int64_t dsc_bad_kind(const uint8_t *kind, int64_t count);        // no dsc_reference_kind
int64_t dsc_bad_amount(const float *x, int64_t count);           // not finite, or < 0
// offset[i] that is negative, or not 0 at i = 0, or below offset[i - 1]. count >= 1.
int64_t dsc_bad_offset(const int64_t *offset, int64_t count);

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
// Aligned steps must add up to the output's tokens as trace.h says; others need not.
int dsc_check_steps(const dsc_trace_info *info, const dsc_steps *steps, int64_t tokens,
                    int64_t request, dsc_error *err);
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
    int64_t count[DSC_COLUMNS];      // elements of the column's shape
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
// size, EOS token, provenance).
int dsc_manifest_seal(const json_t *manifest, char hex[DSC_SHA256_HEX], dsc_error *err);

// The manifest as JSON, sealed. *out owned by the caller (json_decref). The counts and the hash
// in *info must be final.
int dsc_manifest_make(json_t **out, const dsc_trace_info *info, const dsc_shard_entry *shard,
                      size_t shards, dsc_error *err);
// Writes it into `folder`, by a rename; `replace`: there may be one already.
int dsc_manifest_write(const json_t *manifest, const char *folder, bool replace, dsc_error *err);

void dsc_trace_info_fini(dsc_trace_info *info); // frees the strings

// --- folders (trace_folder.c) ------------------------------------------------------------------

// *exists: whether anything has the name `path`. If so it must be a folder that holds nothing but
// a manifest and shards (".tmp" forms allowed), and a manifest if asked; DSC_EUSAGE says what
// else there is. Such a folder, and no other, may be replaced or removed.
int dsc_trace_folder_check(const char *path, bool with_manifest, bool *exists, dsc_error *err);
// The same check without a manifest; then removes the files and the folder. Nothing there is fine.
int dsc_trace_folder_remove(const char *path, dsc_error *err);
// Removes shards from number `shards` on and ".tmp" forms, which no manifest speaks of; whatever
// else is in the folder stays. Only under the lock.
int dsc_trace_folder_trim(const char *path, size_t shards, dsc_error *err);
// Locks the folder of a trace, which is there, for one writer: *fd as below. DSC_EUSAGE when it is
// locked already.
int dsc_trace_folder_lock(const char *path, int *fd, dsc_error *err);
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
// The number of the request that has the id, or -1.
int64_t dsc_id_set_find(const dsc_id_set *set, dsc_text_view id);
void dsc_id_set_fini(dsc_id_set *set);

// --- traces beside each other (trace_agree.c) --------------------------------------------------

// Whether requests of b may stand beside those of a: the same tokenizer, columns, parameters and
// drafters (in any order). DSC_EUSAGE says what differs, by the names given.
int dsc_trace_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                    const char *name_b, dsc_error *err);
int dsc_tokenizers_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                         const char *name_b, dsc_error *err);
// Of what `to` records, leaves what `with` records likewise; aligned steps beside logged ones
// become logged ones.
void dsc_recorded_intersect(dsc_trace_info *to, const dsc_trace_info *with);
// The drafter of that name, or -1.
int dsc_drafter_number(const dsc_trace_info *info, const char *name);

// --- the writer (trace_write.c) ----------------------------------------------------------------

// The number of the request that has the id, or -1.
int64_t dsc_trace_writer_find(const dsc_trace_writer *w, dsc_text_view id);

#endif

// SPDX-License-Identifier: Apache-2.0
// Internal: the table of a shard's columns and of the fields that a manifest lists as recorded.
#ifndef DSC_TRACES_TRACE_COLUMNS_H
#define DSC_TRACES_TRACE_COLUMNS_H

#include "traces/files/safetensors.h"
#include "traces/trace/trace.h"

#include <string.h>

// The columns of a shard, in the order in which they are written.
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
    COL_TARGET_ROW_OFFSET, // the target's columns have the order of the draft's
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
    COL_CANDIDATE_TOKEN,
    COL_CANDIDATE_PARENT,
    COL_CANDIDATE_LOGP,
    COL_CANDIDATE_SCORED,
    COL_MARGINAL_TOKEN,
    COL_MARGINAL_LOGP,
    COL_MARGINAL_LOGP_Y,
    COL_STEP_OFFSET,
    COL_STEP_ACCEPTED,
    COL_STEP_DRAFTED,
    COL_STEP_DRAFT_S,
    COL_STEP_VERIFY_S,
    COL_ACCEPT, // drafter 0; the other drafters follow
    COL_ACCEPT_LAST = COL_ACCEPT + DSC_DRAFTERS_MAX - 1,
    DSC_COLUMNS
};

// The column of `side` that corresponds to a column of the draft.
static inline int dsc_row_column(dsc_model_side side, int draft_column)
{
    return draft_column + (int)side * (COL_TARGET_ROW_OFFSET - COL_DRAFT_ROW_OFFSET);
}

// The fields that a trace may record, in the order of the manifest's list. Every column belongs to
// one field.
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
    FIELD_CANDIDATES,
    FIELD_MARGINALS,
    FIELD_STEPS,
    FIELD_STEP_DRAFTED,
    FIELD_STEP_DRAFT_S,
    FIELD_STEP_VERIFY_S,
    FIELD_ACCEPT,
    DSC_FIELDS
} dsc_field;

// The kind in which a field is recorded: 0 if it is not recorded, else 1 or a value of
// dsc_rows_kind or dsc_steps_kind.
unsigned dsc_field_kind(const dsc_trace_info *info, dsc_field field);
void dsc_field_set(dsc_trace_info *info, dsc_field field, unsigned kind);
// The field's name in the manifest's list, or NULL when kind is 0 or unknown.
const char *dsc_field_name(dsc_field field, unsigned kind);
// The field of that name and its kind, or DSC_FIELDS when there is none.
dsc_field dsc_field_find(const char *name, unsigned *kind);

// The field of dsc_trace_recorded(info, i), or DSC_FIELDS when fewer are recorded.
dsc_field dsc_field_at(const dsc_trace_info *info, int i);

// Parameters of recorded fields. The caps of drafters are kept apart, in dsc_trace_info.drafter.
enum { DSC_PARAMETERS = 8 };
typedef struct dsc_parameter {
    const char *name;
    size_t offset;         // offset of an int32_t in dsc_trace_info
    int32_t largest;       // the smallest value is 1
    dsc_field first, last; // the fields that have it, all between these
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

static inline bool dsc_field_has(dsc_field field, int parameter)
{
    return field >= dsc_parameters[parameter].first && field <= dsc_parameters[parameter].last;
}

// Returns whether a recorded field has the parameter.
bool dsc_parameter_needed(const dsc_trace_info *info, int parameter);

bool dsc_drafter_name_valid(const char *name); // 1 to 63 of [A-Za-z0-9_.+-]

// Copies which fields are recorded, the parameters that these need, and the drafters.
void dsc_recorded_copy(dsc_trace_info *to, const dsc_trace_info *from);
// DSC_EUSAGE for an unknown kind, a parameter or cap out of range, or a bad name of a drafter.
int dsc_recorded_check(const dsc_trace_info *info, dsc_error *err);

// The numbers that a column may contain.
typedef enum dsc_values {
    VALUES_ANY,
    VALUES_OFFSET,    // first 0, never decreasing
    VALUES_TOKEN,     // ids in the vocabulary
    VALUES_KIND,      // values of dsc_reference_kind
    VALUES_LOGP,      // finite, <= 0
    VALUES_LOG_MASS,  // <= 0: -inf is allowed
    VALUES_AMOUNT,    // finite, >= 0
    VALUES_RANK,      // below the vocabulary size, or DSC_RANK_NONE
    VALUES_LENGTH,    // <= the drafter's cap
    VALUES_KSEQ,      // pairs: rho in [1, k], beta in [0, 1]
    VALUES_SPECINFER, // first 0, never decreasing, element i (from 0) <= i
    VALUES_OTM,       // distributions of the number of surviving drafts
    VALUES_PARENT,    // element i <= i, or DSC_PARENT_NONE, which only itself follows
} dsc_values;

// The shape of one element of a column.
typedef enum dsc_shape {
    SHAPE_NUMBER,
    SHAPE_VOCABULARY, // [vocab_size], F32 or BF16
    SHAPE_RANKS,      // [rank_depth]
    SHAPE_KSEQ,       // [K][2], K = statistics_k
    SHAPE_SPECINFER,  // [K + 1]
    SHAPE_OTM,        // [K (K + 3) / 2]
    SHAPE_DRAFT,      // [rollout_length]
    SHAPE_TARGET,     // [rollout_length + 1]
    SHAPE_CANDIDATES, // [candidate_nodes]
    SHAPE_SCORED,     // [candidate_steps]
    SHAPE_MARGINALS,  // [marginal_offsets][marginal_top]
    SHAPE_OFFSETS,    // [marginal_offsets]
} dsc_shape;

typedef struct dsc_column_type {
    const char *name; // the tensor's name; for accept lengths the prefix of the drafter's name
    dsc_dtype dtype;
    dsc_values values;
    dsc_field field;
    int counted_by; // length = last entry of this offset column (-1: requests) + extra
    int extra;
    unsigned kind; // the field's kind that has this column; 0: every kind has it
    dsc_shape shape;
    // Offsets in dsc_request and dsc_request_input of a pointer to an array with one element (of
    // that shape) for each output token or step; 0: there is no such pointer.
    size_t view, input;
} dsc_column_type;

extern const dsc_column_type dsc_columns[DSC_COLUMNS];

bool dsc_column_recorded(const dsc_trace_info *info, int column);

// The recorded columns that a request has an element for at each output token or step.
typedef struct dsc_input_columns {
    int column[DSC_COLUMNS], count;
} dsc_input_columns;
dsc_input_columns dsc_input_columns_of(const dsc_trace_info *info);

enum { DSC_COLUMN_NAME_BYTES = 80 };
// The tensor's name.
const char *dsc_column_name(const dsc_trace_info *info, int column,
                            char name[DSC_COLUMN_NAME_BYTES]);

// The shape of one element: returns the number of dimensions and writes them to shape[0..1].
int dsc_column_shape(const dsc_trace_info *info, int column, int64_t shape[2]);
// The number of numbers in one element.
int64_t dsc_column_width(const dsc_trace_info *info, int column);

// Whether a number of 16 bits stands for none.
static inline bool dsc_column_is_none(const dsc_column_type *type, uint16_t value)
{
    return (type->values == VALUES_RANK && value == DSC_RANK_NONE) ||
           (type->values == VALUES_PARENT && value == DSC_PARENT_NONE);
}

static inline bool dsc_column_dense(int column)
{
    return dsc_columns[column].shape == SHAPE_VOCABULARY;
}

// The address of the pointer to the column in *request, which is a dsc_request or
// dsc_request_input. `at` is dsc_column_type.view or .input; drafters have a pointer each.
static inline char *dsc_column_place(const void *request, int column, size_t at)
{
    size_t drafter = column > COL_ACCEPT ? (size_t)(column - COL_ACCEPT) : 0;
    return (char *)(uintptr_t)request + at + drafter * sizeof(void *);
}

static inline const void *dsc_column_get(const void *request, int column, size_t at)
{
    const void *data;
    memcpy(&data, dsc_column_place(request, column, at), sizeof data);
    return data;
}

static inline void dsc_column_set(void *request, int column, size_t at, const void *data)
{
    memcpy(dsc_column_place(request, column, at), &data, sizeof data);
}

#endif

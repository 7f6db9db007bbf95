// SPDX-License-Identifier: Apache-2.0
// What one source line says, between the driver that reads it and the trace it goes to.
//
// A driver fills a record with texts or token ids; dsc_import_record_finish tokenises and checks
// what is common to all formats. Both look at nothing but their arguments, so that a record can be
// made by any thread.
#ifndef DSC_TRACES_IMPORT_RECORD_H
#define DSC_TRACES_IMPORT_RECORD_H

#include "traces/files/input.h"
#include "traces/import/import.h"
#include "traces/trace/trace_internal.h"

extern const dsc_import_driver dsc_import_llma, dsc_import_specbench, dsc_import_mtbench,
    dsc_import_eagle, dsc_import_alpaca, dsc_import_acclen, dsc_import_vllm, dsc_import_jsonl;

enum { DSC_IMPORT_ID_MAX = 1024 }; // bytes of a request's id

typedef struct dsc_import_text {
    dsc_text_view text; // bytes NULL: the source gives token ids only
    bool has_tokens;    // given by the source; otherwise made from the text
    dsc_tokens tokens;
    dsc_buffer built; // holds `text` when it was put together or decoded
} dsc_import_text;

typedef enum dsc_import_eos {
    DSC_IMPORT_EOS_NEVER,    // the output's text is all there is
    DSC_IMPORT_EOS_IF_KNOWN, // appended to a text, unless the tokenizer has none
    DSC_IMPORT_EOS_REQUIRED, // appended to a text; a tokenizer without one is an error
} dsc_import_eos;

// One model's rows, listed. Zero-initialise; dsc_import_rows_fini frees.
typedef struct dsc_import_rows {
    bool given;
    size_t rows, count;
    int64_t *offset; // [rows + 1] into token and logp
    int32_t *token;  // [count] of all rows
    float *logp;     // [count]
    float *tail;     // [rows]
    size_t offset_capacity, token_capacity, logp_capacity, tail_capacity;
} dsc_import_rows;

// One column, in the type of dsc_columns.
typedef struct dsc_import_column {
    void *data;
    size_t count, capacity; // numbers
} dsc_import_column;

// A part of the output's text that was written by itself, with the tokens its source counted.
typedef struct dsc_import_turn {
    size_t begin, length; // bytes of the output's text
    int64_t recorded;     // tokens, the EOS token included where one was written
    bool may_end;         // with the EOS token: no limit cut it off
} dsc_import_turn;

// Views point into the JSON value of the line, which must outlive them. Zero-initialise.
struct dsc_import_record {
    dsc_buffer id; // length 0: the source gives none
    dsc_import_text prompt, output;
    dsc_import_eos eos;
    dsc_import_text *reference; // [references]
    dsc_reference_kind *kind;   // [references]
    size_t references, reference_capacity, kind_capacity;
    size_t reference_limit; // tokens of a reference that are kept
    dsc_import_rows row_list[DSC_SIDES];
    // What the record has beside texts and rows: fields, parameters and drafters. Through
    // dsc_import_column_start; the rest of *recorded is not used.
    dsc_trace_info recorded;
    dsc_import_column column[DSC_COLUMNS];
    char *metadata; // a JSON object or NULL; owned
    // What the source counted, to be compared with the tokenizer.
    dsc_import_turn *turn; // [turns]; none: the output is one text
    size_t turns, turn_capacity;
    int64_t recorded_tokens; // of the output, or -1: not said
    double recorded_s;       // seconds it took, or 0: not said
};

// Empties the record for the next line and keeps its memory.
void dsc_import_record_reset(dsc_import_record *r);
void dsc_import_record_fini(dsc_import_record *r);
size_t dsc_import_record_bytes(const dsc_import_record *r); // of the memory it keeps

// --- for drivers: all return DSC_EINPUT with a sentence that starts with the field -----------

const char *dsc_json_type_name(const json_t *value); // "a number", "null", ...

// "field 'NAME' must be EXPECTED, is a number"; or "... is missing" when `value` is NULL.
int dsc_import_wrong_type(const json_t *value, const char *expected, dsc_error *err,
                          const char *field, ...) DSC_PRINTF(4, 5);

// A view of a JSON string; `field` (a format) names it.
int dsc_import_string(dsc_text_view *out, const json_t *value, dsc_error *err, const char *field,
                      ...) DSC_PRINTF(4, 5);

// A string or an integer; 1 to DSC_IMPORT_ID_MAX bytes without control characters.
int dsc_import_id(dsc_import_record *r, const json_t *value, dsc_error *err);

// Appends an empty reference; *out is valid until the next call.
int dsc_import_add_reference(dsc_import_record *r, dsc_import_text **out, dsc_error *err);

// Token ids into a text. `field` names the array.
int dsc_import_token_ids(const json_t *array, int32_t vocab_size, const char *field,
                         dsc_import_text *out, dsc_error *err);

// Bytes [begin, begin + length) of the output's text are a turn of `recorded` tokens. An output
// with turns is tokenised turn by turn, what is between them (line ends) left out, and a turn that
// may end gets the EOS token when exactly one more was recorded than its text has.
int dsc_import_add_turn(dsc_import_record *r, size_t begin, size_t length, int64_t recorded,
                        bool may_end, dsc_error *err);

int dsc_import_metadata(dsc_import_record *r, const json_t *object, dsc_error *err);

// Room for `count` numbers of a column that dsc_request_input hands over (one or, of a shape, more
// for each output token or step; ranges and the count are checked later). *out[count] is to be
// filled. Its field is recorded from now on; that a step's columns have steps, and of which kind,
// is the driver's to say in r->recorded.steps, as are the parameters.
int dsc_import_column_start(dsc_import_record *r, int column, size_t count, void **out,
                            dsc_error *err);
// A drafter with accept lengths, one for each output token: its column, to be started. DSC_EINPUT:
// a name or cap that cannot be, one too many, or the name a second time.
int dsc_import_add_drafter(dsc_import_record *r, const char *name, int64_t cap, int *column,
                           dsc_error *err);
// Columns from our own JSON fields: import_columns.c.
int dsc_import_columns_read(dsc_import_record *r, const json_t *line, dsc_error *err);

// Where our JSON has the columns, for import and export alike: objects that share a parameter
// (object 0: the line itself), and the columns in them. The lists end with a name NULL. (Accept
// lengths have an object "accept" of their own.)
typedef struct dsc_json_object {
    const char *name, *member; // of the parameter in it
    int parameter;             // in dsc_parameters, or -1
} dsc_json_object;
typedef struct dsc_json_column {
    int object;
    const char *name;
    int column;
} dsc_json_column;
enum { DSC_JSON_STEPS = 4 }; // the object of steps, whose parameter says if they are aligned
extern const dsc_json_object dsc_json_objects[];
extern const dsc_json_column dsc_json_columns[];

// Rows in the form described in import_rows.c. That a row lists no token twice and adds up to 1 is
// the writer's to check.
int dsc_import_rows_read(dsc_import_rows *out, const json_t *array, int32_t vocab_size,
                         const char *field, dsc_error *err);

// --- for the importer ------------------------------------------------------------------------

void dsc_import_rows_reset(dsc_import_rows *r);
void dsc_import_rows_fini(dsc_import_rows *r);
dsc_rows dsc_import_rows_view(const dsc_import_rows *r); // of kind DSC_ROWS_NONE when not given

void dsc_import_columns_reset(dsc_import_record *r);
void dsc_import_columns_fini(dsc_import_record *r);
int dsc_import_columns_finish(const dsc_import_record *r, dsc_error *err); // checks lengths

// Sets in *info what the record has: rows, columns, parameters, drafters. (Text is the importer's.)
void dsc_import_record_describe(const dsc_import_record *r, dsc_trace_info *info);
// Whether a record has what the first one had (described in *first), for all requests of a trace
// have it or none: DSC_EINPUT names the field.
int dsc_import_record_agrees(const dsc_import_record *r, const dsc_trace_info *first,
                             dsc_error *err);
// Sets rows and columns in *q, which are views of r's, drafters in the order of *first.
void dsc_import_record_view(const dsc_import_record *r, const dsc_trace_info *first,
                            dsc_request_input *q);

// Tokenises the output turn by turn (import_turns.c). DSC_EUSAGE without an encoder.
int dsc_import_turns_finish(dsc_import_record *r, dsc_encoder *encoder, int32_t eos,
                            dsc_error *err);

// Whether a driver's prepare may read the input: it is a file, not a pipe.
bool dsc_import_rereadable(const char *path);

// The JSON value of a line, strictly: no duplicate names, no trailing characters, and at most 16 Mi
// values. DSC_EINPUT "NAME:LINE:COLUMN: ...". *out is a new reference.
int dsc_import_parse(json_t **out, const dsc_line *line, const char *name, dsc_error *err);

// Id, prompt and references of one of our own lines, whose fields are checked to be known ones.
int dsc_import_prompt_read(const json_t *line, int32_t vocab_size, dsc_import_record *out,
                           dsc_error *err);

// The text of tokens, special ones left out, always UTF-8, into an empty buffer.
int dsc_import_decode(const dsc_tokenizer *tokenizer, const int32_t *id, size_t count,
                      dsc_buffer *out, dsc_error *err);

// The driver that fits `line` best. DSC_EINPUT when none does.
int dsc_import_probe(const dsc_import_driver **out, const json_t *line, dsc_error *err);

// Tokenises what is text, decodes what is tokens (`encoder` and `tokenizer` NULL: neither is
// possible and text is dropped), appends `eos` (-1: none) as r->eos says, cuts the references, and
// checks the lengths of rows and columns. DSC_EUSAGE when the options cannot work for any
// line.
int dsc_import_record_finish(dsc_import_record *r, const dsc_tokenizer *tokenizer,
                             dsc_encoder *encoder, int32_t eos, dsc_error *err);

#endif

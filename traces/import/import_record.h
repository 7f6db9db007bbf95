// SPDX-License-Identifier: Apache-2.0
// The contents of one source line, between the driver that reads it and the trace.
//
// A driver fills a record with texts or token ids; dsc_import_record_finish tokenizes them and
// checks what all formats have in common. Both depend on their arguments only, so any thread can
// make a record.
#ifndef DSC_TRACES_IMPORT_RECORD_H
#define DSC_TRACES_IMPORT_RECORD_H

#include "traces/files/input.h"
#include "traces/import/import.h"
#include "traces/tokenizer/ends.h"
#include "traces/trace/trace_columns.h"

extern const dsc_import_driver dsc_import_llma, dsc_import_specbench, dsc_import_mtbench,
    dsc_import_eagle, dsc_import_alpaca, dsc_import_acclen, dsc_import_vllm, dsc_import_jsonl,
    dsc_import_chats, dsc_import_pairs, dsc_import_stream, dsc_import_bench, dsc_import_vcr,
    dsc_import_llamacpp, dsc_import_mapped;

enum { DSC_IMPORT_ID_MAX = 1024 }; // bytes of a request's id

typedef struct dsc_import_text {
    dsc_text_view text; // bytes NULL: the source has token ids only
    bool has_tokens;    // the source has token ids; otherwise the text is tokenized
    dsc_tokens tokens;
    dsc_buffer built; // storage of a `text` that was joined or decoded
} dsc_import_text;

typedef enum dsc_import_eos {
    DSC_IMPORT_EOS_NEVER,    // no EOS token is appended to a text
    DSC_IMPORT_EOS_IF_KNOWN, // it is appended to a text, unless the tokenizer has none
    DSC_IMPORT_EOS_REQUIRED, // it is appended to a text; a tokenizer without one is an error
} dsc_import_eos;

// One column, with the element type of dsc_columns.
typedef struct dsc_import_column {
    void *data;
    size_t count, capacity; // numbers
} dsc_import_column;

// A turn of the conversation: a part of the output's text, with the token count of the source.
typedef struct dsc_import_turn {
    size_t begin, length; // bytes of the output's text
    int64_t recorded;     // tokens, including the EOS token where one was generated
    bool may_end;         // false: a length limit ended it, so it has no EOS token
} dsc_import_turn;

// Views point into the JSON value of the line, which must outlive them. Zero-initialize.
struct dsc_import_record {
    dsc_buffer id; // length 0: the source has none
    dsc_import_text prompt, output;
    bool prompt_is_complete; // its text contains all special tokens: the tokenizer adds none
    dsc_import_eos eos;
    bool eos_appended;          // dsc_import_record_finish appended an EOS token
    dsc_import_text *reference; // [references]
    dsc_reference_kind *kind;   // [references]
    size_t references, reference_capacity, kind_capacity;
    size_t reference_limit; // references are cut to this number of tokens
    // The recorded fields but the text, their parameters and drafters, set by
    // dsc_import_column_start. The rest of `recorded` is not used.
    dsc_trace_info recorded;
    dsc_import_column column[DSC_COLUMNS];
    int columns;    // those before it may have been started, by this record or an earlier one
    json_t *kept;   // the metadata as an object, or NULL; owned
    char *metadata; // the same as text, set by dsc_import_record_seal; owned
    bool is_lossy, tools_left_out; // members of the metadata, see dsc_import_mark
    bool is_unanswered;            // the last request of a chat that goes on without an answer
    // Counts of the source, which are compared with the tokenizer's.
    dsc_import_turn *turn; // [turns]; none: the output is one text
    size_t turns, turn_capacity;
    int64_t recorded_tokens; // output tokens, or -1: unknown
    double recorded_s;       // seconds of generation, or 0: unknown
    // Steps without a draft that the source leaves out: those that certainly ran, which were added
    // to the steps, and more that may have run.
    int64_t steps_added, steps_unknown;
    const char *model; // of the source, a view into the JSON value; NULL: unknown
    bool other_model;  // it is not the one of options.model: the record is incomplete and left out
};

// Empties the record for the next line and keeps its memory.
void dsc_import_record_reset(dsc_import_record *r);
void dsc_import_record_fini(dsc_import_record *r);
size_t dsc_import_record_bytes(const dsc_import_record *r); // memory that it keeps

// --- for drivers: all return DSC_EINPUT with a message that begins with the field ------------

// "the line must be an object, not a number"
int dsc_import_not_object(const json_t *line, dsc_error *err);

// "field 'NAME' must be EXPECTED, not a number", or "... is missing" when `value` is NULL.
int dsc_import_wrong_type(const json_t *value, const char *expected, dsc_error *err,
                          const char *field, ...) DSC_PRINTF(4, 5);

// Sets *out to a view of a JSON string. `field` is a format for the field's name.
int dsc_import_string(dsc_text_view *out, const json_t *value, dsc_error *err, const char *field,
                      ...) DSC_PRINTF(4, 5);

// Reads an integer in [low, high]; another value leaves *out as it was.
int dsc_import_integer(int64_t *out, const json_t *value, int64_t low, int64_t high, dsc_error *err,
                       const char *field, ...) DSC_PRINTF(6, 7);
// Reads element i of accept lengths that include the bonus token: *out is one less, in [0, 65535].
int dsc_import_accepted(int64_t *out, const json_t *lengths, size_t i, const char *field,
                        dsc_error *err);

// Sets the id from a string or an integer of 1 to DSC_IMPORT_ID_MAX bytes without control
// characters.
int dsc_import_id(dsc_import_record *r, const json_t *value, dsc_error *err);

// Appends an empty reference; *out is valid until the next call.
int dsc_import_add_reference(dsc_import_record *r, dsc_import_text **out, dsc_error *err);

// Reads token ids into a text. `field` names the array.
int dsc_import_token_ids(const json_t *array, int32_t vocab_size, const char *field,
                         dsc_import_text *out, dsc_error *err);

// Adds a turn: bytes [begin, begin + length) of the output's text, with `recorded` tokens. An
// output with turns is tokenized turn by turn, without the line ends between them. A turn that may
// end gets the EOS token when the source counted exactly one token more than its text has.
int dsc_import_add_turn(dsc_import_record *r, size_t begin, size_t length, int64_t recorded,
                        bool may_end, dsc_error *err);

// Appends `before` and a view to a text.
int dsc_import_put(dsc_import_text *t, const char *before, dsc_text_view text, dsc_error *err);

// Copies the members of `from` with these names (NULL-terminated), as far as they are present, to
// the metadata.
int dsc_import_keep(dsc_import_record *r, const json_t *from, const char *const *names,
                    dsc_error *err);

// Makes room for `count` numbers of a column with dsc_column_type.input (one or, with a shape, more
// for each output token or step) and marks its field as recorded. The driver fills *out[count];
// ranges and the count are checked later. The driver also sets r->recorded.steps and the
// parameters.
int dsc_import_column_start(dsc_import_record *r, int column, size_t count, void **out,
                            dsc_error *err);
// Adds a drafter with accept lengths, one for each output token. *column is the column to start.
// DSC_EINPUT: invalid name or cap, too many drafters, or a duplicate name.
int dsc_import_add_drafter(dsc_import_record *r, const char *name, int64_t cap, int *column,
                           dsc_error *err);
// Reads the columns of draftscope's own JSON lines (import_columns.c).
int dsc_import_columns_read(dsc_import_record *r, const json_t *line, dsc_error *err);

// The place of the columns in draftscope's JSON lines, for import and export: the objects whose
// columns share parameters (object 0 is the line itself), and the columns in them. The lists end
// with a NULL name. Accept lengths are in a separate object "accept".
enum { DSC_JSON_PARAMETERS = 3 };
typedef struct dsc_json_object {
    const char *name;
    const char *member[DSC_JSON_PARAMETERS]; // the members that are parameters
    int parameters;                          // their number
    int parameter;                           // the first of them in dsc_parameters; others follow
} dsc_json_object;
typedef struct dsc_json_column {
    int object;
    const char *name;
    int column;
} dsc_json_column;
enum { DSC_JSON_STEPS = 6 }; // the object of steps, whose member "aligned" is a boolean
extern const dsc_json_object dsc_json_objects[];
extern const dsc_json_column dsc_json_columns[];

// Reads distributions in the form described in import_rows.c. The writer checks duplicates and
// sums.
int dsc_import_rows_read(dsc_import_record *r, dsc_model_side side, const json_t *array,
                         int32_t vocab_size, dsc_error *err);

// --- for the importer ------------------------------------------------------------------------

void dsc_import_columns_reset(dsc_import_record *r);
void dsc_import_columns_fini(dsc_import_record *r);
int dsc_import_columns_finish(const dsc_import_record *r, dsc_error *err); // checks lengths

// Sets the distributions, columns, parameters and drafters of *info. The importer sets has_text.
void dsc_import_record_describe(const dsc_import_record *r, dsc_trace_info *info);
// Checks that a record has the same fields as the first one (*first), because a trace records a
// field for all requests or for none. DSC_EINPUT names the field.
int dsc_import_record_agrees(const dsc_import_record *r, const dsc_trace_info *first,
                             dsc_error *err);
// Sets the distributions and columns of *q to views of r, with the drafters in the order of *first.
void dsc_import_record_view(const dsc_import_record *r, const dsc_trace_info *first,
                            dsc_request_input *q);

// Returns whether the input is a regular file, which can be read twice.
bool dsc_import_rereadable(const char *path);

// Calls `visit` for each line of a file that is JSON. Lines that cannot be read are skipped,
// because the import itself reports them.
int dsc_import_scan(const char *path, void (*visit)(void *state, const json_t *line), void *state,
                    dsc_error *err);

// Parses a line as JSON without duplicate names or trailing characters, and with at most 4 Mi
// values. DSC_EINPUT "NAME:LINE:COLUMN: ...". *out is a new reference.
int dsc_import_parse(json_t **out, const dsc_line *line, const char *name, dsc_error *err);

// Reads the value of a field `prompt`: a string, token ids, or {"text", "tokens",
// "add_special_tokens"}; and that of a field `references`, which may be NULL.
int dsc_import_prompt_value(const json_t *value, int32_t vocab_size, dsc_import_record *out,
                            dsc_error *err);
int dsc_import_references(const json_t *array, int32_t vocab_size, dsc_import_record *out,
                          dsc_error *err);

// Whether draftscope's JSON lines have a field of this name.
bool dsc_import_is_field(const char *name);

// Reads the prompt of a line whose answer another driver reads: AlpacaEval's instruction with its
// input; LLMA's query with its documents, which become references.
int dsc_import_alpaca_prompt(const json_t *line, dsc_import_record *out, dsc_error *err);
int dsc_import_llma_prompt(const json_t *line, dsc_import_record *out, dsc_error *err);

// Decodes tokens without special ones into an empty buffer; the result is always UTF-8.
int dsc_import_decode(const dsc_tokenizer *tokenizer, const int32_t *id, size_t count,
                      dsc_buffer *out, dsc_error *err);

// The driver that matches `line` best. DSC_EINPUT when none does.
int dsc_import_probe(const dsc_import_driver **out, const json_t *line, dsc_error *err);

// Tokenizes texts, decodes tokens (without `encoder` and `tokenizer` both are impossible, and text
// is dropped), appends ends->eos (`ends` NULL: none) as r->eos determines unless the text itself
// ends with one of them, cuts the references, and checks the lengths of distributions and columns.
// DSC_EUSAGE when the options are wrong for every line.
int dsc_import_record_finish(dsc_import_record *r, const dsc_tokenizer *tokenizer,
                             dsc_encoder *encoder, const dsc_ends *ends, dsc_error *err);
// Ends the metadata.
int dsc_import_record_seal(dsc_import_record *r, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// The answer of draftscope serve: the verdict at each load, up to which load speculation pays, and
// the settings of an engine. It is made from a result table alone, so that a table that was merged
// of shards has the same one.
#ifndef DSC_CLI_SERVE_ANSWER_H
#define DSC_CLI_SERVE_ANSWER_H

#include "cli/serve/serve.h"
#include "base/table.h"
#include "cli/tune/engine.h"

// Arrivals that differ in nothing but their number: a rate, clients, or a speed.
typedef enum cli_load_unit {
    CLI_LOAD_RATE,    // requests per second
    CLI_LOAD_CLIENTS, // of a closed loop
    CLI_LOAD_SPEED,   // of recorded arrivals
    CLI_LOAD_LISTED   // arrivals of a file, which have no number
} cli_load_unit;

// The verdict at one load. Rows, also those of the advice, are those of the table; SIZE_MAX: there
// is none.
typedef struct cli_load_verdict {
    const char *arrivals; // as in the table, "poisson:4"
    char kind[64];        // what the loads of a sweep have in common: "Gamma arrivals, cv 2"
    cli_load_unit unit;
    double at;
    size_t none;         // the row of no speculation
    dsc_load_advice own; // on the rows that the engine has settings for; without one as `all`
    dsc_load_advice all; // on all rows
    bool differs;        // the row of `all` is one that the engine lacks
} cli_load_verdict;

typedef struct cli_serve_answer {
    const dsc_table *table;
    cli_engine_use engine;
    const cli_engine_use *use; // of comment `engine`, or NULL
    const char *slo;           // of comment `slo`, or NULL
    dsc_load_gain *gain;       // [table->rows]
    cli_load_verdict *load;    // [loads] by kind, in the order of the table, and ascending
    size_t loads;
} cli_serve_answer;

// Whether the table has an answer: rows of loads, one of them of a method that drafts.
bool cli_serve_has_answer(const dsc_table *t);
// Judges every load of the table, which the answer refers to, and adds what it says to the table:
// the cells of cli_serve_gain_columns, and the comments load_verdict_N, load_answer_N and, with an
// engine, engine_line_N. Nothing happens where the table has no answer, or has it already: the
// answer has no loads then. Freed by cli_serve_answer_fini whatever was returned.
int cli_serve_answer_make(cli_serve_answer *a, dsc_table *t, dsc_error *err);
void cli_serve_answer_fini(cli_serve_answer *a);
// The same for a table in a file, as it is after draftscope merge: TSV or, with `jsonl`, JSON
// lines. A file with another table stays as it is.
int cli_serve_answer_file(const char *path, bool jsonl, dsc_error *err);
// The same for a file whose rows are not written yet: adds the comments to `head`, and sets gain
// and advice of the runs. `person`: where the answer is printed in words as well, or NULL.
int cli_serve_answer_head(dsc_table *head, const cli_serve_rows *r, FILE *person, dsc_error *err);
// Prints the answer for a person.
int cli_serve_answer_print(const cli_serve_answer *a, FILE *f, dsc_error *err);
// DSC_EUSAGE: --engine has none of the methods. `trace` may be NULL.
int cli_serve_check_engine(const dsc_trace *trace, const cli_call *call, dsc_error *err);
// Adds the comments that the answer needs in addition to rows and `slo`: `engine`, `draft_kind`;
// and what is not modeled. Nothing is added where no method drafts.
int cli_serve_answer_conditions(dsc_table *t, const dsc_trace *trace, const cli_call *call,
                                dsc_error *err);
// Writes the table of a call with the answer to standard output, on a terminal also in words.
int cli_serve_answer_write(dsc_table *t, const cli_call *call, dsc_error *err);

// --- parts ---------------------------------------------------------------------------------------

// A cell of a row: its text, "" where there is none; its number, NaN where there is none.
const char *cli_serve_text(const dsc_table *t, size_t row, const char *column);
double cli_serve_number(const dsc_table *t, size_t row, const char *column);
double cli_serve_within(const dsc_table *t, size_t row); // share of requests within the SLO
bool cli_serve_is_schedule(const char *policy);
// The configuration of a row, not prepared; its texts are the table's. DSC_EINPUT: the row has no
// known method, or a value outside its range.
int cli_serve_row_config(dsc_config *out, const dsc_table *t, size_t row, dsc_error *err);
// Appends "ngram num-speculative-tokens=4": the method with its draft length, the parameters that
// differ from their defaults or between the rows of the method, and a policy other than `fixed`.
int cli_serve_row_name(dsc_buffer *b, const dsc_table *t, size_t row, dsc_error *err);
// Returns NULL when the engine has settings for the row, else the reason, a static text.
const char *cli_serve_row_lacks(const cli_engine_use *use, const dsc_table *t, size_t row);

// Judges every load of the table: all of the answer, without a change of the table.
int cli_serve_judge(cli_serve_answer *a, const dsc_table *t, dsc_error *err);
// The cell of column `advice` of a row, a static text.
const char *cli_serve_advice(const cli_serve_answer *a, size_t row);
// The first load of another kind, from `first` on.
size_t cli_serve_kind_end(const cli_serve_answer *a, size_t first);
// Whether two verdicts recommend the same.
bool cli_serve_same_setting(const cli_serve_answer *a, const cli_load_verdict *x,
                            const cli_load_verdict *y);
const char *cli_serve_load_unit(const cli_load_verdict *v); // " requests/s"
// Appends "4 requests/s", or "1 to 4 requests/s" where the loads differ.
int cli_serve_load_words(dsc_buffer *b, const cli_load_verdict *from, const cli_load_verdict *to,
                         dsc_error *err);
// Appends the settings of the engine for every kind of load, and remarks.
int cli_serve_engine_lines(dsc_buffer *out, const cli_serve_answer *a, dsc_error *err);

#endif

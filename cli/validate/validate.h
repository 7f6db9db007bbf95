// SPDX-License-Identifier: Apache-2.0
// Comparison of published figures with predictions: `draftscope validate --published`. A row is one
// source, a paper or a log: a table ROW.tsv of its figures (tests/validation/README.md) and a
// function that predicts each figure.
#ifndef DSC_CLI_VALIDATE_H
#define DSC_CLI_VALIDATE_H

#include "cli/cli.h"

#include <string.h>

// The criterion by which a figure is judged.
typedef enum validate_rule {
    VALIDATE_GIVEN,    // an input of the prediction, not predicted
    VALIDATE_SHOWN,    // not judged; the note gives the reason
    VALIDATE_ABSOLUTE, // |predicted - published| <= limit
    VALIDATE_PERCENT,  // |100 (predicted / published - 1)| <= limit
    VALIDATE_ORDER,    // predictions and figures of this rule are in the same order within a case
    VALIDATE_LEAST,    // the prediction is a lower bound
} validate_rule;

// What it means that a figure is predicted. Only the first kind predicts a measurement.
typedef enum validate_kind {
    VALIDATE_PREDICTION, // of a measured speed, length or best setting
    VALIDATE_REPLAY,     // counts of published data, replayed
    VALIDATE_FORMULA,    // value of a closed form
    VALIDATE_IDENTITY,   // recomputed from the same numbers, or by definition
    VALIDATE_IN_ORDER,   // order of methods; VALIDATE_ORDER
    VALIDATE_BOUND,      // VALIDATE_LEAST
    VALIDATE_KINDS,
    VALIDATE_NO_KIND = VALIDATE_KINDS, // of a given figure
} validate_kind;
extern const dsc_column validate_kinds[VALIDATE_KINDS]; // names and meanings

typedef struct validate_figure {
    const char *source, *where, *quantity; // table of the paper; case; quantity
    double at;                             // draft length, window, k, ...; NaN: none
    double published;
    const char *tolerance; // as written in the table
    validate_rule rule;
    double limit; // for ABSOLUTE and PERCENT
    validate_kind kind;
    const char *witness; // quantity that predicts the same figure another way; "-": none
    const char *note;    // "-": none
    double predicted;    // NaN: not predicted
} validate_figure;

// One row while it is evaluated.
typedef struct validate_row {
    const char *path;        // its table
    const char *folder;      // folder of the tables and of other input files of the row
    const char *data;        // --data, or NULL
    const char *corpus;      // text to train n-gram pairs on
    validate_figure *figure; // [count]
    size_t count;
    void *state; // of the row's type, zeroed before its `begin`
} validate_row;

typedef struct validate_row_type {
    const char *name, *summary;
    bool needs_data; // reads files below --data; skipped without
    size_t state_size;
    // Prepares the zeroed state of a row, and frees what it owns also after a failure. NULL: none.
    int (*begin)(void *state, const validate_row *row, dsc_error *err);
    void (*end)(void *state);
    // Sets f->predicted of a figure that is not given; leaves it NaN for an unknown quantity.
    // DSC_EINPUT: the table lacks a given figure.
    int (*predict)(validate_figure *f, const validate_row *row, dsc_error *err);
} validate_row_type;

// Predicts every figure of the row that is not given.
int validate_predict_row(const validate_row_type *type, validate_row *row, dsc_error *err);

extern const validate_row_type validate_spectr_appb, validate_spectr_table1, validate_pearl,
    validate_eagle, validate_ouroboros, validate_leviathan, validate_specbench, validate_llma,
    validate_khisti, validate_identity, validate_serving, validate_steps;

// --- tables (validate_table.c) ----------------------------------------------------------------

// Reads row->path into *t, which owns the texts, and into row->figure, which the caller frees.
// DSC_EINPUT names the file and the figure or column.
int validate_read(validate_row *row, dsc_table *t, const char *name, dsc_error *err);
// Adds one table row to *t per figure that is not given. DSC_EINPUT: a figure was not predicted.
int validate_report(dsc_table *t, const char *name, const validate_row *row, dsc_error *err);
// Adds one table row for a row that is skipped.
int validate_report_skipped(dsc_table *t, const char *name, const char *why, dsc_error *err);

enum { VALIDATE_COLUMNS = 14 };
extern const dsc_column validate_columns[VALIDATE_COLUMNS];

// Finds the given figure of a case; `at` NaN matches any setting. DSC_EINPUT: there is none.
int validate_given(const validate_row *row, const char *where, const char *quantity, double at,
                   double *value, dsc_error *err);
static inline bool validate_is(const validate_figure *f, const char *quantity)
{
    return f->rule != VALIDATE_GIVEN && strcmp(f->quantity, quantity) == 0;
}

// --- the simulator (validate_run.c) -----------------------------------------------------------

typedef struct validate_outcome {
    double requests, output_tokens, target_calls, num_drafts_started, num_draft_tokens,
        num_accepted_tokens, draft_calls, block_efficiency, speedup;
} validate_outcome;

// Runs `draftscope sim` with the arguments in `words`, separated by blanks; {} stands for `file`.
int validate_simulate(const char *words, const char *file, validate_outcome *out, dsc_error *err);

typedef struct validate_import {
    const char *format, *file, *tokenizer, *questions; // below --data; questions may be NULL
} validate_import;
// A trace in a temporary folder.
typedef struct validate_imported {
    char *scratch, *path; // the folder; the trace in it
    dsc_trace *trace;
} validate_imported;
// Imports a file and opens the trace. Closing removes the folder, also after an error.
int validate_import_open(validate_imported *to, const validate_row *row,
                         const validate_import *what, dsc_error *err);
void validate_import_close(validate_imported *to);
// *out is FOLDER/NAME, owned by the caller.
int validate_path(char **out, const char *folder, const char *name, dsc_error *err);

#endif

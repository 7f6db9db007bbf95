// SPDX-License-Identifier: Apache-2.0
// Published figures beside what theory and simulator make of them: `draftscope validate
// --published`. A row is one source, a paper or a log: a table ROW.tsv of its figures
// (tests/validation/README.md) and a function that predicts them.
#ifndef DSC_CLI_VALIDATE_H
#define DSC_CLI_VALIDATE_H

#include "cli/cli.h"

#include <string.h>

// How a figure is judged.
typedef enum validate_kind {
    VALIDATE_GIVEN,    // it is what the prediction starts from
    VALIDATE_SHOWN,    // not judged; its note says why
    VALIDATE_ABSOLUTE, // |predicted - published| <= tolerance
    VALIDATE_PERCENT,  // the same of 100 (predicted / published - 1)
    VALIDATE_ORDER,    // the figures of its case that are judged so are ordered as published
    VALIDATE_LEAST,    // the prediction is a lower bound of it
} validate_kind;

typedef struct validate_figure {
    const char *source, *where, *quantity; // table of the paper; case; what
    double at;                             // draft length, window, k, ...; NaN: none
    double published;
    const char *tolerance; // as written
    validate_kind kind;
    double limit;     // of ABSOLUTE and PERCENT
    bool disputed;    // the note says why the source is wrong when it is out of tolerance
    const char *note; // "-": none
    double predicted; // NaN: nothing predicts it
} validate_figure;

// A row at work.
typedef struct validate_row {
    const char *path;        // of its table
    const char *folder;      // of the tables, where other files of the row are too
    const char *data;        // --data, or NULL
    const char *corpus;      // text for n-gram pairs
    validate_figure *figure; // [count]
    size_t count;
} validate_row;

typedef struct validate_row_type {
    const char *name, *summary;
    bool needs_data; // files below --data: skipped without
    // Sets `predicted` of every figure that is not given. DSC_EINPUT: the table lacks what the
    // prediction starts from.
    int (*predict)(validate_row *row, dsc_error *err);
} validate_row_type;

extern const validate_row_type validate_spectr_appb, validate_spectr_table1, validate_pearl,
    validate_eagle, validate_ouroboros, validate_leviathan, validate_specbench, validate_llma,
    validate_khisti, validate_identity;

// --- tables (validate_table.c) ----------------------------------------------------------------

// Reads folder/NAME.tsv into *t, which owns the texts, and row->figure, which the caller frees.
// DSC_EINPUT names the file and the figure or column.
int validate_read(validate_row *row, dsc_table *t, const char *name, dsc_error *err);
// Fills in *t, one line per figure that is not given. DSC_EINPUT: a figure that nothing predicts.
int validate_report(dsc_table *t, const char *name, const validate_row *row, dsc_error *err);
// A line for a row that could not be looked at.
int validate_report_skipped(dsc_table *t, const char *name, const char *why, dsc_error *err);

extern const dsc_column validate_columns[];
extern const size_t validate_column_count;

// The given figure of a case: DSC_EINPUT when it is not there. `at` NaN: whichever it is at.
int validate_given(const validate_row *row, const char *where, const char *quantity, double at,
                   double *value, dsc_error *err);
static inline bool validate_is(const validate_figure *f, const char *quantity)
{
    return f->kind != VALIDATE_GIVEN && strcmp(f->quantity, quantity) == 0;
}

// --- the simulator (validate_run.c) -----------------------------------------------------------

typedef struct validate_outcome {
    double requests, output_tokens, target_calls, num_drafts_started, num_draft_tokens,
        num_accepted_tokens, draft_calls, block_efficiency, speedup;
} validate_outcome;

// What `draftscope sim` with these words, cut at blanks, says. {} in `words` stands for `file`.
int validate_simulate(const char *words, const char *file, validate_outcome *out, dsc_error *err);

// A folder for what is imported on the way; removed with all that is in it.
int validate_scratch_open(char **path, dsc_error *err);
void validate_scratch_close(char *path);
// DATA/FILE into the trace SCRATCH/trace.dst, in *trace (dsc_trace_close).
typedef struct validate_import {
    const char *format, *file, *tokenizer, *questions; // below --data; questions may be NULL
} validate_import;
int validate_import_trace(const validate_row *row, const char *scratch, const validate_import *what,
                          dsc_trace **trace, dsc_error *err);
// FOLDER/NAME, owned by the caller.
int validate_path(char **out, const char *folder, const char *name, dsc_error *err);

#endif

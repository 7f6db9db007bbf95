// SPDX-License-Identifier: Apache-2.0
// Counts what an import must tell the user about its source: other counts of tokens, empty prompts,
// several models, failed requests, steps that the source leaves out.
#ifndef DSC_TRACES_IMPORT_NOTES_H
#define DSC_TRACES_IMPORT_NOTES_H

#include "traces/import/import_record.h"

enum { DSC_IMPORT_MODELS = 8 };

// Zero-initialize; `model` of the options is a view.
typedef struct dsc_import_tally {
    const char *wanted; // the model of options.model, or NULL
    int64_t requests, no_prompt;
    int64_t other_model; // requests of other models, left out
    int64_t failed;      // requests that the source records as failed, left out
    int64_t lossy;       // requests that lack a part of what the source has
    int64_t no_tools;    // requests whose prompt lacks the definitions of tools
    int64_t unanswered;  // chats that end with a message that no answer follows
    // Token counts of the source, for the requests that have one, to compare with the trace.
    int64_t counted, recorded_tokens, other_count, trace_tokens;
    double recorded_s;
    int64_t steps_added, steps_added_in, steps_unknown, steps_unknown_in; // see dsc_import_record
    struct {
        char name[64]; // cut
        int64_t requests;
    } model[DSC_IMPORT_MODELS];
    int models;            // the last stands for all further ones
    int64_t eos_appended;  // to outputs that are texts
    const char *eos_guess; // that token, if no file names it; else NULL
} dsc_import_tally;

// Counts a record that was added to the trace.
void dsc_import_tally_add(dsc_import_tally *t, const dsc_import_record *r);
// Returns whether the record is of a model that is not wanted, and counts it then.
bool dsc_import_tally_skips(dsc_import_tally *t, const dsc_import_record *r);
// Writes note number `kind` (from 0); empty where there is nothing to tell. Returns false after the
// last one.
bool dsc_import_tally_note(const dsc_import_tally *t, int kind, char note[DSC_IMPORT_NOTE]);
// DSC_EINPUT: why there is no request.
int dsc_import_tally_empty(const dsc_import_tally *t, dsc_error *err);

#endif

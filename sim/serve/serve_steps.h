// SPDX-License-Identifier: Apache-2.0
// The steps of a served run as a file, in JSON lines: what each step computed and what it was
// predicted to take. `draftscope serve --schedule` writes it, `draftscope live profile --schedule`
// runs it on models. One step is in memory at a time.
#ifndef DSC_SIM_SERVE_STEPS_H
#define DSC_SIM_SERVE_STEPS_H

#include "base/table.h"
#include "sim/serve/serve.h"

// Lists with an element for each sequence of a step.
typedef enum dsc_steps_list {
    DSC_STEPS_REQUEST,       // number of its request in the run
    DSC_STEPS_TOKENS,        // computed in the target's pass, >= 1
    DSC_STEPS_CONTEXT,       // in its KV cache before, >= 0
    DSC_STEPS_PREFILL,       // 1: the tokens are a part of its prompt; 0: it decodes
    DSC_STEPS_DRAFT_PASSES,  // passes of the draft model after the target's that it takes part in
    DSC_STEPS_DRAFT_CONTEXT, // in the draft model's KV cache before the first of these; 0: none
    DSC_STEPS_LISTS
} dsc_steps_list;

typedef struct dsc_serve_record {
    int64_t number;                       // of the step, from 0; ascending in a file
    double begin_s;                       // simulated time
    double target_s, draft_s, overhead_s; // predicted
    int64_t sequences;                    // >= 1
    int64_t *list[DSC_STEPS_LISTS];       // [sequences]
    int64_t *place;                       // [sequences] of a run: index in the engine's `running`
    size_t capacity[DSC_STEPS_LISTS + 1];
} dsc_serve_record; // zero-initialize; dsc_serve_record_fini frees

void dsc_serve_record_fini(dsc_serve_record *r);

// Sets the record of the step that the engine is in: the target's pass, to be called by
// dsc_serve_options.pass; then the drafts and the times, by dsc_serve_options.step. DSC_ENOMEM.
int dsc_serve_record_pass(dsc_serve_record *r, const dsc_serve_engine *engine, dsc_error *err);
void dsc_serve_record_drafts(dsc_serve_record *r, const dsc_serve_engine *engine);

// The sums of a record, which have a price; the results of *out are those of the record.
void dsc_serve_record_sum(const dsc_serve_record *r, dsc_serve_step *out);

// --- files ---------------------------------------------------------------------------------------

extern const dsc_column dsc_serve_steps_columns[]; // [dsc_serve_steps_column_count]
extern const size_t dsc_serve_steps_column_count;

// Writes the comments of `t`, which has the columns above, and a line per record. Write errors are
// left to the owner of the stream.
void dsc_serve_steps_write_head(const dsc_table *t, FILE *f);
void dsc_serve_steps_write(const dsc_table *t, const dsc_serve_record *r, FILE *f);

typedef struct dsc_serve_steps dsc_serve_steps;
// *out is owned by the caller. DSC_EINPUT: the file cannot be read.
int dsc_serve_steps_open(dsc_serve_steps **out, const char *path, dsc_error *err);
// Reads the next step into *r; *more is false at the end of the file. DSC_EINPUT names file and
// line.
int dsc_serve_steps_next(dsc_serve_steps *s, dsc_serve_record *r, bool *more, dsc_error *err);
void dsc_serve_steps_close(dsc_serve_steps *s);

#endif

// SPDX-License-Identifier: Apache-2.0
// A grid of configurations over a trace, into a result table on disk, resumable.
//
// While it runs, finished configurations stand in PATH.part (complete lines, synced after every
// block). The finished table gets its name by a rename. Starting the same sweep again goes on
// behind the last complete line of PATH.part.
#ifndef DSC_SIM_SWEEP_H
#define DSC_SIM_SWEEP_H

#include "base/table.h"
#include "sim/cost.h"
#include "sim/run.h"
#include "sim/split.h"

// The values of every parameter; configurations are their product, the last parameter fastest.
typedef struct dsc_grid {
    const dsc_drafter_type *drafter;
    int64_t *value[DSC_MAX_PARAMETERS];   // of INT and CHOICE options, owned; others: NULL
    double *real[DSC_MAX_PARAMETERS];     // of REAL options, owned
    const char *text[DSC_MAX_PARAMETERS]; // of TEXT options, which have one value; the caller's
    size_t count[DSC_MAX_PARAMETERS];
    size_t total; // configurations, at most DSC_MAX_GRID
} dsc_grid;

enum { DSC_MAX_GRID = 10000000 };

// `text[o]`: the range or list of option o of the drafter, of a TEXT option its value.
DSC_API int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter,
                          const dsc_option_value *text, dsc_error *err);
// The same from words: "method=llma n=1:3 k=4,8", every option that has a value, as `text` says.
// DSC_EINPUT when it is not such a text.
DSC_API int dsc_grid_parse(dsc_grid *g, const char *words, dsc_error *err);
DSC_API int dsc_grid_words(dsc_buffer *words, const dsc_drafter_type *drafter,
                           const dsc_option_value *text, dsc_error *err);
DSC_API void dsc_grid_fini(dsc_grid *g);
DSC_API dsc_config dsc_grid_at(const dsc_grid *g, size_t index); // 0 <= index < total
// Configurations [first, first + count), ready to run: all of them are to be finished
// (dsc_config_fini), also on failure.
DSC_API int dsc_grid_configs(const dsc_grid *g, size_t first, size_t count, dsc_config *config,
                             dsc_error *err);

typedef struct dsc_sweep_options {
    dsc_run_options run; // its progress gets output tokens x configurations
    dsc_cost cost;
    size_t block; // configurations evaluated in one pass over the trace; 0: chosen from its size
    bool force;   // replace an existing result and forget an unfinished one
    bool jsonl;   // JSON lines instead of TSV
    // Told once, when an unfinished sweep is taken up again: configurations (of a shard: cells)
    // already done. May be NULL.
    void (*resumed)(void *user, size_t done, size_t total);
} dsc_sweep_options;

// How the configurations will be run; whether their results are expectations.
DSC_API int dsc_sweep_choose(const dsc_trace *trace, const dsc_grid *grid,
                             const dsc_sweep_options *options, dsc_engine_choice *out,
                             dsc_error *err);

// Writes the table to `path`. `comments` are its comment lines: all but "command" must be equal for
// a PATH.part to be taken up (DSC_EUSAGE otherwise). DSC_EINTERRUPT after run.progress asked to
// stop: what was finished is in PATH.part.
DSC_API int dsc_sweep(const dsc_trace *trace, const dsc_grid *grid, const dsc_table *comments,
                      const char *path, const dsc_sweep_options *options, dsc_error *err);

// Runs one shard of the sweep: the cells that are dealt to split->shard, into a table of counts
// (sim/shard_table.h) for dsc_merge. `split`: shard, shards, and sizes of blocks or 0: chosen.
// Progress gets requests x configurations, after each cell. Otherwise as dsc_sweep.
DSC_API int dsc_sweep_shard(const dsc_trace *trace, const dsc_grid *grid, const dsc_table *comments,
                            const dsc_split *split, const char *path,
                            const dsc_sweep_options *options, dsc_error *err);

// Comments and columns of the result table; the result rows of configurations [first, first +
// count), written one behind the other. `parts`: DSC_RESULT_EXPECTED or 0.
DSC_API int dsc_sweep_head(dsc_table *head, const dsc_grid *grid, const dsc_table *comments,
                           int parts, dsc_error *err);
DSC_API int dsc_sweep_rows(const dsc_grid *grid, size_t first, size_t count,
                           const dsc_counts *counts, int parts, const dsc_sweep_options *options,
                           FILE *f, dsc_error *err);

#endif

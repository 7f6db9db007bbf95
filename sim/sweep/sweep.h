// SPDX-License-Identifier: Apache-2.0
// A grid of configurations over a trace, into a result table on disk, resumable.
//
// While it runs, finished configurations stand in PATH.part (complete lines, synced after every
// block). The finished table gets its name by a rename. Starting the same sweep again goes on
// behind the last complete line of PATH.part.
#ifndef DSC_SIM_SWEEP_H
#define DSC_SIM_SWEEP_H

#include "base/table.h"
#include "sim/cost/price.h"
#include "sim/sweep/grid.h"
#include "sim/run/run.h"
#include "sim/sweep/split.h"

typedef struct dsc_sweep_options {
    dsc_run_options run; // its progress gets output tokens x configurations; the rule is the grid's
    dsc_cost cost;
    // A row of each configuration for each of these batch sizes (sim/cost/price.h); none: one row,
    // without the columns of a batch.
    const int64_t *batch;
    size_t batches;
    size_t block; // configurations evaluated in one pass over the trace; 0: chosen from its size
    bool force;   // replace an existing result and forget an unfinished one
    bool jsonl;   // JSON lines instead of TSV
    // Told once, when an unfinished sweep is taken up again: configurations (of a shard: cells)
    // already done. May be NULL.
    void (*resumed)(void *user, size_t done, size_t total);
} dsc_sweep_options;

// How the configurations of a grid will be run; whether their results are expectations. DSC_EUSAGE:
// the method does not go with the rule, or not with what there is to run it on.
DSC_API int dsc_sweep_choose(const dsc_trace *trace, const dsc_grid *grid,
                             const dsc_sweep_options *options, dsc_engine_choice *out,
                             dsc_error *err);

// Of all grids: DSC_RESULT_EXPECTED when any has expectations; DSC_RESULT_BATCH with batches.
DSC_API int dsc_sweep_parts(const dsc_trace *trace, const dsc_grids *grids,
                            const dsc_sweep_options *options, int *parts, dsc_error *err);

// Writes the table to `path`, over a trace or, when that is NULL, options->run.workload. `comments`
// are its comment lines: all but "command" must be equal for a PATH.part to be taken up (DSC_EUSAGE
// otherwise). DSC_EINTERRUPT after run.progress asked to stop: what was finished is in PATH.part.
DSC_API int dsc_sweep(const dsc_trace *trace, const dsc_grids *grids, const dsc_table *comments,
                      const char *path, const dsc_sweep_options *options, dsc_error *err);

// Runs one shard of the sweep: the cells that are dealt to split->shard, into a table of counts
// (sim/sweep/shard_table.h) for dsc_merge. `split`: shard, shards, and sizes of blocks or 0:
// chosen. Progress gets requests x configurations, after each cell. Otherwise as dsc_sweep.
DSC_API int dsc_sweep_shard(const dsc_trace *trace, const dsc_grids *grids,
                            const dsc_table *comments, const dsc_split *split, const char *path,
                            const dsc_sweep_options *options, dsc_error *err);

// Runs configurations [first, first + count), grid after grid, and hands on what they counted.
typedef int dsc_sweep_sink(void *user, size_t first, size_t count, const dsc_counts *counts,
                           dsc_error *err);
DSC_API int dsc_sweep_run(const dsc_trace *trace, const dsc_grids *grids, size_t first,
                          size_t count, const dsc_run_options *options, dsc_sweep_sink *sink,
                          void *user, dsc_error *err);

// Comments and columns of the result table; the result rows of configurations [first, first +
// count), written one behind the other. `parts`: DSC_RESULT_EXPECTED or 0.
DSC_API int dsc_sweep_head(dsc_table *head, const dsc_grids *grids, const dsc_table *comments,
                           int parts, dsc_error *err);
DSC_API int dsc_sweep_rows(const dsc_grids *grids, size_t first, size_t count,
                           const dsc_counts *counts, int parts, const dsc_sweep_options *options,
                           FILE *f, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Runs a grid of configurations over a trace into a result table on disk; a sweep can be resumed.
//
// Finished configurations are complete lines of PATH.part, synced after every block. The complete
// table is renamed to PATH. The same sweep, started again, continues after the last complete line
// of PATH.part.
#ifndef DSC_SIM_SWEEP_H
#define DSC_SIM_SWEEP_H

#include "base/table.h"
#include "sim/cost/price.h"
#include "sim/sweep/grid.h"
#include "sim/run/run.h"
#include "sim/sweep/split.h"
#include "traces/trace/trace_groups.h"

typedef struct dsc_sweep_options {
    dsc_run_options run; // its progress gets output tokens x configurations; the rule is the grid's
    dsc_cost cost;
    // Each configuration has a row for each of these batch sizes (sim/cost/price.h). Without batch
    // sizes it has one row, and the table lacks the batch columns.
    const int64_t *batch;
    size_t batches;
    size_t block; // configurations evaluated in one pass over the trace; 0: chosen from its size
    // Each configuration has a row for all requests and one for each value of a metadata field;
    // run.group is set from it. NULL: no field.
    const dsc_trace_groups *by;
    bool force; // replace an existing result and forget an unfinished one
    bool jsonl; // JSON lines instead of TSV
    // Called once when an unfinished sweep is resumed, with the configurations (of a shard: cells)
    // that are done. May be NULL.
    void (*resumed)(void *user, size_t done, size_t total);
} dsc_sweep_options;

// The engine for the configurations of a grid, and whether their results are expectations.
// DSC_EUSAGE: the method is not compatible with the rule, the trace or the models.
int dsc_sweep_choose(const dsc_trace *trace, const dsc_grid *grid, const dsc_sweep_options *options,
                     dsc_engine_choice *out, dsc_error *err);

// *parts: DSC_RESULT_EXPECTED when a grid has expectations, DSC_RESULT_BATCH with batch sizes,
// DSC_RESULT_SPREAD with a cost that has quartiles.
int dsc_sweep_parts(const dsc_trace *trace, const dsc_grids *grids,
                    const dsc_sweep_options *options, int *parts, dsc_error *err);

// Runs the sweep over a trace or, when that is NULL, over options->run.workload, and writes the
// table to `path`. `comments` are its comment lines. A PATH.part is resumed if all of them but
// "command" are equal (DSC_EUSAGE otherwise). DSC_EINTERRUPT: run.progress stopped the sweep;
// PATH.part contains the finished configurations.
int dsc_sweep(const dsc_trace *trace, const dsc_grids *grids, const dsc_table *comments,
              const char *path, const dsc_sweep_options *options, dsc_error *err);

// Runs one shard of the sweep, the cells that are dealt to split->shard, into a table of counts
// (sim/sweep/shard_table.h) for dsc_merge. `split` contains shard, shards, and block sizes or 0 to
// choose them. Progress gets requests x configurations after each cell. Otherwise as dsc_sweep.
int dsc_sweep_shard(const dsc_trace *trace, const dsc_grids *grids, const dsc_table *comments,
                    const dsc_split *split, const char *path, const dsc_sweep_options *options,
                    dsc_error *err);

// Runs configurations [first, first + count), grid after grid, and passes their counts
// [count][1 + options->groups] to the sink.
typedef int dsc_sweep_sink(void *user, size_t first, size_t count, const dsc_counts *counts,
                           dsc_error *err);
int dsc_sweep_run(const dsc_trace *trace, const dsc_grids *grids, size_t first, size_t count,
                  const dsc_run_options *options, dsc_sweep_sink *sink, void *user, dsc_error *err);

// Counts of one configuration: all requests, and each value of the field.
static inline size_t dsc_sweep_each(const dsc_sweep_options *options)
{
    return 1 + (options->by ? options->by->count : 0);
}

// Comments and columns of the result table, and the rows of configurations [first, first + count),
// which are written to `f` in their order; counts [count][1 + groups]. `parts`: DSC_RESULT_EXPECTED
// or 0.
int dsc_sweep_head(dsc_table *head, const dsc_grids *grids, const dsc_table *comments, int parts,
                   const dsc_sweep_options *options, dsc_error *err);
int dsc_sweep_rows(const dsc_grids *grids, size_t first, size_t count, const dsc_counts *counts,
                   int parts, const dsc_sweep_options *options, FILE *f, dsc_error *err);

#endif

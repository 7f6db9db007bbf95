// SPDX-License-Identifier: Apache-2.0
// One shard of a sweep: its cells of configurations x requests are counted one after the other, and
// a part file is resumed after its last complete cell.
#include "sim/model/workload.h"
#include "sim/run/result.h"
#include "sim/sweep/resume.h"
#include "sim/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

typedef struct shard {
    const dsc_trace *trace;
    const dsc_grids *grids;
    const dsc_sweep_options *options;
    dsc_split split;
    int32_t *owner;      // [cells]
    int64_t cells;       // of all shards
    int64_t next;        // cell that is not on disk yet
    int64_t done, total; // requests x configurations of this shard
    dsc_part_file file;
} shard;

static int64_t work(const dsc_cell_range *cell)
{
    return (cell->configuration_end - cell->configuration) * (cell->request_end - cell->request);
}

// Marks cell s->next as done.
static void advance(shard *s, const dsc_cell_range *cell)
{
    s->done += work(cell);
    s->next++;
}

// Finds the next cell of this shard; false when there is none.
static bool find_cell(shard *s, dsc_cell_range *cell)
{
    while (s->next < s->cells && s->owner[s->next] != s->split.shard)
        s->next++;
    if (s->next == s->cells)
        return false;
    *cell = dsc_split_cell(&s->split, s->next);
    return true;
}

// Skips the cells that are complete; *length: where the last one ends.
static int pass_cells(shard *s, dsc_shard_reader *r, long *length, int64_t *cells, dsc_error *err)
{
    dsc_cell_range cell;
    bool whole = true;
    int rc = DSC_OK;
    *length = (long)r->at;
    *cells = 0;
    while (!rc && whole && find_cell(s, &cell)) {
        rc = dsc_shard_reader_cell(r, &cell, dsc_sweep_each(s->options) - 1, NULL, &whole, err);
        if (!rc && whole) {
            *length = (long)r->at;
            ++*cells;
            advance(s, &cell);
        }
    }
    if (!rc && !dsc_shard_reader_ended(r))
        rc = dsc_fail(err, DSC_EINPUT, "%s: rows after the last cell", r->path);
    return rc;
}

// Resumes after the last complete cell on disk. *fresh: the file was empty.
static int take_up(shard *s, const dsc_table *comments, bool *fresh, dsc_error *err)
{
    dsc_shard_reader r;
    int64_t cells = 0;
    long length;
    int rc = dsc_resume_shard(&s->file, comments, &s->split, &r, fresh, err);
    if (!rc && !*fresh)
        rc = pass_cells(s, &r, &length, &cells, err);
    if (!rc && !*fresh)
        rc = dsc_part_file_cut(&s->file, length, err);
    if (!rc && cells && s->options->resumed) {
        int64_t all = 0;
        for (int64_t i = 0; i < s->cells; i++)
            all += s->owner[i] == s->split.shard;
        s->options->resumed(s->options->run.user, (size_t)cells, (size_t)all);
    }
    dsc_shard_reader_close(&r);
    return rc;
}

static int write_head(shard *s, const dsc_table *comments, dsc_error *err)
{
    dsc_table head = {0};
    char text[DSC_SPLIT_TEXT];
    int rc = DSC_OK;
    dsc_split_text(&s->split, text);
    for (size_t i = 0; i < comments->comments && !rc; i++)
        rc = dsc_table_comment(&head, comments->key[i], comments->value[i], err);
    if (!rc)
        rc = dsc_table_comment(&head, "split", text, err);
    if (!rc)
        rc = dsc_shard_columns(&head, err);
    if (!rc) {
        dsc_table_write_tsv_head(&head, s->file.stream);
        rc = dsc_part_file_flush(&s->file, err);
    }
    dsc_table_fini(&head);
    return rc;
}

static int progress(void *user, int64_t done, int64_t total)
{
    const shard *s = user;
    const dsc_run_options *o = &s->options->run;
    (void)done; // tokens; a cell is short enough to be one step
    (void)total;
    return o->progress ? o->progress(o->user, s->done, s->total) : 0;
}

static int write_rows(void *user, size_t first, size_t count, const dsc_counts *counts,
                      dsc_error *err)
{
    shard *s = user;
    const dsc_cell_range cell = dsc_split_cell(&s->split, s->next);
    dsc_table t = {0};
    const size_t each = dsc_sweep_each(s->options);
    int rc = dsc_shard_columns(&t, err);
    for (size_t i = 0; i < count * each && !rc; i++)
        rc = dsc_shard_row(&t, (int64_t)(first + i / each), (int64_t)(i % each), cell.request,
                           &counts[i], err);
    for (size_t i = 0; i < t.rows && !rc; i++)
        dsc_table_write_tsv_row(&t, i, s->file.stream);
    dsc_table_fini(&t);
    return rc;
}

static int run_cell(shard *s, const dsc_cell_range *cell, dsc_error *err)
{
    dsc_run_options run = s->options->run;
    size_t count = (size_t)(cell->configuration_end - cell->configuration);
    run.first_request = cell->request;
    run.end_request = cell->request_end;
    run.progress = progress;
    run.user = s;
    int rc = dsc_sweep_run(s->trace, s->grids, (size_t)cell->configuration, count, &run, write_rows,
                           s, err);
    return rc ? rc : dsc_part_file_flush(&s->file, err);
}

// A block contains all requests if they depend on earlier ones, or if doubles are summed over them
// in their order.
static int keep_together(shard *s, dsc_error *err)
{
    int parts, rc = dsc_sweep_parts(s->trace, s->grids, s->options, &parts, err);
    const dsc_drafter_type *learns = NULL;
    for (size_t i = 0; i < s->grids->total && !rc && !learns; i++) {
        size_t first;
        const dsc_grid *grid = dsc_grids_find(s->grids, i, &first);
        const dsc_config config = dsc_grid_at(grid, i - first);
        if (grid->drafter->uses_history && grid->drafter->uses_history(&config))
            learns = grid->drafter;
    }
    bool expected = parts & DSC_RESULT_EXPECTED;
    if (rc || (!learns && !expected))
        return rc;
    if (s->split.request_block && s->split.request_block < s->split.requests)
        return learns ? dsc_fail(err, DSC_EUSAGE,
                                 "--request-block: method %s carries state from one request to the "
                                 "next, so all "
                                 "requests must be in one block",
                                 learns->name)
                      : dsc_fail(
                            err, DSC_EUSAGE,
                            "--request-block: expectations are summed in the order of requests, so "
                            "all requests must be in one block");
    s->split.request_block = s->split.requests > 0 ? s->split.requests : 1;
    return DSC_OK;
}

static int shard_init(shard *s, dsc_error *err)
{
    const dsc_trace_info *info = s->trace ? dsc_trace_get_info(s->trace) : NULL;
    const dsc_workload *load = s->options->run.workload;
    s->split.configurations = (int64_t)s->grids->total;
    s->split.requests = info ? info->requests : load->requests;
    int rc = keep_together(s, err);
    if (!rc)
        rc = dsc_split_blocks(&s->split,
                              info ? info->output_tokens : load->requests * load->max_tokens, err);
    if (!rc)
        rc = dsc_split_deal(&s->split, &s->owner, err);
    if (rc)
        return rc;
    s->cells = dsc_split_cells(&s->split);
    for (int64_t i = 0; i < s->cells; i++)
        if (s->owner[i] == s->split.shard) {
            dsc_cell_range cell = dsc_split_cell(&s->split, i);
            s->total += work(&cell);
        }
    return DSC_OK;
}

int dsc_sweep_shard(const dsc_trace *trace, const dsc_grids *grids, const dsc_table *comments,
                    const dsc_split *split, const char *path, const dsc_sweep_options *options,
                    dsc_error *err)
{
    shard s = {.trace = trace, .grids = grids, .options = options, .split = *split};
    dsc_cell_range cell;
    bool fresh = true;
    int rc = shard_init(&s, err);
    if (!rc)
        rc = dsc_part_file_open(&s.file, path, options->force, err);
    if (!rc)
        rc = take_up(&s, comments, &fresh, err);
    if (!rc && fresh)
        rc = write_head(&s, comments, err);
    while (!rc && find_cell(&s, &cell)) {
        rc = run_cell(&s, &cell, err);
        if (!rc)
            advance(&s, &cell);
    }
    if (!rc)
        rc = dsc_part_file_finish(&s.file, err);
    dsc_part_file_close(&s.file);
    free(s.owner);
    return rc;
}

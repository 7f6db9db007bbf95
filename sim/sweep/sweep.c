// SPDX-License-Identifier: Apache-2.0
// Sweeps: rows of the result table, passes of blocks of configurations over the trace, and
// resumption from the part file.
#include "sim/sweep/sweep.h"

#include "sim/model/workload.h"
#include "sim/run/result.h"
#include "sim/sweep/part_file.h"
#include "sim/sweep/resume.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dsc_sweep_choose(const dsc_trace *trace, const dsc_grid *grid, const dsc_sweep_options *options,
                     dsc_engine_choice *out, dsc_error *err)
{
    dsc_config last = dsc_grid_at(grid, grid->total - 1); // likely the one with the greatest needs
    dsc_run_options run = options->run;
    run.rule = grid->rule;
    int rc = dsc_config_prepare(&last, err);
    if (!rc)
        rc = dsc_run_choose(trace, &last, 1, &run, out, err);
    dsc_config_fini(&last);
    return rc;
}

static int columns(dsc_table *t, const dsc_grids *grids, int parts, const dsc_sweep_options *o,
                   dsc_error *err)
{
    const dsc_drafter_type **drafter;
    size_t count = 0;
    int rc = dsc_new(&drafter, grids->count, err);
    for (size_t i = 0; i < grids->count && !rc; i++) {
        size_t known = 0; // already there with another rule
        while (known < count && drafter[known] != grids->grid[i].drafter)
            known++;
        drafter[known] = grids->grid[i].drafter;
        count += known == count;
    }
    if (!rc)
        rc = dsc_result_columns_by(t, o->by ? o->by->field : NULL, drafter, count, parts, err);
    free(drafter);
    return rc;
}

int dsc_sweep_head(dsc_table *head, const dsc_grids *grids, const dsc_table *comments, int parts,
                   const dsc_sweep_options *options, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < comments->comments && !rc; i++)
        rc = dsc_table_comment(head, comments->key[i], comments->value[i], err);
    return rc ? rc : columns(head, grids, parts, options, err);
}

// Adds a row for each batch size, or a single row, of each group of requests.
static int add_rows(dsc_table *t, dsc_result *row, const dsc_counts *counts, int parts,
                    const dsc_sweep_options *o, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t g = 0; g < dsc_sweep_each(o); g++) {
        row->counts = &counts[g];
        row->by = o->by ? o->by->field : NULL;
        row->value = g ? o->by->value[g - 1] : DSC_GROUP_ALL;
        for (size_t b = 0; b < (o->batches ? o->batches : 1) && !rc; b++) {
            row->batch = o->batches ? o->batch[b] : 1;
            rc = dsc_result_row(t, row, parts, err);
        }
    }
    return rc;
}

int dsc_sweep_rows(const dsc_grids *grids, size_t first, size_t count, const dsc_counts *counts,
                   int parts, const dsc_sweep_options *options, FILE *f, dsc_error *err)
{
    dsc_table t = {0};
    int rc = columns(&t, grids, parts, options, err);
    for (size_t c = 0; c < count && !rc; c++) {
        size_t base;
        const dsc_grid *grid = dsc_grids_find(grids, first + c, &base);
        dsc_config config;
        rc = dsc_grid_configs(grid, first + c - base, 1, &config, err);
        dsc_result row = {.config = &config, .rule = grid->rule, .cost = &options->cost};
        if (!rc)
            rc = add_rows(&t, &row, &counts[c * dsc_sweep_each(options)], parts, options, err);
        dsc_config_fini(&config);
    }
    for (size_t r = 0; r < t.rows && !rc; r++)
        if (options->jsonl)
            dsc_table_write_jsonl_row(&t, r, f);
        else
            dsc_table_write_tsv_row(&t, r, f);
    dsc_table_fini(&t);
    return rc;
}

int dsc_sweep_run(const dsc_trace *trace, const dsc_grids *grids, size_t first, size_t count,
                  const dsc_run_options *options, dsc_sweep_sink *sink, void *user, dsc_error *err)
{
    dsc_config *config;
    int rc = dsc_new(&config, count, err);
    for (size_t end = first + count; first < end && !rc;) {
        size_t base, n;
        const dsc_grid *grid = dsc_grids_find(grids, first, &base);
        dsc_run_options run = *options;
        dsc_results results;
        run.rule = grid->rule;
        n = base + grid->total < end ? base + grid->total - first : end - first;
        rc = dsc_grid_configs(grid, first - base, n, config, err);
        if (!rc)
            rc = dsc_run(trace, config, n, &run, &results, err);
        if (!rc) {
            rc = sink(user, first, n, results.counts, err);
            dsc_results_fini(&results);
        }
        for (size_t c = 0; c < n; c++)
            dsc_config_fini(&config[c]);
        first += n;
    }
    free(config);
    return rc;
}

// A sweep under way.
typedef struct sweep {
    const dsc_trace *trace;
    const dsc_grids *grids;
    const dsc_sweep_options *options;
    dsc_part_file file;
    size_t done;  // configurations on disk
    size_t block; // configurations in the pass under way
    int parts;    // DSC_RESULT_EXPECTED or 0
    int64_t output_tokens;
} sweep;

// Whether the lines of the part file are in the form that this sweep writes; JSON begins with "{".
static bool same_form(const sweep *s)
{
    char begin = 0;
    return pread(fileno(s->file.stream), &begin, 1, 0) == 1 && // the stream stays at its end
           (begin == '{') == s->options->jsonl;
}

// Counts the configurations in the part file; fails when it belongs to another sweep.
static int take_up(sweep *s, const dsc_table *head, dsc_error *err)
{
    long length;
    dsc_table old;
    int rc = dsc_part_file_cut_lines(&s->file, 0, &length, err);
    if (rc || length == 0)
        return rc;
    rc = dsc_table_read(&old, s->file.part, err);
    size_t each = (s->options->batches ? s->options->batches : 1) * dsc_sweep_each(s->options),
           over = 0;
    bool same =
        !rc && old.rows <= each * s->grids->total && (!old.rows || dsc_resume_same(&old, head));
    if (same)
        s->done = old.rows / each;
    if (!rc) {
        over = old.rows % each;
        dsc_table_fini(&old);
    }
    if (!same)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s is left from a different sweep: remove it, or add "
                        "--force to start again",
                        s->file.part);
    if (s->done && !same_form(s))
        return dsc_fail(err, DSC_EUSAGE,
                        "%s has the rows of this sweep as %s: give --json as before, remove it, or "
                        "add --force to start again",
                        s->file.part, s->options->jsonl ? "TSV" : "JSON lines");
    if (s->done == 0) // no row: the head is written again
        return dsc_part_file_cut(&s->file, 0, err);
    if (over) // some batch sizes or groups of a configuration
        rc = dsc_part_file_cut_lines(&s->file, over, &length, err);
    if (rc)
        return rc;
    if (s->options->resumed)
        s->options->resumed(s->options->run.user, s->done, s->grids->total);
    return DSC_OK;
}

static int block_progress(void *user, int64_t done, int64_t total)
{
    const sweep *s = user;
    (void)total;
    const dsc_run_options *o = &s->options->run;
    return o->progress ? o->progress(o->user,
                                     (int64_t)s->done * s->output_tokens + (int64_t)s->block * done,
                                     (int64_t)s->grids->total * s->output_tokens)
                       : 0;
}

static int write_block(void *user, size_t first, size_t count, const dsc_counts *counts,
                       dsc_error *err)
{
    sweep *s = user;
    return dsc_sweep_rows(s->grids, first, count, counts, s->parts, s->options, s->file.stream,
                          err);
}

static int run_block(sweep *s, size_t count, dsc_error *err)
{
    dsc_run_options run = s->options->run;
    run.progress = block_progress;
    run.user = s;
    s->block = count;
    int rc = dsc_sweep_run(s->trace, s->grids, s->done, count, &run, write_block, s, err);
    return rc ? rc : dsc_part_file_flush(&s->file, err);
}

// A small trace takes a single pass. On a large one, blocks limit the loss by an interruption to
// some seconds of work.
static size_t choose_block(const sweep *s)
{
    enum { MOST = 1024, TOKENS = 1 << 29 };
    if (s->options->block)
        return s->options->block;
    int64_t n = s->output_tokens > 0 ? TOKENS / s->output_tokens : MOST;
    return n < 32 ? 32 : n > MOST ? MOST : (size_t)n;
}

static int run_all(sweep *s, dsc_error *err)
{
    size_t block = choose_block(s);
    int rc = DSC_OK;
    while (!rc && s->done < s->grids->total) {
        size_t first;
        const dsc_grid *grid = dsc_grids_find(s->grids, s->done, &first);
        size_t left = first + grid->total - s->done, n = left < block ? left : block;
        rc = run_block(s, n, err);
        if (!rc)
            s->done += n;
    }
    return rc;
}

int dsc_sweep_parts(const dsc_trace *trace, const dsc_grids *grids,
                    const dsc_sweep_options *options, int *parts, dsc_error *err)
{
    int rc = DSC_OK;
    *parts =
        (options->batches ? DSC_RESULT_BATCH : 0) | (options->cost.spread ? DSC_RESULT_SPREAD : 0);
    for (size_t i = 0; i < grids->count && !rc; i++) {
        dsc_engine_choice engine;
        rc = dsc_sweep_choose(trace, &grids->grid[i], options, &engine, err);
        if (!rc && engine.expected)
            *parts |= DSC_RESULT_EXPECTED;
    }
    return rc;
}

int dsc_sweep(const dsc_trace *trace, const dsc_grids *grids, const dsc_table *comments,
              const char *path, const dsc_sweep_options *options, dsc_error *err)
{
    const dsc_workload *load = options->run.workload;
    sweep s = {.trace = trace,
               .grids = grids,
               .options = options,
               .output_tokens = trace ? dsc_trace_get_info(trace)->output_tokens
                                      : load->requests * load->max_tokens};
    dsc_table head = {0};
    int rc = dsc_sweep_parts(trace, grids, options, &s.parts, err);
    if (!rc)
        rc = dsc_sweep_head(&head, grids, comments, s.parts, options, err);
    if (!rc)
        rc = dsc_part_file_open(&s.file, path, options->force, err);
    if (!rc)
        rc = take_up(&s, &head, err);
    if (!rc && ftell(s.file.stream) == 0) {
        if (options->jsonl)
            dsc_table_write_jsonl_head(&head, s.file.stream);
        else
            dsc_table_write_tsv_head(&head, s.file.stream);
        rc = dsc_part_file_flush(&s.file, err);
    }
    if (!rc)
        rc = run_all(&s, err);
    if (!rc)
        rc = dsc_part_file_finish(&s.file, err);
    dsc_part_file_close(&s.file);
    dsc_table_fini(&head);
    return rc;
}

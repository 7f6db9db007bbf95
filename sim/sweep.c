// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep.h"

#include "sim/part_file.h"
#include "sim/result.h"

#include <stdlib.h>
#include <string.h>

static int read_values(dsc_grid *g, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &g->drafter->option[o];
    g->count[o] = 1;
    g->text[o] = text;
    if (option->kind == DSC_OPTION_TEXT)
        return DSC_OK;
    if (option->kind == DSC_OPTION_REAL)
        return dsc_option_reals(option, text, &g->real[o], &g->count[o], err);
    return dsc_option_list(option, text, &g->value[o], &g->count[o], err);
}

int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter, const dsc_option_value *text,
                  dsc_error *err)
{
    *g = (dsc_grid){.drafter = drafter, .total = 1};
    for (size_t o = 0; o < drafter->option_count; o++) {
        int rc = read_values(g, o, text[o].text, err);
        if (!rc && g->count[o] > DSC_MAX_GRID / g->total)
            rc =
                dsc_fail(err, DSC_EUSAGE, "the grid has more than %d configurations", DSC_MAX_GRID);
        if (rc) {
            dsc_grid_fini(g);
            return rc;
        }
        g->total *= g->count[o];
    }
    return DSC_OK;
}

void dsc_grid_fini(dsc_grid *g)
{
    for (size_t o = 0; o < DSC_MAX_PARAMETERS; o++) {
        free(g->value[o]);
        free(g->real[o]);
    }
    *g = (dsc_grid){0};
}

dsc_config dsc_grid_at(const dsc_grid *g, size_t index)
{
    dsc_config c = {.drafter = g->drafter};
    for (size_t o = g->drafter->option_count; o-- > 0;) {
        size_t i = index % g->count[o];
        c.parameter[o] = g->value[o] ? g->value[o][i] : 0;
        c.real[o] = g->real[o] ? g->real[o][i] : 0;
        c.text[o] = g->text[o];
        index /= g->count[o];
    }
    return c;
}

int dsc_grid_configs(const dsc_grid *g, size_t first, size_t count, dsc_config *config,
                     dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count; c++) {
        config[c] = dsc_grid_at(g, first + c);
        if (!rc)
            rc = dsc_config_prepare(&config[c], err);
    }
    return rc;
}

int dsc_sweep_choose(const dsc_trace *trace, const dsc_grid *grid, const dsc_sweep_options *options,
                     dsc_engine_choice *out, dsc_error *err)
{
    dsc_config last = dsc_grid_at(grid, grid->total - 1); // likely the one that asks most
    int rc = dsc_config_prepare(&last, err);
    if (!rc)
        rc = dsc_run_choose(trace, &last, 1, &options->run, out, err);
    dsc_config_fini(&last);
    return rc;
}

int dsc_sweep_head(dsc_table *head, const dsc_grid *grid, const dsc_table *comments, int parts,
                   dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < comments->comments && !rc; i++)
        rc = dsc_table_comment(head, comments->key[i], comments->value[i], err);
    return rc ? rc : dsc_result_columns(head, grid->drafter, parts, err);
}

int dsc_sweep_rows(const dsc_grid *grid, size_t first, size_t count, const dsc_counts *counts,
                   int parts, const dsc_sweep_options *options, FILE *f, dsc_error *err)
{
    dsc_table t = {0};
    int rc = dsc_result_columns(&t, grid->drafter, parts, err);
    for (size_t c = 0; c < count && !rc; c++) {
        const dsc_config config = dsc_grid_at(grid, first + c);
        const dsc_result row = {.config = &config,
                                .rule =
                                    options->run.rule ? options->run.rule : &dsc_verifier_greedy,
                                .counts = &counts[c],
                                .cost = &options->cost};
        rc = dsc_result_row(&t, &row, parts, err);
        if (!rc && options->jsonl)
            dsc_table_write_jsonl_row(&t, c, f);
        else if (!rc)
            dsc_table_write_tsv_row(&t, c, f);
    }
    dsc_table_fini(&t);
    return rc;
}

// A sweep under way.
typedef struct sweep {
    const dsc_trace *trace;
    const dsc_grid *grid;
    const dsc_sweep_options *options;
    dsc_part_file file;
    size_t done;  // configurations on disk
    size_t block; // configurations in the pass under way
    int parts;    // DSC_RESULT_EXPECTED or 0
    int64_t output_tokens;
} sweep;

// Everything but the command line must be the same for the rows to belong to this sweep.
static bool same_sweep(const dsc_table *a, const dsc_table *b)
{
    bool same = a->columns == b->columns && a->comments == b->comments;
    for (size_t c = 0; same && c < a->columns; c++)
        same = strcmp(a->column[c].name, b->column[c].name) == 0;
    for (size_t i = 0; same && i < a->comments; i++)
        same = strcmp(a->key[i], b->key[i]) == 0 &&
               (strcmp(a->key[i], "command") == 0 || strcmp(a->value[i], b->value[i]) == 0);
    return same;
}

// How many configurations the part file holds; fails when it is another sweep's.
static int take_up(sweep *s, const dsc_table *head, dsc_error *err)
{
    long length;
    dsc_table old;
    int rc = dsc_part_file_cut_line(&s->file, &length, err);
    if (rc || length == 0)
        return rc;
    rc = dsc_table_read(&old, s->file.part, err);
    bool same = !rc && old.rows <= s->grid->total && (!old.rows || same_sweep(&old, head));
    if (same)
        s->done = old.rows;
    if (!rc)
        dsc_table_fini(&old);
    if (!same)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s is left from a different sweep: remove it, or --force to "
                        "start anew",
                        s->file.part);
    if (s->done == 0) // a head and nothing else: written again below
        return dsc_part_file_cut(&s->file, 0, err);
    if (s->options->resumed)
        s->options->resumed(s->options->run.user, s->done, s->grid->total);
    return DSC_OK;
}

static int block_progress(void *user, int64_t done, int64_t total)
{
    const sweep *s = user;
    (void)total;
    const dsc_run_options *o = &s->options->run;
    return o->progress ? o->progress(o->user,
                                     (int64_t)s->done * s->output_tokens + (int64_t)s->block * done,
                                     (int64_t)s->grid->total * s->output_tokens)
                       : 0;
}

static int run_block(sweep *s, const dsc_config *config, size_t count, dsc_error *err)
{
    dsc_run_options run = s->options->run;
    dsc_results results;
    run.progress = block_progress;
    run.user = s;
    s->block = count;
    int rc = dsc_run(s->trace, config, count, &run, &results, err);
    if (rc)
        return rc;
    rc = dsc_sweep_rows(s->grid, s->done, count, results.counts, s->parts, s->options,
                        s->file.stream, err);
    dsc_results_fini(&results);
    return rc ? rc : dsc_part_file_flush(&s->file, err);
}

// One pass over a small trace does everything at once; over a large one, blocks bound what an
// interruption costs to some seconds of work.
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
    void *mem;
    int rc =
        dsc_alloc(&mem, block < s->grid->total ? block : s->grid->total, sizeof(dsc_config), err);
    dsc_config *config = mem;
    while (!rc && s->done < s->grid->total) {
        size_t left = s->grid->total - s->done, n = left < block ? left : block;
        rc = dsc_grid_configs(s->grid, s->done, n, config, err);
        if (!rc)
            rc = run_block(s, config, n, err);
        for (size_t c = 0; c < n; c++)
            dsc_config_fini(&config[c]);
        if (!rc)
            s->done += n;
    }
    free(config);
    return rc;
}

int dsc_sweep(const dsc_trace *trace, const dsc_grid *grid, const dsc_table *comments,
              const char *path, const dsc_sweep_options *options, dsc_error *err)
{
    sweep s = {.trace = trace,
               .grid = grid,
               .options = options,
               .output_tokens = dsc_trace_get_info(trace)->output_tokens};
    dsc_table head = {0};
    dsc_engine_choice engine;
    int rc = dsc_sweep_choose(trace, grid, options, &engine, err);
    if (rc)
        return rc;
    s.parts = engine.expected ? DSC_RESULT_EXPECTED : 0;
    rc = dsc_sweep_head(&head, grid, comments, s.parts, err);
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

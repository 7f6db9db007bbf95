// SPDX-License-Identifier: Apache-2.0
// The rows of finished runs on disk, from which an interrupted command goes on
// (sim/sweep/row_file.h).
#include "base/sha256.h"
#include "cli/serve/serve.h"
#include "sim/sweep/row_table.h"

#include <stdlib.h>
#include <string.h>

// --- what the rows depend on ---------------------------------------------------------------------

// The options of the canonical command, in which the path of the trace may differ.
static const char *given_options(void)
{
    const char *options = strstr(cli_command_line(), " --");
    return options ? options + 1 : "";
}

// The lengths of requests, and with `drafts` these.
static void hash_source(dsc_sha256 *hash, const dsc_serve_source *s, bool drafts)
{
    for (size_t i = 0; i < s->count; i++) {
        const dsc_serve_item *item = &s->item[i];
        const int32_t lengths[] = {item->prompt, item->output};
        dsc_sha256_update(hash, lengths, sizeof lengths);
        if (drafts && s->script)
            dsc_sha256_update(hash, s->script[i],
                              dsc_serve_source_steps(s, i) * sizeof **s->script);
        else if (drafts && item->draft)
            dsc_sha256_update(hash, item->draft, (size_t)item->output * sizeof *item->draft);
    }
}

// A hash of what the options name and no other comment describes: totals, times of arrivals,
// lengths that were drawn from files or traces, and what models wrote and drafted.
static int hash_inputs(const cli_simulation *s, const cli_serve_loads *loads,
                       const cli_serve_methods *m, const char *totals, char hex[DSC_SHA256_HEX],
                       dsc_error *err)
{
    const bool models = s->target || s->draft || s->middle;
    dsc_sha256 hash;
    dsc_sha256_init(&hash);
    if (totals) {
        const int rc = dsc_sha256_file(totals, hex, err);
        if (rc)
            return rc;
        dsc_sha256_update(&hash, hex, DSC_SHA256_HEX);
    }
    for (size_t l = 0; l < loads->count; l++)
        if (loads->load[l].time)
            dsc_sha256_update(&hash, loads->load[l].time,
                              (size_t)loads->load[l].times * sizeof(double));
    for (size_t i = 0; i < m->count && (models || !s->trace); i++)
        hash_source(&hash, &m->method[i].source, models);
    dsc_sha256_final(&hash, hex);
    return DSC_OK;
}

int cli_serve_rows_head(dsc_table *head, const cli_simulation *s, const cli_call *call,
                        const cli_serve_loads *loads, const cli_serve_methods *m, dsc_error *err)
{
    char inputs[DSC_SHA256_HEX];
    const char *totals = s->trace || !call->words ? NULL : call->word[0];
    int rc = hash_inputs(s, loads, m, totals, inputs, err);
    rc = rc ?: dsc_table_comment(head, DSC_ROW_SHARD "options", given_options(), err);
    rc = rc ?: dsc_table_comment(head, DSC_ROW_SHARD "inputs", inputs, err);
    if (!rc && s->cost.note[0])
        rc = dsc_table_comment(head, DSC_ROW_SHARD "cost_note", s->cost.note, err);
    return rc;
}

// --- restored runs -------------------------------------------------------------------------------

static int restore(void *user, size_t unit, const dsc_cell *cell, dsc_error *err)
{
    cli_serve_rows *r = user;
    cli_serve_run *run = &r->run[unit];
    if (run->again || run->elsewhere)
        return DSC_OK;
    run->done = true;
    r->restored++;
    if (r->per_request)
        return DSC_OK;
    const int rc = dsc_table_add_row(&r->rows, cell, err);
    if (!rc) {
        run->row = r->rows.rows;
        cli_serve_restore(run, &r->rows, run->row - 1);
    }
    return rc;
}

int cli_serve_rows_open(cli_serve_rows *r, const cli_call *call, const dsc_table *head,
                        const dsc_split *split, dsc_error *err)
{
    r->split = *split;
    r->split.configurations = (int64_t)r->runs;
    r->split.requests = r->split.configuration_block = r->split.request_block = 1;
    int rc = dsc_table_add_columns(&r->rows, head->column, head->columns, err);
    rc =
        rc ?: dsc_row_file_open(&r->file, call->out, call->force, head, &r->split, restore, r, err);
    r->open = !rc;
    return rc;
}

// --- finished runs -------------------------------------------------------------------------------

// Some thousand requests at a time, so that memory does not grow with their number.
static int add_requests(cli_serve_rows *r, size_t i, dsc_error *err)
{
    enum { AT_ONCE = 4096 };
    const cli_serve_run *run = &r->run[i];
    int rc = DSC_OK;
    for (int64_t q = 0, n; q < run->served_count && !rc; q += n) {
        dsc_table t = {0};
        n = run->served_count - q < AT_ONCE ? run->served_count - q : AT_ONCE;
        rc = dsc_table_add_columns(&t, r->rows.column, r->rows.columns, err);
        rc = rc ?: cli_serve_table_add_requests(&t, run, q, n, err);
        rc = rc ?: dsc_row_file_add(&r->file, (int64_t)i, &t, run->served_count - q - n, err);
        dsc_table_fini(&t);
    }
    return rc;
}

static int add_load(cli_serve_rows *r, size_t i, dsc_error *err)
{
    dsc_table t = {0};
    int rc = dsc_table_add_columns(&t, r->rows.column, r->rows.columns, err);
    rc = rc ?: cli_serve_table_add(&t, &r->run[i], &r->rows, err);
    rc = rc ?: dsc_row_file_add(&r->file, (int64_t)i, &t, 0, err);
    dsc_table_fini(&t);
    return rc;
}

int cli_serve_rows_add(cli_serve_rows *r, size_t i, dsc_error *err)
{
    cli_serve_run *run = &r->run[i];
    if (!r->open)
        return DSC_OK;
    const int rc = r->per_request ? add_requests(r, i, err) : add_load(r, i, err);
    free(run->served);
    run->served = NULL;
    return rc ? rc : dsc_row_file_flush(&r->file, err);
}

int cli_serve_rows_finish(cli_serve_rows *r, bool shard, bool json, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < r->runs && !rc && !r->per_request; i++)
        if (r->run[i].done)
            rc = cli_serve_rows_add(r, i, err);
    return rc ? rc : dsc_row_file_finish(&r->file, shard, json, err);
}

void cli_serve_rows_close(cli_serve_rows *r, bool keep)
{
    if (r->open)
        dsc_row_file_close(&r->file, keep);
    dsc_table_fini(&r->rows);
    *r = (cli_serve_rows){0};
}

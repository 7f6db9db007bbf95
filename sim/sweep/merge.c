// SPDX-License-Identifier: Apache-2.0
// Merging of shards: checks that the tables belong to one sweep and are complete. Counts of each
// configuration are added up, and priced and written as the sweep does; numbered rows are put into
// their order.
#include "sim/sweep/merge.h"

#include "base/outfile.h"
#include "sim/run/result.h"
#include "sim/sweep/row_table.h"
#include "sim/sweep/row_units.h"
#include "sim/sweep/sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct merge {
    const char *const *part; // [count] paths
    size_t count;
    const dsc_merge_options *options;
    dsc_shard_reader first; // head of part[0]
    size_t *by_shard;       // [shards] 1 + index of the part, 0: not seen
    dsc_table head;         // comments of shard 1
    dsc_grids grids;
    dsc_sweep_options sweep; // cost, form
    dsc_sums sums;
    int64_t *batch; // owned
    dsc_trace_groups by;
} merge;

static bool may_differ(const char *key)
{
    return strcmp(key, "command") == 0 || strcmp(key, "trace") == 0;
}

// Checks that two tables are of one sweep that was divided in one way.
static int compare_heads(const dsc_shard_reader *a, const dsc_shard_reader *b, dsc_error *err)
{
    char x[DSC_SPLIT_TEXT], y[DSC_SPLIT_TEXT];
    const dsc_table *s = &a->head, *t = &b->head;
    for (size_t i = 0; i < s->comments; i++) {
        const char *other = dsc_table_get_comment(t, s->key[i]);
        if (!other || (!may_differ(s->key[i]) && strcmp(s->value[i], other) != 0))
            return dsc_fail(err, DSC_EUSAGE, "not one sweep: %s is %.150s in %s and %.150s in %s",
                            s->key[i], s->value[i], a->path, other ? other : "not given", b->path);
    }
    dsc_split split = b->split;
    split.shard = a->split.shard;
    dsc_split_text(&a->split, x);
    dsc_split_text(&split, y);
    if (s->comments != t->comments || strcmp(x, y) != 0) {
        dsc_split_text(&b->split, y);
        return dsc_fail(err, DSC_EUSAGE, "not one sweep: %s is %s, and %s is %s", a->path, x,
                        b->path, y);
    }
    return DSC_OK;
}

// Numbered rows have columns of their own, which are those of the result.
static int compare_columns(const dsc_shard_reader *a, const dsc_shard_reader *b, dsc_error *err)
{
    bool same = a->numbered == b->numbered && a->head.columns == b->head.columns;
    for (size_t c = 0; same && c < a->head.columns; c++)
        same = a->head.column[c].type == b->head.column[c].type &&
               strcmp(a->head.column[c].name, b->head.column[c].name) == 0;
    return same ? DSC_OK
                : dsc_fail(err, DSC_EUSAGE, "not one sweep: %s and %s have different columns",
                           a->path, b->path);
}

static int take_head(merge *m, size_t i, dsc_error *err)
{
    dsc_shard_reader r;
    int rc = dsc_shard_reader_open(&r, m->part[i], err);
    if (!rc)
        rc = compare_heads(&m->first, &r, err);
    if (!rc)
        rc = compare_columns(&m->first, &r, err);
    if (!rc) {
        size_t *at = &m->by_shard[r.split.shard - 1];
        if (*at)
            rc = dsc_fail(err, DSC_EUSAGE, "%s and %s are both shard %" PRId64 "/%" PRId64,
                          m->part[*at - 1], m->part[i], r.split.shard, r.split.shards);
        *at = i + 1;
    }
    for (size_t c = 0; !rc && r.split.shard == 1 && c < r.head.comments; c++)
        rc = dsc_table_comment(&m->head, r.head.key[c], r.head.value[c], err);
    if (!rc && r.split.shard == 1)
        rc = dsc_table_add_columns(&m->head, r.head.column, r.head.columns, err);
    dsc_shard_reader_close(&r);
    return rc;
}

static int check_all_there(const merge *m, dsc_error *err)
{
    enum { NAMED = 8 };
    dsc_buffer names = {0};
    int64_t missing = 0, shards = m->first.split.shards;
    int rc = DSC_OK;
    for (int64_t s = 0; s < shards && !rc; s++)
        if (!m->by_shard[s] && ++missing <= NAMED)
            rc = dsc_buffer_printf(&names, err, "%s%" PRId64, missing > 1 ? ", " : "", s + 1);
    if (!rc && missing)
        rc = dsc_fail(err, DSC_EUSAGE, "missing of %" PRId64 " shards: %s%s", shards, names.data,
                      missing > NAMED ? " and others" : "");
    dsc_buffer_fini(&names);
    return rc;
}

static int read_heads(merge *m, dsc_error *err)
{
    int rc = dsc_shard_reader_open(&m->first, m->part[0], err);
    if (rc)
        return rc;
    const char *version = dsc_table_get_comment(&m->first.head, "draftscope");
    if (!version || strcmp(version, m->options->version) != 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s was written by version %.60s; merge it with that version, not %s",
                        m->part[0], version ? version : "unknown", m->options->version);
    rc = dsc_new(&m->by_shard, (size_t)m->first.split.shards, err);
    for (size_t i = 0; i < m->count && !rc; i++)
        rc = take_head(m, i, err);
    return rc ? rc : check_all_there(m, err);
}

static const dsc_option batches = {
    .name = "batch", .kind = DSC_OPTION_INT, .min = 1, .max = DSC_MAX_BATCH};

// Reads grid, rule and cost of the sweep from the comments.
static int prepare(merge *m, dsc_error *err)
{
    const char *grid = dsc_table_get_comment(&m->head, "grid"),
               *cost = dsc_table_get_comment(&m->head, "cost"),
               *note = dsc_table_get_comment(&m->head, "cost_note"),
               *batch = dsc_table_get_comment(&m->head, "batch"),
               *by = dsc_table_get_comment(&m->head, "by"),
               *values = dsc_table_get_comment(&m->head, "by_values");
    if (!grid || !cost)
        return dsc_fail(err, DSC_EINPUT, "%s: no grid or no cost", m->part[0]);
    m->sweep.jsonl = m->options->jsonl;
    int rc = dsc_cost_parse(&m->sweep.cost, cost, err);
    if (!rc && strcmp(note ? note : "", m->sweep.cost.note) != 0)
        rc = dsc_fail(err, DSC_EINPUT, "its cost %.60s was '%.200s' and is '%.200s'", cost,
                      note ? note : "", m->sweep.cost.note);
    if (!rc && batch)
        rc = dsc_option_list(&batches, batch, &m->batch, &m->sweep.batches, err);
    m->sweep.batch = m->batch;
    if (!rc && by) {
        rc = dsc_trace_groups_parse(&m->by, by, values ? values : "", err);
        m->sweep.by = &m->by;
    }
    if (!rc)
        rc = dsc_grids_parse(&m->grids, grid, err);
    if (!rc && (int64_t)m->grids.total != m->first.split.configurations)
        rc = dsc_fail(err, DSC_EINPUT,
                      "the grid has %zu configurations, but the shards divide %" PRId64,
                      m->grids.total, m->first.split.configurations);
    if (rc)
        return dsc_error_prefix(err, rc, "%s", m->part[0]);
    return dsc_sums_init(&m->sums, m->grids.total, m->by.count, err);
}

static int unfinished(const dsc_shard_reader *r, const dsc_cell_range *cell, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "%s is unfinished: it ends before configurations %" PRId64 " to %" PRId64
                    " on requests %" PRId64 " to %" PRId64
                    "; run the command that began it again to complete it",
                    r->path, cell->configuration, cell->configuration_end - 1, cell->request,
                    cell->request_end - 1);
}

static int add_part(merge *m, const char *path, const int32_t *owner, dsc_error *err)
{
    dsc_shard_reader r;
    bool whole = true;
    int64_t cells = dsc_split_cells(&m->first.split);
    int rc = dsc_shard_reader_open(&r, path, err);
    for (int64_t i = 0; i < cells && !rc; i++) {
        if (owner[i] != r.split.shard)
            continue;
        dsc_cell_range cell = dsc_split_cell(&r.split, i);
        rc = dsc_shard_reader_cell(&r, &cell, m->by.count, &m->sums, &whole, err);
        if (!rc && !whole)
            rc = unfinished(&r, &cell, err);
    }
    if (!rc && !dsc_shard_reader_ended(&r))
        rc = dsc_fail(err, DSC_EINPUT, "%s:%" PRId64 ": the shard ends before this row", path,
                      r.line + 1);
    dsc_shard_reader_close(&r);
    return rc;
}

static int add_parts(merge *m, dsc_error *err)
{
    const dsc_merge_options *o = m->options;
    const dsc_counts zero = {0};
    int32_t *owner;
    int rc = dsc_split_deal(&m->first.split, &owner, err);
    for (size_t i = 0; i < m->count && !rc; i++) {
        rc = add_part(m, m->part[i], owner, err);
        if (!rc && o->progress && o->progress(o->user, (int64_t)i + 1, (int64_t)m->count))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    // If the trace has no requests, the shards have no rows.
    for (size_t c = 0; c < m->sums.count && !rc; c++)
        rc = dsc_sums_add(&m->sums.counts[c], &zero, err);
    free(owner);
    return rc;
}

static int write_result(merge *m, const char *path, dsc_error *err)
{
    enum { ROWS = 1024 };
    int parts =
        (m->sweep.batches ? DSC_RESULT_BATCH : 0) | (m->sweep.cost.spread ? DSC_RESULT_SPREAD : 0);
    for (size_t c = 0; c < m->sums.count; c++)
        parts |= m->sums.counts[c].expected ? DSC_RESULT_EXPECTED : 0;
    dsc_table head = {0};
    dsc_outfile out;
    int rc = dsc_outfile_open(&out, path, m->options->force, err);
    if (!rc)
        rc = dsc_sweep_head(&head, &m->grids, &m->head, parts, &m->sweep, err);
    if (!rc && m->options->jsonl)
        dsc_table_write_jsonl_head(&head, out.stream);
    else if (!rc)
        dsc_table_write_tsv_head(&head, out.stream);
    for (size_t c = 0; c < m->grids.total && !rc; c += ROWS) {
        size_t left = m->grids.total - c;
        rc = dsc_sweep_rows(&m->grids, c, left < ROWS ? left : ROWS,
                            m->sums.counts + c * m->sums.each, parts, &m->sweep, out.stream, err);
    }
    dsc_table_fini(&head);
    if (!rc)
        return dsc_outfile_commit(&out, err);
    dsc_outfile_abort(&out);
    return rc;
}

// --- numbered rows -------------------------------------------------------------------------------

static int missing(size_t unit, int64_t units, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "run %zu of %" PRId64 " is in no shard: one of them is unfinished; run the "
                    "command that began it again to complete it",
                    unit, units);
}

// Opens all shards. A unit takes at least a byte of a file, so a number of units that memory was
// not made for is refused.
static int open_shards(const merge *m, dsc_shard_reader *r, dsc_error *err)
{
    const int64_t units = m->first.split.configurations;
    size_t bytes = 0;
    int rc = DSC_OK;
    for (size_t i = 0; i < m->count && !rc; i++) {
        rc = dsc_shard_reader_open(&r[i], m->part[i], err);
        bytes += r[i].bytes;
    }
    return rc || (size_t)units <= bytes ? rc : missing(bytes, units, err);
}

// Takes the units of a shard that no other one has.
static int take_units(dsc_shard_reader *r, dsc_row_units *all, dsc_error *err)
{
    dsc_row_units own = {0};
    size_t end = 0;
    int rc = dsc_row_units_init(&own, (int64_t)all->count, err);
    if (!rc)
        rc = dsc_row_units_read(&own, r, &end, err);
    if (!rc && end != r->bytes)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the end of the file is missing", r->path);
    for (size_t u = 0; u < own.count && !rc; u++)
        if (own.unit[u].text && all->unit[u].text)
            rc = dsc_fail(err, DSC_EINPUT, "%s: run %zu is in another shard, too", r->path, u);
        else if (own.unit[u].text)
            all->unit[u] = own.unit[u];
    dsc_row_units_fini(&own);
    return rc;
}

// Finds all units. One in two shards, or in none, is refused.
static int find_units(const merge *m, dsc_shard_reader *r, dsc_row_units *all, dsc_error *err)
{
    const dsc_merge_options *o = m->options;
    int rc = open_shards(m, r, err);
    if (!rc)
        rc = dsc_row_units_init(all, m->first.split.configurations, err);
    for (size_t i = 0; i < m->count && !rc; i++) {
        rc = take_units(&r[i], all, err);
        if (!rc && o->progress && o->progress(o->user, (int64_t)i + 1, (int64_t)m->count))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    for (size_t u = 0; u < all->count && !rc; u++)
        if (!all->unit[u].text)
            rc = missing(u, (int64_t)all->count, err);
    return rc;
}

static int write_units(const merge *m, const dsc_row_units *units, const char *path, dsc_error *err)
{
    dsc_table head = {0};
    dsc_outfile out;
    int rc = dsc_outfile_open(&out, path, m->options->force, err);
    if (!rc)
        rc = dsc_row_table_result(&head, &m->head, err);
    if (!rc && m->options->jsonl)
        dsc_table_write_jsonl_head(&head, out.stream);
    else if (!rc)
        dsc_table_write_tsv_head(&head, out.stream);
    if (!rc)
        rc = dsc_row_units_write(units, &head, false, m->options->jsonl, out.stream, err);
    dsc_table_fini(&head);
    if (!rc)
        return dsc_outfile_commit(&out, err);
    dsc_outfile_abort(&out);
    return rc;
}

static int merge_numbered(const merge *m, const char *path, dsc_error *err)
{
    dsc_shard_reader *r;
    dsc_row_units units = {0};
    int rc = dsc_new(&r, m->count, err);
    if (rc)
        return rc;
    rc = find_units(m, r, &units, err);
    if (!rc)
        rc = write_units(m, &units, path, err);
    for (size_t i = 0; i < m->count; i++)
        dsc_shard_reader_close(&r[i]);
    dsc_row_units_fini(&units);
    free(r);
    return rc;
}

static int merge_counts(merge *m, const char *path, dsc_error *err)
{
    int rc = prepare(m, err);
    if (!rc)
        rc = add_parts(m, err);
    return rc ? rc : write_result(m, path, err);
}

int dsc_merge(const char *const *part, size_t count, const char *path,
              const dsc_merge_options *options, dsc_error *err)
{
    merge m = {.part = part, .count = count, .options = options};
    int rc = read_heads(&m, err);
    if (!rc)
        rc = m.first.numbered ? merge_numbered(&m, path, err) : merge_counts(&m, path, err);
    dsc_shard_reader_close(&m.first);
    dsc_table_fini(&m.head);
    dsc_grids_fini(&m.grids);
    dsc_sums_fini(&m.sums);
    dsc_cost_fini(&m.sweep.cost);
    free(m.by_shard);
    free(m.batch);
    dsc_trace_groups_fini(&m.by);
    return rc;
}

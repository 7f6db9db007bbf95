// SPDX-License-Identifier: Apache-2.0
// Writes traces. Requests are gathered in memory as the columns of one shard; a full shard is
// written in the background (trace_store.h). Until the commit everything is in NAME.dst.tmp, which
// is a trace of the finished shards; then the folder is renamed. An append adds its shards to the
// trace itself; readers ignore them until the new manifest replaces the old one.
#include "base/json_file.h"
#include "base/json_text.h"
#include "traces/trace/trace_agree.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_folder.h"
#include "traces/trace/trace_ids.h"
#include "traces/trace/trace_json.h"
#include "traces/trace/trace_store.h"
#include "traces/trace/trace_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_SHARD_TOKENS = 1000 * 1000,
    DEFAULT_SHARD_BYTES = 64 * 1000 * 1000, // of the distributions and the columns after them
    ROW_BYTES = 32,                         // of these columns, per token of the shard's limit
};

struct dsc_trace_writer {
    dsc_outfolder folder;
    bool append;                            // to a trace, without a temporary folder
    int64_t shard_tokens, shard_row_tokens; // the latter in units of ROW_BYTES
    dsc_trace_info info;                    // owns its strings; counts all requests so far
    dsc_input_columns inputs;               // of info
    dsc_trace_store store;
    dsc_shard_columns columns[2], *now; // one is being filled, the other may be being written
    dsc_id_set ids;
    dsc_token_marks marks;
    dsc_error adding; // the current request does not fit in memory
    dsc_error failed; // final: a shard could not be written
};

// --- opening -----------------------------------------------------------------------------------

static int copy_text(const char **out, const char *s, dsc_error *err)
{
    char *copy;
    int rc = dsc_strndup(&copy, s ? s : "", s ? strlen(s) : 0, err);
    *out = rc ? NULL : copy;
    return rc;
}

static int check_provenance(const char *text, dsc_error *err)
{
    json_error_t e;
    json_t *value;
    int rc = dsc_json_load(&value, text, strlen(text), 0, &e, err);
    if (rc == DSC_EINPUT)
        rc = dsc_fail(err, DSC_EUSAGE, "provenance is not valid JSON: %s", e.text);
    else if (!rc && !json_is_object(value))
        rc = dsc_fail(err, DSC_EUSAGE, "provenance must be a JSON object");
    json_decref(value);
    return rc;
}

static int check_info(const dsc_trace_info *info, dsc_error *err)
{
    size_t hash = strnlen(info->tokenizer_sha256, DSC_SHA256_HEX);
    if (info->tokenizer_name && info->vocab_size >= 1 && info->eos_token >= -1 &&
        info->eos_token < info->vocab_size && (!hash || hash == DSC_SHA256_HEX - 1) &&
        strspn(info->tokenizer_sha256, "0123456789abcdef") == hash)
        return dsc_recorded_check(info, err);
    return dsc_fail(err, DSC_EUSAGE,
                    "the description of the tokenizer is invalid: it needs a name, a vocabulary "
                    "size >= 1 (is %" PRId32 "), an EOS token in the vocabulary or -1 (is %" PRId32
                    "), and a SHA-256 of 64 hex digits or \"\"",
                    info->vocab_size, info->eos_token);
}

static int copy_info(dsc_trace_info *to, const dsc_trace_info *from, dsc_error *err)
{
    const char *provenance = from->provenance ? from->provenance : "{}";
    int rc = check_info(from, err);
    if (!rc)
        rc = check_provenance(provenance, err);
    if (rc)
        return rc;
    dsc_recorded_copy(to, from);
    to->vocab_size = from->vocab_size;
    to->eos_token = from->eos_token;
    strcpy(to->tokenizer_sha256, from->tokenizer_sha256);
    if (!rc)
        rc = copy_text(&to->tokenizer_name, from->tokenizer_name, err);
    if (!rc)
        rc = copy_text(&to->format, from->format, err);
    if (!rc)
        rc = copy_text(&to->semantics, from->semantics, err);
    if (!rc)
        rc = copy_text(&to->provenance, provenance, err);
    return rc;
}

static int describe(dsc_trace_writer *w, const dsc_trace_info *info, dsc_error *err)
{
    int rc = copy_info(&w->info, info, err);
    if (!rc)
        w->inputs = dsc_input_columns_of(&w->info);
    return rc;
}

// Every offset column begins with a 0.
static int start_shard(dsc_trace_writer *w, dsc_error *err)
{
    w->now->entry = (dsc_shard_entry){.first_request = w->info.requests};
    for (int c = 0; c < DSC_COLUMNS; c++) {
        dsc_column *col = &w->now->column[c];
        col->count = 0;
        if (dsc_columns[c].dtype != DSC_I64)
            continue;
        int rc = dsc_grow(&col->data, &col->capacity, 1, sizeof(int64_t), err);
        if (rc)
            return rc;
        ((int64_t *)col->data)[col->count++] = 0;
    }
    return DSC_OK;
}

static int new_writer(dsc_trace_writer **out, int64_t shard_tokens, dsc_error *err)
{
    dsc_trace_writer *w;
    int rc = dsc_new(&w, 1, err);
    if (rc)
        return rc;
    w->folder.lock = -1;
    w->shard_tokens = shard_tokens > 0 ? shard_tokens : DEFAULT_SHARD_TOKENS;
    w->shard_row_tokens = shard_tokens > 0 ? shard_tokens : DEFAULT_SHARD_BYTES / ROW_BYTES;
    w->store.group = shard_tokens > 0 ? 1 : DSC_STORE_GROUP;
    for (int i = 0; i < 2; i++)
        w->columns[i].dense[DSC_SIDE_DRAFT] = w->columns[i].dense[DSC_SIDE_TARGET] = DSC_F32;
    w->now = &w->columns[0];
    *out = w;
    return DSC_OK;
}

int dsc_trace_writer_open(dsc_trace_writer **out, const char *path, const dsc_trace_info *info,
                          bool force, int64_t shard_tokens, dsc_error *err)
{
    dsc_trace_writer *w;
    if (out)
        *out = NULL;
    if (!out || !path || !info)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_trace_writer_open: 'out', 'path' and 'info' must not be NULL");
    int rc = new_writer(&w, shard_tokens, err);
    if (rc)
        return rc;
    rc = describe(w, info, err);
    if (!rc)
        rc = dsc_outfolder_open(&w->folder, &dsc_trace_folder, path, force, err);
    w->store.folder = w->folder.temporary;
    if (!rc)
        rc = start_shard(w, err);
    if (rc)
        dsc_trace_writer_abort(w);
    else
        *out = w;
    return rc;
}

// --- appending ---------------------------------------------------------------------------------

static int add_id(void *ids, const dsc_request *q, dsc_error *err)
{
    return dsc_id_set_add(ids, q->id, err);
}

// Continues where the trace ends: copies its description, counts, shards and ids.
static int continue_trace(dsc_trace_writer *w, const dsc_trace *t, dsc_error *err)
{
    const dsc_trace_info *i = &t->info;
    dsc_trace_store *s = &w->store;
    int rc = describe(w, i, err);
    if (!rc)
        rc = dsc_resize(&s->shard, &s->capacity, t->shards, err);
    if (rc)
        return rc;
    if (t->shards)
        memcpy(s->shard, t->shard, t->shards * sizeof *s->shard);
    s->shards = s->hashed = t->shards;
    w->info.requests = i->requests;
    w->info.prompt_tokens = i->prompt_tokens;
    w->info.output_tokens = i->output_tokens;
    w->info.reference_tokens = i->reference_tokens;
    w->info.references = i->references;
    w->info.max_prompt_tokens = i->max_prompt_tokens;
    w->info.max_output_tokens = i->max_output_tokens;
    return dsc_trace_each(t, add_id, &w->ids, err);
}

// Checks that *info agrees with the trace, drafters in the same order.
static int check_description(const dsc_trace *t, const dsc_trace_info *info, dsc_error *err)
{
    int rc = check_info(info, err);
    if (!rc)
        rc = dsc_trace_agree(&t->info, t->path, info, "the data to append", err);
    for (int d = 0; !rc && d < info->drafters; d++)
        if (strcmp(info->drafter[d].name, t->info.drafter[d].name) != 0)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "drafter %d of %s is %s, that of the data to append is %s", d, t->path,
                          t->info.drafter[d].name, info->drafter[d].name);
    return rc;
}

int dsc_trace_writer_append(dsc_trace_writer **out, const char *path, const dsc_trace_info *info,
                            int64_t shard_tokens, dsc_error *err)
{
    dsc_trace_writer *w;
    dsc_trace *t = NULL;
    if (out)
        *out = NULL;
    if (!out || !path || !info)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_trace_writer_append: 'out', 'path' and 'info' must not be NULL");
    int rc = new_writer(&w, shard_tokens, err);
    if (rc)
        return rc;
    w->append = w->store.append = true;
    rc = dsc_outfolder_append(&w->folder, path, err);
    w->store.folder = w->folder.path;
    if (!rc)
        rc = dsc_trace_open(&t, w->folder.path, err);
    if (!rc)
        rc = check_description(t, info, err);
    if (!rc)
        rc = continue_trace(w, t, err);
    if (!rc)
        rc = dsc_trace_folder_trim(w->folder.path, w->store.shards, err); // left by a killed append
    if (!rc)
        rc = start_shard(w, err);
    dsc_trace_close(t);
    if (rc)
        dsc_trace_writer_abort(w);
    else
        *out = w;
    return rc;
}

// Adds to the list "appended" of the trace's own provenance.
static int extend_provenance(dsc_trace_writer *w, const char *appended, dsc_error *err)
{
    json_t *all, *more;
    int rc = dsc_trace_provenance(&all, &w->info, err);
    if (!rc)
        rc = dsc_json_parse(&more, appended, strlen(appended), 0, "provenance", err);
    if (rc) {
        json_decref(all);
        return rc;
    }
    json_t *list = json_object_get(all, "appended");
    if (!json_is_array(list)) {
        json_object_set_new(all, "appended", json_array());
        list =
            json_object_get(all, "appended"); // NULL where this failed, which the next line tells
    }
    int bad = json_array_append_new(list, more);
    char *text = bad ? NULL : dsc_json_dump(all, JSON_COMPACT);
    json_decref(all);
    if (!text)
        return dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
    free((char *)w->info.provenance);
    w->info.provenance = text;
    return DSC_OK;
}

// --- adding ------------------------------------------------------------------------------------

int64_t dsc_trace_writer_find(const dsc_trace_writer *w, dsc_text_view id)
{
    return dsc_id_set_find(&w->ids, id);
}

static size_t element_bytes(const dsc_trace_writer *w, int c)
{
    return dsc_dtype_bytes(dsc_shard_dtype(w->now, c));
}

// The number of elements that a request has in a column with dsc_column_type.input.
static int64_t elements(int c, const dsc_request_input *q)
{
    return dsc_columns[c].counted_by == COL_STEP_OFFSET ? q->steps.count : q->output.count;
}

// After the first failure nothing more is appended.
static void append(dsc_trace_writer *w, int c, const void *data, int64_t count)
{
    dsc_column *col = &w->now->column[c];
    size_t size = element_bytes(w, c), n = col->count + (size_t)count;
    if (!w->adding.status && n > col->capacity)
        dsc_grow(&col->data, &col->capacity, n, size, &w->adding);
    if (w->adding.status || !count)
        return;
    memcpy((char *)col->data + col->count * size, data, (size_t)count * size);
    col->count = n;
}

// Appends a piece and its end to the column's offsets.
static void append_piece(dsc_trace_writer *w, int c, const void *data, int64_t count)
{
    append(w, c, data, count);
    append(w, dsc_columns[c].counted_by, &(int64_t){(int64_t)w->now->column[c].count}, 1);
}

static void append_rows(dsc_trace_writer *w, dsc_model_side side, const dsc_rows *rows,
                        int64_t positions)
{
    if (w->info.rows[side] == DSC_ROWS_DENSE)
        append(w, dsc_row_column(side, COL_DRAFT_ROW_DENSE),
               rows->bf16 ? (const void *)rows->bf16 : rows->logp, positions * w->info.vocab_size);
    if (w->info.rows[side] != DSC_ROWS_LISTED)
        return;
    for (int64_t j = 0; j < positions; j++) {
        int64_t begin = rows->offset[j], n = rows->offset[j + 1] - begin;
        append(w, dsc_row_column(side, COL_DRAFT_ROW_LOGP), rows->logp + begin, n);
        append_piece(w, dsc_row_column(side, COL_DRAFT_ROW_TOKEN), rows->token + begin, n);
    }
    append(w, dsc_row_column(side, COL_DRAFT_ROW_TAIL), rows->tail, positions);
}

static void append_request(dsc_trace_writer *w, const dsc_request_input *q)
{
    append_piece(w, COL_REQUEST_ID, q->id.bytes, q->id.length);
    append_piece(w, COL_PROMPT_TOK, q->prompt.id, q->prompt.count);
    append_piece(w, COL_OUTPUT_TOK, q->output.id, q->output.count);
    append_piece(w, COL_METADATA, q->metadata.bytes, q->metadata.length);
    for (int64_t r = 0; r < q->references; r++) {
        append_piece(w, COL_REFERENCE_TOK, q->reference[r].id, q->reference[r].count);
        append(w, COL_REFERENCE_KIND, &(uint8_t){(uint8_t)q->kind[r]}, 1);
        if (w->info.has_text)
            append_piece(w, COL_REFERENCE_TEXT, q->reference_text[r].bytes,
                         q->reference_text[r].length);
    }
    append_piece(w, COL_REFERENCE_KIND, NULL, 0); // ends the request's references
    if (w->info.has_text) {
        append_piece(w, COL_PROMPT_TEXT, q->prompt_text.bytes, q->prompt_text.length);
        append_piece(w, COL_OUTPUT_TEXT, q->output_text.bytes, q->output_text.length);
    }
    for (int i = 0; i < w->inputs.count; i++) {
        const int c = w->inputs.column[i];
        append(w, c, dsc_column_get(q, c, dsc_columns[c].input),
               elements(c, q) * dsc_column_width(&w->info, c));
    }
    if (w->info.steps)
        append_piece(w, COL_STEP_ACCEPTED, NULL, 0); // ends the request's steps
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        append_rows(w, side, &q->rows[side], q->output.count);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void count_request(dsc_trace_writer *w, const dsc_request_input *q)
{
    const dsc_column *column = w->now->column;
    dsc_shard_entry *e = &w->now->entry;
    e->requests++;
    e->prompt_tokens = (int64_t)column[COL_PROMPT_TOK].count;
    e->output_tokens = (int64_t)column[COL_OUTPUT_TOK].count;
    e->reference_tokens = (int64_t)column[COL_REFERENCE_TOK].count;
    e->references = (int64_t)column[COL_REFERENCE_KIND].count;
    w->info.requests++;
    w->info.prompt_tokens += q->prompt.count;
    w->info.output_tokens += q->output.count;
    for (int64_t r = 0; r < q->references; r++)
        w->info.reference_tokens += q->reference[r].count;
    w->info.references += q->references;
    w->info.max_prompt_tokens = larger(w->info.max_prompt_tokens, q->prompt.count);
    w->info.max_output_tokens = larger(w->info.max_output_tokens, q->output.count);
}

static bool is_full(const dsc_trace_writer *w)
{
    const dsc_shard_entry *e = &w->now->entry;
    size_t bytes = 0;
    for (int c = COL_DRAFT_ROW_OFFSET; c < DSC_COLUMNS; c++)
        if (w->now->column[c].count)
            bytes += w->now->column[c].count * element_bytes(w, c);
    return e->prompt_tokens + e->output_tokens + e->reference_tokens >= w->shard_tokens ||
           (int64_t)(bytes / ROW_BYTES) >= w->shard_row_tokens;
}

// After a failure to write, the writer can only be aborted; finished shards are kept.
static void keep_finished(dsc_trace_writer *w)
{
    const dsc_error cause = w->failed;
    w->folder.keep = w->store.saved > 0;
    if (w->folder.keep)
        dsc_fail(&w->failed, cause.status, "%.700s (the first %" PRId64 " requests are kept in %s)",
                 cause.message, w->store.saved, w->folder.temporary);
}

// Hands the filled shard to the store and begins the next one in the memory of the other.
static int cut_shard(dsc_trace_writer *w, dsc_error *err)
{
    int rc = dsc_trace_store_put(&w->store, w->now, &w->info, &w->failed);
    if (rc) {
        keep_finished(w);
        return dsc_fail(err, rc, "%s", w->failed.message);
    }
    w->now = w->now == w->columns ? w->columns + 1 : w->columns;
    return start_shard(w, err);
}

// The dense rows of a shard have one type, so a change of type begins a new shard.
static int settle_dense(dsc_trace_writer *w, const dsc_request_input *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++) {
        if (w->info.rows[side] != DSC_ROWS_DENSE || q->output.count == 0)
            continue;
        dsc_dtype dtype = q->rows[side].bf16 ? DSC_BF16 : DSC_F32;
        int c = dsc_row_column(side, COL_DRAFT_ROW_DENSE);
        if (dtype == w->now->dense[side])
            continue;
        if (w->now->column[c].count)
            rc = cut_shard(w, err);
        dsc_column *col = &w->now->column[c];
        if (dtype == w->now->dense[side] || rc)
            continue;
        free(col->data);
        *col = (dsc_column){0}; // its capacity was counted in elements of the previous size
        w->now->dense[side] = dtype;
    }
    return rc;
}

int dsc_trace_writer_add(dsc_trace_writer *w, const dsc_request_input *q, dsc_error *err)
{
    if (!w || !q)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_writer_add: 'w' and 'q' must not be NULL");
    if (w->failed.status)
        return dsc_fail(err, w->failed.status, "%s", w->failed.message);
    int rc = dsc_check_request(&w->info, &w->inputs, q, w->info.requests, &w->marks, err);
    if (!rc)
        rc = settle_dense(w, q, err);
    if (rc)
        return rc;
    size_t before[DSC_COLUMNS];
    for (int c = 0; c < DSC_COLUMNS; c++)
        before[c] = w->now->column[c].count;
    w->adding.status = DSC_OK;
    append_request(w, q);
    rc = w->adding.status ? dsc_fail(err, w->adding.status, "%s", w->adding.message)
                          : dsc_id_set_add(&w->ids, q->id, err);
    for (int c = 0; c < DSC_COLUMNS && rc; c++)
        w->now->column[c].count = before[c];
    if (rc)
        return rc;
    count_request(w, q);
    return is_full(w) ? cut_shard(w, err) : DSC_OK;
}

int dsc_trace_writer_cut(dsc_trace_writer *w, dsc_error *err)
{
    if (!w)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_writer_cut: 'w' must not be NULL");
    if (w->failed.status)
        return dsc_fail(err, w->failed.status, "%s", w->failed.message);
    return w->now->entry.requests ? cut_shard(w, err) : DSC_OK;
}

// --- finishing ---------------------------------------------------------------------------------

static int settle_provenance(dsc_trace_writer *w, const char *provenance, dsc_error *err)
{
    if (!provenance)
        return DSC_OK;
    int rc = check_provenance(provenance, err);
    if (rc || w->append)
        return rc ? rc : extend_provenance(w, provenance, err);
    free((char *)w->info.provenance);
    w->info.provenance = NULL;
    return copy_text(&w->info.provenance, provenance, err);
}

// Writes the last shard and the last manifest.
static int write_rest(dsc_trace_writer *w, const char *provenance, dsc_error *err)
{
    const dsc_shard_columns *last = w->now->entry.requests ? w->now : NULL;
    int rc = dsc_trace_store_finish(&w->store, last, &w->info, err);
    if (!rc)
        rc = settle_provenance(w, provenance, err);
    return rc ? rc : dsc_trace_store_manifest(&w->store, &w->info, err);
}

int dsc_trace_writer_commit(dsc_trace_writer *w, const char *provenance, dsc_error *err)
{
    int rc = DSC_OK;
    if (!w)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_writer_commit: 'w' must not be NULL");
    if (!w->failed.status && write_rest(w, provenance, &w->failed))
        keep_finished(w);
    if (w->failed.status)
        rc = dsc_fail(err, w->failed.status, "%s", w->failed.message);
    if (!rc && !w->append)
        rc = dsc_outfolder_commit(&w->folder, err);
    dsc_trace_writer_abort(w);
    return rc;
}

// Removes appended shards that the manifest does not list.
static void trim_by_manifest(const dsc_trace_writer *w)
{
    dsc_trace *t;
    if (!dsc_trace_open(&t, w->folder.path, NULL))
        dsc_trace_folder_trim(w->folder.path, t->shards, NULL);
    dsc_trace_close(t);
}

void dsc_trace_writer_abort(dsc_trace_writer *w)
{
    if (!w)
        return;
    dsc_trace_store_fini(&w->store);
    if (w->append && w->folder.lock >= 0) // this writer holds the folder's lock
        trim_by_manifest(w);
    dsc_outfolder_abort(&w->folder);
    for (int c = 0; c < DSC_COLUMNS; c++) {
        free(w->columns[0].column[c].data);
        free(w->columns[1].column[c].data);
    }
    dsc_id_set_fini(&w->ids);
    free(w->marks.word);
    dsc_trace_info_fini(&w->info);
    free(w);
}

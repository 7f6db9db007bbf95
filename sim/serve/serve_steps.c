// SPDX-License-Identifier: Apache-2.0
// Records the steps of an engine, writes them as the lines of a table, and reads them again.
#include "sim/serve/serve_steps.h"

#include "base/file.h"
#include "base/json_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER, BEGIN_S, TARGET_S, DRAFT_S, OVERHEAD_S, FIRST_LIST, COLUMNS = FIRST_LIST + 6 };

const dsc_column dsc_serve_steps_columns[] = {
    [NUMBER] = {"step", DSC_CELL_INT, "number of the step, from 0"},
    [BEGIN_S] = {"begin_s", DSC_CELL_REAL, "simulated time at which the step begins, seconds"},
    [TARGET_S] = {"target_s", DSC_CELL_REAL, "predicted seconds of the target's pass"},
    [DRAFT_S] = {"draft_s", DSC_CELL_REAL, "predicted seconds of the draft model's passes"},
    [OVERHEAD_S] = {"overhead_s", DSC_CELL_REAL, "predicted seconds of the host"},
    [FIRST_LIST + DSC_STEPS_REQUEST] = {"request", DSC_CELL_LIST,
                                        "of each sequence: number of its request in the run"},
    [FIRST_LIST + DSC_STEPS_TOKENS] = {"tokens", DSC_CELL_LIST,
                                       "of each sequence: its tokens in the target's pass"},
    [FIRST_LIST + DSC_STEPS_CONTEXT] = {"context", DSC_CELL_LIST,
                                        "of each sequence: tokens in its KV cache before the pass"},
    [FIRST_LIST + DSC_STEPS_PREFILL] = {"prefill", DSC_CELL_LIST,
                                        "of each sequence: 1 if its tokens are a part of its "
                                        "prompt, 0 if it decodes"},
    [FIRST_LIST + DSC_STEPS_DRAFT_PASSES] = {"draft_passes", DSC_CELL_LIST,
                                             "of each sequence: passes of the draft model, after "
                                             "the target's, that it takes part in"},
    [FIRST_LIST + DSC_STEPS_DRAFT_CONTEXT] = {"draft_context", DSC_CELL_LIST,
                                              "of each sequence: tokens in the draft model's KV "
                                              "cache before the first of these passes"},
};
const size_t dsc_serve_steps_column_count = COLUMNS;

// --- records -------------------------------------------------------------------------------------

void dsc_serve_record_fini(dsc_serve_record *r)
{
    for (int l = 0; l < DSC_STEPS_LISTS; l++)
        free(r->list[l]);
    free(r->place);
    *r = (dsc_serve_record){0};
}

static int reserve(dsc_serve_record *r, size_t sequences, dsc_error *err)
{
    int rc = dsc_resize(&r->place, &r->capacity[DSC_STEPS_LISTS], sequences, err);
    for (int l = 0; l < DSC_STEPS_LISTS && !rc; l++)
        rc = dsc_resize(&r->list[l], &r->capacity[l], sequences, err);
    return rc;
}

int dsc_serve_record_pass(dsc_serve_record *r, const dsc_serve_engine *e, dsc_error *err)
{
    const int rc = reserve(r, (size_t)e->running_count, err);
    r->sequences = 0;
    for (int64_t i = 0; i < e->running_count && !rc; i++) {
        const dsc_serve_sequence *s = &e->running[i];
        const int64_t n = r->sequences;
        if (!s->scheduled)
            continue;
        r->place[n] = i;
        r->list[DSC_STEPS_REQUEST][n] = s->number;
        r->list[DSC_STEPS_TOKENS][n] = s->scheduled;
        r->list[DSC_STEPS_CONTEXT][n] = s->computed;
        r->list[DSC_STEPS_PREFILL][n] = s->emitted == 0 || s->computed < s->prompt + s->emitted - 1;
        r->sequences++;
    }
    return rc;
}

// Passes of the draft model for the next draft, of k tokens in sequence or of a script.
static int64_t passes_of(const dsc_serve_engine *e, const dsc_serve_sequence *s)
{
    const dsc_serve_drafting drafting = e->price->drafting;
    const int32_t k = e->pool->script ? s->pass->draft_passes : s->k;
    return drafting == DSC_SERVE_DRAFT_FREE ? 0 : drafting == DSC_SERVE_DRAFT_EACH ? k : k > 0;
}

void dsc_serve_record_drafts(dsc_serve_record *r, const dsc_serve_engine *e)
{
    r->number = e->totals->steps - 1;
    r->begin_s = e->now_s - e->step.seconds;
    r->target_s = e->step.target_s;
    r->draft_s = e->step.draft_s;
    r->overhead_s = e->step.overhead_s;
    for (int64_t n = 0; n < r->sequences; n++) {
        const dsc_serve_sequence *s = &e->running[r->place[n]];
        const bool drafts = s->scheduled > 0 && s->emitted < s->output;
        const int64_t passes = drafts ? passes_of(e, s) : 0;
        r->list[DSC_STEPS_DRAFT_PASSES][n] = passes;
        r->list[DSC_STEPS_DRAFT_CONTEXT][n] = passes ? s->computed + 1 : 0;
    }
}

void dsc_serve_record_sum(const dsc_serve_record *r, dsc_serve_step *out)
{
    *out = (dsc_serve_step){.target_s = r->target_s,
                            .draft_s = r->draft_s,
                            .overhead_s = r->overhead_s,
                            .seconds = r->target_s + r->draft_s + r->overhead_s};
    for (int64_t n = 0; n < r->sequences; n++) {
        const bool prefill = r->list[DSC_STEPS_PREFILL][n] != 0;
        const int64_t passes = r->list[DSC_STEPS_DRAFT_PASSES][n];
        *(prefill ? &out->prefilling : &out->decoding) += 1;
        *(prefill ? &out->prefill_tokens : &out->decode_tokens) += r->list[DSC_STEPS_TOKENS][n];
        *(prefill ? &out->prefill_context : &out->decode_context) += r->list[DSC_STEPS_CONTEXT][n];
        out->draft_context += passes ? r->list[DSC_STEPS_DRAFT_CONTEXT][n] : 0;
        out->longest = passes > out->longest ? (int32_t)passes : out->longest;
        out->drafts[passes]++;
    }
    for (int32_t k = out->longest; k-- > 1;)
        out->drafts[k] += out->drafts[k + 1];
}

// --- writing -------------------------------------------------------------------------------------

void dsc_serve_steps_write_head(const dsc_table *t, FILE *f)
{
    dsc_table_write_jsonl_head(t, f);
}

// The row is one of a table that contains nothing else, so that memory does not grow.
void dsc_serve_steps_write(const dsc_table *t, const dsc_serve_record *r, FILE *f)
{
    dsc_cell cell[COLUMNS] = {dsc_cell_int(r->number), dsc_cell_real(r->begin_s),
                              dsc_cell_real(r->target_s), dsc_cell_real(r->draft_s),
                              dsc_cell_real(r->overhead_s)};
    for (int l = 0; l < DSC_STEPS_LISTS; l++)
        cell[FIRST_LIST + l] =
            (dsc_cell){.type = DSC_CELL_LIST, .list = r->list[l], .i = r->sequences};
    const dsc_table row = {.column = t->column, .columns = COLUMNS, .cell = cell, .rows = 1};
    dsc_table_write_jsonl_row(&row, 0, f);
}

// --- reading -------------------------------------------------------------------------------------

struct dsc_serve_steps {
    FILE *f;
    char *path, *line;
    size_t capacity, number; // of the line
    int64_t last;            // number of the step before; -1: none
};

int dsc_serve_steps_open(dsc_serve_steps **out, const char *path, dsc_error *err)
{
    dsc_serve_steps *s;
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
    s->last = -1;
    rc = dsc_check_regular(path, err);
    rc = rc ?: dsc_strndup(&s->path, path, strlen(path), err);
    if (!rc && !(s->f = fopen(path, "r")))
        rc = dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    if (rc) {
        dsc_serve_steps_close(s);
        return rc;
    }
    *out = s;
    return DSC_OK;
}

void dsc_serve_steps_close(dsc_serve_steps *s)
{
    if (!s)
        return;
    if (s->f)
        fclose(s->f);
    free(s->path);
    free(s->line);
    free(s);
}

static int bad(const dsc_serve_steps *s, const char *column, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s:%zu: %s %s", s->path, s->number, column, what);
}

static int read_seconds(const dsc_serve_steps *s, const json_t *line, int column, double *out,
                        dsc_error *err)
{
    const char *name = dsc_serve_steps_columns[column].name;
    const json_t *value = json_object_get(line, name);
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= 0
               ? DSC_OK
               : bad(s, name, "must be a number of seconds, at least 0", err);
}

static int read_list(const dsc_serve_steps *s, const json_t *line, dsc_steps_list which,
                     dsc_serve_record *r, dsc_error *err)
{
    static const int64_t least[DSC_STEPS_LISTS] = {[DSC_STEPS_TOKENS] = 1};
    static const int64_t most[DSC_STEPS_LISTS] = {[DSC_STEPS_REQUEST] = INT64_MAX,
                                                  [DSC_STEPS_TOKENS] = 1 << 30,
                                                  [DSC_STEPS_CONTEXT] = 1 << 30,
                                                  [DSC_STEPS_PREFILL] = 1,
                                                  [DSC_STEPS_DRAFT_PASSES] = DSC_SERVE_LONGEST,
                                                  [DSC_STEPS_DRAFT_CONTEXT] = 1 << 30};
    const char *name = dsc_serve_steps_columns[FIRST_LIST + which].name;
    const json_t *list = json_object_get(line, name);
    if (!json_is_array(list) || (int64_t)json_array_size(list) != r->sequences)
        return bad(s, name, "must be a list with a number for each sequence, as tokens has", err);
    for (int64_t n = 0; n < r->sequences; n++) {
        const json_t *value = json_array_get(list, (size_t)n);
        const int64_t x = json_integer_value(value);
        char what[120];
        snprintf(what, sizeof what,
                 "must contain whole numbers from %" PRId64 " to %" PRId64 ", not %" PRId64,
                 least[which], most[which], x);
        if (!json_is_integer(value) || x < least[which] || x > most[which])
            return bad(s, name, json_is_integer(value) ? what : "must contain whole numbers", err);
        r->list[which][n] = x;
    }
    return DSC_OK;
}

static int read_step(dsc_serve_steps *s, const json_t *line, dsc_serve_record *r, dsc_error *err)
{
    const json_t *number = json_object_get(line, "step"), *tokens = json_object_get(line, "tokens");
    if (!json_is_integer(number) || json_integer_value(number) <= s->last)
        return bad(s, "step", "must be a whole number that ascends from 0, line by line", err);
    if (!json_array_size(tokens))
        return bad(s, "tokens", "must be a list with a number for each sequence, at least one",
                   err);
    r->number = s->last = json_integer_value(number);
    r->sequences = (int64_t)json_array_size(tokens);
    int rc = reserve(r, json_array_size(tokens), err);
    double *const seconds[] = {&r->begin_s, &r->target_s, &r->draft_s, &r->overhead_s};
    for (int i = 0; i < 4 && !rc; i++)
        rc = read_seconds(s, line, BEGIN_S + i, seconds[i], err);
    for (int l = 0; l < DSC_STEPS_LISTS && !rc; l++)
        rc = read_list(s, line, (dsc_steps_list)l, r, err);
    return rc;
}

int dsc_serve_steps_next(dsc_serve_steps *s, dsc_serve_record *r, bool *more, dsc_error *err)
{
    *more = false;
    for (;;) {
        json_t *line = NULL;
        json_error_t e;
        const ssize_t length = getline(&s->line, &s->capacity, s->f);
        if (length < 0)
            return ferror(s->f) ? dsc_fail_errno(err, DSC_EINPUT, errno, "%s", s->path) : DSC_OK;
        s->number++;
        int rc = dsc_json_load(&line, s->line, (size_t)length, 0, &e, err);
        if (rc == DSC_EINPUT)
            return dsc_fail(err, rc, "%s:%zu: column %d: %s", s->path, s->number, e.column, e.text);
        if (rc)
            return rc;
        const bool comments = s->number == 1 && json_object_get(line, "#");
        if (!comments)
            rc = read_step(s, line, r, err);
        json_decref(line);
        *more = !rc && !comments;
        if (rc || !comments)
            return rc;
    }
}

// SPDX-License-Identifier: Apache-2.0
// Reads chunks of lines and parses them into records (import_lines.h). An error of one line becomes
// an entry, so that the importer can skip it.
#include "traces/import/import_lines.h"

#include "traces/import/import_chat.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 128 << 10, // bytes of text after which a chunk is full
    CHUNK_LINES = 256,       // lines after which a chunk is full
    KEEP_BYTES = 2 * CHUNK_BYTES,
    KEEP_RECORD_BYTES = 4 * CHUNK_BYTES, // memory kept by the records of a chunk
    LINE_RECORD_BYTES = 512 << 20,       // of all requests of a line
};

// NULL when memory is short; then the chunk has failed.
static dsc_import_entry *add_entry(dsc_import_chunk *c)
{
    size_t before = c->capacity;
    if (dsc_resize(&c->entry, &c->capacity, c->count + 1, &c->failed))
        return NULL;
    if (c->capacity > before)
        memset(c->entry + before, 0, (c->capacity - before) * sizeof *c->entry);
    dsc_import_entry *e = &c->entry[c->count++];
    e->number = e->column = 0;
    e->begin = c->bytes.length;
    e->length = 0;
    e->fatal = false;
    e->records = 0;
    e->failed = 0;
    return e;
}

static void set_bad(dsc_import_chunk *c, dsc_import_entry *e, const dsc_error *why)
{
    e->bad = malloc(sizeof *e->bad);
    if (e->bad) {
        *e->bad = *why;
    } else {
        dsc_fail(&c->failed, DSC_ENOMEM, "out of memory");
        e->bad = &c->failed;
    }
}

void dsc_import_chunk_read(dsc_import_chunk *c, dsc_import_source *source, bool documents)
{
    while (!c->last && !c->failed.status && c->bytes.length < CHUNK_BYTES &&
           c->count < CHUNK_LINES) {
        dsc_line line;
        dsc_error why;
        int bad = dsc_import_source_next(source, documents, &line, &why);
        c->last = bad ? dsc_import_source_broken(source) : !line.bytes;
        if (!bad && c->last)
            break;
        dsc_import_entry *e = add_entry(c);
        if (!e)
            break;
        e->number = line.number;
        e->column = line.column;
        e->fatal = c->last;
        if (bad) {
            set_bad(c, e, &why);
        } else if (dsc_buffer_append(&c->bytes, line.bytes, line.length, &c->failed)) {
            e->bad = &c->failed;
        } else {
            e->length = line.length;
        }
    }
    c->last = c->last || c->failed.status;
    c->position = dsc_input_position(source->in);
}

// Parses a line that has no error so far.
static int parse(json_t **out, const dsc_import_chunk *c, const dsc_import_entry *e,
                 const char *name, dsc_error *err)
{
    dsc_line line = {c->bytes.data + e->begin, e->length, e->number, e->column};
    return dsc_import_parse(out, &line, name, err);
}

dsc_import_entry *dsc_import_chunk_first(const dsc_import_chunk *c, const dsc_import_job *job,
                                         const char *name, json_t **json)
{
    for (size_t i = 0; i < c->count; i++) {
        dsc_import_entry *e = &c->entry[i];
        if (!e->bad && !parse(json, c, e, name, NULL))
            return e;
        if (!job->options.skip_errors)
            break;
    }
    return NULL;
}

static void drop_bad(dsc_import_chunk *c, dsc_import_entry *e)
{
    if (e->bad != &c->failed)
        free(e->bad);
    e->bad = NULL;
}

void dsc_import_chunk_end(dsc_import_chunk *c, dsc_import_entry *e, const dsc_error *why)
{
    e->fatal = true;
    for (dsc_import_entry *rest = e + 1; rest < c->entry + c->count; rest++)
        drop_bad(c, rest);
    c->count = (size_t)(e - c->entry) + 1;
    c->last = true;
    set_bad(c, e, why);
}

// The name of the model, as the drivers keep it.
static const char *find_model(const dsc_import_record *r)
{
    static const char *const names[] = {"model", "model_id", "generator"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && r->kept && !found; i++)
        found = json_string_value(json_object_get(r->kept, names[i]));
    return found;
}

// A server that counted more tokens than the text has gave a part of the output elsewhere, or
// nowhere: reasoning, calls of tools. A few are tokens that no text shows. Benchmarks of questions
// have whole answers, which the user may tokenize as another model does.
static int check_count(const dsc_import_job *job, dsc_import_record *r, dsc_error *err)
{
    enum { UNSEEN = 5 };
    static const char *const nothing[] = {NULL};
    const int64_t tokens = (int64_t)r->output.tokens.count, counted = r->recorded_tokens;
    const int64_t unseen = tokens / 10 > UNSEEN ? tokens / 10 : UNSEEN;
    if (job->driver->wants_questions || r->output.has_tokens || counted <= tokens + unseen)
        return DSC_OK;
    if (job->options.lossy) {
        int rc = dsc_import_keep(r, NULL, nothing, err);
        return rc ?: dsc_import_mark(r->kept, DSC_CHAT_COUNT, false, err);
    }
    return dsc_fail(err, DSC_EINPUT,
                    "the server counted %lld output tokens, but the text has %lld: reasoning or "
                    "tool calls are missing in it, or the tokenizer is that of another model; "
                    "trace import --lossy goes on and marks the trace",
                    (long long)counted, (long long)tokens);
}

// Makes one more record of the entry from a request.
static int make_record(const dsc_import_job *job, dsc_import_entry *e, const json_t *request,
                       dsc_encoder *encoder, dsc_error *err)
{
    const size_t before = e->capacity;
    const char *model = job->options.model;
    int rc = e->records ? dsc_resize(&e->more, &e->capacity, e->records, err) : DSC_OK;
    if (rc)
        return rc;
    if (e->capacity > before)
        memset(e->more + before, 0, (e->capacity - before) * sizeof *e->more);
    dsc_import_record *r = dsc_import_entry_record(e, e->records++);
    dsc_import_record_reset(r);
    rc = job->driver->read(request, &job->options, r, err);
    if (rc)
        return rc;
    r->model = find_model(r);
    r->other_model = model && (!r->model || strcmp(r->model, model) != 0);
    if (r->other_model)
        return DSC_OK;
    rc = dsc_import_record_finish(r, job->tokenizer, encoder, &job->ends, err);
    rc = rc ?: check_count(job, r, err);
    return rc ?: dsc_import_record_seal(r, err);
}

// Replaces the JSON value of an entry by the list of its requests.
static int expand(const dsc_import_job *job, dsc_import_entry *e, dsc_error *err)
{
    json_t *requests = json_array();
    int rc = requests ? job->driver->expand(e->json, &job->options, requests, err)
                      : dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(e->json);
    e->json = requests;
    return rc;
}

static int make_records(const dsc_import_job *job, dsc_import_entry *e, dsc_encoder *encoder,
                        const char *name, dsc_error *err)
{
    int rc = json_is_object(e->json) ? DSC_OK : dsc_import_not_object(e->json, err);
    if (!rc && !job->driver->expand) {
        rc = make_record(job, e, e->json, encoder, err);
    } else if (!rc) {
        size_t bytes = 0;
        rc = expand(job, e, err);
        const size_t requests = json_array_size(e->json);
        for (size_t i = 0; i < requests && !rc; i++) {
            const json_t *request = json_array_get(e->json, i);
            if (json_is_null(request))
                e->failed++;
            else
                rc = make_record(job, e, request, encoder, err);
            if (!rc && e->records && requests > 1)
                bytes += dsc_import_record_bytes(dsc_import_entry_record(e, e->records - 1));
            if (!rc && bytes > LINE_RECORD_BYTES)
                rc = dsc_fail(err, DSC_EINPUT,
                              "the requests of the line need more than 512 MiB; write them as "
                              "several lines");
        }
    }
    if (rc)
        dsc_error_prefix(err, rc, "%s:%lld", name, (long long)e->number);
    return rc;
}

static void drop_json(dsc_import_entry *e)
{
    json_decref(e->json);
    e->json = NULL;
}

// Adds to the message about a line that is not JSON what the file probably is.
static void explain(const dsc_import_chunk *c, const dsc_import_entry *e, dsc_error *why)
{
    static const char *const kinds[][2] = {
        {"data:", "these are server-sent events: remove the prefix 'data: ' of each line"},
        {"PAR1", "this is Parquet: write it as JSON lines first"},
        {"", "the input must be JSON lines or a JSON document; write tables as JSON lines first"},
    };
    const char *text = c->bytes.data + e->begin, *hint = NULL;
    const bool json = e->length && strchr("{[ \t", *text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && e->number == 1 && !json && !hint; k++)
        if (e->length >= strlen(kinds[k][0]) && !memcmp(text, kinds[k][0], strlen(kinds[k][0])))
            hint = kinds[k][1];
    if (e->number > 1 && c->last && e == c->entry + c->count - 1)
        hint = "it is the last line and may be truncated: --on-error skip leaves it out";
    if (hint) {
        const dsc_error was = *why;
        dsc_fail(why, was.status, "%.300s; %s", was.message, hint);
    }
}

void dsc_import_chunk_parse(dsc_import_chunk *c, const dsc_import_job *job, dsc_encoder *encoder,
                            const char *name)
{
    for (size_t i = 0; i < c->count; i++) {
        dsc_import_entry *e = &c->entry[i];
        dsc_error why;
        int bad = e->bad ? DSC_OK : parse(&e->json, c, e, name, &why);
        if (bad == DSC_EINPUT)
            explain(c, e, &why);
        if (!bad && !e->bad)
            bad = make_records(job, e, encoder, name, &why);
        if (bad) {
            drop_json(e);
            set_bad(c, e, &why);
        }
        if (e->bad && !job->options.skip_errors)
            break;
    }
}

// Frees all records of a line but the first.
static void drop_more(dsc_import_entry *e)
{
    for (size_t r = 0; r < e->capacity; r++)
        dsc_import_record_fini(&e->more[r]);
    free(e->more);
    e->more = NULL;
    e->capacity = e->records = 0;
}

// Keeps the entries, and the memory of their records up to a limit.
void dsc_import_chunk_reset(dsc_import_chunk *c)
{
    size_t room = KEEP_RECORD_BYTES;
    for (size_t i = 0; i < c->count; i++) {
        dsc_import_entry *e = &c->entry[i];
        size_t bytes = dsc_import_record_bytes(&e->record);
        if (bytes > room)
            dsc_import_record_fini(&e->record);
        else
            room -= bytes;
        drop_more(e);
        drop_json(e);
        drop_bad(c, e);
    }
    if (c->bytes.capacity > KEEP_BYTES)
        dsc_buffer_fini(&c->bytes);
    c->bytes.length = c->count = 0;
    c->last = false;
    c->failed.status = DSC_OK;
}

void dsc_import_chunk_fini(dsc_import_chunk *c)
{
    dsc_import_chunk_reset(c);
    for (size_t i = 0; i < c->capacity; i++)
        dsc_import_record_fini(&c->entry[i].record);
    dsc_buffer_fini(&c->bytes);
    free(c->entry);
    *c = (dsc_import_chunk){0};
}

// SPDX-License-Identifier: Apache-2.0
// The import loop: reads the lines of the inputs, parses them with a driver and adds the records to
// a trace. Lines are processed in chunks (import_lines.h) in a ring. Any thread can read a chunk
// (one at a time), parse it, or add its records to the trace (one at a time, in the order of the
// input), so the trace does not depend on threads. The writer writes shards in its own thread.
#include "traces/import/import.h"

#include "base/json_text.h"
#include "base/option.h"
#include "base/threads.h"
#include "traces/files/input.h"
#include "traces/import/import_answers.h"
#include "traces/import/import_chat.h"
#include "traces/import/import_lines.h"
#include "traces/import/import_map.h"
#include "traces/import/import_notes.h"
#include "traces/import/import_record.h"
#include "traces/import/import_source.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RING = 16,            // chunks in progress; more would not fit in the caches
    GIANT_BYTES = 1 << 20 // a chunk larger than this is processed alone, to bound memory
};

// The state of the chunks of an input, numbered modulo the ring. The lock protects all of it.
typedef struct ring {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t read, begun, taken; // number of chunks read, of chunks whose parsing has begun, and of
                               // chunks added to the trace
    bool made[RING];           // parsed, but not yet added to the trace
    bool reading, taking, end; // `end`: no more chunks will be read
    bool alone;                // no chunk is read until the last one is added to the trace
} ring;

typedef struct importer {
    dsc_import_job job;
    const char *const *paths; // [count]
    size_t count;
    void *prepared;          // the driver's state
    bool is_settled;         // driver and prepared are final
    dsc_encoder **encoder;   // [threads]
    dsc_import_chunk *chunk; // [chunks]
    size_t chunks;           // RING; one for one thread
    ring ring;
    dsc_import_source source; // the input being read

    // Used by the thread that adds records, one at a time.
    atomic_bool stopped; // no more records are added; `why` is the reason
    dsc_error why;
    const char *out_path;
    dsc_trace_writer *writer; // opened by the first request
    dsc_trace_info recorded;  // fields of the first request, which all requests must have
    int64_t requests, left_out;
    dsc_import_tally tally; // what the notes tell
    dsc_token_view *tokens; // [token_capacity] of the references being written
    dsc_text_view *texts;   // [text_capacity]
    size_t token_capacity, text_capacity;

    struct dsc_import_map map;
    struct dsc_import_chat chat;
    json_t *questions;             // or NULL
    json_t *sources, *notes;       // provenance: one object per input; sentences
    json_t *last_sources;          // after those of the inputs
    int64_t done, total, reported; // bytes as stored: finished inputs; all inputs, or -1; reported
    char first_bad[512];           // message of the first skipped line
} importer;

static int open_writer(importer *im, const dsc_import_record *r, dsc_error *err)
{
    dsc_trace_info info = {
        .tokenizer_name = im->job.tokenizer ? dsc_tokenizer_name(im->job.tokenizer) : "none",
        .vocab_size = im->job.options.vocab_size,
        .eos_token = im->job.ends.eos,
        .has_text = im->job.tokenizer != NULL,
        .format = im->job.driver->name,
        .semantics = im->job.options.semantics,
        .provenance = "{}",
    };
    dsc_import_record_describe(r, &info);
    dsc_recorded_copy(&im->recorded, &info);
    if (im->job.tokenizer)
        memcpy(info.tokenizer_sha256, dsc_tokenizer_sha256(im->job.tokenizer), DSC_SHA256_HEX);
    return dsc_trace_writer_open(&im->writer, im->out_path, &info, im->job.options.force,
                                 im->job.options.shard_tokens, err);
}

// --- notes -------------------------------------------------------------------------------------

static int add_note(importer *im, const char *note, dsc_error *err)
{
    if (!*note)
        return DSC_OK;
    if (im->job.options.note)
        im->job.options.note(im->job.options.user, note);
    if (json_array_append_new(im->notes, json_string(note)))
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return DSC_OK;
}

static int add_notes(importer *im, dsc_error *err)
{
    char note[DSC_IMPORT_NOTE];
    int rc = DSC_OK;
    size_t length;
    if (im->job.ends.guessed)
        im->tally.eos_guess = dsc_tokenizer_text(im->job.tokenizer, im->job.ends.eos, &length);
    for (int kind = 0; !rc && dsc_import_tally_note(&im->tally, kind, note); kind++)
        rc = add_note(im, note, err);
    return rc;
}

// --- records -----------------------------------------------------------------------------------

static dsc_token_view token_view(const dsc_import_text *t)
{
    return (dsc_token_view){t->tokens.id, (int64_t)t->tokens.count};
}

// Settles what depends on earlier requests: the same fields for all, and an id for a line without
// one. The writer checks that ids are unique.
static int settle_record(importer *im, dsc_import_record *r, dsc_error *err)
{
    int rc = im->writer ? dsc_import_record_agrees(r, &im->recorded, err) : DSC_OK;
    if (!rc && r->id.length == 0)
        rc = dsc_buffer_printf(&r->id, err, "%lld", (long long)im->requests);
    if (!rc && !im->writer)
        rc = open_writer(im, r, err);
    return rc;
}

// DSC_EINPUT: nothing was added, and the import may continue with the next line.
static int add_record(importer *im, dsc_import_record *r, dsc_error *err)
{
    if (dsc_import_tally_skips(&im->tally, r))
        return DSC_OK;
    int rc = settle_record(im, r, err);
    if (!rc)
        rc = dsc_resize(&im->tokens, &im->token_capacity, r->references, err);
    if (!rc)
        rc = dsc_resize(&im->texts, &im->text_capacity, r->references, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->references; i++) {
        im->tokens[i] = token_view(&r->reference[i]);
        im->texts[i] = r->reference[i].text;
    }
    dsc_request_input q = {
        .id = {r->id.data, (int64_t)r->id.length},
        .prompt = token_view(&r->prompt),
        .output = token_view(&r->output),
        .prompt_text = r->prompt.text,
        .output_text = r->output.text,
        .references = (int64_t)r->references,
        .reference = im->tokens,
        .reference_text = im->texts,
        .kind = r->kind,
        .metadata = {r->metadata, r->metadata ? (int64_t)strlen(r->metadata) : 0},
    };
    dsc_import_record_view(r, &im->recorded, &q);
    rc = dsc_trace_writer_add(im->writer, &q, err);
    im->requests += !rc;
    if (!rc)
        dsc_import_tally_add(&im->tally, r);
    return rc;
}

// --- the loop ----------------------------------------------------------------------------------

// Skips a bad line with skip_errors; otherwise returns its error.
static int leave_out(importer *im, int rc, dsc_error *err)
{
    if (rc != DSC_EINPUT || !im->job.options.skip_errors)
        return rc;
    if (im->left_out++ == 0)
        snprintf(im->first_bad, sizeof im->first_bad, "%.500s", err->message);
    if (im->job.options.skipped)
        im->job.options.skipped(im->job.options.user, err->message);
    return DSC_OK;
}

static int add_source(json_t *sources, const dsc_input *in, dsc_error *err)
{
    char hex[DSC_SHA256_HEX];
    const char *name = dsc_input_name(in), *slash = strrchr(name, '/');
    dsc_input_sha256(in, hex);
    json_t *source = json_pack("{s:o, s:I, s:s}", "file", dsc_json_text(slash ? slash + 1 : name),
                               "bytes", (json_int_t)dsc_input_position(in), "sha256", hex);
    if (!source || json_array_append_new(sources, source))
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return DSC_OK;
}

// The file of questions is a source of the trace, the last one.
static int load_questions(importer *im, dsc_error *err)
{
    dsc_input *in;
    int rc = dsc_input_open(&in, im->job.options.questions, err);
    if (!rc)
        rc = dsc_questions_load(&im->questions, in, err);
    if (!rc)
        rc = add_source(im->last_sources, in, err);
    im->job.options.asked = im->questions;
    dsc_input_close(in);
    return rc;
}

// Finds the chat template. An answer in it ends with a token of its own, if that is one of the
// model's EOS tokens or if these are a guess.
static int settle_chat(importer *im, const json_t *first, dsc_error *err)
{
    dsc_import_job *job = &im->job;
    char note[DSC_IMPORT_NOTE] = "";
    int rc = dsc_import_chat_settle(&im->chat, &job->options, note, err);
    job->options.chat = &im->chat;
    if (rc || !dsc_import_chat_applies(first, &job->options))
        return rc;
    const char *end = im->chat.format ? dsc_chat_template_end(im->chat.format) : NULL;
    const int32_t id = end && job->tokenizer ? dsc_tokenizer_find(job->tokenizer, end) : -1;
    if (!job->options.eos)
        dsc_ends_prefer(&job->ends, id);
    return add_note(im, note, err);
}

// Chooses the driver by the first line that can be parsed, and lets it prepare.
static int prepare_driver(importer *im, const json_t *json, int64_t number, dsc_error *err)
{
    dsc_import_job *job = &im->job;
    char note[DSC_IMPORT_NOTE] = "";
    int rc = job->driver ? DSC_OK : dsc_import_probe(&job->driver, json, err);
    if (rc)
        return dsc_error_prefix(err, rc, "%s:%lld", dsc_input_name(im->source.in),
                                (long long)number);
    im->is_settled = true;
    if (job->options.questions && !job->driver->wants_questions)
        return dsc_fail(err, DSC_EUSAGE,
                        "the format %s has no questions; --questions is for specbench, mtbench and "
                        "eagle",
                        job->driver->name);
    if (job->options.questions)
        rc = load_questions(im, err);
    if (!rc && job->driver->chats)
        rc = settle_chat(im, json, err);
    if (!rc && job->driver->prepare)
        rc = job->driver->prepare(&im->prepared, im->paths, im->count, note, err);
    job->options.prepared = im->prepared;
    return rc ? rc : add_note(im, note, err);
}

static void settle_driver(importer *im, dsc_import_chunk *c)
{
    json_t *json;
    dsc_error why;
    dsc_import_entry *e = dsc_import_chunk_first(c, &im->job, dsc_input_name(im->source.in), &json);
    if (e && prepare_driver(im, json, e->number, &why))
        dsc_import_chunk_end(c, e, &why);
    if (e)
        json_decref(json);
}

static int report_progress(importer *im, int64_t done, bool now, dsc_error *err)
{
    enum { EVERY_BYTES = 1 << 20 };
    if (!im->job.options.progress || (!now && done - im->reported < EVERY_BYTES))
        return DSC_OK;
    im->reported = done;
    if (im->job.options.progress(im->job.options.user, done, im->total))
        return dsc_fail(err, DSC_EINTERRUPT, "interrupted after %lld requests; nothing was written",
                        (long long)im->requests);
    return DSC_OK;
}

// Any thread may call this; some chunks may still be processed after the stop.
static bool is_stopped(importer *im)
{
    return atomic_load_explicit(&im->stopped, memory_order_relaxed);
}

// Adds the record of a line to the trace, or skips the line.
static int take_entry(importer *im, dsc_import_entry *e, dsc_error *err)
{
    int rc = e->bad ? dsc_fail(err, e->bad->status, "%s", e->bad->message) : DSC_OK;
    for (size_t i = 0; !rc && i < e->records; i++)
        rc = add_record(im, dsc_import_entry_record(e, i), err);
    im->tally.failed += rc ? 0 : e->failed;
    if (!e->bad && rc == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%s:%lld", dsc_input_name(im->source.in), (long long)e->number);
    return e->fatal ? rc : leave_out(im, rc, err);
}

static void take_chunk(importer *im, dsc_import_chunk *c)
{
    dsc_error err = {0};
    int rc = DSC_OK;
    if (!is_stopped(im)) {
        for (size_t i = 0; i < c->count && !rc; i++)
            rc = take_entry(im, &c->entry[i], &err);
        if (!rc && c->failed.status)
            rc = dsc_fail(&err, c->failed.status, "%s", c->failed.message);
        if (!rc)
            rc = report_progress(im, im->done + c->position, !c->last, &err);
        if (rc) {
            im->why = err;
            atomic_store_explicit(&im->stopped, true, memory_order_relaxed);
        }
    }
    dsc_import_chunk_reset(c);
}

static void parse_chunk(importer *im, dsc_import_chunk *c)
{
    if (!is_stopped(im))
        dsc_import_chunk_parse(c, &im->job, im->encoder[omp_get_thread_num()],
                               dsc_input_name(im->source.in));
}

// The first line that is JSON determines the driver. Until then chunks are processed alone.
static void read_chunk(importer *im, dsc_import_chunk *c)
{
    bool documents = !im->job.driver || im->job.driver->documents;
    dsc_import_chunk_read(c, &im->source, documents);
    if (!im->is_settled)
        settle_driver(im, c);
}

typedef enum duty { READ, PARSE, TAKE, REST, LEAVE } duty;

// Chooses the next duty of a thread. Adding records comes first: it empties the ring, and the
// records are still in the caches. One chunk per thread is read in advance, because only one thread
// reads.
static duty choose_duty(const importer *im)
{
    const ring *r = &im->ring;
    size_t waiting = r->read - r->begun, threads = (size_t)im->job.options.threads;
    bool readable = !r->reading && !r->end && r->read - r->taken < im->chunks &&
                    !(r->alone && r->taken < r->read);
    if (!r->taking && r->made[r->taken % im->chunks])
        return TAKE;
    if (readable && waiting < threads)
        return READ;
    if (waiting)
        return PARSE;
    return readable ? READ : r->end && r->taken == r->read && !r->reading ? LEAVE : REST;
}

// Holds the lock except during the work itself.
static void do_duty(importer *im, duty what)
{
    ring *r = &im->ring;
    size_t number = what == READ ? r->read : what == PARSE ? r->begun++ : r->taken;
    dsc_import_chunk *c = &im->chunk[number % im->chunks];
    r->reading = r->reading || what == READ;
    r->taking = r->taking || what == TAKE;
    pthread_mutex_unlock(&r->lock);
    if (what == READ)
        read_chunk(im, c);
    else if (what == PARSE)
        parse_chunk(im, c);
    else
        take_chunk(im, c);
    pthread_mutex_lock(&r->lock);
    switch (what) {
    case READ:
        r->reading = false;
        r->read++;
        r->end = c->last || is_stopped(im);
        r->alone = !im->is_settled || c->bytes.length > GIANT_BYTES;
        break;
    case PARSE: r->made[number % im->chunks] = true; break;
    default:
        r->taking = r->made[number % im->chunks] = false;
        r->taken++;
        r->end = r->end || is_stopped(im);
    }
    pthread_cond_broadcast(&r->changed);
}

static void work(importer *im)
{
    ring *r = &im->ring;
    duty next;
    pthread_mutex_lock(&r->lock);
    while ((next = choose_duty(im)) != LEAVE) {
        if (next == REST)
            pthread_cond_wait(&r->changed, &r->lock);
        else
            do_duty(im, next);
    }
    pthread_mutex_unlock(&r->lock);
}

static int import_lines(importer *im, dsc_error *err)
{
    im->ring = (ring){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
#pragma omp parallel num_threads(im->job.options.threads)
    work(im);
    if (is_stopped(im))
        *err = im->why;
    return im->why.status;
}

static int import_file(importer *im, const char *path, dsc_error *err)
{
    im->source = (dsc_import_source){0};
    int rc = dsc_input_open(&im->source.in, path, err);
    if (!rc)
        rc = import_lines(im, err);
    if (!rc) {
        im->done += dsc_input_position(im->source.in);
        rc = add_source(im->sources, im->source.in, err);
    }
    dsc_import_source_fini(&im->source);
    dsc_input_close(im->source.in);
    return rc;
}

json_t *dsc_import_reading(const dsc_import_options *options)
{
    const char *const set[][2] = {{"map", options->map},
                                  {"chat_template", options->chat_template},
                                  {"turns", options->last_turn ? "last" : NULL},
                                  {"lossy", options->lossy ? "yes" : NULL},
                                  {"model", options->model}};
    json_t *o = json_object();
    for (size_t i = 0; o && i < sizeof set / sizeof *set; i++)
        if (set[i][1] && json_object_set_new(o, set[i][0], dsc_json_text(set[i][1]))) {
            json_decref(o);
            o = NULL;
        }
    return o;
}

static int commit(importer *im, dsc_error *err)
{
    if (im->requests == 0 && im->left_out)
        return dsc_fail(err, DSC_EINPUT,
                        "no requests: all %lld lines were skipped, the first because of: %s",
                        (long long)im->left_out, im->first_bad);
    if (im->requests == 0)
        return dsc_import_tally_empty(&im->tally, err);
    const dsc_import_options *o = &im->job.options;
    int rc = add_notes(im, err);
    if (!rc && json_array_extend(im->sources, im->last_sources))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (rc)
        return rc;
    json_t *j =
        json_pack("{s:o, s:o, s:O, s:I}", "version", dsc_json_text(o->version ? o->version : ""),
                  "command", dsc_json_text(o->command ? o->command : ""), "sources", im->sources,
                  "lines_left_out", (json_int_t)im->left_out);
    json_t *reading = dsc_import_reading(o);
    const bool plain = json_object_size(reading) == 0;
    if (j && !plain && json_object_set(j, "reading", reading)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(reading);
    if (j && im->tally.lossy &&
        json_object_set_new(j, "lossy_requests", json_integer(im->tally.lossy))) {
        json_decref(j);
        j = NULL;
    }
    if (j && json_array_size(im->notes) && json_object_set(j, "notes", im->notes)) {
        json_decref(j);
        j = NULL;
    }
    char *provenance = j ? dsc_json_dump(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (!provenance)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    rc = dsc_trace_writer_commit(im->writer, provenance, err);
    im->writer = NULL; // freed, also on failure
    free(provenance);
    return rc;
}

// --- setting up --------------------------------------------------------------------------------

static int unknown_format(const char *format, dsc_error *err)
{
    const char *names[32];
    size_t n = 0;
    for (const dsc_import_driver *const *d = dsc_import_drivers(); *d && n < 32; d++)
        names[n++] = (*d)->name;
    return dsc_unknown_name("import format", format, names, n, "see: draftscope list formats", err);
}

static int choose_map(importer *im, dsc_error *err)
{
    const dsc_import_driver *driver = im->job.driver;
    if (!im->job.options.map)
        return DSC_OK;
    if (driver && driver != &dsc_import_mapped)
        return dsc_fail(err, DSC_EUSAGE,
                        "the format %s has its own fields; a map needs the format mapped",
                        driver->name);
    im->job.driver = &dsc_import_mapped;
    im->job.options.fields = &im->map;
    return dsc_import_map_parse(&im->map, im->job.options.map, "output", err);
}

static int choose_format(importer *im, dsc_error *err)
{
    const char *format = im->job.options.format, *semantics = im->job.options.semantics;
    if (!semantics)
        im->job.options.semantics = "paper";
    else if (strcmp(semantics, "paper") != 0 && strcmp(semantics, "code") != 0)
        return dsc_fail(err, DSC_EUSAGE, "semantics '%s' must be paper or code", semantics);
    for (const dsc_import_driver *const *d = dsc_import_drivers(); format && *d; d++)
        if (strcmp((*d)->name, format) == 0)
            im->job.driver = *d;
    if (format && !im->job.driver)
        return unknown_format(format, err);
    return choose_map(im, err);
}

static int choose_vocabulary(importer *im, dsc_error *err)
{
    dsc_import_options *o = &im->job.options;
    im->job.ends = (dsc_ends){.eos = -1};
    if (!im->job.tokenizer) {
        if (o->eos)
            return dsc_fail(
                err, DSC_EUSAGE,
                "the EOS token '%s' cannot be found without a tokenizer; add --tokenizer", o->eos);
        if (o->vocab_size <= 0)
            return dsc_fail(err, DSC_EUSAGE,
                            "%s: a tokenizer or a vocabulary size is required. If the file holds "
                            "text, add --tokenizer tokenizer.json; if token ids, --vocab-size N",
                            im->paths[0]);
        return DSC_OK;
    }
    int32_t size = dsc_tokenizer_vocab_size(im->job.tokenizer);
    const char *name = dsc_tokenizer_name(im->job.tokenizer);
    if (o->vocab_size != 0 && o->vocab_size != size)
        return dsc_fail(err, DSC_EUSAGE,
                        "the vocabulary size is given as %d, but tokenizer %s has %d tokens",
                        o->vocab_size, name, size);
    o->vocab_size = size;
    return o->eos ? dsc_ends_parse(&im->job.ends, im->job.tokenizer, size, o->eos, err)
                  : dsc_ends_read(&im->job.ends, im->job.tokenizer, o->tokenizer_path, err);
}

static int allocate(importer *im, dsc_error *err)
{
    enum { THREADS_MAX = 256 };
    int *threads = &im->job.options.threads;
    if (*threads < 1)
        *threads = dsc_threads_default();
    *threads = *threads < THREADS_MAX ? *threads : THREADS_MAX;
    im->chunks = *threads > 1 ? RING : 1;
    int rc = dsc_new(&im->encoder, (size_t)*threads, err);
    for (int i = 0; i < *threads && im->job.tokenizer && !rc; i++)
        rc = dsc_encoder_new(&im->encoder[i], im->job.tokenizer, err);
    if (!rc)
        rc = dsc_new(&im->chunk, im->chunks, err);
    im->sources = json_array();
    im->last_sources = json_array();
    im->notes = json_array();
    if (!rc && !(im->sources && im->last_sources && im->notes))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    return rc;
}

static void importer_fini(importer *im)
{
    dsc_trace_writer_abort(im->writer);
    for (size_t i = 0; im->chunk && i < im->chunks; i++)
        dsc_import_chunk_fini(&im->chunk[i]);
    for (int i = 0; im->encoder && i < im->job.options.threads; i++)
        dsc_encoder_free(im->encoder[i]);
    free(im->chunk);
    free(im->encoder);
    if (im->job.driver && im->job.driver->release)
        im->job.driver->release(im->prepared);
    else
        free(im->prepared);
    dsc_import_map_fini(&im->map);
    json_decref(im->questions);
    json_decref(im->sources);
    json_decref(im->last_sources);
    json_decref(im->notes);
    free(im->tokens);
    free(im->texts);
}

// Adds up the sizes of the inputs. A missing input is reported before the first one is read.
static int measure(importer *im, const char *const *paths, size_t count, dsc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        bool is_stdin = strcmp(paths[i], "-") == 0;
        if (!is_stdin && stat(paths[i], &st))
            return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", paths[i]);
        if (is_stdin || !S_ISREG(st.st_mode))
            im->total = -1;
        else if (im->total >= 0)
            im->total += st.st_size;
    }
    return DSC_OK;
}

int dsc_import(const char *const *paths, size_t count, const dsc_tokenizer *tokenizer,
               const char *out_path, const dsc_import_options *options, int64_t *left_out,
               dsc_error *err)
{
    importer im = {.job = {.tokenizer = tokenizer, .options = *options},
                   .paths = paths,
                   .count = count,
                   .out_path = out_path,
                   .tally = {.wanted = options->model}};
    dsc_error local; // skipping needs the messages even if the caller does not
    err = err ? err : &local;
    int rc = choose_format(&im, err);
    if (!rc)
        rc = choose_vocabulary(&im, err);
    if (!rc)
        rc = measure(&im, paths, count, err);
    if (!rc)
        rc = allocate(&im, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = import_file(&im, paths[i], err);
    if (!rc)
        rc = report_progress(&im, im.done, true, err);
    if (!rc)
        rc = commit(&im, err);
    if (left_out)
        *left_out = im.left_out;
    importer_fini(&im);
    return rc;
}

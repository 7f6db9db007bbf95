// SPDX-License-Identifier: Apache-2.0
// The import loop: lines of the inputs, through a driver, into a trace. One line's data is held at
// a time. make_record looks at nothing that changes from line to line, so that lines can be handed
// to threads later; what depends on the order (ids, the writer) is in add_record.
#include "traces/import.h"

#include "base/option.h"
#include "traces/import_record.h"
#include "traces/import_source.h"
#include "traces/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct importer {
    const dsc_tokenizer *tokenizer;  // or NULL
    dsc_import_options options;      // the caller's, completed: semantics, vocab_size
    const dsc_import_driver *driver; // NULL until the first line was probed
    const char *const *paths;        // [count]
    size_t count;
    void *prepared;  // the driver's
    bool is_settled; // driver and prepared are
    int32_t eos;     // or -1
    dsc_encoder *encoder;
    dsc_import_record record;

    const char *out_path;
    dsc_trace_writer *writer; // opened by the first request
    dsc_trace_info recorded;  // what the first request has, and so all must have
    int64_t requests, left_out;
    dsc_token_view *tokens; // [token_capacity] of the references being written
    dsc_text_view *texts;   // [text_capacity]
    size_t token_capacity, text_capacity;

    // What the source counted, of the requests that say: to compare with the trace.
    int64_t counted, recorded_tokens, other_count, trace_tokens;
    double recorded_s;

    json_t *sources, *notes;       // provenance: one object per input, sentences
    int64_t done, total, reported; // bytes as stored: of finished inputs, of all or -1
    char first_bad[512];           // message of the first line left out
} importer;

// Fills `record` from a line. Thread-safe given an encoder and a record of one's own.
static int make_record(const importer *im, const json_t *line, dsc_encoder *encoder,
                       dsc_import_record *record, dsc_error *err)
{
    dsc_import_record_reset(record);
    int rc = im->driver->read(line, &im->options, record, err);
    if (!rc)
        rc = dsc_import_record_finish(record, im->tokenizer, encoder, im->eos, err);
    return rc;
}

static int open_writer(importer *im, dsc_error *err)
{
    dsc_trace_info info = {
        .tokenizer_name = (char *)(im->tokenizer ? dsc_tokenizer_name(im->tokenizer) : "none"),
        .vocab_size = im->options.vocab_size,
        .eos_token = im->eos,
        .has_text = im->tokenizer != NULL,
        .format = (char *)im->driver->name,
        .semantics = (char *)im->options.semantics,
        .provenance = "{}",
    };
    dsc_import_record_describe(&im->record, &info);
    dsc_recorded_copy(&im->recorded, &info);
    if (im->tokenizer)
        memcpy(info.tokenizer_sha256, dsc_tokenizer_sha256(im->tokenizer), DSC_SHA256_HEX);
    return dsc_trace_writer_open(&im->writer, im->out_path, &info, im->options.force, 0, err);
}

// --- notes -------------------------------------------------------------------------------------

static int add_note(importer *im, const char *note, dsc_error *err)
{
    if (!*note)
        return DSC_OK;
    if (im->options.note)
        im->options.note(im->options.user, note);
    if (json_array_append_new(im->notes, json_string(note)))
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return DSC_OK;
}

static void count_recorded(importer *im)
{
    const dsc_import_record *r = &im->record;
    int64_t tokens = (int64_t)r->output.tokens.count;
    if (r->recorded_tokens < 0)
        return;
    im->counted++;
    im->recorded_tokens += r->recorded_tokens;
    im->trace_tokens += tokens;
    im->other_count += tokens != r->recorded_tokens;
    im->recorded_s += r->recorded_s;
}

static int note_recorded(importer *im, dsc_error *err)
{
    char note[DSC_IMPORT_NOTE] = "", speed[64] = "";
    if (im->other_count == 0 && im->recorded_s == 0)
        return DSC_OK;
    if (im->recorded_s > 0)
        snprintf(speed, sizeof speed, " in %.1f s (%.1f tokens/s)", im->recorded_s,
                 (double)im->recorded_tokens / im->recorded_s);
    int n = snprintf(note, sizeof note, "the source counted %lld output tokens%s",
                     (long long)im->recorded_tokens, speed);
    if (im->other_count)
        snprintf(note + n, sizeof note - (size_t)n,
                 "; the texts have %lld, other counts in %lld of %lld requests",
                 (long long)im->trace_tokens, (long long)im->other_count, (long long)im->counted);
    return add_note(im, note, err);
}

// --- records -----------------------------------------------------------------------------------

static dsc_token_view token_view(const dsc_import_text *t)
{
    return (dsc_token_view){t->tokens.id, (int64_t)t->tokens.count};
}

// What depends on the requests before: fields for all or none, and the id of a line that gives
// none. (That ids are unique is the writer's to check.)
static int settle_record(importer *im, dsc_error *err)
{
    dsc_import_record *r = &im->record;
    int rc = im->writer ? dsc_import_record_agrees(r, &im->recorded, err) : DSC_OK;
    if (!rc && r->id.length == 0)
        rc = dsc_buffer_printf(&r->id, err, "%lld", (long long)im->requests);
    if (!rc && !im->writer)
        rc = open_writer(im, err);
    return rc;
}

// DSC_EINPUT: nothing was added, the next line may be tried.
static int add_record(importer *im, dsc_error *err)
{
    const dsc_import_record *r = &im->record;
    void *tokens = im->tokens, *texts = im->texts;
    int rc = settle_record(im, err);
    if (!rc)
        rc = dsc_grow(&tokens, &im->token_capacity, r->references, sizeof *im->tokens, err);
    if (!rc)
        rc = dsc_grow(&texts, &im->text_capacity, r->references, sizeof *im->texts, err);
    im->tokens = tokens;
    im->texts = texts;
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
        count_recorded(im);
    return rc;
}

// --- the loop ----------------------------------------------------------------------------------

// Puts a line that is bad on the list of those left out, or passes its error on.
static int leave_out(importer *im, int rc, dsc_error *err)
{
    if (rc != DSC_EINPUT || !im->options.skip_errors)
        return rc;
    if (im->left_out++ == 0)
        snprintf(im->first_bad, sizeof im->first_bad, "%.500s", err->message);
    if (im->options.skipped)
        im->options.skipped(im->options.user, err->message);
    return DSC_OK;
}

// By the first line that can be parsed: which driver, and what it has to do before it reads one.
static int settle_driver(importer *im, const json_t *json, const char *name, int64_t number,
                         dsc_error *err)
{
    char note[DSC_IMPORT_NOTE] = "";
    int rc = im->driver ? DSC_OK : dsc_import_probe(&im->driver, json, err);
    if (rc)
        return dsc_error_prefix(err, rc, "%s:%lld", name, (long long)number);
    im->is_settled = true;
    if (im->options.questions && !im->driver->wants_questions)
        return dsc_fail(err, DSC_EUSAGE, "the format %s has no questions", im->driver->name);
    if (!im->driver->prepare)
        return DSC_OK;
    rc = im->driver->prepare(&im->prepared, im->paths, im->count, &im->options, note, err);
    im->options.prepared = im->prepared;
    return rc ? rc : add_note(im, note, err);
}

static int import_line(importer *im, const dsc_line *line, const char *name, dsc_error *err)
{
    json_t *json;
    int rc = dsc_import_parse(&json, line, name, err);
    if (rc)
        return leave_out(im, rc, err);
    bool fatal = !im->is_settled && (rc = settle_driver(im, json, name, line->number, err));
    if (!rc) {
        bool read = (rc = make_record(im, json, im->encoder, &im->record, err)) == DSC_OK;
        if (read)
            rc = add_record(im, err);
        if (rc && (!read || rc == DSC_EINPUT)) // else the writer's trouble, not the line's
            dsc_error_prefix(err, rc, "%s:%lld", name, (long long)line->number);
    }
    if (!fatal)
        rc = leave_out(im, rc, err);
    json_decref(json);
    return rc;
}

static int report_progress(importer *im, int64_t done, bool now, dsc_error *err)
{
    enum { EVERY_BYTES = 1 << 20 };
    if (!im->options.progress || (!now && done - im->reported < EVERY_BYTES))
        return DSC_OK;
    im->reported = done;
    if (im->options.progress(im->options.user, done, im->total))
        return dsc_fail(err, DSC_EINTERRUPT, "interrupted after %lld requests: nothing was written",
                        (long long)im->requests);
    return DSC_OK;
}

// JSON strings must be UTF-8; file names and commands need not be.
static json_t *lenient_string(const char *s)
{
    json_t *j = json_string(s);
    char *copy = j ? NULL : strdup(s);
    for (char *p = copy; p && *p; p++)
        if (*p & 0x80)
            *p = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}

static int add_source(importer *im, const dsc_input *in, dsc_error *err)
{
    char hex[DSC_SHA256_HEX];
    const char *name = dsc_input_name(in), *slash = strrchr(name, '/');
    dsc_input_sha256(in, hex);
    json_t *source = json_pack("{s:o, s:I, s:s}", "file", lenient_string(slash ? slash + 1 : name),
                               "bytes", (json_int_t)dsc_input_position(in), "sha256", hex);
    if (!source || json_array_append_new(im->sources, source))
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return DSC_OK;
}

// The questions belong to what the trace was made of.
static int add_questions(importer *im, dsc_error *err)
{
    dsc_input *in;
    dsc_line line = {.bytes = ""};
    int rc = dsc_input_open(&in, im->options.questions, err);
    while (!rc && line.bytes)
        rc = dsc_input_line(in, &line, err);
    if (!rc)
        rc = add_source(im, in, err);
    dsc_input_close(in);
    return rc;
}

static int import_file(importer *im, const char *path, dsc_error *err)
{
    enum { EVERY_LINES = 64 };
    dsc_import_source source = {0};
    int rc = dsc_input_open(&source.in, path, err);
    dsc_input *in = source.in;
    int64_t lines = 0;
    while (!rc) {
        dsc_line line;
        bool documents = !im->driver || im->driver->documents;
        rc = dsc_import_source_next(&source, documents, &line, err);
        if (!rc && !line.bytes)
            break;
        if (!rc)
            rc = import_line(im, &line, dsc_input_name(in), err);
        else if (!dsc_import_source_broken(&source))
            rc = leave_out(im, rc, err);
        if (!rc)
            rc = report_progress(im, im->done + dsc_input_position(in), ++lines % EVERY_LINES == 0,
                                 err);
    }
    if (!rc) {
        im->done += dsc_input_position(in);
        rc = add_source(im, in, err);
    }
    dsc_import_source_fini(&source);
    dsc_input_close(in);
    return rc;
}

static int commit(importer *im, dsc_error *err)
{
    if (im->requests == 0 && im->left_out)
        return dsc_fail(err, DSC_EINPUT,
                        "no requests: all %lld lines were left out, the first for: %s",
                        (long long)im->left_out, im->first_bad);
    if (im->requests == 0)
        return dsc_fail(err, DSC_EINPUT, "no requests: the input has no lines");
    const dsc_import_options *o = &im->options;
    int rc = note_recorded(im, err);
    if (!rc && o->questions)
        rc = add_questions(im, err);
    if (rc)
        return rc;
    json_t *j =
        json_pack("{s:o, s:o, s:O, s:I}", "version", lenient_string(o->version ? o->version : ""),
                  "command", lenient_string(o->command ? o->command : ""), "sources", im->sources,
                  "lines_left_out", (json_int_t)im->left_out);
    if (j && json_array_size(im->notes) && json_object_set(j, "notes", im->notes)) {
        json_decref(j);
        j = NULL;
    }
    char *provenance = j ? json_dumps(j, JSON_COMPACT) : NULL;
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

static int choose_format(importer *im, dsc_error *err)
{
    const char *format = im->options.format, *semantics = im->options.semantics;
    if (!semantics)
        im->options.semantics = "paper";
    else if (strcmp(semantics, "paper") != 0 && strcmp(semantics, "code") != 0)
        return dsc_fail(err, DSC_EUSAGE, "semantics '%s' is neither paper nor code", semantics);
    for (const dsc_import_driver *const *d = dsc_import_drivers(); format && *d; d++)
        if (strcmp((*d)->name, format) == 0)
            im->driver = *d;
    if (format && !im->driver)
        return unknown_format(format, err);
    return DSC_OK;
}

static int choose_vocabulary(importer *im, dsc_error *err)
{
    dsc_import_options *o = &im->options;
    im->eos = -1;
    if (!im->tokenizer) {
        if (o->eos)
            return dsc_fail(err, DSC_EUSAGE,
                            "the end token '%s' cannot be found without a tokenizer", o->eos);
        if (o->vocab_size <= 0)
            return dsc_fail(err, DSC_EUSAGE,
                            "without a tokenizer the vocabulary size must be given");
        return DSC_OK;
    }
    int32_t size = dsc_tokenizer_vocab_size(im->tokenizer);
    const char *name = dsc_tokenizer_name(im->tokenizer);
    if (o->vocab_size != 0 && o->vocab_size != size)
        return dsc_fail(err, DSC_EUSAGE, "the vocabulary size is given as %d, tokenizer %s has %d",
                        o->vocab_size, name, size);
    o->vocab_size = size;
    im->eos = o->eos ? dsc_tokenizer_find(im->tokenizer, o->eos) : dsc_tokenizer_eos(im->tokenizer);
    if (o->eos && im->eos < 0)
        return dsc_fail(err, DSC_EUSAGE, "tokenizer %s has no token '%s' to end an output with",
                        name, o->eos);
    return dsc_encoder_new(&im->encoder, im->tokenizer, err);
}

// Finds a missing input now, not after an hour on the one before it.
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
    importer im = {.tokenizer = tokenizer,
                   .options = *options,
                   .paths = paths,
                   .count = count,
                   .out_path = out_path};
    dsc_error local; // skipping needs the messages even when the caller does not
    err = err ? err : &local;
    int rc = choose_format(&im, err);
    if (!rc)
        rc = choose_vocabulary(&im, err);
    if (!rc)
        rc = measure(&im, paths, count, err);
    if (!rc && (!(im.sources = json_array()) || !(im.notes = json_array())))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    for (size_t i = 0; !rc && i < count; i++)
        rc = import_file(&im, paths[i], err);
    if (!rc)
        rc = report_progress(&im, im.done, true, err);
    if (!rc)
        rc = commit(&im, err);
    if (left_out)
        *left_out = im.left_out;
    dsc_trace_writer_abort(im.writer);
    dsc_import_record_fini(&im.record);
    dsc_encoder_free(im.encoder);
    if (im.driver && im.driver->finish)
        im.driver->finish(im.prepared);
    json_decref(im.sources);
    json_decref(im.notes);
    free(im.tokens);
    free(im.texts);
    return rc;
}

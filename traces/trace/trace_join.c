// SPDX-License-Identifier: Apache-2.0
// Merges and appends traces: checks that their descriptions agree, then copies their requests to
// the writer one by one.
#include "traces/trace/trace_join.h"

#include "traces/trace/trace_copy.h"
#include "traces/trace/trace_agree.h"
#include "traces/trace/trace_json.h"
#include "traces/trace/trace_manifest.h"
#include "traces/trace/trace_write.h"
#include "base/json_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct joiner {
    const dsc_join_options *o;
    dsc_trace **trace;   // [count] sources; for an append the first one is the trace that grows
    size_t count, first; // sources before `first` are not copied
    size_t source;       // being copied
    dsc_trace_info info; // description of the output; its strings are not owned
    dsc_trace_writer *writer;
    dsc_request_copy copy;
    dsc_buffer id;
    int64_t done, total; // requests
} joiner;

// --- descriptions ------------------------------------------------------------------------------

static void note(const joiner *j, const char *what, const char *why)
{
    char message[700];
    snprintf(message, sizeof message, "%.200s is left out: %.450s", what, why);
    if (j->o->note)
        j->o->note(j->o->user, message);
}

// Reports why a field of some of the traces cannot be kept.
static void note_field(const joiner *j, dsc_trace *const *trace, size_t count, dsc_field f)
{
    unsigned kind = 0;
    const char *lacking = NULL;
    char why[500] = "the traces have it in different forms";
    for (size_t i = 0; i < count; i++) {
        unsigned here = dsc_field_kind(&trace[i]->info, f);
        kind = kind ? kind : here;
        lacking = here || lacking ? lacking : trace[i]->path;
    }
    if (lacking)
        snprintf(why, sizeof why, "%.400s does not have it", lacking);
    note(j, dsc_field_name(f, kind), why);
}

static void note_drafters(const joiner *j, dsc_trace *const *trace, size_t count,
                          const dsc_trace_info *kept)
{
    char what[2 * DSC_DRAFTER_NAME_BYTES], why[500];
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < trace[i]->info.drafters; d++) {
            const char *name = trace[i]->info.drafter[d].name, *lacking = NULL;
            bool skip = dsc_drafter_number(kept, name) >= 0;
            for (size_t k = 0; k < count; k++) {
                int there = dsc_drafter_number(&trace[k]->info, name);
                skip |= k < i && there >= 0; // reported before
                lacking = there >= 0 || lacking ? lacking : trace[k]->path;
            }
            if (skip)
                continue;
            snprintf(what, sizeof what, "accept.%s", name);
            snprintf(why, sizeof why, "%.400s%s", lacking ? lacking : "its cap differs",
                     lacking ? " does not have it" : "");
            note(j, what, why);
        }
}

// Reports every field that some of the traces record and `kept` does not.
static void note_left_out(const joiner *j, dsc_trace *const *trace, size_t count,
                          const dsc_trace_info *kept)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++) {
        unsigned most = 0;
        for (size_t i = 0; i < count; i++) {
            unsigned kind = dsc_field_kind(&trace[i]->info, f);
            most = kind > most ? kind : most;
        }
        if (f == FIELD_STEPS && kept->steps == DSC_STEPS_LOGGED && most > DSC_STEPS_LOGGED)
            note(j, "steps_aligned", "some traces have logged steps, so all steps become logged");
        else if (f != FIELD_ACCEPT && most && !dsc_field_kind(kept, f))
            note_field(j, trace, count, f);
    }
    note_drafters(j, trace, count, kept);
}

static int agree(const dsc_trace *a, const dsc_trace_info *b, const char *name_b, bool common,
                 dsc_error *err)
{
    int rc = dsc_trace_agree(&a->info, a->path, b, name_b, err);
    if (!rc || common || !err)
        return rc;
    const dsc_error why = *err;
    return dsc_fail(err, rc, "%s (--common keeps only the fields that all have)", why.message);
}

static int settle_merge(joiner *j, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 1; i < j->count && !rc; i++) {
        const dsc_trace *t = j->trace[i], *first = j->trace[0];
        rc = dsc_tokenizers_agree(&first->info, first->path, &t->info, t->path, err);
        if (!rc && !j->o->common)
            rc = agree(first, &t->info, t->path, false, err);
        dsc_recorded_intersect(&j->info, &t->info);
        if (strcmp(j->info.format, t->info.format) != 0)
            j->info.format = "mixed";
        if (strcmp(j->info.semantics, t->info.semantics) != 0)
            j->info.semantics = "mixed";
    }
    return rc;
}

// The trace that grows keeps its fields. The others must have all of these; with `common` their
// additional fields are dropped.
static int settle_append(joiner *j, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 1; i < j->count && !rc; i++) {
        const dsc_trace *t = j->trace[i], *grows = j->trace[0];
        dsc_trace_info rest = t->info;
        rc = dsc_tokenizers_agree(&grows->info, grows->path, &t->info, t->path, err);
        if (j->o->common)
            dsc_recorded_intersect(&rest, &grows->info);
        if (!rc)
            rc = agree(grows, &rest, t->path, j->o->common, err);
    }
    return rc;
}

// --- requests ----------------------------------------------------------------------------------

// Arranges the columns for the writer: drafters in its order, and only the distributions it
// records.
static void fit(const joiner *j, const dsc_trace_info *from, dsc_request_input *q)
{
    const uint16_t *accept[DSC_DRAFTERS_MAX] = {NULL};
    for (int d = 0; d < j->info.drafters; d++)
        accept[d] = q->accept[dsc_drafter_number(from, j->info.drafter[d].name)];
    memcpy(q->accept, accept, sizeof accept);
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        if (!j->info.rows[side])
            q->rows[side] = (dsc_rows){0};
}

static int rename_request(joiner *j, dsc_request_input *q, dsc_error *err)
{
    j->id.length = 0;
    int rc = dsc_buffer_printf(&j->id, err, "%zu/", j->source + 1);
    if (!rc)
        rc = dsc_buffer_append(&j->id, q->id.bytes, (size_t)q->id.length, err);
    q->id = (dsc_text_view){j->id.data, (int64_t)j->id.length};
    return rc;
}

// The trace that a request of the writer came from.
static const char *origin(const joiner *j, int64_t request)
{
    size_t i = 0;
    while (i + 1 < j->count && request >= j->trace[i]->info.requests)
        request -= j->trace[i++]->info.requests;
    return j->trace[i]->path;
}

static int check_id(const joiner *j, dsc_text_view id, dsc_error *err)
{
    int64_t taken = dsc_trace_writer_find(j->writer, id);
    if (taken < 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE, "%s and %s both have a request '%.*s'%s", origin(j, taken),
                    j->trace[j->source]->path, (int)(id.length < 100 ? id.length : 100), id.bytes,
                    j->o->rename ? "" : " (--rename prefixes ids with the number of the trace)");
}

static int report(joiner *j, dsc_error *err)
{
    if (j->o->progress && j->o->progress(j->o->user, j->done, j->total))
        return dsc_fail(err, DSC_EINTERRUPT,
                        "interrupted after %" PRId64 " requests; nothing was written", j->done);
    return DSC_OK;
}

static int copy_request(void *joiner_, const dsc_request *q, dsc_error *err)
{
    joiner *j = joiner_;
    const dsc_trace *from = j->trace[j->source];
    dsc_request_input in;
    int rc = dsc_request_copy_view(&j->copy, q, &in, err);
    if (!rc)
        fit(j, &from->info, &in);
    if (!rc && j->o->rename)
        rc = rename_request(j, &in, err);
    if (!rc)
        rc = check_id(j, in.id, err);
    if (!rc)
        rc = dsc_trace_writer_add(j->writer, &in, err);
    if (rc == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%s", from->path);
    j->done++;
    return rc ? rc : report(j, err);
}

// --- provenance --------------------------------------------------------------------------------

static int describe(json_t **out, const dsc_trace *t, dsc_error *err)
{
    const char *slash = strrchr(t->path, '/');
    json_t *provenance;
    *out = NULL;
    int rc = dsc_trace_provenance(&provenance, &t->info, err);
    if (rc)
        return rc;
    *out = json_pack("{s:o, s:s, s:I, s:o}", "trace", dsc_json_text(slash ? slash + 1 : t->path),
                     "hash", t->info.hash, "requests", (json_int_t)t->info.requests, "provenance",
                     provenance);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
}

int dsc_join_provenance(char **out, dsc_trace *const *trace, size_t count,
                        const dsc_join_options *o, dsc_error *err)
{
    int rc = DSC_OK;
    json_t *sources = json_array();
    *out = NULL;
    for (size_t i = 0; i < count && !rc; i++) {
        json_t *source;
        rc = describe(&source, trace[i], err);
        if (!rc && json_array_append_new(sources, source))
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
    }
    if (rc) {
        json_decref(sources);
        return rc;
    }
    json_t *j = json_pack("{s:o, s:o, s:o}", "version", dsc_json_text(o->version), "command",
                          dsc_json_text(o->command), "sources", sources);
    *out = j ? dsc_json_dump(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
}

// --- merge and append --------------------------------------------------------------------------

int dsc_join_check_names(const dsc_trace *t, const char *out, dsc_error *err)
{
    static const char *const ends[] = {".tmp", ".old"};
    struct stat a, b;
    size_t n = strlen(out);
    int rc = DSC_OK;
    while (n > 1 && out[n - 1] == '/')
        n--;
    for (size_t i = 0; i < 2 && !rc; i++) {
        dsc_buffer name = {0};
        rc = dsc_buffer_printf(&name, err, "%.*s%s", (int)n, out, ends[i]);
        if (!rc && !stat(t->path, &a) && !stat(name.data, &b) && a.st_ino == b.st_ino &&
            a.st_dev == b.st_dev)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "writing %.*s would remove its source %s; choose another name", (int)n,
                          out, t->path);
        dsc_buffer_fini(&name);
    }
    return rc;
}

static int open_sources(joiner *j, const char *path, const char *const *paths, dsc_error *err)
{
    int rc = j->count > j->first ? dsc_new(&j->trace, j->count, err)
                                 : dsc_fail(err, DSC_EUSAGE, "no traces were given");
    if (rc)
        return rc;
    for (size_t i = 0; i < j->count && !rc; i++) {
        rc = dsc_trace_open(&j->trace[i], i < j->first ? path : paths[i - j->first], err);
        if (!rc && i >= j->first)
            j->total += j->trace[i]->info.requests;
    }
    if (!rc)
        j->info = j->trace[0]->info;
    return rc;
}

// Copies the requests, commits and frees everything. The writer is open unless rc is an error.
static int finish(joiner *j, int rc, dsc_error *err)
{
    char *provenance = NULL;
    for (j->source = j->first; j->source < j->count && !rc; j->source++)
        rc = dsc_trace_each(j->trace[j->source], copy_request, j, err);
    if (!rc)
        rc = dsc_join_provenance(&provenance, j->trace + j->first, j->count - j->first, j->o, err);
    if (!rc) {
        rc = dsc_trace_writer_commit(j->writer, provenance, err);
        j->writer = NULL;
    }
    dsc_trace_writer_abort(j->writer);
    for (size_t i = 0; j->trace && i < j->count; i++)
        dsc_trace_close(j->trace[i]);
    free(j->trace);
    free(provenance);
    dsc_buffer_fini(&j->id);
    dsc_request_copy_fini(&j->copy);
    return rc;
}

int dsc_trace_merge(const char *const *paths, size_t count, const char *out,
                    const dsc_join_options *o, dsc_error *err)
{
    joiner j = {.o = o, .count = count};
    int rc = open_sources(&j, NULL, paths, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = dsc_join_check_names(j.trace[i], out, err);
    if (!rc)
        rc = settle_merge(&j, err);
    if (!rc) {
        j.info.provenance = NULL;
        rc = dsc_trace_writer_open(&j.writer, out, &j.info, o->force, o->shard_tokens, err);
    }
    if (!rc)
        note_left_out(&j, j.trace, count, &j.info);
    return finish(&j, rc, err);
}

int dsc_trace_append(const char *path, const char *const *paths, size_t count,
                     const dsc_join_options *o, dsc_error *err)
{
    joiner j = {.o = o, .count = count + 1, .first = 1};
    int rc = open_sources(&j, path, paths, err);
    if (!rc)
        rc = settle_append(&j, err);
    if (!rc)
        rc = dsc_trace_writer_append(&j.writer, path, &j.info, o->shard_tokens, err);
    for (size_t i = 1; i <= count && !rc; i++)
        note_left_out(&j, (dsc_trace *[]){j.trace[0], j.trace[i]}, 2, &j.info);
    return finish(&j, rc, err);
}

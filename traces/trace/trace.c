// SPDX-License-Identifier: Apache-2.0
// Reads the manifest of a trace (draftscope-trace(5)): checks type and range of every field, the
// sums over the shards and both hashes. An error names the first field that is wrong.
#include "traces/trace/trace.h"

#include "base/file.h"
#include "base/json_file.h"
#include "base/json_text.h"
#include "traces/trace/trace_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Reads the manifest field by field. The first failure stays; after it every getter returns zero,
// "" or NULL, so that callers check rc once.
typedef struct reader {
    const char *path; // path of the manifest
    char where[40];   // prefix of field names: "", "totals.", "shards[3]."
    dsc_error *err;
    int rc;
} reader;

static void refuse(reader *r, const char *key, const char *format, ...) DSC_PRINTF(3, 4);

static void refuse(reader *r, const char *key, const char *format, ...)
{
    if (r->rc)
        return;
    char detail[300];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    r->rc = dsc_fail(r->err, DSC_EINPUT, "%s: field \"%s%s\": %s", r->path, r->where, key, detail);
}

static const json_t *get(reader *r, const json_t *object, const char *key, json_type type,
                         const char *type_name)
{
    const json_t *value = json_object_get(object, key);
    if (value && json_typeof(value) == type)
        return value;
    refuse(r, key, value ? "must be %s" : "missing; it must be %s", type_name);
    return NULL;
}

static int64_t get_integer(reader *r, const json_t *object, const char *key, int64_t low,
                           int64_t high)
{
    const json_t *value = get(r, object, key, JSON_INTEGER, "an integer");
    if (!value)
        return 0;
    int64_t n = json_integer_value(value);
    if (n >= low && n <= high)
        return n;
    refuse(r, key, "%" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", n, low, high);
    return 0;
}

static int64_t get_count(reader *r, const json_t *object, const char *key)
{
    return get_integer(r, object, key, 0, INT64_MAX);
}

// *out is an allocated copy.
static void get_string(reader *r, const json_t *object, const char *key, const char **out)
{
    const json_t *value = get(r, object, key, JSON_STRING, "a string");
    char *copy = NULL;
    if (value && !r->rc)
        r->rc = dsc_strndup(&copy, json_string_value(value), json_string_length(value), r->err);
    *out = copy;
}

// 64 lower-case hex digits, or also "" when `unknown_allowed`.
static void get_sha256(reader *r, const json_t *object, const char *key, bool unknown_allowed,
                       char out[DSC_SHA256_HEX])
{
    const json_t *value = get(r, object, key, JSON_STRING, "a string");
    if (!value)
        return;
    const char *s = json_string_value(value);
    size_t n = strlen(s);
    if ((n != DSC_SHA256_HEX - 1 || strspn(s, "0123456789abcdef") != n) &&
        !(n == 0 && unknown_allowed)) {
        refuse(r, key, "must be a SHA-256 (64 lower-case hex digits)");
        return;
    }
    memcpy(out, s, n + 1);
}

static void read_origin(reader *r, const json_t *root, dsc_trace_info *info)
{
    const json_t *tokenizer = get(r, root, "tokenizer", JSON_OBJECT, "an object");
    const json_t *source = get(r, root, "source", JSON_OBJECT, "an object");
    const json_t *provenance = get(r, root, "provenance", JSON_OBJECT, "an object");
    strcpy(r->where, "tokenizer.");
    get_string(r, tokenizer, "name", &info->tokenizer_name);
    info->vocab_size = (int32_t)get_integer(r, tokenizer, "vocab_size", 1, INT32_MAX);
    info->eos_token = (int32_t)get_integer(r, tokenizer, "eos", -1, info->vocab_size - 1);
    get_sha256(r, tokenizer, "sha256", true, info->tokenizer_sha256);
    strcpy(r->where, "source.");
    get_string(r, source, "format", &info->format);
    get_string(r, source, "semantics", &info->semantics);
    strcpy(r->where, "");
    if (r->rc)
        return;
    info->provenance = dsc_json_dump(provenance, JSON_COMPACT);
    if (!info->provenance)
        r->rc = dsc_fail(r->err, DSC_ENOMEM, "out of memory");
}

// Unknown names are fields of a newer version; they are ignored.
static void read_recorded(reader *r, const json_t *root, dsc_trace_info *info)
{
    const json_t *list = get(r, root, "recorded", JSON_ARRAY, "an array"), *value;
    bool tokens = false;
    for (size_t i = 0; (value = json_array_get(list, i)); i++) {
        const char *s = json_string_value(value);
        unsigned kind;
        if (!s) {
            refuse(r, "recorded", "element %zu must be a string", i);
            return;
        }
        dsc_field field = dsc_field_find(s, &kind);
        if (field == DSC_FIELDS)
            continue;
        tokens |= field == FIELD_TOKENS;
        unsigned before = field == FIELD_TOKENS ? kind : dsc_field_kind(info, field);
        if (before && before != kind)
            refuse(r, "recorded", "lists both \"%s\" and \"%s\"", s, dsc_field_name(field, before));
        dsc_field_set(info, field, kind);
    }
    if (!tokens)
        refuse(r, "recorded", "does not list \"tokens\"");
    if (!info->steps &&
        (info->has_step_drafted || info->has_step_draft_s || info->has_step_verify_s))
        refuse(r, "recorded", "lists drafted tokens or times of steps without \"steps\"");
}

static void read_drafters(reader *r, const json_t *o, dsc_trace_info *info)
{
    json_t *accept = (json_t *)(uintptr_t)get(r, o, "accept", JSON_OBJECT, "an object");
    size_t n = json_object_size(accept);
    strcpy(r->where, "parameters.accept.");
    info->drafters = 0;
    if (accept && (n < 1 || n > DSC_DRAFTERS_MAX))
        refuse(r, "", "%zu drafters, must be 1 to %d", n, DSC_DRAFTERS_MAX);
    for (void *at = json_object_iter(accept); at && !r->rc;
         at = json_object_iter_next(accept, at)) {
        const char *name = json_object_iter_key(at);
        dsc_drafter_record *d = &info->drafter[info->drafters];
        if (!dsc_drafter_name_valid(name)) {
            refuse(r, name, "a drafter's name must be 1 to %d letters, digits and _.+-",
                   DSC_DRAFTER_NAME_BYTES - 1);
            return;
        }
        strcpy(d->name, name);
        d->cap = (int32_t)get_integer(r, accept, name, 1, UINT16_MAX);
        info->drafters++;
    }
}

static void read_parameters(reader *r, const json_t *root, dsc_trace_info *info)
{
    bool needed[DSC_PARAMETERS], any = info->drafters > 0;
    for (int p = 0; p < DSC_PARAMETERS; p++)
        any |= needed[p] = dsc_parameter_needed(info, p);
    if (!any || r->rc)
        return;
    const json_t *o = get(r, root, "parameters", JSON_OBJECT, "an object");
    strcpy(r->where, "parameters.");
    for (int p = 0; p < DSC_PARAMETERS && o; p++)
        if (needed[p])
            *dsc_parameter_of(info, p) =
                (int32_t)get_integer(r, o, dsc_parameters[p].name, 1, dsc_parameters[p].largest);
    if (info->drafters && o)
        read_drafters(r, o, info);
    strcpy(r->where, "");
}

static void read_shard(reader *r, const json_t *o, size_t index, dsc_shard_entry *e)
{
    char name[48];
    snprintf(r->where, sizeof r->where, "shards[%zu].", index);
    snprintf(name, sizeof name, "shard-%05zu.safetensors", index);
    const char *file = json_string_value(get(r, o, "file", JSON_STRING, "a string"));
    if (file && strcmp(file, name) != 0)
        refuse(r, "file", "'%.100s', expected '%s'", file, name);
    e->requests = get_count(r, o, "requests");
    e->prompt_tokens = get_count(r, o, "prompt_tokens");
    e->output_tokens = get_count(r, o, "output_tokens");
    e->reference_tokens = get_count(r, o, "reference_tokens");
    e->references = get_count(r, o, "references");
    e->bytes = get_count(r, o, "bytes");
    get_sha256(r, o, "sha256", false, e->sha256);
    strcpy(r->where, "");
}

static void read_shards(reader *r, const json_t *root, dsc_trace *t)
{
    const json_t *list = get(r, root, "shards", JSON_ARRAY, "an array");
    if (!r->rc)
        r->rc = dsc_new(&t->shard, json_array_size(list), r->err);
    if (r->rc)
        return;
    t->shards = json_array_size(list);
    for (size_t i = 0; i < t->shards && !r->rc; i++) {
        const json_t *o = json_array_get(list, i);
        if (json_is_object(o))
            read_shard(r, o, i, &t->shard[i]);
        else
            refuse(r, "shards", "element %zu must be an object", i);
    }
}

// Reads one total and compares it with the sum over the shards of the member at `offset`.
static void read_total(reader *r, const json_t *totals, const char *key, const dsc_trace *t,
                       size_t offset, int64_t *out)
{
    int64_t sum = 0;
    *out = get_count(r, totals, key);
    for (size_t i = 0; i < t->shards; i++) {
        int64_t part = *(const int64_t *)(const void *)((const char *)&t->shard[i] + offset);
        if (__builtin_add_overflow(sum, part, &sum)) {
            refuse(r, key, "the sum over the shards overflows");
            return;
        }
    }
    if (*out != sum)
        refuse(r, key, "%" PRId64 ", but the shards sum to %" PRId64, *out, sum);
}

static void read_totals(reader *r, const json_t *root, dsc_trace *t)
{
    const json_t *o = get(r, root, "totals", JSON_OBJECT, "an object");
    dsc_trace_info *info = &t->info;
    strcpy(r->where, "totals.");
    read_total(r, o, "requests", t, offsetof(dsc_shard_entry, requests), &info->requests);
    read_total(r, o, "prompt_tokens", t, offsetof(dsc_shard_entry, prompt_tokens),
               &info->prompt_tokens);
    read_total(r, o, "output_tokens", t, offsetof(dsc_shard_entry, output_tokens),
               &info->output_tokens);
    read_total(r, o, "reference_tokens", t, offsetof(dsc_shard_entry, reference_tokens),
               &info->reference_tokens);
    read_total(r, o, "references", t, offsetof(dsc_shard_entry, references), &info->references);
    info->max_prompt_tokens = get_integer(r, o, "max_prompt_tokens", 0, info->prompt_tokens);
    info->max_output_tokens = get_integer(r, o, "max_output_tokens", 0, info->output_tokens);
    strcpy(r->where, "");
    for (size_t i = 1; i < t->shards && !r->rc; i++) // cannot overflow: the sum did not
        t->shard[i].first_request = t->shard[i - 1].first_request + t->shard[i - 1].requests;
}

// Checks both hashes, after all fields: the name of a wrong field is the better message.
static void read_hashes(reader *r, const json_t *root, dsc_trace *t)
{
    char stored[DSC_SHA256_HEX] = "", computed[DSC_SHA256_HEX];
    get_sha256(r, root, "hash", false, t->info.hash);
    dsc_trace_hash(t->shard, t->shards, computed);
    if (!r->rc && strcmp(t->info.hash, computed) != 0)
        refuse(r, "hash", "does not match the hashes of the shards: the manifest was changed");
    get_sha256(r, root, "manifest_sha256", false, stored);
    if (!r->rc)
        r->rc = dsc_manifest_seal(root, computed, r->err);
    if (!r->rc && strcmp(stored, computed) != 0)
        refuse(r, "manifest_sha256", "does not match the other fields: the manifest was changed");
}

static int read_manifest(dsc_trace *t, const char *path, dsc_error *err)
{
    json_t *root;
    int rc = dsc_check_regular(path, err);
    if (!rc)
        rc = dsc_json_file(&root, path, DSC_MANIFEST_MAX, err);
    if (rc)
        return rc;
    reader r = {.path = path, .err = err};
    if (!json_is_object(root))
        r.rc = dsc_fail(err, DSC_EINPUT, "%s: not a JSON object", path);
    int64_t schema = get_integer(&r, root, "schema", 1, INT64_MAX);
    if (!r.rc && schema != DSC_TRACE_SCHEMA)
        refuse(&r, "schema", "version %" PRId64 "; this program reads version %d", schema,
               DSC_TRACE_SCHEMA);
    read_origin(&r, root, &t->info);
    read_recorded(&r, root, &t->info);
    read_parameters(&r, root, &t->info);
    read_shards(&r, root, t);
    read_totals(&r, root, t);
    read_hashes(&r, root, t);
    json_decref(root);
    return r.rc;
}

// A file in place of the folder is the most common mistake: a source that was not imported.
static int check_folder(const char *path, dsc_error *err)
{
    struct stat st;
    if (stat(path, &st) || S_ISDIR(st.st_mode))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s is not a trace. Import it first: draftscope trace import %s -o NAME.dst; a "
                    "table of totals is given as --acceptance %s",
                    path, path, path);
}

int dsc_trace_open(dsc_trace **out, const char *path, dsc_error *err)
{
    dsc_trace *t;
    char *manifest = NULL;
    if (out)
        *out = NULL;
    if (!out || !path)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_open: 'out' and 'path' must not be NULL");
    int rc = dsc_new(&t, 1, err);
    if (rc)
        return rc;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    rc = dsc_strndup(&t->path, path, n, err);
    if (!rc)
        rc = check_folder(t->path, err);
    if (!rc)
        rc = dsc_trace_manifest_path(&manifest, t->path, err);
    if (!rc)
        rc = read_manifest(t, manifest, err);
    free(manifest);
    if (rc)
        dsc_trace_close(t);
    else
        *out = t;
    return rc;
}

void dsc_trace_close(dsc_trace *t)
{
    if (!t)
        return;
    dsc_trace_info_fini(&t->info);
    free(t->shard);
    free(t->path);
    free(t);
}

const dsc_trace_info *dsc_trace_get_info(const dsc_trace *t)
{
    return t ? &t->info : NULL;
}

const char *dsc_trace_path(const dsc_trace *t)
{
    return t ? t->path : NULL;
}

int64_t dsc_trace_shards(const dsc_trace *t)
{
    return t ? (int64_t)t->shards : 0;
}

int64_t dsc_trace_first_request(const dsc_trace *t, int64_t s)
{
    if (!t || s < 0)
        return 0;
    return s < dsc_trace_shards(t) ? t->shard[s].first_request : t->info.requests;
}

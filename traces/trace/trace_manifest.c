// SPDX-License-Identifier: Apache-2.0
// Writes the manifest of a trace (draftscope-trace(5)): the names of its files, its two hashes and
// its JSON form.
#include "base/json_text.h"
#include "base/outfile.h"
#include "traces/trace/trace_manifest.h"
#include "traces/trace/trace_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dsc_trace_shard_path(char **out, const char *folder, size_t shard, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s/shard-%05zu.safetensors", folder, shard);
    *out = b.data;
    return rc;
}

int dsc_trace_manifest_path(char **out, const char *folder, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s/manifest.json", folder);
    *out = b.data;
    return rc;
}

void dsc_trace_hash(const dsc_shard_entry *shard, size_t shards, char hex[DSC_SHA256_HEX])
{
    dsc_sha256 state;
    dsc_sha256_init(&state);
    for (size_t i = 0; i < shards; i++) {
        dsc_sha256_update(&state, shard[i].sha256, DSC_SHA256_HEX - 1);
        dsc_sha256_update(&state, "\n", 1);
    }
    dsc_sha256_final(&state, hex);
}

int dsc_manifest_seal(const json_t *manifest, char hex[DSC_SHA256_HEX], dsc_error *err)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)manifest); // shallow; does not change its source
    const bool whole = json_object_size(rest) == json_object_size(manifest); // json_copy omits
    json_object_del(rest, "manifest_sha256"); // members that it has no memory for
    char *text = whole ? dsc_json_dump(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    if (!text)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    dsc_sha256 state;
    dsc_sha256_init(&state);
    dsc_sha256_update(&state, text, strlen(text));
    dsc_sha256_final(&state, hex);
    free(text);
    return DSC_OK;
}

// Sets object[key] = value, a stolen reference. A NULL value or a failure sets *failed, which
// callers check once.
static void set(json_t *object, const char *key, json_t *value, bool *failed)
{
    *failed |= json_object_set_new(object, key, value) != 0;
}

static json_t *recorded(const dsc_trace_info *info, bool *failed)
{
    json_t *list = json_array();
    const char *name;
    for (int i = 0; (name = dsc_trace_recorded(info, i)); i++)
        *failed |= json_array_append_new(list, json_string(name)) != 0;
    return list;
}

static json_t *parameters(const dsc_trace_info *info, bool *failed)
{
    json_t *o = json_object();
    for (int p = 0; p < DSC_PARAMETERS; p++)
        if (dsc_parameter_needed(info, p))
            set(o, dsc_parameters[p].name, json_integer(dsc_parameter_value(info, p)), failed);
    if (!info->drafters)
        return o;
    json_t *accept = json_object();
    for (int i = 0; i < info->drafters; i++)
        set(accept, info->drafter[i].name, json_integer(info->drafter[i].cap), failed);
    set(o, "accept", accept, failed);
    return o;
}

int dsc_trace_parameters(char **out, const dsc_trace_info *info, dsc_error *err)
{
    bool failed = false;
    if (out)
        *out = NULL;
    if (!out || !info)
        return dsc_fail(err, DSC_EUSAGE, "dsc_trace_parameters: 'out' and 'info' must not be NULL");
    json_t *o = parameters(info, &failed);
    *out = failed ? NULL : dsc_json_dump(o, JSON_COMPACT);
    json_decref(o);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
}

static json_t *totals(const dsc_trace_info *info, bool *failed)
{
    json_t *o = json_object();
    set(o, "requests", json_integer(info->requests), failed);
    set(o, "prompt_tokens", json_integer(info->prompt_tokens), failed);
    set(o, "output_tokens", json_integer(info->output_tokens), failed);
    set(o, "reference_tokens", json_integer(info->reference_tokens), failed);
    set(o, "references", json_integer(info->references), failed);
    set(o, "max_prompt_tokens", json_integer(info->max_prompt_tokens), failed);
    set(o, "max_output_tokens", json_integer(info->max_output_tokens), failed);
    return o;
}

static json_t *shard_list(const dsc_shard_entry *shard, size_t shards, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < shards; i++) {
        json_t *o = json_object();
        char file[48];
        snprintf(file, sizeof file, "shard-%05zu.safetensors", i);
        set(o, "file", json_string(file), failed);
        set(o, "requests", json_integer(shard[i].requests), failed);
        set(o, "prompt_tokens", json_integer(shard[i].prompt_tokens), failed);
        set(o, "output_tokens", json_integer(shard[i].output_tokens), failed);
        set(o, "reference_tokens", json_integer(shard[i].reference_tokens), failed);
        set(o, "references", json_integer(shard[i].references), failed);
        set(o, "bytes", json_integer(shard[i].bytes), failed);
        set(o, "sha256", json_string(shard[i].sha256), failed);
        *failed |= json_array_append_new(list, o) != 0;
    }
    return list;
}

int dsc_manifest_make(json_t **out, const dsc_trace_info *info, const dsc_shard_entry *shard,
                      size_t shards, dsc_error *err)
{
    bool failed = false;
    json_t *root =
        json_pack("{s:i, s:{s:s, s:i, s:s, s:i}, s:{s:s, s:s}}", "schema", DSC_TRACE_SCHEMA,
                  "tokenizer", "name", info->tokenizer_name, "vocab_size", (int)info->vocab_size,
                  "sha256", info->tokenizer_sha256, "eos", (int)info->eos_token, "source", "format",
                  info->format, "semantics", info->semantics);
    *out = NULL;
    set(root, "recorded", recorded(info, &failed), &failed);
    json_t *o = parameters(info, &failed);
    if (json_object_size(o))
        set(root, "parameters", json_incref(o), &failed);
    json_decref(o);
    set(root, "totals", totals(info, &failed), &failed);
    set(root, "shards", shard_list(shard, shards, &failed), &failed);
    set(root, "hash", json_string(info->hash), &failed);
    json_t *provenance;
    failed |= dsc_trace_provenance(&provenance, info, err) != DSC_OK;
    set(root, "provenance", provenance, &failed);
    char seal[DSC_SHA256_HEX];
    int rc = failed ? dsc_fail(err, DSC_ENOMEM, "out of memory for the manifest")
                    : dsc_manifest_seal(root, seal, err);
    if (!rc) {
        set(root, "manifest_sha256", json_string(seal), &failed);
        if (failed)
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory for the manifest");
    }
    if (rc)
        json_decref(root);
    else
        *out = root;
    return rc;
}

int dsc_manifest_write(const json_t *manifest, const char *folder, bool replace, dsc_error *err)
{
    char *path = NULL, *text = dsc_json_dump(manifest, JSON_INDENT(1));
    dsc_outfile f = {0};
    int rc = text ? dsc_trace_manifest_path(&path, folder, err)
                  : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc && strlen(text) >= DSC_MANIFEST_MAX)
        rc =
            dsc_fail(err, DSC_EUSAGE,
                     "%s: the manifest would have %zu bytes, more than the limit of %d; use larger "
                     "shards",
                     path, strlen(text), DSC_MANIFEST_MAX);
    if (!rc)
        rc = dsc_outfile_open(&f, path, replace, err);
    if (!rc && (fputs(text, f.stream) == EOF || fputc('\n', f.stream) == EOF))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", path);
    if (!rc)
        rc = dsc_outfile_commit(&f, err);
    dsc_outfile_abort(&f);
    free(path);
    free(text);
    return rc;
}

void dsc_trace_info_fini(dsc_trace_info *info)
{
    free((char *)info->tokenizer_name);
    free((char *)info->format);
    free((char *)info->semantics);
    free((char *)info->provenance);
    *info = (dsc_trace_info){0};
}

// SPDX-License-Identifier: Apache-2.0
// The list of import drivers, the choice of the one that matches a line best, and the message about
// a line that none matches.
#include "traces/import/import_path.h"

#include <string.h>

static const dsc_import_driver *const drivers[] = {
    &dsc_import_llma,   &dsc_import_specbench, &dsc_import_mtbench,  &dsc_import_eagle,
    &dsc_import_alpaca, &dsc_import_acclen,    &dsc_import_vllm,     &dsc_import_stream,
    &dsc_import_bench,  &dsc_import_vcr,       &dsc_import_llamacpp, &dsc_import_chats,
    &dsc_import_pairs,  &dsc_import_jsonl,     &dsc_import_mapped,   NULL};

const dsc_import_driver *const *dsc_import_drivers(void)
{
    return drivers;
}

// --- lines that no driver matches ----------------------------------------------------------------

enum { FIELDS_BYTES = 200 };

// Counts the fields of a driver that a line has, and lists the others.
static int count_needs(const dsc_import_driver *d, const json_t *line, char lacks[FIELDS_BYTES])
{
    char name[64];
    int found = 0, length;
    size_t n = 0;
    *lacks = '\0';
    for (const char *at = d->needs; at && sscanf(at, "%63s%n", name, &length) == 1; at += length)
        if (json_object_get(line, name))
            found++;
        else if (n < FIELDS_BYTES)
            n += (size_t)snprintf(lacks + n, FIELDS_BYTES - n, "%s'%s'", n ? ", " : "", name);
    return found;
}

// The first of the usual names of a field that the line has, with a text or token ids.
static const char *guess(const json_t *line, const char *const *names)
{
    for (; *names; names++) {
        const json_t *v = json_object_get(line, *names);
        if (json_is_string(v) || json_is_integer(json_array_get(v, 0)))
            return *names;
    }
    return NULL;
}

static int guess_map(const json_t *line, dsc_error *err)
{
    static const char *const prompts[] = {"prompt", "question", "instruction", "query",
                                          "input",  "request",  "user_input",  "context",
                                          "text",   "source",   NULL};
    static const char *const outputs[] = {
        "output",     "answer",         "response",   "completion",
        "result",     "generated_text", "generation", "canonical_solution",
        "prediction", "target",         "reply",      "summary",
        NULL};
    const char *prompt = guess(line, prompts), *output = guess(line, outputs);
    if (!prompt || !output)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "unrecognized format; the nearest is mapped: add --map prompt=%s,output=%s",
                    prompt, output);
}

static int list_fields(const json_t *line, dsc_error *err)
{
    char fields[FIELDS_BYTES] = "";
    size_t n = 0;
    json_t *o = (json_t *)(uintptr_t)line; // Jansson's iterators take no const; nothing changes
    for (void *at = json_object_iter(o); at && n < FIELDS_BYTES; at = json_object_iter_next(o, at))
        n += (size_t)snprintf(fields + n, FIELDS_BYTES - n, "%s'%.60s'", n ? ", " : "",
                              json_object_iter_key(at));
    return dsc_fail(err, DSC_EINPUT,
                    "unrecognized format; name the fields of prompt and output: --map "
                    "prompt=FIELD,output=FIELD. The line has %s%s",
                    *fields ? fields : "no fields", n >= FIELDS_BYTES ? ", ..." : "");
}

static int unrecognized(const json_t *line, dsc_error *err)
{
    char lacks[FIELDS_BYTES], best_lacks[FIELDS_BYTES] = "";
    const dsc_import_driver *best = NULL;
    int most = 0;
    if (!json_is_object(line))
        return dsc_fail(err, DSC_EINPUT,
                        "unrecognized format; every line must be a JSON object "
                        "(draftscope list formats)");
    int rc = guess_map(line, err);
    for (const dsc_import_driver *const *d = drivers; *d && !rc; d++) {
        const int found = count_needs(*d, line, lacks);
        if (found > most) {
            most = found;
            best = *d;
            memcpy(best_lacks, lacks, sizeof lacks);
        }
    }
    if (rc || !best || !*best_lacks)
        return rc ? rc : list_fields(line, err);
    return dsc_fail(
        err, DSC_EINPUT,
        "unrecognized format; the nearest is %s, but the line lacks %s (or name fields: "
        "--map prompt=FIELD,output=FIELD)",
        best->name, best_lacks);
}

int dsc_import_probe(const dsc_import_driver **out, const json_t *line, dsc_error *err)
{
    int best = 0;
    for (const dsc_import_driver *const *d = drivers; *d; d++) {
        int score = (*d)->probe(line);
        if (score > best) {
            best = score;
            *out = *d;
        }
    }
    // A single field of a format may be any program's; names of fields that fit are better then.
    if (best > 1 || (best == 1 && guess_map(line, NULL) == DSC_OK))
        return DSC_OK;
    return unrecognized(line, err);
}

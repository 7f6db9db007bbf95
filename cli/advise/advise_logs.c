// SPDX-License-Identifier: Apache-2.0
// Imports the logs of draftscope advise once. The trace is used again while the files and the
// tokenizer have the hashes that it records.
#include "base/sha256.h"
#include "cli/advise/advise.h"
#include "cli/trace/trace.h"
#include "traces/import/totals.h"
#include "traces/trace/trace_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Returns whether the trace's provenance lists these files, by content and in this order, and the
// same options of reading them.
static bool lists_files(const json_t *origin, const dsc_import_options *how,
                        const char (*hex)[DSC_SHA256_HEX], size_t count)
{
    json_t *wanted = dsc_import_reading(how);
    const json_t *source = json_object_get(origin, "sources");
    const json_t *reading = json_object_get(origin, "reading");
    bool same = json_array_size(source) == count &&
                (reading ? json_equal(reading, wanted) : json_object_size(wanted) == 0);
    for (size_t i = 0; i < count && same; i++) {
        const char *recorded =
            json_string_value(json_object_get(json_array_get(source, i), "sha256"));
        same = recorded && strcmp(recorded, hex[i]) == 0;
    }
    json_decref(wanted);
    return same;
}

// *same: the cache was made of these files with this tokenizer.
static int compare_cache(const dsc_trace *t, const cli_advise_logs *logs, bool *same,
                         dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(t);
    const bool file = logs->tokenizer && strcmp(logs->tokenizer, "bytes") != 0;
    // The questions of specbench and the like are a source like the others.
    const size_t count = logs->paths + (logs->questions != NULL);
    char(*hex)[DSC_SHA256_HEX], tokenizer[DSC_SHA256_HEX] = "";
    dsc_import_options how = {0};
    json_t *origin = NULL;
    dsc_buffer path = {0};
    cli_trace_logs(&how, logs->how, NULL);
    int rc = dsc_new(&hex, count, err);
    if (!rc && file)
        rc = dsc_tokenizer_path(&path, logs->tokenizer, err);
    rc = rc ?: dsc_sha256_files(logs->path, logs->paths, hex, err);
    if (!rc && logs->questions)
        rc = dsc_sha256_file(logs->questions, hex[logs->paths], err);
    if (!rc && file)
        rc = dsc_sha256_file(path.data, tokenizer, err);
    rc = rc ?: dsc_trace_provenance(&origin, info, err);
    *same = !rc && lists_files(origin, &how, (const char(*)[DSC_SHA256_HEX])hex, count) &&
            (!file || !strcmp(tokenizer, info->tokenizer_sha256)) &&
            (file || !logs->tokenizer || !strcmp(info->tokenizer_name, "bytes"));
    json_decref(origin);
    dsc_buffer_fini(&path);
    free(hex);
    return rc;
}

static int import(const cli_advise_logs *logs, dsc_error *err)
{
    cli_progress progress;
    dsc_tokenizer *tokenizer = NULL;
    dsc_import_options o = {.format = logs->format,
                            .semantics = "paper",
                            .questions = logs->questions,
                            .vocab_size = logs->vocab_size,
                            .force = logs->force,
                            .threads = logs->threads,
                            .version = PACKAGE_VERSION,
                            .command = cli_command_line(),
                            .progress = cli_progress_step,
                            .note = cli_trace_note,
                            .user = &progress};
    const dsc_totals_driver *totals = NULL;
    int rc = logs->format ? DSC_OK : dsc_totals_probe(&totals, logs->path[0], err);
    if (!rc && totals)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: totals in the format %s contain no tokens to replay. draftscope trace "
                      "import makes a table of them, TOTALS.tsv; then draftscope serve TOTALS.tsv "
                      "answers which load pays, tune or theory length --acceptance TOTALS.tsv "
                      "which draft length",
                      logs->path[0], totals->name);
    cli_trace_logs(&o, logs->how, logs->tokenizer);
    if (!rc && logs->tokenizer)
        rc = dsc_tokenizer_load(&tokenizer, logs->tokenizer, err);
    cli_progress_init(&progress, logs->progress, "bytes");
    rc = rc ?: dsc_import(logs->path, logs->paths, tokenizer, logs->cache, &o, NULL, err);
    cli_progress_end(&progress);
    dsc_tokenizer_free(tokenizer);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int cli_advise_open(dsc_trace **out, const cli_advise_logs *logs, dsc_error *err)
{
    bool same = false;
    *out = NULL;
    if (logs->paths == 1 && is_folder(logs->path[0]))
        return dsc_trace_open(out, logs->path[0], err);
    int rc = DSC_OK;
    if (is_folder(logs->cache)) {
        rc = dsc_trace_open(out, logs->cache, err);
        rc = rc ?: compare_cache(*out, logs, &same, err);
        if (!rc && same)
            return DSC_OK;
        dsc_trace_close(*out);
        *out = NULL;
        if (!rc && !logs->force)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "%s was made of other files (--force replaces it, -o takes another name)",
                          logs->cache);
    }
    rc = rc ?: import(logs, err);
    return rc ? rc : dsc_trace_open(out, logs->cache, err);
}

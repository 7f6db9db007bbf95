// SPDX-License-Identifier: Apache-2.0
// Parses a line as JSON, with a fast parser for common lines and Jansson for the others, whose
// messages give line and column.
#include "base/json_file.h"
#include "base/json_quick.h"
#include "traces/import/import_record.h"
#include "traces/import/import_source.h"

#include <string.h>
#include <sys/stat.h>

// A value takes up to 120 bytes of memory, but "[],[],[]," only three bytes in the file.
enum { VALUES_MAX = 4 << 20 };

static int check_size(const dsc_line *line, const char *name, dsc_error *err)
{
    size_t values = 1;
    bool in_string = false;
    for (size_t i = 0; i < line->length; i++) {
        char c = line->bytes[i];
        if (c == '"')
            in_string = !in_string;
        else if (in_string)
            i += c == '\\';
        else
            values += c == ',' || c == '[' || c == '{';
    }
    if (values > VALUES_MAX)
        return dsc_fail(err, DSC_EINPUT, "%s:%lld: the line has more than the limit of %d values",
                        name, (long long)line->number, VALUES_MAX);
    return DSC_OK;
}

int dsc_import_parse(json_t **out, const dsc_line *line, const char *name, dsc_error *err)
{
    *out = dsc_json_quick(line->bytes, line->length, VALUES_MAX);
    if (*out)
        return DSC_OK;
    int rc = check_size(line, name, err);
    if (rc)
        return rc;
    json_error_t e;
    // JSON_DECODE_ANY: the driver reports a line that is not an object. JSON_ALLOW_NUL: a string
    // may contain NUL.
    rc = dsc_json_load(out, line->bytes, line->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e, err);
    if (rc != DSC_EINPUT)
        return rc;
    // Jansson calls the line a file.
    char *file = strstr(e.text, "end of file");
    if (file)
        memcpy(file + strlen("end of "), "line", 4);
    int64_t column = e.column + (e.line == 1 ? line->column : 0);
    return dsc_fail(err, rc, "%s:%lld:%lld: %s", name, (long long)(line->number + e.line - 1),
                    (long long)column, e.text);
}

int dsc_import_scan(const char *path, void (*visit)(void *state, const json_t *line), void *state,
                    dsc_error *err)
{
    dsc_import_source source = {0};
    dsc_line line = {0};
    int rc = dsc_input_open(&source.in, path, err);
    do {
        if (!rc)
            rc = dsc_import_source_next(&source, false, &line, err);
        json_t *json = NULL;
        if (!rc && line.bytes && dsc_import_parse(&json, &line, "", NULL) == DSC_OK)
            visit(state, json);
        json_decref(json);
        if (rc == DSC_EINPUT && source.in && !dsc_import_source_broken(&source))
            rc = DSC_OK;
    } while (!rc && line.bytes);
    dsc_import_source_fini(&source);
    dsc_input_close(source.in);
    return rc == DSC_EINPUT ? DSC_OK : rc;
}

bool dsc_import_rereadable(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

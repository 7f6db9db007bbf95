// SPDX-License-Identifier: Apache-2.0
// Parses JSON texts and files with Jansson and turns its errors into file, line and column. Jansson
// has no error code for an allocation that failed in its parser; errno tells it from a bad text.
#include "base/json_file.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int dsc_json_load(json_t **out, const char *text, size_t length, size_t flags, json_error_t *e,
                  dsc_error *err)
{
    errno = 0;
    *out = json_loadb(text, length, flags | JSON_REJECT_DUPLICATES, e);
    if (*out)
        return DSC_OK;
    // A failed allocation leaves no text, or that of the token it was for.
    return errno == ENOMEM || !*e->text ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_EINPUT;
}

int dsc_json_parse(json_t **out, const char *text, size_t length, size_t flags, const char *name,
                   dsc_error *err)
{
    json_error_t e;
    int rc = dsc_json_load(out, text, length, flags, &e, err);
    if (rc != DSC_EINPUT)
        return rc;
    return dsc_fail(err, rc, "%s: line %d, column %d: %s", name, e.line, e.column, e.text);
}

int dsc_json_file(json_t **out, const char *path, size_t limit, dsc_error *err)
{
    char *text;
    *out = NULL;
    int rc = dsc_read_text(&text, path, limit, err);
    if (!rc)
        rc = dsc_json_parse(out, text, strlen(text), 0, path, err);
    free(text);
    return rc;
}

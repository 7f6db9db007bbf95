// SPDX-License-Identifier: Apache-2.0
// Parses JSON texts and files and turns errors of Jansson into file, line and column. Jansson has
// no error code for an allocation that failed in its parser; errno tells it from a bad text.
// Version 2.14 even leaves out a character where its buffer of a token cannot grow, and goes on. So
// the quick parser, which does not, comes first.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // memmem
#endif
#include "base/json_file.h"

#include "base/file.h"
#include "base/json_quick.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// What Jansson returns for the same text and flags, or NULL.
static json_t *load_quickly(const char *text, size_t length, size_t flags)
{
    static const char nul[] = "\\u0000";
    if (flags & ~(size_t)(JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES) ||
        (!(flags & JSON_ALLOW_NUL) && memmem(text, length, nul, strlen(nul))))
        return NULL;
    json_t *value = dsc_json_quick(text, length, SIZE_MAX);
    if (value && !(flags & JSON_DECODE_ANY) && !json_is_object(value) && !json_is_array(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

int dsc_json_load(json_t **out, const char *text, size_t length, size_t flags, json_error_t *e,
                  dsc_error *err)
{
    *out = load_quickly(text, length, flags);
    if (*out)
        return DSC_OK;
    errno = 0;
    *out = json_loadb(text, length, flags | JSON_REJECT_DUPLICATES, e);
    const bool failed = errno == ENOMEM;
    if (*out && !failed)
        return DSC_OK;
    json_decref(*out);
    *out = NULL;
    // A failed allocation leaves no text, or that of the token it was for.
    return failed || !*e->text ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_EINPUT;
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

// SPDX-License-Identifier: Apache-2.0
// JSON texts and files that are parsed whole.
#ifndef DSC_BASE_JSON_FILE_H
#define DSC_BASE_JSON_FILE_H

#include "base/status.h"

#include <jansson.h>

// Parses `length` bytes of text. *out is a new reference, or NULL. Duplicate keys are refused;
// `flags` adds Jansson's decoding flags. DSC_EINPUT: *e describes the defect; *err is unchanged.
// DSC_ENOMEM: memory is short, which Jansson itself reports as a defect of the text.
int dsc_json_load(json_t **out, const char *text, size_t length, size_t flags, json_error_t *e,
                  dsc_error *err);

// The same with the message "NAME: line L, column C: what is wrong there". `name` is a path or a
// part of a file.
int dsc_json_parse(json_t **out, const char *text, size_t length, size_t flags, const char *name,
                   dsc_error *err);

// The same for a file of at most `limit` bytes; its errors include those of dsc_read_text.
int dsc_json_file(json_t **out, const char *path, size_t limit, dsc_error *err);

#endif

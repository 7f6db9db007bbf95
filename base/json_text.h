// SPDX-License-Identifier: Apache-2.0
// Bytes as JSON strings and JSON as text. Both return NULL when an allocation fails, and nothing
// shorter than it should be.
#ifndef DSC_BASE_JSON_TEXT_H
#define DSC_BASE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>

// Returns a JSON string. File names and command lines need not be UTF-8; if `s` is not, every
// non-ASCII byte becomes '?'. NULL becomes "". Returns NULL when out of memory.
json_t *dsc_json_text(const char *s);

// Returns a value as text, the caller's to free, by Jansson's encoding flags. Returns NULL for NULL
// and when out of memory. It replaces json_dumps, which omits an object's key where its buffer
// cannot grow once (Jansson 2.14).
char *dsc_json_dump(const json_t *value, size_t flags);

// Returns a deep copy, or NULL for NULL and when out of memory. It replaces json_deep_copy, which
// omits members that it has no memory for.
json_t *dsc_json_copy(const json_t *value);

#endif

// SPDX-License-Identifier: Apache-2.0
// Typed access to the values of a JSON object, with one sentence of error if a value has the wrong
// type or range. A key whose value is null counts as missing, as in transformers.
#ifndef DSC_LIVE_KEYS_H
#define DSC_LIVE_KEYS_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct live_keys {
    const char *path;  // of the file
    const char *where; // put before key names in messages: "", "rope_scaling."
    json_t *object;
} live_keys;

// Parses `path` into *out, which the caller releases with json_decref. The file holds an object
// without duplicate keys and has at most `limit` bytes.
int live_keys_load(json_t **out, const char *path, size_t limit, dsc_error *err);

// Returns the value of `name`, else that of `other` (NULL: the key has one spelling). NULL:
// missing.
json_t *live_key(const live_keys *k, const char *name, const char *other);

// Reads an integer in [least, most]. `absent` is its value if the key is missing; if absent <
// least, the key is required.
int live_key_count(const live_keys *k, const char *name, const char *other, int64_t least,
                   int64_t most, int64_t absent, int64_t *out, dsc_error *err);
// Reads a number in [least, most]; `absent` has the same meaning as for live_key_count.
int live_key_real(const live_keys *k, const char *name, const char *other, double least,
                  double most, double absent, double *out, dsc_error *err);
int live_key_flag(const live_keys *k, const char *name, bool absent, bool *out, dsc_error *err);
// Reads a string, which the object owns. If the key is missing, *out is `absent` (NULL allowed).
int live_key_text(const live_keys *k, const char *name, const char *other, const char *absent,
                  const char **out, dsc_error *err);

#endif

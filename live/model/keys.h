// SPDX-License-Identifier: Apache-2.0
// Values of a JSON object by their names, with one sentence when they are not what they must be.
// A key that is null counts as missing, as it does for transformers.
#ifndef DSC_LIVE_KEYS_H
#define DSC_LIVE_KEYS_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct live_keys {
    const char *path;  // of the file
    const char *where; // in front of names in messages: "", "rope_scaling."
    json_t *object;
} live_keys;

// Parses `path` into *out (json_decref): an object without duplicate keys, of at most `limit`
// bytes.
int live_keys_load(json_t **out, const char *path, size_t limit, dsc_error *err);

// The value under `name`, else under `other` (NULL: no second spelling); NULL: missing.
json_t *live_key(const live_keys *k, const char *name, const char *other);

// A whole number in [least, most]; `absent` < least: it must be there.
int live_key_count(const live_keys *k, const char *name, const char *other, int64_t least,
                   int64_t most, int64_t absent, int64_t *out, dsc_error *err);
// A number in [least, most]; `absent` < least: it must be there.
int live_key_real(const live_keys *k, const char *name, const char *other, double least,
                  double most, double absent, double *out, dsc_error *err);
int live_key_flag(const live_keys *k, const char *name, bool absent, bool *out, dsc_error *err);
// A string, owned by the object; *out stays `absent` (NULL allowed) when it is missing.
int live_key_text(const live_keys *k, const char *name, const char *other, const char *absent,
                  const char **out, dsc_error *err);

#endif

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
    dsc_error *err; // the first error; status DSC_OK: none yet
} live_keys;

// Parses the file `path`, which contains an object without duplicate keys and has at most `limit`
// bytes, and clears *err. The caller releases out->object with json_decref, also on failure.
int live_keys_load(live_keys *out, const char *path, size_t limit, dsc_error *err);

// Records "PATH: ..." unless there is an error already. Returns the status of the first error.
int live_key_fail(const live_keys *k, const char *format, ...) DSC_PRINTF(2, 3);

// Returns the value of `name`, else that of `other` (NULL: the key has one spelling). NULL:
// missing.
json_t *live_key(const live_keys *k, const char *name, const char *other);

// The functions below return a value and record a wrong one in k->err, so that the keys of a file
// read as a list; the caller checks k->err->status at its end.
//
// An integer in [least, most]; `least` on failure. `absent` is its value if the key is missing; if
// absent < least, the key is required.
int64_t live_key_count(const live_keys *k, const char *name, const char *other, int64_t least,
                       int64_t most, int64_t absent);
// A number in [least, most]; `absent` has the same meaning as for live_key_count.
double live_key_real(const live_keys *k, const char *name, const char *other, double least,
                     double most, double absent);
bool live_key_flag(const live_keys *k, const char *name, bool absent);
// A string, which the object owns; `absent` (NULL allowed) if the key is missing or on failure.
const char *live_key_text(const live_keys *k, const char *name, const char *other,
                          const char *absent);

#endif

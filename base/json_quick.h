// SPDX-License-Identifier: Apache-2.0
// A fast JSON parser for the common case; everything else is left to Jansson.
#ifndef DSC_BASE_JSON_QUICK_H
#define DSC_BASE_JSON_QUICK_H

#include <jansson.h>
#include <stddef.h>

// Parses a text into a new reference that equals what Jansson returns with JSON_REJECT_DUPLICATES |
// JSON_DECODE_ANY | JSON_ALLOW_NUL. NULL: the text is malformed, unusual or has more than
// `values_max` values, or memory is short; the caller then runs Jansson, which reports the reason.
json_t *dsc_json_quick(const char *bytes, size_t length, size_t values_max);

#endif

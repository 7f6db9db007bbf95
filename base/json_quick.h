// SPDX-License-Identifier: Apache-2.0
// A fast road for the lines that are as they should be (json_quick.c).
#ifndef DSC_BASE_JSON_QUICK_H
#define DSC_BASE_JSON_QUICK_H

#include <jansson.h>
#include <stddef.h>

// The JSON value of a text, a new reference that equals what Jansson makes of it with
// JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL. NULL: the text is wrong, unusual or
// has more than `values_max` values, or memory is short; Jansson tells which.
json_t *dsc_json_quick(const char *bytes, size_t length, size_t values_max);

#endif

// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a JSON string, for provenance records.
#ifndef DSC_BASE_JSON_TEXT_H
#define DSC_BASE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>

// Returns a JSON string. File names and command lines need not be UTF-8; if `s` is not, every
// non-ASCII byte becomes '?'. NULL becomes "". Returns NULL when out of memory.
json_t *dsc_json_text(const char *s);

#endif

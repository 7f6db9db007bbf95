// SPDX-License-Identifier: Apache-2.0
// Text of any bytes in JSON, for provenance.
#ifndef DSC_BASE_JSON_TEXT_H
#define DSC_BASE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>

// A JSON string: of a file's name or a command, which need not be UTF-8, what is not ASCII becomes
// '?' then. NULL text: "". Returns NULL when out of memory.
DSC_API json_t *dsc_json_text(const char *s);

#endif

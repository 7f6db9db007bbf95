// SPDX-License-Identifier: Apache-2.0
// Responses of chats: what surrounds them in logs, and their choices.
#ifndef DSC_TRACES_IMPORT_RESPONSE_H
#define DSC_TRACES_IMPORT_RESPONSE_H

#include "traces/import/import_record.h"

// The member of a request that says what its prompt lacks and ends with (dsc_import_prompt).
#define DSC_IMPORT_ABOUT_PROMPT "_prompt"

// The response of a line: the line itself, or the member of it that has "choices", or is one of the
// Responses API or of Anthropic's. NULL: none.
json_t *dsc_import_response(const json_t *line);

// Appends a response of one choice for each choice of the line, with the prompt of the request that
// the line contains as "prompt". A line that is such a response is appended itself.
int dsc_import_response_expand(const json_t *line, const dsc_import_options *options,
                               json_t *requests, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Conversations: lists of messages, and the prompts that a model receives for them.
#ifndef DSC_TRACES_IMPORT_CHAT_H
#define DSC_TRACES_IMPORT_CHAT_H

#include "traces/import/import_record.h"
#include "traces/import/import_template.h"

// How the conversations of an import become prompts.
struct dsc_import_chat {
    const dsc_chat_template *format; // NULL: `refusal` explains why
    char refusal[DSC_IMPORT_NOTE];
};

// Settles the template by options->chat_template, or by the files next to the tokenizer. `note`
// says which it is. DSC_EUSAGE: unknown name. A template that is not recognized is an error only of
// the lines that need it.
int dsc_import_chat_settle(struct dsc_import_chat *out, const dsc_import_options *options,
                           char note[DSC_IMPORT_NOTE], dsc_error *err);

// Whether a line has messages, under the names of its format or those of a map.
bool dsc_import_chat_applies(const json_t *line, const dsc_import_options *options);

// The list of messages of a line, or of the request that a line contains; NULL: there is none.
json_t *dsc_import_messages(const json_t *line);

// Appends the requests of a line with messages: one for each assistant turn, or for the last.
int dsc_import_chat_expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                           dsc_error *err);

// Renders the first `count` messages as a prompt. *out is a new JSON string.
int dsc_import_chat_prompt(json_t **out, const json_t *messages, size_t count,
                           const dsc_import_options *options, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Conversations: lists of messages, and the prompts that a model receives for them.
#ifndef DSC_TRACES_IMPORT_CHAT_H
#define DSC_TRACES_IMPORT_CHAT_H

#include "traces/import/import_record.h"
#include "traces/import/import_template.h"

// How the conversations of an import become prompts.
struct dsc_import_chat {
    const dsc_chat_template *format; // NULL: `refusal` explains why
    bool named;                      // by the user
    bool is_own;                     // it is the tokenizer's own
    char bos[64];                    // dsc_chat_found, if `is_own`
    char refusal[DSC_IMPORT_NOTE];   // empty: there is no template
};

// Chooses a template by `name`: NULL or "auto": that next to the tokenizer, if there is one;
// "model": the same, but it must be there; "none" or the name of one. `spec` NULL: no files.
// DSC_EUSAGE: an unknown name, or "model" without a template. A template that is not recognized is
// an error only of the lines that need it.
int dsc_import_chat_choose(struct dsc_import_chat *out, const char *name, const char *spec,
                           dsc_error *err);

// The same for the options of an import, whose chats are plain lines where there is no template.
// `note` says which it is.
int dsc_import_chat_settle(struct dsc_import_chat *out, const dsc_import_options *options,
                           char note[DSC_IMPORT_NOTE], dsc_error *err);

// Whether a line has messages, under the names of its format or those of a map.
bool dsc_import_chat_applies(const json_t *line, const dsc_import_options *options);

// The list of messages of a line, or of the request that a line contains; NULL: there is none.
json_t *dsc_import_messages(const json_t *line);

// Replaces `messages` of a request, if that is a text, by one message of the user.
int dsc_import_chat_question(json_t *request, dsc_error *err);

// Appends the requests of a line with messages: one for each assistant turn, or for the last.
int dsc_import_chat_expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                           dsc_error *err);

// Renders the first `count` messages as a prompt, in JSON as import_jsonl.c reads it: *out is a new
// string or, if the tokenizer must add no special tokens, {"text", "add_special_tokens": false}.
int dsc_import_chat_prompt(json_t **out, const json_t *messages, size_t count,
                           const dsc_import_options *options, dsc_error *err);

#endif

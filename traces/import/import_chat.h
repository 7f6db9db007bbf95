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

// A conversation as a prompt.
typedef struct dsc_import_prompt {
    // In JSON as import_jsonl.c reads it: a string or, if the tokenizer must add no special tokens,
    // {"text", "add_special_tokens": false}. A new reference.
    json_t *text;
    unsigned lost;       // parts of messages that were left out (options.lossy)
    bool after_result;   // its last message is the result of a tool
    bool tools_left_out; // the template has no form of the definitions of tools
} dsc_import_prompt;

// Renders the first `count` messages, with the tools and the system message that `line` (or NULL)
// has around them. `silent`: the answer has no thoughts.
int dsc_import_chat_prompt(dsc_import_prompt *out, const json_t *line, const json_t *messages,
                           size_t count, bool silent, const dsc_import_options *options,
                           dsc_error *err);

// Whether a message has a text and nothing else that a model writes.
bool dsc_import_is_plain_answer(const json_t *message);

// Makes a message of a text and of what the model wrote besides it, in fields of the line that has
// both. *out is a new reference, or NULL.
int dsc_import_beside(json_t **out, const json_t *line, const json_t *text, dsc_error *err);

// Appends what the model wrote for a message, which `where` names, to a text; `out` NULL: only
// sets *silent, which may be NULL: whether it has no thoughts. DSC_EINPUT: it has a part whose text
// is unknown, unless options.lossy; then *lost has its bit.
int dsc_import_answer(const json_t *message, const char *where, bool after_result,
                      const dsc_import_options *options, bool *silent, unsigned *lost,
                      dsc_buffer *out, dsc_error *err);

// Notes in the metadata of a request what was left out: "lossy": "reasoning, tool calls", and
// "tools_left_out": true.
int dsc_import_mark(json_t *metadata, unsigned lost, bool tools_left_out, dsc_error *err);

#endif

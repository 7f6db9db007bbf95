// SPDX-License-Identifier: Apache-2.0
// Chat templates: the text that a model receives for a conversation.
//
// A tokenizer's template is a Jinja program. draftscope does not run it; it recognizes the
// well-known ones by what they contain, as llama.cpp does, and renders them from a table.
#ifndef DSC_TRACES_IMPORT_TEMPLATE_H
#define DSC_TRACES_IMPORT_TEMPLATE_H

#include "base/memory.h"

typedef enum dsc_chat_role { DSC_CHAT_SYSTEM, DSC_CHAT_USER, DSC_CHAT_ASSISTANT } dsc_chat_role;

typedef struct dsc_chat_message {
    dsc_chat_role role;
    const char *text;
    size_t length; // bytes
} dsc_chat_message;

typedef struct dsc_chat_template dsc_chat_template;

// The template of that name; NULL: there is none. "none" is a plain text with a line per message.
const dsc_chat_template *dsc_chat_template_find(const char *name);
const char *dsc_chat_template_name(const dsc_chat_template *t);
// Writes the names, separated by commas.
void dsc_chat_template_names(char *out, size_t size);
// The token that ends an answer of the model, as "<|im_end|>"; NULL: unknown.
const char *dsc_chat_template_end(const dsc_chat_template *t);

// The template that a Jinja text is; NULL: it is not recognized.
const dsc_chat_template *dsc_chat_template_recognize(const char *jinja);

// The template in the files of a tokenizer.
typedef struct dsc_chat_found {
    const dsc_chat_template *format; // NULL: the files contain none
    // The BOS token, if the Jinja text writes it; else "". A prompt that transformers renders
    // begins with it, and the tokenizer adds no special tokens to that prompt.
    char bos[64];
} dsc_chat_found;

// Looks next to a tokenizer, whose `spec` is that of dsc_tokenizer_load, for chat_template.jinja
// and for the field "chat_template" of tokenizer_config.json, or into a GGUF file. DSC_EINPUT: a
// file is no regular file, is longer than 4 MiB (64 MiB for tokenizer_config.json) or cannot be
// read, or its template is not recognized; the message names the file.
int dsc_chat_template_beside(dsc_chat_found *out, const char *spec, dsc_error *err);

// Appends the messages and the beginning of the answer, without a BOS token.
int dsc_chat_render(const dsc_chat_template *t, const dsc_chat_message *message, size_t count,
                    dsc_buffer *out, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Chat templates: the text that a model receives for a conversation.
//
// A tokenizer's template is a Jinja program. draftscope does not run it; it recognizes the
// well-known ones by what they contain, as llama.cpp does, and renders them from a table. What a
// server parsed out of an answer (thoughts, calls of tools) is written back in the same way.
#ifndef DSC_TRACES_IMPORT_TEMPLATE_H
#define DSC_TRACES_IMPORT_TEMPLATE_H

#include "base/memory.h"
#include "traces/trace/trace.h"

#include <jansson.h>

typedef enum dsc_chat_role {
    DSC_CHAT_SYSTEM,
    DSC_CHAT_USER,
    DSC_CHAT_ASSISTANT,
    DSC_CHAT_TOOL, // the result of a call
} dsc_chat_role;

// A tool that an answer calls.
typedef struct dsc_chat_call {
    dsc_text_view name, id;  // id: length 0: unknown
    const json_t *arguments; // an object, or a string that contains none
} dsc_chat_call;

// Kinds of what a message has besides its text, as bits.
typedef enum dsc_chat_part {
    DSC_CHAT_THOUGHTS = 1,
    DSC_CHAT_CALLS = 2,
    DSC_CHAT_RESULTS = 4, // of tools
    DSC_CHAT_MEDIA = 8,   // images, audio, files
    DSC_CHAT_ORDER = 16,  // thoughts after a text, or a text after a call
    DSC_CHAT_COUNT = 32,  // tokens that the source counted and its text lacks
} dsc_chat_part;

typedef struct dsc_chat_message {
    dsc_chat_role role;
    const char *text;
    size_t length;             // bytes
    dsc_text_view thoughts;    // of an answer; length 0: none
    const dsc_chat_call *call; // [calls] of an answer
    size_t calls;
    dsc_text_view call_id, tool; // of a result: of the call; length 0: unknown
    unsigned lost;               // parts that the source has and the fields above lack
    size_t source;               // the message's place in the source
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

// --- rendering (import_render.c) -----------------------------------------------------------------

// The parts of a message that the template, which has no form of them, cannot write. `answer`: as
// the model's answer; else as a message before it, of which templates leave out thoughts.
unsigned dsc_chat_lacks(const dsc_chat_template *t, const dsc_chat_message *m, bool answer);

// What a prompt contains besides messages.
typedef struct dsc_chat_request {
    const json_t *tools;   // a list of definitions, or NULL
    bool without_thoughts; // the answer is known to have none: thinking is switched off
} dsc_chat_request;

// Whether the template has a form of calls.
bool dsc_chat_calls(const dsc_chat_template *t);
// Whether the template writes the definitions of tools into prompts.
bool dsc_chat_defines_tools(const dsc_chat_template *t);
// Whether the model writes something around the text of an answer that is nothing but a text.
bool dsc_chat_frames(const dsc_chat_template *t);

// Appends the messages and the beginning of the answer, without a BOS token. Parts that the
// template lacks are left out.
int dsc_chat_render(const dsc_chat_template *t, const dsc_chat_message *message, size_t count,
                    const dsc_chat_request *request, dsc_buffer *out, dsc_error *err);

// Appends what the model wrote after that beginning, without the token that ends the answer.
// `after_result`: the message before it is the result of a tool.
int dsc_chat_answer(const dsc_chat_template *t, const dsc_chat_message *m, bool after_result,
                    dsc_buffer *out, dsc_error *err);

#endif

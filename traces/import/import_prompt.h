// SPDX-License-Identifier: Apache-2.0
// Files of prompts in the forms in which people have them: draftscope's own lines, conversations,
// questions, and the task files of HumanEval, GSM8K, MT-bench, Spec-Bench, Alpaca and LLMA.
//
// The first line determines the kind of the file by its fields, the first of these that it has:
//   messages (conversations, request.messages, body.messages)  the conversation up to its last
//                     user message; an answer after it is left out
//   prompt            a text, token ids, or a list of messages
//   turns             MT-bench, Spec-Bench: the first turn is a question
//   query and docs    LLMA: the prompt as import_llma.c builds it; docs are the references
//   instruction       Alpaca: a question, followed by `input`
//   question, query   a question
// A question becomes one user message, rendered with the chat template that is found next to the
// tokenizer, if there is one. A prompt is taken as it is, unless the user names a template.
#ifndef DSC_TRACES_IMPORT_PROMPT_H
#define DSC_TRACES_IMPORT_PROMPT_H

#include "traces/import/import_record.h"

typedef struct dsc_prompt_options {
    const char *map;            // "prompt=question,references=docs"; NULL: fields are recognized
    const char *chat_template;  // as of dsc_import_chat_choose
    const char *tokenizer_spec; // as of dsc_tokenizer_load; NULL: no chat template is found
    int32_t vocab_size;         // token ids are in [0, vocab_size)
} dsc_prompt_options;

typedef struct dsc_prompt_reader dsc_prompt_reader;

// The options' texts must outlive the reader. DSC_EUSAGE: a map without a prompt, an unknown name
// of a template. *out is owned by the caller.
int dsc_prompt_reader_new(dsc_prompt_reader **out, const dsc_prompt_options *options,
                          dsc_error *err);
void dsc_prompt_reader_free(dsc_prompt_reader *r);

// Reads id, prompt and references of a line into an empty record, which may have views of the line.
// Fields that have no meaning in its kind are left out and counted. DSC_EINPUT: a line of another
// kind than the first, an empty question, a field of the wrong type, messages without a template.
int dsc_prompt_read(dsc_prompt_reader *r, const json_t *line, dsc_import_record *out,
                    dsc_error *err);
// Reads a text as the field `prompt` of a line would be read.
int dsc_prompt_read_text(dsc_prompt_reader *r, const char *text, dsc_import_record *out,
                         dsc_error *err);

// Writes note number `i` (from 0) about the lines so far: how questions became prompts, and what
// was left out. False: there are no more.
bool dsc_prompt_reader_note(const dsc_prompt_reader *r, size_t i, char note[DSC_IMPORT_NOTE]);
// The token that ends an answer in the template, if prompts were rendered; else NULL.
const char *dsc_prompt_reader_end(const dsc_prompt_reader *r);

#endif

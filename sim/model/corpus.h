// SPDX-License-Identifier: Apache-2.0
// Token sequences that a language is trained on: lines of text, JSON lines, or the requests of a
// trace.
#ifndef DSC_SIM_CORPUS_H
#define DSC_SIM_CORPUS_H

#include "traces/tokenizer/tokenizer.h"
#include "traces/trace/trace.h"

typedef struct dsc_corpus {
    int32_t *token; // [start[count]] a -1, the tokens of sequence 0, a -1, those of sequence 1, ...
    int64_t *start; // [count + 1] where the -1 before each sequence is; then the end
    int64_t count;  // sequences, each of at least 2 tokens
    int32_t vocab_size;
    int32_t end_token;                       // EOS, or -1: unknown
    char *tokenizer_name, *tokenizer_sha256; // "" when a trace lacks the hash
    size_t token_capacity, start_capacity;
} dsc_corpus; // zero-initialize, dsc_corpus_fini frees

// Tokens of a sequence.
static inline dsc_token_view dsc_corpus_sequence(const dsc_corpus *c, int64_t i)
{
    return (dsc_token_view){c->token + c->start[i] + 1, c->start[i + 1] - c->start[i] - 1};
}

// Reads `path`. A folder is a trace: its sequences are prompts with their outputs, as recorded, and
// `tokenizer` is not used. Any other path is text (also .gz and .zst; - is standard input), which
// needs `tokenizer`. A sequence is a line that is not blank. When the first line begins with '{',
// lines are JSON objects, and a sequence is the field "text", or "prompt" and "output", "question"
// and "answer", "instruction" and "output". The tokenizer's special tokens precede it, its EOS
// token follows it. Sequences of one token are left out. DSC_EINPUT: the message has file and line.
// DSC_EUSAGE: there is no tokenizer.
int dsc_corpus_read(dsc_corpus *c, const char *path, const dsc_tokenizer *tokenizer,
                    dsc_error *err);
void dsc_corpus_fini(dsc_corpus *c);

#endif

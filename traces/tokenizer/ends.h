// SPDX-License-Identifier: Apache-2.0
// The EOS tokens of a model: those that the files next to a tokenizer.json name, or those of an
// option.
#ifndef DSC_TRACES_TOKENIZER_ENDS_H
#define DSC_TRACES_TOKENIZER_ENDS_H

#include "traces/tokenizer/tokenizer.h"

#include <jansson.h>

enum { DSC_ENDS_MAX = 8 };

typedef struct dsc_ends {
    int32_t id[DSC_ENDS_MAX]; // [count]
    int count;
    int32_t eos;  // the one that a text without token ids gets at its end; -1: none
    bool guessed; // no file names one: dsc_tokenizer_eos
} dsc_ends;

// Reads a JSON file in the folder of a tokenizer, whose `spec` is that of dsc_tokenizer_load. A
// GGUF file stands for its own generation_config.json and tokenizer_config.json. *out is a new
// reference; NULL: there is no such file. Its numbers are reals, because transformers writes
// integers that no integer type holds (model_max_length). `path` gets the file's path. DSC_EINPUT:
// it is no regular file, no JSON, or longer than 64 MiB.
int dsc_beside_tokenizer(json_t **out, dsc_buffer *path, const char *spec, const char *name,
                         dsc_error *err);

static inline bool dsc_ends_have(const dsc_ends *e, int32_t id)
{
    bool found = false;
    for (int i = 0; i < e->count; i++)
        found = found || e->id[i] == id;
    return found;
}

// Reads the EOS tokens of a model from the files next to its tokenizer, whose `spec` is that of
// dsc_tokenizer_load (NULL: no files): eos_token_id of generation_config.json, an integer or a
// list; else eos_token of tokenizer_config.json; else eos_token_id of config.json; else the guess
// of the tokenizer. `eos` is the eos_token of tokenizer_config.json if that is one of several, else
// the first. DSC_EINPUT names the file: a value of the wrong type, an id or a text that is no
// token, or more than DSC_ENDS_MAX.
int dsc_ends_read(dsc_ends *out, const dsc_tokenizer *t, const char *spec, dsc_error *err);

// Parses "ID|TOKEN,...": ids of [0, vocab), or the texts of tokens, which need a tokenizer (NULL:
// none). `eos` is the first. DSC_EUSAGE.
int dsc_ends_parse(dsc_ends *out, const dsc_tokenizer *t, int64_t vocab, const char *text,
                   dsc_error *err);

// Chooses among several: `token` becomes `eos` if it is one of them, or if they are guessed.
void dsc_ends_prefer(dsc_ends *e, int32_t token);

#endif

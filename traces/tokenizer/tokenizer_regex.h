// SPDX-License-Identifier: Apache-2.0
// Internal: a compiled regex, which tokenizer_regex.c makes and tokenizer_match.c runs.
#ifndef DSC_TRACES_TOKENIZER_REGEX_H
#define DSC_TRACES_TOKENIZER_REGEX_H

#include "traces/tokenizer/tokenizer_internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

// PCRE2's compiler for a processor, where it has one. Both forms search a whole text and windows.
typedef struct tok_code {
    pcre2_code *code;
    bool jit;
} tok_code;

struct tok_regex {
    tok_code search; // the first match at or after a position
    tok_code here;   // a match at a position, or none
    bool is_gpt2;    // dsc_tok_gpt2_match is tried first
};

#endif

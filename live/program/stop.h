// SPDX-License-Identifier: Apache-2.0
// Stop strings: an output ends with the first token whose text completes one of them. The token
// stays, and with it the string. The position depends on the tokens of the output alone, not on
// the steps that generate them, so that all methods stop at the same token.
#ifndef DSC_LIVE_STOP_H
#define DSC_LIVE_STOP_H

#include "sim/model.h"
#include "traces/tokenizer/tokenizer.h"

typedef struct live_stop {
    const dsc_tokenizer *tokenizer;
    const char *const *text; // [count] the strings
    size_t count;
    size_t window;    // tokens before a position that are searched
    bool ended;       // the current output was ended by a string
    dsc_tokens token; // the window
    dsc_buffer decoded;
} live_stop; // zero-initialize; live_stop_fini

// Checks the strings, which must outlive *s. DSC_EUSAGE: there is no tokenizer (NULL), or a string
// is empty or a special token, which texts do not contain.
int live_stop_init(live_stop *s, const dsc_tokenizer *tokenizer, const char *const *text,
                   size_t count, dsc_error *err);
void live_stop_fini(live_stop *s);

// The hook dsc_loop_input.end, with a live_stop as its user.
int live_stop_end(void *stop, const dsc_model *target, const int32_t *token, size_t count,
                  size_t *kept, bool *ends, dsc_error *err);

#endif

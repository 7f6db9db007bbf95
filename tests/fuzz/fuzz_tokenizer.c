// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, and texts with what was loaded. Input: the file, a NUL, the text.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "traces/tokenizer/tokenizer.h"

#include <string.h>

FUZZ_FORMAT(tokenizer, .parts = 2, .change = {fuzz_change_json, fuzz_change_bytes})

static void check_text(const dsc_tokenizer *t, fuzz_bytes text, bool special)
{
    dsc_encoder *e;
    dsc_tokens tokens = {0};
    dsc_buffer out = {0};
    dsc_error err = {0};
    int rc = dsc_encoder_new(&e, t, &err);
    fuzz_require(rc == DSC_OK, "an encoder can be made", &err);
    rc = dsc_encode(e, (const char *)text.data, text.size, special, &tokens, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        fuzz_require(tokens.count == 0, "a failure adds no tokens", NULL);
    }
    for (size_t i = 0; i < tokens.count; i++)
        fuzz_require(tokens.id[i] >= 0 && tokens.id[i] < dsc_tokenizer_vocab_size(t),
                     "ids are in the vocabulary", NULL);
    rc = dsc_decode(t, tokens.id, tokens.count, special, &out, &err);
    fuzz_require(rc == DSC_OK, "what was encoded can be decoded", &err);
    dsc_buffer_fini(&out);
    dsc_tokens_fini(&tokens);
    dsc_encoder_free(e);
}

// Each id by itself: a text, or no such token.
static void check_ids(const dsc_tokenizer *t)
{
    enum { IDS = 600 };
    dsc_buffer out = {0};
    for (int32_t id = -1; id <= dsc_tokenizer_vocab_size(t) && id < IDS; id++) {
        dsc_error err = {0};
        int rc = dsc_decode(t, &id, 1, false, &out, &err);
        if (rc)
            fuzz_refused(rc, &err);
    }
    dsc_buffer_fini(&out);
}

FUZZ_TARGET(tokenizer)
{
    fuzz_bytes in = {data, size}, json = fuzz_before(&in, '\0');
    dsc_tokenizer *t;
    dsc_error err = {0};
    int rc = dsc_tokenizer_load(&t, fuzz_file("tokenizer.json", json.data, json.size), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    check_text(t, in, false);
    check_text(t, in, true);
    check_ids(t);
    int32_t eos = dsc_tokenizer_eos(t);
    fuzz_require(eos >= -1 && eos < dsc_tokenizer_vocab_size(t), "the EOS token is a token", NULL);
    dsc_tokenizer_free(t);
    return 0;
}

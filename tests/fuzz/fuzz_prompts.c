// SPDX-License-Identifier: Apache-2.0
// Prompts of live runs. Input: a byte (bit 0: the bytes tokenizer, bit 1: a vocabulary that is
// smaller than its), the file.
#include "live/program/prompts.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <string.h>

FUZZ_FORMAT(prompts, .head = 1, .parts = 1, .change = {fuzz_change_lines})

// Checks the properties on which a run relies: a prompt has tokens, all of the model's vocabulary.
static void check_prompt(const live_prompts *p, size_t i, int64_t vocab)
{
    const live_prompt *q = &p->item[i];
    const dsc_request *r = &q->request;
    char location[64];
    fuzz_require(r->prompt.count > 0 && r->prompt.count <= p->longest, "a prompt has tokens", NULL);
    fuzz_require(r->id.bytes && q->line > 0 && !r->output.count, "a line of the file", NULL);
    fuzz_require(r->references >= 0 && r->reference_offset[0] == 0, "references", NULL);
    for (int64_t k = 0; k < r->references; k++) {
        fuzz_require(r->reference_offset[k] <= r->reference_offset[k + 1],
                     "references follow each other", NULL);
        fuzz_require(r->reference_kind[k] <= DSC_REFERENCE_TURN, "a reference is of a kind", NULL);
        fuzz_use(q->reference_text[k].bytes, (size_t)q->reference_text[k].length);
    }
    for (int64_t k = 0; k < r->prompt.count; k++)
        fuzz_require(r->prompt.id[k] >= 0 && r->prompt.id[k] < vocab, "a token is in its range",
                     NULL);
    for (int64_t k = 0; k < r->reference_offset[r->references]; k++)
        fuzz_require(r->reference_token[k] >= 0 && r->reference_token[k] < vocab,
                     "a token is in its range", NULL);
    fuzz_use(r->id.bytes, (size_t)r->id.length);
    fuzz_use(r->prompt_text.bytes, (size_t)r->prompt_text.length);
    live_prompts_location(p, i, location, sizeof location);
}

FUZZ_TARGET(prompts)
{
    static dsc_tokenizer *bytes; // immutable, kept
    fuzz_bytes in = {data, size};
    const uint8_t choice = fuzz_byte(&in);
    if (!bytes && dsc_tokenizer_load(&bytes, "bytes", NULL))
        return 0;
    const int64_t vocab = choice & 2 ? 100 : 300;
    live_prompts p = {.tokenizer = choice & 1 ? bytes : NULL, .vocab = vocab};
    dsc_error err = {0};
    int rc = live_prompts_read(&p, fuzz_file("prompts.jsonl", in.data, in.size), &err);
    if (rc)
        fuzz_refused(rc, &err);
    for (size_t i = 0; i < p.count; i++)
        check_prompt(&p, i, vocab);
    live_prompts_free(&p);
    return 0;
}

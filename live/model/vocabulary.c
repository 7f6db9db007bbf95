// SPDX-License-Identifier: Apache-2.0
// Compares the vocabularies of draft and target, token by token. A drafted id must mean the same
// text to both.
#include "live/model/vocabulary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *show(const char *text, size_t length, char *out, size_t size)
{
    if (!text)
        return "no text";
    snprintf(out, size, "\"%.*s\"", (int)(length < 40 ? length : 40), text);
    return out;
}

static int differ(const dsc_tokenizer *target, const dsc_tokenizer *draft, int32_t id,
                  dsc_error *err)
{
    char a[64], b[64];
    size_t m, n;
    const char *x = dsc_tokenizer_text(target, id, &m), *y = dsc_tokenizer_text(draft, id, &n);
    return dsc_fail(err, DSC_EINPUT,
                    "target and draft have different vocabularies: token %" PRId32
                    " is %s in the target and %s in the draft",
                    id, show(x, m, a, sizeof a), show(y, n, b, sizeof b));
}

static int match_texts(const dsc_tokenizer *target, const dsc_tokenizer *draft, dsc_error *err)
{
    int32_t m = dsc_tokenizer_vocab_size(target), n = dsc_tokenizer_vocab_size(draft);
    for (int32_t id = 0; id < (m > n ? m : n); id++) {
        size_t a = 0, b = 0;
        const char *x = dsc_tokenizer_text(target, id, &a), *y = dsc_tokenizer_text(draft, id, &b);
        if (!x != !y || a != b || (x && memcmp(x, y, a) != 0))
            return differ(target, draft, id, err);
    }
    return DSC_OK;
}

int live_vocabulary_match(const dsc_tokenizer *target, const dsc_tokenizer *draft,
                          int64_t target_vocab, int64_t draft_vocab, dsc_error *err)
{
    int64_t padding = target_vocab - draft_vocab;
    if (padding > LIVE_VOCABULARY_PADDING || padding < -LIVE_VOCABULARY_PADDING)
        return dsc_fail(err, DSC_EINPUT,
                        "target and draft have different vocabularies: %" PRId64 " and %" PRId64
                        " tokens, more than %d apart",
                        target_vocab, draft_vocab, LIVE_VOCABULARY_PADDING);
    if (!target != !draft)
        return dsc_fail(err, DSC_EINPUT,
                        "the %s has no tokenizer.json, so its tokens cannot be compared with the "
                        "%s's",
                        target ? "draft" : "target", target ? "target" : "draft");
    if (!target || strcmp(dsc_tokenizer_sha256(target), dsc_tokenizer_sha256(draft)) == 0)
        return DSC_OK;
    return match_texts(target, draft, err);
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.h"

#include <inttypes.h>

static int check_vocabulary(const dsc_language *l, const char *whose, int32_t vocab_size,
                            dsc_error *err)
{
    if (!l || l->vocab_size == vocab_size)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "the vocabularies differ: %" PRId32 " tokens of the target, %" PRId32
                    " of the %s",
                    vocab_size, l->vocab_size, whose);
}

int dsc_workload_check(const dsc_workload *w, int32_t vocab_size, dsc_error *err)
{
    if (w->target)
        vocab_size = w->target->vocab_size;
    int rc = check_vocabulary(w->draft, "draft", vocab_size, err);
    if (!rc)
        rc = check_vocabulary(w->middle, "third model", vocab_size, err);
    if (!rc && w->target &&
        (w->requests < 1 || w->max_tokens < 1 || w->max_tokens > INT32_MAX || w->prompt_tokens < 1))
        rc = dsc_fail(err, DSC_EUSAGE,
                      "requests, tokens of a prompt and of an output are 1 or more");
    return rc;
}

int dsc_workload_prompt(const dsc_language *target, int64_t r, int64_t prompt_tokens,
                        dsc_token_view *prompt, dsc_error *err)
{
    *prompt = (dsc_token_view){0};
    if (!target->type->text)
        return DSC_OK;
    *prompt = target->type->text(target, r);
    if (prompt->count < 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "the target's corpus has no sequence left for prompts: too short, or "
                        "hold=0");
    prompt->count = prompt->count - 1 < prompt_tokens ? prompt->count - 1 : prompt_tokens;
    return DSC_OK;
}

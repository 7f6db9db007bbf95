// SPDX-License-Identifier: Apache-2.0
// Checks of workloads, orders of requests, and prompts.
#include "sim/model/workload.h"

#include "base/rng.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static void shuffle(int64_t *order, int64_t requests, uint64_t seed)
{
    for (int64_t i = 0; i < requests; i++)
        order[i] = i;
    for (int64_t i = requests - 1; i > 0; i--) { // Fisher and Yates
        int64_t j = dsc_rng_below(seed, (uint64_t)i, 0, DSC_RNG_ORDER, (uint32_t)i + 1);
        int64_t r = order[i];
        order[i] = order[j];
        order[j] = r;
    }
}

static void take_turns(int64_t *order, int64_t requests, int64_t run, int64_t tasks)
{
    for (int64_t from = 0, n = 0; n < requests; from += run)
        for (int64_t t = 0; t < tasks; t++) {
            int64_t first = t * requests / tasks, end = (t + 1) * requests / tasks;
            for (int64_t i = from; i < from + run && first + i < end; i++)
                order[n++] = first + i;
        }
}

// A number at *at, which moves after it.
static bool number(const char **at, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    bool given = **at >= '0' && **at <= '9' && !errno;
    *at = end;
    return given;
}

// Returns whether the text is `name` followed by a number for each character of `signs`; the last
// is optional.
static bool is_order(const char *text, const char *name, const char *signs, int64_t out[2])
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0)
        return false;
    text += length;
    for (size_t i = 0; signs[i]; i++) {
        if (!*text && !signs[i + 1])
            return true;
        if (*text++ != signs[i] || !number(&text, &out[i]))
            return false;
    }
    return !*text;
}

int dsc_workload_order(int64_t **out, const char *text, int64_t requests, dsc_error *err)
{
    int64_t seed[2] = {0}, turns[2] = {0, 4};
    *out = NULL;
    if (strcmp(text, "file") == 0)
        return DSC_OK;
    bool random = is_order(text, "shuffle", ":", seed),
         in_turn = is_order(text, "consecutive", ":/", turns) && turns[0] >= 1 &&
                   turns[0] <= requests && turns[1] >= 1 && turns[1] <= requests;
    if ((!random && !in_turn) || requests > UINT32_MAX)
        return dsc_fail(err, DSC_EUSAGE,
                        "order '%.100s' of %" PRId64 " requests: file, shuffle[:SEED] or "
                        "consecutive:N[/TASKS] expected, N and TASKS (4) in [1, requests]",
                        text, requests);
    int rc = dsc_new(out, (size_t)requests, err);
    if (rc)
        return rc;
    if (random)
        shuffle(*out, requests, (uint64_t)seed[0]);
    else
        take_turns(*out, requests, turns[0], turns[1]);
    return DSC_OK;
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

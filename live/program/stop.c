// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in the text of an output: after each token, the text of the last tokens, at
// least as many as the longest string has bytes, is searched. Special tokens have no text, as in
// vLLM (skip_special_tokens).
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // memmem
#endif

#include "live/program/stop.h"

#include <stdlib.h>
#include <string.h>

// Tokens without text that may lie inside a string, and the beginning of a window, whose white
// space some decoders drop.
enum { SLACK = 64 };

static int check_text(const dsc_tokenizer *t, const char *text, dsc_error *err)
{
    const int32_t id = dsc_tokenizer_find(t, text);
    dsc_buffer decoded = {0};
    if (!*text)
        return dsc_fail(err, DSC_EUSAGE, "--stop: the text is empty");
    int rc = id >= 0 ? dsc_decode(t, &id, 1, true, &decoded, err) : DSC_OK;
    if (!rc && id >= 0 && !decoded.length)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--stop: '%.100s' is a special token, which is not part of the text; use "
                      "--eos '%.100s'",
                      text, text);
    dsc_buffer_fini(&decoded);
    return rc;
}

int live_stop_init(live_stop *s, const dsc_tokenizer *tokenizer, const char *const *text,
                   size_t count, dsc_error *err)
{
    int rc = tokenizer || !count
                 ? DSC_OK
                 : dsc_fail(err, DSC_EUSAGE,
                            "--stop: the target has no tokenizer.json; use --eos with token ids");
    s->tokenizer = tokenizer;
    s->text = text;
    s->count = count;
    s->window = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = check_text(tokenizer, text[i], err);
        s->window = strlen(text[i]) > s->window ? strlen(text[i]) : s->window;
    }
    s->window += SLACK;
    return rc;
}

void live_stop_fini(live_stop *s)
{
    dsc_tokens_fini(&s->token);
    dsc_buffer_fini(&s->decoded);
    *s = (live_stop){0};
}

// Appends a token, unless it has no text at all, as the padding of a vocabulary.
static int append(live_stop *s, int32_t token, dsc_error *err)
{
    size_t length;
    return dsc_tokenizer_text(s->tokenizer, token, &length)
               ? dsc_tokens_append(&s->token, &token, 1, err)
               : DSC_OK;
}

// Whether the text of the tokens before `end` of the output, followed by new ones, has a string.
static int search(live_stop *s, const dsc_model *m, const int32_t *token, size_t end, bool *found,
                  dsc_error *err)
{
    const size_t before = (size_t)m->length;
    size_t i = end > s->window ? end - s->window : 0;
    int rc = DSC_OK;
    s->token.count = s->decoded.length = 0;
    for (; i < end && !rc; i++)
        rc = append(s, i < before ? m->output[i] : token[i - before], err);
    if (!rc)
        rc = dsc_decode(s->tokenizer, s->token.id, s->token.count, true, &s->decoded, err);
    *found = false;
    for (size_t t = 0; t < s->count && !rc && s->decoded.length; t++)
        *found = *found ||
                 memmem(s->decoded.data, s->decoded.length, s->text[t], strlen(s->text[t])) != NULL;
    return rc;
}

int live_stop_end(void *stop, const dsc_model *target, const int32_t *token, size_t count,
                  size_t *kept, bool *ends, dsc_error *err)
{
    live_stop *s = stop;
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc && !s->ended; i++) {
        rc = search(s, target, token, (size_t)target->length + i + 1, &s->ended, err);
        *kept = i + 1;
    }
    *ends = s->ended;
    return rc;
}

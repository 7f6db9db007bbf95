// SPDX-License-Identifier: Apache-2.0
// Reads EOS tokens from generation_config.json, tokenizer_config.json and config.json, as Hugging
// Face's transformers writes them next to tokenizer.json, from a GGUF file, which contains the
// same, or from the text of an option (ends.h).
#include "traces/tokenizer/ends.h"

#include "base/file.h"
#include "base/json_file.h"
#include "traces/files/gguf.h"
#include "traces/tokenizer/gguf_config.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_LIMIT = 64 << 20 };

static int add(dsc_ends *e, int32_t id, dsc_error *err)
{
    if (dsc_ends_have(e, id))
        return DSC_OK;
    if (e->count == DSC_ENDS_MAX)
        return dsc_fail(err, DSC_EINPUT, "there are more than %d EOS tokens", DSC_ENDS_MAX);
    e->id[e->count++] = id;
    return DSC_OK;
}

// --- files ---------------------------------------------------------------------------------------

int dsc_beside_tokenizer(json_t **out, dsc_buffer *path, const char *spec, const char *name,
                         dsc_error *err)
{
    char *text = NULL;
    *out = NULL;
    path->length = 0;
    int rc = dsc_tokenizer_path(path, spec, err);
    if (!rc && dsc_gguf_is(path->data))
        return strcmp(name, "config.json") ? dsc_gguf_tokenizer_config(out, path->data, err)
                                           : DSC_OK;
    const char *slash = rc ? NULL : strrchr(path->data, '/');
    if (!rc) {
        path->length = slash ? (size_t)(slash - path->data) + 1 : 0;
        rc = dsc_buffer_puts(path, name, err);
    }
    if (rc || access(path->data, F_OK))
        return rc;
    rc = dsc_check_regular(path->data, err);
    if (!rc)
        rc = dsc_read_text(&text, path->data, FILE_LIMIT, err);
    if (!rc)
        rc = dsc_json_parse(out, text, strlen(text), JSON_DECODE_INT_AS_REAL, path->data, err);
    free(text);
    return rc;
}

static int add_id(dsc_ends *e, const json_t *value, const dsc_tokenizer *t, dsc_error *err)
{
    const double id = json_number_value(value);
    const int32_t size = dsc_tokenizer_vocab_size(t);
    if (!json_is_number(value) || id != floor(id))
        return dsc_fail(err, DSC_EINPUT, "'eos_token_id' must be a token id or a list of them");
    if (!(id >= 0 && id < size))
        return dsc_fail(err, DSC_EINPUT,
                        "'eos_token_id' is %.0f; token ids of this tokenizer are 0 to %d", id,
                        size - 1);
    return add(e, (int32_t)id, err);
}

static int add_ids(dsc_ends *e, const json_t *file, const dsc_tokenizer *t, dsc_error *err)
{
    const json_t *value = json_object_get(file, "eos_token_id");
    int rc = DSC_OK;
    if (!value || json_is_null(value))
        return DSC_OK;
    if (!json_is_array(value))
        return add_id(e, value, t, err);
    for (size_t i = 0; i < json_array_size(value) && !rc; i++)
        rc = add_id(e, json_array_get(value, i), t, err);
    return rc;
}

// The eos_token of tokenizer_config.json, a text or {"content": text}; -1: there is none. `needed`:
// it must be a token.
static int find_named(int32_t *out, const json_t *file, const dsc_tokenizer *t, bool needed,
                      dsc_error *err)
{
    const json_t *value = json_object_get(file, "eos_token");
    const char *text =
        json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
    *out = text ? dsc_tokenizer_find(t, text) : -1;
    if (!value || json_is_null(value))
        return DSC_OK;
    if (!text)
        return dsc_fail(err, DSC_EINPUT, "'eos_token' must be the text of a token");
    return *out >= 0 || !needed ? DSC_OK
                                : dsc_fail(err, DSC_EINPUT,
                                           "'eos_token' is '%.60s', which is not a token of the "
                                           "tokenizer.json next to it",
                                           text);
}

int dsc_ends_read(dsc_ends *out, const dsc_tokenizer *t, const char *spec, dsc_error *err)
{
    static const char *const names[] = {"generation_config.json", "tokenizer_config.json",
                                        "config.json"};
    enum { GENERATION, TOKENIZER, MODEL, FILES };
    const bool in_files = spec && strcmp(spec, "bytes") != 0;
    dsc_buffer path = {0};
    int32_t named = -1;
    int rc = DSC_OK;
    *out = (dsc_ends){.eos = -1};
    for (int f = 0; f < FILES && in_files && !rc; f++) {
        json_t *file;
        if (f == MODEL && out->count)
            break;
        rc = dsc_beside_tokenizer(&file, &path, spec, names[f], err);
        int bad = DSC_OK;
        if (!rc && f == TOKENIZER)
            bad = find_named(&named, file, t, !out->count, err);
        else if (!rc)
            bad = add_ids(out, file, t, err);
        if (!bad && f == TOKENIZER && named >= 0 && !out->count)
            bad = add(out, named, err);
        rc = bad ? dsc_error_prefix(err, bad, "%s", path.data) : rc;
        json_decref(file);
    }
    dsc_buffer_fini(&path);
    out->guessed = !out->count && strcmp(dsc_tokenizer_name(t), "bytes") != 0;
    if (!rc && !out->count && dsc_tokenizer_eos(t) >= 0)
        out->id[out->count++] = dsc_tokenizer_eos(t);
    out->eos = out->count ? out->id[0] : -1;
    if (dsc_ends_have(out, named))
        out->eos = named;
    return rc;
}

// --- an option -----------------------------------------------------------------------------------

static bool is_number(const char *text)
{
    size_t digits = 0;
    while (isdigit((unsigned char)text[digits]))
        digits++;
    return digits && digits < 10 && !text[digits];
}

static int add_text(dsc_ends *e, const char *text, const dsc_tokenizer *t, int64_t vocab,
                    dsc_error *err)
{
    int64_t id = is_number(text) ? strtol(text, NULL, 10) : t ? dsc_tokenizer_find(t, text) : -1;
    if (is_number(text) && id >= vocab)
        return dsc_fail(err, DSC_EUSAGE,
                        "the EOS token is given as %s; token ids of this vocabulary are 0 to %lld",
                        text, (long long)vocab - 1);
    if (id < 0 && t)
        return dsc_fail(err, DSC_EUSAGE, "tokenizer %s has no token '%s', given as the EOS token",
                        dsc_tokenizer_name(t), text);
    if (id < 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "the EOS token '%s' cannot be found without a tokenizer; give its id",
                        text);
    if (e->count == DSC_ENDS_MAX)
        return dsc_fail(err, DSC_EUSAGE, "more than %d EOS tokens are given", DSC_ENDS_MAX);
    return add(e, (int32_t)id, err);
}

int dsc_ends_parse(dsc_ends *out, const dsc_tokenizer *t, int64_t vocab, const char *text,
                   dsc_error *err)
{
    char *copy = NULL;
    *out = (dsc_ends){.eos = -1};
    int rc = dsc_strndup(&copy, text, strlen(text), err);
    for (char *part = rc ? NULL : copy, *next; part && !rc; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        rc = add_text(out, part, t, vocab, err);
    }
    free(copy);
    out->eos = out->count ? out->id[0] : -1;
    return rc;
}

void dsc_ends_prefer(dsc_ends *e, int32_t token)
{
    if (token < 0 || !(e->guessed || dsc_ends_have(e, token)))
        return;
    if (!dsc_ends_have(e, token)) { // instead of the guess
        e->id[0] = token;
        e->count = 1;
    }
    e->eos = token;
    e->guessed = false;
}

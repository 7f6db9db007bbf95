// SPDX-License-Identifier: Apache-2.0
// Reads the chat template and the BOS and EOS tokens of a GGUF file, as the keys that
// tokenizer_config.json and generation_config.json have for them.
#include "traces/tokenizer/gguf_config.h"

#include "base/utf8.h"
#include "traces/files/gguf.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

// The value as a JSON string; NULL if it is no text.
static json_t *text_of(const dsc_gguf_value *v, uint64_t i)
{
    dsc_gguf_text s;
    if (!v || !dsc_gguf_string(v, i, &s) || memchr(s.data, 0, s.length) ||
        dsc_bad_utf8(s.data, (int64_t)s.length) >= 0)
        return NULL;
    return json_stringn_nocheck(s.data, s.length);
}

// The id of a token, or -1.
static int64_t id_of(const dsc_gguf *file, const char *key)
{
    const dsc_gguf_value *v = dsc_gguf_find(file, key);
    const dsc_gguf_value *tokens = dsc_gguf_find(file, "tokenizer.ggml.tokens");
    int64_t id;
    if (!v || v->array || !dsc_gguf_integer(v, 0, &id) || id < 0 || !tokens ||
        (uint64_t)id >= tokens->count)
        return -1;
    return id;
}

static void add_token(json_t *out, const dsc_gguf *file, const char *key, const char *name,
                      const char *name_id)
{
    const int64_t id = id_of(file, key);
    json_t *text =
        id < 0 ? NULL : text_of(dsc_gguf_find(file, "tokenizer.ggml.tokens"), (uint64_t)id);
    if (id >= 0 && name_id)
        json_object_set_new(out, name_id, json_integer(id));
    if (text)
        json_object_set_new(out, name, text);
}

static void add_ends(json_t *out, const dsc_gguf *file)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    enum { KEYS = sizeof keys / sizeof *keys };
    int64_t id[KEYS];
    json_t *list = json_array();
    for (int i = 0; i < KEYS; i++) {
        id[i] = id_of(file, keys[i]);
        bool known = id[i] < 0;
        for (int j = 0; j < i; j++)
            known |= id[j] == id[i];
        if (!known)
            json_array_append_new(list, json_integer(id[i]));
    }
    if (json_array_size(list))
        json_object_set(out, "eos_token_id", list);
    json_decref(list);
}

int dsc_gguf_tokenizer_config(json_t **out, const char *path, dsc_error *err)
{
    dsc_gguf *file;
    *out = NULL;
    int rc = dsc_gguf_open(&file, path, err);
    if (rc)
        return rc;
    *out = json_object();
    json_t *template = text_of(dsc_gguf_find(file, "tokenizer.chat_template"), 0);
    if (template)
        json_object_set_new(*out, "chat_template", template);
    add_token(*out, file, "tokenizer.ggml.bos_token_id", "bos_token", "bos_token_id");
    add_token(*out, file, "tokenizer.ggml.eos_token_id", "eos_token", NULL);
    add_ends(*out, file);
    dsc_gguf_close(file);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "%s: out of memory", path);
}

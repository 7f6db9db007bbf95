// SPDX-License-Identifier: Apache-2.0
// Loads a tokenizer from a tokenizer.json or GGUF file (or the built-in byte tokenizer) and gives
// access to its name, hash, size and tokens.
#include "traces/tokenizer/tokenizer_internal.h"

#include "traces/files/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The SHA-256 identifies the meaning of the ids; the built-in tokenizer has that of its name.
static void init_bytes(dsc_tokenizer *t)
{
    dsc_sha256 sum;
    t->bytes = true;
    t->vocab_size = 258;
    t->eos = 257;
    dsc_sha256_init(&sum);
    dsc_sha256_update(&sum, "bytes", 5);
    dsc_sha256_final(&sum, t->sha256);
}

int dsc_tokenizer_path(dsc_buffer *out, const char *spec, dsc_error *err)
{
    struct stat st;
    const size_t length = strlen(spec);
    const char *slash = length && spec[length - 1] == '/' ? "" : "/";
    if (strcmp(spec, "bytes") == 0 || stat(spec, &st) || !S_ISDIR(st.st_mode))
        return dsc_buffer_puts(out, spec, err);
    return dsc_buffer_printf(out, err, "%s%stokenizer.json", spec, slash);
}

int dsc_tokenizer_load(dsc_tokenizer **out, const char *spec, dsc_error *err)
{
    dsc_buffer path = {0};
    dsc_tokenizer *t = NULL;
    *out = NULL;
    int rc = dsc_tokenizer_path(&path, spec, err);
    if (!rc)
        rc = dsc_new(&t, 1, err);
    const char *slash = rc ? NULL : strrchr(path.data, '/');
    const char *name = slash ? slash + 1 : path.data;
    if (!rc)
        rc = dsc_strndup(&t->name, name, strlen(name), err);
    if (!rc && strcmp(path.data, "bytes") == 0)
        init_bytes(t);
    else if (!rc)
        rc = dsc_gguf_is(path.data) ? dsc_tok_load_gguf(t, path.data, err)
                                    : dsc_tok_load_json(t, path.data, err);
    dsc_buffer_fini(&path);
    if (rc)
        dsc_tokenizer_free(t);
    else
        *out = t;
    return rc;
}

void dsc_tokenizer_free(dsc_tokenizer *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->added_count; i++)
        free((char *)t->added[i].pattern.data);
    free(t->added);
    free(t->plain.token);
    free(t->normalized.token);
    dsc_tok_steps_fini(&t->normalizers);
    dsc_tok_steps_fini(&t->pre_tokenizers);
    dsc_tok_steps_fini(&t->decoders);
    dsc_tokens_fini(&t->prefix);
    dsc_tokens_fini(&t->suffix);
    dsc_tok_map_fini(&t->vocab);
    dsc_tok_map_fini(&t->added_vocab);
    dsc_tok_map_fini(&t->raw_vocab);
    dsc_tok_merges_fini(&t->merges);
    free(t->char_token);
    free(t->may_join);
    free(t->token);
    free(t->special);
    free(t->pool);
    free(t->raw_pool);
    free(t->name);
    free(t);
}

const char *dsc_tokenizer_name(const dsc_tokenizer *t)
{
    return t->name;
}

const char *dsc_tokenizer_sha256(const dsc_tokenizer *t)
{
    return t->sha256;
}

int32_t dsc_tokenizer_vocab_size(const dsc_tokenizer *t)
{
    return t->vocab_size;
}

int32_t dsc_tokenizer_find(const dsc_tokenizer *t, const char *content)
{
    size_t length = strlen(content);
    if (t->bytes) {
        if (strcmp(content, "<s>") == 0)
            return 256;
        if (strcmp(content, "</s>") == 0)
            return 257;
        return length == 1 ? (unsigned char)content[0] : TOK_NONE;
    }
    int32_t id = dsc_tok_map_get(&t->added_vocab, content, length);
    return id != TOK_NONE ? id : dsc_tok_map_get(&t->vocab, content, length);
}

const char *dsc_tokenizer_text(const dsc_tokenizer *t, int32_t id, size_t *length)
{
    *length = 0;
    if (t->bytes || id < 0 || id >= t->vocab_size)
        return NULL;
    *length = t->token[id].length;
    return t->token[id].data;
}

int32_t dsc_tokenizer_eos(const dsc_tokenizer *t)
{
    return t->eos;
}

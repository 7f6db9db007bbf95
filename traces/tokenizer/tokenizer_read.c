// SPDX-License-Identifier: Apache-2.0
// Reads a tokenizer.json: steps, model, added tokens, template; and the EOS token that it implies.
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/file.h"
#include "base/json_file.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 256 * 1024 * 1024 }; // bytes; the largest files in use have 35 MB

static void find_eos(dsc_tokenizer *t)
{
    static const char *const names[] = {"</s>",       "<|endoftext|>", "<|end_of_text|>",
                                        "<|eot_id|>", "<|im_end|>",    "<eos>"};
    t->eos = TOK_NONE;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && t->eos == TOK_NONE; i++) {
        int32_t id = dsc_tok_map_get(&t->added_vocab, names[i], strlen(names[i]));
        if (id != TOK_NONE && t->special[id])
            t->eos = id;
    }
}

int dsc_tok_read_json(tok_reader *r, const json_t *root)
{
    int rc = dsc_tok_read_steps(r, root);
    if (!rc)
        rc = dsc_tok_read_model(r, root);
    if (!rc)
        rc = dsc_tok_finders_init(r);
    return rc ? rc : dsc_tok_read_template(r, root);
}

int dsc_tok_load_json(dsc_tokenizer *t, const char *path, dsc_error *err)
{
    char *text = NULL;
    int rc = dsc_read_text(&text, path, FILE_LIMIT, err);
    if (rc)
        return rc;
    const size_t length = strlen(text);
    tok_reader r = {.path = path, .err = err, .t = t};
    dsc_sha256 sum;
    dsc_sha256_init(&sum);
    dsc_sha256_update(&sum, text, length);
    dsc_sha256_final(&sum, t->sha256);
    json_t *root;
    rc = dsc_json_parse(&root, text, length, JSON_ALLOW_NUL, path, err);
    free(text);
    if (rc)
        return rc;
    if (!json_is_object(root))
        rc = dsc_tok_bad(&r, "the file must be a JSON object");
    if (!rc)
        rc = dsc_tok_read_json(&r, root);
    json_decref(root);
    if (!rc)
        find_eos(t);
    return rc;
}

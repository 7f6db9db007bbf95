// SPDX-License-Identifier: Apache-2.0
// Tokenizers and encoders for tests, from files and from texts.
#ifndef DSC_TESTS_TOKENIZER_FIXTURE_H
#define DSC_TESTS_TOKENIZER_FIXTURE_H

#include "tests/close.h"

#include "traces/tokenizer/tokenizer.h"

#include <string.h>

typedef struct tok_pair { // a tokenizer and an encoder of it
    dsc_tokenizer *t;
    dsc_encoder *e;
} tok_pair;

// A file beside the golden answers.
static inline const char *golden_path(const char *name)
{
    static char path[1024];
    char inside[128];
    snprintf(inside, sizeof inside, "tests/data/tokenizers/%s", name);
    return source_path(inside, path, sizeof path);
}

static inline tok_pair open_pair(const char *spec)
{
    tok_pair p = {0};
    dsc_error err = {0};
    if (dsc_tokenizer_load(&p.t, spec, &err) || dsc_encoder_new(&p.e, p.t, &err))
        fail_msg("%s", err.message);
    return p;
}

static inline void close_pair(tok_pair *p)
{
    dsc_encoder_free(p->e);
    dsc_tokenizer_free(p->t);
}

// Loads a tokenizer.json given as text; the status of the load.
static inline int load_text(dsc_tokenizer **t, const char *json, dsc_error *err)
{
    char path[] = "/tmp/test_tokenizer_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "wb");
    assert_non_null(f);
    fputs(json, f);
    assert_int_equal(fclose(f), 0);
    int rc = dsc_tokenizer_load(t, path, err);
    assert_true(rc == DSC_OK || strstr(err->message, path + 5) != NULL); // names the file
    unlink(path);
    return rc;
}

static inline tok_pair open_text(const char *json)
{
    tok_pair p = {0};
    dsc_error err = {0};
    if (load_text(&p.t, json, &err) || dsc_encoder_new(&p.e, p.t, &err))
        fail_msg("%s", err.message);
    return p;
}

static inline dsc_tokens encode(const tok_pair *p, const char *text, size_t length, bool special)
{
    dsc_tokens out = {0};
    dsc_error err = {0};
    if (dsc_encode(p->e, text, length, special, &out, &err))
        fail_msg("%s", err.message);
    return out;
}

// The texts of the tokens of `text`, joined by '|'.
static inline const char *pieces(const tok_pair *p, const char *text)
{
    static dsc_buffer b;
    dsc_tokens ids = encode(p, text, strlen(text), false);
    b.length = 0;
    assert_int_equal(dsc_buffer_puts(&b, "", NULL), DSC_OK);
    for (size_t i = 0; i < ids.count; i++) {
        assert_int_equal(dsc_buffer_puts(&b, i ? "|" : "", NULL), DSC_OK);
        assert_int_equal(dsc_decode(p->t, &ids.id[i], 1, false, &b, NULL), DSC_OK);
    }
    dsc_tokens_fini(&ids);
    static char out[512];
    snprintf(out, sizeof out, "%s", b.data);
    dsc_buffer_fini(&b);
    return out;
}

#define BPE(options, vocab, merges)                                                                \
    "\"model\":{\"type\":\"BPE\"" options ",\"vocab\":{" vocab "},\"merges\":[" merges "]}"
#define GOOD BPE("", "\"a\":0,\"b\":1,\"ab\":2", "\"a b\"")
#define ADDED(id, content, rest)                                                                   \
    "\"added_tokens\":[{\"id\":" id ",\"content\":" content ",\"single_word\":false,"              \
    "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}" rest "],"
#define SPLIT(regex)                                                                               \
    "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                       \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}," GOOD "}"

#endif

// SPDX-License-Identifier: Apache-2.0
// Reads the pipelines of a tokenizer.json: normalizers, pre-tokenizers, decoders, template. An
// error names any type or option that is not supported.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef struct step_type {
    const char *name;
    enum tok_kind kind;
    int (*read)(tok_reader *r, const json_t *o, const char *where, tok_step *s); // or NULL
    int form;                                                                    // UNICODE_FORM
} step_type;

void dsc_tok_steps_fini(tok_steps *s)
{
    for (size_t i = 0; i < s->count; i++) {
        dsc_tok_regex_free(s->at[i].regex);
        free((char *)s->at[i].pattern.data);
        free((char *)s->at[i].content.data);
    }
    free(s->at);
    *s = (tok_steps){0};
}

// *out is owned by the caller.
static int read_text(tok_reader *r, const json_t *o, const char *where, const char *key,
                     tok_text *out)
{
    tok_text text;
    char *copy = NULL;
    int rc = dsc_tok_get_text(r, o, where, key, &text);
    if (!rc)
        rc = dsc_strndup(&copy, text.data, text.length, r->err);
    *out = (tok_text){copy, text.length};
    return rc;
}

static int read_char(tok_reader *r, const json_t *o, const char *where, const char *key,
                     tok_text *out)
{
    int rc = read_text(r, o, where, key, out);
    const char *p = out->data;
    if (!rc && out->length)
        dsc_tok_next(&p);
    if (!rc && (out->length == 0 || (size_t)(p - out->data) != out->length))
        rc = dsc_tok_bad(r, "%s.%s must be one character", where, key);
    return rc;
}

static int read_regex(tok_reader *r, const char *where, const char *pattern, size_t length,
                      tok_step *s)
{
    int rc = dsc_tok_regex_new(&s->regex, pattern, length, r->err);
    return rc ? dsc_error_prefix(r->err, rc, "%s: %s", r->path, where) : DSC_OK;
}

// {"String": "..."} or {"Regex": "..."}
static int read_pattern(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    const json_t *pattern = dsc_tok_member(o, "pattern");
    if (json_object_size(pattern) != 1)
        return dsc_tok_bad(r, "%s.pattern is missing or malformed", where);
    tok_text text;
    if (json_object_get(pattern, "Regex")) {
        int rc = dsc_tok_get_text(r, pattern, where, "Regex", &text);
        return rc ? rc : read_regex(r, where, text.data, text.length, s);
    }
    int rc = read_text(r, pattern, where, "String", &s->pattern);
    if (!rc && s->pattern.length == 0)
        rc = dsc_tok_bad(r, "%s: an empty pattern is not supported", where);
    return rc;
}

static int read_prepend(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    return read_text(r, o, where, "prepend", &s->content);
}

static int read_replace(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    int rc = read_pattern(r, o, where, s);
    if (!rc)
        rc = read_text(r, o, where, "content", &s->content);
    // Versions of the HF library differ on whether $1 is a group here.
    if (!rc && s->regex && strchr(s->content.data, '$'))
        rc = dsc_tok_bad(r, "%s: '$' in the content of a regex Replace is not supported", where);
    return rc;
}

static int read_strip_sides(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    int rc = dsc_tok_get_bool(r, o, where, "strip_left", -1, &s->left);
    return rc ? rc : dsc_tok_get_bool(r, o, where, "strip_right", -1, &s->right);
}

static int read_strip_content(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    const char *const keys[2] = {"start", "stop"};
    size_t *const out[2] = {&s->start, &s->stop};
    for (int i = 0; i < 2; i++) {
        const json_t *n = dsc_tok_member(o, keys[i]);
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return dsc_tok_bad(r, "%s.%s must be an integer >= 0", where, keys[i]);
        *out[i] = (size_t)json_integer_value(n);
    }
    return read_char(r, o, where, "content", &s->content);
}

static int read_byte_level(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    bool use_regex;
    int rc = dsc_tok_get_bool(r, o, where, "add_prefix_space", -1, &s->prefix_space);
    if (!rc)
        rc = dsc_tok_get_bool(r, o, where, "use_regex", 1, &use_regex);
    if (rc || !use_regex)
        return rc;
    return read_regex(r, where, dsc_tok_gpt2_pattern, strlen(dsc_tok_gpt2_pattern), s);
}

static int read_behavior(tok_reader *r, const json_t *o, const char *where, bool needed,
                         tok_step *s)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    s->behavior = TOK_ISOLATED;
    if (!needed && !dsc_tok_member(o, "behavior"))
        return DSC_OK;
    tok_text text;
    int rc = dsc_tok_get_text(r, o, where, "behavior", &text);
    for (int i = 0; !rc && i < 5; i++)
        if (strcmp(text.data, names[i]) == 0) {
            s->behavior = (enum tok_behavior)i;
            return DSC_OK;
        }
    return rc ? rc : dsc_tok_bad(r, "%s: behavior '%s' is not supported", where, text.data);
}

static int read_split(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    int rc = read_pattern(r, o, where, s);
    if (!rc)
        rc = read_behavior(r, o, where, true, s);
    return rc ? rc : dsc_tok_get_bool(r, o, where, "invert", -1, &s->invert);
}

static int read_digits(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    bool each;
    int rc = dsc_tok_get_bool(r, o, where, "individual_digits", -1, &each);
    s->behavior = !rc && each ? TOK_ISOLATED : TOK_CONTIGUOUS;
    return rc;
}

static int read_punctuation(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    return read_behavior(r, o, where, false, s);
}

// Old files have add_prefix_space, new ones prepend_scheme; false and "always" contradict each
// other.
static int read_metaspace(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    static const char *const names[] = {"always", "first", "never"};
    const json_t *scheme = dsc_tok_member(o, "prepend_scheme");
    bool add;
    int found = scheme ? -1 : (int)TOK_ALWAYS;
    int rc = read_char(r, o, where, "replacement", &s->pattern);
    if (!rc)
        rc = dsc_tok_get_bool(r, o, where, "split", 1, &s->split);
    if (!rc)
        rc = dsc_tok_get_bool(r, o, where, "add_prefix_space", 1, &add);
    if (rc)
        return rc;
    for (int i = 0; i < 3 && json_is_string(scheme); i++)
        if (strcmp(json_string_value(scheme), names[i]) == 0)
            found = i;
    if (found < 0)
        return dsc_tok_bad(r, "%s.prepend_scheme must be always, first or never", where);
    if (!add && scheme && found != TOK_NEVER)
        return dsc_tok_bad(r, "%s: add_prefix_space contradicts prepend_scheme", where);
    s->scheme = add ? (enum tok_scheme)found : TOK_NEVER;
    return DSC_OK;
}

static const step_type normalizer_types[] = {
    {"Prepend", TOK_PREPEND, .read = read_prepend},
    {"Replace", TOK_REPLACE, .read = read_replace},
    {"NFC", TOK_UNICODE_FORM, .form = UTF8PROC_COMPOSE},
    {"NFD", TOK_UNICODE_FORM, .form = UTF8PROC_DECOMPOSE},
    {"NFKC", TOK_UNICODE_FORM, .form = UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", TOK_UNICODE_FORM, .form = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
    {"Strip", TOK_STRIP, .read = read_strip_sides},
    {0},
};

static const step_type pre_tokenizer_types[] = {
    {"ByteLevel", TOK_BYTE_LEVEL, .read = read_byte_level},
    {"Split", TOK_SPLIT, .read = read_split},
    {"Digits", TOK_DIGITS, .read = read_digits},
    {"Punctuation", TOK_PUNCTUATION, .read = read_punctuation},
    {"Metaspace", TOK_METASPACE, .read = read_metaspace},
    {0},
};

static const step_type decoder_types[] = {
    {.name = "ByteLevel", .kind = TOK_BYTE_LEVEL},
    {"Replace", TOK_REPLACE, .read = read_replace},
    {.name = "ByteFallback", .kind = TOK_BYTE_FALLBACK},
    {.name = "Fuse", .kind = TOK_FUSE},
    {"Strip", TOK_STRIP, .read = read_strip_content},
    {"Metaspace", TOK_METASPACE, .read = read_metaspace},
    {0},
};

static int read_step(tok_reader *r, const json_t *o, const char *where, const step_type *type,
                     tok_steps *steps)
{
    if (steps->count == TOK_MAX_STEPS)
        return dsc_tok_bad(r, "%s: more than %d steps", where, TOK_MAX_STEPS);
    int rc = dsc_resize(&steps->at, &steps->capacity, steps->count + 1, r->err);
    if (rc)
        return rc;
    steps->at[steps->count] = (tok_step){.kind = type->kind, .form = type->form};
    tok_step *s = &steps->at[steps->count++];
    snprintf(s->where, sizeof s->where, "%.40s (%s)", where, type->name);
    return type->read ? type->read(r, o, where, s) : DSC_OK;
}

// One component, or a Sequence of them under `list`, however nested (Jansson bounds the nesting).
static int read_component(tok_reader *r, const json_t *o, const char *where, const char *list,
                          const step_type *types, tok_steps *steps)
{
    if (!o)
        return DSC_OK;
    const char *name = json_string_value(json_object_get(o, "type"));
    if (!name)
        return dsc_tok_bad(r, "%s has no type", where);
    if (strcmp(name, "Sequence") == 0) {
        const json_t *items = json_object_get(o, list);
        size_t index;
        json_t *item;
        int rc = DSC_OK;
        if (!json_is_array(items))
            return dsc_tok_bad(r, "%s.%s is not an array", where, list);
        json_array_foreach(items, index, item)
        {
            char inner[160];
            snprintf(inner, sizeof inner, "%.100s[%zu]", where, index);
            if (!rc)
                rc = json_is_object(item) ? read_component(r, item, inner, list, types, steps)
                                          : dsc_tok_bad(r, "%s is not an object", inner);
        }
        return rc;
    }
    for (; types->name; types++)
        if (strcmp(name, types->name) == 0)
            return read_step(r, o, where, types, steps);
    return dsc_tok_bad(r, "%s: type '%s' is not supported", where, name);
}

int dsc_tok_read_steps(tok_reader *r, const json_t *root)
{
    dsc_tokenizer *t = r->t;
    // Both would change the tokens of a text.
    static const char *const absent[] = {"truncation", "padding"};
    for (int i = 0; i < 2; i++)
        if (dsc_tok_member(root, absent[i]))
            return dsc_tok_bad(r, "%s other than null is not supported", absent[i]);
    int rc = read_component(r, dsc_tok_member(root, "normalizer"), "normalizer", "normalizers",
                            normalizer_types, &t->normalizers);
    if (!rc)
        rc = read_component(r, dsc_tok_member(root, "pre_tokenizer"), "pre_tokenizer",
                            "pretokenizers", pre_tokenizer_types, &t->pre_tokenizers);
    t->has_decoder = dsc_tok_member(root, "decoder") != NULL;
    if (!rc)
        rc = read_component(r, dsc_tok_member(root, "decoder"), "decoder", "decoders",
                            decoder_types, &t->decoders);
    size_t n = t->pre_tokenizers.count;
    t->raw_bytes = n && t->pre_tokenizers.at[n - 1].kind == TOK_BYTE_LEVEL;
    return rc;
}

// ---- the post-processor: token ids around the text ----

static int add_ids(tok_reader *r, const json_t *ids, dsc_tokens *list)
{
    size_t index;
    json_t *value;
    if (json_array_size(ids) > TOK_MAX_TEMPLATE - list->count)
        return dsc_tok_bad(r, "post_processor: a template adds more than %d tokens",
                           TOK_MAX_TEMPLATE);
    json_array_foreach(ids, index, value)
    {
        json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
        int32_t id = (int32_t)n;
        if (n < 0 || n >= r->t->vocab_size || !r->t->token[n].data)
            return dsc_tok_bad(r, "post_processor: the template names an id without a token");
        int rc = dsc_tokens_append(list, &id, 1, r->err);
        if (rc)
            return rc;
    }
    return DSC_OK;
}

// A later template of a sequence encloses the earlier one.
static int read_template(tok_reader *r, const json_t *o, const char *where, tok_step *s)
{
    (void)where, (void)s; // it belongs to the tokenizer
    dsc_tokenizer *t = r->t;
    const json_t *single = json_object_get(o, "single");
    const json_t *special = json_object_get(o, "special_tokens");
    dsc_tokens prefix = {0};
    size_t index;
    bool seen = false;
    json_t *item;
    int rc = DSC_OK;
    if (!json_is_array(single))
        return dsc_tok_bad(r, "post_processor: TemplateProcessing.single is not an array");
    json_array_foreach(single, index, item)
    {
        const json_t *token = json_object_get(item, "SpecialToken");
        const json_t *text = json_object_get(item, "Sequence");
        const char *id = json_string_value(json_object_get(token ? token : text, "id"));
        const json_t *ids = id ? json_object_get(json_object_get(special, id), "ids") : NULL;
        if (token && json_is_array(ids))
            rc = add_ids(r, ids, seen ? &t->suffix : &prefix);
        else if (token)
            rc = dsc_tok_bad(r, "post_processor: template token '%s' is not defined", id ? id : "");
        else if (!id || strcmp(id, "A") != 0 || seen)
            rc = dsc_tok_bad(r, "post_processor: only templates of tokens around one A are "
                                "implemented");
        else
            seen = true;
        if (rc)
            break;
    }
    if (!rc && !seen)
        rc = dsc_tok_bad(r, "post_processor: a template without A is not supported");
    if (!rc)
        rc = dsc_tokens_append(&prefix, t->prefix.id, t->prefix.count, r->err);
    dsc_tokens_fini(&t->prefix);
    t->prefix = prefix;
    return rc;
}

static const step_type processor_types[] = {
    {.name = "ByteLevel"}, // offsets only
    {.name = "TemplateProcessing", .read = read_template},
    {0},
};

int dsc_tok_read_template(tok_reader *r, const json_t *root)
{
    tok_steps none = {0};
    int rc = read_component(r, dsc_tok_member(root, "post_processor"), "post_processor",
                            "processors", processor_types, &none);
    dsc_tok_steps_fini(&none);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Reads draftscope's own JSON lines, which `trace export` writes:
//   {"id": string or integer, "prompt": TEXT, "output": TEXT, "references": [TEXT, ...],
//    "draft_rows": ROWS, "target_rows": ROWS, and the columns of import_columns.c,
//    "finish_reason": "stop" or "length", "metadata": {...}}
// TEXT is a string, an array of token ids, or {"text": string, "tokens": [id, ...]} with at least
// one of the two (a reference may also have "kind": "document" or "turn", and a prompt
// "add_special_tokens": false when its text contains all of them). ROWS: import_rows.c.
// Only prompt and output are required. Unknown fields are errors, so that a mistyped name is
// noticed.
#include "traces/import/import_record.h"

#include <string.h>

static int probe(const json_t *line)
{
    const bool prompt = json_object_get(line, "prompt"), output = json_object_get(line, "output");
    return prompt && output ? 4 : prompt || output;
}

// The index of `name` in the NULL-terminated list, or -1.
static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int check_fields(const json_t *object, const char *const *known, const char *where,
                        dsc_error *err)
{
    json_t *o = (json_t *)object; // Jansson's iterators take no const; nothing changes
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const char *key = json_object_iter_key(at);
        if (find_name(known, key) < 0)
            return dsc_fail(err, DSC_EINPUT, "unknown field '%s%s%.100s'%s", where,
                            *where ? "." : "", key,
                            *where ? "" : "; to import some of the fields, name them with --map");
    }
    return DSC_OK;
}

static int read_kind(const json_t *value, const char *field, dsc_reference_kind *out,
                     dsc_error *err)
{
    static const char *const kinds[] = {
        [DSC_REFERENCE_DOCUMENT] = "document", [DSC_REFERENCE_TURN] = "turn", NULL};
    if (!json_is_string(value))
        return dsc_import_wrong_type(value, "a string", err, "%s.kind", field);
    int k = find_name(kinds, json_string_value(value));
    if (k < 0)
        return dsc_fail(err, DSC_EINPUT,
                        "field '%s.kind' must be \"document\" or \"turn\", not \"%.100s\"", field,
                        json_string_value(value));
    *out = (dsc_reference_kind)k;
    return DSC_OK;
}

static const char *const in_text[] = {"text", "tokens", NULL};
static const char *const in_reference[] = {"text", "tokens", "kind", NULL};
static const char *const in_prompt[] = {"text", "tokens", "add_special_tokens", NULL};

// `kind` is NULL for a TEXT that is not a reference.
static int read_text_object(const json_t *object, int32_t vocab_size, const char *field,
                            const char *const *known, dsc_import_text *out,
                            dsc_reference_kind *kind, dsc_error *err)
{
    const json_t *text = json_object_get(object, "text"),
                 *tokens = json_object_get(object, "tokens");
    const json_t *k = json_object_get(object, "kind");
    int rc = check_fields(object, known, field, err);
    if (!rc && !text && !tokens)
        rc = dsc_fail(err, DSC_EINPUT, "field '%s' must have 'text' or 'tokens'", field);
    if (!rc && text)
        rc = dsc_import_string(&out->text, text, err, "%s.text", field);
    if (!rc && tokens) {
        char name[64];
        snprintf(name, sizeof name, "%s.tokens", field);
        rc = dsc_import_token_ids(tokens, vocab_size, name, out, err);
    }
    if (!rc && kind && k)
        rc = read_kind(k, field, kind, err);
    return rc;
}

static int read_text(const json_t *value, int32_t vocab_size, const char *field,
                     const char *const *known, dsc_import_text *out, dsc_reference_kind *kind,
                     dsc_error *err)
{
    if (json_is_string(value))
        return dsc_import_string(&out->text, value, err, "%s", field);
    if (json_is_array(value))
        return dsc_import_token_ids(value, vocab_size, field, out, err);
    if (json_is_object(value))
        return read_text_object(value, vocab_size, field, known, out, kind, err);
    return dsc_import_wrong_type(value, "a string, an array of token ids or an object", err, "%s",
                                 field);
}

int dsc_import_prompt_value(const json_t *value, int32_t vocab_size, dsc_import_record *out,
                            dsc_error *err)
{
    const json_t *add = json_object_get(value, "add_special_tokens");
    if (add && !json_is_boolean(add))
        return dsc_import_wrong_type(add, "true or false", err, "prompt.add_special_tokens");
    out->prompt_is_complete = json_is_false(add);
    return read_text(value, vocab_size, "prompt", in_prompt, &out->prompt, NULL, err);
}

int dsc_import_references(const json_t *array, int32_t vocab_size, dsc_import_record *out,
                          dsc_error *err)
{
    if (!array)
        return DSC_OK;
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array", err, "references");
    for (size_t i = 0; i < json_array_size(array); i++) {
        dsc_import_text *reference;
        char field[48];
        snprintf(field, sizeof field, "references[%zu]", i);
        int rc = dsc_import_add_reference(out, &reference, err);
        if (!rc)
            rc = read_text(json_array_get(array, i), vocab_size, field, in_reference, reference,
                           &out->kind[i], err);
        if (rc)
            return rc;
    }
    return DSC_OK;
}

static int read_finish(const json_t *reason, dsc_import_record *out, dsc_error *err)
{
    out->eos = DSC_IMPORT_EOS_IF_KNOWN;
    if (!reason)
        return DSC_OK;
    if (!json_is_string(reason))
        return dsc_import_wrong_type(reason, "a string", err, "finish_reason");
    if (strcmp(json_string_value(reason), "length") == 0)
        out->eos = DSC_IMPORT_EOS_NEVER;
    else if (strcmp(json_string_value(reason), "stop") != 0)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'finish_reason' must be \"stop\" or \"length\", not \"%.100s\"",
                        json_string_value(reason));
    return DSC_OK;
}

static const char *const in_line[] = {"id",
                                      "prompt",
                                      "output",
                                      "references",
                                      "draft_rows",
                                      "target_rows",
                                      "finish_reason",
                                      "metadata",
                                      "logprobs",
                                      "draft_logprobs",
                                      "draft_argmax",
                                      "target_argmax",
                                      "draft_entropy",
                                      "target_entropy",
                                      "draft_ranks",
                                      "statistics",
                                      "rollouts",
                                      "steps",
                                      "accept",
                                      "candidates",
                                      "marginals",
                                      NULL};

bool dsc_import_is_field(const char *name)
{
    return find_name(in_line, name) >= 0;
}

static int read_prompt(const json_t *line, int32_t vocab_size, dsc_import_record *out,
                       dsc_error *err)
{
    if (!json_is_object(line))
        return dsc_import_not_object(line, err);
    const json_t *id = json_object_get(line, "id"), *prompt = json_object_get(line, "prompt");
    int rc = check_fields(line, in_line, "", err);
    if (!rc && id)
        rc = dsc_import_id(out, id, err);
    if (!rc)
        rc = dsc_import_prompt_value(prompt, vocab_size, out, err);
    return rc ? rc
              : dsc_import_references(json_object_get(line, "references"), vocab_size, out, err);
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    json_t *metadata = json_object_get(line, "metadata");
    int32_t vocab = options->vocab_size;
    int rc = read_prompt(line, vocab, out, err);
    if (!rc)
        rc = read_text(json_object_get(line, "output"), vocab, "output", in_text, &out->output,
                       NULL, err);
    if (!rc)
        rc = dsc_import_columns_read(out, line, err);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++) {
        const json_t *rows = json_object_get(line, dsc_rows_name(side, DSC_ROWS_LISTED));
        if (rows)
            rc = dsc_import_rows_read(out, side, rows, vocab, err);
    }
    if (!rc)
        rc = read_finish(json_object_get(line, "finish_reason"), out, err);
    if (!rc && metadata && !json_is_object(metadata))
        rc = dsc_import_wrong_type(metadata, "an object", err, "metadata");
    out->kept = json_incref(metadata);
    return rc;
}

const dsc_import_driver dsc_import_jsonl = {
    .name = "jsonl",
    .summary = "draftscope's JSON lines: prompt, output, references[] as text or token ids",
    .needs = "prompt output",
    .probe = probe,
    .read = read_line,
};

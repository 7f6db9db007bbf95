// SPDX-License-Identifier: Apache-2.0
// The record of one source line: ids, texts, references and metadata from JSON; then tokenizing,
// decoding and the checks that all formats have in common.
#include "traces/import/import_record.h"

#include "base/json_text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static void text_fini(dsc_import_text *t)
{
    dsc_tokens_fini(&t->tokens);
    dsc_buffer_fini(&t->built);
}

// Keeps memory up to a limit, because one huge text in every slot of the references would add up.
static void text_reset(dsc_import_text *t)
{
    enum { KEEP_TOKENS = 1 << 16, KEEP_BYTES = 1 << 18 };
    if (t->tokens.capacity > KEEP_TOKENS || t->built.capacity > KEEP_BYTES)
        text_fini(t);
    t->text = (dsc_text_view){0};
    t->has_tokens = false;
    t->tokens.count = 0;
    t->built.length = 0;
}

void dsc_import_record_reset(dsc_import_record *r)
{
    text_reset(&r->prompt);
    text_reset(&r->output);
    r->id.length = 0;
    r->references = r->turns = 0;
    r->recorded_tokens = -1;
    r->recorded_s = 0;
    r->steps_added = r->steps_unknown = 0;
    r->model = NULL;
    r->other_model = r->is_lossy = r->tools_left_out = r->is_unanswered = false;
    r->reference_limit = SIZE_MAX;
    dsc_import_columns_reset(r);
    r->eos = DSC_IMPORT_EOS_NEVER;
    r->eos_appended = r->prompt_is_complete = false;
    json_decref(r->kept);
    r->kept = NULL;
    free(r->metadata);
    r->metadata = NULL;
}

void dsc_import_record_fini(dsc_import_record *r)
{
    text_fini(&r->prompt);
    text_fini(&r->output);
    for (size_t i = 0; i < r->reference_capacity; i++)
        text_fini(&r->reference[i]);
    free(r->reference);
    free(r->kind);
    free(r->turn);
    dsc_import_columns_fini(r);
    json_decref(r->kept);
    free(r->metadata);
    dsc_buffer_fini(&r->id);
    *r = (dsc_import_record){0};
}

static size_t text_bytes(const dsc_import_text *t)
{
    return t->tokens.capacity * sizeof *t->tokens.id + t->built.capacity;
}

size_t dsc_import_record_bytes(const dsc_import_record *r)
{
    size_t bytes = (r->metadata ? strlen(r->metadata) : 0) + r->id.capacity +
                   text_bytes(&r->prompt) + text_bytes(&r->output) +
                   r->reference_capacity * sizeof *r->reference +
                   r->kind_capacity * sizeof *r->kind + r->turn_capacity * sizeof *r->turn;
    for (size_t i = 0; i < r->reference_capacity; i++)
        bytes += text_bytes(&r->reference[i]);
    for (int c = 0; c < r->columns; c++)
        bytes += r->column[c].capacity * dsc_dtype_bytes(dsc_columns[c].dtype);
    return bytes;
}

int dsc_import_token_ids(const json_t *array, int32_t vocab_size, const char *field,
                         dsc_import_text *out, dsc_error *err)
{
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array of token ids", err, "%s", field);
    out->has_tokens = true;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *v = json_array_get(array, i);
        if (!json_is_integer(v))
            return dsc_import_wrong_type(v, "a token id (an integer)", err, "%s[%zu]", field, i);
        json_int_t n = json_integer_value(v);
        if (n < 0 || n >= vocab_size)
            return dsc_fail(err, DSC_EINPUT,
                            "field '%s[%zu]' is %lld; token ids of this vocabulary are 0 to %d",
                            field, i, (long long)n, vocab_size - 1);
        int32_t id = (int32_t)n;
        int rc = dsc_tokens_append(&out->tokens, &id, 1, err);
        if (rc)
            return rc;
    }
    return DSC_OK;
}

int dsc_import_id(dsc_import_record *r, const json_t *value, dsc_error *err)
{
    if (json_is_integer(value))
        return dsc_buffer_printf(&r->id, err, "%lld", (long long)json_integer_value(value));
    if (!json_is_string(value))
        return dsc_import_wrong_type(value, "a string or an integer", err, "id");
    const char *s = json_string_value(value);
    size_t n = json_string_length(value);
    if (n == 0)
        return dsc_fail(err, DSC_EINPUT, "field 'id' is empty");
    if (n > DSC_IMPORT_ID_MAX)
        return dsc_fail(err, DSC_EINPUT, "field 'id' has %zu bytes; the limit is %d", n,
                        DSC_IMPORT_ID_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return dsc_fail(err, DSC_EINPUT,
                            "field 'id' must not have a control character (0x%02x)",
                            (unsigned char)s[i]);
    return dsc_buffer_append(&r->id, s, n, err);
}

int dsc_import_add_reference(dsc_import_record *r, dsc_import_text **out, dsc_error *err)
{
    size_t old = r->reference_capacity;
    int rc = dsc_resize(&r->reference, &r->reference_capacity, r->references + 1, err);
    if (r->reference_capacity > old)
        memset(r->reference + old, 0, (r->reference_capacity - old) * sizeof *r->reference);
    if (!rc)
        rc = dsc_resize(&r->kind, &r->kind_capacity, r->references + 1, err);
    if (rc)
        return rc;
    r->kind[r->references] = DSC_REFERENCE_DOCUMENT;
    *out = &r->reference[r->references++];
    text_reset(*out);
    return DSC_OK;
}

int dsc_import_add_turn(dsc_import_record *r, size_t begin, size_t length, int64_t recorded,
                        bool may_end, dsc_error *err)
{
    int rc = dsc_resize(&r->turn, &r->turn_capacity, r->turns + 1, err);
    if (rc)
        return rc;
    r->turn[r->turns++] = (dsc_import_turn){begin, length, recorded, may_end};
    r->recorded_tokens = (r->recorded_tokens < 0 ? 0 : r->recorded_tokens) + recorded;
    return DSC_OK;
}

int dsc_import_put(dsc_import_text *t, const char *before, dsc_text_view text, dsc_error *err)
{
    int rc = dsc_buffer_puts(&t->built, before, err);
    if (!rc)
        rc = dsc_buffer_append(&t->built, text.bytes, (size_t)text.length, err);
    t->text = (dsc_text_view){t->built.data, (int64_t)t->built.length};
    return rc;
}

int dsc_import_keep(dsc_import_record *r, const json_t *from, const char *const *names,
                    dsc_error *err)
{
    if (!r->kept)
        r->kept = json_object();
    bool failed = !r->kept;
    for (; *names && !failed; names++) {
        json_t *value = json_object_get(from, *names);
        failed = value && json_object_set(r->kept, *names, value);
    }
    return failed ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
}

// Replaces every byte that is not UTF-8 (a token may end inside a character) by U+FFFD, so that the
// text of a trace is always UTF-8 and can be exported.
static int repair_utf8(dsc_buffer *b, dsc_error *err)
{
    int64_t length = (int64_t)b->length, done = 0, bad = dsc_bad_utf8(b->data, length);
    if (bad < 0)
        return DSC_OK;
    dsc_buffer fixed = {0};
    int rc = DSC_OK;
    for (; !rc && bad >= 0; bad = dsc_bad_utf8(b->data + done, length - done)) {
        rc = dsc_buffer_append(&fixed, b->data + done, (size_t)bad, err);
        if (!rc)
            rc = dsc_buffer_puts(&fixed, "\xef\xbf\xbd", err);
        done += bad + 1;
    }
    if (!rc)
        rc = dsc_buffer_append(&fixed, b->data + done, (size_t)(length - done), err);
    dsc_buffer_fini(b);
    *b = fixed;
    return rc;
}

int dsc_import_decode(const dsc_tokenizer *tokenizer, const int32_t *id, size_t count,
                      dsc_buffer *out, dsc_error *err)
{
    int rc = dsc_buffer_append(out, "", 0, err);
    if (!rc)
        rc = dsc_decode(tokenizer, id, count, true, out, err);
    return rc ? rc : repair_utf8(out, err);
}

static int no_tokenizer(dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE, "text requires a tokenizer; add --tokenizer tokenizer.json");
}

static int finish_text(dsc_import_text *t, const dsc_tokenizer *tokenizer, dsc_encoder *encoder,
                       bool add_special, dsc_error *err)
{
    if (!t->has_tokens) {
        if (!encoder)
            return no_tokenizer(err);
        return dsc_encode(encoder, t->text.bytes, (size_t)t->text.length, add_special, &t->tokens,
                          err);
    }
    if (t->text.bytes || !tokenizer)
        return DSC_OK;
    int rc = dsc_import_decode(tokenizer, t->tokens.id, t->tokens.count, &t->built, err);
    t->text = (dsc_text_view){t->built.data, (int64_t)t->built.length};
    return rc;
}

// The source does not record how a turn ended, so a turn ends with the EOS token when the source
// counted one token more than its text has. (In Spec-Bench, 1663 of 1680 turns have one more; 13
// have equal counts, because a length limit ended them.)
static int finish_turns(dsc_import_record *r, dsc_encoder *encoder, const dsc_ends *ends,
                        dsc_error *err)
{
    dsc_tokens *tokens = &r->output.tokens;
    const int32_t eos = ends ? ends->eos : -1;
    if (!encoder)
        return no_tokenizer(err);
    int rc = DSC_OK;
    for (size_t i = 0; i < r->turns && !rc; i++) {
        const dsc_import_turn *t = &r->turn[i];
        size_t before = tokens->count;
        rc = dsc_encode(encoder, r->output.text.bytes + t->begin, t->length, false, tokens, err);
        if (!rc && eos >= 0 && t->may_end && t->recorded == (int64_t)(tokens->count - before) + 1) {
            rc = dsc_tokens_append(tokens, &eos, 1, err);
            r->eos_appended = true;
        }
    }
    return rc;
}

// A server that keeps special tokens in the text has written the EOS token itself.
static int append_eos(dsc_import_record *r, const dsc_ends *ends, dsc_error *err)
{
    dsc_tokens *t = &r->output.tokens;
    if (r->output.has_tokens || r->eos == DSC_IMPORT_EOS_NEVER ||
        (ends && t->count && dsc_ends_have(ends, t->id[t->count - 1])))
        return DSC_OK;
    r->eos_appended = ends && ends->eos >= 0;
    if (r->eos_appended)
        return dsc_tokens_append(t, &ends->eos, 1, err);
    if (r->eos == DSC_IMPORT_EOS_IF_KNOWN)
        return DSC_OK;
    return dsc_fail(
        err, DSC_EUSAGE,
        "this format ends every output with the EOS token, but the tokenizer does not define one; "
        "name it with --eos");
}

static int check_rows(const dsc_import_record *r, dsc_model_side side, dsc_error *err)
{
    const size_t rows = r->column[dsc_row_column(side, COL_DRAFT_ROW_TAIL)].count;
    const char *field = dsc_rows_name(side, DSC_ROWS_LISTED);
    if (!r->recorded.rows[side])
        return DSC_OK;
    if (!r->output.has_tokens)
        return dsc_fail(err, DSC_EINPUT, "field '%s' requires the output as token ids", field);
    if (rows != r->output.tokens.count)
        return dsc_fail(err, DSC_EINPUT, "field '%s' has %zu rows, but the output has %zu tokens",
                        field, rows, r->output.tokens.count);
    return DSC_OK;
}

int dsc_import_record_finish(dsc_import_record *r, const dsc_tokenizer *tokenizer,
                             dsc_encoder *encoder, const dsc_ends *ends, dsc_error *err)
{
    int rc = finish_text(&r->prompt, tokenizer, encoder, !r->prompt_is_complete, err);
    if (rc)
        return dsc_error_prefix(err, rc, "field 'prompt'");
    if (r->turns)
        rc = finish_turns(r, encoder, ends, err);
    else
        rc = finish_text(&r->output, tokenizer, encoder, false, err);
    if (rc)
        return dsc_error_prefix(err, rc, "field 'output'");
    rc = append_eos(r, ends, err);
    for (size_t i = 0; !rc && i < r->references; i++) {
        dsc_import_text *t = &r->reference[i];
        rc = finish_text(t, tokenizer, encoder, false, err);
        if (rc)
            return dsc_error_prefix(err, rc, "field 'references[%zu]'", i);
        if (t->tokens.count > r->reference_limit)
            t->tokens.count = r->reference_limit;
    }
    if (!rc)
        rc = dsc_import_columns_finish(r, err);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        rc = check_rows(r, side, err);
    return rc;
}

int dsc_import_record_seal(dsc_import_record *r, dsc_error *err)
{
    if (!r->kept)
        return DSC_OK;
    r->is_lossy = json_object_get(r->kept, "lossy");
    r->tools_left_out = json_object_get(r->kept, "tools_left_out");
    r->is_unanswered = json_object_get(r->kept, "unanswered_turn");
    r->metadata = dsc_json_dump(r->kept, JSON_COMPACT);
    json_decref(r->kept);
    r->kept = NULL;
    return r->metadata ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
}

// SPDX-License-Identifier: Apache-2.0
// Reads prompts from JSON lines or the command line, tokenizes them and checks their token ids.
#include "live/program/prompts.h"

#include "traces/import/import_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_prompt(live_prompt *q)
{
    for (int64_t r = 0; q->reference_text && r < q->references; r++)
        free(q->reference_text[r]);
    void *const list[] = {q->id, q->text, q->token, q->offset, q->kind, q->reference_text};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
    *q = (live_prompt){0};
}

static int keep_text(char **out, dsc_text_view text, dsc_error *err)
{
    *out = NULL;
    return text.bytes ? dsc_strndup(out, text.bytes, (size_t)text.length, err) : DSC_OK;
}

int live_prompt_allocate(live_prompt *q, size_t tokens, size_t references, dsc_error *err)
{
    int rc = dsc_new(&q->token, tokens, err);
    if (!rc)
        rc = dsc_new(&q->offset, references + 1, err);
    if (!rc)
        rc = dsc_new(&q->kind, references, err);
    return rc ? rc : dsc_new(&q->reference_text, references, err);
}

static int allocate(live_prompt *q, const dsc_import_record *r, dsc_error *err)
{
    size_t tokens = r->prompt.tokens.count;
    for (size_t i = 0; i < r->references; i++)
        tokens += r->reference[i].tokens.count;
    return live_prompt_allocate(q, tokens, r->references, err);
}

static void put_tokens(int32_t *to, const dsc_tokens *t)
{
    if (t->count)
        memcpy(to, t->id, t->count * sizeof *to);
}

static int fill(live_prompt *q, const dsc_import_record *r, dsc_error *err)
{
    q->references = (int64_t)r->references;
    int rc = allocate(q, r, err);
    if (!rc)
        rc = keep_text(&q->text, r->prompt.text, err);
    if (rc)
        return rc;
    q->prompt = (int64_t)r->prompt.tokens.count;
    put_tokens(q->token, &r->prompt.tokens);
    for (int64_t i = 0; i < q->references && !rc; i++) {
        const dsc_import_text *t = &r->reference[i];
        put_tokens(q->token + q->prompt + q->offset[i], &t->tokens);
        q->offset[i + 1] = q->offset[i] + (int64_t)t->tokens.count;
        q->kind[i] = (uint8_t)r->kind[i];
        rc = keep_text(&q->reference_text[i], t->text, err);
    }
    return rc;
}

// A tokenizer may contain tokens for which the model has no embedding row.
static int check_tokens(const dsc_tokens *t, const char *field, int64_t vocab, dsc_error *err)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->id[i] >= vocab)
            return dsc_fail(err, DSC_EINPUT,
                            "'%s': token %" PRId32 " of tokenizer.json is not in the target's "
                            "vocabulary of %" PRId64,
                            field, t->id[i], vocab);
    return DSC_OK;
}

static int check_record(const dsc_import_record *r, int64_t vocab, dsc_error *err)
{
    int rc = check_tokens(&r->prompt.tokens, "prompt", vocab, err);
    for (size_t i = 0; i < r->references && !rc; i++)
        rc = check_tokens(&r->reference[i].tokens, "references", vocab, err);
    return rc;
}

// Appends the prompt of a record.
static int append(live_prompts *p, const dsc_import_record *r, int64_t line, dsc_error *err)
{
    char number[32];
    int rc = dsc_resize(&p->item, &p->capacity, p->count + 1, err);
    if (rc)
        return rc;
    live_prompt *q = &p->item[p->count];
    *q = (live_prompt){.line = line};
    snprintf(number, sizeof number, "%zu", p->count);
    rc = r->id.length ? dsc_strndup(&q->id, r->id.data, r->id.length, err)
                      : dsc_strndup(&q->id, number, strlen(number), err);
    if (!rc)
        rc = fill(q, r, err);
    if (rc) {
        free_prompt(q);
        return rc;
    }
    p->count++;
    p->longest = q->prompt > p->longest ? q->prompt : p->longest;
    return DSC_OK;
}

static int read_line(live_prompts *p, const dsc_line *line, dsc_import_record *r,
                     const dsc_tokenizer *tokenizer, dsc_encoder *encoder, int64_t vocab,
                     const char *name, dsc_error *err)
{
    json_t *json;
    dsc_import_record_reset(r);
    int rc = dsc_import_parse(&json, line, name, err);
    if (rc)
        return rc;
    rc = dsc_import_prompt_read(json, (int32_t)vocab, r, err);
    r->output.has_tokens = true; // the record has none
    if (!rc)
        rc = dsc_import_record_finish(r, tokenizer, encoder, -1, err);
    if (!rc && !r->prompt.tokens.count)
        rc = dsc_fail(err, DSC_EINPUT, "field 'prompt' contains no token");
    if (!rc)
        rc = check_record(r, vocab, err);
    if (rc ==
        DSC_EUSAGE) // text without a tokenizer: the folder lacks it, and --tokenizer would not help
        rc = dsc_fail(err, DSC_EINPUT,
                      "text, but the target has no tokenizer.json: token ids "
                      "expected");
    if (rc)
        rc = dsc_error_prefix(err, rc, "%s:%" PRId64, name, line->number);
    else
        rc = append(p, r, line->number, err);
    json_decref(json);
    return rc;
}

int live_prompts_read(live_prompts *p, const char *path, int64_t skip, size_t most,
                      const dsc_tokenizer *tokenizer, int64_t vocab, dsc_error *err)
{
    dsc_input *in = NULL;
    dsc_encoder *encoder = NULL;
    dsc_import_record record = {0};
    dsc_line line = {0};
    int rc = dsc_input_open(&in, path, err);
    if (!rc && tokenizer)
        rc = dsc_encoder_new(&encoder, tokenizer, err);
    p->source = path;
    while (!rc && (!most || p->count < most)) {
        rc = dsc_input_line(in, &line, err);
        if (rc || !line.bytes)
            break;
        rc = read_line(p, &line, &record, tokenizer, encoder, vocab, dsc_input_name(in), err);
        if (!rc && p->count && p->skipped < skip) {
            free_prompt(&p->item[--p->count]);
            p->longest = 0;
            p->skipped++;
        }
    }
    if (!rc && !p->count)
        rc = p->skipped ? dsc_fail(err, DSC_EINPUT, "%s: %" PRId64 " prompts, all of them skipped",
                                   dsc_input_name(in), p->skipped)
                        : dsc_fail(err, DSC_EINPUT, "%s: contains no prompt", dsc_input_name(in));
    dsc_import_record_fini(&record);
    dsc_encoder_free(encoder);
    dsc_input_close(in);
    return rc;
}

int live_prompts_add(live_prompts *p, const char *text, const dsc_tokenizer *tokenizer,
                     int64_t vocab, dsc_error *err)
{
    dsc_import_record record = {0};
    dsc_encoder *encoder = NULL;
    if (!tokenizer)
        return dsc_fail(err, DSC_EUSAGE,
                        "-p: the target has no tokenizer.json: --prompts FILE with token ids "
                        "expected");
    dsc_import_record_reset(&record);
    record.prompt.text = (dsc_text_view){text, (int64_t)strlen(text)};
    record.output.has_tokens = true;
    int rc = dsc_encoder_new(&encoder, tokenizer, err);
    if (!rc)
        rc = dsc_import_record_finish(&record, tokenizer, encoder, -1, err);
    if (!rc && !record.prompt.tokens.count)
        rc = dsc_fail(err, DSC_EUSAGE, "-p: a prompt contains no token");
    if (!rc)
        rc = check_record(&record, vocab, err);
    if (!rc)
        rc = append(p, &record, 0, err);
    dsc_encoder_free(encoder);
    dsc_import_record_fini(&record);
    return rc;
}

void live_prompts_free(live_prompts *p)
{
    for (size_t i = 0; i < p->count; i++)
        free_prompt(&p->item[i]);
    for (size_t i = 0; i < p->shards; i++)
        dsc_shard_close(p->shard[i]);
    free(p->shard);
    free(p->item);
    *p = (live_prompts){0};
}

dsc_request live_prompts_request(const live_prompts *p, size_t i)
{
    const live_prompt *q = &p->item[i];
    dsc_request r = q->recorded;
    r.index = p->skipped + (int64_t)i;
    r.id = (dsc_text_view){q->id, (int64_t)strlen(q->id)};
    r.prompt = (dsc_token_view){q->token, q->prompt};
    r.output = (dsc_token_view){q->output ? q->token + q->prompt + q->offset[q->references] : NULL,
                                q->output};
    r.references = q->references;
    r.reference_offset = q->offset;
    r.reference_token = q->token + q->prompt;
    r.reference_kind = q->kind;
    r.prompt_text = (dsc_text_view){q->text, q->text ? (int64_t)strlen(q->text) : 0};
    return r;
}

void live_prompts_location(const live_prompts *p, size_t i, char *location, size_t size)
{
    if (p->item[i].line)
        snprintf(location, size, "%s:%" PRId64, p->source, p->item[i].line);
    else
        snprintf(location, size, "prompt %zu", i + 1);
}

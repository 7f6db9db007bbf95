// SPDX-License-Identifier: Apache-2.0
// Reads prompts from a file or the command line (traces/import/import_prompt.h), tokenizes them and
// checks their token ids; or takes the requests of a trace as prompts with known outputs.
#include "live/program/prompts.h"

#include "traces/import/import_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int copy_text(live_prompts *p, dsc_text_view *out, dsc_text_view text, dsc_error *err)
{
    char *bytes = NULL;
    int rc = text.bytes ? dsc_arena_new(&p->arena, &bytes, (size_t)text.length, err) : DSC_OK;
    if (!rc && text.length)
        memcpy(bytes, text.bytes, (size_t)text.length);
    *out = (dsc_text_view){bytes, text.length};
    return rc;
}

static int32_t *copy_tokens(int32_t *to, const dsc_tokens *t)
{
    if (t->count)
        memcpy(to, t->id, t->count * sizeof *to);
    return to + t->count;
}

// Copies the references of a record, whose tokens begin at `token`.
static int copy_references(live_prompts *p, live_prompt *q, const dsc_import_record *r,
                           int32_t *token, dsc_error *err)
{
    dsc_text_view *text;
    int64_t *offset;
    uint8_t *kind;
    int rc = dsc_arena_new(&p->arena, &offset, r->references + 1, err);
    if (!rc)
        rc = dsc_arena_new(&p->arena, &kind, r->references, err);
    if (!rc)
        rc = dsc_arena_new(&p->arena, &text, r->references, err);
    if (rc)
        return rc;
    offset[0] = 0;
    q->reference_text = text;
    q->request.reference_token = token;
    q->request.reference_offset = offset;
    q->request.reference_kind = kind;
    for (size_t i = 0; i < r->references && !rc; i++) {
        token = copy_tokens(token, &r->reference[i].tokens);
        offset[i + 1] = token - q->request.reference_token;
        kind[i] = (uint8_t)r->kind[i];
        rc = copy_text(p, &text[i], r->reference[i].text, err);
    }
    return rc;
}

// Appends the prompt of a record.
static int append(live_prompts *p, const dsc_import_record *r, int64_t line, dsc_error *err)
{
    char number[32];
    size_t tokens = r->prompt.tokens.count;
    int32_t *token;
    for (size_t i = 0; i < r->references; i++)
        tokens += r->reference[i].tokens.count;
    int rc = dsc_resize(&p->item, &p->capacity, p->count + 1, err);
    if (!rc)
        rc = dsc_arena_new(&p->arena, &token, tokens, err);
    if (rc)
        return rc;
    live_prompt *q = &p->item[p->count];
    *q = (live_prompt){.request = {.index = p->skipped + (int64_t)p->count,
                                   .prompt = {token, (int64_t)r->prompt.tokens.count},
                                   .references = (int64_t)r->references},
                       .line = line};
    snprintf(number, sizeof number, "%zu", p->count);
    const char *id = r->id.length ? r->id.data : number;
    rc = copy_text(p, &q->request.id, (dsc_text_view){id, (int64_t)strlen(id)}, err);
    if (!rc)
        rc = copy_text(p, &q->request.prompt_text, r->prompt.text, err);
    if (!rc)
        rc = copy_references(p, q, r, copy_tokens(token, &r->prompt.tokens), err);
    if (rc)
        return rc;
    p->count++;
    if (q->request.prompt.count > p->longest)
        p->longest = q->request.prompt.count;
    return DSC_OK;
}

// A tokenizer may contain tokens for which the model has no embedding row.
static int check_tokens(const live_prompts *p, const dsc_tokens *t, const char *field,
                        dsc_error *err)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->id[i] >= p->vocab)
            return dsc_fail(err, DSC_EINPUT,
                            "'%s': token %" PRId32 " of tokenizer.json is not in the target's "
                            "vocabulary of %" PRId64,
                            field, t->id[i], p->vocab);
    return DSC_OK;
}

// Tokenizes and checks the texts of a record, which has no output.
static int finish_record(const live_prompts *p, dsc_import_record *r, dsc_encoder *encoder,
                         dsc_error *err)
{
    r->output.has_tokens = true;
    int rc = dsc_import_record_finish(r, p->tokenizer, encoder, NULL, err);
    if (!rc)
        rc = check_tokens(p, &r->prompt.tokens, "prompt", err);
    for (size_t i = 0; i < r->references && !rc; i++)
        rc = check_tokens(p, &r->reference[i].tokens, "references", err);
    return rc;
}

// Appends the prompt of a line, or skips it.
static int read_line(live_prompts *p, const dsc_line *line, dsc_import_record *r,
                     dsc_encoder *encoder, const char *name, dsc_error *err)
{
    json_t *json;
    dsc_import_record_reset(r);
    int rc = dsc_import_parse(&json, line, name, err);
    if (rc)
        return rc;
    rc = dsc_prompt_read(p->reader, json, r, err);
    if (!rc)
        rc = finish_record(p, r, encoder, err);
    if (!rc && !r->prompt.tokens.count)
        rc = dsc_fail(err, DSC_EINPUT, "field 'prompt' contains no token");
    if (rc ==
        DSC_EUSAGE) // text without a tokenizer: the folder lacks it, and --tokenizer would not help
        rc = dsc_fail(err, DSC_EINPUT,
                      "text, but the target has no tokenizer.json: token ids "
                      "expected");
    if (rc)
        rc = dsc_error_prefix(err, rc, "%s:%" PRId64, name, line->number);
    else if (p->skipped < p->skip)
        p->skipped++;
    else
        rc = append(p, r, line->number, err);
    json_decref(json);
    return rc;
}

// Opens the reader when it is needed first.
static int open_reader(live_prompts *p, dsc_error *err)
{
    const dsc_prompt_options options = {.map = p->map,
                                        .chat_template = p->chat_template,
                                        .tokenizer_spec = p->tokenizer_spec,
                                        .vocab_size = (int32_t)p->vocab};
    return p->reader ? DSC_OK : dsc_prompt_reader_new(&p->reader, &options, err);
}

int live_prompts_read(live_prompts *p, const char *path, dsc_error *err)
{
    dsc_input *in = NULL;
    dsc_import_source source = {0};
    dsc_encoder *encoder = NULL;
    dsc_import_record record = {0};
    dsc_line line = {0};
    int rc = open_reader(p, err);
    if (!rc)
        rc = dsc_input_open(&in, path, err);
    if (!rc && p->tokenizer)
        rc = dsc_encoder_new(&encoder, p->tokenizer, err);
    p->source = path;
    source.in = in;
    while (!rc && (!p->most || p->count < p->most)) {
        rc = dsc_import_source_next(&source, true, &line, err);
        if (rc || !line.bytes)
            break;
        rc = read_line(p, &line, &record, encoder, dsc_input_name(in), err);
    }
    if (!rc && !p->count)
        rc = p->skipped ? dsc_fail(err, DSC_EINPUT, "%s: %" PRId64 " prompts, all of them skipped",
                                   dsc_input_name(in), p->skipped)
                        : dsc_fail(err, DSC_EINPUT, "%s: contains no prompt", dsc_input_name(in));
    dsc_import_record_fini(&record);
    dsc_encoder_free(encoder);
    dsc_import_source_fini(&source);
    dsc_input_close(in);
    return rc;
}

int live_prompts_add(live_prompts *p, const char *text, dsc_error *err)
{
    dsc_import_record record = {0};
    dsc_encoder *encoder = NULL;
    if (!p->tokenizer)
        return dsc_fail(err, DSC_EUSAGE,
                        "-p: the target has no tokenizer.json: --prompts FILE with token ids "
                        "expected");
    dsc_import_record_reset(&record);
    int rc = open_reader(p, err);
    if (!rc)
        rc = dsc_prompt_read_text(p->reader, text, &record, err);
    if (rc == DSC_EINPUT) {
        dsc_error_prefix(err, rc, "-p");
        rc = err->status = DSC_EUSAGE;
    }
    if (!rc)
        rc = dsc_encoder_new(&encoder, p->tokenizer, err);
    if (!rc)
        rc = finish_record(p, &record, encoder, err);
    if (!rc && !record.prompt.tokens.count)
        rc = dsc_fail(err, DSC_EUSAGE, "-p: a prompt contains no token");
    if (!rc)
        rc = append(p, &record, 0, err);
    dsc_encoder_free(encoder);
    dsc_import_record_fini(&record);
    return rc;
}

// --- recorded requests ---------------------------------------------------------------------------

static int check_recorded(const live_prompts *p, const dsc_trace *t, const dsc_request *q,
                          const char *what, dsc_token_view tokens, dsc_error *err)
{
    for (int64_t i = 0; i < tokens.count; i++)
        if (tokens.id[i] >= p->vocab)
            return dsc_fail(
                err, DSC_EINPUT,
                "%.300s: request %" PRId64 ": token %" PRId32 " of the %s is not in "
                "the target's vocabulary of %" PRId64 " (the trace's is %" PRId32 ", of %.100s)",
                dsc_trace_path(t), q->index, tokens.id[i], what, p->vocab,
                dsc_trace_get_info(t)->vocab_size, dsc_trace_get_info(t)->tokenizer_name);
    return DSC_OK;
}

static int add_recorded(live_prompts *p, const dsc_trace *t, dsc_request *q,
                        const dsc_config *drafted, dsc_error *err)
{
    int rc = check_recorded(p, t, q, "prompt", q->prompt, err);
    if (!rc && drafted && drafted->drafter->view)
        rc = drafted->drafter->view(drafted, dsc_trace_get_info(t), q, &p->arena, err);
    if (!rc)
        rc = check_recorded(p, t, q, "output", q->output, err);
    if (!rc)
        rc = dsc_resize(&p->item, &p->capacity, p->count + 1, err);
    if (rc)
        return rc;
    const dsc_request tokens = {.id = q->id,
                                .prompt = q->prompt,
                                .output = q->output,
                                .references = q->references,
                                .reference_offset = q->reference_offset,
                                .reference_token = q->reference_token,
                                .reference_kind = q->reference_kind};
    live_prompt *next = &p->item[p->count];
    *next = (live_prompt){.request = drafted ? *q : tokens};
    next->request.index = p->skipped + (int64_t)p->count++;
    next->request.prompt_text = (dsc_text_view){NULL, 0};
    p->longest = q->prompt.count > p->longest ? q->prompt.count : p->longest;
    return DSC_OK;
}

int live_prompts_replay(live_prompts *p, const dsc_trace *trace, const dsc_config *drafted,
                        dsc_error *err)
{
    int rc = DSC_OK;
    p->source = dsc_trace_path(trace);
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !rc && (!p->most || p->count < p->most);
         s++) {
        rc = dsc_resize(&p->shard, &p->shard_capacity, p->shards + 1, err);
        if (!rc)
            rc = dsc_shard_open(&p->shard[p->shards], trace, s, err);
        if (rc)
            return rc;
        const dsc_shard *shard = p->shard[p->shards++];
        for (int64_t i = 0; i < dsc_shard_requests(shard) && !rc; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            if (!q.output.count || (p->most && p->count == p->most))
                continue;
            if (p->skipped < p->skip)
                p->skipped++;
            else
                rc = add_recorded(p, trace, &q, drafted, err);
        }
    }
    return rc || !p->skipped || p->count
               ? rc
               : dsc_fail(err, DSC_EUSAGE, "%.300s: %" PRId64 " outputs, all of them skipped",
                          p->source, p->skipped);
}

int live_prompts_check(const live_prompts *p, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t s = 0; s < p->shards && !rc; s++)
        rc = dsc_shard_check(p->shard[s], err);
    return rc;
}

void live_prompts_free(live_prompts *p)
{
    for (size_t i = 0; i < p->shards; i++)
        dsc_shard_close(p->shard[i]);
    free(p->shard);
    free(p->item);
    dsc_arena_fini(&p->arena);
    dsc_prompt_reader_free(p->reader);
    *p = (live_prompts){0};
}

void live_prompts_location(const live_prompts *p, size_t i, char *location, size_t size)
{
    if (p->item[i].line)
        snprintf(location, size, "%s:%" PRId64, p->source, p->item[i].line);
    else
        snprintf(location, size, "prompt %zu", i + 1);
}

// SPDX-License-Identifier: Apache-2.0
// Reads corpora: requests of a trace, or lines of text and JSON lines through a tokenizer.
#include "sim/model/corpus.h"

#include "traces/import/import_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The new sequence begins at start[count]; its tokens follow.
static int append(dsc_corpus *c, const int32_t *token, int64_t count, dsc_error *err)
{
    int64_t at = c->start[c->count + 1];
    int rc = dsc_resize(&c->token, &c->token_capacity, (size_t)(at + count), err);
    if (rc)
        return rc;
    if (count)
        memcpy(c->token + at, token, (size_t)count * sizeof *token);
    c->start[c->count + 1] = at + count;
    return DSC_OK;
}

static int begin_sequence(dsc_corpus *c, dsc_error *err)
{
    int rc = dsc_resize(&c->start, &c->start_capacity, (size_t)c->count + 2, err);
    if (rc)
        return rc;
    if (c->count == 0)
        c->start[0] = 0;
    c->start[c->count + 1] = c->start[c->count];
    return append(c, &(int32_t){-1}, 1, err);
}

static void end_sequence(dsc_corpus *c)
{
    c->count += dsc_corpus_sequence(c, c->count).count >= 2;
}

static int copy_text(char **out, const char *s, dsc_error *err)
{
    return dsc_strndup(out, s, strlen(s), err);
}

// --- a trace -----------------------------------------------------------------------------------

static int add_request(void *context, const dsc_request *q, dsc_error *err)
{
    dsc_corpus *c = context;
    int rc = begin_sequence(c, err);
    if (!rc)
        rc = append(c, q->prompt.id, q->prompt.count, err);
    if (!rc)
        rc = append(c, q->output.id, q->output.count, err);
    if (!rc)
        end_sequence(c);
    return rc;
}

static int read_trace(dsc_corpus *c, const char *path, dsc_error *err)
{
    dsc_trace *t;
    int rc = dsc_trace_open(&t, path, err);
    if (rc)
        return rc;
    const dsc_trace_info *info = dsc_trace_get_info(t);
    c->vocab_size = info->vocab_size;
    c->end_token = info->eos_token;
    rc = copy_text(&c->tokenizer_name, info->tokenizer_name, err);
    if (!rc)
        rc = copy_text(&c->tokenizer_sha256, info->tokenizer_sha256, err);
    if (!rc)
        rc = dsc_trace_each(t, add_request, c, err);
    dsc_trace_close(t);
    return rc;
}

// --- lines -------------------------------------------------------------------------------------

typedef struct line_reader {
    dsc_corpus *corpus;
    dsc_encoder *encoder;
    dsc_tokens tokens;
    bool json;
} line_reader;

// Appends the tokens of a text to the sequence; the first text gets the special tokens.
static int add_text(line_reader *r, const char *text, size_t length, dsc_error *err)
{
    dsc_corpus *c = r->corpus;
    bool first = c->start[c->count + 1] == c->start[c->count] + 1;
    r->tokens.count = 0;
    int rc = dsc_encode(r->encoder, text, length, first, &r->tokens, err);
    return rc ? rc : append(c, r->tokens.id, (int64_t)r->tokens.count, err);
}

static int add_end(line_reader *r, dsc_error *err)
{
    dsc_corpus *c = r->corpus;
    dsc_token_view s = dsc_corpus_sequence(c, c->count);
    if (c->end_token < 0 || (s.count && s.id[s.count - 1] == c->end_token))
        return DSC_OK;
    return append(c, &c->end_token, 1, err);
}

// The forms of an object; the first one whose first field exists applies.
static const char *const forms[][2] = {
    {"text", NULL}, {"prompt", "output"}, {"question", "answer"}, {"instruction", "output"}};

static int add_object(line_reader *r, const json_t *object, dsc_error *err)
{
    enum { FORMS = sizeof forms / sizeof *forms };
    size_t form = 0;
    int rc = DSC_OK;
    while (form < FORMS && !json_object_get(object, forms[form][0]))
        form++;
    if (form == FORMS)
        return dsc_fail(err, DSC_EINPUT,
                        "the line must be an object with the field 'text', 'prompt', 'question' or "
                        "'instruction' (import other formats, and train on the trace)");
    for (int f = 0; f < 2 && forms[form][f] && !rc; f++) {
        dsc_text_view text;
        const char *field = forms[form][f];
        rc = dsc_import_string(&text, json_object_get(object, field), err, "%s", field);
        if (!rc)
            rc = add_text(r, text.bytes, (size_t)text.length, err);
    }
    return rc;
}

static int add_line(line_reader *r, const dsc_line *line, const char *name, dsc_error *err)
{
    json_t *object = NULL;
    int rc = begin_sequence(r->corpus, err);
    if (!rc && r->json && (rc = dsc_import_parse(&object, line, name, err)))
        return rc; // the message has file, line and column
    if (!rc)
        rc = r->json ? add_object(r, object, err) : add_text(r, line->bytes, line->length, err);
    if (!rc)
        rc = add_end(r, err);
    json_decref(object);
    if (rc)
        return dsc_error_prefix(err, rc, "%s:%" PRId64, name, line->number);
    end_sequence(r->corpus);
    return DSC_OK;
}

static int read_lines(dsc_corpus *c, const char *path, const dsc_tokenizer *tokenizer,
                      dsc_error *err)
{
    line_reader r = {.corpus = c};
    dsc_input *in = NULL;
    dsc_line line = {.bytes = ""};
    c->vocab_size = dsc_tokenizer_vocab_size(tokenizer);
    c->end_token = dsc_tokenizer_eos(tokenizer);
    int rc = copy_text(&c->tokenizer_name, dsc_tokenizer_name(tokenizer), err);
    if (!rc)
        rc = copy_text(&c->tokenizer_sha256, dsc_tokenizer_sha256(tokenizer), err);
    if (!rc)
        rc = dsc_encoder_new(&r.encoder, tokenizer, err);
    if (!rc)
        rc = dsc_input_open(&in, path, err);
    for (bool first = true; !rc; first = false) {
        rc = dsc_input_line(in, &line, err);
        if (rc || !line.bytes)
            break;
        if (first)
            r.json = line.bytes[0] == '{';
        rc = add_line(&r, &line, dsc_input_name(in), err);
    }
    dsc_input_close(in);
    dsc_encoder_free(r.encoder);
    dsc_tokens_fini(&r.tokens);
    return rc;
}

int dsc_corpus_read(dsc_corpus *c, const char *path, const dsc_tokenizer *tokenizer, dsc_error *err)
{
    struct stat st;
    if (strcmp(path, "-") != 0 && stat(path, &st))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", path);
    bool folder = strcmp(path, "-") != 0 && S_ISDIR(st.st_mode);
    if (!folder && !tokenizer)
        return dsc_fail(err, DSC_EUSAGE, "%s: text needs a tokenizer", path);
    int rc = folder ? read_trace(c, path, err) : read_lines(c, path, tokenizer, err);
    if (!rc && c->count == 0)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the file has no sequence of at least two tokens", path);
    if (rc)
        dsc_corpus_fini(c);
    return rc;
}

void dsc_corpus_fini(dsc_corpus *c)
{
    free(c->token);
    free(c->start);
    free(c->tokenizer_name);
    free(c->tokenizer_sha256);
    *c = (dsc_corpus){0};
}

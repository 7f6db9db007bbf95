// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers: cut a text into pieces, which the next step cuts again; the pieces of the last
// step are the words of the model. Every step depends on one piece alone, so pieces are processed
// depth first, without a list of them.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // memmem
#endif
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

// 1 and s->match_*, 0 or an error: the next match at or after s->from.
static int find_next(tok_scan *s, dsc_error *err)
{
    const tok_step *step = s->step;
    const char *text = s->text.data, *end = text + s->text.length, *p = text + s->from;
    if (step->regex)
        return dsc_tok_regex_find(step->regex, s->matcher, text, s->text.length, s->from,
                                  &s->match_start, &s->match_end, err);
    if (step->kind == TOK_DIGITS || step->kind == TOK_PUNCTUATION) {
        while (p < end) {
            const char *q = p;
            uint32_t c = dsc_tok_next(&q);
            if (step->kind == TOK_DIGITS ? dsc_tok_is_numeric(c) : dsc_tok_is_punctuation(c)) {
                s->match_start = (size_t)(p - text);
                s->match_end = (size_t)(q - text);
                return 1;
            }
            p = q;
        }
        return 0;
    }
    p = step->pattern.data ? memmem(p, (size_t)(end - p), step->pattern.data, step->pattern.length)
                           : NULL;
    if (!p)
        return 0;
    s->match_start = (size_t)(p - text);
    s->match_end = s->match_start + step->pattern.length;
    return 1;
}

// Skips an empty match directly after the last match, as Oniguruma's find_iter does.
static int find_match(tok_scan *s, dsc_error *err)
{
    while (s->from <= s->text.length) {
        int found = find_next(s, err);
        if (found <= 0)
            return found;
        if (s->match_start != s->match_end || !s->matched || s->match_end != s->end)
            return 1;
        if (s->from == s->text.length)
            return 0;
        const char *p = s->text.data + s->from;
        dsc_tok_next(&p);
        s->from = (size_t)(p - s->text.data);
    }
    return 0;
}

int dsc_tok_scan(tok_scan *s, dsc_error *err)
{
    if (s->held) {
        s->held = false;
    } else {
        if (s->end == s->text.length && (!s->matched || s->from > s->text.length))
            return 0;
        int found = s->text.length ? find_match(s, err) : 0;
        if (found < 0)
            return found;
        if (!found) {
            s->from = s->text.length + 1;
            s->start = s->end;
            s->end = s->text.length;
            s->is_match = false;
            return s->start < s->end;
        }
        if (s->match_start > s->end) { // first the text before the match
            s->start = s->end;
            s->end = s->match_start;
            s->is_match = false;
            s->held = true;
            return 1;
        }
    }
    s->start = s->match_start;
    s->end = s->from = s->match_end;
    s->is_match = s->matched = true;
    return 1;
}

static bool joins(enum tok_behavior behavior, bool is_match, bool last_was_match)
{
    switch (behavior) {
    case TOK_CONTIGUOUS: return is_match == last_was_match;
    case TOK_MERGED_WITH_PREVIOUS: return is_match && !last_was_match;
    case TOK_MERGED_WITH_NEXT: return !is_match && last_was_match;
    default: return false;
    }
}

// *out: room for `bytes` bytes in e->rewritten[at]. Pieces that were there before are done, except
// for words in the queue.
static int make_room(dsc_encoder *e, size_t at, size_t bytes, char **out, dsc_error *err)
{
    enum { LEAST = 4096 };
    dsc_buffer *b = &e->rewritten[at];
    int rc = DSC_OK;
    if (b->capacity - b->length < bytes) {
        rc = dsc_tok_encode_waiting(e, err);
        b->length = 0;
        if (!rc)
            rc = dsc_resize(&b->data, &b->capacity, bytes > LEAST ? bytes : LEAST, err);
        if (rc)
            return rc;
    }
    *out = b->data + b->length;
    b->length += bytes;
    return rc;
}

// Spells every byte in the byte-level alphabet (at most two bytes each).
static int spell_bytes(dsc_encoder *e, size_t step, tok_text *text, dsc_error *err)
{
    char *p, spelled[4];
    size_t n = 0;
    for (size_t i = 0; i < text->length; i++)
        n += dsc_tok_utf8_put(spelled, dsc_tok_byte_char((uint8_t)text->data[i]));
    int rc = dsc_tok_grow(&e->growth, &e->t->pre_tokenizers.at[step], text->length, n, err);
    if (!rc)
        rc = make_room(e, 2 * step + 1, 2 * text->length, &p, err);
    if (rc)
        return rc;
    n = 0;
    for (size_t i = 0; i < text->length; i++)
        n += dsc_tok_utf8_put(p + n, dsc_tok_byte_char((uint8_t)text->data[i]));
    *text = (tok_text){p, n};
    return DSC_OK;
}

// Passes text[start, end) of a piece to the next step. A text is split before it is spelled, so the
// pieces are spelled one by one, unless they go to the model, which reads raw bytes.
static int pass_on(dsc_encoder *e, size_t step, tok_piece from, size_t start, size_t end,
                   dsc_error *err)
{
    if (start == end)
        return DSC_OK;
    tok_piece piece = {.text = {from.text.data + start, end - start},
                       .after = from.after + from.text.length - end,
                       .first = from.first && start == 0};
    if (step + 1 == e->t->pre_tokenizers.count)
        return dsc_tok_encode_word(e, piece, err);
    int rc = DSC_OK;
    if (e->t->pre_tokenizers.at[step].kind == TOK_BYTE_LEVEL) {
        rc = spell_bytes(e, step, &piece.text, err);
        piece.after = 0;
    }
    return rc ? rc : dsc_tok_split(e, step + 1, piece, err);
}

// Cuts by a regex whose matches cover the text; each match is a piece.
static int cut_tiles(dsc_encoder *e, size_t step, tok_piece piece, dsc_error *err)
{
    const tok_regex *regex = e->t->pre_tokenizers.at[step].regex;
    bool last_step = step + 1 == e->t->pre_tokenizers.count;
    enum { TILES = 64 };
    size_t end[TILES], from = 0;
    int found = 1, rc = DSC_OK;
    while (found > 0 && !rc) {
        found = dsc_tok_regex_tile(regex, e->matcher, piece.text.data, piece.text.length, from, end,
                                   TILES, err);
        if (last_step && found > 0) {
            rc = dsc_tok_encode_words(e, piece, from, end, (size_t)found, err);
            from = end[found - 1];
            continue;
        }
        for (int i = 0; i < found && !rc; from = end[i++])
            rc = pass_on(e, step, piece, from, end[i], err);
    }
    return found < 0 ? found : rc;
}

static int cut(dsc_encoder *e, size_t step, tok_piece piece, enum tok_behavior behavior,
               dsc_error *err)
{
    const tok_step *s = &e->t->pre_tokenizers.at[step];
    if (behavior == TOK_ISOLATED && s->regex && dsc_tok_regex_tiles(s->regex))
        return cut_tiles(e, step, piece, err);
    tok_scan scan = {.step = s, .matcher = e->matcher, .text = piece.text};
    size_t start = 0, end = 0; // the piece being built
    bool any = false, last = false;
    int rc = DSC_OK, more = 0;
    while (!rc && (more = dsc_tok_scan(&scan, err)) > 0) {
        bool is_match = scan.is_match != s->invert;
        if (any && joins(behavior, is_match, last)) {
            end = scan.end;
        } else {
            if (any && !(behavior == TOK_REMOVED && last))
                rc = pass_on(e, step, piece, start, end, err);
            start = scan.start;
            end = scan.end;
        }
        any = true;
        last = is_match;
    }
    if (rc || more < 0)
        return rc ? rc : more;
    return any && !(behavior == TOK_REMOVED && last) ? pass_on(e, step, piece, start, end, err)
                                                     : DSC_OK;
}

// Replaces the text by a copy with a space in front.
static int add_space(dsc_encoder *e, size_t step, tok_piece *io, dsc_error *err)
{
    const size_t n = io->text.length;
    char *p;
    int rc = dsc_tok_grow(&e->growth, &e->t->pre_tokenizers.at[step], n, n + 1, err);
    if (!rc)
        rc = make_room(e, 2 * step, n + 1, &p, err);
    if (rc)
        return rc;
    *p = ' ';
    memcpy(p + 1, io->text.data, n);
    io->text = (tok_text){p, n + 1};
    io->after = 0;
    return DSC_OK;
}

static int byte_level(dsc_encoder *e, size_t step, tok_piece piece, dsc_error *err)
{
    const tok_step *s = &e->t->pre_tokenizers.at[step];
    int rc = DSC_OK;
    if (s->prefix_space && piece.text.data[0] != ' ')
        rc = add_space(e, step, &piece, err);
    if (rc)
        return rc;
    return s->regex ? cut(e, step, piece, TOK_ISOLATED, err)
                    : pass_on(e, step, piece, 0, piece.text.length, err);
}

static int metaspace(dsc_encoder *e, size_t step, tok_piece piece, dsc_error *err)
{
    const tok_step *s = &e->t->pre_tokenizers.at[step];
    size_t n = s->pattern.length, spaces = 0, used = 0;
    for (size_t i = 0; i < piece.text.length; i++)
        spaces += piece.text.data[i] == ' ';
    bool marked = piece.text.data[0] == ' ' ||
                  (piece.text.length >= n && memcmp(piece.text.data, s->pattern.data, n) == 0);
    bool add = !marked && (s->scheme == TOK_ALWAYS || (s->scheme == TOK_FIRST && piece.first));
    char *out;
    const size_t longer = piece.text.length + spaces * (n - 1) + (add ? n : 0);
    int rc = dsc_tok_grow(&e->growth, s, piece.text.length, longer, err);
    if (!rc)
        rc = make_room(e, 2 * step, longer, &out, err);
    if (rc)
        return rc;
    if (add) {
        memcpy(out, s->pattern.data, n);
        used = n;
    }
    for (size_t i = 0; i < piece.text.length; i++) {
        if (piece.text.data[i] != ' ') {
            out[used++] = piece.text.data[i];
            continue;
        }
        memcpy(out + used, s->pattern.data, n);
        used += n;
    }
    piece.text = (tok_text){out, used};
    piece.after = 0;
    return s->split ? cut(e, step, piece, TOK_MERGED_WITH_NEXT, err)
                    : pass_on(e, step, piece, 0, used, err);
}

int dsc_tok_split(dsc_encoder *e, size_t step, tok_piece piece, dsc_error *err)
{
    if (piece.text.length == 0)
        return DSC_OK;
    if (step == e->t->pre_tokenizers.count)
        return dsc_tok_encode_word(e, piece, err);
    const tok_step *s = &e->t->pre_tokenizers.at[step];
    switch (s->kind) {
    case TOK_BYTE_LEVEL: return byte_level(e, step, piece, err);
    case TOK_METASPACE: return metaspace(e, step, piece, err);
    default: return cut(e, step, piece, s->behavior, err);
    }
}

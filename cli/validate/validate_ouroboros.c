// SPDX-License-Identifier: Apache-2.0
// Ouroboros (Zhao et al. 2024): the order of speculative decoding, lookahead decoding and Ouroboros
// with the draft lengths, windows and phrases of Table 11, and the order of the ablation of Table
// 4, on texts that n-gram models generate; and Eq. (5) applied to Tables 2 and 12.
//
// The target is a 10-gram and the draft a 5-gram model of bytes, both decoded greedily. The target
// reproduces texts like its corpus, and the draft is wrong now and then. Every second text of the
// corpus is held out for prompts, and each prompt is used once.
#include "cli/validate/validate.h"
#include "sim/model/corpus.h"
#include "theory/ouroboros.h"

#include <math.h>
#include <string.h>

enum { WORDS = 1024, REQUESTS_MOST = 20 };

// Number of prompts, and time of a draft call in units of a target call.
typedef struct bench {
    const validate_row *row;
    int64_t requests;
    double cost;
} bench;

typedef struct shape {
    double length, window, phrase;
} shape;

// Reads NAME_length (`drafts`), NAME_window and NAME_phrase (`phrases`) of a case.
static int read_shape(shape *s, const validate_row *row, const char *where, const char *name,
                      bool drafts, bool phrases, dsc_error *err)
{
    static const char *const part[] = {"length", "window", "phrase"};
    double *const value[] = {&s->length, &s->window, &s->phrase};
    int rc = DSC_OK;
    *s = (shape){0};
    for (int i = drafts ? 0 : 1; i < (phrases ? 3 : 1) && !rc; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s", name, part[i]);
        rc = validate_given(row, where, key, NAN, value[i], err);
    }
    return rc;
}

// --- block efficiency, Table 12 ---------------------------------------------------------------

// Runs `sim` on the n-gram pair with a method and its options.
static int simulate(const bench *b, const char *method, validate_outcome *o, dsc_error *err)
{
    char words[WORDS];
    snprintf(
        words, sizeof words,
        "--target ngram:{},order=10,hold=2 --draft ngram:{},order=5,hold=2 --temperature 0 "
        "--requests %lld --prompt-tokens 64 --max-tokens 256 --cost linear:1,0,%.6f --method %s",
        (long long)b->requests, b->cost, method);
    return validate_simulate(words, b->row->corpus, o, err);
}

// A phrase is a token and the beta tokens after it, an n-gram of beta + 1 tokens.
static int predict_method(validate_figure *f, const bench *b, dsc_error *err)
{
    const char *method = f->quantity;
    char words[WORDS / 2] = "none";
    shape s;
    validate_outcome o;
    bool looks_ahead = strcmp(method, "lookahead") == 0, whole = strcmp(method, "ouroboros") == 0;
    int rc = strcmp(method, "plain") == 0 ? DSC_OK
                                          : read_shape(&s, b->row, f->where, method, !looks_ahead,
                                                       looks_ahead || whole, err);
    if (looks_ahead && !rc)
        snprintf(words, sizeof words, "lookahead --window %.0f --guesses %.0f --level %.0f",
                 s.window, s.window, s.phrase + 1);
    else if (whole && !rc)
        snprintf(words, sizeof words,
                 "ouroboros --num-speculative-tokens %.0f --window %.0f --level %.0f --phrases 3",
                 s.length, s.window, s.phrase + 1);
    else if (strcmp(method, "speculative") == 0 && !rc)
        snprintf(words, sizeof words, "draft-model --num-speculative-tokens %.0f", s.length);
    if (!rc)
        rc = simulate(b, words, &o, err);
    if (!rc)
        f->predicted = o.block_efficiency;
    return rc;
}

// --- the ablation, Table 4 --------------------------------------------------------------------

// The parts of the method, switched on one after the other. A draft call takes the time of a target
// call times the ratio of the numbers of layers.
static const struct {
    const char *quantity, *words;
} parts[] = {
    {"baseline", "--draft-lookahead off --phrases 0 --from-verification off --reuse off"},
    {"+ accelerating drafting", "--phrases 0 --from-verification off --reuse off"},
    {"+ lengthening drafts", "--phrases 3 --from-verification off --reuse off"},
    {"+ phrases from verification", "--phrases 3 --reuse off"},
    {"+ phrases from history", "--phrases 3"},
};
enum { PARTS = sizeof parts / sizeof *parts };

// Reads the time of a draft call in units of a target call.
static int read_cost(const validate_row *row, double *cost, dsc_error *err)
{
    double draft, target;
    int rc = validate_given(row, "Yi 34B/6B", "draft_layers", NAN, &draft, err);
    if (!rc)
        rc = validate_given(row, "Yi 34B/6B", "target_layers", NAN, &target, err);
    if (!rc && !(draft > 0 && target > 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: the numbers of layers are not positive", row->path);
    if (!rc)
        *cost = draft / target;
    return rc;
}

static int predict_part(validate_figure *f, const bench *b, dsc_error *err)
{
    char words[WORDS / 2];
    shape s;
    validate_outcome o;
    size_t p = 0;
    while (p < PARTS && strcmp(f->quantity, parts[p].quantity) != 0)
        p++;
    if (p == PARTS)
        return DSC_OK;
    int rc = read_shape(&s, b->row, f->where, "ouroboros", true, true, err);
    if (rc)
        return rc;
    snprintf(words, sizeof words,
             "ouroboros --num-speculative-tokens %.0f --window %.0f --level %.0f %s", s.length,
             s.window, s.phrase + 1, parts[p].words);
    rc = simulate(b, words, &o, err);
    if (!rc)
        f->predicted = o.speedup;
    return rc;
}

// --- Eq. (5) from Table 12 to Table 2 ---------------------------------------------------------

static int predict_speed(validate_figure *f, const bench *b, dsc_error *err)
{
    const validate_row *row = b->row;
    double plain, efficiency, length;
    int rc = validate_given(row, f->where, "plain_tokens_per_s", NAN, &plain, err);
    if (!rc)
        rc = validate_given(row, f->where, "speculative_block_efficiency", NAN, &efficiency, err);
    if (!rc)
        rc = validate_given(row, f->where, "speculative_length", NAN, &length, err);
    if (!rc)
        f->predicted =
            plain * dsc_ouroboros_speedup(
                        &(dsc_ouroboros){.length = (int)length, .per_forward = 1, .draft = b->cost},
                        efficiency - 1);
    return rc;
}

// --- the row ----------------------------------------------------------------------------------

static int count_prompts(bench *b, dsc_error *err)
{
    dsc_tokenizer *bytes = NULL;
    dsc_corpus corpus = {0};
    int rc = dsc_tokenizer_load(&bytes, "bytes", err);
    if (!rc)
        rc = dsc_corpus_read(&corpus, b->row->corpus, bytes, err);
    if (!rc) // a corpus of one text has no prompt; the simulation reports that
        b->requests = corpus.count / 2 < 1               ? 1
                      : corpus.count / 2 < REQUESTS_MOST ? corpus.count / 2
                                                         : REQUESTS_MOST;
    dsc_corpus_fini(&corpus);
    dsc_tokenizer_free(bytes);
    return rc;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    bench *b = state;
    b->row = row;
    int rc = read_cost(row, &b->cost, err);
    return rc ? rc : count_prompts(b, err);
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const bench *b = row->state;
    if (strcmp(f->source, "Table 12") == 0)
        return predict_method(f, b, err);
    if (strcmp(f->source, "Table 4") == 0)
        return predict_part(f, b, err);
    return validate_is(f, "speculative_tokens_per_s") ? predict_speed(f, b, err) : DSC_OK;
}

const validate_row_type validate_ouroboros = {
    .name = "ouroboros",
    .summary = "Ouroboros, Tables 2, 4 and 12: order of the methods and of the ablation",
    .state_size = sizeof(bench),
    .begin = begin,
    .predict = predict,
};

// SPDX-License-Identifier: Apache-2.0
// Kinds of synthetic models with their options, and the parsing of "KIND:ITEM,...".
#include "sim/model/model_spec.h"

#include "sim/model/model_iid.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_ngram.h"

#include <stdlib.h>
#include <string.h>

// clang-format off
enum { NGRAM_FILE, NGRAM_ORDER, NGRAM_MIX, NGRAM_HOLD, NGRAM_OPTIONS };
static const dsc_option ngram_options[NGRAM_OPTIONS] = {
    {.name = "file", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "text with a sequence per line; JSON lines with text, prompt and output, question and "
             "answer, or instruction and output; or a trace"},
    {.name = "order", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "3", .min = 1,
     .max = DSC_DIST_LEVELS, .help = "number of tokens in the longest n-gram"},
    {.name = "mix", .kind = DSC_OPTION_REAL, .metavar = "A", .initial = "0", .least = 0, .most = 1,
     .help = "additional weight of shorter contexts; 0: Witten-Bell smoothing alone"},
    {.name = "hold", .kind = DSC_OPTION_INT, .metavar = "H", .initial = "10", .min = 0,
     .max = 1 << 30, .help = "every H-th sequence is held out for prompts; 0: none"},
};
enum { MARKOV_VOCAB, MARKOV_SEED, MARKOV_NOISE, MARKOV_OPTIONS };
static const dsc_option markov_options[MARKOV_OPTIONS] = {
    {.name = "vocab", .kind = DSC_OPTION_INT, .metavar = "V", .min = 1,
     .max = DSC_MARKOV_VOCAB_MAX, .help = "vocabulary size"},
    {.name = "seed", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "0", .min = 0,
     .max = INT64_MAX, .help = "seed of the transition probabilities"},
    {.name = "noise", .kind = DSC_OPTION_REAL, .metavar = "X", .initial = "0.5", .least = 0,
     .most = 100, .help = "distance of the draft from the target; 0: they are equal"},
};
// clang-format on

static int make_ngram(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                      const dsc_tokenizer *tokenizer, dsc_error *err)
{
    (void)side;
    dsc_corpus corpus = {0};
    int rc = dsc_corpus_read(&corpus, value[NGRAM_FILE].text, tokenizer, err);
    return rc ? rc
              : dsc_ngram_learn(out, &corpus,
                                &(dsc_ngram_options){.order = (int)value[NGRAM_ORDER].integer,
                                                     .mix = value[NGRAM_MIX].real,
                                                     .hold = value[NGRAM_HOLD].integer},
                                err);
}

static int make_markov(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                       const dsc_tokenizer *tokenizer, dsc_error *err)
{
    (void)tokenizer;
    return dsc_markov_new(out,
                          &(dsc_markov_options){.vocab_size = (int32_t)value[MARKOV_VOCAB].integer,
                                                .seed = (uint64_t)value[MARKOV_SEED].integer,
                                                .noise = value[MARKOV_NOISE].real},
                          side, err);
}

typedef struct kind {
    dsc_spec_form form;
    bool pair; // one text names both models of a pair
    int (*make)(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                const dsc_tokenizer *tokenizer, dsc_error *err);
} kind;
enum { NGRAM, MARKOV, KINDS };
static const kind kinds[KINDS] = {
    [NGRAM] = {.form = {"ngram", "ngram:FILE[,order=N][,mix=A][,hold=H]",
                        "a back-off n-gram model trained on a corpus", ngram_options,
                        NGRAM_OPTIONS},
               .make = make_ngram},
    [MARKOV] = {.form = {"markov", "markov:V[,seed=S][,noise=X]",
                         "a random Markov chain; its draft model is the same chain with noise",
                         markov_options, MARKOV_OPTIONS},
                .pair = true,
                .make = make_markov},
};

const dsc_spec_form *dsc_language_form(size_t i)
{
    return i < KINDS ? &kinds[i].form : dsc_acceptance_form(i - KINDS);
}

// The kind that the text names; NULL: acceptance rates.
static int find_kind(const kind **out, const char *spec, dsc_error *err)
{
    enum { MOST_NAMES = 16 };
    const char *names[MOST_NAMES];
    const dsc_spec_form *form;
    char name[64];
    size_t count = 0;
    *out = NULL;
    if (dsc_acceptance_is(spec))
        return DSC_OK;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    for (; count < MOST_NAMES && (form = dsc_language_form(count)); count++) {
        names[count] = form->name;
        if (count < KINDS && !strcmp(form->name, name)) {
            *out = &kinds[count];
            return DSC_OK;
        }
    }
    return dsc_unknown_name("model", name, names, count,
                            "ngram, markov, or acceptance rates: iid, rates, conditional, al, "
                            "rate, histogram, or the path of a table",
                            err);
}

int dsc_language_is_pair(bool *pair, const char *spec, dsc_error *err)
{
    const kind *k;
    const int rc = find_kind(&k, spec, err);
    *pair = !rc && (!k || k->pair);
    return rc;
}

static int make_pair(dsc_language **out, const char *spec, dsc_model_side side, dsc_error *err)
{
    dsc_acceptance_rates rates = {0};
    int rc = dsc_acceptance_rates_read(&rates, spec, err);
    rc = rc ?: dsc_iid_new(out, &rates, side, err);
    dsc_acceptance_rates_fini(&rates);
    return rc;
}

// Item number `place`, text[0, length), as the option "--NAME=VALUE" in *out (owned by the caller).
static int item_option(char **out, const dsc_spec_form *form, size_t place, const char *text,
                       size_t length, dsc_error *err)
{
    dsc_buffer b = {0};
    bool named = place > 0 && memchr(text, '=', length);
    if (!named && place >= form->items)
        return dsc_fail(err, DSC_EUSAGE, "too many items: %s", form->usage);
    int rc = named ? dsc_buffer_puts(&b, "--", err)
                   : dsc_buffer_printf(&b, err, "--%s=", form->item[place].name);
    if (!rc)
        rc = dsc_buffer_append(&b, text, length, err);
    *out = b.data;
    return rc;
}

static int make_from_items(dsc_language **out, const kind *k, const char *items,
                           dsc_model_side side, const dsc_tokenizer *tokenizer, dsc_error *err)
{
    enum { ITEMS_MAX = 8 };
    char *item[ITEMS_MAX] = {0}, *parsed[ITEMS_MAX];
    dsc_option_value value[ITEMS_MAX]; // no kind has more
    dsc_option_set set = {.table = k->form.item, .count = k->form.items, .value = value};
    size_t count = 0, words;
    int rc = *items ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "%s expected", k->form.usage);
    for (const char *p = items; !rc; count++) {
        size_t n = strcspn(p, ",");
        if (count == ITEMS_MAX || n == 0)
            rc = dsc_fail(err, DSC_EUSAGE, "%s expected", k->form.usage);
        else
            rc = item_option(&item[count], &k->form, count, p, n, err);
        if (!p[n]) {
            count += !rc;
            break;
        }
        p += n + 1;
    }
    memcpy(parsed, item, sizeof item);
    if (!rc)
        rc = dsc_options_parse(&set, 1, (int)count, parsed, &words, err);
    if (!rc)
        rc = k->make(out, value, side, tokenizer, err);
    for (size_t i = 0; i < ITEMS_MAX; i++)
        free(item[i]);
    return rc;
}

int dsc_language_make(dsc_language **out, const char *spec, dsc_model_side side,
                      const dsc_tokenizer *tokenizer, dsc_error *err)
{
    const kind *k;
    *out = NULL;
    int rc = find_kind(&k, spec, err);
    if (rc)
        return rc;
    const char *items = k ? spec + strlen(k->form.name) : NULL;
    rc = k ? make_from_items(out, k, items + (*items == ':'), side, tokenizer, err)
           : make_pair(out, spec, side, err);
    return rc && k ? dsc_error_prefix(err, rc, "%.200s", spec) : rc;
}

void dsc_language_free(dsc_language *l)
{
    if (l)
        l->type->free(l);
}

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
enum { IID_ALPHA, IID_CONDITIONAL_RATES, IID_REQUEST_SD, IID_OPTIONS };
static const dsc_option iid_options[IID_OPTIONS] = {
    {.name = "alpha", .kind = DSC_OPTION_REAL, .metavar = "ALPHA", .least = 0, .most = 1,
     .help = "acceptance rate at every position, or at the positions after those in the file"},
    {.name = "acceptance-by-position", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file with the conditional acceptance rates of position 1, 2, ..., one per line"},
    {.name = "request-sd", .kind = DSC_OPTION_REAL, .metavar = "S", .initial = "0", .least = 0,
     .most = 10, .help = "standard deviation of an effect of each request on the logit of its "
     "rates (theory length --trace fits it); 0: requests do not differ"},
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

static int make_iid(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                    const dsc_tokenizer *tokenizer, dsc_error *err)
{
    (void)tokenizer;
    dsc_iid_conditional_rates h = {.request_sd = value[IID_REQUEST_SD].real};
    int rc = DSC_OK;
    if (value[IID_CONDITIONAL_RATES].text)
        rc = dsc_iid_conditional_rates_read(&h, value[IID_CONDITIONAL_RATES].text, err);
    if (!rc)
        rc = dsc_iid_conditional_rates_add(&h, value[IID_ALPHA].real, err);
    if (!rc)
        rc = dsc_iid_new(out, &h, side, err);
    free(h.conditional_rate);
    return rc;
}

static const dsc_language_kind ngram = {
    .name = "ngram",
    .usage = "ngram:FILE[,order=N][,mix=A][,hold=H]",
    .summary = "a back-off n-gram model trained on a corpus",
    .option = ngram_options,
    .option_count = NGRAM_OPTIONS,
    .make = make_ngram,
};
static const dsc_language_kind markov = {
    .name = "markov",
    .usage = "markov:V[,seed=S][,noise=X]",
    .summary = "a random Markov chain; its draft model is the same chain with noise",
    .option = markov_options,
    .option_count = MARKOV_OPTIONS,
    .pair = true,
    .make = make_markov,
};
static const dsc_language_kind iid = {
    .name = "iid",
    .usage = "iid:ALPHA[,FILE][,request-sd=S]",
    .summary = "a pair of models with given acceptance rates, constant or by position",
    .option = iid_options,
    .option_count = IID_OPTIONS,
    .pair = true,
    .make = make_iid,
};
static const dsc_language_kind *const kinds[] = {&ngram, &markov, &iid, NULL};

const dsc_language_kind *const *dsc_language_kinds(void)
{
    return kinds;
}

int dsc_language_find(const dsc_language_kind **out, const char *spec, dsc_error *err)
{
    enum { KINDS = sizeof kinds / sizeof *kinds - 1 };
    const char *names[KINDS];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    for (size_t k = 0; k < KINDS; k++) {
        names[k] = kinds[k]->name;
        *out = kinds[k];
        if (strcmp(names[k], name) == 0)
            return DSC_OK;
    }
    return dsc_unknown_name("model", name, names, KINDS, "ngram, markov or iid", err);
}

// Item number `place`, text[0, length), as the option "--NAME=VALUE" in *out (owned by the caller).
static int item_option(char **out, const dsc_language_kind *kind, size_t place, const char *text,
                       size_t length, dsc_error *err)
{
    dsc_buffer b = {0};
    bool named = place > 0 && memchr(text, '=', length);
    if (!named && place >= kind->option_count)
        return dsc_fail(err, DSC_EUSAGE, "too many items: %s", kind->usage);
    int rc = named ? dsc_buffer_puts(&b, "--", err)
                   : dsc_buffer_printf(&b, err, "--%s=", kind->option[place].name);
    if (!rc)
        rc = dsc_buffer_append(&b, text, length, err);
    *out = b.data;
    return rc;
}

static int make_from_items(dsc_language **out, const dsc_language_kind *kind, const char *items,
                           dsc_model_side side, const dsc_tokenizer *tokenizer, dsc_error *err)
{
    enum { ITEMS_MAX = 8 };
    char *item[ITEMS_MAX] = {0}, *parsed[ITEMS_MAX];
    dsc_option_value value[ITEMS_MAX]; // no kind has more
    dsc_option_set set = {.table = kind->option, .count = kind->option_count, .value = value};
    size_t count = 0, words;
    int rc = *items ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "%s expected", kind->usage);
    for (const char *p = items; !rc; count++) {
        size_t n = strcspn(p, ",");
        if (count == ITEMS_MAX || n == 0)
            rc = dsc_fail(err, DSC_EUSAGE, "%s expected", kind->usage);
        else
            rc = item_option(&item[count], kind, count, p, n, err);
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
        rc = kind->make(out, value, side, tokenizer, err);
    for (size_t i = 0; i < ITEMS_MAX; i++)
        free(item[i]);
    return rc;
}

int dsc_language_make(dsc_language **out, const char *spec, dsc_model_side side,
                      const dsc_tokenizer *tokenizer, dsc_error *err)
{
    const dsc_language_kind *kind;
    *out = NULL;
    int rc = dsc_language_find(&kind, spec, err);
    if (rc)
        return rc;
    const char *items = spec + strlen(kind->name);
    rc = make_from_items(out, kind, items + (*items == ':'), side, tokenizer, err);
    return rc ? dsc_error_prefix(err, rc, "%.200s", spec) : DSC_OK;
}

void dsc_language_free(dsc_language *l)
{
    if (l)
        l->type->free(l);
}

// SPDX-License-Identifier: Apache-2.0
// Options, ranges, lists, costs. Input: a byte that chooses (bit 0: ranges and lists), then the
// words of a command line, each ended by a NUL.
#include "base/option.h"
#include "sim/cost/cost.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG, INT, BIG, REAL, TEXT, CHOICE, OPTIONS };
static const dsc_option options[OPTIONS] = {
    {.name = "flag", .letter = 'f', .kind = DSC_OPTION_FLAG},
    {.name = "int",
     .letter = 'i',
     .kind = DSC_OPTION_INT,
     .metavar = "N",
     .initial = "3",
     .min = -5,
     .max = 999},
    {.name = "big", .kind = DSC_OPTION_INT, .metavar = "N", .min = INT64_MIN, .max = INT64_MAX},
    {.name = "real", .kind = DSC_OPTION_REAL, .metavar = "X", .least = 0, .most = 99},
    {.name = "text", .letter = 't', .kind = DSC_OPTION_TEXT, .metavar = "S"},
    {.name = "choice", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "code"},
};

static void check_integers(const dsc_option *o, const char *text)
{
    int64_t *list;
    size_t count;
    dsc_error err = {0};
    int rc = dsc_option_list(o, text, &list, &count, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    fuzz_require(count >= 1 && count <= 1000000, "a list has 1 to 1 000 000 values", NULL);
    for (size_t i = 0; i < count && o->kind == DSC_OPTION_INT; i++)
        fuzz_require(list[i] >= o->min && list[i] <= o->max, "values are in the range", NULL);
    free(list);
}

static void check_reals(const dsc_option *o, const char *text)
{
    double *list;
    size_t count;
    dsc_error err = {0};
    int rc = dsc_option_reals(o, text, &list, &count, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    fuzz_require(count >= 1 && count <= 1000000, "a list has 1 to 1 000 000 values", NULL);
    for (size_t i = 0; i < count; i++)
        fuzz_require(list[i] >= o->least && list[i] <= o->most, "values are in the range", NULL);
    free(list);
}

static void check_cost(const char *text)
{
    dsc_cost cost;
    dsc_error err = {0};
    static const char *const files[] = {
        "table:", "fit:", "prometheus:", "bench:", "sps:", "/", ".json"}; // opens none
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strstr(text, files[i]))
            return;
    int rc = dsc_cost_parse(&cost, text, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else if (cost.type->linear)
        fuzz_require(isfinite(cost.fixed_s) && isfinite(cost.per_token_s) && cost.fixed_s >= 0 &&
                         cost.per_token_s >= 0 && cost.fixed_s + cost.per_token_s > 0,
                     "a cost has a price", NULL);
    dsc_cost_fini(&cost);
}

FUZZ_TARGET(option)
{
    enum { WORDS = 32 };
    fuzz_bytes in = {data, size};
    bool lists = fuzz_byte(&in) & 1;
    char *word[WORDS], *parsed[WORDS];
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value, .lists = lists};
    dsc_error err = {0};
    int words = 0;
    size_t positionals = 0;
    while (in.size && words < WORDS) {
        fuzz_bytes w = fuzz_before(&in, '\0');
        if (!(word[words] = strndup((const char *)w.data, w.size)))
            exit(99);
        parsed[words] = word[words];
        words++;
    }
    int rc = dsc_options_parse(&set, 1, words, parsed, &positionals, &err);
    if (rc)
        fuzz_refused(rc, &err);
    for (int i = 0; i < OPTIONS && !rc && lists; i++) {
        if (value[i].text && (i == INT || i == BIG || i == CHOICE))
            check_integers(&options[i], value[i].text);
        else if (value[i].text && i == REAL)
            check_reals(&options[i], value[i].text);
    }
    for (int i = 0; i < words; i++) {
        check_integers(&options[INT], word[i]);
        check_reals(&options[REAL], word[i]);
        check_cost(word[i]);
        free(word[i]);
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A grid in words: the comment by which parts of a sweep know each other, and from which its
// configurations are found again.
#include "sim/sweep/grid.h"

#include <stdlib.h>
#include <string.h>

// A value without spaces, tabs and line ends: those bytes, and %, as %XX.
static int put_value(dsc_buffer *words, const char *text, dsc_error *err)
{
    int rc = DSC_OK;
    for (const unsigned char *c = (const unsigned char *)text; *c && !rc; c++)
        rc = *c <= ' ' || *c == '%' || *c == 0x7f ? dsc_buffer_printf(words, err, "%%%02X", *c)
                                                  : dsc_buffer_append(words, c, 1, err);
    return rc;
}

// In place; false when a % is not followed by two hexadecimal digits, or is a NUL.
static bool take_value(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        char digits[3] = {0}, *end;
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        memcpy(digits, from + 1, from[1] ? 2 : 1);
        long byte = strtol(digits, &end, 16);
        if (strspn(digits, "0123456789ABCDEF") != 2 || !byte)
            return false;
        *to++ = (char)byte;
        from += 2;
    }
    *to = '\0';
    return true;
}

int dsc_grid_words(dsc_buffer *words, const dsc_drafter_type *drafter,
                   const dsc_verifier_type *rule, const dsc_option_value *text, dsc_error *err)
{
    int rc = dsc_buffer_printf(words, err, "method=%s", drafter->name);
    if (!rc && rule != &dsc_verifier_greedy)
        rc = dsc_buffer_printf(words, err, " rule=%s", rule->name);
    for (size_t o = 0; o < drafter->option_count && !rc; o++) {
        if (!text[o].text)
            continue;
        rc = dsc_buffer_printf(words, err, " %s=", drafter->option[o].name);
        if (!rc)
            rc = put_value(words, text[o].text, err);
    }
    return rc;
}

// The option that `word` gives a value to; *value is where the value begins.
static size_t find_option(const dsc_drafter_type *d, char *word, char **value)
{
    size_t o = 0, n = strcspn(word, "=");
    while (o < d->option_count &&
           (strlen(d->option[o].name) != n || strncmp(d->option[o].name, word, n) != 0))
        o++;
    *value = word[n] ? word + n + 1 : NULL;
    return o;
}

// The values in `rest`, word by word, and the rule among them.
static int parse_values(dsc_grid *g, const dsc_drafter_type *d, char *rest, dsc_error *err)
{
    dsc_option_value value[DSC_MAX_PARAMETERS] = {{0}};
    const dsc_verifier_type *rule = NULL;
    char *word;
    int rc = DSC_OK;
    while (!rc && (word = strtok_r(NULL, " ", &rest))) {
        char *text;
        size_t o = find_option(d, word, &text);
        bool is_rule = o == d->option_count && strncmp(word, "rule=", 5) == 0 && !rule;
        if (is_rule) {
            rule = dsc_verifier_find(word + 5, err);
            rc = rule ? DSC_OK : dsc_error_prefix(err, DSC_EUSAGE, "grid");
        } else if (o == d->option_count || !text || value[o].text || !take_value(text)) {
            rc = dsc_fail(err, DSC_EINPUT, "'%.60s' in a grid of method %s", word, d->name);
        } else {
            value[o].text = text;
        }
    }
    for (size_t o = 0; !rc && o < d->option_count; o++)
        if (!value[o].text && d->option[o].initial)
            rc = dsc_fail(err, DSC_EINPUT, "the grid says nothing of %s", d->option[o].name);
    if (!rc && dsc_grid_init(g, d, rule ? rule : &dsc_verifier_greedy, value, err))
        rc = dsc_error_prefix(err, DSC_EUSAGE, "grid");
    return rc;
}

int dsc_grid_parse(dsc_grid *g, const char *words, dsc_error *err)
{
    static const char method[] = "method=";
    char *copy, *rest = NULL;
    int rc = dsc_strndup(&copy, words, strlen(words), err);
    if (rc)
        return rc;
    char *word = strtok_r(copy, " ", &rest);
    bool named = word && strncmp(word, method, sizeof method - 1) == 0;
    const dsc_drafter_type *d = named ? dsc_drafter_find(word + sizeof method - 1, err) : NULL;
    if (!named)
        rc = dsc_fail(err, DSC_EINPUT, "'%.60s' is not a grid", words);
    else if (!d)
        rc = dsc_error_prefix(err, DSC_EUSAGE, "grid");
    else
        rc = parse_values(g, d, rest, err);
    if (rc)
        free(copy);
    else
        g->copy = copy;
    return rc;
}

static const char between[] = " | "; // no word has a space

int dsc_grids_words(dsc_buffer *words, const dsc_grids *all, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < all->count && !rc; i++)
        rc = dsc_buffer_printf(words, err, "%s%s", i ? between : "", all->grid[i].words.data);
    return rc;
}

int dsc_grids_parse(dsc_grids *all, const char *words, dsc_error *err)
{
    int rc = DSC_OK;
    for (const char *end; words && !rc; words = end ? end + sizeof between - 1 : NULL) {
        char *one;
        dsc_grid g = {0};
        end = strstr(words, between);
        rc = dsc_strndup(&one, words, end ? (size_t)(end - words) : strlen(words), err);
        if (!rc)
            rc = dsc_grid_parse(&g, one, err);
        if (!rc)
            rc = dsc_grids_add(all, &g, err);
        free(one);
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Grids of configurations: the product of the values of a method's options, configurations by
// index, and their text form, in which spaces and percent signs of values are written as %XX.
#include "sim/sweep/grid.h"

#include <stdlib.h>
#include <string.h>

static int read_values(dsc_grid *g, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &g->drafter->option[o];
    g->count[o] = 1;
    g->text[o] = text;
    if (option->kind == DSC_OPTION_TEXT)
        return option->list && text
                   ? dsc_option_texts(option, text, &g->texts[o], &g->count[o], err)
                   : DSC_OK;
    if (option->kind == DSC_OPTION_REAL)
        return dsc_option_reals(option, text, &g->real[o], &g->count[o], err);
    return dsc_option_list(option, text, &g->value[o], &g->count[o], err);
}

int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                  const dsc_option_value *text, dsc_error *err)
{
    *g = (dsc_grid){.drafter = drafter, .rule = rule, .total = 1};
    int rc = dsc_grid_words(&g->words, drafter, rule, text, err);
    for (size_t o = 0; o < drafter->option_count && !rc; o++) {
        rc = read_values(g, o, text[o].text, err);
        if (!rc && g->count[o] > DSC_MAX_GRID / g->total)
            rc =
                dsc_fail(err, DSC_EUSAGE, "the grid has more than %d configurations", DSC_MAX_GRID);
        if (!rc)
            g->total *= g->count[o];
    }
    if (rc)
        dsc_grid_fini(g);
    return rc;
}

void dsc_grid_fini(dsc_grid *g)
{
    for (size_t o = 0; o < DSC_MAX_PARAMETERS; o++) {
        free(g->value[o]);
        free(g->real[o]);
        free(g->texts[o]);
    }
    dsc_buffer_fini(&g->words);
    free(g->copy);
    *g = (dsc_grid){0};
}

dsc_config dsc_grid_at(const dsc_grid *g, size_t index)
{
    dsc_config c = {.drafter = g->drafter};
    for (size_t o = g->drafter->option_count; o-- > 0;) {
        size_t i = index % g->count[o];
        c.parameter[o] = g->value[o] ? g->value[o][i] : 0;
        c.real[o] = g->real[o] ? g->real[o][i] : 0;
        c.text[o] = g->texts[o] ? g->texts[o][i] : g->text[o];
        index /= g->count[o];
    }
    return c;
}

int dsc_grid_configs(const dsc_grid *g, size_t first, size_t count, dsc_config *config,
                     dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count; c++) {
        config[c] = dsc_grid_at(g, first + c);
        if (!rc)
            rc = dsc_config_prepare(&config[c], err);
    }
    return rc;
}

int dsc_grids_add(dsc_grids *all, dsc_grid *g, dsc_error *err)
{
    int rc = DSC_OK;
    if (g->total > DSC_MAX_GRID - all->total)
        rc = dsc_fail(err, DSC_EUSAGE, "the grids have more than %d configurations", DSC_MAX_GRID);
    if (!rc)
        rc = dsc_resize(&all->grid, &all->capacity, all->count + 1, err);
    if (rc) {
        dsc_grid_fini(g);
        return rc;
    }
    all->total += g->total;
    all->grid[all->count++] = *g;
    *g = (dsc_grid){0};
    return DSC_OK;
}

void dsc_grids_fini(dsc_grids *all)
{
    for (size_t i = 0; i < all->count; i++)
        dsc_grid_fini(&all->grid[i]);
    free(all->grid);
    *all = (dsc_grids){0};
}

const dsc_grid *dsc_grids_find(const dsc_grids *all, size_t index, size_t *first)
{
    const dsc_grid *g = all->grid;
    *first = 0;
    while (index >= *first + g->total)
        *first += g++->total;
    return g;
}

// --- in words ----------------------------------------------------------------------------------

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

// The values in `rest`, word by word, and the rule among them.
static int parse_values(dsc_grid *g, const dsc_drafter_type *d, char *rest, dsc_error *err)
{
    dsc_option_value value[DSC_MAX_PARAMETERS] = {{0}};
    const dsc_verifier_type *rule = NULL;
    char *word;
    int rc = DSC_OK;
    while (!rc && (word = strtok_r(NULL, " ", &rest))) {
        char *text = strchr(word, '=');
        const size_t n = text ? (size_t)(text - word) : 0;
        size_t o = 0;
        while (o < d->option_count && !dsc_option_is(&d->option[o], word, n))
            o++;
        if (o == d->option_count && strncmp(word, "rule=", 5) == 0 && !rule) {
            rule = dsc_verifier_find(word + 5, err);
            rc = rule ? DSC_OK : dsc_error_prefix(err, DSC_EUSAGE, "grid");
        } else if (o == d->option_count || value[o].text || !take_value(text + 1)) {
            rc = dsc_fail(err, DSC_EINPUT, "'%.60s' in a grid of method %s", word, d->name);
        } else {
            value[o].text = text + 1;
        }
    }
    for (size_t o = 0; !rc && o < d->option_count; o++)
        if (!value[o].text && d->option[o].initial)
            rc = dsc_fail(err, DSC_EINPUT, "the grid has no value of option %s", d->option[o].name);
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

// SPDX-License-Identifier: Apache-2.0
// The values of a method's parameters that a search chooses from: lists from the command line, the
// axes they span, and the configuration at an index of their product.
#include "sim/tune/space.h"

#include "base/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// [METHOD.]PARAMETER=VALUE
typedef struct item {
    const char *method, *name, *value; // method: NULL when it is for all of them
    size_t method_length, name_length;
} item;

static bool split(const char *text, item *out)
{
    const char *equals = strchr(text, '='), *dot = strchr(text, '.');
    *out = (item){.name = text};
    if (!equals || !equals[1])
        return false;
    if (dot && dot < equals) {
        out->method = text;
        out->method_length = (size_t)(dot - text);
        out->name = dot + 1;
    }
    out->name_length = (size_t)(equals - out->name);
    out->value = equals + 1;
    return out->name_length > 0;
}

static bool is_for(const item *x, const dsc_drafter_type *d)
{
    return !x->method || dsc_is_listed(d->name, x->method, x->method_length) ||
           dsc_is_listed(d->synonyms, x->method, x->method_length);
}

// The option of the method with the name in the item, or -1.
static int find(const item *x, const dsc_drafter_type *d)
{
    for (size_t o = 0; o < d->option_count && is_for(x, d); o++)
        if (dsc_option_is(&d->option[o], x->name, x->name_length))
            return (int)o;
    return -1;
}

int dsc_space_check_start(const char *text, const dsc_drafter_type *const *method, size_t methods,
                          dsc_error *err)
{
    enum { MOST = 256 };
    const char *names[MOST];
    char word[64];
    size_t n = 0, meant = 0;
    item x;
    if (!split(text, &x))
        return dsc_fail(err, DSC_EUSAGE, "--start: '%.60s' is not [METHOD.]PARAMETER=VALUE", text);
    for (size_t m = 0; m < methods; m++) {
        if (find(&x, method[m]) >= 0)
            return DSC_OK;
        meant += is_for(&x, method[m]);
        for (size_t o = 0; o < method[m]->option_count && n < MOST && is_for(&x, method[m]); o++)
            names[n++] = method[m]->option[o].name;
    }
    if (!meant)
        return dsc_fail(err, DSC_EUSAGE, "--start: %.*s is not one of the methods of --method",
                        (int)(x.method_length > 60 ? 60 : x.method_length), x.method);
    snprintf(word, sizeof word, "%.*s", (int)(x.name_length > 60 ? 60 : x.name_length), x.name);
    return dsc_unknown_name("parameter", word, names, n, "see: draftscope list methods -v", err);
}

// --- values ------------------------------------------------------------------------------------

static int read_text(dsc_space *s, size_t o, const char *text, dsc_error *err)
{
    size_t n = s->count[o], capacity = n;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->text[o][i], text) == 0)
            return dsc_fail(err, DSC_EUSAGE, "--%s %.60s is given twice",
                            s->drafter->option[o].name, text);
    int rc = dsc_resize(&s->text[o], &capacity, n + 1, err);
    if (!rc)
        s->text[o][s->count[o]++] = text;
    return rc;
}

static int read_values(dsc_space *s, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &s->drafter->option[o];
    if (option->kind == DSC_OPTION_TEXT && !option->list)
        return read_text(s, o, text, err);
    if (s->count[o])
        return dsc_fail(err, DSC_EUSAGE, "--%s is given twice", option->name);
    if (option->kind == DSC_OPTION_TEXT)
        return dsc_option_texts(option, text, &s->text[o], &s->count[o], err);
    return option->kind == DSC_OPTION_REAL
               ? dsc_option_reals(option, text, &s->real[o], &s->count[o], err)
               : dsc_option_list(option, text, &s->value[o], &s->count[o], err);
}

// Option o: what was given with the method's name, or else without it, or else the default.
static int read_option(dsc_space *s, size_t o, const dsc_option_uses *given, dsc_error *err)
{
    const dsc_option *option = &s->drafter->option[o];
    bool owned = false;
    int rc = DSC_OK;
    for (size_t i = 0; i < given->count; i++)
        owned |= given->use[i].option == option && given->use[i].owned;
    for (size_t i = 0; i < given->count && !rc; i++)
        if (given->use[i].option == option && given->use[i].owned == owned) {
            s->list[o] = given->use[i].text;
            rc = read_values(s, o, s->list[o], err);
        }
    if (s->list[o] || rc)
        return rc;
    s->list[o] = option->initial;
    return s->list[o] ? read_values(s, o, s->list[o], err) : DSC_OK;
}

// The options that were given, in the order in which they first were.
static void note_stated(dsc_space *s, const dsc_option_uses *given)
{
    for (size_t i = 0; i < given->count; i++) {
        size_t o = (size_t)(given->use[i].option - s->drafter->option);
        bool seen = false;
        for (size_t j = 0; j < s->stated_count; j++)
            seen |= s->stated[j] == o;
        if (!seen)
            s->stated[s->stated_count++] = o;
    }
}

// The index of a value of option o, or the number of its values.
static size_t position(const dsc_space *s, size_t o, const char *text)
{
    const dsc_option *option = &s->drafter->option[o];
    const bool is_text = option->kind == DSC_OPTION_TEXT, is_real = option->kind == DSC_OPTION_REAL;
    int64_t integer;
    double real;
    size_t i = 0;
    int rc = is_text   ? DSC_OK
             : is_real ? dsc_option_real(option, text, &real, NULL)
                       : dsc_option_single(option, text, &integer, NULL);
    while (!rc && i < s->count[o] &&
           (is_text   ? strcmp(s->text[o][i], text) != 0
            : is_real ? s->real[o][i] != real
                      : s->value[o][i] != integer))
        i++;
    return rc ? s->count[o] : i;
}

static int read_start(dsc_space *s, const char *text, dsc_error *err)
{
    item x;
    int o = split(text, &x) ? find(&x, s->drafter) : -1;
    if (o < 0)
        return DSC_OK;
    size_t at = position(s, (size_t)o, x.value);
    if (at == s->count[o])
        return dsc_fail(err, DSC_EUSAGE, "--start: '%.60s' is not a value of --%s", text,
                        s->drafter->option[o].name);
    for (size_t a = 0; a < s->axes; a++)
        if (s->axis[a] == (size_t)o)
            s->axis_start[a] = at;
    return DSC_OK;
}

static int make_axes(dsc_space *s, dsc_error *err)
{
    s->total = 1;
    for (size_t i = 0; i < s->stated_count; i++) {
        size_t o = s->stated[i], n = s->count[o];
        if (n > DSC_MAX_SPACE / s->total)
            return dsc_fail(err, DSC_EUSAGE, "method %s has more than %d configurations",
                            s->drafter->name, DSC_MAX_SPACE);
        s->total *= n;
        if (n < 2)
            continue;
        const char *initial = s->drafter->option[o].initial;
        size_t at = initial ? position(s, o, initial) : n;
        s->axis_start[s->axes] = at < n ? at : (n - 1) / 2;
        s->axis_count[s->axes] = n;
        s->axis[s->axes++] = o;
    }
    return DSC_OK;
}

int dsc_space_init(dsc_space *s, const dsc_drafter_type *drafter, const dsc_option_uses *given,
                   const char *const *start, size_t starts, dsc_error *err)
{
    *s = (dsc_space){.drafter = drafter};
    int rc = DSC_OK;
    note_stated(s, given);
    for (size_t o = 0; o < drafter->option_count && !rc; o++)
        rc = read_option(s, o, given, err);
    if (rc)
        rc = dsc_error_prefix(err, rc, "method %s", drafter->name);
    rc = rc ?: make_axes(s, err);
    for (size_t i = 0; i < starts && !rc; i++)
        rc = read_start(s, start[i], err);
    if (rc)
        dsc_space_fini(s);
    return rc;
}

void dsc_space_fini(dsc_space *s)
{
    for (size_t o = 0; o < DSC_MAX_PARAMETERS; o++) {
        free(s->value[o]);
        free(s->real[o]);
        free(s->text[o]);
    }
    *s = (dsc_space){0};
}

// --- configurations ----------------------------------------------------------------------------

dsc_config dsc_space_at(const dsc_space *s, size_t index)
{
    dsc_config c = {.drafter = s->drafter};
    size_t at[DSC_MAX_PARAMETERS] = {0};
    for (size_t a = s->axes; a-- > 0; index /= s->axis_count[a])
        at[s->axis[a]] = index % s->axis_count[a];
    for (size_t o = 0; o < s->drafter->option_count; o++) {
        c.parameter[o] = s->value[o] ? s->value[o][at[o]] : 0;
        c.real[o] = s->real[o] ? s->real[o][at[o]] : 0;
        c.text[o] = s->text[o] ? s->text[o][at[o]] : NULL;
    }
    return c;
}

int dsc_space_words(dsc_buffer *words, const dsc_space *s, const dsc_config *config, dsc_error *err)
{
    int rc = s->stated_count ? DSC_OK : dsc_buffer_puts(words, "defaults", err);
    for (size_t i = 0; i < s->stated_count && !rc; i++) {
        size_t o = s->stated[i];
        const dsc_option *option = &s->drafter->option[o];
        char text[DSC_NUMBER_TEXT > 64 ? DSC_NUMBER_TEXT : 64];
        const char *value = text;
        if (option->kind == DSC_OPTION_TEXT)
            value = config->text[o];
        else if (option->kind == DSC_OPTION_REAL)
            dsc_number_text(config->real[o], text);
        else
            dsc_option_text(option, config->parameter[o], text, sizeof text);
        rc = dsc_buffer_printf(words, err, "%s%s=%s", i ? " " : "", option->name, value);
    }
    return rc;
}

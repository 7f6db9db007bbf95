// SPDX-License-Identifier: Apache-2.0
#include "base/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 1000000 };

static size_t edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *dsc_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = edit_distance(word, candidates[i]);
        if (d < least) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}

int dsc_unknown_name(const char *what, const char *word, const char *const *candidates,
                     size_t count, const char *see, dsc_error *err)
{
    const char *near = dsc_nearest(word, candidates, count);
    if (near)
        return dsc_fail(err, DSC_EUSAGE, "unknown %s '%.60s' (did you mean %s?)", what, word, near);
    return dsc_fail(err, DSC_EUSAGE, "unknown %s '%.60s' (%s)", what, word, see);
}

static int bad_integer(const dsc_option *o, const char *text, size_t length, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not an integer from %" PRId64 " to %" PRId64,
                    o->name, (int)(length > 60 ? 60 : length), text, o->min, o->max);
}

// Parses text[0, length) as an integer within the option's limits.
static int parse_integer(const dsc_option *o, const char *text, size_t length, int64_t *out,
                         dsc_error *err)
{
    char copy[32], *end;
    if (length == 0 || length >= sizeof copy || text[0] == ' ' || text[0] == '+')
        return bad_integer(o, text, length, err);
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *out = strtoll(copy, &end, 10);
    if (*end || errno || *out < o->min || *out > o->max)
        return bad_integer(o, text, length, err);
    return DSC_OK;
}

static int parse_choice(const dsc_option *o, const char *text, size_t length, int64_t *out,
                        dsc_error *err)
{
    int64_t index = 0;
    for (const char *c = o->choices; *c; index++) {
        size_t n = strcspn(c, "|");
        if (n == length && strncmp(c, text, n) == 0) {
            *out = index;
            return DSC_OK;
        }
        c += n + (c[n] == '|');
    }
    return dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not one of %s", o->name,
                    (int)(length > 60 ? 60 : length), text, o->choices);
}

static int parse_one(const dsc_option *o, const char *text, size_t length, int64_t *out,
                     dsc_error *err)
{
    return o->kind == DSC_OPTION_CHOICE ? parse_choice(o, text, length, out, err)
                                        : parse_integer(o, text, length, out, err);
}

int dsc_option_single(const dsc_option *o, const char *text, int64_t *out, dsc_error *err)
{
    return parse_one(o, text, strlen(text), out, err);
}

// Appends an item of a list: a value, or a range first:last[:step].
static int list_item(const dsc_option *o, const char *item, size_t length, int64_t **list,
                     size_t *capacity, size_t *count, dsc_error *err)
{
    const char *colon = o->kind == DSC_OPTION_INT ? memchr(item, ':', length) : NULL;
    int64_t first, last, step = 1;
    int rc = parse_one(o, item, colon ? (size_t)(colon - item) : length, &first, err);
    last = first;
    if (!rc && colon) {
        const char *rest = colon + 1, *end = item + length;
        const char *second = memchr(rest, ':', (size_t)(end - rest));
        dsc_option positive = *o;
        positive.min = 1;
        positive.max = INT64_MAX;
        rc = parse_integer(o, rest, (size_t)((second ? second : end) - rest), &last, err);
        if (!rc && second)
            rc = parse_integer(&positive, second + 1, (size_t)(end - second - 1), &step, err);
        if (!rc && last < first)
            rc = dsc_fail(err, DSC_EUSAGE, "--%s: the range '%.*s' is empty", o->name, (int)length,
                          item);
    }
    for (int64_t v = first; !rc && v <= last; v += step) {
        if (*count == MAX_VALUES)
            return dsc_fail(err, DSC_EUSAGE, "--%s: more than %d values", o->name, MAX_VALUES);
        void *p = *list;
        rc = dsc_grow(&p, capacity, *count + 1, sizeof **list, err);
        *list = p;
        if (!rc)
            (*list)[(*count)++] = v;
        if ((uint64_t)last - (uint64_t)v < (uint64_t)step) // also keeps v from overflowing
            break;
    }
    return rc;
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int refuse_repeats(const dsc_option *o, const int64_t *list, size_t count, dsc_error *err)
{
    void *mem;
    int rc = dsc_alloc(&mem, count, sizeof *list, err);
    if (rc)
        return rc;
    int64_t *sorted = mem;
    memcpy(sorted, list, count * sizeof *list);
    qsort(sorted, count, sizeof *sorted, compare_int64);
    for (size_t i = 1; i < count && !rc; i++)
        if (sorted[i] == sorted[i - 1]) {
            char text[64];
            dsc_option_text(o, sorted[i], text, sizeof text);
            rc = dsc_fail(err, DSC_EUSAGE, "--%s: %s is given twice", o->name, text);
        }
    free(sorted);
    return rc;
}

int dsc_option_list(const dsc_option *o, const char *text, int64_t **out, size_t *count,
                    dsc_error *err)
{
    size_t capacity = 0;
    int rc = DSC_OK;
    *out = NULL;
    *count = 0;
    for (const char *item = text; !rc;) {
        size_t n = strcspn(item, ",");
        rc = list_item(o, item, n, out, &capacity, count, err);
        if (!item[n])
            break;
        item += n + 1;
    }
    if (!rc)
        rc = refuse_repeats(o, *out, *count, err);
    if (rc) {
        free(*out);
        *out = NULL;
        *count = 0;
    }
    return rc;
}

void dsc_option_text(const dsc_option *o, int64_t value, char *out, size_t size)
{
    if (o->kind != DSC_OPTION_CHOICE) {
        snprintf(out, size, "%" PRId64, value);
        return;
    }
    const char *c = o->choices;
    for (int64_t i = 0; i < value; i++)
        c += strcspn(c, "|") + 1;
    snprintf(out, size, "%.*s", (int)strcspn(c, "|"), c);
}

void dsc_option_help(const dsc_option *table, size_t count, FILE *f)
{
    enum { COLUMN = 30 };
    for (size_t i = 0; i < count; i++) {
        const dsc_option *o = &table[i];
        char head[128], letter[8] = "";
        const char *value = o->kind == DSC_OPTION_CHOICE ? o->choices : o->metavar;
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(head, sizeof head, "  %s--%s%s%s", letter, o->name, value ? " " : "",
                 value ? value : "");
        if (strlen(head) >= COLUMN)
            fprintf(f, "%s\n%*s", head, COLUMN, "");
        else
            fprintf(f, "%-*s", COLUMN, head);
        fputs(o->help, f);
        if (o->initial && *o->initial)
            fprintf(f, " (default %s)", o->initial);
        fputc('\n', f);
    }
}

typedef struct place {
    const dsc_option *option;
    dsc_option_value *value;
    bool lists;
} place;

static bool is_word(const char *word, const char *name, size_t length)
{
    return strlen(word) == length && strncmp(word, name, length) == 0;
}

static bool is_named(const dsc_option *o, const char *name, size_t length)
{
    return is_word(o->name, name, length) || (o->also && is_word(o->also, name, length));
}

const dsc_option *dsc_option_find(const dsc_option *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (is_named(&table[i], name, strlen(name)))
            return &table[i];
    return NULL;
}

// Whether an option is called so: by one of its names, or by it behind that of its set's owner.
static bool is_called(const dsc_option_set *set, const dsc_option *o, const char *name,
                      size_t length)
{
    size_t owner = set->owner ? strlen(set->owner) : 0;
    if (owner && length > owner && name[owner] == '.' && strncmp(name, set->owner, owner) == 0) {
        name += owner + 1;
        length -= owner + 1;
    }
    return is_named(o, name, length);
}

// The next set from *s on that has such an option.
static bool find_option(const dsc_option_set *sets, size_t count, const char *name, size_t length,
                        char letter, size_t *s, place *out)
{
    for (; *s < count; ++*s)
        for (size_t i = 0; i < sets[*s].count; i++) {
            const dsc_option *o = &sets[*s].table[i];
            if (letter ? o->letter == letter : is_called(&sets[*s], o, name, length)) {
                *out = (place){o, &sets[*s].value[i], sets[*s].lists};
                return true;
            }
        }
    return false;
}

static int unknown_option(const dsc_option_set *sets, size_t count, const char *name, size_t length,
                          dsc_error *err)
{
    const char *names[256];
    size_t n = 0;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && n < 256; i++)
            names[n++] = sets[s].table[i].name;
    const char *near = dsc_nearest(word, names, n);
    if (near)
        return dsc_fail(err, DSC_EUSAGE, "unknown option --%s (did you mean --%s?)", word, near);
    return dsc_fail(err, DSC_EUSAGE, "unknown option --%s", word);
}

static int set_value(const place *p, const char *text, dsc_error *err)
{
    p->value->text = text;
    if (p->option->kind == DSC_OPTION_FLAG || p->option->kind == DSC_OPTION_TEXT)
        return DSC_OK;
    bool list = p->lists || p->option->list, is_real = p->option->kind == DSC_OPTION_REAL;
    if (!list)
        return is_real ? dsc_option_real(p->option, text, &p->value->real, err)
                       : dsc_option_single(p->option, text, &p->value->integer, err);
    if (is_real) {
        double *real = NULL;
        size_t n;
        int rc = dsc_option_reals(p->option, text, &real, &n, err);
        if (!rc)
            p->value->real = real[0];
        free(real);
        return rc;
    }
    int64_t *integer;
    size_t n;
    int rc = dsc_option_list(p->option, text, &integer, &n, err);
    free(integer);
    return rc;
}

static int set_defaults(dsc_option_set *sets, size_t count, dsc_error *err)
{
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count; i++) {
            sets[s].value[i] = (dsc_option_value){0};
            place p = {&sets[s].table[i], &sets[s].value[i], sets[s].lists};
            int rc = p.option->initial ? set_value(&p, p.option->initial, err) : DSC_OK;
            if (rc)
                return rc;
        }
    return DSC_OK;
}

int dsc_options_parse(dsc_option_set *sets, size_t count, int argc, char **argv,
                      size_t *positionals, dsc_error *err)
{
    int rc = set_defaults(sets, count, err);
    bool options = true;
    *positionals = 0;
    for (int a = 0; a < argc && !rc; a++) {
        const char *word = argv[a], *name = NULL, *value = NULL;
        size_t s = 0, n = 0;
        place p;
        if (!options || word[0] != '-' || !word[1]) {
            argv[(*positionals)++] = argv[a]; // never ahead of a
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options = false;
            continue;
        }
        if (word[1] == '-') {
            name = word + 2;
            n = strcspn(name, "=");
            if (!find_option(sets, count, name, n, 0, &s, &p))
                return unknown_option(sets, count, name, n, err);
            value = name[n] ? name + n + 1 : NULL;
        } else {
            if (!find_option(sets, count, NULL, 0, word[1], &s, &p))
                return dsc_fail(err, DSC_EUSAGE, "unknown option %s", word);
            value = word[2] ? word + 2 : NULL;
        }
        if (p.option->kind == DSC_OPTION_FLAG) {
            if (value)
                return dsc_fail(err, DSC_EUSAGE, "--%s takes no value", p.option->name);
            value = "yes";
        } else if (!value) {
            if (a + 1 == argc)
                return dsc_fail(err, DSC_EUSAGE, "--%s needs a value", p.option->name);
            value = argv[++a];
        }
        do {
            p.value->given = true;
            rc = set_value(&p, value, err);
            s++;
        } while (!rc && name && find_option(sets, count, name, n, 0, &s, &p));
    }
    return rc;
}

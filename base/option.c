// SPDX-License-Identifier: Apache-2.0
// Parses a command line against option tables: names and their synonyms, values within limits,
// lists and ranges of integers, defaults, help lines. An unknown name is reported with the nearest
// known one by edit distance.
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

enum { NAME = 64 };

// Puts the first word of a list "a|b" into out, and returns the others, or NULL.
static const char *next_word(const char *list, char out[NAME])
{
    size_t n = strcspn(list, "|");
    snprintf(out, NAME, "%.*s", (int)n, list);
    return list[n] ? list + n + 1 : NULL;
}

// Keeps the word of a list "a|b" (or NULL) in `best` that is nearer to `word` than *least.
static bool nearest_listed(const char *word, const char *list, char best[NAME], size_t *least)
{
    bool nearer = false;
    for (char name[NAME]; list;) {
        list = next_word(list, name);
        size_t d = edit_distance(word, name);
        if (d >= *least)
            continue;
        *least = d;
        memcpy(best, name, NAME);
        nearer = true;
    }
    return nearer;
}

int dsc_unknown_name(const char *what, const char *word, const char *const *candidates,
                     size_t count, const char *see, dsc_error *err)
{
    char near[NAME] = "";
    if (!what || !word || !see || (count && !candidates))
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_unknown_name: what, word, candidates and see must not be NULL");
    size_t least = strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++)
        nearest_listed(word, candidates[i], near, &least);
    if (*near)
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
    for (const char *c = o->choices; c && *c; index++) {
        size_t n = strcspn(c, "|");
        if (n == length && strncmp(c, text, n) == 0) {
            *out = index;
            return DSC_OK;
        }
        c += n + (c[n] == '|');
    }
    return dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not one of %s", o->name,
                    (int)(length > 60 ? 60 : length), text,
                    o->choices ? o->choices : "its choices");
}

static int parse_one(const dsc_option *o, const char *text, size_t length, int64_t *out,
                     dsc_error *err)
{
    return o->kind == DSC_OPTION_CHOICE ? parse_choice(o, text, length, out, err)
                                        : parse_integer(o, text, length, out, err);
}

int dsc_option_single(const dsc_option *o, const char *text, int64_t *out, dsc_error *err)
{
    if (!o || !o->name || !text || !out)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_option_single: o, its name, text and out must not be NULL");
    return parse_one(o, text, strlen(text), out, err);
}

// Finds the mark between the ends of a range, ':', ".." or '-', and its width. NULL: the item is a
// single value.
static const char *range_mark(const char *item, size_t length, size_t *width)
{
    for (size_t i = 1; i < length; i++) { // a '-' in front is a sign
        *width = item[i] == ':' || item[i] == '-'                         ? 1
                 : item[i] == '.' && i + 1 < length && item[i + 1] == '.' ? 2
                                                                          : 0;
        if (*width)
            return item + i;
    }
    return NULL;
}

// Appends an item of a list: a value, or a range first:last[:step].
static int list_item(const dsc_option *o, const char *item, size_t length, int64_t **list,
                     size_t *capacity, size_t *count, dsc_error *err)
{
    size_t width = 0;
    const char *mark = o->kind == DSC_OPTION_INT ? range_mark(item, length, &width) : NULL;
    int64_t first, last, step = 1;
    int rc = parse_one(o, item, mark ? (size_t)(mark - item) : length, &first, err);
    last = first;
    if (!rc && mark) {
        const char *rest = mark + width, *end = item + length;
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
    if (!o || !o->name || !text || !out || !count)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_option_list: o, its name, text, out and count must not be NULL");
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

int dsc_option_texts(const dsc_option *o, const char *text, const char ***out, size_t *count,
                     dsc_error *err)
{
    const size_t bytes = strlen(text) + 1;
    size_t items = 1, n = 0;
    for (const char *c = text; *c; c++)
        items += *c == ',';
    void *block;
    int rc = dsc_alloc(&block, items * sizeof(char *) + bytes, 1, err);
    if (rc)
        return rc;
    const char **item = block;
    char *rest = memcpy(item + items, text, bytes);
    for (bool more = true; more && !rc; n++) {
        item[n] = rest;
        rest += strcspn(rest, ",");
        more = *rest == ',';
        *rest++ = '\0';
        if (!*item[n])
            rc = dsc_fail(err, DSC_EUSAGE, "--%s: a value is empty", o->name);
        for (size_t i = 0; i < n && !rc; i++)
            if (strcmp(item[i], item[n]) == 0)
                rc = dsc_fail(err, DSC_EUSAGE, "--%s: %.60s is given twice", o->name, item[n]);
    }
    if (rc)
        free(block);
    *out = rc ? NULL : item;
    *count = rc ? 0 : n;
    return rc;
}

void dsc_option_text(const dsc_option *o, int64_t value, char *out, size_t size)
{
    const bool choice = o && o->kind == DSC_OPTION_CHOICE;
    const char *c = choice && value >= 0 && o->choices ? o->choices : "";
    if (!out)
        return;
    for (int64_t i = 0; i < value && *c; i++) {
        c += strcspn(c, "|");
        c += *c == '|';
    }
    if (o && !choice)
        snprintf(out, size, "%" PRId64, value);
    else
        snprintf(out, size, "%.*s", (int)strcspn(c, "|"), c);
}

void dsc_option_help(const dsc_option *table, size_t count, FILE *f)
{
    enum { COLUMN = 30 };
    for (size_t i = 0; table && f && i < count; i++) {
        const dsc_option *o = &table[i];
        if (!o->name)
            continue;
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
        fputs(o->help ? o->help : "", f);
        if (o->initial && *o->initial)
            fprintf(f, " (default %s)", o->initial);
        fputc('\n', f);
    }
}

bool dsc_is_listed(const char *list, const char *text, size_t length)
{
    for (const char *word = list; word && *word && text;) {
        size_t n = strcspn(word, "|");
        if (n == length && strncmp(word, text, n) == 0)
            return true;
        word += n + (word[n] == '|');
    }
    return false;
}

bool dsc_option_is(const dsc_option *o, const char *name, size_t length)
{
    return o && (dsc_is_listed(o->name, name, length) || dsc_is_listed(o->synonyms, name, length));
}

const dsc_option *dsc_option_find(const dsc_option *table, size_t count, const char *name)
{
    for (size_t i = 0; table && name && i < count; i++)
        if (dsc_option_is(&table[i], name, strlen(name)))
            return &table[i];
    return NULL;
}

// --- the words of a command line -----------------------------------------------------------------

// An option as it is spelled: --NAME, --OWNER.NAME or -LETTER.
typedef struct spelling {
    const char *name, *owner; // owner: NULL when there is no dot
    size_t length, owner_length;
    char letter;       // 0: it has a name
    const char *value; // in the same word, or NULL
} spelling;

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1];
}

static spelling spell(const char *word)
{
    if (word[1] != '-')
        return (spelling){.letter = word[1], .value = word[2] ? word + 2 : NULL};
    const char *name = word + 2;
    size_t n = strcspn(name, "=");
    spelling x = {.name = name, .length = n, .value = name[n] ? name + n + 1 : NULL};
    const char *dot = memchr(name, '.', n);
    if (dot) {
        x.owner = name;
        x.owner_length = (size_t)(dot - name);
        x.name = dot + 1;
        x.length = n - x.owner_length - 1;
    }
    return x;
}

static bool matches(const dsc_option_set *set, const dsc_option *o, const spelling *x)
{
    if (x->letter)
        return o->letter == x->letter;
    if (x->owner && !dsc_is_listed(set->owner, x->owner, x->owner_length) &&
        !dsc_is_listed(set->synonyms, x->owner, x->owner_length))
        return false;
    return dsc_option_is(o, x->name, x->length);
}

typedef struct place {
    const dsc_option *option;
    const dsc_option_set *set;
    dsc_option_value *value; // NULL: the set has none
} place;

// The next set from *s on that has such an option, here or elsewhere.
static bool find_option(const dsc_option_set *sets, size_t count, const spelling *x, bool elsewhere,
                        size_t *s, place *out)
{
    for (; *s < count; ++*s) {
        const dsc_option_set *set = &sets[*s];
        for (size_t i = 0; i < set->count && (set->elsewhere != NULL) == elsewhere; i++)
            if (matches(set, &set->table[i], x)) {
                *out = (place){&set->table[i], set, set->value ? &set->value[i] : NULL};
                return true;
            }
    }
    return false;
}

// --- unknown options -----------------------------------------------------------------------------

// The name or synonym nearest to `word`, of the options that are taken here or elsewhere; *set has
// it. False: none is near.
static bool nearest_option(const dsc_option_set *sets, size_t count, bool elsewhere,
                           const char *word, char out[NAME], const dsc_option_set **set)
{
    size_t least = strlen(word) / 2 + 1;
    *out = '\0';
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && (sets[s].elsewhere != NULL) == elsewhere; i++) {
            if (nearest_listed(word, sets[s].table[i].name, out, &least))
                *set = &sets[s];
            if (nearest_listed(word, sets[s].table[i].synonyms, out, &least))
                *set = &sets[s];
        }
    return *out;
}

// "method lookahead, method ouroboros": who takes the option, or the first of them.
static void list_owners(const dsc_option_set *sets, size_t count, const spelling *x, char *out,
                        size_t size)
{
    enum { SHOWN = 3 };
    size_t n = 0, owners = 0;
    place p;
    *out = '\0';
    for (size_t s = 0; find_option(sets, count, x, true, &s, &p); s++)
        if (owners++ < SHOWN)
            n += (size_t)snprintf(out + n, size - n, "%s%.60s", n ? ", " : "", p.set->elsewhere);
    if (owners > SHOWN)
        snprintf(out + n, size - n, " and others");
}

static int unknown_option(const dsc_option_set *sets, size_t count, const char *word,
                          const spelling *x, dsc_error *err)
{
    char name[NAME], near[NAME], owners[256];
    const dsc_option_set *set = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, x->letter ? "" : "="), word);
    list_owners(sets, count, x, owners, sizeof owners);
    if (*owners)
        return dsc_fail(err, DSC_EUSAGE, "unknown option %s (it is an option of %s)", name, owners);
    if (x->letter)
        return dsc_fail(err, DSC_EUSAGE, "unknown option %s", name);
    if (nearest_option(sets, count, false, name + 2, near, &set))
        return dsc_fail(err, DSC_EUSAGE, "unknown option %s (did you mean --%s?)", name, near);
    if (nearest_option(sets, count, true, name + 2, near, &set))
        return dsc_fail(err, DSC_EUSAGE, "unknown option %s (did you mean --%s, of %s?)", name,
                        near, set->elsewhere);
    return dsc_fail(err, DSC_EUSAGE, "unknown option %s", name);
}

static int check_sets(const dsc_option_set *sets, size_t count, int argc, char **argv,
                      dsc_error *err)
{
    bool whole = (sets || !count) && (argv || argc <= 0);
    for (size_t s = 0; s < count && whole; s++)
        whole = sets[s].table || !sets[s].count;
    for (int a = 0; a < argc && whole; a++)
        whole = argv[a];
    return whole ? DSC_OK
                 : dsc_fail(err, DSC_EUSAGE,
                            "dsc_options_check: sets, their tables and argv must not be NULL");
}

int dsc_options_check(const dsc_option_set *sets, size_t count, int argc, char **argv,
                      dsc_error *err)
{
    int rc = check_sets(sets, count, argc, argv, err);
    if (rc)
        return rc;
    for (int a = 0; a < argc && strcmp(argv[a], "--"); a++) {
        if (!is_option(argv[a]))
            continue;
        const spelling x = spell(argv[a]);
        size_t s = 0;
        place p;
        if (!find_option(sets, count, &x, false, &s, &p))
            return unknown_option(sets, count, argv[a], &x, err);
        a += p.option->kind != DSC_OPTION_FLAG && !x.value; // the next word is its value
    }
    return DSC_OK;
}

// --- values --------------------------------------------------------------------------------------

static int set_value(const place *p, const char *text, dsc_error *err)
{
    p->value->text = text;
    if (p->option->kind == DSC_OPTION_FLAG || p->option->kind == DSC_OPTION_TEXT)
        return DSC_OK;
    bool list = p->set->lists || p->option->list, is_real = p->option->kind == DSC_OPTION_REAL;
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

static int set_defaults(const dsc_option_set *sets, size_t count, dsc_error *err)
{
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && !sets[s].elsewhere; i++) {
            if (!sets[s].value)
                return dsc_fail(err, DSC_EUSAGE,
                                "dsc_options_parse: the values of a set must not be NULL");
            sets[s].value[i] = (dsc_option_value){0};
            place p = {&sets[s].table[i], &sets[s], &sets[s].value[i]};
            int rc = p.option->initial ? set_value(&p, p.option->initial, err) : DSC_OK;
            if (rc)
                return rc;
        }
    return DSC_OK;
}

int dsc_option_uses_add(dsc_option_uses *uses, const dsc_option_use *use, dsc_error *err)
{
    if (!uses || !use)
        return dsc_fail(err, DSC_EUSAGE, "dsc_option_uses_add: uses and use must not be NULL");
    void *all = uses->use;
    int rc = dsc_grow(&all, &uses->capacity, uses->count + 1, sizeof *use, err);
    uses->use = all;
    if (!rc)
        uses->use[uses->count++] = *use;
    return rc;
}

// Sets the option in every set that has it.
static int give_value(const dsc_option_set *sets, size_t count, const spelling *x, const char *text,
                      dsc_error *err)
{
    place p;
    int rc = DSC_OK;
    for (size_t s = 0; !rc && find_option(sets, count, x, false, &s, &p); s++) {
        p.value->given = true;
        rc = set_value(&p, text, err);
        const dsc_option_use use = {p.option, text, x->owner != NULL};
        if (!rc && p.set->uses)
            rc = dsc_option_uses_add(p.set->uses, &use, err);
    }
    return rc;
}

int dsc_options_parse(dsc_option_set *sets, size_t count, int argc, char **argv,
                      size_t *positionals, dsc_error *err)
{
    if (!positionals)
        return dsc_fail(err, DSC_EUSAGE, "dsc_options_parse: positionals must not be NULL");
    int rc = dsc_options_check(sets, count, argc, argv, err);
    bool options = true;
    *positionals = 0;
    if (!rc)
        rc = set_defaults(sets, count, err);
    for (int a = 0; a < argc && !rc; a++) {
        if (!options || !is_option(argv[a])) {
            argv[(*positionals)++] = argv[a]; // never ahead of a
            continue;
        }
        if (strcmp(argv[a], "--") == 0) {
            options = false;
            continue;
        }
        const spelling x = spell(argv[a]);
        size_t s = 0;
        place p;
        find_option(sets, count, &x, false, &s, &p);
        const char *value = x.value;
        if (p.option->kind == DSC_OPTION_FLAG) {
            if (value)
                return dsc_fail(err, DSC_EUSAGE, "--%s takes no value", p.option->name);
            value = "yes";
        } else if (!value) {
            if (a + 1 == argc)
                return dsc_fail(err, DSC_EUSAGE, "--%s needs a value", p.option->name);
            value = argv[++a];
        }
        rc = give_value(sets, count, &x, value, err);
    }
    return rc;
}

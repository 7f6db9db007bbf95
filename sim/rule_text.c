// SPDX-License-Identifier: Apache-2.0
// Rules with parameters: NAME:VALUE,VALUE becomes a descriptor of its own, whose name is that text.
//
// Descriptors are compared by address and live as long as the program, so the same values always
// give the same one: the list below only grows, by one entry for each distinct text.
#include "sim/rule_text.h"

#include "base/number.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 64 };

typedef struct entry {
    dsc_verifier_type rule;
    struct entry *next;
    char name[TEXT];
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;

// The names of the values, as in "relaxed:top-k,delta".
static void describe(const dsc_verifier_type *rule, char *out, size_t size)
{
    int n = snprintf(out, size, "%s", rule->name);
    for (size_t i = 0; i < rule->options && n >= 0 && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "%c%s", i ? ',' : ':', rule->option[i].name);
}

// An INT option has the range [min, max], a REAL one [least, most].
static int parse_value(const dsc_verifier_type *rule, size_t i, const char *text, double *out,
                       dsc_error *err)
{
    const dsc_option *o = &rule->option[i];
    const bool integer = o->kind == DSC_OPTION_INT;
    const double least = integer ? (double)o->min : o->least;
    const double most = integer ? (double)o->max : o->most;
    char *end, form[128];
    *out = dsc_strtod(text, &end);
    if (*text && !*end && *out >= least && *out <= most && (!integer || *out == floor(*out)))
        return DSC_OK;
    describe(rule, form, sizeof form);
    return dsc_fail(err, DSC_EUSAGE, "--rule %s: %s '%s' is not %s from %g to %g", form, o->name,
                    text, integer ? "an integer" : "a number", least, most);
}

static int parse(const dsc_verifier_type *rule, const char *values, double *out, dsc_error *err)
{
    char form[128], word[TEXT];
    size_t i = 0;
    describe(rule, form, sizeof form);
    for (const char *at = values; i < rule->options; i++) {
        const size_t n = strcspn(at, ",");
        const bool last = i + 1 == rule->options;
        if (!n || n >= sizeof word || (at[n] != 0) == last)
            break;
        memcpy(word, at, n);
        word[n] = '\0';
        int rc = parse_value(rule, i, word, &out[i], err);
        if (rc)
            return rc;
        at += n + !last;
    }
    if (!rule->options)
        return dsc_fail(err, DSC_EUSAGE, "rule %s has no parameters: write --rule %s", rule->name,
                        rule->name);
    return i == rule->options
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "rule %s has %zu parameter%s, and '%.60s' is not as many "
                          "numbers; write --rule %s",
                          rule->name, rule->options, rule->options == 1 ? "" : "s", values, form);
}

// The entry for these values, which is added where there is none.
static int intern(const dsc_verifier_type *rule, const double *value, const dsc_verifier_type **out,
                  dsc_error *err)
{
    entry *e;
    int rc = dsc_new(&e, 1, err);
    if (rc)
        return rc;
    int n = snprintf(e->name, sizeof e->name, "%s", rule->name);
    e->rule = *rule;
    e->rule.name = e->name;
    e->rule.synonyms = NULL;
    for (size_t i = 0; i < rule->options; i++) {
        char number[32];
        e->rule.parameter[i] = value[i];
        dsc_real_text(number, sizeof number, 12, value[i]);
        n += snprintf(e->name + n, sizeof e->name - (size_t)n, "%c%s", i ? ',' : ':', number);
    }
    pthread_mutex_lock(&lock);
    entry *same = entries;
    while (same && strcmp(same->name, e->name) != 0)
        same = same->next;
    if (!same) {
        e->next = entries;
        entries = e;
    }
    pthread_mutex_unlock(&lock);
    *out = same ? &same->rule : &e->rule;
    if (same)
        free(e);
    return DSC_OK;
}

int dsc_rule_with(const dsc_verifier_type *rule, const char *values, const dsc_verifier_type **out,
                  dsc_error *err)
{
    double value[DSC_RULE_PARAMETERS] = {0};
    int rc = parse(rule, values, value, err);
    return rc ? rc : intern(rule, value, out, err);
}

// Names of rules begin with a letter, values with a digit, a point or a sign.
size_t dsc_rule_text_length(const char *list)
{
    size_t n = strcspn(list, ",");
    while (list[n] && list[n + 1] && strchr("+-.0123456789", list[n + 1]))
        n += 1 + strcspn(list + n + 1, ",");
    return n;
}

// SPDX-License-Identifier: Apache-2.0
// What a table of predictions and measurements comes to, in a sentence.
#include "cli/validate/validate_live.h"

#include "base/columns.h"

#include <math.h>
#include <string.h>

// Columns that are looked at.
typedef struct view {
    const dsc_table *t;
    size_t method, rule, parameters, temperature, quantity, predicted, measured, percent, z,
        verdict;
} view;

static size_t column(const dsc_table *t, const char *name)
{
    return (size_t)dsc_table_find(t, name);
}

static const char *word(const view *v, size_t row, size_t at)
{
    return dsc_table_at(v->t, row, at)->text;
}

// Whether its quantity is the first of a configuration: nothing is accepted where nothing is
// drafted.
static bool is_first(const view *v, size_t row)
{
    return strcmp(word(v, row, v->quantity), DSC_COL_DRAFT_ACCEPTANCE_RATE) == 0 ||
           (strcmp(word(v, row, v->quantity), "block_efficiency") == 0 &&
            strcmp(word(v, row - 1, v->quantity), DSC_COL_DRAFT_ACCEPTANCE_RATE) != 0);
}

// Whether a row begins another configuration than the one before.
static bool begins(const view *v, size_t row)
{
    return !row || strcmp(word(v, row, v->method), word(v, row - 1, v->method)) != 0 ||
           strcmp(word(v, row, v->rule), word(v, row - 1, v->rule)) != 0 ||
           strcmp(word(v, row, v->parameters), word(v, row - 1, v->parameters)) != 0 ||
           dsc_table_real(v->t, row, v->temperature) !=
               dsc_table_real(v->t, row - 1, v->temperature) ||
           is_first(v, row);
}

typedef struct tally {
    size_t configurations, passed, failed, unknown; // configurations
    size_t pooled_failed;
    size_t first; // row that fails
    bool any;
    double worst_z, worst_speedup; // absolute; NaN: none
} tally;

static void take_row(const view *v, size_t row, tally *s, bool *failed, bool *unknown)
{
    const char *verdict = word(v, row, v->verdict), *quantity = word(v, row, v->quantity);
    if (strcmp(verdict, "fail") == 0) {
        s->first = s->any ? s->first : row;
        s->any = *failed = true;
    }
    *unknown |= strcmp(verdict, "not predicted") == 0 && strcmp(quantity, "block_efficiency") == 0;
    if (strcmp(verdict, "shown") != 0)
        s->worst_z = fmax(s->worst_z, fabs(dsc_table_real(v->t, row, v->z)));
    if (strcmp(quantity, "speedup") == 0)
        s->worst_speedup = fmax(s->worst_speedup, fabs(dsc_table_real(v->t, row, v->percent)));
}

static tally count(const view *v)
{
    tally s = {.worst_z = NAN, .worst_speedup = NAN};
    for (size_t row = 0, next; row < v->t->rows; row = next) {
        bool failed = false, unknown = false;
        next = row;
        do
            take_row(v, next++, &s, &failed, &unknown);
        while (next < v->t->rows && !begins(v, next));
        if (strcmp(word(v, row, v->parameters), "all") == 0) {
            s.pooled_failed += failed;
            continue;
        }
        s.configurations++;
        s.failed += failed;
        s.unknown += !failed && unknown;
        s.passed += !failed && !unknown;
    }
    return s;
}

static void number(char *out, size_t size, const char *what, double x, const char *unit)
{
    if (isnan(x))
        *out = '\0';
    else
        snprintf(out, size, "; %s %.2f%s", what, x, unit);
}

int validate_live_sum_up(const dsc_table *t, dsc_error *err)
{
    const view v = {t,
                    column(t, "method"),
                    column(t, "rule"),
                    column(t, "parameters"),
                    column(t, "temperature"),
                    column(t, "quantity"),
                    column(t, "predicted"),
                    column(t, "measured"),
                    column(t, "error_percent"),
                    column(t, "z"),
                    column(t, "verdict")};
    const tally s = count(&v);
    char z[64], speedup[64];
    number(z, sizeof z, "worst |z|", s.worst_z, "");
    number(speedup, sizeof speedup, "worst error of a speed-up", s.worst_speedup, " %");
    if (!s.any) {
        fprintf(stderr,
                "draftscope: %zu configurations: %zu pass, 0 fail, %zu are not predicted%s%s\n",
                s.configurations, s.passed, s.unknown, z, speedup);
        return DSC_OK;
    }
    return dsc_fail(err, DSC_ECHECK,
                    "%zu configurations: %zu pass, %zu fail, %zu are not predicted; %zu pooled "
                    "rows fail%s%s; first %s, rule %s, %s: %s %.6g predicted, %.6g measured",
                    s.configurations, s.passed, s.failed, s.unknown, s.pooled_failed, z, speedup,
                    word(&v, s.first, v.method), word(&v, s.first, v.rule),
                    word(&v, s.first, v.parameters), word(&v, s.first, v.quantity),
                    dsc_table_real(t, s.first, v.predicted),
                    dsc_table_real(t, s.first, v.measured));
}

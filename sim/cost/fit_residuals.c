// SPDX-License-Identifier: Apache-2.0
// Sums of measured and predicted times by category. R2 = 1 - sum of squared residuals / sum of
// squared deviations from the mean.
#include "sim/cost/fit_residuals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OTHERS = DSC_CATEGORIES_MAX - 1 };

static int find_category(dsc_fit_residuals *r, const char *name)
{
    for (int i = 0; i < r->categories; i++)
        if (strncmp(r->category[i].name, name, DSC_CATEGORY_BYTES - 1) == 0)
            return i;
    if (r->categories == OTHERS)
        return OTHERS;
    snprintf(r->category[r->categories].name, DSC_CATEGORY_BYTES, "%s", name);
    return r->categories++;
}

int dsc_fit_category_of(dsc_fit_residuals *r, const json_t *metadata)
{
    const char *name = json_string_value(json_object_get(metadata, "category"));
    return find_category(r, name ? name : "all");
}

void dsc_fit_hold_out(dsc_fit_residuals *r, int category, double measured, double predicted)
{
    const bool few = r->category[category].requests < DSC_CATEGORY_MIN;
    dsc_fit_category *c = &r->category[few ? OTHERS : category];
    c->measured += measured;
    c->predicted += predicted;
    r->requests++;
    r->sum += measured;
    r->squares += measured * measured;
    r->rest += (measured - predicted) * (measured - predicted);
}

// The residual of a category, relative to its time.
static double residual(const dsc_fit_category *c)
{
    return c->predicted / c->measured - 1;
}

void dsc_fit_describe(const dsc_fit_residuals *r, char *text, size_t size)
{
    bool told[DSC_CATEGORIES_MAX] = {false};
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, "; on the held-out half R2 %.4f, residuals",
                             1 - r->rest / (r->squares - r->sum * r->sum / r->requests));
    while (used < size) {
        int worst = -1;
        for (int i = 0; i < DSC_CATEGORIES_MAX; i++)
            if (r->category[i].measured > 0 && !told[i] &&
                (worst < 0 ||
                 fabs(residual(&r->category[i])) > fabs(residual(&r->category[worst]))))
                worst = i;
        if (worst < 0)
            return;
        told[worst] = true;
        used += (size_t)snprintf(text + used, size - used, " %s %+.1f %%",
                                 worst == OTHERS ? "others" : r->category[worst].name,
                                 100 * residual(&r->category[worst]));
    }
}

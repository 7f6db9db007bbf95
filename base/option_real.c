// SPDX-License-Identifier: Apache-2.0
// Lists of real numbers: "0.5,0.6:0.9:0.05".
#include "base/option.h"
#include "base/order.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 1000000 };

static int bad_real(const dsc_option *o, const char *text, size_t length, dsc_error *err)
{
    int shown = (int)(length > 60 ? 60 : length);
    if (isfinite(o->least) && isfinite(o->most))
        return dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not a number from %g to %g", o->name,
                        shown, text, o->least, o->most);
    return dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not a number of at least %g", o->name, shown,
                    text, o->least);
}

// Decimal only: no hexadecimal, infinity or NaN, no blanks.
static int parse_real(const dsc_option *o, const char *text, size_t length, double *out,
                      dsc_error *err)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy)
        return bad_real(o, text, length, err);
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-") != length || copy[0] == '+')
        return bad_real(o, text, length, err);
    *out = dsc_strtod(copy, &end);
    if (*end || !isfinite(*out))
        return bad_real(o, text, length, err);
    return DSC_OK;
}

int dsc_option_real(const dsc_option *o, const char *text, double *out, dsc_error *err)
{
    double *list;
    size_t n;
    if (!out)
        return dsc_fail(err, DSC_EUSAGE, "dsc_option_real: out must not be NULL");
    int rc = dsc_option_reals(o, text, &list, &n, err);
    if (rc)
        return rc;
    *out = list[0];
    free(list);
    return n == 1 ? DSC_OK
                  : dsc_fail(err, DSC_EUSAGE, "--%s: one number is expected, not a list", o->name);
}

static int append(const dsc_option *o, double value, const char *item, size_t length, double **list,
                  size_t *capacity, size_t *count, dsc_error *err)
{
    if (!(value >= o->least && value <= o->most))
        return bad_real(o, item, length, err);
    if (*count == MAX_VALUES)
        return dsc_fail(err, DSC_EUSAGE, "--%s: more than %d values", o->name, MAX_VALUES);
    void *p = *list;
    int rc = dsc_grow(&p, capacity, *count + 1, sizeof **list, err);
    *list = p;
    if (!rc)
        (*list)[(*count)++] = value;
    return rc;
}

// A value, or a range first:last:step.
static int item_values(const dsc_option *o, const char *item, size_t length, double **list,
                       size_t *capacity, size_t *count, dsc_error *err)
{
    const char *end = item + length, *colon = memchr(item, ':', length);
    double first, last, step;
    int rc = parse_real(o, item, colon ? (size_t)(colon - item) : length, &first, err);
    if (rc || !colon)
        return rc ? rc : append(o, first, item, length, list, capacity, count, err);
    const char *second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
    if (!second)
        return dsc_fail(err, DSC_EUSAGE, "--%s: the range '%.*s' has no step (first:last:step)",
                        o->name, (int)(length > 60 ? 60 : length), item);
    rc = parse_real(o, colon + 1, (size_t)(second - colon - 1), &last, err);
    if (!rc)
        rc = parse_real(o, second + 1, (size_t)(end - second - 1), &step, err);
    if (!rc && !(step > 0 && last >= first))
        rc = dsc_fail(err, DSC_EUSAGE, "--%s: the range '%.*s' is empty", o->name,
                      (int)(length > 60 ? 60 : length), item);
    for (size_t i = 0; !rc; i++) {
        char text[32];
        double value = first + (double)i * step;
        if (value > last + 1e-9 * step)
            break;
        dsc_real_text(text, sizeof text, 12, value); // 0.6 and not 0.6000000000000001
        rc = append(o, dsc_strtod(text, NULL), item, length, list, capacity, count, err);
    }
    return rc;
}

static int refuse_repeats(const dsc_option *o, const double *list, size_t count, dsc_error *err)
{
    double *sorted;
    int rc = dsc_new(&sorted, count, err);
    if (rc)
        return rc;
    memcpy(sorted, list, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, dsc_by_real);
    for (size_t i = 1; i < count && !rc; i++)
        if (sorted[i] == sorted[i - 1])
            rc = dsc_fail(err, DSC_EUSAGE, "--%s: %g is given twice", o->name, sorted[i]);
    free(sorted);
    return rc;
}

int dsc_option_reals(const dsc_option *o, const char *text, double **out, size_t *count,
                     dsc_error *err)
{
    size_t capacity = 0;
    int rc = DSC_OK;
    if (!o || !o->name || !text || !out || !count)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_option_reals: o, its name, text, out and count must not be NULL");
    *out = NULL;
    *count = 0;
    for (const char *item = text; !rc;) {
        size_t n = strcspn(item, ",");
        rc = item_values(o, item, n, out, &capacity, count, err);
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

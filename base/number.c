// SPDX-License-Identifier: Apache-2.0
// strtod and snprintf under the C locale, which is made at the first use and kept.
#include "base/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale; // (locale_t)0 without memory; then the program's locale serves

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t get_locale(void)
{
    pthread_once(&once, make_locale);
    return c_locale;
}

double dsc_strtod(const char *text, char **end)
{
    const locale_t c = get_locale();
    return c ? strtod_l(text, end, c) : strtod(text, end);
}

void dsc_real_text(char *text, size_t size, int digits, double x)
{
    const locale_t c = get_locale(), before = c ? uselocale(c) : (locale_t)0;
    snprintf(text, size, "%.*g", digits, x);
    if (c)
        uselocale(before);
}

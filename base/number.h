// SPDX-License-Identifier: Apache-2.0
// Numbers as text in the C locale, whatever locale the program has set: files and options have a
// decimal point everywhere.
#ifndef DSC_BASE_NUMBER_H
#define DSC_BASE_NUMBER_H

#include <stddef.h>

// strtod of the C locale.
double dsc_strtod(const char *text, char **end);

// Writes x with `digits` significant digits as %g does.
void dsc_real_text(char *text, size_t size, int digits, double x);

#endif

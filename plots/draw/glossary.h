// SPDX-License-Identifier: Apache-2.0
// How axes and headings call what a result table holds, and which way is better. What a column
// means is said by the table itself.
#ifndef DSC_PLOTS_GLOSSARY_H
#define DSC_PLOTS_GLOSSARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dsc_term {
    const char *column;
    const char *title; // as a heading or an axis says it, with its unit
    bool less_is_better;
} dsc_term;

// The entry of a column, or NULL.
const dsc_term *dsc_term_find(const char *column);
// Its title, or the column's own name.
const char *dsc_term_title(const char *column);
// Its title without unit and explanation, to begin a heading.
void dsc_term_heading(const char *column, char *out, size_t size);

#endif

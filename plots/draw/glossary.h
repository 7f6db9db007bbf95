// SPDX-License-Identifier: Apache-2.0
// Titles of result columns for axes and headings, short labels for legends and sentences, and the
// direction in which each column improves. The table itself carries the definition of each column.
#ifndef DSC_PLOTS_GLOSSARY_H
#define DSC_PLOTS_GLOSSARY_H

#include "plots/draw/plot.h"

// The title of a column, or its own name if it has no entry.
const char *dsc_term_title(const char *column);
// The label of a column in legends and sentences, or its own name if it has none, and what
// separates it from a value: "draft length" and " ", "n" and " = ".
const char *dsc_term_label(const char *column);
const char *dsc_term_equals(const char *column);
// Whether smaller values of a column are better.
bool dsc_term_less_is_better(const char *column);
// The title without unit and explanation, capitalized, to begin a heading; the plot owns the text.
const char *dsc_term_heading(dsc_plot *p, const char *column);

#endif

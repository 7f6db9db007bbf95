// SPDX-License-Identifier: Apache-2.0
// Labels rows by the parameters in which they differ.
#ifndef DSC_PLOTS_LABEL_H
#define DSC_PLOTS_LABEL_H

#include "plots/draw/select.h"

// What distinguishes group `which` from the others, given the first row of each: "spectr, kseq,
// drafts 4". These are method and rule where they differ, and as few further parameters as are
// needed. The columns skip[columns] are left out.
const char *dsc_distinct_label(dsc_plot *p, const dsc_table *t, const size_t *first, size_t groups,
                               size_t which, const bool *skip);
// The same for a line of a figure, cut to its room in the key: method and rule if nothing differs.
const char *dsc_line_label(dsc_plot *p, const dsc_table *t, const size_t *first, size_t groups,
                           size_t which, const bool *skip);
// Writes parameter `c` of a row as dsc_distinct_label does, or nothing if the row has no value for
// it; returns whether it has one.
bool dsc_put_parameter(dsc_writer *w, const dsc_table *t, size_t row, size_t c,
                       const char *separator);
// Writes method and rule of a row: "spectr, kseq".
void dsc_put_method(dsc_writer *w, const dsc_table *t, size_t row);

#endif

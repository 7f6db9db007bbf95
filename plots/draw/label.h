// SPDX-License-Identifier: Apache-2.0
// What rows are called where they stand side by side: the parameters that tell them apart.
#ifndef DSC_PLOTS_LABEL_H
#define DSC_PLOTS_LABEL_H

#include "plots/draw/select.h"

// What tells group `which` from the others, whose first rows are given: "spectr, kseq, drafts 4":
// method and rule where they differ, and as few further parameters as will do. Of columns named in
// `skip` (NULL-terminated) nothing is said.
void dsc_put_distinct(dsc_writer *w, const dsc_table *t, const size_t *first, size_t groups,
                      size_t which, const char *const *skip);
// Parameter `c` of a row the same way, nothing when it has none; returns whether it has.
bool dsc_put_parameter(dsc_writer *w, const dsc_table *t, size_t row, size_t c,
                       const char *separator);
// "spectr, kseq": of a row that needs not be told apart from others.
void dsc_put_method(dsc_writer *w, const dsc_table *t, size_t row);

#endif

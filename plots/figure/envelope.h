// SPDX-License-Identifier: Apache-2.0
// The envelope of configurations: for each method and rule, the best value at each x, whatever the
// other parameters are; one panel per value of a condition such as the batch size.
#ifndef DSC_PLOTS_ENVELOPE_H
#define DSC_PLOTS_ENVELOPE_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

enum { DSC_ENVELOPE_PANELS = 6 };

typedef struct dsc_envelope {
    const double *x; // [nx] ascending
    size_t nx;
    double panel[DSC_ENVELOPE_PANELS]; // values of the condition
    size_t panels, conditions;         // drawn, and all; 1 without a condition
    size_t first[DSC_STYLES];          // a row of each line
    size_t lines, methods;             // drawn, and all
    const char *label[DSC_STYLES];     // "suffix, greedy"
    double *value;                     // [panels][lines][nx], NaN where there is none
    size_t *row;                       // [panels][lines][nx] of the table, or SIZE_MAX
    const char **detail;               // [panels][lines][nx] the other parameters of that row
    bool several;                      // some line has several configurations at one x
} dsc_envelope;

// Reads rows of a selection. x and y are columns; `condition` is one or -1. At most DSC_STYLES
// lines are kept, in the order of the table. A row without a steady state is the best only where
// none has one. DSC_EUSAGE: no finite x or y.
void dsc_envelope_init(dsc_plot *p, dsc_envelope *e, const dsc_selection *s, int x, int y,
                       int condition, bool less_is_better);

// Whether a row of a simulated server has no steady state: its queue grows (`saturated` = yes), or
// its run is too short (unknown). Its values depend on the length of the run.
bool dsc_envelope_is_unsteady(const dsc_table *t, size_t row);

#endif

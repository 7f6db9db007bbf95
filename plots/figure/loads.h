// SPDX-License-Identifier: Apache-2.0
// What the figures of a server by load share (tables of draftscope serve): the loads, the loads
// from which on a line is worse than no speculation, and the points that no line goes through:
// those of loads without a steady state and of measured rows.
#ifndef DSC_PLOTS_LOADS_H
#define DSC_PLOTS_LOADS_H

#include "plots/draw/panel.h"
#include "plots/figure/envelope.h"

typedef struct dsc_loads {
    bool clients;       // the load is a number of clients, not a rate
    int x;              // its column
    dsc_selection rows; // simulated, those of no speculation among them
    size_t *measured;   // [measured_rows] rows with `measured` = yes
    size_t measured_rows;
    size_t outside;         // measured rows at loads below or above the simulated ones
    dsc_panel_point *point; // [points] of all panels
    size_t points, room;
    bool unsteady; // some point is of a load without a steady state
} dsc_loads;

// Reads the loads of the plot's table; `panels`: of the figure. DSC_EUSAGE: as dsc_select, a table
// without loads, or one with several processes of arrivals at one load.
void dsc_loads_read(dsc_plot *p, dsc_loads *l, size_t panels);

// The label of the load on an axis.
const char *dsc_loads_label(const dsc_loads *l);

// The line of no speculation, or e->lines.
size_t dsc_loads_none(const dsc_plot *p, const dsc_envelope *e);

// How a line is compared with no speculation.
typedef struct dsc_loads_judge {
    bool less_is_better;
    double margin; // a share: differences up to it are none
    bool unsteady; // loads without a steady state of both count: their values describe the server
} dsc_loads_judge;

// The load from which on a line of value[lines][nx] is worse than no speculation, up to the last
// load, interpolated; NaN: it is better at the last load, or worse at every one.
double dsc_loads_crossing(const dsc_plot *p, const dsc_envelope *e, const double *value,
                          size_t line, dsc_loads_judge judge);

// Turns the values of loads without a steady state in value[lines][nx] of a panel into hollow
// points.
void dsc_loads_split(dsc_plot *p, dsc_loads *l, size_t panel, const dsc_envelope *e, double *value);

// Adds `column` of the measured rows to a panel as filled points. DSC_EUSAGE: no line has the
// method of a measured row.
void dsc_loads_add_measured(dsc_plot *p, dsc_loads *l, size_t panel, const dsc_envelope *e,
                            const char *column);

void dsc_loads_add(dsc_plot *p, dsc_loads *l, dsc_panel_point point);

// The parts of a subtitle that are not empty, with semicolons between them.
const char *dsc_loads_subtitle(dsc_plot *p, const dsc_loads *l, const dsc_envelope *e,
                               const char *const *part, size_t parts);

#endif

// SPDX-License-Identifier: Apache-2.0
// Draws figures of result tables (base/table.h) with gnuplot.
//
//   const dsc_figure_type *f = dsc_figure_find("llma-speedup");
//   rc = dsc_figure_render(f, &table, &options, "svg", "speedup.svg", NULL, false, &err);
//
// writes speedup.svg, speedup.gp (the script with its data inline: `gnuplot -d speedup.gp >
// speedup.svg` redraws the picture) and speedup.data.tsv (the plotted numbers). The output depends
// on the table and the options alone, to the byte; a PDF's creation date is fixed.
#ifndef DSC_PLOTS_FIGURE_H
#define DSC_PLOTS_FIGURE_H

#include "plots/draw/plot.h"

typedef struct dsc_figure_type {
    const char *name, *summary;
    const char *needs; // names of the columns it reads, separated by spaces
    const void *spec;  // constants for functions that draw several figures
    // Whether a report should draw the figure for a table that has these columns; NULL: always.
    bool (*fits)(dsc_plot *p);
    bool compares; // can compare the rows of several joined tables
    // Fills script, finding and data. DSC_EUSAGE: the table or the options do not allow the figure.
    void (*draw)(dsc_plot *p);
} dsc_figure_type;

// Every figure, NULL-terminated, in the order of a report.
const dsc_figure_type *const *dsc_figures(void);
const dsc_figure_type *dsc_figure_find(const char *name); // or NULL
// Whether a report should draw the figure of a table.
bool dsc_figure_fits(const dsc_figure_type *f, const dsc_table *t);

// Draws into memory. `terminal` is "svg", "pdf", "png" (two device pixels per pixel) or "dumb"
// (text). `o` may be NULL. DSC_EUSAGE: a column is missing, no row is left, or two rows share a
// point (the message names the filter to use). DSC_EABSENT, DSC_EIO: as dsc_gnuplot_run.
int dsc_figure_draw(const dsc_figure_type *f, const dsc_table *t, const dsc_figure_options *o,
                    const char *terminal, dsc_drawing *out, dsc_error *err);
void dsc_drawing_fini(dsc_drawing *d);

// Draws into files: `out_path`, and its name with the extension replaced by .gp and .data.tsv.
// DSC_EUSAGE: one of the three exists and `force` is false, or it is an input. Each file appears
// complete or not at all. If out_path is NULL, only the picture is written, to `stream`.
int dsc_figure_render(const dsc_figure_type *f, const dsc_table *t, const dsc_figure_options *o,
                      const char *terminal, const char *out_path, FILE *stream, bool force,
                      dsc_error *err);

#endif

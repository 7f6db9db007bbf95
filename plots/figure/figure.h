// SPDX-License-Identifier: Apache-2.0
// Figures drawn from result tables (base/table.h) by gnuplot.
//
//   const dsc_figure_type *f = dsc_figure_find("llma-speedup");
//   rc = dsc_figure_render(f, &table, &options, "svg", "speedup.svg", NULL, false, &err);
//
// writes speedup.svg and, beside it, speedup.gp (the script with its data inline: `gnuplot -d
// speedup.gp > speedup.svg` redraws the picture) and speedup.data.tsv (the numbers plotted).
// The same table gives the same bytes; a PDF's creation date is fixed for that reason.
#ifndef DSC_PLOTS_FIGURE_H
#define DSC_PLOTS_FIGURE_H

#include "plots/draw/drawing.h"

typedef struct dsc_figure_type {
    const char *name, *summary;
    const char *needs; // names of the columns it reads, separated by spaces
    // Whether a table that has them is one that the figure says something about; NULL: any. A
    // report asks.
    bool (*fits)(const dsc_table *t);
    bool compares; // what several tables hold, in one picture
    // Fills script, finding and data. DSC_EUSAGE when the table or the options do not allow it.
    int (*script)(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err);
} dsc_figure_type;

// Every figure, NULL-terminated, in the order of a report.
DSC_API const dsc_figure_type *const *dsc_figures(void);
DSC_API const dsc_figure_type *dsc_figure_find(const char *name); // or NULL

// Draws into memory. `terminal` is "svg", "pdf", "png" (two device pixels per pixel) or "dumb"
// (text). `o` may be NULL. DSC_EUSAGE: a column is missing, no row is left, two rows are one point
// (the message names the filter to give); DSC_EABSENT, DSC_EIO: as dsc_gnuplot_run.
DSC_API int dsc_figure_draw(const dsc_figure_type *f, const dsc_table *t,
                            const dsc_figure_options *o, const char *terminal, dsc_drawing *out,
                            dsc_error *err);
DSC_API void dsc_drawing_fini(dsc_drawing *d);

// Draws into files: `out_path`, and its name with the extension replaced by .gp and .data.tsv.
// DSC_EUSAGE when one of the three exists and `force` is false, or is the input. Each appears
// complete or not at all. With out_path NULL the picture alone goes to `stream`.
DSC_API int dsc_figure_render(const dsc_figure_type *f, const dsc_table *t,
                              const dsc_figure_options *o, const char *terminal,
                              const char *out_path, FILE *stream, bool force, dsc_error *err);

#endif

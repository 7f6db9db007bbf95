// SPDX-License-Identifier: Apache-2.0
// Writes a report of result tables, with their figures and provenance, as one page of HTML or in
// LaTeX.
#ifndef DSC_PLOTS_REPORT_H
#define DSC_PLOTS_REPORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// Zero-initialized: every default.
typedef struct dsc_report_options {
    const char *title; // NULL: "Speculative decoding report"
    bool force;        // replace an existing page
    bool latex;        // write LaTeX and a PDF for each figure
} dsc_report_options;

// Reads `n` >= 1 results (tables as base/table.h reads them, traces NAME.dst, the output of trace
// info --json) and writes one self-contained page to `out_path`: styles, figures and a small script
// are inline, the page's policy allows no other, and it contains no external address. Without the
// script it is complete; with it tables are sorted and filtered, and figures show values at the
// pointer. It begins with the verdicts of tune or the best observed rows, with one figure. Chapters
// follow on the workload, the methods, results by condition, bounds, predicted against measured
// values, and costs, as far as there are results of them; then limitations, the definitions of the
// columns, and the commands and hashes. For each table it contains the figures that its columns
// allow, each once, with its finding in words; the best rows and the corners of the grid; and all
// rows (the first 5000), in a long table without constant columns and lists. The same tables give
// the same bytes. `o` may be NULL.
//
// With o->latex the same content is written for plain pdflatex (article, graphicx, booktabs), with
// at most 40 rows per table: to NAME.tex, or to report.tex in the folder `out_path`, which is
// created. Figures are PDFs in the same folder, NAME-figure-1.pdf (with characters that LaTeX might
// misread replaced) or figure-1.pdf.
//
// DSC_EUSAGE: n is 0, a file exists and o->force is not set, or the page is one of the inputs.
// DSC_EINPUT: a result cannot be read. DSC_EABSENT: there is no gnuplot. DSC_EIO. Each file appears
// complete or not at all, the page last.
int dsc_report_write(const char *const *result_paths, size_t n, const char *out_path,
                     const dsc_report_options *o, dsc_error *err);

#endif

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
// info --json) and writes one self-contained page to `out_path`: styles and figures are inline, and
// the page contains no script and no external address. It begins with a summary in sentences
// (recommendation, validation, caveats). Chapters follow on the workload, the methods, the best
// configuration by batch size, bounds, predicted against measured values, and costs, as far as
// there are results of them; then limitations and the definitions of the columns. For each table it
// contains the figures that its columns allow, each drawn for a desktop and for a phone, with its
// finding in words; the best rows and the corners of the grid; all rows (the first 5000); the
// comments; and the SHA-256 of the file. The same tables give the same bytes. `o` may be NULL.
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

// SPDX-License-Identifier: Apache-2.0
// The report: result tables, their figures and how they came about, told as one story, on one page
// of HTML or in LaTeX.
#ifndef DSC_PLOTS_REPORT_H
#define DSC_PLOTS_REPORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// Zero-initialised: every default.
typedef struct dsc_report_options {
    const char *title; // NULL: "Speculative decoding report"
    bool force;        // replace an existing page
    bool latex;        // LaTeX, a PDF per figure beside it
} dsc_report_options;

// Reads `n` >= 1 results (tables as base/table.h reads them, traces NAME.dst, what trace info
// --json printed) and writes one self-contained page to `out_path`: styles and figures inline, no
// script, no address outside the page. A summary in sentences; chapters on the workload, methods,
// the best by batch size, bounds, predictions against measurements, and costs, as far as there are
// results of them; what is uncertain; the meanings of the columns. For each table: the figures its
// columns allow, each drawn for a desktop and for a phone, with its finding in words; the best and
// the corner rows; all rows (the first 5000); its comments and the SHA-256 of its file. The same
// tables give the same bytes. `o` may be NULL. With o->latex the same is written for plain pdflatex
// (article, graphicx, booktabs), rows up to 40: to NAME.tex, or to report.tex in the folder
// `out_path`, which is made. A figure is a PDF beside it, NAME-figure-1.pdf (characters that LaTeX
// might mistake replaced) or figure-1.pdf. DSC_EUSAGE: n is 0, a file exists and o->force is not
// set, or the page is one of the tables; DSC_EINPUT: a result cannot be read; DSC_EABSENT: no
// gnuplot; DSC_EIO. Each file appears complete or not at all, the page last.
DSC_API int dsc_report_write(const char *const *result_paths, size_t n, const char *out_path,
                             const dsc_report_options *o, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// The report: result tables, their figures and how they came about, on one page of HTML.
#ifndef DSC_PLOTS_REPORT_H
#define DSC_PLOTS_REPORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// Zero-initialised: every default.
typedef struct dsc_report_options {
    const char *title; // NULL: "Speculative decoding report"
    bool force;        // replace an existing page
} dsc_report_options;

// Reads `n` >= 1 result tables (base/table.h) and writes one self-contained page to `out_path`:
// styles and figures inline, no script, no address outside the page. For each table: the best
// configuration in words; the figures its columns allow, each drawn twice (for a desktop and for
// a phone) with its finding as alternative text; the best and the corner rows; all rows (the
// first 5000); the comments of the table and the SHA-256 of its file. The same tables give the
// same bytes. `o` may be NULL.
// DSC_EUSAGE: n is 0, the page exists and o->force is not set, or is one of the tables;
// DSC_EINPUT: a table cannot be read; DSC_EABSENT: no gnuplot; DSC_EIO. The page appears complete
// or not at all.
DSC_API int dsc_report_write(const char *const *result_paths, size_t n, const char *out_path,
                             const dsc_report_options *o, dsc_error *err);

#endif

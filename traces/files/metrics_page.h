// SPDX-License-Identifier: Apache-2.0
// Reads a page of metrics in Prometheus' text format
// (prometheus.io/docs/instrumenting/exposition_formats): lines NAME{LABEL="VALUE",...} NUMBER
// [TIME]. Comments are ignored.
#ifndef DSC_TRACES_METRICS_PAGE_H
#define DSC_TRACES_METRICS_PAGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// Limits on the bytes of a line and on the number of its labels.
enum { DSC_METRIC_BYTES = 2048, DSC_METRIC_LABELS = 32 };

// One line, valid during the call.
typedef struct dsc_metric_sample {
    const char *name;
    size_t length;                        // of the name
    const char *label[DSC_METRIC_LABELS]; // NAME="VALUE", sorted
    size_t labels;
    double value;     // also NaN and infinite
    const char *text; // of the value
} dsc_metric_sample;

// Returns whether the lines of this metric are wanted; others may have any form.
typedef bool dsc_metric_wanted(const char *name, size_t length);
typedef int dsc_metric_visitor(void *user, const dsc_metric_sample *m, dsc_error *err);

// Calls `visit` for every wanted line of the file ("-": standard input; also compressed). A nonzero
// result ends the reading and is returned. DSC_EINPUT: a wanted line is not of this form or exceeds
// the limits, or the file cannot be read. Errors begin with FILE:LINE.
int dsc_metrics_page_read(const char *path, dsc_metric_wanted *wanted, dsc_metric_visitor *visit,
                          void *user, dsc_error *err);

// The name without "PREFIX:" at its begin, and the same without `end` at its end.
void dsc_metric_stem(const char **name, size_t *length);
void dsc_metric_without(const char *name, size_t *length, const char *end);

// The value of a label with the quotation mark after it, or NULL.
const char *dsc_metric_label(const dsc_metric_sample *m, const char *name);
// Joins the labels but `left_out` with commas.
void dsc_metric_join(const dsc_metric_sample *m, const char *left_out, char out[DSC_METRIC_BYTES]);

#endif

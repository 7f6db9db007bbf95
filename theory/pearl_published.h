// SPDX-License-Identifier: Apache-2.0
// The figures that the PEARL paper (Liu et al. 2024, arXiv 2408.11850, August 2024) reports on
// HumanEval, against the predictions of pearl.h and block.h from two of its tables. Nothing is
// fitted: the acceptance rate is M/(1 + M), where M is the mean number of accepted tokens in its
// Table 4, and the ratio is that of the models' speeds in its Table 7.
#ifndef DSC_THEORY_PEARL_PUBLISHED_H
#define DSC_THEORY_PEARL_PUBLISHED_H

#include "theory/pearl.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct dsc_pearl_row {
    int table;            // table number in the paper
    const char *pair;     // draft and target model: "CodeLlama 7B/34B"
    const char *quantity; // "speedup", "speedup_no_pre_verify", "speedup_speculative",
                          // "accepted_speculative", "tokens_per_s", "best_window", ...
    double rate, ratio;   // M/(1 + M) and target time/draft time
    int window;           // PEARL's window or the draft length; 0 if it is the predicted quantity
    double predicted, published, error_percent;
    double tolerance_percent; // NaN: no tolerance
    bool ok;                  // within tolerance, or there is none
} dsc_pearl_row;

// The number of rows, and row i.
size_t dsc_pearl_published_rows(void);
dsc_pearl_row dsc_pearl_published_row(size_t i);

#endif

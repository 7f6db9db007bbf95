// SPDX-License-Identifier: Apache-2.0
// Lengths of served prompts and outputs where no trace has them. A length is a function of the
// seed, the request's number and the number of requests, so methods, policies and loads serve the
// same requests. The requests are a stratified sample: of n, each has its own n-th of the
// distribution, in random order, so that their mean is that of the distribution.
#ifndef DSC_SIM_SERVE_LENGTHS_H
#define DSC_SIM_SERVE_LENGTHS_H

#include "base/memory.h"

typedef enum dsc_lengths_kind {
    DSC_LENGTHS_CONSTANT,
    DSC_LENGTHS_UNIFORM,   // from `least` to `most`, equally probable
    DSC_LENGTHS_LOGNORMAL, // of mean `mean` and coefficient of variation `cv`, rounded, at least 1
    DSC_LENGTHS_GEOMETRIC, // Pr(n) = p (1 - p)^(n - 1), n >= 1, p = 1 / mean
    DSC_LENGTHS_LISTED     // drawn with replacement from `list`
} dsc_lengths_kind;

enum { DSC_LONGEST_SERVED = 1 << 28 }; // tokens; longer draws are cut

typedef struct dsc_lengths {
    dsc_lengths_kind kind;
    double mean, cv;
    int32_t least, most; // CONSTANT: both are the length
    int32_t *list;       // [count] the caller's
    size_t count;
} dsc_lengths;

// Which of a request's lengths is drawn. A list is drawn from by one number for both, so lists of
// equal size are the two lengths of recorded requests.
typedef enum dsc_lengths_use { DSC_LENGTHS_PROMPT, DSC_LENGTHS_OUTPUT } dsc_lengths_use;

// "N", "uniform:A:B", "lognormal:MEAN,CV", "geometric:MEAN", with lengths from 1 to
// DSC_LONGEST_SERVED and CV up to 100. `option` is the name of the option in the message.
// DSC_EUSAGE.
int dsc_lengths_parse(dsc_lengths *out, const char *option, const char *text, dsc_error *err);

// Of request number `request` of `requests`, in [0, requests).
int32_t dsc_lengths_draw(const dsc_lengths *lengths, uint64_t seed, int64_t request,
                         int64_t requests, dsc_lengths_use use);

#endif

// SPDX-License-Identifier: Apache-2.0
// Checks of rows that callers of the library pass; theory/domain.h.
#include "theory/domain.h"

#include "theory/acceptance.h"

#include <math.h>

bool dsc_is_distribution(const double *row, size_t vocab)
{
    double sum = 0, least = 0;
    for (size_t x = 0; row && x < vocab; x++) {
        least = row[x] < least ? row[x] : least;
        sum += row[x]; // NaN and infinity remain
    }
    return least >= 0 && fabs(sum - 1) <= DSC_PROBS_TOLERANCE;
}

int dsc_check_pair(const char *function, const double *draft, const double *target, size_t vocab,
                   dsc_error *err)
{
    const char *wrong = !dsc_is_distribution(draft, vocab)    ? "draft"
                        : !dsc_is_distribution(target, vocab) ? "target"
                                                              : NULL;
    if (!wrong)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "%s: %s is not a distribution of %zu tokens, whose elements are finite and >= "
                    "0 and sum to 1",
                    function, wrong, vocab);
}

int dsc_check_drafts(const char *function, const double *draft, const double *target, size_t vocab,
                     int kmax, const double *accept, dsc_error *err)
{
    if (kmax < 1 || kmax > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "%s: kmax is %d, not from 1 to %d", function, kmax,
                        DSC_MAX_DRAFTS);
    if (!accept)
        return dsc_fail(err, DSC_EUSAGE, "%s: accept must not be NULL", function);
    return dsc_check_pair(function, draft, target, vocab, err);
}

void dsc_fill_nan(double *x, size_t count)
{
    for (size_t i = 0; x && i < count; i++)
        x[i] = (double)NAN;
}

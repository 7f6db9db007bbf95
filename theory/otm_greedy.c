// SPDX-License-Identifier: Apache-2.0
// The optimal acceptance of the greedy draft set; theory/otm.h. Hu et al. 2025 (arXiv 2502.18779):
// T, the k - 1 most probable tokens of the draft, are always drafts, and one more is sampled from
// the others, x with probability draft(x)/(1 - draft(T)). A token of T can always be the output.
// Among the others at most one is a draft, as with one draft from that distribution: target(T) +
// sum outside T of min(draft/(1 - draft(T)), target).
#include "theory/otm.h"

#include "theory/domain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The largest element, the first among equals; vocab when none is positive.
static size_t most_probable(const double *row, size_t vocab)
{
    size_t best = vocab;
    double most = 0;
    for (size_t x = 0; x < vocab; x++)
        if (row[x] > most) {
            most = row[x];
            best = x;
        }
    return best;
}

int dsc_otm_greedy(const double *draft, const double *target, size_t vocab, int kmax,
                   double *accept, dsc_error *err)
{
    double *remaining; // [vocab] the draft without T
    int rc = dsc_check_drafts("dsc_otm_greedy", draft, target, vocab, kmax, accept, err);
    if (!rc)
        rc = dsc_new(&remaining, vocab, err);
    if (rc)
        return rc;
    memcpy(remaining, draft, vocab * sizeof *remaining);
    double taken = 0; // target(T)
    for (int i = 0; i < kmax; i++) {
        double mass = 0, drawn = 0;
        for (size_t x = 0; x < vocab; x++)
            mass += remaining[x];
        for (size_t x = 0; x < vocab && mass > 0; x++)
            drawn += fmin(remaining[x] / mass, target[x]);
        accept[i] = fmin(taken + drawn, 1);
        size_t next = most_probable(remaining, vocab);
        if (next < vocab) {
            taken += target[next];
            remaining[next] = 0;
        }
    }
    free(remaining);
    return DSC_OK;
}

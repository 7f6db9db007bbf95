// SPDX-License-Identifier: Apache-2.0
// The optimal acceptance of the greedy draft set; theory/otm.h.
// Hu et al. 2025 (arXiv 2502.18779): T, the k - 1 most probable tokens of the draft, are always
// drafts, and one more is drawn from the rest, x with probability draft(x)/(1 - draft(T)). A token
// of T can always be the output; among the others at most one is a draft, as with one draft from
// that distribution: target(T) + sum outside T of min(draft/(1 - draft(T)), target).
#include "theory/otm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The largest element, the first of equals; vocab when none is positive.
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
    double *residual; // [vocab] the draft without T
    int rc = dsc_new(&residual, vocab, err);
    if (rc)
        return rc;
    memcpy(residual, draft, vocab * sizeof *residual);
    double taken = 0; // target(T)
    for (int i = 0; i < kmax; i++) {
        double mass = 0, drawn = 0;
        for (size_t x = 0; x < vocab; x++)
            mass += residual[x];
        for (size_t x = 0; x < vocab && mass > 0; x++)
            drawn += fmin(residual[x] / mass, target[x]);
        accept[i] = fmin(taken + drawn, 1);
        size_t next = most_probable(residual, vocab);
        if (next < vocab) {
            taken += target[next];
            residual[next] = 0;
        }
    }
    free(residual);
    return DSC_OK;
}

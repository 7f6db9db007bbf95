// SPDX-License-Identifier: Apache-2.0
// The joint distribution of acceptance and the number of drafts equal to y, by its generating
// function in z, which counts those drafts (theory/survivors.h):
//
//   T_i = accept_i z ((1 - draft(y)) + draft(y) z)^later + (reject_another_i + reject_y_i z)
//   T_{i+1}
//
// The drafts after the accepted one were never verified, so each is y with probability draft(y).
#include "theory/survivors.h"

#include <math.h>

void dsc_survivors_before(const dsc_round *round, int later, double draft_y, double *dist)
{
    dist[later + 1] = round->reject_y * dist[later];
    for (int m = later; m > 0; m--)
        dist[m] = round->reject_another * dist[m] + round->reject_y * dist[m - 1];
    dist[0] *= round->reject_another;

    // The binomial terms, starting at the end whose first term cannot vanish.
    double another = 1 - draft_y;
    if (draft_y <= .5) {
        double term = round->accept * pow(another, later);
        for (int m = 0; m <= later; m++) {
            dist[m + 1] += term;
            term *= (double)(later - m) / (m + 1) * (draft_y / another);
        }
    } else {
        double term = round->accept * pow(draft_y, later);
        for (int m = later; m >= 0; m--) {
            dist[m + 1] += term;
            term *= (double)m / (later - m + 1) * (another / draft_y);
        }
    }
}

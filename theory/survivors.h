// SPDX-License-Identifier: Apache-2.0
// Internal: the number of k i.i.d. drafts that equal the output y, for rules that try drafts one
// after the other (k-Seq, SpecInfer rejection).
#ifndef DSC_THEORY_SURVIVORS_H
#define DSC_THEORY_SURVIVORS_H

enum { DSC_SURVIVORS = 1000 }; // drafts: a half to that power is still a normal number

// One round of such a rule, given that it is reached.
typedef struct dsc_round {
    double accept;         // Pr(the draft is y and is accepted) / target(y)
    double reject_y;       // Pr(the draft is y and is rejected)
    double reject_another; // Pr(the draft is not y and is rejected)
} dsc_round;

// Goes one round back. On entry dist[m], 0 <= m <= later, is Pr(accepted with output y, and m of
// the `later` drafts after this round equal y) / target(y). On return dist[0, later + 1] is the
// same with this round's draft included. draft_y in [0, 1], later < DSC_SURVIVORS.
void dsc_survivors_before(const dsc_round *round, int later, double draft_y, double *dist);

#endif

// SPDX-License-Identifier: Apache-2.0
// How many of k i.i.d. drafts are the output y, for rules that try them one after the other (k-Seq,
// multi-round). Internal to theory/.
#ifndef DSC_THEORY_SURVIVORS_H
#define DSC_THEORY_SURVIVORS_H

// One round of such a rule, given that it is reached.
typedef struct dsc_round {
    double accept;         // Pr(the draft is y and is accepted) / target(y)
    double reject_y;       // Pr(the draft is y and is rejected)
    double reject_another; // Pr(the draft is not y and is rejected)
} dsc_round;

// Goes one round back. dist[m], 0 <= m <= later: the joint distribution, over target(y), of
// "accepted with output y" and m drafts equal to y among the `later` drafts after this round; on
// return the same for this draft and those, in dist[0, later + 1]. draft_y in [0, 1], later <= 1000
// (a half to that power is still a normal number).
void dsc_survivors_before(const dsc_round *round, int later, double draft_y, double *dist);

#endif

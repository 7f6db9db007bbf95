// SPDX-License-Identifier: Apache-2.0
// Block verification along one path; theory/block_verify.h.
//
// Proof of Pr(tau >= i | X^i) = p_i, from i = L down: Pr(tau >= i+1 | X^i) = sum over x of draft(x)
// min(p_i target(x)/draft(x), 1) = p_i - left_i, and h_i is chosen so that 1 - (1 - h_i)(1 - p_i +
// left_i) = p_i. So a block ends at i < L with probability left_i, and the next token is x with
// probability min(p_i target, draft)(x) as a draft and (p_i target - draft)+(x) as a correction,
// together p_i target(x). Given X^i and tau >= i, the continuation has the target's distribution.
//
// The output begins with y^i and tau >= i when X^i = y^i and tau >= i: probability p_i(y^i) times
// the product of the draft probabilities. The output has the target's distribution and, given that
// event, so has its continuation (above). Hence Pr(tau >= i | y) = p_i times the product of
// draft/target over y^i, whatever follows. p_i is the minimum over j <= i of the product of
// target/draft over y_{j+1} .. y_i; multiplied out, the result is the minimum over j of the product
// of draft/target over y^j.
#include "theory/block_verify.h"

#include "theory/domain.h"

#include <math.h>

double dsc_block_ratio(double p, double draft_x, double target_x)
{
    if (!dsc_is_probability(p) || !(draft_x >= 0) || !(target_x >= 0))
        return p == 0 ? 0 : (double)NAN;
    return fmin(p * (target_x / draft_x), 1);
}

double dsc_block_coin(double p, double left)
{
    if (!dsc_is_probability(p) || !(left >= 0) || isinf(left))
        return (double)NAN;
    return left > 0 ? left / ((1 - p) + left) : 0;
}

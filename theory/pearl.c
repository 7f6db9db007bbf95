// SPDX-License-Identifier: Apache-2.0
// The state machine of PEARL (Alg. 2); theory/pearl.h.
//
// PRE: the draft model writes g tokens while the target verifies the first. If it is rejected: 1
// token (the correction), stay in PRE. If it is accepted: 1 token, the other g - 1 are pending, go
// to POST. POST: g more tokens are drafted while g are verified, the g - 1 pending and the first
// new one. If all are accepted: g tokens, stay. Otherwise: the accepted ones and a correction, back
// to PRE. With i.i.d. rate a, a segment has 1/(1 - a) tokens in 1 + a/(1 - a^g) iterations. Without
// pre-verify a segment opens with an unverified window: 1 + 1/(1 - a^g) iterations. Without
// post-verify a window takes one iteration (first token rejected) or two, where the second verifies
// g - 1 tokens and adds one: (1 - a) + a (2 + a (1 - a^(g-1))/(1 - a)) tokens in 1 + a.
//
// Theorem 1 (best g = c): tokens per iteration h(g) grow with g, so up to c, where iterations cost
// the same, more is better. Beyond c the speedup is c h(g)/g, and each h is concave with h(0) >= 0,
// so h(g)/g falls. With u = a^g, u' < 0 and growing:
//   full            h = (1 - u)/((1 - a)(1 + a - u)),  h' = -u' a/((1 - a)(1 + a - u)^2);
//   no pre-verify   h = (1 - u)/((1 - a)(2 - u)),      h' = -u'/((1 - a)(2 - u)^2);
//   no post-verify  h = constant - a u/((1 - a)(1 + a)), h(0) = (1 - a/(1 + a)) > 0:
// every h' is positive and falls with g.
#include "theory/pearl.h"

#include <limits.h>
#include <math.h>

// (1 - a^n)/(1 - a) = 1 + a + ... + a^(n-1), for real n >= 0.
static double geometric(double a, double n)
{
    if (n == 0)
        return 0;
    if (a == 1)
        return n;
    return a == 0 ? 1 : -expm1(n * log1p(a - 1)) / (1 - a);
}

double dsc_pearl_tokens(dsc_pearl_form form, double rate, double window)
{
    double sum = geometric(rate, window);
    double broken = sum * (1 - rate); // Pr(not all of a window are accepted)
    switch (form) {
    case DSC_PEARL_NO_PRE_VERIFY: return sum / (broken + 1);
    case DSC_PEARL_NO_POST_VERIFY:
        return (1 - rate + rate * (2 + rate * geometric(rate, window - 1))) / (1 + rate);
    default: return sum / (broken + rate);
    }
}

double dsc_pearl_speedup(dsc_pearl_form form, double rate, double window, double ratio)
{
    return dsc_pearl_tokens(form, rate, window) / fmax(window / ratio, 1);
}

int dsc_pearl_best_window(dsc_pearl_form form, double rate, double ratio)
{
    int below = ratio < 1 ? 1 : ratio < INT_MAX ? (int)ratio : INT_MAX - 1;
    int above = ratio > below ? below + 1 : below;
    return dsc_pearl_speedup(form, rate, above, ratio) > dsc_pearl_speedup(form, rate, below, ratio)
               ? above
               : below;
}

double dsc_pearl_accepted_exact(double rate)
{
    return rate / (1 - rate);
}

double dsc_pearl_accepted_as_printed(double rate)
{
    return 1 / (1 - rate) + 1;
}

// SPDX-License-Identifier: Apache-2.0
// Lossy verification rules at one position; theory/lossy.h. A set replaces what it does not accept
// by the argmax token a, so its output is draft(x) [x in set] + draft(not in set) [x = a].
#include "theory/lossy.h"

#include <math.h>

static const dsc_lossy_price undefined = {NAN, NAN, NAN, NAN};

// The first of the most probable tokens.
static size_t argmax(const double *target, size_t vocab)
{
    size_t best = 0;
    for (size_t x = 1; x < vocab; x++)
        if (target[x] > target[best])
            best = x;
    return best;
}

// The term of a token in the Kullback-Leibler divergence. The ratio overflows where the target
// probability is subnormal.
static double divergence(double output, double target)
{
    if (!(output > 0) || output == target)
        return 0;
    const double ratio = output / target;
    return output * (isinf(ratio) && target > 0 ? log(output) - log(target) : log(ratio));
}

dsc_accepted_set dsc_typical_set(const double *target, size_t vocab, double epsilon, double delta)
{
    double entropy = 0;
    for (size_t x = 0; x < vocab; x++)
        entropy -= target[x] * log(target[x] + 1e-5); // the programs' guard against log 0
    return (dsc_accepted_set){fmin(epsilon, delta * exp(-entropy)), -1};
}

dsc_accepted_set dsc_relaxed_set(const double *target, size_t vocab, int top_k, double delta)
{
    int32_t top[DSC_RELAXED_TOP_K]; // in descending order of probability
    const int most = top_k < 1 ? 1 : top_k > DSC_RELAXED_TOP_K ? DSC_RELAXED_TOP_K : top_k;
    int n = 0;
    for (size_t x = 0; x < vocab; x++) {
        if (n == most && !(target[x] > target[top[n - 1]]))
            continue;
        int i = n < most ? n++ : n - 1;
        for (; i > 0 && target[x] > target[top[i - 1]]; i--)
            top[i] = top[i - 1];
        top[i] = (int32_t)x;
    }
    if (!n)
        return (dsc_accepted_set){INFINITY, -1};
    const double near = target[top[0]] - delta;
    return near > target[top[n - 1]] ? (dsc_accepted_set){near, INT32_MAX}
                                     : (dsc_accepted_set){target[top[n - 1]], top[n - 1]};
}

dsc_lossy_price dsc_ensemble_price(double weight, const double *draft, const double *target,
                                   size_t vocab)
{
    if (!(weight >= 0 && weight <= 1) || !draft || !target || !vocab)
        return undefined;
    const double share = 1 - weight;
    double apart = 0, kl = 0; // TV(draft, target); the divergence
    for (size_t x = 0; x < vocab; x++) {
        apart += target[x] > draft[x] ? target[x] - draft[x] : 0;
        if (share > 0)
            kl += divergence(weight * target[x] + share * draft[x], target[x]);
    }
    const size_t best = argmax(target, vocab);
    return (dsc_lossy_price){
        .accept = 1 - weight * apart,
        .tv = share * apart,
        .kl = fmax(kl, 0),
        .off_argmax = 1 - weight * target[best] - share * draft[best],
    };
}

dsc_lossy_price dsc_accepted_set_price(dsc_accepted_set set, const double *draft,
                                       const double *target, size_t vocab)
{
    if (!draft || !target || !vocab)
        return undefined;
    const size_t best = argmax(target, vocab);
    double accept = 0, others = 0, tv = 0, kl = 0;
    for (size_t x = 0; x < vocab; x++) {
        const bool in = dsc_accepted_set_has(set, target, (int32_t)x);
        const double output = in ? draft[x] : 0;
        accept += output;
        if (x == best)
            continue;
        others += output;
        tv += target[x] > output ? target[x] - output : 0;
        kl += divergence(output, target[x]);
    }
    const double output = fmax(1 - others, 0); // the argmax token's own share and all replaced ones
    return (dsc_lossy_price){
        .accept = fmin(accept, 1),
        .tv = tv + fmax(target[best] - output, 0),
        .kl = fmax(kl + divergence(output, target[best]), 0),
        .off_argmax = others,
    };
}

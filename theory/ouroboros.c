// SPDX-License-Identifier: Apache-2.0
// Speedup of Ouroboros (Zhao et al. 2024, arXiv 2402.13720), Eq. (6); theory/ouroboros.h.
#include "theory/ouroboros.h"

double dsc_ouroboros_speedup(const dsc_ouroboros *o, double accepted)
{
    return (accepted + 1) / (o->length / o->per_forward * o->draft + 1);
}

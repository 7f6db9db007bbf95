// SPDX-License-Identifier: Apache-2.0
#include "theory/ouroboros.h"

double dsc_ouroboros_speedup(const dsc_ouroboros *o, double accepted)
{
    return (accepted + 1) / (o->length / o->per_forward * o->draft + 1);
}

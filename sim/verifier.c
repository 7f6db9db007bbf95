// SPDX-License-Identifier: Apache-2.0
#include "sim/verifier.h"

#include <stdlib.h>
#include <string.h>

static const dsc_verifier_type *const verifiers[] = {&dsc_verifier_greedy, NULL};

const dsc_verifier_type *const *dsc_verifiers(void)
{
    return verifiers;
}

const dsc_verifier_type *dsc_verifier_find(const char *name)
{
    for (const dsc_verifier_type *const *v = verifiers; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

void dsc_verdict_fini(dsc_verdict *v)
{
    free(v->token);
    *v = (dsc_verdict){0};
}

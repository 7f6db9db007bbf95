// SPDX-License-Identifier: Apache-2.0
#include "sim/drafter.h"

#include <string.h>

static const dsc_drafter_type *const drafters[] = {&dsc_drafter_none, &dsc_drafter_oracle,
                                                   &dsc_drafter_llma, NULL};

const dsc_drafter_type *const *dsc_drafters(void)
{
    return drafters;
}

const dsc_drafter_type *dsc_drafter_find(const char *name, dsc_error *err)
{
    const char *names[sizeof drafters / sizeof *drafters];
    size_t n = 0;
    for (const dsc_drafter_type *const *d = drafters; *d; d++) {
        if (strcmp((*d)->name, name) == 0)
            return *d;
        names[n++] = (*d)->name;
    }
    dsc_unknown_name("method", name, names, n, "see: draftscope list methods", err);
    return NULL;
}

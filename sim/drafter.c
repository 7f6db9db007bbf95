// SPDX-License-Identifier: Apache-2.0
// The list of drafting methods.
#include "sim/drafter.h"

#include <string.h>

static const dsc_drafter_type *const drafters[] = {&dsc_drafter_none,
                                                   &dsc_drafter_oracle,
                                                   &dsc_drafter_llma,
                                                   &dsc_drafter_ngram,
                                                   &dsc_drafter_ngram_tree,
                                                   &dsc_drafter_suffix,
                                                   &dsc_drafter_draft_model,
                                                   &dsc_drafter_sa_draft_model,
                                                   &dsc_drafter_hf_dynamic,
                                                   &dsc_drafter_threshold,
                                                   &dsc_drafter_adaptive,
                                                   &dsc_drafter_adaptive_ngram,
                                                   &dsc_drafter_adaptive_suffix,
                                                   &dsc_drafter_adaptive_recorded,
                                                   &dsc_drafter_spectr,
                                                   &dsc_drafter_spectr_tree,
                                                   &dsc_drafter_tree,
                                                   &dsc_drafter_dynamic_tree,
                                                   &dsc_drafter_sequoia,
                                                   &dsc_drafter_cascade,
                                                   &dsc_drafter_lookahead,
                                                   &dsc_drafter_ouroboros,
                                                   &dsc_drafter_pearl,
                                                   &dsc_drafter_parallel,
                                                   &dsc_drafter_ddtree,
                                                   &dsc_drafter_recorded,
                                                   &dsc_drafter_recorded_steps,
                                                   NULL};

const dsc_drafter_type *const *dsc_drafters(void)
{
    return drafters;
}

const char *dsc_drafter_preset(const dsc_drafter_type *type, const char *name, size_t length)
{
    for (const char *const *p = type && name ? type->presets : NULL; p && *p; p++)
        if (dsc_is_listed(*p, name, length))
            return *p;
    return NULL;
}

const dsc_drafter_type *dsc_drafter_find(const char *name, dsc_error *err)
{
    const char *names[2 * sizeof drafters / sizeof *drafters];
    size_t n = 0;
    if (!name) {
        dsc_fail(err, DSC_EUSAGE, "name must not be NULL; dsc_drafters returns the methods");
        return NULL;
    }
    for (const dsc_drafter_type *const *d = drafters; *d; d++) {
        if (strcmp((*d)->name, name) == 0 || dsc_is_listed((*d)->synonyms, name, strlen(name)) ||
            dsc_drafter_preset(*d, name, strlen(name)))
            return *d;
        names[n++] = (*d)->name;
        names[n++] = (*d)->synonyms;
    }
    dsc_unknown_name("method", name, names, n, "see: draftscope list methods", err);
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// The list of verification rules, the choice of a default, and the scratch memory of rules.
#include "sim/verifier.h"

#include "sim/rule_text.h"
#include "sim/verify_room.h"

#include <string.h>

static const dsc_verifier_type *const verifiers[] = {&dsc_verifier_greedy,
                                                     &dsc_verifier_rejection,
                                                     &dsc_verifier_block,
                                                     &dsc_verifier_kseq,
                                                     &dsc_verifier_otm,
                                                     &dsc_verifier_specinfer,
                                                     &dsc_verifier_specinfer_wor,
                                                     &dsc_verifier_gbv,
                                                     &dsc_verifier_traversal,
                                                     &dsc_verifier_ensemble,
                                                     &dsc_verifier_relaxed,
                                                     &dsc_verifier_typical,
                                                     NULL};

const dsc_verifier_type *const *dsc_verifiers(void)
{
    return verifiers;
}

const dsc_verifier_type *dsc_verifier_find(const char *name, dsc_error *err)
{
    const char *names[2 * sizeof verifiers / sizeof *verifiers];
    size_t n = 0;
    if (!name) {
        dsc_fail(err, DSC_EUSAGE, "name must not be NULL; dsc_verifiers returns the rules");
        return NULL;
    }
    const size_t length = strcspn(name, ":");
    for (const dsc_verifier_type *const *v = verifiers; *v; v++) {
        const dsc_verifier_type *rule = *v;
        if (dsc_is_listed(rule->name, name, length) || dsc_is_listed(rule->synonyms, name, length))
            return !name[length] || !dsc_rule_with(rule, name + length + 1, &rule, err) ? rule
                                                                                        : NULL;
        names[n++] = (*v)->name;
        names[n++] = (*v)->synonyms;
    }
    dsc_unknown_name("rule", name, names, n, "see: draftscope list rules", err);
    return NULL;
}

// A tree needs a rule that takes several candidates at one position.
const dsc_verifier_type *dsc_pair_rule(const dsc_drafter_type *drafter, bool greedy)
{
    if (greedy)
        return &dsc_verifier_greedy;
    if (!drafter)
        return NULL;
    if (!drafter->branches)
        return &dsc_verifier_rejection;
    return drafter->kinds & DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT ? &dsc_verifier_specinfer_wor
           : drafter->kinds & DSC_DRAFT_SAMPLED                   ? &dsc_verifier_kseq
                                                                  : &dsc_verifier_specinfer;
}

void dsc_verify_room_fini(dsc_verify_room *r)
{
    dsc_rows_order_fini(&r->order);
    dsc_gbv_order_fini(&r->gbv);
    dsc_otm_sampler_free(r->otm);
    *r = (dsc_verify_room){0};
}

// SPDX-License-Identifier: Apache-2.0
// All acceptance quantities of one sorted curve; theory/acceptance.h.
#include "theory/acceptance.h"

#include "theory/kseq.h"
#include "theory/specinfer.h"
#include "theory/otm.h"
#include "theory/single.h"

#include <math.h>

void dsc_acceptance_of_curve(const dsc_curve *c, const int *k, size_t count,
                             dsc_rule_acceptance *out)
{
    for (size_t i = 0; i < count && k && out; i++) {
        const int drafts = k[i] <= DSC_MAX_DRAFTS ? k[i] : -1;
        dsc_kseq s = dsc_kseq_best(c, drafts);
        out[i] = (dsc_rule_acceptance){.k = k[i],
                                       .single = drafts < 1 ? NAN : dsc_single_acceptance(c),
                                       .specinfer = dsc_specinfer_acceptance(c, drafts),
                                       .kseq = s.accept,
                                       .kseq_rho = s.rho,
                                       .otm = dsc_otm_value(c, drafts).accept};
    }
}

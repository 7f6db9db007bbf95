// SPDX-License-Identifier: Apache-2.0
// Acceptance by number of drafts for Bernoulli distributions, a panel per pair: Figures 4 and 6 of
// SpecTr (Sun et al., "SpecTr: Fast Speculative Decoding via Optimal Transport", 2023, arXiv
// 2310.15141, App. B.1 and B.3).
#include "plots/figure/accept_series.h"
#include "plots/figure/figures.h"

#include <string.h>

#define MAKE "draftscope theory accept --bernoulli .25,.1,.25,.5,.75,1 --num-drafts 1:16 -o b.tsv"

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    dsc_accept_series s;
    int rc = dsc_accept_series_init(&s, t, o, "spectr-bernoulli", err);
    if (rc)
        return rc;
    for (size_t p = 0; p < s.pairs && !rc; p++)
        if (strncmp(s.pair[p], "Ber(", 4))
            rc = dsc_fail(
                err, DSC_EUSAGE,
                "spectr-bernoulli draws Bernoulli distributions, not %.60s; to make a table: " MAKE,
                s.pair[p]);
    if (!rc)
        rc = dsc_accept_draw(
            &s, o, terminal, "spectr_bernoulli",
            "Acceptance by number of drafts, Bernoulli distributions",
            "SpecTr Figures 4 and 6: drafts of the first distribution, output of the second; where "
            "lines meet, the later in the key is on top",
            out, err);
    dsc_accept_series_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_spectr_bernoulli = {
    .name = "spectr-bernoulli",
    .summary =
        "acceptance against the number of drafts, Bernoulli distributions (SpecTr Figures 4 and 6)",
    .needs = DSC_ACCEPT_NEEDS,
    .script = script,
};

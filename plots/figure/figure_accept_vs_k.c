// SPDX-License-Identifier: Apache-2.0
// Acceptance by number of drafts for any distributions, a panel per pair; bands where only a range
// is certain.
#include "plots/figure/accept_series.h"
#include "plots/figure/figures.h"

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    dsc_accept_series s;
    int rc = dsc_accept_series_init(&s, t, o, "accept-vs-k", err);
    if (rc)
        return rc;
    rc = dsc_accept_draw(&s, o, terminal, "accept_vs_k", "Acceptance by number of drafts",
                         s.ranges ? "bands: what is certain of rows with an unlisted tail" : "",
                         out, err);
    dsc_accept_series_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_accept_vs_k = {
    .name = "accept-vs-k",
    .summary =
        "acceptance of each rule against the number of drafts k, a panel per pair of distributions",
    .needs = DSC_ACCEPT_NEEDS,
    .script = script,
};

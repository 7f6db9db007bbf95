// SPDX-License-Identifier: Apache-2.0
// Lines through mean step times: time over the tokens of a pass, batch x (drafted + 1).
#include "sim/cost/step_times.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Steps with drafts, without, or both.
enum { PLAIN = 1, DRAFTING = 2 };

static double tokens_of(const dsc_step_time *t)
{
    return t->batch * (t->drafted + 1);
}

static bool is_kind(const dsc_step_time *t, int kinds)
{
    return kinds & (t->drafted > 0 ? DRAFTING : PLAIN);
}

// Fits the line to the steps of these kinds. *loads: how many there were; *differ: they have
// different numbers of tokens, without which a line has no slope.
static int fit_kinds(const dsc_step_time *t, size_t n, int kinds, dsc_line *line, size_t *loads,
                     bool *differ, dsc_error *err)
{
    double *x;
    int rc = dsc_new(&x, 2 * n, err);
    *loads = 0;
    *differ = false;
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (is_kind(&t[i], kinds)) {
            x[*loads] = tokens_of(&t[i]);
            x[n + (*loads)++] = t[i].step_s;
        }
    for (size_t i = 1; i < *loads; i++)
        *differ |= fabs(x[i] - x[0]) > 1e-3 * x[0];
    if (*loads)
        rc = dsc_fit_line(x, x + n, *loads, line, err);
    free(x);
    return rc;
}

// The mean over the loads of the time beyond the line, for a draft token.
static double beyond(const dsc_step_time *t, size_t n, const dsc_line *line)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (is_kind(&t[i], DRAFTING)) {
            const double rest = t[i].step_s - line->intercept - line->slope * tokens_of(&t[i]);
            sum += rest / t[i].drafted;
            count++;
        }
    return count && sum > 0 ? sum / (double)count : 0;
}

int dsc_step_times_fit(dsc_cost *cost, const dsc_step_time *t, size_t n, const char *name,
                       dsc_error *err)
{
    size_t plain, all;
    bool differ, line_differs;
    dsc_line line = {0}, through = {0};
    int rc = fit_kinds(t, n, PLAIN, &line, &plain, &line_differs, err);
    if (!rc)
        rc = fit_kinds(t, n, PLAIN | DRAFTING, &through, &all, &differ, err);
    if (rc)
        return rc;
    if (plain == all && !line_differs)
        return dsc_fail(err, DSC_EINPUT,
                        "%.200s: %s without drafts, so the time of a draft token is unknown; add "
                        "a measurement at another load or with speculation",
                        name, n == 1 ? "one load" : "loads that do not differ");
    const bool split = line_differs && plain < all;
    if (!line_differs)
        line = through;
    cost->fixed_s = line.intercept;
    cost->per_token_s = line.slope;
    cost->draft_s = split ? beyond(t, n, &line) : 0;
    if (!plain)
        cost->no_plain = "every step was measured with drafts, so the time of a step without "
                         "speculation is unknown; add a measurement without speculation";
    const char *drafting = split          ? "draft_s is the time of steps with drafts beyond it"
                           : !plain       ? "the time of a step contains its draft"
                           : plain == all ? "the time of a draft model is unknown"
                                          : "per token with the draft model's time, which takes "
                                            "a second load without drafts to separate";
    double least = tokens_of(t), most = least;
    for (size_t i = 1; i < n; i++) {
        least = fmin(least, tokens_of(&t[i]));
        most = fmax(most, tokens_of(&t[i]));
    }
    snprintf(
        cost->note, sizeof cost->note,
        "%zu loads of %.4g to %.4g tokens (extrapolated beyond them): step = %.4g + %.4g x tokens "
        "of the batch; draft_s %.4g (%s)",
        n, least, most, cost->fixed_s, cost->per_token_s, cost->draft_s, drafting);
    return DSC_OK;
}

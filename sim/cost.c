// SPDX-License-Identifier: Apache-2.0
#include "sim/cost.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool parse_seconds(const char **text, char stop, double *out)
{
    char *end;
    if (!strchr("0123456789.", **text) || !**text)
        return false;
    *out = strtod(*text, &end);
    bool ok = end != *text && *end == stop && isfinite(*out) && *out >= 0;
    *text = end + (stop != '\0');
    return ok;
}

int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err)
{
    *out = (dsc_cost){0};
    if (strcmp(text, "unit") == 0) {
        out->fixed_s = 1;
        return DSC_OK;
    }
    if (strncmp(text, "linear:", 7) != 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: '%.60s' is neither unit nor linear:FIXED_S,PER_TOKEN_S[,DRAFT_S]",
                        text);
    const char *p = text + 7;
    bool drafts = strchr(p, ',') != strrchr(p, ',');
    if (parse_seconds(&p, ',', &out->fixed_s) &&
        parse_seconds(&p, drafts ? ',' : '\0', &out->per_token_s) &&
        (!drafts || parse_seconds(&p, '\0', &out->draft_s)) && out->fixed_s + out->per_token_s > 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: '%.60s' is not linear:FIXED_S,PER_TOKEN_S[,DRAFT_S] with times in "
                    "seconds >= 0, the first two not both 0",
                    text);
}

double dsc_cost_target_call(const dsc_cost *cost, int64_t tokens)
{
    return cost->fixed_s + cost->per_token_s * (double)tokens;
}

double dsc_cost_draft_call(const dsc_cost *cost, int64_t tokens)
{
    (void)tokens;
    return cost->draft_s;
}

static double overlapped_time(const dsc_cost *cost, const dsc_counts *c)
{
    double sum = 0;
    for (int64_t calls = 0; calls < c->overlap_length; calls++) {
        double draft = (double)calls * dsc_cost_draft_call(cost, 1);
        for (int64_t w = 0; w < c->overlap_length; w++) {
            int64_t steps = c->overlap[calls * c->overlap_length + w];
            sum += (double)steps * fmax(draft, dsc_cost_target_call(cost, w + 1));
        }
    }
    return sum;
}

double dsc_cost_time(const dsc_cost *cost, const dsc_counts *c)
{
    const dsc_expected x = dsc_counts_real(c);
    if (c->overlap)
        return overlapped_time(cost, c);
    return cost->fixed_s * x.target_calls + cost->per_token_s * x.target_call_tokens +
           cost->draft_s * x.draft_calls;
}

double dsc_cost_speedup(const dsc_cost *cost, const dsc_counts *c)
{
    dsc_counts plain = {.target_calls = c->output_tokens, .target_call_tokens = c->output_tokens};
    return dsc_counts_real(c).target_calls > 0
               ? dsc_cost_time(cost, &plain) / dsc_cost_time(cost, c)
               : (double)NAN;
}

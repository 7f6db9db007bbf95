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
    if (strcmp(text, "unit") == 0) {
        *out = (dsc_cost){1, 0};
        return DSC_OK;
    }
    if (strncmp(text, "linear:", 7) == 0) {
        const char *p = text + 7;
        if (parse_seconds(&p, ',', &out->fixed_s) && parse_seconds(&p, '\0', &out->per_token_s) &&
            out->fixed_s + out->per_token_s > 0)
            return DSC_OK;
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: '%.60s' is not linear:FIXED_S,PER_TOKEN_S with two "
                        "times in seconds >= 0, not both 0",
                        text);
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: '%.60s' is neither unit nor linear:FIXED_S,PER_TOKEN_S", text);
}

double dsc_cost_time(const dsc_cost *cost, const dsc_counts *c)
{
    return cost->fixed_s * (double)c->target_calls +
           cost->per_token_s * (double)(c->target_calls + c->num_draft_tokens);
}

double dsc_cost_speedup(const dsc_cost *cost, const dsc_counts *c)
{
    dsc_counts plain = {.target_calls = c->output_tokens};
    return c->target_calls ? dsc_cost_time(cost, &plain) / dsc_cost_time(cost, c) : (double)NAN;
}

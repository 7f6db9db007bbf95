// SPDX-License-Identifier: Apache-2.0
// The limits that a served request must keep, as --slo gives them: "ttft=0.5,tpot=0.03".
#include "base/number.h"
#include "cli/serve/serve.h"

#include <math.h>
#include <string.h>

int cli_serve_read_slo(const char *text, dsc_serve_options *o, dsc_error *err)
{
    o->slo_ttft_s = o->slo_tpot_s = INFINITY;
    for (const char *p = text; p && *p;) {
        char *end = NULL;
        double *limit = !strncmp(p, "ttft=", 5)   ? &o->slo_ttft_s
                        : !strncmp(p, "tpot=", 5) ? &o->slo_tpot_s
                                                  : NULL;
        const double x = limit ? dsc_strtod(p + 5, &end) : NAN;
        if (!limit || end == p + 5 || (*end && *end != ',') || !(x > 0) || !isfinite(x) ||
            (*end && !end[1]))
            return dsc_fail(err, DSC_EUSAGE,
                            "--slo: '%.60s' is not ttft=S, tpot=S or both joined by a comma, with "
                            "seconds above 0",
                            text);
        *limit = x;
        p = *end ? end + 1 : end;
    }
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// The closed form that sim/serve/mean_field.h derives.
#include "sim/serve/mean_field.h"

#include <math.h>

double dsc_serve_closed_rate(double clients, double prefill_s, double steps, double step_s)
{
    if (!(clients > 0 && prefill_s >= 0 && steps >= 0 && step_s > 0))
        return NAN;
    return 1 / (prefill_s + (1 + steps) * step_s / clients);
}

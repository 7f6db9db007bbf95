// SPDX-License-Identifier: Apache-2.0
// The drivers in the list of totals_drivers.c.
#ifndef DSC_TRACES_TOTALS_INTERNAL_H
#define DSC_TRACES_TOTALS_INTERNAL_H

#include "traces/import/totals.h"

extern const dsc_totals_driver dsc_totals_sglang, dsc_totals_prometheus;

#endif

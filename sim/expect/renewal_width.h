// SPDX-License-Identifier: Apache-2.0
// The vector width of sim/expect/renewal.c, for its test.
#ifndef DSC_SIM_RENEWAL_WIDTH_H
#define DSC_SIM_RENEWAL_WIDTH_H

#include "sim/expect/renewal.h"

// dsc_renewal_init with vectors of 16, 32 or 64 bytes; 0: the widest. The results are equal to the
// bit. DSC_EABSENT: this processor does not have them.
int dsc_renewal_init_width(dsc_renewal *r, int width, int64_t positions, const int32_t *limit,
                           size_t lanes, dsc_arena *arena, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Machines by name, and the roofline bound on the time of a pass.
#ifndef DSC_SIM_HARDWARE_H
#define DSC_SIM_HARDWARE_H

#include "sim/cost/cost.h"
#include "sim/cost/model_shape.h"

typedef struct dsc_hardware {
    const char *name;
    double bandwidth; // bytes/s of its memory
    double peak;      // 16-bit operations/s
} dsc_hardware;

const dsc_hardware *dsc_hardware_presets(size_t *count);

// Seconds; see sim/cost/cost_roofline.c.
double dsc_roofline_time(const dsc_model_shape *s, const dsc_hardware *h, dsc_pass pass);

#endif

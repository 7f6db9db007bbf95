// SPDX-License-Identifier: Apache-2.0
// Machines and number formats by name.
#ifndef DSC_SIM_HARDWARE_H
#define DSC_SIM_HARDWARE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// What tensor units multiply.
typedef enum dsc_math {
    DSC_MATH_16,
    DSC_MATH_FP8,
    DSC_MATH_INT8,
    DSC_MATH_FP4,
    DSC_MATHS
} dsc_math;

typedef struct dsc_hardware {
    const char *name;
    const char *also;       // a further name, or NULL
    double memory;          // bytes
    double bandwidth;       // bytes/s of its memory
    double peak[DSC_MATHS]; // operations/s without sparsity; 0: no such units
    // vLLM's attention kernel for it has the query heads of a KV head in one tile also where a pass
    // has several tokens of a sequence; FlashAttention 2 only where it has one.
    bool packs;
} dsc_hardware;

typedef struct dsc_number_format {
    const char *name;
    double bytes;  // of a number, with its share of the scales
    dsc_math math; // that matrices of it are multiplied in, where the machine has such units
} dsc_number_format;

const dsc_hardware *dsc_hardware_presets(size_t *count);
const dsc_number_format *dsc_weight_formats(size_t *count);
const dsc_number_format *dsc_cache_formats(size_t *count);

// An array of structures whose first member is a name.
typedef struct dsc_preset_table {
    const void *row;
    size_t size, count; // bytes of a row; rows
} dsc_preset_table;

// The row of that name, in any case. DSC_EUSAGE: there is none, with the nearest name; `what` names
// the kind.
int dsc_preset_find(size_t *at, const char *what, dsc_preset_table table, const char *text,
                    dsc_error *err);
int dsc_hardware_find(dsc_hardware *out, const char *text, dsc_error *err);

// Operations/s in this format; 16-bit ones where the machine has no such units, as engines do.
double dsc_hardware_peak(const dsc_hardware *h, const dsc_number_format *format);

#endif

// SPDX-License-Identifier: Apache-2.0
// Finds the best point of a grid, by evaluating all of its points or few of them.
#ifndef DSC_SIM_SEARCH_H
#define DSC_SIM_SEARCH_H

#include "base/memory.h"

#include <stdbool.h>

typedef enum dsc_search_kind {
    DSC_SEARCH_GRID,       // every point
    DSC_SEARCH_COORDINATE, // one axis at a time, repeated until nothing changes
    DSC_SEARCH_GOLDEN,     // one axis, by golden section
} dsc_search_kind;

typedef struct dsc_search {
    dsc_search_kind kind;
    size_t axes;         // GOLDEN: at most 1
    const size_t *count; // [axes] number of values of each, >= 1
    const size_t *start; // [axes] start of COORDINATE, which takes the axes in their order
    // Evaluates n points. Greater values are better, NaN is worse than all. A point is its index in
    // the grid, the last axis fastest. Points may be evaluated again.
    int (*evaluate)(void *user, const size_t *point, size_t n, double *value, dsc_error *err);
    void *user;
} dsc_search;

// The shape that GOLDEN found, of a function that should rise and then fall.
typedef enum dsc_shape {
    DSC_SHAPE_PEAK,
    DSC_SHAPE_FLAT, // equal neighbors: the search continued below them
    DSC_SHAPE_DIP,  // falls and rises again: a better point may not have been evaluated
} dsc_shape;

typedef struct dsc_search_result {
    size_t best;     // the first of equal ones
    double value;    // NaN: no point has one
    size_t rounds;   // COORDINATE: rounds over all axes; the last one changed nothing
    dsc_shape shape; // GOLDEN
    size_t at;       // index on the axis where it dips or stays level
} dsc_search_result;

// Errors are those of `evaluate`, and DSC_ENOMEM.
int dsc_search_run(const dsc_search *s, dsc_search_result *out, dsc_error *err);

#endif

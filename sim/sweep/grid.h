// SPDX-License-Identifier: Apache-2.0
// The configurations of a sweep: for each method and rule, every combination of the values of its
// parameters.
#ifndef DSC_SIM_GRID_H
#define DSC_SIM_GRID_H

#include "sim/drafter.h"
#include "sim/verifier.h"

// One method with one rule. Configurations are the product of the values, the last parameter
// fastest.
typedef struct dsc_grid {
    const dsc_drafter_type *drafter;
    const dsc_verifier_type *rule;
    int64_t *value[DSC_MAX_PARAMETERS];     // of INT and CHOICE options, owned; others: NULL
    double *real[DSC_MAX_PARAMETERS];       // of REAL options, owned
    const char *text[DSC_MAX_PARAMETERS];   // of TEXT options, which have one value
    const char **texts[DSC_MAX_PARAMETERS]; // of TEXT options that take a list, owned
    size_t count[DSC_MAX_PARAMETERS];
    size_t total;     // configurations, at most DSC_MAX_GRID
    dsc_buffer words; // as dsc_grid_words
    char *copy;       // owned, of the texts when the grid was read from words
} dsc_grid;

enum { DSC_MAX_GRID = 10000000 };

// `text[o]`: the range or list of option o of the drafter. For a TEXT option it is the value, which
// remains the caller's.
int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                  const dsc_option_value *text, dsc_error *err);
void dsc_grid_fini(dsc_grid *g);
dsc_config dsc_grid_at(const dsc_grid *g, size_t index); // 0 <= index < total
// Configurations [first, first + count), ready to run. The caller finishes all of them
// (dsc_config_fini), also on failure.
int dsc_grid_configs(const dsc_grid *g, size_t first, size_t count, dsc_config *config,
                     dsc_error *err);

// A grid as text, "method=llma n=1:3 k=4,8": the method, the rule unless it is greedy, and every
// option that has a value. dsc_grid_parse reads it: DSC_EINPUT when it is not such a text.
int dsc_grid_words(dsc_buffer *words, const dsc_drafter_type *drafter,
                   const dsc_verifier_type *rule, const dsc_option_value *text, dsc_error *err);
int dsc_grid_parse(dsc_grid *g, const char *words, dsc_error *err);

// Grids in sequence, with at most DSC_MAX_GRID configurations in total.
typedef struct dsc_grids {
    dsc_grid *grid; // [count]
    size_t count, capacity, total;
} dsc_grids; // zero-initialize

// Takes *g over, also on failure.
int dsc_grids_add(dsc_grids *all, dsc_grid *g, dsc_error *err);
void dsc_grids_fini(dsc_grids *all);
// The grid that contains configuration `index` < total, and the index of its first configuration.
const dsc_grid *dsc_grids_find(const dsc_grids *all, size_t index, size_t *first);
// The text of all grids, joined by " | ".
int dsc_grids_words(dsc_buffer *words, const dsc_grids *all, dsc_error *err);
int dsc_grids_parse(dsc_grids *all, const char *words, dsc_error *err);

#endif

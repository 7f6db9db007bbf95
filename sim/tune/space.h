// SPDX-License-Identifier: Apache-2.0
// The configurations of one method that a search can evaluate: lists of values for some parameters,
// and the defaults of the others.
#ifndef DSC_SIM_SPACE_H
#define DSC_SIM_SPACE_H

#include "sim/drafter.h"

enum { DSC_MAX_SPACE = 1000000 };

typedef struct dsc_space {
    const dsc_drafter_type *drafter;
    int64_t *value[DSC_MAX_PARAMETERS];    // of INT and CHOICE options, owned; others: NULL
    double *real[DSC_MAX_PARAMETERS];      // of REAL options, owned
    const char **text[DSC_MAX_PARAMETERS]; // of TEXT options, owned; the texts are the caller's or,
                                           // of one that takes a list, in the same block
    size_t count[DSC_MAX_PARAMETERS];
    const char *list[DSC_MAX_PARAMETERS]; // as given (for TEXT the last one), the default, or NULL
    size_t stated[DSC_MAX_PARAMETERS];    // the options that were given, in that order
    size_t stated_count;
    size_t axis[DSC_MAX_PARAMETERS];       // the options with several values, in that order
    size_t axis_count[DSC_MAX_PARAMETERS]; // values of each
    size_t axis_start[DSC_MAX_PARAMETERS]; // where a search begins
    size_t axes;
    size_t total; // configurations; in their indices the last axis is fastest
} dsc_space;

// `given`: options of the drafter with their lists; one that names the method takes precedence over
// one that does not. A TEXT parameter that takes no list takes one value at a time and may be given
// several times.
// `start`: items [METHOD.]PARAMETER=VALUE with a value of the list; a parameter without one starts
// at its default or, when the list lacks that, in the middle. DSC_EUSAGE.
int dsc_space_init(dsc_space *s, const dsc_drafter_type *drafter, const dsc_option_uses *given,
                   const char *const *start, size_t starts, dsc_error *err);
void dsc_space_fini(dsc_space *s);

// DSC_EUSAGE, with the nearest parameter, when an item of `start` is for none of the methods.
int dsc_space_check_start(const char *item, const dsc_drafter_type *const *method, size_t methods,
                          dsc_error *err);

dsc_config dsc_space_at(const dsc_space *s, size_t index); // not prepared
// "length=4 window=16": the given options in their order; "defaults" without any.
int dsc_space_words(dsc_buffer *words, const dsc_space *s, const dsc_config *config,
                    dsc_error *err);

#endif

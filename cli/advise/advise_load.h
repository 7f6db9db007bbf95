// SPDX-License-Identifier: Apache-2.0
// From a search to the simulation of a server: the command line of draftscope serve.
#ifndef DSC_CLI_ADVISE_LOAD_H
#define DSC_CLI_ADVISE_LOAD_H

#include "cli/tune/tune.h"

// A command line of draftscope serve.
typedef struct cli_words {
    char **word; // [count] owned
    size_t count, capacity;
} cli_words; // zero-initialize
void cli_words_fini(cli_words *w);
int cli_words_add(cli_words *w, const char *text, dsc_error *err);

// What the simulation of a server takes from the command line; NULL and NaN: not given.
typedef struct cli_advise_load {
    const char *const
        *arrivals; // [arrivals_count] or, without, the recorded ones at several speeds
    size_t arrivals_count;
    const char *slo, *prefill_time, *cost, *output;
    const cli_engine_use *use; // or NULL
} cli_advise_load;

// The options that do not depend on the search: cost, arrivals, limits, seed, threads, engine.
int cli_advise_load_options(cli_words *w, const cli_advise_load *load, const cli_call *call,
                            dsc_error *err);
// The methods of the search that can be served, with the values that the best configuration of each
// has at any batch size: of those that the engine has settings for, if there are any. `none` is
// first. A method that cannot be served is named on stderr. *served: their number, without `none`.
int cli_advise_load_methods(cli_words *w, size_t *served, const dsc_trace *trace,
                            const dsc_tune *found, dsc_standing *const *standing,
                            const cli_engine_use *use, const cli_call *call, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Drafting methods: const descriptors in an explicit list. A new method is one file under
// sim/draft/, one line in sim/drafter.c and one in sim/Makefile.inc.
#ifndef DSC_SIM_DRAFTER_H
#define DSC_SIM_DRAFTER_H

#include "base/option.h"
#include "sim/draft.h"
#include "traces/trace.h"

enum { DSC_MAX_PARAMETERS = 16 };

// What a drafter is given when a request begins. Everything outlives the request.
typedef struct dsc_drafter_input {
    const dsc_request *request; // without its output, unless the drafter `sees_output`
    const int64_t *parameter;   // [option_count] INT values and CHOICE indices
    uint64_t seed;
    dsc_arena *arena; // of this request
} dsc_drafter_input;

// Drafts at every output position at once, without limit on their length; see `spans`.
typedef struct dsc_spans {
    int32_t *available; // [output.count] tokens a draft from here has to offer; -1: none starts
    int32_t *run; // [output.count] how many of them, from the first on, are the recorded output
} dsc_spans;

typedef struct dsc_drafter_type {
    const char *name, *summary;
    bool sees_output;         // is shown the recorded output (oracle)
    size_t state_size;        // bytes; the caller owns the state, so a copy of it is a clone
    const dsc_option *option; // parameters, in the order of the result columns
    size_t option_count;      // <= DSC_MAX_PARAMETERS

    // The most tokens a draft can have with these parameters.
    int64_t (*limit)(const int64_t *parameter);
    // Starts a request. NULL when there is nothing to prepare.
    int (*begin)(void *state, const dsc_drafter_input *in, dsc_error *err);
    // Proposes what may follow output[0, length); leaves the draft empty to decline.
    int (*propose)(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err);

    // For methods whose draft at a position depends on the tokens before it and on nothing else,
    // and whose length options only cut it: what would be drafted at every position of the recorded
    // output, for `count` settings in[j].parameter that differ in more than length options. Arrays
    // are allocated in in[0].arena and may be shared between settings; entries may be cut at
    // `longest` tokens, and run[i] <= output.count - 1 - i (the last token is always the target's
    // own). NULL when the method is not of this kind.
    int (*spans)(const dsc_drafter_input *in, size_t count, int64_t longest, dsc_spans *out,
                 dsc_error *err);
} dsc_drafter_type;

DSC_API extern const dsc_drafter_type dsc_drafter_none, dsc_drafter_oracle, dsc_drafter_llma;

DSC_API const dsc_drafter_type *const *dsc_drafters(void); // NULL-terminated
DSC_API const dsc_drafter_type *dsc_drafter_find(
    const char *name, dsc_error *err); // NULL: *err says the nearest name

// A method with its parameters.
typedef struct dsc_config {
    const dsc_drafter_type *drafter;
    int64_t parameter[DSC_MAX_PARAMETERS];
} dsc_config;

#endif

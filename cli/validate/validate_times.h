// SPDX-License-Identifier: Apache-2.0
// Measured times of the turns of recorded requests, and step times fitted to them. The model of the
// time of a turn is
//
//   fixed + prefill x prompt tokens + call x target calls + attention x target calls x context.
#ifndef DSC_CLI_VALIDATE_TIMES_H
#define DSC_CLI_VALIDATE_TIMES_H

#include "traces/trace/trace.h"

enum { VALIDATE_TERMS = 4 };

typedef struct validate_turn {
    size_t request; // the caller's number
    int32_t group;
    double term[VALIDATE_TERMS]; // what the coefficients of the model multiply
    double tokens, time_s;       // of the output
} validate_turn;

typedef struct validate_turns {
    validate_turn *turn; // [count]
    size_t count, capacity;
} validate_turns; // zero-initialize; validate_turns_fini frees

// Adds the turns of a request, from the metadata fields wall_time, new_tokens and decoding_steps
// (numbers, or lists with an element per turn). Without wall_time a request is one turn that took
// its recorded step times; without the others, its output and its steps count. A run without steps
// has a target call for each token. DSC_EINPUT: there is no time or it is not positive and finite,
// or the lists differ in length.
int validate_turns_add(validate_turns *t, const dsc_request *q, const char *name, size_t request,
                       int32_t group, dsc_error *err);
void validate_turns_fini(validate_turns *t);

// Fits the model to the turns of all groups but `without`, robustly and with weights 1/time, since
// the errors of the steps add up. DSC_EINPUT: fewer turns than terms.
int validate_turns_fit(const validate_turns *t, const char *name, int32_t without,
                       double x[VALIDATE_TERMS], dsc_error *err);
// The time of a turn by the model.
double validate_turn_time(const validate_turn *t, const double x[VALIDATE_TERMS]);

#endif

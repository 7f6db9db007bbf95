// SPDX-License-Identifier: Apache-2.0
// Models that are not recorded: the loop runs them in addition to a trace or in its place.
#ifndef DSC_SIM_WORKLOAD_H
#define DSC_SIM_WORKLOAD_H

#include "sim/model/language.h"
#include "sim/model/model_synthetic.h"

typedef struct dsc_workload {
    const dsc_language *target;         // NULL: the recorded outputs of a trace
    const dsc_language *draft, *middle; // or NULL
    double temperature;                 // of all of them
    // Without a trace:
    int64_t requests;
    int64_t prompt_tokens; // longest prompt. A prompt is the beginning of one of the target's
                           // texts, never a whole text; texts are taken in turn, cyclically
    int64_t max_tokens;    // maximum output length; an EOS token ends the output earlier
    const int64_t *order;  // [requests] the request that runs first, second, ...; NULL: in order
} dsc_workload;

// Checks a workload. vocab_size: that of the trace, or 0 without a trace. DSC_EUSAGE: vocabularies
// that differ, a number out of range.
int dsc_workload_check(const dsc_workload *w, int32_t vocab_size, dsc_error *err);

// The order that `text` names (*out is owned by the caller; NULL: file). file; shuffle[:SEED], a
// random order; consecutive:N[/TASKS], N requests of each task in turn, where the requests consist
// of TASKS (4) tasks of equal size in sequence (Ouroboros, appendix F). DSC_EUSAGE.
int dsc_workload_order(int64_t **out, const char *text, int64_t requests, dsc_error *err);

// The prompt of request r, a view of the target's corpus; empty for languages without texts
// (markov, iid). DSC_EUSAGE: the corpus has no sequence left for prompts.
int dsc_workload_prompt(const dsc_language *target, int64_t r, int64_t prompt_tokens,
                        dsc_token_view *prompt, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Models that are no recording: what stands beside a trace, or in its place, when the loop runs.
#ifndef DSC_SIM_WORKLOAD_H
#define DSC_SIM_WORKLOAD_H

#include "sim/model/language.h"
#include "sim/model/model_synthetic.h"

typedef struct dsc_workload {
    const dsc_language *target;         // NULL: the recorded outputs of a trace
    const dsc_language *draft, *middle; // or NULL: there is none
    double temperature;                 // of all of them
    // Without a trace:
    int64_t requests;
    int64_t prompt_tokens; // of the target's texts, one after the other and from the first again:
                           // as many as this, but never the whole text
    int64_t max_tokens;    // of an output; an EOS token ends it before
    const int64_t *order;  // [requests] which request comes first, second, ...; NULL: in order
} dsc_workload;

// DSC_EUSAGE: vocabularies that differ, a number out of range. vocab_size: that of the trace, or
// 0: there is none.
DSC_API int dsc_workload_check(const dsc_workload *w, int32_t vocab_size, dsc_error *err);

// The order that `text` names (owned by the caller; NULL: file): file; shuffle[:SEED], a random
// one; consecutive:N[/TASKS], N requests of each task in turn, where the requests are TASKS (4)
// tasks of the same size, one behind the other (Ouroboros, appendix F). DSC_EUSAGE.
DSC_API int dsc_workload_order(int64_t **out, const char *text, int64_t requests, dsc_error *err);

// The prompt of request r, a view of the target's corpus; empty when it has no texts (markov,
// iid). DSC_EUSAGE: the corpus has no sequence left for prompts.
DSC_API int dsc_workload_prompt(const dsc_language *target, int64_t r, int64_t prompt_tokens,
                                dsc_token_view *prompt, dsc_error *err);

#endif

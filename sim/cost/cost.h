// SPDX-License-Identifier: Apache-2.0
// What a forward pass costs, in seconds (in target calls, for `unit`). What a run of them costs is
// in sim/cost/price.h.
#ifndef DSC_SIM_COST_H
#define DSC_SIM_COST_H

#include "base/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// A forward pass. Where a mean is priced, its numbers need not be whole.
typedef struct dsc_pass {
    double tokens;  // of each sequence: the last committed one and the draft
    double context; // tokens of each sequence that stand before the draft, the prompt's included
    double batch;   // sequences
    bool again;     // right behind a pass of the same model: caches may still hold some of it
} dsc_pass;

typedef struct dsc_cost_type dsc_cost_type;

typedef struct dsc_cost {
    const dsc_cost_type *type;
    // Of `unit`, `linear` and `fit`, >= 0.
    double fixed_s;     // per call of the target
    double per_token_s; // per token in it, of all sequences
    double draft_s;     // per call of the draft model
    void *model;        // of the other types
    char note[512];     // what else decides: how well a fit fits, which table; may be empty
} dsc_cost;

struct dsc_cost_type {
    const char *name, *summary;
    const char *usage; // what follows "NAME:", or NULL
    // A pass takes fixed_s + per_token_s x all its tokens, and one of the draft model draft_s: sums
    // of tokens over calls are enough to price them.
    bool linear;
    // `text`: what followed the colon. DSC_EUSAGE, or DSC_EINPUT for what is in a file. On failure
    // nothing is left to be freed. NULL: there is nothing to be said.
    int (*open)(dsc_cost *cost, const char *text, dsc_error *err);
    void (*close)(void *model); // NULL: nothing to free
    // DSC_EINPUT: the model does not know, and does not guess. NULL when `linear`.
    int (*target)(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
    int (*draft)(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
};

DSC_API extern const dsc_cost_type dsc_cost_unit, dsc_cost_linear, dsc_cost_table,
    dsc_cost_roofline, dsc_cost_fit;
DSC_API const dsc_cost_type *const *dsc_cost_types(void); // NULL-terminated

// "unit": a target call costs 1 whatever its width, so that speed-up = block efficiency.
// "linear:FIXED_S,PER_TOKEN_S[,DRAFT_S]": seconds >= 0, the first two not both 0; drafting is free
// when the third is not given.
// "table:FILE", "roofline:TARGET,DRAFT,HARDWARE[,...]", "fit:TRACE": sim/cost/cost_table.c,
// sim/cost/cost_roofline.c, sim/cost/cost_fit.c. DSC_EUSAGE, DSC_EINPUT; freed by dsc_cost_fini.
DSC_API int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err);
DSC_API void dsc_cost_fini(dsc_cost *cost);

// Time of one pass: of the target, of the draft model.
DSC_API int dsc_cost_target(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
DSC_API int dsc_cost_draft(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
// Of `calls` passes of the draft model in `rows` rows: the first of a row is behind one of another
// model, the others are behind their own kind, whatever pass.again is. 0 <= rows <= calls.
DSC_API int dsc_cost_drafts(const dsc_cost *cost, dsc_pass pass, double calls, double rows,
                            double *seconds, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// Cost models: the time of a forward pass, in seconds (for `unit` in target calls).
// sim/cost/price.h has the time of a run. A NULL argument is DSC_EUSAGE; dsc_cost_fini ignores it.
#ifndef DSC_SIM_COST_H
#define DSC_SIM_COST_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A forward pass. Where a mean is priced, its numbers need not be whole.
typedef struct dsc_pass {
    double tokens;  // of each sequence: the last committed token and the draft
    double context; // tokens of each sequence that stand before the draft, the prompt's included
    double batch;   // sequences
    bool again;     // directly after a pass of the same model: caches may still hold some of it
} dsc_pass;

typedef struct dsc_cost_type dsc_cost_type;
typedef struct dsc_mixed_pass dsc_mixed_pass; // sim/cost/mixed_pass.h

// A measured time whose third quartile is more than this multiple of the first is reported.
#define DSC_COST_WIDE 1.5

typedef struct dsc_cost {
    const dsc_cost_type *type;
    // For `unit`, `linear` and `fit`; >= 0.
    double fixed_s;     // per call of the target
    double per_token_s; // per token in it, of all sequences
    double draft_s;     // per call of the draft model
    void *model;        // of the other types
    char note[512];     // details: the errors of a fit, the hash of a table; may be empty
    // Quartiles of measured times: 0 typical times; 1 the third quartile, where the model has one,
    // and -1 the first. dsc_price_run compares a run at one quartile with no speculation at the
    // other.
    int quartile;
    bool spread; // the model has quartiles
    bool mixed;  // the model has times of prefill tokens: dsc_cost_prefill
    // The cells whose quartiles are far apart, for readers of results; may be empty.
    char spread_caveat[240];
    // Why the time of a pass of one token is unknown, so that speedups are NaN; NULL: it is known.
    const char *no_plain;
    const char *caveat; // what its times are not, a clause for readers of results; or NULL
} dsc_cost;

struct dsc_cost_type {
    const char *name, *summary;
    const char *usage; // the syntax after "NAME:", or NULL
    // A pass takes fixed_s + per_token_s x all its tokens, and a pass of the draft model draft_s.
    // So sums of tokens over calls are enough to price them.
    bool linear;
    // `text`: the part after the colon. DSC_EUSAGE, or DSC_EINPUT for the contents of a file. On
    // failure nothing has to be freed. NULL: the type has no parameters.
    int (*open)(dsc_cost *cost, const char *text, dsc_error *err);
    void (*close)(void *model); // NULL: nothing to free
    // DSC_EINPUT: the model has no time for this pass; it does not extrapolate. NULL when `linear`.
    int (*target)(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
    int (*draft)(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
    // Optional: the numbers of `target` for passes of least, least + step, ... tokens in all
    // sequences together, [count], where `target` has succeeded for the last. false: not for this
    // model.
    bool (*targets)(const dsc_cost *cost, dsc_pass pass, int64_t least, int64_t step, size_t count,
                    double *seconds);
    // Of models that set dsc_cost.mixed: the number of dsc_cost_prefill, tokens > 0.
    int (*prefill)(const dsc_cost *cost, dsc_pass pass, double tokens, double *seconds,
                   dsc_error *err);
    // Optional: dsc_mixed_target and dsc_mixed_first_draft.
    int (*mixed)(const dsc_cost *cost, const dsc_mixed_pass *pass, double *seconds, dsc_error *err);
    int (*first_draft)(const dsc_cost *cost, dsc_pass pass, const dsc_mixed_pass *after,
                       double *seconds, dsc_error *err);
};

DSC_API extern const dsc_cost_type dsc_cost_unit, dsc_cost_linear, dsc_cost_table,
    dsc_cost_roofline, dsc_cost_fit, dsc_cost_prometheus, dsc_cost_bench, dsc_cost_sps;
DSC_API const dsc_cost_type *const *dsc_cost_types(void); // NULL-terminated

// "unit": a target call costs 1 at any width, so that speedup = block efficiency.
// "linear:FIXED_S,PER_TOKEN_S[,DRAFT_S]": seconds >= 0, the first two not both 0; without the
// third, drafting is free. "table:FILE", "roofline:TARGET,HARDWARE[,...]", "fit:TRACE",
// "prometheus:BEFORE,AFTER[,...]", "bench:FILE[,...]", "sps:FILE": sim/cost/cost_NAME.c.
// DSC_EUSAGE, DSC_EINPUT; freed by dsc_cost_fini.
DSC_API int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err);
DSC_API void dsc_cost_fini(dsc_cost *cost);

// The time of one pass of the target, and of the draft model. DSC_EUSAGE: a number of the pass is
// negative or not finite, its batch is 0, or the cost is not initialized. DSC_EINPUT: the model has
// no time for the pass.
DSC_API int dsc_cost_target(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
DSC_API int dsc_cost_draft(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err);
// The time that `tokens` >= 0 prefill tokens of another sequence, a chunk of its prompt after
// pass.context other tokens, add to a pass of the target in which pass.batch sequences decode
// pass.tokens each; pass.again is not used. DSC_EUSAGE: the same, or cost->mixed is not set.
DSC_API int dsc_cost_prefill(const dsc_cost *cost, dsc_pass pass, double tokens, double *seconds,
                             dsc_error *err);
// The time of `calls` passes of the draft model in `rows` drafts: the first pass of a draft follows
// a pass of the target over `verified` tokens of each sequence, which a head reads again; the
// others follow a pass of the draft model. pass.again is not used. 0 <= rows <= calls, verified >=
// 0.
DSC_API int dsc_cost_drafts(const dsc_cost *cost, dsc_pass pass, double verified, double calls,
                            double rows, double *seconds, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

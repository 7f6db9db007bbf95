// SPDX-License-Identifier: Apache-2.0
// LLMA (Yang et al. 2023): counts of a replay of its RAG development set, and the speedups of Table
// 3 under one cost parameter, the time that a further token adds to a target call, which is fitted
// to the 7B model.
#include "cli/validate/validate.h"

#include <math.h>
#include <string.h>

typedef struct workspace {
    validate_imported rag;
    double slope; // time of a further token in a call, in units of a call
} workspace;

static int replay(const workspace *w, double k, const char *semantics, validate_outcome *o,
                  dsc_error *err)
{
    char words[128];
    snprintf(words, sizeof words,
             "{} --method llma --n 1 --num-speculative-tokens %.0f --semantics %s", k, semantics);
    return validate_simulate(words, w->rag.path, o, err);
}

// Fits the slope: speedup = tokens/(calls + slope x draft tokens).
static int fit_slope(workspace *w, const validate_row *row, dsc_error *err)
{
    double k, speedup;
    validate_outcome o;
    int rc = validate_given(row, "7B, retrieval", "k", NAN, &k, err);
    if (!rc)
        rc = validate_given(row, "7B, retrieval", "speedup", k, &speedup, err);
    if (!rc)
        rc = replay(w, k, "paper", &o, err);
    if (!rc)
        w->slope = (o.output_tokens / speedup - o.target_calls) / o.num_draft_tokens;
    return rc;
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const workspace *w = row->state;
    const dsc_trace_info *info = dsc_trace_get_info(w->rag.trace);
    validate_outcome o;
    if (validate_is(f, "prompt_tokens") || validate_is(f, "output_tokens")) {
        bool prompt = f->quantity[0] == 'p';
        f->predicted =
            (double)(prompt ? info->prompt_tokens : info->output_tokens) / (double)info->requests;
        return DSC_OK;
    }
    if (!(f->at >= 1 && f->at <= 1000))
        return DSC_OK;
    if (strcmp(f->where, "13B, cache") == 0) // same steps and same cost parameter
        return validate_given(row, "7B, cache", "speedup", f->at, &f->predicted, err);
    int rc = replay(w, f->at, strstr(f->where, "code") ? "code" : "paper", &o, err);
    if (rc)
        return rc;
    if (validate_is(f, "triggers"))
        f->predicted = o.num_drafts_started / o.requests;
    else if (validate_is(f, "accepted"))
        f->predicted = o.num_accepted_tokens / o.requests;
    else if (validate_is(f, "steps"))
        f->predicted = o.target_calls / o.requests;
    else if (validate_is(f, "speedup"))
        f->predicted = o.output_tokens / (o.target_calls + w->slope * o.num_draft_tokens);
    return DSC_OK;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    static const validate_import rag = {
        .format = "llma", .file = "llma/rag.jsonl", .tokenizer = "tokenizers/llama2.json"};
    workspace *w = state;
    int rc = validate_import_open(&w->rag, row, &rag, err);
    return rc ? rc : fit_slope(w, row, err);
}

static void end(void *state)
{
    workspace *w = state;
    validate_import_close(&w->rag);
}

const validate_row_type validate_llma = {
    .name = "llma",
    .summary = "LLMA, Tables 1, 3 and 4 and its RAG development set (--data)",
    .needs_data = true,
    .state_size = sizeof(workspace),
    .begin = begin,
    .end = end,
    .predict = predict,
};

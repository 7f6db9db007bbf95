// SPDX-License-Identifier: Apache-2.0
#include "sim/model_trace.h"

#include <inttypes.h>
#include <stdlib.h>

// Marks which nodes lie on the recorded path: the parent does, and the token is the recorded one.
static int score(dsc_model *base, const dsc_draft *d, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    void *p = m->depth;
    int rc = dsc_grow(&p, &m->capacity, d->count, sizeof *m->depth, err);
    m->depth = p;
    for (size_t j = 0; j < d->count && !rc; j++) {
        int32_t above = d->parent[j] < 0 ? 0 : m->depth[d->parent[j]];
        int64_t at = base->length + above;
        bool on_path = above >= 0 && at < m->recorded.count && m->recorded.id[at] == d->token[j];
        m->depth[j] = on_path ? above + 1 : -1;
    }
    return rc;
}

static int next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    int64_t at = base->length + (node < 0 ? 0 : m->depth[node]);
    if ((node >= 0 && m->depth[node] < 0) || at >= m->recorded.count) {
        base->refused++;
        return dsc_fail(err, DSC_EABSENT,
                        "the recorded output does not say what follows this draft token");
    }
    *out = (dsc_next){m->recorded.id[at], at + 1 == m->recorded.count};
    return DSC_OK;
}

// The output is the recorded one or the method is not lossless on it: checked token by token.
static int commit(dsc_model *base, const int32_t *token, size_t n, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    for (size_t j = 0; j < n; j++) {
        int64_t at = base->length + (int64_t)j;
        if (at >= m->recorded.count || token[j] != m->recorded.id[at])
            return dsc_fail(err, DSC_ECHECK,
                            "emitted token %d at output position %" PRId64
                            " is not the recorded one",
                            token[j], at);
    }
    base->length += (int64_t)n;
    base->ended = base->length == m->recorded.count;
    return DSC_OK;
}

static const dsc_model_type type = {
    .name = "trace", .on_path_only = true, .score = score, .next = next, .commit = commit};

void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded)
{
    m->base = (dsc_model){.type = &type, .output = recorded.id, .ended = recorded.count == 0};
    m->recorded = recorded;
}

void dsc_model_trace_fini(dsc_model_trace *m)
{
    free(m->depth);
    *m = (dsc_model_trace){0};
}

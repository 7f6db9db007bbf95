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

// The output position that follows a node on the recorded path.
static int position_after(dsc_model_trace *m, int32_t node, int64_t *at, dsc_error *err)
{
    *at = m->base.length + (node < 0 ? 0 : m->depth[node]);
    if ((node < 0 || m->depth[node] >= 0) && *at < m->recorded.count)
        return DSC_OK;
    m->base.refused++;
    return dsc_fail(err, DSC_EABSENT,
                    "the recorded output does not say what follows this draft token");
}

static int next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    int64_t at;
    int rc = position_after(m, node, &at, err);
    if (!rc)
        *out = (dsc_next){m->recorded.id[at], at + 1 == m->recorded.count};
    return rc;
}

static int law(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    dsc_row row;
    int64_t at;
    int rc = position_after(m, node, &at, err);
    if (rc)
        return rc;
    if (!m->vocab_size || !dsc_request_row(&m->request, m->side, at, &row)) {
        base->refused++;
        return dsc_fail(err, DSC_EABSENT,
                        "no rows were recorded: the law at output position %" PRId64 " is unknown",
                        at);
    }
    void *p = m->row;
    rc = dsc_grow(&p, &m->row_capacity, (size_t)m->vocab_size, sizeof *m->row, err);
    m->row = p;
    if (rc)
        return rc;
    double unlisted = dsc_row_law(&row, m->vocab_size, m->row), sum = unlisted;
    for (int32_t x = 0; x < m->vocab_size; x++)
        sum += m->row[x];
    for (int32_t x = 0; x < m->vocab_size; x++)
        m->row[x] /= sum;
    *out = (dsc_dist){.vocab_size = m->vocab_size, .dense = m->row, .unlisted = unlisted / sum};
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
    .name = "trace",
    .on_path_only = true,
    .score = score,
    .next = next,
    .law = law,
    .commit = commit,
};

void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded)
{
    m->base = (dsc_model){.type = &type,
                          .output = recorded.id,
                          .limit = recorded.count,
                          .end_token = -1,
                          .ended = recorded.count == 0};
    m->recorded = recorded;
    m->vocab_size = 0;
}

void dsc_model_trace_begin_rows(dsc_model_trace *m, const dsc_request *request, dsc_model_side side,
                                int32_t vocab_size)
{
    dsc_model_trace_begin(m, request->output);
    m->request = *request;
    m->side = side;
    m->vocab_size = vocab_size;
}

void dsc_model_trace_fini(dsc_model_trace *m)
{
    free(m->depth);
    free(m->row);
    *m = (dsc_model_trace){0};
}

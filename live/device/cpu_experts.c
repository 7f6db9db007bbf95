// SPDX-License-Identifier: Apache-2.0
// A mixture of experts (Shazeer et al., arXiv:1701.06538): each token is multiplied by the experts
// that its router gives the largest probabilities. The tokens of an expert are gathered into one
// product, and a token adds up its experts in ascending order, so its result does not depend on the
// other tokens.
#include "live/device/cpu.h"

#include <math.h>
#include <string.h>

// Sets weight[used] and expert[used] of a token from its logits[experts], which become
// probabilities. Of equal ones the first.
static void choose(float *logits, const live_experts *e, float *weight, int32_t *expert)
{
    float most = -INFINITY;
    double sum = 0, chosen = 0;
    for (int64_t i = 0; i < e->experts; i++)
        most = fmaxf(most, logits[i]);
    for (int64_t i = 0; i < e->experts; i++)
        sum += logits[i] = expf(logits[i] - most);
    for (int64_t n = 0; n < e->used; n++) {
        int64_t best = 0;
        for (int64_t i = 1; i < e->experts; i++)
            if (logits[i] > logits[best])
                best = i;
        weight[n] = logits[best];
        expert[n] = (int32_t)best;
        chosen += logits[best];
        logits[best] = -1; // below every probability
    }
    for (int64_t n = 0; n < e->used; n++)
        weight[n] = (float)(weight[n] / (e->normalized ? chosen : sum));
}

// Memory of the operation for all rows, which may all go to one expert.
typedef struct experts_room {
    float *in, *logits, *weight;         // [rows][hidden] normed, [rows][experts], [rows][used]
    int32_t *expert;                     // [rows][used]
    float *mine, *wide, *acted, *result; // of one expert: [rows] of hidden, 2 width, width, hidden
    float *share;                        // [rows] the weight of each
    int32_t *row;                        // [rows] of the pass
} experts_room;

static int make_room(cpu_backend *c, experts_room *r, const live_experts *e, int64_t rows,
                     dsc_error *err)
{
    const int64_t hidden = e->router->cols, width = e->down->cols;
    const struct {
        void *out;
        int64_t each;
    } want[] = {{&r->in, hidden},      {&r->logits, e->experts}, {&r->weight, e->used},
                {&r->expert, e->used}, {&r->mine, hidden},       {&r->wide, 2 * width},
                {&r->acted, width},    {&r->result, hidden},     {&r->share, 1},
                {&r->row, 1}};
    int64_t all = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        all += want[i].each;
    int rc = live_cpu_scratch(&c->experts, (size_t)(all * rows) * sizeof(float), err);
    float *at = c->experts.data;
    for (size_t i = 0; i < sizeof want / sizeof *want && !rc; i++) {
        memcpy(want[i].out, &at, sizeof at); // a pointer of either type
        at += want[i].each * rows;
    }
    return rc;
}

// Gathers the rows that chose expert `x` and returns their number.
static int64_t take_rows(const experts_room *r, const live_experts *e, int64_t rows, int64_t x)
{
    const int64_t hidden = e->router->cols;
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t u = 0; u < e->used; u++)
            if (r->expert[i * e->used + u] == x) {
                memcpy(r->mine + n * hidden, r->in + i * hidden, (size_t)hidden * sizeof *r->in);
                r->share[n] = r->weight[i * e->used + u];
                r->row[n++] = (int32_t)i;
            }
    return n;
}

// The rows of a matrix of all experts that are expert x's.
static live_matrix matrix_of(const live_matrix *all, int64_t experts, int64_t x)
{
    live_matrix m = *all;
    m.rows /= experts;
    m.data = (char *)m.data + (size_t)(x * m.rows * m.cols) * dsc_dtype_bytes(m.dtype);
    return m;
}

static int run_expert(live_backend *b, float *out, const experts_room *r, const live_experts *e,
                      int64_t x, int64_t n, dsc_error *err)
{
    const int64_t hidden = e->router->cols, width = e->down->cols;
    const live_matrix up = matrix_of(e->up, e->experts, x),
                      down = matrix_of(e->down, e->experts, x);
    int rc = live_cpu_matmul(b, r->wide, &up, NULL, r->mine, n, false, err);
    if (!rc)
        rc = live_cpu_activate(b, r->acted, r->wide, e->activation, n, width, err);
    if (!rc)
        rc = live_cpu_matmul(b, r->result, &down, NULL, r->acted, n, false, err);
    for (int64_t i = 0; i < n && !rc; i++)
        for (int64_t j = 0; j < hidden; j++)
            out[r->row[i] * hidden + j] += r->share[i] * r->result[i * hidden + j];
    return rc;
}

int live_cpu_experts(live_backend *b, float *out, const float *in, int64_t rows,
                     const live_experts *e, dsc_error *err)
{
    experts_room r;
    int rc = make_room(cpu_of(b), &r, e, rows, err);
    if (!rc)
        rc = live_cpu_norm(b, r.in, in, &e->norm, rows, e->router->cols, err);
    if (!rc)
        rc = live_cpu_matmul(b, r.logits, e->router, NULL, r.in, rows, false, err);
    for (int64_t i = 0; i < rows && !rc; i++)
        choose(r.logits + i * e->experts, e, r.weight + i * e->used, r.expert + i * e->used);
    for (int64_t x = 0; x < e->experts && !rc; x++) {
        const int64_t n = take_rows(&r, e, rows, x);
        if (n)
            rc = run_expert(b, out, &r, e, x, n, err);
    }
    return rc;
}

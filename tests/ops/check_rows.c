// SPDX-License-Identifier: Apache-2.0
// Checks of fill and of the operations on rows of activations and logits.
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Runs operation `op` on the CPU and on the device; OF(twin) in the arguments is the memory there.
#define BOTH(c, op, ...)                                                                           \
    do {                                                                                           \
        live_backend *on = (c)->cpu;                                                               \
        bool device = false;                                                                       \
        check_call(c, on->type->op(on, __VA_ARGS__, &(c)->error), #op);                            \
        on = (c)->device;                                                                          \
        device = true;                                                                             \
        check_call(c, on->type->op(on, __VA_ARGS__, &(c)->error), #op);                            \
    } while (0)
#define OF(twin) ((twin).count ? device ? (twin).device : (twin).cpu : NULL)

static const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
enum { DTYPES = 3 };

// The operations on rows make the same sums in another order: a few units in the last place.
static const double ROUNDING = 4e-6;

static void fill(check *c)
{
    const int64_t counts[] = {1, 3, 4, 5, 1000, 70001};
    for (int d = 0; d < DTYPES; d++)
        for (int i = 0; i < 6; i++) {
            twin t = check_twin(c, counts[i] + 2, dtypes[d], dtypes[d]);
            BOTH(c, memory.fill, OF(t), dtypes[d], counts[i], 0x123456789abcdefu, 7u + (1ull << 33),
                 .05);
            const double e = check_twin_error(c, &t);
            check_line(c, e == 0, e, 0, "fill %s, %" PRId64 " numbers, bit for bit",
                       dsc_dtype_name(dtypes[d]), counts[i]);
            check_twin_free(c, &t);
        }
}

static live_matrix matrix(twin t, bool device, int64_t rows, int64_t cols)
{
    return (live_matrix){device ? t.device : t.cpu, t.cpu_dtype, rows, cols};
}

static void embed(check *c)
{
    const int64_t widths[] = {1, 12, 67, 384};
    for (int d = 0; d < DTYPES; d++)
        for (int i = 0; i < 4; i++)
            for (int learned = 0; learned < 2; learned++) {
                const int64_t w = widths[i], vocab = 41, stride = w + 3;
                const float scale = learned ? 1 : 33.94f; // with a sum, its rounding would differ
                check_pass p = check_pass_new(c, 7, 2, 5, 0, true, vocab);
                twin table = check_twin(c, vocab * w, dtypes[d], dtypes[d]);
                twin places = check_twin(c, 20 * w, dtypes[d], dtypes[d]);
                twin out = check_twin(c, 14 * stride, DSC_F32, DSC_F32);
                check_twin_fill(c, &table, 0, table.count, dtypes[d], 1);
                check_twin_fill(c, &places, 0, places.count, dtypes[d], 1);
                check_begin(c, &p.batch);
                for (int side = 0; side < 2; side++) {
                    live_backend *b = side ? c->device : c->cpu;
                    const live_matrix m = matrix(table, side, vocab, w);
                    const live_matrix l = matrix(places, side, 20, w);
                    check_call(c,
                               b->type->pass.embed(b, side ? out.device : out.cpu, stride, &m,
                                                   learned ? &l : NULL, scale, &c->error),
                               "embed");
                }
                check_end(c);
                const double e = check_twin_error(c, &out);
                check_line(c, e == 0, e, 0, "embed %s, %" PRId64 " wide%s",
                           dsc_dtype_name(dtypes[d]), w, learned ? ", positions" : "");
                check_twin_free(c, &table);
                check_twin_free(c, &places);
                check_twin_free(c, &out);
                check_pass_free(&p);
            }
}

static void lists(check *c)
{
    const int64_t widths[] = {1, 12, 67, 1000};
    for (int i = 0; i < 4; i++)
        for (int list = 0; list < 3; list++) {
            const int64_t w = widths[i], tokens = 9;
            check_pass p = check_pass_new(c, tokens, list == LIVE_OUTPUTS ? 2 : 1, 4, 0, true, 9);
            twin in = check_twin(c, 2 * tokens * (w + 1), DSC_F32, DSC_F32);
            twin out = check_twin(c, 40 * (w + 2), DSC_F32, DSC_F32);
            check_twin_fill(c, &in, 0, in.count, DSC_F32, 1);
            check_begin(c, &p.batch);
            if (list == LIVE_SLOTS)
                BOTH(c, pass.scatter, OF(out), OF(in), w, LIVE_SLOTS);
            else
                BOTH(c, pass.gather, OF(out), w + 2, OF(in), w + 1, w, (live_index)list);
            check_end(c);
            const double e = check_twin_error(c, &out);
            check_line(c, e == 0, e, 0, "%s, %" PRId64 " wide",
                       list == LIVE_SLOTS     ? "scatter to slots"
                       : list == LIVE_OUTPUTS ? "gather outputs"
                                              : "gather features",
                       w);
            check_twin_free(c, &in);
            check_twin_free(c, &out);
            check_pass_free(&p);
        }
}

static void norms(check *c)
{
    const int64_t widths[] = {2, 12, 67, 1000, 4096};
    for (int i = 0; i < (c->quick ? 4 : 5); i++)
        for (int kind = 0; kind < 2; kind++)
            for (int form = 0; form < 3; form++) { // plain, with bias, in place
                const int64_t w = widths[i], rows = 5;
                check_pass p = check_pass_new(c, rows, 1, 0, 0, false, 9);
                twin in = check_twin(c, rows * w, DSC_F32, DSC_F32);
                twin out = check_twin(c, rows * w + 1, DSC_F32, DSC_F32);
                twin weight = check_twin(c, w, DSC_F32, DSC_F32);
                twin bias = check_twin(c, w, DSC_F32, DSC_F32);
                check_twin_fill(c, &in, 0, in.count, DSC_F32, 3);
                check_twin_fill(c, &weight, 0, w, DSC_F32, 2);
                check_twin_fill(c, &bias, 0, w, DSC_F32, 1);
                check_begin(c, &p.batch);
                BOTH(c, pass.norm, form == 2 ? OF(in) : OF(out), OF(in),
                     (&(live_norming){OF(weight), form == 1 ? OF(bias) : NULL, (live_norm)kind,
                                      1e-5}),
                     rows, w);
                check_end(c);
                const double e = check_twin_error(c, form == 2 ? &in : &out);
                check_line(c, e <= ROUNDING, e, ROUNDING, "%s norm, %" PRId64 " wide%s",
                           kind == LIVE_RMS_NORM ? "RMS" : "layer", w,
                           form == 0   ? ""
                           : form == 1 ? ", bias"
                                       : ", in place");
                check_twin_free(c, &in);
                check_twin_free(c, &out);
                check_twin_free(c, &weight);
                check_twin_free(c, &bias);
                check_pass_free(&p);
            }
}

static void sums(check *c)
{
    const int64_t counts[] = {1, 67, 3000};
    for (int i = 0; i < 3; i++) {
        check_pass p = check_pass_new(c, 3, 1, 0, 0, false, 9);
        twin in = check_twin(c, counts[i], DSC_F32, DSC_F32);
        twin out = check_twin(c, counts[i] + 1, DSC_F32, DSC_F32);
        check_twin_fill(c, &in, 0, in.count, DSC_F32, 12);
        check_twin_fill(c, &out, 0, counts[i], DSC_F32, 12);
        check_begin(c, &p.batch);
        BOTH(c, pass.add, OF(out), OF(in), counts[i]);
        check_end(c);
        const double e = check_twin_error(c, &out);
        check_line(c, e == 0, e, 0, "add, %" PRId64 " numbers", counts[i]);
        check_twin_free(c, &in);
        check_twin_free(c, &out);
        check_pass_free(&p);
    }
}

// Row 0 is random; 1: the largest twice; 2: one NaN; 3: all but one minus infinity; 4: all minus
// infinity; 5: the largest is last.
static void select_row(float *x, int64_t vocab, int row)
{
    if (row == 1)
        x[vocab / 3] = x[vocab - 1] = 7;
    if (row == 2)
        x[vocab - 1] = NAN;
    for (int64_t i = 0; (row == 3 || row == 4) && i < vocab; i++)
        x[i] = row == 3 && i == vocab / 2 ? 1 : -INFINITY;
    if (row == 5)
        x[vocab - 1] = 9;
}

static void selects(check *c)
{
    enum { ROWS = 6 };
    const int64_t vocabs[] = {1, 2, 31, 67, 1000, 32003};
    for (int v = 0; v < (c->quick ? 5 : 6); v++) {
        const int64_t vocab = vocabs[v];
        int32_t token[2][ROWS];
        float margin[2][ROWS];
        check_pass p = check_pass_new(c, ROWS, 1, 0, 0, false, 9);
        twin logits = check_twin(c, ROWS * vocab, DSC_F32, DSC_F32);
        twin best = check_twin(c, ROWS, DSC_F32, DSC_F32);
        twin lead = check_twin(c, ROWS, DSC_F32, DSC_F32);
        check_twin_fill(c, &logits, 0, logits.count, DSC_F32, 5);
        float *x = malloc((size_t)logits.count * sizeof *x);
        if (!x)
            check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "select");
        check_twin_numbers(c, &logits, false, x);
        for (int r = 0; r < ROWS; r++)
            select_row(x + r * vocab, vocab, r);
        check_twin_set(c, &logits, 0, x, logits.count);
        free(x);
        check_begin(c, &p.batch);
        BOTH(c, pass.select, (int32_t *)OF(best), OF(lead), OF(logits), ROWS, vocab);
        check_end(c);
        BOTH(c, memory.download, token[device], OF(best), sizeof token[0]);
        BOTH(c, memory.download, margin[device], OF(lead), sizeof margin[0]);
        int wrong = 0;
        for (int r = 0; r < ROWS; r++)
            wrong += token[0][r] != token[1][r] || (margin[0][r] != margin[1][r] &&
                                                    !(isnan(margin[0][r]) && isnan(margin[1][r])));
        check_line(c, wrong == 0, wrong, 0, "select of %" PRId64 ", tokens and margins", vocab);
        check_twin_free(c, &logits);
        check_twin_free(c, &best);
        check_twin_free(c, &lead);
        check_pass_free(&p);
    }
}

void check_rows(check *c)
{
    fill(c);
    embed(c);
    lists(c);
    norms(c);
    sums(c);
    selects(c);
}

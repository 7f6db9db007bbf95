// SPDX-License-Identifier: Apache-2.0
// Sufficient statistics: against the rules they come from, and as what they are for: the expected
// block efficiency along a recorded output, by enumeration of every tuple of drafts, from the rows,
// and from the columns of a reduced trace.
#include "tests/close.h"
#include "tests/exact/pairs.h"
#include "tests/unit/trace_fixture.h"

#include "sim/reduce/reduce.h"
#include "theory/kseq.h"
#include "theory/specinfer.h"
#include "theory/otm_sampler.h"
#include "theory/rows_curve.h"
#include "theory/sufficient.h"

enum { MOST = 1000 };
static dsc_error e;
static dsc_otm_sampler *sampler;
static dsc_sufficient_work *work;

static int set_up(void **state)
{
    (void)state;
    return dsc_otm_sampler_new(&sampler, &e) || dsc_sufficient_work_new(&work, &e);
}

static int tear_down(void **state)
{
    (void)state;
    dsc_otm_sampler_free(sampler);
    dsc_sufficient_work_free(work);
    return 0;
}

// --- a position ----------------------------------------------------------------------------------

static void check_position(const double *draft, const double *target, size_t vocab, size_t y, int K,
                           const float *kseq, const float *specinfer, const float *otm)
{
    dsc_curve c;
    dsc_specinfer m;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    assert_ok(dsc_specinfer_init(&m, &c, K, &e), e);
    for (int k = 1; k <= K; k++) {
        double dist[65];
        dsc_kseq s = dsc_kseq_best(&c, k);
        assert_close((double)kseq[2 * k - 2], s.rho, 1e-7 * s.rho);
        assert_close((double)kseq[2 * k - 1], s.beta, 1e-7);
        assert_close((double)specinfer[k], m.c[k], 1e-7 * k);
        assert_ok(dsc_otm_sampler_build(sampler, draft, target, vocab, k, &e), e);
        dsc_otm_sampler_survivors(sampler, draft[y], target[y], dist);
        for (int i = 0; i <= k; i++)
            assert_close((double)otm[i], dist[i], 1e-7);
        otm += k + 1;
    }
    assert_true(specinfer[0] == 0);
    dsc_specinfer_fini(&m);
    dsc_curve_fini(&c);
}

static void to_floats(double *row, size_t vocab, float *out)
{
    for (size_t x = 0; x < vocab; x++)
        row[x] = out[x] = (float)row[x];
    pair_normalise(row, vocab);
}

static int of_rows(const float *draft, const float *target, size_t vocab, size_t y, int K,
                   float *kseq, float *specinfer, float *otm)
{
    const dsc_row_source d = {.dist = draft}, t = {.dist = target};
    return dsc_sufficient_of_sources(&d, &t, vocab, (double)draft[y], (double)target[y], K, kseq,
                                     specinfer, otm, work, &e);
}

static void are_those_of_the_rules(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 5, 17, 100, MOST};
    static double draft[MOST], target[MOST];
    static float f_draft[MOST], f_target[MOST];
    float kseq[2 * 64], specinfer[65], otm[64 * 67 / 2];
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t v = 0; v < 7; v++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                size_t vocab = sizes[v], y = seed % vocab;
                int K = vocab == 17 ? 64 : 8;
                make_pair((pair_shape)shape, seed, vocab, draft, target);
                to_floats(draft, vocab, f_draft);
                to_floats(target, vocab, f_target);
                while (!(target[y] > 1e-30))
                    y = (y + 1) % vocab;
                assert_ok(of_rows(f_draft, f_target, vocab, y, K, kseq, specinfer, otm), e);
                check_position(draft, target, vocab, y, K, kseq, specinfer, otm);
            }
}

// --- rows as logarithms --------------------------------------------------------------------------

enum { LONG = 3 * DSC_LOG_ROW_BLOCK + 77, FEW = 4, NUMBERS = 3 * FEW + 1 + FEW * (FEW + 3) / 2 };

// A row of each kind that is read as one distribution.
typedef struct recorded {
    float logp[LONG], dist[LONG + DSC_LOG_ROW_BLOCK];
    uint16_t bf16[LONG];
    dsc_log_row row;
} recorded;

static dsc_row_source record_as(recorded *r, int kind, const double *dist)
{
    for (int x = 0; x < LONG; x++) {
        uint32_t bits;
        r->logp[x] = (float)log(dist[x]);
        memcpy(&bits, &r->logp[x], sizeof bits);
        r->bf16[x] = (uint16_t)(bits >> 16);
    }
    r->row = (dsc_log_row){.vocab = LONG};
    if (kind == 1)
        r->row.bf16 = r->bf16;
    else
        r->row.logp = r->logp;
    for (size_t x = 0; x < LONG;)
        x += dsc_log_row_block(&r->row, x, r->dist + x);
    return kind == 2 ? (dsc_row_source){.dist = r->dist} : (dsc_row_source){.log = &r->row};
}

// Logarithms, fp32 and bf16, and mixed with distributions, give what the distributions they are
// read as give.
static void are_the_same_from_logarithms(void **state)
{
    static double draft[LONG], target[LONG];
    static recorded d, t;
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (int kind = 0; kind < 9; kind++) {
            float dists[NUMBERS], logs[NUMBERS];
            size_t y = 0;
            make_pair((pair_shape)shape, 7, LONG, draft, target);
            dsc_row_source from_draft = record_as(&d, kind % 3, draft);
            dsc_row_source from_target = record_as(&t, kind / 3, target);
            while (!(t.dist[y] > 0))
                y++;
            double draft_y = (double)d.dist[y], target_y = (double)t.dist[y];
            assert_ok(
                of_rows(d.dist, t.dist, LONG, y, FEW, dists, dists + 2 * FEW, dists + 3 * FEW + 1),
                e);
            assert_ok(dsc_sufficient_of_sources(&from_draft, &from_target, LONG, draft_y, target_y,
                                                FEW, logs, logs + 2 * FEW, logs + 3 * FEW + 1, work,
                                                &e),
                      e);
            for (int i = 0; i < NUMBERS; i++)
                assert_close((double)logs[i], (double)dists[i], 3e-7);
        }
}

// The curve that the statistics are read off, at ratios between tokens, at those of tokens, and at
// 0.
static void has_the_masses_below_any_ratio(void **state)
{
    static double draft[LONG], target[LONG];
    static recorded d, t;
    dsc_rows_curve c;
    (void)state;
    assert_ok(dsc_rows_curve_init(&c, &e), e);
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (int kind = 0; kind < 9; kind++) {
            make_pair((pair_shape)shape, 8, LONG, draft, target);
            dsc_row_source from_draft = record_as(&d, kind % 3, draft);
            dsc_row_source from_target = record_as(&t, kind / 3, target);
            const double token = (double)t.dist[3] / (double)d.dist[3];
            const double at[] = {0, 1e-4, .37, 1, 1.93, 7, isfinite(token) ? token : 60};
            assert_ok(dsc_rows_curve_set(&c, &from_draft, &from_target, LONG, &e), e);
            for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
                dsc_mass m = c.base.type->overlap_below(&c.base, at[i]), sum = {0, 0};
                for (int x = 0; x < LONG; x++) {
                    bool in = (double)t.dist[x] <= at[i] * (double)d.dist[x];
                    sum.draft += in ? (double)d.dist[x] : 0;
                    sum.target += in ? (double)t.dist[x] : 0;
                }
                // A token's distribution may differ in its last bit from what was added up for its
                // cell, and a token right at the ratio lie on its other side: the curve has the
                // same value.
                double tie = i == 6 && kind != 8 ? (double)d.dist[3] : 0;
                assert_close(m.draft, sum.draft, 1e-7 + tie);
                assert_close(at[i] * m.draft - m.target, at[i] * sum.draft - sum.target,
                             1e-7 * (1 + at[i]));
            }
        }
    dsc_rows_curve_fini(&c);
}

static void refuse_what_is_no_dist(void **state)
{
    float good[2] = {.5f, .5f}, less[2] = {-.25f, 1.25f}, none[2] = {0, 0}, nan[2] = {.5f, NAN};
    float kseq[4], specinfer[3], otm[5];
    const float *bad[] = {less, none, nan};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(of_rows(bad[i], good, 2, 0, 2, kseq, specinfer, otm), DSC_EINPUT);
        assert_int_equal(of_rows(good, bad[i], 2, 0, 2, kseq, specinfer, otm), DSC_EINPUT);
    }
    assert_non_null(strstr(e.message, "target: element 1 is not finite (nan)"));
    assert_int_equal(of_rows(good, good, 2, 0, 65, kseq, specinfer, otm), DSC_EUSAGE);
}

// --- block efficiency ----------------------------------------------------------------------------

enum { V = 4, K = 3, N = 12, RULES = 3, KSEQ = 0, SPECINFER, OTM };

typedef double dists[RULES][K + 1]
                    [K + 1]; // [rule][k][m]: distribution of m survivors of k drafts at y

// A position: its distributions, and a rule ready to choose among k drafts.
typedef struct position {
    float logp[DSC_SIDES][V]; // as recorded
    double draft[V], target[V];
    int y;
    dsc_curve curve;
    dsc_kseq kseq;
    dsc_specinfer specinfer;
} position;

static void prepare(position *p, int k)
{
    p->kseq = dsc_kseq_best(&p->curve, k);
    dsc_specinfer_fini(&p->specinfer);
    assert_ok(dsc_specinfer_init(&p->specinfer, &p->curve, k, &e), e);
    assert_ok(dsc_otm_sampler_build(sampler, p->draft, p->target, V, k, &e), e);
}

// Pr(draft i of the tuple is accepted), by playing the rule.
static void play(const position *p, int rule, const int *x, int k, double *chosen)
{
    double d[K], t[K], dist[K + 1], left = 1;
    for (int i = 0; i < k; i++) {
        d[i] = p->draft[x[i]];
        t[i] = p->target[x[i]];
    }
    if (rule == OTM)
        dsc_otm_sampler_dist(sampler, d, t, dist);
    for (int i = 0; i < k; i++) {
        double accept = rule == KSEQ ? dsc_kseq_token(&p->kseq, d[i], t[i])
                                     : dsc_specinfer_residual(&p->specinfer, i, d[i], t[i]) / d[i];
        chosen[i] = rule == OTM ? dist[i] : left * fmin(accept, 1);
        left -= rule == OTM ? 0 : chosen[i];
    }
}

// Every tuple of drafts; what is not accepted with output y is y from the residual, since the
// output has the target's distribution.
static void by_enumeration(position *p, dists out)
{
    for (int rule = 0; rule < RULES; rule++)
        for (int k = 1; k <= K; k++) {
            int x[K] = {0}, i;
            double *dist = out[rule][k], accepted = 0;
            memset(dist, 0, sizeof out[rule][k]);
            prepare(p, k);
            do {
                double chosen[K], mass = 1;
                int m = 0;
                for (i = 0; i < k; i++) {
                    mass *= p->draft[x[i]];
                    m += x[i] == p->y;
                }
                if (mass > 0)
                    play(p, rule, x, k, chosen);
                for (i = 0; i < k && mass > 0; i++)
                    if (x[i] == p->y)
                        dist[m] += mass * chosen[i] / p->target[p->y];
                for (i = 0; i < k && ++x[i] == V; i++)
                    x[i] = 0;
            } while (i < k);
            for (int m = 1; m <= k; m++)
                accepted += dist[m];
            dist[0] = 1 - accepted;
        }
}

static void from_rows(position *p, dists out)
{
    double draft = p->draft[p->y], target = p->target[p->y];
    for (int k = 1; k <= K; k++) {
        prepare(p, k);
        dsc_kseq_survivors(&p->kseq, draft, target, out[KSEQ][k]);
        dsc_specinfer_survivors(&p->specinfer, draft, target, out[SPECINFER][k]);
        dsc_otm_sampler_survivors(sampler, draft, target, out[OTM][k]);
    }
}

static void from_columns(const dsc_request *q, int64_t j, dists out)
{
    double draft = exp((double)q->draft_logp[j]), target = exp((double)q->target_logp[j]);
    const float *at = q->sufficient.specinfer + j * (K + 1);
    double c[K + 1], w[K + 1] = {0};
    for (int i = 0; i <= K; i++)
        c[i] = (double)at[i];
    for (int i = 0; i < K; i++)
        w[i] = c[i + 1] - c[i];
    for (int k = 1; k <= K; k++) {
        const float *s = q->sufficient.kseq + (j * K + k - 1) * 2;
        double beta = (double)s[1];
        const dsc_kseq kseq = {k, (double)s[0], beta, -expm1(k * log1p(-beta))};
        const dsc_specinfer m = {.k = k, .c = c, .w = w};
        dsc_kseq_survivors(&kseq, draft, target, out[KSEQ][k]);
        dsc_specinfer_survivors(&m, draft, target, out[SPECINFER][k]);
        const float *otm = dsc_sufficient_otm(&q->sufficient, K, j, k);
        for (int i = 0; i <= k; i++)
            out[OTM][k][i] = (double)otm[i];
    }
}

// Tokens per target call of K draft sequences of `length` tokens along an output of N: calls still
// to be made from position t on, `live` drafts being left at depth d of a block.
static double block_efficiency(dists *dist, int rule, int length)
{
    double calls[N + 2] = {0}, open[N + 2][8][K + 1];
    memset(open, 0, sizeof open);
    for (int t = N - 1; t >= 0; t--) {
        for (int d = length; d >= 0; d--)
            for (int live = 1; live <= K; live++) {
                const double *at = dist[t][rule][live];
                double sum = d == length ? calls[t + 1] : at[0] * calls[t + 1];
                for (int m = 1; m <= live && d < length; m++)
                    sum += at[m] * open[t + 1][d + 1][m];
                open[t][d][live] = sum;
            }
        calls[t] = 1 + open[t][0][K];
    }
    return N / calls[0];
}

// A row as it will be recorded, and the distribution that it is read as (tests/unit/test_reduce.c
// says how far that is from the exact one): where distributions are tied several samplers are the
// best, and the last digit decides between them.
static void record(double *dist, float *logp)
{
    float read[DSC_LOG_ROW_BLOCK];
    dsc_log_row row = {.logp = logp, .vocab = V};
    for (int x = 0; x < V; x++)
        logp[x] = (float)log(dist[x]);
    dsc_log_row_block(&row, 0, read);
    for (int x = 0; x < V; x++)
        dist[x] = (double)read[x];
    pair_normalise(dist, V);
}

static void init_positions(position *p, int shape)
{
    for (int t = 0; t < N; t++) {
        p[t] = (position){.y = t % V};
        make_pair((pair_shape)shape, (uint64_t)(100 + t), V, p[t].draft, p[t].target);
        record(p[t].draft, p[t].logp[DSC_SIDE_DRAFT]);
        record(p[t].target, p[t].logp[DSC_SIDE_TARGET]);
        while (!(p[t].target[p[t].y] > 1e-30))
            p[t].y = (p[t].y + 1) % V;
        assert_ok(dsc_curve_init(&p[t].curve, p[t].draft, p[t].target, V, &e), e);
    }
}

static void fini_positions(position *p)
{
    for (int t = 0; t < N; t++) {
        dsc_curve_fini(&p[t].curve);
        dsc_specinfer_fini(&p[t].specinfer);
    }
}

// A trace of one request with dense rows.
static void write_positions(const position *p)
{
    static float row[DSC_SIDES][N * V];
    int32_t output[N];
    dsc_trace_writer *w;
    for (int t = 0; t < N; t++) {
        output[t] = p[t].y;
        for (int side = 0; side < DSC_SIDES; side++)
            memcpy(&row[side][t * V], p[t].logp[side], sizeof p[t].logp[side]);
    }
    const dsc_trace_info info = {.tokenizer_name = (char *)(uintptr_t) "none",
                                 .vocab_size = V,
                                 .eos_token = -1,
                                 .rows = {DSC_ROWS_DENSE, DSC_ROWS_DENSE}};
    const dsc_request_input q = {
        .id = TEXT("a"),
        .output = {output, N},
        .rows = {{.kind = DSC_ROWS_DENSE, .logp = row[0], .vocab_size = V},
                 {.kind = DSC_ROWS_DENSE, .logp = row[1], .vocab_size = V}}};
    assert_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &e), e);
    assert_ok(dsc_trace_writer_add(w, &q, &e), e);
    assert_ok(dsc_trace_writer_commit(w, NULL, &e), e);
}

static void gives_the_block_efficiency(void **state)
{
    static dists enumerated[N], rows[N], columns[N];
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++) {
        position p[N];
        dsc_trace *t;
        dsc_shard *s;
        dsc_request q;
        init_positions(p, shape);
        write_positions(p);
        const dsc_reduce o = {.K = K, .threads = 2, .force = true};
        assert_ok(dsc_trace_open(&t, in_scratch("a.dst"), &e), e);
        assert_ok(dsc_reduce_trace(t, in_scratch("b.dst"), &o, &e), e);
        dsc_trace_close(t);
        assert_ok(dsc_trace_open(&t, in_scratch("b.dst"), &e), e);
        assert_ok(dsc_trace_verify(t, &e), e);
        assert_ok(dsc_shard_open(&s, t, 0, &e), e);
        dsc_shard_request(s, 0, &q);
        for (int j = 0; j < N; j++) {
            by_enumeration(&p[j], enumerated[j]);
            from_rows(&p[j], rows[j]);
            from_columns(&q, j, columns[j]);
        }
        for (int rule = 0; rule < RULES; rule++)
            for (int length = 1; length <= 6; length++) {
                double b = block_efficiency(enumerated, rule, length);
                assert_true(b > 1 - 1e-12 && b < length + 1 + 1e-12);
                assert_close(block_efficiency(rows, rule, length), b, 1e-10);
                assert_close(block_efficiency(columns, rule, length), b, 1e-6);
            }
        dsc_shard_close(s);
        dsc_trace_close(t);
        fini_positions(p);
    }
}

SUITE(reduce)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_those_of_the_rules),
        cmocka_unit_test(are_the_same_from_logarithms),
        cmocka_unit_test(has_the_masses_below_any_ratio),
        cmocka_unit_test(refuse_what_is_no_dist),
        cmocka_unit_test_setup_teardown(gives_the_block_efficiency, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

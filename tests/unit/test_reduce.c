// SPDX-License-Identifier: Apache-2.0
// trace reduce: what is made of rows of every kind, what is kept, left out and refused.
#include "tests/close.h"
#include "tests/exact/pairs.h"
#include "tests/unit/trace_fixture.h"

#include "sim/reduce/reduce.h"
#include "sim/reduce/reduce_row.h"
#include "theory/rows/fast_exp.h"
#include "theory/rows/log_row.h"

enum { V = 300, N = 40 };
static dsc_error e;

// Distribution `use` (1: draft, 2: target) of a position; a few tokens have the same probability,
// some none.
static void dist_at(int64_t position, int use, double *dist)
{
    double other[V];
    make_pair(position % 3 ? PAIR_ZEROS : PAIR_TIES, (uint64_t)position, V, use == 1 ? dist : other,
              use == 1 ? other : dist);
    dist[position % V] += .05; // the output's token
    pair_normalise(dist, V);
}

typedef enum shape { DENSE, HALF, LISTED, CUT } shape; // F32, BF16, all that have mass, the top 20

typedef struct row_store {
    float dense[N * V], logp[N * V], tail[N];
    uint16_t half[N * V];
    int32_t token[N * V];
    int64_t offset[N + 1];
} row_store;

static void list_row(row_store *s, const double *dist, int64_t j, shape kind)
{
    int64_t n = s->offset[j];
    double tail = 0;
    for (int32_t x = 0; x < V; x++) {
        int more_probable = 0;
        for (int32_t z = 0; z < V; z++)
            more_probable += dist[z] > dist[x] || (dist[z] == dist[x] && z < x);
        if (kind == CUT && more_probable >= 20) {
            tail += dist[x];
        } else if (dist[x] > 0) {
            s->token[n] = x;
            s->logp[n++] = (float)log(dist[x]);
        }
    }
    s->offset[j + 1] = n;
    s->tail[j] = (float)log(tail);
}

static dsc_rows rows_of(row_store *s, int use, shape kind)
{
    double dist[V];
    s->offset[0] = 0;
    for (int64_t j = 0; j < N; j++) {
        dist_at(j, use, dist);
        for (int x = 0; x < V; x++) {
            uint32_t bits;
            float y = (float)log(dist[x]);
            memcpy(&bits, &y, sizeof bits);
            s->dense[j * V + x] = y;
            s->half[j * V + x] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
        list_row(s, dist, j, kind);
    }
    if (kind == LISTED || kind == CUT)
        return (dsc_rows){.kind = DSC_ROWS_LISTED,
                          .offset = s->offset,
                          .token = s->token,
                          .logp = s->logp,
                          .tail = s->tail};
    return (dsc_rows){.kind = DSC_ROWS_DENSE,
                      .logp = kind == DENSE ? s->dense : NULL,
                      .bf16 = kind == HALF ? s->half : NULL,
                      .vocab_size = V};
}

static row_store store[DSC_SIDES];
static int32_t output[N];
static uint16_t lengths[N];
static float recorded[N], entropy[N];

// Two requests, the second empty, with accept lengths; with `more` also log-probabilities,
// entropies and ranks, which are wrong on purpose.
static void write_trace(const char *name, shape draft, shape target, bool more)
{
    dsc_trace_writer *w;
    dsc_trace_info info = {.tokenizer_name = (char *)(uintptr_t) "none",
                           .vocab_size = V,
                           .eos_token = -1,
                           .rows = {draft < LISTED ? DSC_ROWS_DENSE : DSC_ROWS_LISTED,
                                    target < LISTED ? DSC_ROWS_DENSE : DSC_ROWS_LISTED},
                           .has_target_logp = more,
                           .has_draft_logp = more,
                           .has_entropy = {more, more},
                           .has_draft_rank = more,
                           .rank_depth = more,
                           .drafters = 1,
                           .drafter = {{"d", 5}}};
    dsc_request_input q = {.id = TEXT("a"),
                           .prompt = TOKENS(1, 2),
                           .output = {output, N},
                           .rows = {rows_of(&store[0], 1, draft), rows_of(&store[1], 2, target)},
                           .target_logp = recorded,
                           .draft_logp = recorded,
                           .replayed = {.entropy = {entropy, entropy}, .draft_rank = lengths},
                           .accept = {lengths}};
    dsc_request_input empty = {
        .id = TEXT("b"), .prompt = TOKENS(3), .rows = {q.rows[0], q.rows[1]}};
    for (int j = 0; j < N; j++) {
        lengths[j] = (uint16_t)(j % 5);
        recorded[j] = (float)j / 64 - 1;
        entropy[j] = (float)j;
    }
    assert_ok(dsc_trace_writer_open(&w, in_scratch(name), &info, true, 0, &e), e);
    assert_ok(dsc_trace_writer_add(w, &q, &e), e);
    assert_ok(dsc_trace_writer_add(w, &empty, &e), e);
    assert_ok(dsc_trace_writer_commit(w, NULL, &e), e);
}

static int reduce(const char *from, const char *to, dsc_reduce o)
{
    dsc_trace *t;
    notes[0] = 0;
    o.K = o.K ? o.K : 4;
    o.threads = o.threads ? o.threads : 1;
    o.force = true;
    o.note = keep_note;
    assert_ok(dsc_trace_open(&t, in_scratch(from), &e), e);
    int rc = dsc_reduce_trace(t, in_scratch(to), &o, &e);
    dsc_trace_close(t);
    return rc;
}

// The first request of a trace; stays open until the next call.
static const dsc_request *first_of(const char *name, const dsc_trace_info **info)
{
    static dsc_trace *t;
    static dsc_shard *s;
    static dsc_request q;
    dsc_shard_close(s);
    dsc_trace_close(t);
    s = NULL;
    t = NULL;
    if (!name)
        return NULL;
    assert_ok(dsc_trace_open(&t, in_scratch(name), &e), e);
    assert_ok(dsc_trace_verify(t, &e), e);
    assert_ok(dsc_shard_open(&s, t, 0, &e), e);
    dsc_shard_request(s, 0, &q);
    *info = dsc_trace_get_info(t);
    return &q;
}

static int64_t rank_of(const double *dist, int32_t y)
{
    int64_t rank = 0;
    for (int32_t x = 0; x < V; x++)
        rank += dist[x] > dist[y] || (dist[x] == dist[y] && x < y);
    return rank;
}

// The columns of a reduced trace against plain loops over the distributions.
static void check_replay(const dsc_request *q, int depth, double tolerance)
{
    for (int64_t j = 0; j < N; j++)
        for (int side = 0; side < DSC_SIDES; side++) {
            double dist[V], expected = 0;
            dist_at(j, side + 1, dist);
            for (int x = 0; x < V; x++)
                expected -= dist[x] > 0 ? dist[x] * log(dist[x]) : 0;
            int32_t y = q->output.id[j], most = q->replayed.argmax[side][j];
            assert_close((double)q->replayed.entropy[side][j], expected, tolerance);
            assert_close(exp((double)(side ? q->target_logp : q->draft_logp)[j]), dist[y],
                         tolerance);
            if (tolerance > 1e-4) // rounding to bf16 makes other tokens equal
                continue;
            assert_int_equal(rank_of(dist, most), 0);
            for (int d = 0; d < depth && side == 0; d++)
                if (j >= d)
                    assert_int_equal(q->replayed.draft_rank[(j - d) * depth + d], rank_of(dist, y));
        }
}

static void makes_columns_of_whole_rows(void **state)
{
    static float kseq[N * 8], otm[N * 14];
    const dsc_trace_info *info;
    (void)state;
    for (int j = 0; j < N; j++)
        output[j] = j;
    for (shape draft = DENSE; draft <= LISTED; draft++)
        for (shape target = DENSE; target <= LISTED; target++) {
            bool exact = draft != HALF && target != HALF;
            write_trace("a.dst", draft, target, true);
            assert_ok(reduce("a.dst", "b.dst", (dsc_reduce){.rank_depth = 3}), e);
            assert_string_equal(notes, "");
            const dsc_request *q = first_of("b.dst", &info);
            assert_true(info->has_kseq && info->has_specinfer && info->has_otm);
            assert_int_equal(info->statistics_k, 4);
            assert_int_equal(info->rank_depth, 3);
            assert_int_equal(info->rows[0], DSC_ROWS_NONE);
            assert_int_equal(info->requests, 2);
            assert_string_equal(info->drafter[0].name, "d");
            assert_memory_equal(q->accept[0], lengths, sizeof lengths);
            assert_int_equal(q->replayed.draft_rank[(N - 1) * 3 + 1], DSC_RANK_NONE);
            check_replay(q, 3, exact ? 1e-5 : .05);
            // The same distributions, listed and dense, have the same statistics.
            if (draft == DENSE && target == DENSE) {
                memcpy(kseq, q->sufficient.kseq, sizeof kseq);
                memcpy(otm, q->sufficient.otm, sizeof otm);
            }
            for (int i = 0; exact && i < N * 8; i++)
                assert_close((double)q->sufficient.kseq[i], (double)kseq[i], 1e-6);
            for (int i = 0; exact && i < N * 14; i++)
                assert_close((double)q->sufficient.otm[i], (double)otm[i], 1e-6);
        }
    first_of(NULL, NULL);
}

static void does_not_depend_on_threads(void **state)
{
    char hash[DSC_SHA256_HEX];
    const dsc_trace_info *info;
    (void)state;
    write_trace("a.dst", DENSE, HALF, false);
    for (int threads = 1; threads <= 5; threads += 2) {
        assert_ok(reduce("a.dst", "b.dst", (dsc_reduce){.K = 8, .threads = threads}), e);
        first_of("b.dst", &info);
        if (threads == 1)
            memcpy(hash, info->hash, sizeof hash);
        assert_string_equal(info->hash, hash);
    }
    first_of(NULL, NULL);
}

static void keeps_rows_when_asked(void **state)
{
    const dsc_trace_info *info;
    (void)state;
    write_trace("a.dst", DENSE, LISTED, false);
    assert_ok(reduce("a.dst", "b.dst", (dsc_reduce){.keep_rows = true}), e);
    const dsc_request *q = first_of("b.dst", &info);
    assert_int_equal(info->rows[0], DSC_ROWS_DENSE);
    assert_memory_equal(q->rows[0].logp, store[0].dense, sizeof store[0].dense);
    assert_int_equal(q->rows[1].offset[N] - q->rows[1].offset[0], store[1].offset[N]);
    assert_int_equal(info->rank_depth, 1);
    first_of(NULL, NULL);
}

// The most probable token of these ranks of the draft's that the target writes too, or -1.
static int32_t listed_token(int64_t position, int64_t from, int64_t to)
{
    double draft[V], target[V];
    dist_at(position, 1, draft);
    dist_at(position, 2, target);
    for (int64_t rank = from; rank <= to; rank++)
        for (int32_t x = 0; x < V; x++)
            if (rank_of(draft, x) == rank && target[x] > 0)
                return x;
    return -1;
}

// Lists with a tail: what they leave open is kept as it was, or is not there, and never guessed.
static void leaves_out_what_is_open(void **state)
{
    const dsc_trace_info *info;
    double dist[V];
    (void)state;
    int least = -1; // where the output's token is the least of the list
    for (int j = 0; j < N; j++) {
        int32_t last = listed_token(j, 19, 19);
        output[j] = least < 0 && last >= 0 ? last : listed_token(j, 0, 18);
        least = least < 0 && last >= 0 ? j : least;
    }
    char place[64];
    snprintf(place, sizeof place, "more probable at request 0, position %d", least);
    write_trace("a.dst", CUT, DENSE, false);
    assert_int_equal(reduce("a.dst", "b.dst", (dsc_reduce){0}), DSC_OK);
    const dsc_request *q = first_of("b.dst", &info);
    assert_false(info->has_kseq || info->has_specinfer || info->has_otm);
    assert_false(info->has_entropy[DSC_SIDE_DRAFT] || info->has_draft_rank);
    assert_true(info->has_entropy[DSC_SIDE_TARGET] && info->has_argmax[DSC_SIDE_DRAFT]);
    assert_non_null(strstr(notes, "kseq, specinfer, otm: left out, because"));
    assert_non_null(strstr(notes, "draft_rank: left out, because an unlisted token"));
    assert_non_null(strstr(notes, place));
    for (int j = 0; j < N; j++) {
        dist_at(j, 1, dist);
        assert_close(exp((double)q->draft_logp[j]), dist[output[j]], 1e-5);
    }
    write_trace("a.dst", CUT, DENSE, true);
    assert_ok(reduce("a.dst", "b.dst", (dsc_reduce){.rank_depth = 2}), e);
    q = first_of("b.dst", &info);
    assert_non_null(strstr(notes, "draft_entropy: kept as recorded"));
    assert_true(q->replayed.entropy[DSC_SIDE_DRAFT][9] == 9);
    assert_int_equal(info->rank_depth, 1);
    first_of(NULL, NULL);
}

static void refuses(void **state)
{
    const dsc_trace_info *info;
    double dist[V];
    (void)state;
    for (int j = 0; j < N; j++)
        output[j] = j;
    dist_at(5, 1, dist);
    while (rank_of(dist, output[5]) != 200)
        output[5]++;
    write_trace("a.dst", CUT, DENSE, false);
    expect_failure(reduce("a.dst", "c.dst", (dsc_reduce){0}), DSC_EINPUT, &e,
                   "request 0, position 5: the draft's row does not list the output's token");
    assert_false(exists("c.dst") || exists("c.dst.tmp"));
    // recorded beside the rows: it is known
    write_trace("a.dst", CUT, DENSE, true);
    assert_ok(reduce("a.dst", "b.dst", (dsc_reduce){0}), e);
    const dsc_request *q = first_of("b.dst", &info);
    assert_true(q->draft_logp[5] == recorded[5] && q->draft_logp[6] != recorded[6]);
    first_of(NULL, NULL);

    for (int j = 0; j < N; j++) // two that the target never writes
        dist_at(j, 2, dist);
    output[5] = 5;
    for (int j = 33; j > 30; j -= 2) {
        dist_at(j, 2, dist);
        while (dist[output[j]] > 0)
            output[j]++;
    }
    for (shape target = DENSE; target <= LISTED; target++) {
        write_trace("a.dst", DENSE, target, false);
        expect_failure(reduce("a.dst", "c.dst", (dsc_reduce){.threads = 4}), DSC_EINPUT, &e,
                       "request 0, position 31: the output's token");
    }
    write_samples("a.dst", true, true, 0);
    expect_failure(reduce("a.dst", "c.dst", (dsc_reduce){0}), DSC_EINPUT, &e,
                   "rows of the draft are not recorded");
    expect_failure(reduce("a.dst", "c.dst", (dsc_reduce){.K = 65}), DSC_EUSAGE, &e, "1 to 64");
}

// Lists come in any order, and recorded probabilities add up to 1 only about: facts are of the row
// divided by its sum.
static void reads_lists(void **state)
{
    (void)state;
    enum { COUNT = 4, Y = 5 };
    static const int32_t token[COUNT] = {7, 3, 4, Y};
    static const double p[COUNT] = {.3, .1, .3, .3};
    for (double sum = .5; sum <= 1.5; sum += .5) {
        float logp[COUNT], dist[9];
        double expected = 0;
        for (int i = 0; i < COUNT; i++) {
            logp[i] = (float)log(p[i] * sum);
            expected -= p[i] * log(p[i]);
        }
        const dsc_row row = {.token = token, .logp = logp, .count = COUNT, .tail = -INFINITY};
        dsc_row_facts f;
        dsc_row_read_listed(&row, Y, &f);
        dsc_row_spread_listed(&row, 9, dist, &f);
        assert_true(f.has_argmax && f.has_rank_y && f.has_logp_y);
        assert_int_equal(f.argmax, 4);
        assert_int_equal(f.rank_y, 1);
        assert_close(f.mass, sum, 1e-6);
        assert_close(f.logp_y, log(.3), 1e-6);
        assert_close(f.entropy, expected, 1e-6);
        assert_close((double)dist[3], .1 * sum, 1e-7);
    }
}

static void exponentiates(void **state)
{
    (void)state;
    for (double x = -640; x < 640; x += .0137)
        assert_close(dsc_fast_exp(x) / exp(x), 1, 5e-16);
    assert_true(dsc_fast_exp(0) == 1);
    for (double x = -1e300; x < -640; x /= 10)
        assert_true(dsc_fast_exp(x) == dsc_fast_exp(-640));
    assert_true(dsc_fast_exp(-INFINITY) == dsc_fast_exp(-640));
}

static void exponentiates_floats(void **state)
{
    (void)state;
    for (float x = 0; x > -87; x -= .00137f)
        assert_close((double)dsc_fast_expf(x) / exp((double)x), 1, 8.6e-8);
    assert_true(dsc_fast_expf(0) == 1 && dsc_fast_expf(-0.f) == 1);
}

enum { BLOCK = DSC_LOG_ROW_BLOCK, LONG = 2 * BLOCK + 333 };

// A row against plain loops in double.
static void check_row(dsc_log_row *r, const float *logp)
{
    static float dist[BLOCK], some[LONG];
    static uint32_t all[LONG];
    double mass = 0, sum = 0;
    int64_t rank = 0;
    size_t best = 0;
    dsc_log_row_read(r);
    for (size_t x = 0; x < r->vocab; x++) {
        double p = exp((double)logp[x]);
        mass += p;
        sum -= p > 0 ? p * (double)logp[x] : 0;
        rank += logp[x] > logp[r->y] || (logp[x] == logp[r->y] && x < r->y);
        best = logp[x] > logp[best] ? x : best;
        all[x] = (uint32_t)x;
    }
    assert_close(r->mass, mass, 3e-8 * mass);
    assert_close(-r->mass_logp, sum, 4e-6 * sum + 1e-36);
    assert_int_equal(r->rank_y, rank);
    assert_int_equal(r->argmax, best);
    assert_true(r->logp_y == logp[r->y]);
    dsc_log_row_some(r, all, r->vocab, some);
    for (size_t begin = 0, n; begin < r->vocab; begin += n) {
        bool zeros = false;
        n = dsc_log_row_block(r, begin, dist);
        for (size_t i = 0; i < n; i++) {
            double p = exp((double)logp[begin + i]);
            assert_close((double)dist[i], p, p < 1.7e-38 ? p : 8.6e-8 * p);
            assert_close((double)some[begin + i], p, p < 1.7e-38 ? p : 8.6e-8 * p);
            zeros = zeros || dist[i] == 0;
        }
        assert_true(r->zeros == zeros);
    }
}

// Blocks, ties across them, a row of one token, tokens without mass and with next to none.
static void reads_rows_of_logarithms(void **state)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, BLOCK - 1, BLOCK, BLOCK + 1, LONG};
    static float logp[LONG];
    static uint16_t bf16[LONG];
    (void)state;
    for (size_t v = 0; v < sizeof sizes / sizeof *sizes; v++)
        for (int s = 0; s < PAIR_SHAPES; s++) {
            static double dist[2][LONG];
            make_pair((pair_shape)s, 5, sizes[v], dist[0], dist[1]);
            for (size_t x = 0; x < sizes[v]; x++) {
                uint32_t bits;
                logp[x] = (float)log(dist[s % 2][x]);
                memcpy(&bits, &logp[x], sizeof bits);
                bf16[x] = (uint16_t)(bits >> 16);
            }
            const size_t ys[] = {0, sizes[v] / 2, sizes[v] - 1, BLOCK - 1, BLOCK, 2 * BLOCK};
            for (size_t i = 0; i < sizeof ys / sizeof *ys; i++) {
                size_t y = ys[i] < sizes[v] ? ys[i] : 0;
                check_row(&(dsc_log_row){.logp = logp, .vocab = sizes[v], .y = y}, logp);
            }
            for (size_t x = 0; x < sizes[v]; x++) { // likewise rounded
                uint32_t bits = (uint32_t)bf16[x] << 16;
                memcpy(&logp[x], &bits, sizeof bits);
            }
            check_row(&(dsc_log_row){.bf16 = bf16, .vocab = sizes[v], .y = sizes[v] / 3}, logp);
        }
}

SUITE(reduce)
{
#define WITH_SCRATCH(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(makes_columns_of_whole_rows),
        WITH_SCRATCH(does_not_depend_on_threads),
        WITH_SCRATCH(keeps_rows_when_asked),
        WITH_SCRATCH(leaves_out_what_is_open),
        WITH_SCRATCH(refuses),
        cmocka_unit_test(reads_lists),
        cmocka_unit_test(exponentiates),
        cmocka_unit_test(exponentiates_floats),
        cmocka_unit_test(reads_rows_of_logarithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Rows in traces: what is written comes back, as lists and dense, of one model or both; each way in
// which rows can be wrong is refused by the writer, by the reader or by the verifier.
#include "tests/unit/trace_fixture.h"
#include "traces/trace/trace_copy.h"

#include "tests/close.h"

enum { V = 12, REQUESTS = 5, MOST = 7 }; // vocabulary, requests, outputs of one

static const int64_t outputs[REQUESTS] = {3, 0, 1, MOST, 0};

// Rows of all requests of one model, of both kinds: the same distributions.
typedef struct made_rows {
    int64_t offset[REQUESTS][MOST + 1];
    int32_t token[REQUESTS][MOST * V];
    float logp[REQUESTS][MOST * V], tail[REQUESTS][MOST];
    float dense[REQUESTS][MOST * V];
} made_rows;

// A distribution over the vocabulary of which `count` tokens are listed, in any order.
static void make_row(made_rows *m, int r, int64_t j, int64_t count, uint64_t *random)
{
    double dist[V], sum = 0, listed = 0;
    int32_t order[V];
    for (int x = 0; x < V; x++) {
        dist[x] = (double)(1 + draw(random) % 1000);
        order[x] = x;
        sum += dist[x];
    }
    for (int x = V - 1; x > 0; x--) { // Fisher and Yates
        int y = (int)(draw(random) % (uint64_t)(x + 1));
        int32_t swap = order[x];
        order[x] = order[y];
        order[y] = swap;
    }
    for (int x = 0; x < V; x++)
        m->dense[r][j * V + x] = (float)log(dist[x] / sum);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = m->offset[r][j] + i;
        m->token[r][at] = order[i];
        m->logp[r][at] = m->dense[r][j * V + order[i]];
        listed += dist[order[i]] / sum;
    }
    m->offset[r][j + 1] = m->offset[r][j] + count;
    m->tail[r][j] = count == V ? -INFINITY : (float)log(1 - listed);
}

static void make_rows(made_rows *m, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    for (int r = 0; r < REQUESTS; r++)
        for (int64_t j = 0; j < outputs[r]; j++) // no token, all tokens, and what is between
            make_row(m, r, j, (r + j) % 4 == 0 ? 0 : (r + j) % 4 == 1 ? V : 1 + (r + j) % V, &seed);
}

static dsc_rows rows_of(const made_rows *m, dsc_rows_kind kind, int r)
{
    dsc_rows rows = {.kind = kind};
    if (kind == DSC_ROWS_LISTED) {
        rows.offset = m->offset[r];
        rows.token = m->token[r];
        rows.logp = m->logp[r];
        rows.tail = m->tail[r];
    } else if (kind == DSC_ROWS_DENSE) {
        rows.logp = m->dense[r];
        rows.vocab_size = V;
    }
    return rows;
}

static made_rows made[DSC_SIDES];

static dsc_trace_info rows_info(dsc_rows_kind draft, dsc_rows_kind target)
{
    dsc_trace_info info = sample_info(false, false);
    info.vocab_size = V;
    info.rows[DSC_SIDE_DRAFT] = draft;
    info.rows[DSC_SIDE_TARGET] = target;
    return info;
}

static dsc_request_input request_of(int r, dsc_rows_kind draft, dsc_rows_kind target)
{
    static const int32_t tokens[MOST] = {1, 2, 3, 4, 5, 6, 7};
    static const char ids[] = "abcdefgh";
    return (dsc_request_input){.id = {ids + r, 1},
                               .prompt = {tokens, 2},
                               .output = {tokens, outputs[r]},
                               .rows = {rows_of(&made[DSC_SIDE_DRAFT], draft, r),
                                        rows_of(&made[DSC_SIDE_TARGET], target, r)}};
}

static void write_rows(dsc_rows_kind draft, dsc_rows_kind target, int64_t shard_tokens)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = rows_info(draft, target);
    make_rows(&made[DSC_SIDE_DRAFT], 1);
    make_rows(&made[DSC_SIDE_TARGET], 2);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, shard_tokens, &err),
              &err);
    for (int r = 0; r < REQUESTS; r++) {
        dsc_request_input q = request_of(r, draft, target);
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

// --- round trips -------------------------------------------------------------------------------

static void same_row(const dsc_request *q, dsc_model_side side, dsc_rows_kind kind, int r,
                     int64_t j)
{
    const made_rows *m = &made[side];
    dsc_row row;
    assert_int_equal(dsc_request_row(q, side, j, &row), kind != DSC_ROWS_NONE);
    if (kind == DSC_ROWS_LISTED) {
        int64_t begin = m->offset[r][j], n = m->offset[r][j + 1] - begin;
        assert_int_equal(row.count, n);
        assert_non_null(row.token);
        assert_true(!n || !memcmp(row.token, m->token[r] + begin, (size_t)n * 4));
        assert_true(!n || !memcmp(row.logp, m->logp[r] + begin, (size_t)n * 4));
        assert_true(row.tail == m->tail[r][j]);
    } else if (kind == DSC_ROWS_DENSE) {
        assert_int_equal(row.count, V);
        assert_null(row.token);
        assert_memory_equal(row.logp, m->dense[r] + j * V, V * 4);
        assert_true(row.tail == -INFINITY);
    }
}

// All rows against `made`; the number of shards.
static int64_t check_rows(dsc_rows_kind draft, dsc_rows_kind target)
{
    dsc_error err = {0};
    dsc_trace *t;
    int r = 0;
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_trace_verify(t, &err), &err);
    assert_int_equal(dsc_trace_get_info(t)->rows[DSC_SIDE_DRAFT], draft);
    assert_int_equal(dsc_trace_get_info(t)->rows[DSC_SIDE_TARGET], target);
    int64_t shards = dsc_trace_shards(t);
    for (int64_t k = 0; k < shards; k++) {
        dsc_shard *s;
        expect_ok(dsc_shard_open(&s, t, k, &err), &err);
        assert_int_equal(dsc_shard_unknown(s), 0);
        for (int64_t i = 0; i < dsc_shard_requests(s); i++, r++) {
            dsc_request q;
            dsc_row row;
            dsc_shard_request(s, i, &q);
            for (int64_t j = 0; j < outputs[r]; j++) {
                same_row(&q, DSC_SIDE_DRAFT, draft, r, j);
                same_row(&q, DSC_SIDE_TARGET, target, r, j);
            }
            assert_false(dsc_request_row(&q, DSC_SIDE_DRAFT, outputs[r], &row));
            assert_false(dsc_request_row(&q, DSC_SIDE_TARGET, -1, &row));
        }
        dsc_shard_close(s);
    }
    assert_int_equal(r, REQUESTS);
    dsc_trace_close(t);
    return shards;
}

static void rows_round_trip(void **state)
{
    (void)state;
    for (dsc_rows_kind draft = DSC_ROWS_NONE; draft <= DSC_ROWS_DENSE; draft++)
        for (dsc_rows_kind target = DSC_ROWS_NONE; target <= DSC_ROWS_DENSE; target++) {
            write_rows(draft, target, 0);
            assert_int_equal(check_rows(draft, target), 1);
            write_rows(draft, target, 1);
            assert_int_equal(check_rows(draft, target), REQUESTS);
        }
}

// A writer accepts the views of a reader, and the copy has the same content.
static void views_can_be_written(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace *t, *copy;
    dsc_shard *s;
    dsc_trace_writer *w;
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("b.dst"), dsc_trace_get_info(t), false, 0, &err),
              &err);
    for (int64_t i = 0; i < REQUESTS; i++) {
        dsc_request q;
        dsc_shard_request(s, i, &q);
        dsc_request_input in = {.id = q.id, .prompt = q.prompt, .output = q.output};
        memcpy(in.rows, q.rows, sizeof in.rows);
        expect_ok(dsc_trace_writer_add(w, &in, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    expect_ok(dsc_trace_open(&copy, in_scratch("b.dst"), &err), &err);
    assert_string_equal(dsc_trace_get_info(copy)->hash, dsc_trace_get_info(t)->hash);
    dsc_trace_close(copy);
    dsc_shard_close(s);
    dsc_trace_close(t);
}

static void dists(void **state)
{
    (void)state;
    const int32_t token[] = {4, 0};
    const float logp[] = {-0.5f, -3}, dense[] = {-INFINITY, 0, -1, -2, -3};
    const uint16_t bf16[] = {0xff80, 0x8000, 0xbf80, 0xc000, 0xc040}; // the same
    double dist[5] = {9, 9, 9, 9, 9};
    dsc_row row = {.token = token, .logp = logp, .count = 2, .tail = -2};
    assert_close(dsc_row_dist(&row, 5, dist), exp(-2), 1e-15);
    assert_true(dist[0] == exp(-3) && dist[4] == exp(-0.5));
    assert_true(dist[1] == 0 && dist[2] == 0 && dist[3] == 0);
    row.count = 0;
    assert_true(dsc_row_dist(&row, 5, dist) == exp(-2) && dist[0] == 0 && dist[4] == 0);
    for (int half = 0; half < 2; half++) {
        row = (dsc_row){.logp = half ? NULL : dense, .bf16 = bf16, .count = 5, .tail = -INFINITY};
        assert_true(dsc_row_dist(&row, 5, dist) == 0);
        for (int x = 0; x < 5; x++) {
            assert_true(dist[x] == exp((double)dense[x]));
            assert_true(dsc_row_logp(&row, x) == dense[x]);
        }
    }
}

// 28 tokens are four of these requests; 28 x 32 = 896 bytes are less than three of them: dense, one
// has 7 rows of 48 bytes, as lists 7 offsets, 7 tails and 43 tokens.
static void shards_are_cut_by_bytes(void **state)
{
    (void)state;
    static const int64_t shards[] = {
        [DSC_ROWS_NONE] = 2, [DSC_ROWS_LISTED] = 3, [DSC_ROWS_DENSE] = 3};
    static const char ids[] = "abcdefgh";
    static const int32_t tokens[MOST];
    for (dsc_rows_kind kind = DSC_ROWS_NONE; kind <= DSC_ROWS_DENSE; kind++) {
        dsc_error err = {0};
        dsc_trace *t;
        dsc_trace_writer *w;
        const dsc_trace_info info = rows_info(DSC_ROWS_NONE, kind);
        make_rows(&made[DSC_SIDE_TARGET], 2);
        assert_int_equal(made[DSC_SIDE_TARGET].offset[3][MOST], 43);
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 28, &err), &err);
        for (int i = 0; i < 8; i++) {
            dsc_request_input q = {.id = {ids + i, 1}, .output = {tokens, MOST}};
            q.rows[DSC_SIDE_TARGET] = rows_of(&made[DSC_SIDE_TARGET], kind, 3);
            expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
        }
        expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
        expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
        assert_int_equal(dsc_trace_shards(t), shards[kind]);
        dsc_trace_close(t);
        expect_ok(verify("a.dst", &err), &err);
    }
}

// --- the writer refuses
// ----------------------------------------------------------------------------

// Rows of request 3, which has seven outputs, changed one at a time.
static void bad_rows_are_not_written(void **state)
{
    (void)state;
    static const char *const words[] = {
        "request 0: the target distributions must be",
        "request 0: the target distributions are missing",
        "request 0: the target distributions are missing",
        "request 0: the target distributions: the offsets must not decrease",
        "request 0: the target distributions: element 0 is not a token id of the vocabulary",
        "request 0: the target distributions: element 1 is not a token id of the vocabulary",
        "request 0: the target distributions: element 0 is not a log-probability",
        "request 0: the target distributions: element 2 is not a log-probability",
        "request 0: the target distributions: element 6 of the tails is not",
        "request 0: the target distributions: element 0 of the tails is not",
        "request 0: target distribution 3 sums to",
        "request 0: target distribution 0 lists token id 5 twice",
        "request 0: target distribution 0 sums to 2",
        "request 0: target distribution 2 lists every token, so its tail must be empty",
    };
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++) {
        dsc_error err = {0};
        dsc_trace_writer *w;
        const dsc_trace_info info = rows_info(DSC_ROWS_NONE, DSC_ROWS_LISTED);
        made_rows *m = &made[DSC_SIDE_TARGET];
        make_rows(m, 2);
        dsc_request_input q = request_of(3, DSC_ROWS_NONE, DSC_ROWS_LISTED);
        dsc_rows *rows = &q.rows[DSC_SIDE_TARGET];
        switch (i) {
        case 0: rows->kind = DSC_ROWS_DENSE; break;
        case 1: rows->tail = NULL; break;
        case 2: rows->token = NULL; break;
        case 3: m->offset[3][2] = -1; break;
        case 4: m->token[3][0] = V; break;
        case 5: m->token[3][1] = -1; break;
        case 6: m->logp[3][0] = -INFINITY; break;
        case 7: m->logp[3][2] = 0.5f; break;
        case 8: m->tail[3][MOST - 1] = NAN; break;
        case 9: m->tail[3][0] = 1e-30f; break;
        case 10: m->tail[3][3] = 0; break;
        case 11: m->token[3][0] = m->token[3][1] = 5; break;
        case 12: m->offset[3][1] = 1, m->logp[3][0] = m->tail[3][0] = 0; break;
        case 13: m->tail[3][2] = -30; break;
        }
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), &err);
        expect_failure(dsc_trace_writer_add(w, &q, &err), i < 4 ? DSC_EUSAGE : DSC_EINPUT, &err,
                       words[i]);
        make_rows(m, 2); // and nothing of it is left
        for (int r = 0; r < REQUESTS; r++) {
            q = request_of(r, DSC_ROWS_NONE, DSC_ROWS_LISTED);
            expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
        }
        expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
        assert_int_equal(check_rows(DSC_ROWS_NONE, DSC_ROWS_LISTED), 1);
    }
}

static void bad_dense_rows_are_not_written(void **state)
{
    (void)state;
    static const uint16_t half[MOST * V];
    static const char *const words[] = {
        "draft distribution 0 sums to 4.39",
        "distributions have 11 tokens; the vocabulary has 12",
        "the draft distributions are missing",
        "element 83 is not the logarithm of a probability",
        "draft distribution 6 sums to 0",
    };
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++) {
        dsc_error err = {0};
        dsc_trace_writer *w;
        const dsc_trace_info info = rows_info(DSC_ROWS_DENSE, DSC_ROWS_NONE);
        made_rows *m = &made[DSC_SIDE_DRAFT];
        uint16_t bf16[MOST * V];
        make_rows(m, 1);
        dsc_request_input q = request_of(3, DSC_ROWS_DENSE, DSC_ROWS_NONE);
        dsc_rows *rows = &q.rows[DSC_SIDE_DRAFT];
        for (int x = 0; x < MOST * V; x++)
            bf16[x] = 0xbf80; // -1
        switch (i) {
        case 0: rows->bf16 = bf16, rows->logp = NULL; break;
        case 1: rows->vocab_size--; break;
        case 2: rows->bf16 = half; break; // both
        case 3: m->dense[3][MOST * V - 1] = 1e-7f; break;
        case 4:
            for (int x = 0; x < V; x++)
                m->dense[3][(MOST - 1) * V + x] = -INFINITY;
        }
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), &err);
        expect_failure(dsc_trace_writer_add(w, &q, &err),
                       i == 1 || i == 2 ? DSC_EUSAGE : DSC_EINPUT, &err, words[i]);
        dsc_trace_writer_abort(w);
    }
    dsc_trace_writer *w;
    dsc_error err = {0};
    dsc_trace_info info = rows_info((dsc_rows_kind)3, DSC_ROWS_NONE);
    expect_failure(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), DSC_EUSAGE,
                   &err, "unknown kind 3 of draft_rows");
}

// --- the reader refuses
// ----------------------------------------------------------------------------

static void values_are_checked(void **state)
{
    (void)state;
    static const struct {
        dsc_rows_kind kind;
        const char *tensor;
        int64_t index;
        union {
            int64_t i64;
            uint32_t u32;
            float f32;
        } value;
        const char *word;
    } cases[] = {
        {DSC_ROWS_LISTED, "rows.draft.offset", 0, {.i64 = 1}, "'rows.draft.offset'[0]: offset 1"},
        {DSC_ROWS_LISTED, "rows.draft.offset", 3, {.i64 = 0}, "'rows.draft.offset'[3]: offset 0"},
        {DSC_ROWS_LISTED, "rows.target.offset", -1, {.i64 = 1000}, "'rows.target.token' has"},
        {DSC_ROWS_LISTED,
         "rows.target.token",
         2,
         {.u32 = V},
         "'rows.target.token'[2]: token id 12"},
        {DSC_ROWS_LISTED, "rows.draft.logp", 1, {.f32 = NAN}, "'rows.draft.logp'[1]: nan"},
        {DSC_ROWS_LISTED, "rows.draft.logp", 0, {.f32 = -INFINITY}, "'rows.draft.logp'[0]: -inf"},
        {DSC_ROWS_LISTED,
         "rows.target.tail",
         10,
         {.f32 = 0.25f},
         "'rows.target.tail'[10]: 0.25 is"},
        {DSC_ROWS_LISTED, "rows.target.tail", 0, {.f32 = NAN}, "'rows.target.tail'[0]: nan is not"},
        {DSC_ROWS_DENSE,
         "rows.target.dense",
         7,
         {.f32 = NAN},
         "'rows.target.dense'[7]: nan is not"},
        {DSC_ROWS_DENSE, "rows.draft.dense", -1, {.f32 = 1e-9f}, "'rows.draft.dense'[131]: 1e-09"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err = {0};
        write_rows(cases[i].kind, cases[i].kind, 0);
        patch(cases[i].tensor, cases[i].index, &cases[i].value);
        expect_failure(open_shard(&err), DSC_EINPUT, &err, cases[i].word);
        assert_non_null(strstr(err.message, FIRST_SHARD));
    }
    dsc_error err = {0};
    write_rows(DSC_ROWS_NONE, DSC_ROWS_DENSE, 0);
    for (int64_t x = 0; x < V; x++) {
        expect_ok(open_shard(&err), &err); // some token still has mass
        patch("rows.target.dense", 2 * V + x, &(float){-INFINITY});
    }
    expect_failure(open_shard(&err), DSC_EINPUT, &err,
                   "'rows.target.dense'[24]: all probabilities of the row are 0");
}

static void columns_are_checked(void **state)
{
    (void)state;
    static const float zeros[200];
    static const struct {
        dsc_tensor tensor;
        const char *word;
    } cases[] = {
        {{"rows.draft.offset", DSC_I64, 1, {11}, 0, zeros, 0, 0},
         "'rows.draft.offset' has 11 elements; by the last entry of"},
        {{"rows.draft.token", DSC_I32, 1, {1}, 0, zeros, 0, 0}, "'rows.draft.token' is I32"},
        {{"rows.draft.logp", DSC_BF16, 1, {1}, 0, zeros, 0, 0}, "'rows.draft.logp' is BF16"},
        {{"rows.draft.logp", DSC_F32, 1, {1}, 0, zeros, 0, 0}, "'rows.draft.logp' has 1 elements"},
        {{"rows.draft.tail", DSC_F32, 1, {10}, 0, zeros, 0, 0}, "'rows.draft.tail' has 10"},
        {{"rows.draft.tail", DSC_F32, 1, {0}, 0, NULL, 0, 0}, "'rows.draft.tail' is missing"},
        {{"rows.target.dense", DSC_F32, 1, {132}, 0, zeros, 0, 0},
         "'rows.target.dense' is F32 of rank 1; it must be F32 or BF16 of rank 2"},
        {{"rows.target.dense", DSC_F16, 2, {11, V}, 0, zeros, 0, 0},
         "is F16 of rank 2; it must be"},
        {{"rows.target.dense", DSC_F32, 2, {12, 11}, 0, zeros, 0, 0},
         "dimension 1 of tensor 'rows.target.dense' is 11; by the manifest it must be 12"},
        {{"rows.target.dense", DSC_F32, 2, {10, V}, 0, zeros, 0, 0}, "dense' has 10 elements"},
        {{"rows.target.dense", DSC_F32, 1, {0}, 0, NULL, 0, 0}, "'rows.target.dense' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err = {0};
        write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
        replace(cases[i].tensor);
        expect_failure(open_shard(&err), DSC_EINPUT, &err, cases[i].word);
    }
}

static void lists_or_dense_not_both(void **state)
{
    (void)state;
    dsc_error err = {0};
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    json_t *root = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL);
    json_t *list = json_object_get(root, "recorded");
    size_t n = json_array_size(list);
    assert_string_equal(json_string_value(json_array_get(list, n - 2)), "draft_rows");
    assert_string_equal(json_string_value(json_array_get(list, n - 1)), "target_rows_dense");
    json_array_append_new(list, json_string("draft_rows_dense"));
    assert_int_equal(json_dump_file(root, in_scratch("a.dst/manifest.json"), 0), 0);
    json_decref(root);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err,
                   "lists both \"draft_rows_dense\" and \"draft_rows\"");
}

// --- the verifier refuses
// --------------------------------------------------------------------------

// After a change that only verification sees, the hashes made right again.
static void expect_bad_row(const char *word)
{
    dsc_error err = {0};
    reseal(NULL, 0);
    expect_ok(open_shard(&err), &err);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, word);
    assert_non_null(strstr(err.message, FIRST_SHARD));
}

static void sums_are_verified(void **state)
{
    (void)state;
    dsc_error err = {0};
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    patch("rows.draft.tail", 0, &(float){(float)log(1 - 0.9e-4)}); // a row of nothing else
    reseal(NULL, 0);
    expect_ok(verify("a.dst", &err), &err);
    patch("rows.draft.tail", 0, &(float){(float)log(1 - 1.1e-4)});
    expect_bad_row("request 0: draft distribution 0 sums to 0.99989");
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    patch("rows.draft.token", 0, &made[DSC_SIDE_DRAFT].token[0][1]);
    expect_bad_row("request 0: draft distribution 1 lists token id");
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    patch("rows.target.dense", 10 * V, &(float){-0.0f});
    expect_bad_row("request 3: target distribution 6 sums to 1.");
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); // to nearest, ties to even
}

// Rows of bfloat16, which others write: their sums are off by what rounding does, and no more.
static void bfloat16_rows(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace *t;
    dsc_shard *s;
    dsc_request q;
    dsc_row row;
    uint16_t bits[11 * V];
    int n = 0;
    write_rows(DSC_ROWS_NONE, DSC_ROWS_DENSE, 0);
    const made_rows *m = &made[DSC_SIDE_TARGET];
    for (int r = 0; r < REQUESTS; r++)
        for (int64_t i = 0; i < outputs[r] * V; i++)
            bits[n++] = to_bf16(m->dense[r][i]);
    const dsc_tensor half = {"rows.target.dense", DSC_BF16, 2, {11, V}, 0, bits, 0, 0};
    replace(half);
    expect_ok(verify("a.dst", &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    dsc_shard_request(s, 3, &q);
    double dist[V], worst = 0;
    for (int64_t j = 0; j < MOST; j++) {
        double sum = 0;
        assert_true(dsc_request_row(&q, DSC_SIDE_TARGET, j, &row));
        assert_true(dsc_row_dist(&row, V, dist) == 0);
        for (int x = 0; x < V; x++) {
            double y = (double)m->dense[3][j * V + x];
            assert_close((double)dsc_row_logp(&row, x), y, -y * 0x1p-8);
            sum += dist[x];
        }
        worst = fmax(worst, fabs(sum - 1));
    }
    assert_true(worst > 1e-4); // or this test shows nothing
    dsc_shard_close(s);
    dsc_trace_close(t);
    bits[3] = to_bf16(-0.01f);
    replace(half);
    expect_bad_row("request 0: target distribution 0 sums to");
    for (int i = 0; i < 3; i++) {
        static const uint16_t bad[] = {0x3c00, 0x7fc0, 0xff81}; // positive, NaN, NaN
        bits[3] = bad[i];
        replace(half);
        expect_failure(open_shard(&err), DSC_EINPUT, &err, "'rows.target.dense'[3]: ");
    }
    for (int x = 0; x < V; x++)
        bits[x] = 0xff80;
    replace(half);
    expect_failure(open_shard(&err), DSC_EINPUT, &err, "all probabilities of the row are 0");
}

// A writer keeps BF16 as it is, in shards of its own.
static void bfloat16_is_copied(void **state)
{
    (void)state;
    enum { TWICE = 2 };
    dsc_error err = {0};
    dsc_trace *t[2], *copy;
    dsc_shard *s[2];
    dsc_trace_writer *w;
    dsc_request_copy room = {0};
    dsc_request_input in;
    dsc_request q;
    dsc_row row;
    uint16_t bits[11 * V];
    int n = 0;
    for (int half = 0; half < TWICE; half++) {
        write_rows(DSC_ROWS_NONE, DSC_ROWS_DENSE, 0);
        for (int r = 0; r < REQUESTS && half; r++)
            for (int64_t i = 0; i < outputs[r] * V; i++)
                bits[n++] = to_bf16(made[DSC_SIDE_TARGET].dense[r][i]);
        if (half)
            replace((dsc_tensor){"rows.target.dense", DSC_BF16, 2, {11, V}, 0, bits, 0, 0});
        expect_ok(dsc_trace_open(&t[half], in_scratch("a.dst"), &err), &err);
        expect_ok(dsc_shard_open(&s[half], t[half], 0, &err), &err); // open, so never replaced
    }
    expect_ok(
        dsc_trace_writer_open(&w, in_scratch("b.dst"), dsc_trace_get_info(t[0]), true, 0, &err),
        &err);
    for (int i = 0; i < REQUESTS; i++) { // the first two from F32, the others from BF16
        dsc_shard_request(s[i > 1], i, &q);
        expect_ok(dsc_request_copy_view(&room, &q, &in, &err), &err);
        expect_ok(dsc_trace_writer_add(w, &in, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    expect_ok(verify("b.dst", &err), &err);
    expect_ok(dsc_trace_open(&copy, in_scratch("b.dst"), &err), &err);
    assert_int_equal(dsc_trace_shards(copy), 2);
    for (int64_t shard = 0; shard < 2; shard++) {
        dsc_shard *mixed;
        dsc_request source;
        expect_ok(dsc_shard_open(&mixed, copy, shard, &err), &err);
        for (int64_t i = 0; i < dsc_shard_requests(mixed); i++) {
            dsc_shard_request(mixed, i, &q);
            dsc_shard_request(s[shard], q.index, &source);
            for (int64_t j = 0; j < q.output.count; j++) {
                dsc_row want;
                assert_true(dsc_request_row(&q, DSC_SIDE_TARGET, j, &row));
                assert_true(dsc_request_row(&source, DSC_SIDE_TARGET, j, &want));
                assert_int_equal(!row.bf16, shard == 0);
                for (int64_t x = 0; x < V; x++)
                    assert_true(dsc_row_logp(&row, x) == dsc_row_logp(&want, x));
            }
        }
        dsc_shard_close(mixed);
    }
    dsc_request_copy_fini(&room);
    dsc_trace_close(copy);
    for (int half = 0; half < TWICE; half++) {
        dsc_shard_close(s[half]);
        dsc_trace_close(t[half]);
    }
}

static void masses_are_found_anywhere(void **state)
{
    (void)state;
    enum { LONG = 2500 };
    static float x[LONG];
    static uint16_t half[LONG];
    for (int i = 0; i < LONG; i++) {
        x[i] = i % 3 ? (float)-i : -INFINITY;
        half[i] = i % 3 ? to_bf16((float)-i) : 0xff80;
    }
    assert_int_equal(dsc_bad_log_mass(x, LONG), -1);
    assert_int_equal(dsc_bad_bf16_log_mass(half, LONG), -1);
    for (int i = 0; i < LONG; i++) {
        float sound = x[i];
        uint16_t sound_half = half[i];
        x[i] = i % 2 ? NAN : 1e-45f;
        half[i] = i % 2 ? 0xff81 : 0x0001;
        assert_int_equal(dsc_bad_log_mass(x, LONG), i);
        assert_int_equal(dsc_bad_bf16_log_mass(half, LONG), i);
        x[i] = sound;
        half[i] = sound_half;
    }
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t h = (uint16_t)bits;
        const dsc_row row = {.bf16 = &h, .count = 1};
        assert_int_equal(dsc_bad_bf16_log_mass(&h, 1) < 0, dsc_row_logp(&row, 0) <= 0);
    }
}

static void corrupted_anywhere(void **state)
{
    (void)state;
    write_rows(DSC_ROWS_LISTED, DSC_ROWS_DENSE, 0);
    check_corrupted(3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_rows)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_round_trip),
        TEST(views_can_be_written),
        cmocka_unit_test(dists),
        TEST(shards_are_cut_by_bytes),
        TEST(bad_rows_are_not_written),
        TEST(bad_dense_rows_are_not_written),
        TEST(values_are_checked),
        TEST(columns_are_checked),
        TEST(lists_or_dense_not_both),
        TEST(sums_are_verified),
        TEST(bfloat16_rows),
        TEST(bfloat16_is_copied),
        cmocka_unit_test(masses_are_found_anywhere),
        TEST(corrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

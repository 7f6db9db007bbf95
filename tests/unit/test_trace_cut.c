// SPDX-License-Identifier: Apache-2.0
// Cut: which requests stay, and what stays of each; steps against an account of who wrote each
// token.
#include "tests/unit/trace_fixture.h"
#include "traces/trace/trace_cut.h"

static int cut_to(const char *name, const char *out, dsc_cut cut, dsc_error *err)
{
    const dsc_join_options o = {.force = true, .version = "9", .note = keep_note};
    *notes = '\0';
    *err = (dsc_error){0};
    return dsc_trace_cut(in_scratch(name), in_scratch(out), &cut, &o, err);
}

// The first shard of a trace that verifies.
static dsc_trace *open_first(const char *name, dsc_shard **s)
{
    dsc_error err = {0};
    dsc_trace *t;
    expect_ok(verify(name, &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch(name), &err), &err);
    expect_ok(dsc_shard_open(s, t, 0, &err), &err);
    return t;
}

static void close_both(dsc_trace *t, dsc_shard *s)
{
    dsc_shard_close(s);
    dsc_trace_close(t);
}

// --- which requests ----------------------------------------------------------------------------

// Bit i: request i of a.dst is in the sample.
static unsigned members(const char *name)
{
    dsc_shard *s;
    dsc_trace *t = open_first(name, &s);
    unsigned set = 0;
    int last = -1;
    for (int64_t i = 0; i < dsc_shard_requests(s); i++) {
        dsc_request q;
        dsc_shard_request(s, i, &q);
        int r = 0;
        while (r < SAMPLES && (samples[r].id.length != q.id.length ||
                               memcmp(samples[r].id.bytes, q.id.bytes, (size_t)q.id.length) != 0))
            r++;
        assert_in_range(r, last + 1, SAMPLES - 1); // in the order of the trace
        set |= 1U << r;
        last = r;
    }
    close_both(t, s);
    return set;
}

static void listed_requests(void **state)
{
    (void)state;
    dsc_error err;
    write_samples("a.dst", true, true, 1); // a shard each
    const int64_t some[] = {4, 0, 2};
    expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.request = some, .requests = 3}, &err), &err);
    assert_int_equal(members("b.dst"), 1 << 4 | 1 << 0 | 1 << 2);
    assert_string_equal(notes, "");
    assert_int_equal(remove(in_scratch("a.dst/shard-00001.safetensors")), 0); // not read
    expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.request = some, .requests = 1}, &err), &err);
    assert_int_equal(members("b.dst"), 1 << 4);
    const int64_t beyond[] = {0, SAMPLES};
    int rc = cut_to("a.dst", "c.dst", (dsc_cut){.request = beyond, .requests = 2}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "request 6 does not exist");
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst has 6 requests, counted from 0");
    rc = cut_to("absent.dst", "c.dst", (dsc_cut){.tokens = 1}, &err);
    expect_failure(rc, DSC_EINPUT, &err, "absent.dst");
    rc = cut_to("a.dst", "c.dst", (dsc_cut){.tokens = -1}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "-1 tokens");
    assert_false(exists("c.dst") || exists("c.dst.tmp"));
}

static void samples_at_random(void **state)
{
    (void)state;
    enum { SEEDS = 400, PAIRS = 15 };
    dsc_error err;
    int often[1 << SAMPLES] = {0}, kinds = 0;
    double chi2 = 0;
    write_samples("a.dst", false, false, 0);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.sample = 2, .seed = seed}, &err), &err);
        unsigned set = members("b.dst");
        assert_int_equal(__builtin_popcount(set), 2);
        often[set]++;
    }
    for (int set = 0; set < 1 << SAMPLES; set++) {
        double expected = (double)SEEDS / PAIRS, d = often[set] - expected;
        kinds += often[set] > 0;
        chi2 += often[set] ? d * d / expected : 0;
    }
    // All 15 pairs occur, equally often: chi^2 of 14 degrees of freedom is above 36.1 with
    // probability 0.001.
    assert_int_equal(kinds, PAIRS);
    assert_true(chi2 < 36.1);
    // The draw belongs to the request: all of them, or those left by --requests.
    const int64_t some[] = {1, 3, 5};
    for (int i = 0; i < 2; i++) {
        dsc_cut cut = {.request = some, .requests = 3, .sample = 2, .seed = 7};
        expect_ok(cut_to("a.dst", i ? "c.dst" : "b.dst", cut, &err), &err);
    }
    assert_int_equal(members("b.dst"), members("c.dst"));
    assert_int_equal(members("b.dst") & ~(1U << 1 | 1U << 3 | 1U << 5), 0);
    expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.sample = SAMPLES}, &err), &err);
    assert_int_equal(members("b.dst"), (1 << SAMPLES) - 1);
    int rc = cut_to("a.dst", "b.dst", (dsc_cut){.request = some, .requests = 3, .sample = 4}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "cannot sample 4 requests out of 3");
}

// --- the beginnings of outputs -----------------------------------------------------------------

enum { MOST = 12, DEPTH = 4, G = 2, RUNS = 60 };

// A run: steps drawn at random, the prefill's token or not, the last step cut or not.
typedef struct run {
    uint16_t accepted[MOST + 1], drafted[MOST + 1];
    float verify_s[MOST + 1];
    int steps, tokens;
    int owner[MOST]; // the step that wrote each token; -1: the prefill
} run;

static run make_run(uint64_t *random)
{
    run r = {0};
    // Two out of three whole: that the first token is the prefill's shows in the sum only then.
    bool prefill = draw(random) % 2, whole = prefill || draw(random) % 2;
    r.tokens = 1 + (int)(draw(random) % MOST);
    int at = prefill;
    if (prefill)
        r.owner[0] = -1;
    for (; at < r.tokens; r.steps++) {
        int n = 1 + (int)(draw(random) % 4);
        if (whole && n > r.tokens - at)
            n = r.tokens - at;
        r.accepted[r.steps] = (uint16_t)(n - 1);
        r.drafted[r.steps] = (uint16_t)(n - 1 + (int)(draw(random) % 2));
        r.verify_s[r.steps] = (float)r.steps;
        for (int i = 0; i < n && at < r.tokens; i++)
            r.owner[at++] = r.steps;
    }
    return r;
}

static dsc_trace_info run_info(dsc_steps_kind kind)
{
    dsc_trace_info info = sample_info(false, true);
    info.steps = kind;
    info.has_step_drafted = info.has_step_verify_s = true;
    info.has_draft_rank = info.has_rollout[DSC_SIDE_DRAFT] = true;
    info.rank_depth = DEPTH;
    info.rollout_length = G;
    info.rows[DSC_SIDE_TARGET] = DSC_ROWS_LISTED;
    info.drafters = 2;
    info.drafter[0] = (dsc_drafter_record){"a", 5};
    info.drafter[1] = (dsc_drafter_record){"b", 65535};
    return info;
}

static int32_t tokens[MOST], rollout[MOST][G];
static uint16_t rank[MOST][DEPTH], accept[2][MOST];
static float logp[MOST], no_tail[MOST];
static int64_t row_offset[MOST + 1];

static void make_columns(void)
{
    for (int j = 0; j < MOST; j++) {
        tokens[j] = 100 + j;
        logp[j] = 0;
        no_tail[j] = -__builtin_inff();
        row_offset[j + 1] = j + 1;
        accept[0][j] = (uint16_t)(j % 6);
        accept[1][j] = (uint16_t)(j % 2 ? 65535 : 1);
        for (int d = 0; d < DEPTH; d++)
            rank[j][d] = (uint16_t)(DEPTH * j + d);
        for (int i = 0; i < G; i++)
            rollout[j][i] = 200 + G * j + i;
    }
}

static void write_runs(const run *r, dsc_steps_kind kind)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = run_info(kind);
    make_columns();
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), &err);
    for (int i = 0; i < RUNS; i++) {
        char id[16];
        const dsc_request_input q = {
            .id = {id, snprintf(id, sizeof id, "%d", i)},
            .prompt = {tokens, 2},
            .output = {tokens, r[i].tokens},
            .target_logp = logp,
            .accept = {accept[0], accept[1]},
            .steps = {r[i].steps, r[i].accepted, r[i].drafted, NULL, r[i].verify_s},
            .replayed.draft_rank = rank[0],
            .rollouts.draft = rollout[0],
            .rows[DSC_SIDE_TARGET] = {.kind = DSC_ROWS_LISTED,
                                      .offset = row_offset,
                                      .token = tokens,
                                      .logp = logp,
                                      .tail = no_tail},
        };
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

// A step that wrote m of the tokens kept had m - 1 of them accepted, unless it is the last of the
// whole output, which may have been cut before.
static void check_steps(const run *r, int n, const dsc_steps *s)
{
    int wrote[MOST + 1] = {0}, last = -1;
    for (int j = 0; j < n; j++)
        if (r->owner[j] >= 0)
            wrote[last = r->owner[j]]++;
    if (n == r->tokens)
        last = r->steps - 1;
    assert_int_equal(s->count, last + 1);
    for (int i = 0; i <= last; i++) {
        assert_int_equal(s->accepted[i], n == r->tokens ? r->accepted[i] : wrote[i] - 1);
        assert_int_equal(s->drafted[i], r->drafted[i]);
        assert_true(s->verify_s[i] == r->verify_s[i]);
    }
}

static void check_positions(const run *r, int n, const dsc_request *q)
{
    dsc_row row;
    for (int j = 0; j < n; j++) {
        assert_int_equal(q->output.id[j], tokens[j]);
        assert_memory_equal(q->rollouts.draft + G * j, rollout[j], sizeof rollout[j]);
        assert_true(dsc_request_row(q, DSC_SIDE_TARGET, j, &row));
        assert_true(row.count == 1 && row.token[0] == tokens[j]);
        for (int d = 0; d < 2; d++) {
            int most = n == r->tokens ? 65535 : n - j;
            assert_int_equal(q->accept[d][j], accept[d][j] < most ? accept[d][j] : most);
        }
        for (int d = 0; d < DEPTH; d++)
            assert_int_equal(q->replayed.draft_rank[DEPTH * j + d],
                             n < r->tokens && j + d >= n ? DSC_RANK_NONE : rank[j][d]);
    }
}

static void first_tokens(void **state)
{
    (void)state;
    dsc_error err;
    uint64_t random = 3;
    run r[RUNS];
    for (int i = 0; i < RUNS; i++)
        r[i] = make_run(&random);
    write_runs(r, DSC_STEPS_ALIGNED);
    for (int most = 1; most <= MOST + 1; most++) {
        dsc_shard *s;
        expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.tokens = most}, &err), &err);
        dsc_trace *t = open_first("b.dst", &s);
        assert_int_equal(dsc_shard_requests(s), RUNS);
        for (int i = 0; i < RUNS; i++) {
            dsc_request q;
            dsc_shard_request(s, i, &q);
            int n = r[i].tokens < most ? r[i].tokens : most;
            assert_int_equal(q.output.count, n);
            check_steps(&r[i], n, &q.steps);
            check_positions(&r[i], n, &q);
        }
        close_both(t, s);
    }
}

static void steps_as_logged(void **state)
{
    (void)state;
    dsc_error err;
    uint64_t random = 3;
    run r[RUNS];
    for (int i = 0; i < RUNS; i++)
        r[i] = make_run(&random);
    write_runs(r, DSC_STEPS_LOGGED);
    int rc = cut_to("a.dst", "b.dst", (dsc_cut){.tokens = MOST - 1}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst cannot be cut: its steps are logged");
    assert_false(exists("b.dst") || exists("b.dst.tmp"));
    expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.tokens = MOST}, &err), &err);
}

static void text_of_cut_outputs(void **state)
{
    (void)state;
    dsc_error err;
    write_samples("a.dst", true, true, 0); // outputs of 7 tokens at most
    for (int64_t most = 6; most <= 7; most++) {
        dsc_shard *s;
        dsc_request q;
        expect_ok(cut_to("a.dst", "b.dst", (dsc_cut){.tokens = most}, &err), &err);
        dsc_trace *t = open_first("b.dst", &s);
        assert_int_equal(dsc_trace_get_info(t)->has_text, most == 7);
        assert_int_equal(strstr(notes, "text is left out") != NULL, most == 6);
        dsc_shard_request(s, 0, &q);
        assert_int_equal(q.references, 2);
        assert_int_equal(q.metadata.length, samples[0].metadata.length);
        json_t *all = json_loads(dsc_trace_get_info(t)->provenance, 0, NULL);
        json_t *cut = json_object_get(all, "cut");
        assert_int_equal(json_integer_value(json_object_get(cut, "tokens")), most);
        assert_null(json_object_get(cut, "sample"));
        assert_int_equal(json_array_size(json_object_get(all, "sources")), 1);
        json_decref(all);
        close_both(t, s);
    }
    assert_int_equal(rename(in_scratch("a.dst"), in_scratch("b.dst.tmp")), 0);
    int rc = cut_to("b.dst.tmp", "b.dst", (dsc_cut){.tokens = 1}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "would remove");
    assert_true(exists("b.dst.tmp/manifest.json"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_cut)
{
    const struct CMUnitTest tests[] = {
        TEST(listed_requests), TEST(samples_at_random),   TEST(first_tokens),
        TEST(steps_as_logged), TEST(text_of_cut_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

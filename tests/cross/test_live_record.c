// SPDX-License-Identifier: Apache-2.0
// A live run and the simulator on its recording must give the same counts. The models are tiny,
// with random weights and few tokens, so that drafts are sometimes accepted by chance.
#include "live/program/recorder.h"
#include "tests/zero_counts.h"
#include "live/session/replay.h"
#include "sim/reduce/reduce.h"
#include "sim/run/run.h"
#include "tests/default_config.h"
#include "tests/unit/model_fixture.h"
#include "theory/probs.h"

#include <time.h>

enum { VOCAB = 6, PROMPT = 4, MOST = 48, NODES = 12, CONTEXT = PROMPT + MOST };

typedef struct rig {
    live_backend *b;
    live_weights *target, *draft;
    live_session *target_session, *draft_session;
    live_sampling sampling;
} rig;

static live_config config_of(live_family family)
{
    const bool eagle3 = family == LIVE_EAGLE3, eagle = eagle3 || family == LIVE_EAGLE;
    const bool medusa = family == LIVE_MEDUSA;
    return (live_config){.family = family,
                         .layers = medusa  ? 0
                                   : eagle ? 1
                                           : 2,
                         .hidden = 16,
                         .feed_forward = 24,
                         .heads = 2,
                         .kv_heads = eagle ? 2 : 1,
                         .head = 8,
                         .vocab = VOCAB,
                         .positions = 256,
                         .dtype = DSC_F32,
                         .norm = LIVE_RMS_NORM,
                         .norm_epsilon = 1e-5,
                         .activation = LIVE_SILU_GATE,
                         .rotated = 8,
                         .rope_theta = 1e4,
                         .medusa_heads = medusa ? 3 : 0,
                         .medusa_layers = medusa ? 1 : 0,
                         .draft_vocab = eagle3 ? VOCAB / 2 : 0,
                         .tap = {0, eagle3 ? 1 : 0, eagle3 ? 2 : 0},
                         .fc_bias = eagle,
                         .begin = -1,
                         .normed = !eagle || eagle3};
}

// Creates a target and, unless `draft` is 0, a draft model or head with that seed.
static void rig_init(rig *r, live_family family, uint64_t draft, double temperature)
{
    dsc_error err = {0};
    const live_config target = config_of(LIVE_LLAMA), other = config_of(family);
    *r = (rig){.sampling = {temperature, 0, 1}};
    assert_ok(live_backend_cpu(&r->b, 1, false, &err), err);
    assert_ok(live_weights_random(&r->target, &target, DSC_F32, 1, r->b, &err), err);
    assert_ok(live_session_new(&r->target_session, r->target, NULL, CONTEXT, NODES, &err), err);
    if (!draft)
        return;
    assert_ok(live_weights_random(&r->draft, &other, DSC_F32, draft, r->b, &err), err);
    assert_ok(
        live_session_new(&r->draft_session, r->draft, r->target_session, CONTEXT, NODES, &err),
        err);
}

static void rig_fini(rig *r)
{
    live_session_free(r->draft_session);
    live_session_free(r->target_session);
    live_weights_free(r->draft);
    live_weights_free(r->target);
    r->b->type->close(r->b);
}

static void make_prompt(int64_t request, int32_t prompt[PROMPT])
{
    for (int64_t i = 0; i < PROMPT; i++)
        prompt[i] = (int32_t)((request * 7 + i * (request + 3)) % VOCAB);
}

static dsc_models begin(rig *r, dsc_token_view prompt)
{
    dsc_error err = {0};
    dsc_models m = {.target = live_session_model(r->target_session)};
    assert_ok(live_session_begin(r->target_session, prompt, MOST, &r->sampling, &err), err);
    if (r->draft_session) {
        assert_ok(live_session_begin(r->draft_session, prompt, MOST, &r->sampling, &err), err);
        m.draft = live_session_model(r->draft_session);
    }
    return m;
}

typedef struct job {
    const dsc_drafter_type *method;
    const dsc_verifier_type *rule;
    int64_t length, requests;
    live_record record; // options of the recording
    long wait_ms;       // before each request
    int64_t *calls;     // [requests] target calls of each, or NULL
    int64_t histogram[2 * NODES];
    dsc_counts counts;
} job;

static dsc_config method_of(const job *j)
{
    dsc_config c;
    default_config(&c, j->method);
    for (size_t o = 0; o < j->method->option_count; o++)
        if (!strcmp(j->method->option[o].name, "num-speculative-tokens"))
            c.parameter[o] = j->length;
        else if (!strcmp(j->method->option[o].name, "num-drafts"))
            c.parameter[o] = 2;
    return c;
}

// Runs all requests and records them to `path`.
static void record(rig *r, job *j, const char *path)
{
    dsc_error err = {0};
    dsc_arena arena = {0};
    dsc_loop loop = {0};
    dsc_config config = method_of(j);
    live_recorder *recorder;
    const dsc_fit fit = {.draft = r->draft_session, .dists = true, .off_path = true};
    live_record o = j->record;
    o.target = r->target_session;
    o.draft = r->draft_session;
    o.target_config = &r->target->config;
    o.draft_config = r->draft ? &r->draft->config : NULL;
    o.sampling = r->sampling;
    o.path = path;
    o.nodes = NODES;
    assert_ok(live_recorder_new(&recorder, &o, &err), err);
    j->counts = zero_counts(j->histogram, dsc_config_limit(&config));
    for (int64_t i = 0; i < j->requests; i++) {
        int32_t prompt[PROMPT], output[MOST];
        char id[24];
        make_prompt(i, prompt);
        nanosleep(&(struct timespec){.tv_nsec = j->wait_ms * 1000000}, NULL);
        const dsc_request request = {.index = i, .prompt = {prompt, PROMPT}};
        const dsc_models models = begin(r, request.prompt);
        const int64_t before = j->counts.target_calls;
        dsc_loop_input in = {.config = &config,
                             .rule = j->rule,
                             .models = &models,
                             .request = &request,
                             .seed = 5,
                             .arena = &arena,
                             .step = live_recorder_step,
                             .user = recorder};
        dsc_arena_reset(&arena);
        assert_ok(dsc_draft_kind_for(&in.kind, config.drafter, j->rule, &fit, &err), err);
        live_recorder_begin(recorder);
        assert_ok(dsc_loop_run(&loop, &in, &j->counts, &err), err);
        if (j->calls)
            j->calls[i] = j->counts.target_calls - before;
        memcpy(output, models.target->output, (size_t)models.target->length * sizeof *output);
        dsc_request_input q = {.id = {id, snprintf(id, sizeof id, "%d", (int)i)},
                               .prompt = request.prompt,
                               .output = {output, models.target->length}};
        assert_ok(live_recorder_add(recorder, &q, &err), err);
    }
    assert_int_equal(live_recorder_requests(recorder), j->requests);
    assert_ok(live_recorder_commit(recorder, &err), err);
    live_recorder_free(recorder);
    dsc_config_fini(&config);
    dsc_loop_fini(&loop);
    dsc_arena_fini(&arena);
}

static dsc_trace *open_trace(const char *path)
{
    dsc_error err = {0};
    dsc_trace *t;
    assert_ok(dsc_trace_open(&t, path, &err), err);
    assert_ok(dsc_trace_verify(t, &err), err);
    return t;
}

// The method over the trace, by the simulator.
static dsc_results replay(const dsc_trace *t, const job *j, dsc_run_options o)
{
    dsc_error err = {0};
    dsc_results out;
    dsc_config config = method_of(j);
    o.rule = j->rule;
    o.threads = 1;
    assert_ok(dsc_run(t, &config, 1, &o, &out, &err), err);
    dsc_config_fini(&config);
    return out;
}

// --- the same counts -----------------------------------------------------------------------------

static void same_counts(live_family family, uint64_t draft, int64_t length)
{
    rig r;
    const char *path = in_scratch("greedy.dst");
    job j = {.method = &dsc_drafter_draft_model,
             .rule = &dsc_verifier_greedy,
             .length = length,
             .requests = 6,
             .record = {.shard_s = 1e9, .K = 1, .rank_depth = (int32_t)length, .force = true}};
    rig_init(&r, family, draft, 0);
    record(&r, &j, path);
    dsc_trace *t = open_trace(path);
    dsc_results s = replay(t, &j, (dsc_run_options){0});
    const dsc_expected x = dsc_counts_real(&s.counts[0]);
    assert_int_equal(s.counts[0].output_tokens, j.counts.output_tokens);
    assert_close(x.target_calls, (double)j.counts.target_calls, 0);
    assert_close(x.num_accepted_tokens, (double)j.counts.num_accepted_tokens, 0);
    for (int64_t m = 0; m <= length; m++)
        assert_close(x.histogram[m], (double)j.counts.histogram[m], 0);
    assert_true(j.counts.num_accepted_tokens > 0);
    assert_true(j.counts.num_accepted_tokens < j.counts.num_draft_tokens);
    dsc_results_fini(&s);
    dsc_trace_close(t);
    rig_fini(&r);
}

static void test_chain_counts(void **state)
{
    (void)state;
    for (uint64_t draft = 2; draft < 5; draft++)
        for (int64_t length = 1; length <= 5; length += 2)
            same_counts(LIVE_LLAMA, draft, length);
}

// By the ranks along the head's own features.
static void test_head_counts(void **state)
{
    (void)state;
    for (uint64_t draft = 2; draft < 5; draft++)
        same_counts(LIVE_EAGLE, draft, 4);
    for (uint64_t draft = 2; draft < 5; draft++)
        same_counts(LIVE_EAGLE3, draft, 4);
    for (uint64_t draft = 2; draft < 5; draft++)
        same_counts(LIVE_MEDUSA, draft, 3);
}

typedef struct paired {
    const int64_t *calls; // of the run
    int64_t n;
    double sum, squares; // of expected minus measured counts
} paired;

static int compare(void *user, const dsc_request *q, const dsc_counts *c, dsc_error *err)
{
    paired *p = user;
    (void)err;
    const double d = dsc_counts_real(c).target_calls - (double)p->calls[q->index];
    p->n++;
    p->sum += d;
    p->squares += d * d;
    return DSC_OK;
}

// A run is a sample; the expectation given its output differs from it by noise of mean 0.
static void test_expectation(void **state)
{
    enum { REQUESTS = 120 };
    (void)state;
    static const struct {
        const dsc_drafter_type *method;
        const dsc_verifier_type *rule;
    } pair[] = {{&dsc_drafter_draft_model, &dsc_verifier_rejection},
                {&dsc_drafter_draft_model, &dsc_verifier_block},
                {&dsc_drafter_spectr, &dsc_verifier_kseq},
                {&dsc_drafter_spectr, &dsc_verifier_otm}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        rig r;
        int64_t calls[REQUESTS];
        const char *path = in_scratch("sampled.dst");
        job j = {.method = pair[i].method,
                 .rule = pair[i].rule,
                 .length = 3,
                 .requests = REQUESTS,
                 .record = {.shard_s = 1e9, .K = i < 2 ? 1 : 2, .rank_depth = 1, .force = true},
                 .calls = calls};
        rig_init(&r, LIVE_LLAMA, 2, 1);
        record(&r, &j, path);
        dsc_trace *t = open_trace(path);
        paired p = {.calls = calls};
        dsc_results s = replay(
            t, &j, (dsc_run_options){.engine = DSC_ENGINE_EXPECT, .request = compare, .user = &p});
        const double n = (double)p.n, mean = p.sum / n;
        const double error = sqrt((p.squares / n - mean * mean) / (n - 1));
        assert_int_equal(p.n, REQUESTS);
        assert_true(error > 0 && error < .3);
        assert_true(fabs(mean) < 4 * error);
        dsc_results_fini(&s);
        dsc_trace_close(t);
        rig_fini(&r);
    }
}

// --- shards --------------------------------------------------------------------------------------

// Requests that take long close a shard each; others share one.
static void test_shards(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        rig r;
        const char *path = in_scratch("shards.dst");
        job j = {.method = &dsc_drafter_draft_model,
                 .rule = &dsc_verifier_greedy,
                 .length = 2,
                 .requests = 3,
                 .record = {.K = 1, .rank_depth = 1, .force = true, .shard_s = slow ? .02 : 1e9},
                 .wait_ms = slow ? 25 : 0};
        rig_init(&r, LIVE_LLAMA, 2, 0);
        record(&r, &j, path);
        dsc_trace *t = open_trace(path);
        assert_int_equal(dsc_trace_shards(t), slow ? 3 : 1);
        dsc_trace_close(t);
        rig_fini(&r);
    }
}

// --- what is recorded ----------------------------------------------------------------------------

static void same_floats(const float *a, const float *b, int64_t n)
{
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
}

// The columns of a recording with all distributions are those that `trace reduce` computes from
// them.
static void test_reduced(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        enum { K = 3, DEPTH = 3 };
        rig r;
        dsc_error err = {0};
        const char *path = in_scratch("rows.dst"), *out = in_scratch("reduced.dst");
        job j = {.method = &dsc_drafter_draft_model,
                 .rule = sampled ? &dsc_verifier_rejection : &dsc_verifier_greedy,
                 .length = 3,
                 .requests = 3,
                 .record = {.shard_s = 1e9,
                            .K = K,
                            .rank_depth = DEPTH,
                            .rows = DSC_ROWS_DENSE,
                            .force = true}};
        rig_init(&r, LIVE_LLAMA, 3, sampled ? .7 : 0);
        record(&r, &j, path);
        dsc_trace *a = open_trace(path), *b;
        const dsc_reduce o = {.K = K, .rank_depth = DEPTH, .threads = 1, .force = true};
        assert_ok(dsc_reduce_trace(a, out, &o, &err), err);
        b = open_trace(out);
        dsc_shard *x, *y;
        assert_ok(dsc_shard_open(&x, a, 0, &err), err);
        assert_ok(dsc_shard_open(&y, b, 0, &err), err);
        for (int64_t i = 0; i < j.requests; i++) {
            dsc_request p, q;
            dsc_shard_request(x, i, &p);
            dsc_shard_request(y, i, &q);
            const int64_t n = p.output.count;
            same_floats(p.target_logp, q.target_logp, n);
            same_floats(p.draft_logp, q.draft_logp, n);
            for (int side = 0; side < DSC_SIDES; side++) {
                same_floats(p.replayed.entropy[side], q.replayed.entropy[side], n);
                assert_memory_equal(p.replayed.argmax[side], q.replayed.argmax[side],
                                    (size_t)n * sizeof(int32_t));
            }
            assert_memory_equal(p.replayed.draft_rank, q.replayed.draft_rank,
                                (size_t)(n * DEPTH) * sizeof(uint16_t));
            same_floats(p.sufficient.kseq, q.sufficient.kseq, n * 2 * K);
            same_floats(p.sufficient.specinfer, q.sufficient.specinfer, n * (K + 1));
            same_floats(p.sufficient.otm, q.sufficient.otm, n * (K * (K + 3) / 2));
        }
        dsc_shard_close(x);
        dsc_shard_close(y);
        dsc_trace_close(a);
        dsc_trace_close(b);
        rig_fini(&r);
    }
}

typedef struct replayed {
    const dsc_request *q;
    double temperature, worst;
} replayed;

static int compare_logits(void *user, int64_t i, const float *logits, dsc_error *err)
{
    replayed *f = user;
    double dist[VOCAB];
    for (int x = 0; x < VOCAB; x++)
        dist[x] = logits[x];
    int rc = dsc_probs_softmax("logits", dist, VOCAB, f->temperature, 0, 1, err);
    const double error = log(dist[f->q->output.id[i]]) - (double)f->q->target_logp[i];
    f->worst = isnan(error) ? INFINITY : fmax(f->worst, fabs(error));
    return rc;
}

// Compares with the logits of the session's own teacher-forced pass; without a draft; lists and
// steps.
static void test_target_alone(void **state)
{
    (void)state;
    enum { TOP = 2 };
    rig r;
    dsc_error err = {0};
    const char *path = in_scratch("alone.dst");
    job j = {
        .method = &dsc_drafter_none,
        .rule = &dsc_verifier_rejection,
        .length = 0,
        .requests = 2,
        .record = {.shard_s = 1e9, .K = 4, .rank_depth = 1, .rows = DSC_ROWS_LISTED, .top = TOP}};
    rig_init(&r, LIVE_LLAMA, 0, .5);
    record(&r, &j, path);
    dsc_trace *t = open_trace(path);
    const dsc_trace_info *info = dsc_trace_get_info(t);
    assert_false(info->has_draft_logp || info->has_kseq || info->has_draft_rank ||
                 info->has_argmax[DSC_SIDE_DRAFT] || info->rows[DSC_SIDE_DRAFT]);
    assert_int_equal(info->steps, DSC_STEPS_ALIGNED);
    assert_true(info->has_step_verify_s && info->has_step_draft_s && info->has_step_drafted);
    dsc_shard *s;
    assert_ok(dsc_shard_open(&s, t, 0, &err), err);
    for (int64_t i = 0; i < j.requests; i++) {
        dsc_request q;
        dsc_row row;
        dsc_shard_request(s, i, &q);
        replayed f = {&q, .5, 0};
        assert_ok(
            live_session_replay(r.target_session, q.prompt, q.output, compare_logits, &f, &err),
            err);
        assert_true(f.worst < 1e-5);
        assert_int_equal(q.steps.count, MOST);
        assert_int_equal(q.steps.drafted[0], 0);
        assert_true(q.steps.verify_s[MOST - 1] > 0 && q.steps.draft_s[MOST - 1] == 0);
        for (int64_t p = 0; p < q.output.count; p++) {
            assert_true(dsc_request_row(&q, DSC_SIDE_TARGET, p, &row));
            assert_int_equal(row.count, TOP);
            assert_int_equal(row.token[0], q.replayed.argmax[DSC_SIDE_TARGET][p]);
            for (int e = 0; e < TOP; e++)
                if (row.token[e] == q.output.id[p])
                    assert_close((double)row.logp[e], (double)q.target_logp[p], 1e-6);
        }
    }
    dsc_shard_close(s);
    dsc_trace_close(t);
    rig_fini(&r);
}

// The draft model's rollouts from each position, and the target's tokens along them, determine how
// many tokens each step of the run accepted.
static void rollouts(live_family family, int32_t G)
{
    rig r;
    dsc_error err = {0};
    const char *path = in_scratch("rollouts.dst");
    job j = {.method = &dsc_drafter_draft_model,
             .rule = &dsc_verifier_greedy,
             .length = G,
             .requests = 4,
             .record = {.shard_s = 1e9, .K = 1, .rank_depth = 1, .rollout = G, .force = true}};
    rig_init(&r, family, 3, 0);
    record(&r, &j, path);
    dsc_trace *t = open_trace(path);
    dsc_shard *s;
    assert_ok(dsc_shard_open(&s, t, 0, &err), err);
    int64_t accepted = 0;
    for (int64_t i = 0; i < j.requests; i++) {
        dsc_request q;
        dsc_shard_request(s, i, &q);
        int64_t at = 0;
        for (int64_t step = 0; step < q.steps.count; step++) {
            const int32_t *draft = q.rollouts.draft + at * G;
            const int32_t *target = q.rollouts.target + at * (G + 1);
            int32_t agree = 0;
            while (agree < G && at + agree + 1 < q.output.count && draft[agree] == target[agree])
                agree++;
            assert_int_equal(q.steps.accepted[step], agree);
            assert_int_equal(target[agree], q.output.id[at + agree]);
            at += agree + 1;
            accepted += agree;
        }
        assert_int_equal(at, q.output.count);
    }
    assert_true(accepted > 0);
    dsc_shard_close(s);
    dsc_trace_close(t);
    rig_fini(&r);
}

static void test_rollouts(void **state)
{
    (void)state;
    rollouts(LIVE_LLAMA, 4);
    rollouts(LIVE_EAGLE, 4);
    rollouts(LIVE_EAGLE3, 4);
    rollouts(LIVE_MEDUSA, 3);
}

// A token that top-k excludes, as a rule that is not lossless may emit it.
static void test_excluded(void **state)
{
    (void)state;
    rig r;
    dsc_error err = {0};
    live_recorder *recorder;
    int32_t prompt[PROMPT], output[] = {0, 1, 2, 3, 4, 5};
    const char *path = in_scratch("excluded.dst");
    rig_init(&r, LIVE_LLAMA, 0, 1);
    r.sampling.top_k = 1;
    const live_record o = {.target = r.target_session,
                           .target_config = &r.target->config,
                           .sampling = r.sampling,
                           .path = path,
                           .K = 1,
                           .rank_depth = 1,
                           .rows = DSC_ROWS_DENSE,
                           .nodes = NODES};
    make_prompt(1, prompt);
    assert_ok(live_recorder_new(&recorder, &o, &err), err);
    const dsc_token_view p = {prompt, PROMPT};
    assert_ok(live_session_begin(r.target_session, p, 6, &r.sampling, &err), err);
    live_recorder_begin(recorder);
    const dsc_step_record step = {.emitted_tokens = 1};
    for (int i = 0; i < 6; i++)
        assert_ok(live_recorder_step(recorder, &step, &err), err);
    dsc_request_input q = {.id = {"a", 1}, .prompt = p, .output = {output, 6}};
    assert_ok(live_recorder_add(recorder, &q, &err), err);
    assert_true(live_recorder_excluded(recorder) > 0);
    assert_ok(live_recorder_commit(recorder, &err), err);
    live_recorder_free(recorder);
    dsc_trace_close(open_trace(path)); // distributions sum to 1
    rig_fini(&r);
}

// --- forced --------------------------------------------------------------------------------------

// LLMA replayed over recorded outputs: a model with other predictions takes the simulator's steps.
static void test_replay(void **state)
{
    (void)state;
    rig r, other;
    dsc_error err = {0};
    const char *path = in_scratch("record.dst");
    job j = {.method = &dsc_drafter_llma,
             .rule = &dsc_verifier_greedy,
             .length = 6,
             .requests = 5,
             .record = {.shard_s = 1e9, .K = 1, .rank_depth = 1}};
    rig_init(&r, LIVE_LLAMA, 0, 1);
    job plain = j;
    plain.method = &dsc_drafter_none;
    plain.rule = &dsc_verifier_rejection;
    record(&r, &plain, path);
    dsc_trace *t = open_trace(path);
    dsc_results s = replay(t, &j, (dsc_run_options){.engine = DSC_ENGINE_LOOP});
    rig_init(&other, LIVE_LLAMA, 0, 0);
    dsc_shard *shard;
    assert_ok(dsc_shard_open(&shard, t, 0, &err), err);
    dsc_config config = method_of(&j);
    dsc_loop loop = {0};
    dsc_arena arena = {0};
    live_replayed f = {0};
    dsc_counts counts = zero_counts(j.histogram, dsc_config_limit(&config));
    for (int64_t i = 0; i < j.requests; i++) {
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        begin(&other, q.prompt);
        const live_times before = *live_session_times(other.target_session);
        const int64_t calls = counts.target_calls, tokens = counts.target_call_tokens;
        assert_ok(live_replay_begin(&f, other.target_session, VOCAB, q.output, NULL, &err), err);
        const dsc_models models = {.target = &f.base};
        const dsc_loop_input in = {.config = &config,
                                   .rule = j.rule,
                                   .kind = DSC_DRAFT_TOPK,
                                   .models = &models,
                                   .request = &q,
                                   .arena = &arena};
        dsc_arena_reset(&arena);
        assert_ok(dsc_loop_run(&loop, &in, &counts, &err), err);
        const live_times *after = live_session_times(other.target_session);
        assert_int_equal(after->passes - before.passes, counts.target_calls - calls);
        assert_int_equal(after->pass_tokens - before.pass_tokens,
                         counts.target_call_tokens - tokens);
        assert_int_equal(live_session_model(other.target_session)->length, q.output.count);
        const dsc_token_view wrong = {(const int32_t[]){0, VOCAB}, 2};
        assert_int_equal(live_replay_begin(&f, other.target_session, VOCAB, wrong, NULL, &err),
                         DSC_EINPUT);
    }
    const dsc_counts *sim = &s.counts[0];
    assert_int_equal(sim->target_calls, counts.target_calls);
    assert_int_equal(sim->num_drafts_started, counts.num_drafts_started);
    assert_int_equal(sim->num_drafts, counts.num_drafts);
    assert_int_equal(sim->num_draft_tokens, counts.num_draft_tokens);
    assert_int_equal(sim->num_accepted_tokens, counts.num_accepted_tokens);
    assert_memory_equal(sim->histogram, counts.histogram, 7 * sizeof *counts.histogram);
    assert_true(counts.num_accepted_tokens > 0);
    live_replayed_fini(&f);
    dsc_loop_fini(&loop);
    dsc_arena_fini(&arena);
    dsc_config_fini(&config);
    dsc_shard_close(shard);
    dsc_results_fini(&s);
    dsc_trace_close(t);
    rig_fini(&r);
    rig_fini(&other);
}

// Models other than the recorded ones run the passes of both sides and take the simulator's steps
// or, where acceptances are sampled, steps of the same distribution.
static void replay_draft(live_family family, const job *j, double temperature, bool exact)
{
    rig r, other;
    dsc_error err = {0};
    const char *path = in_scratch("draft.dst");
    job plain = *j;
    plain.method = j->method->view ? &dsc_drafter_draft_model : &dsc_drafter_none;
    plain.rule = temperature > 0 ? &dsc_verifier_rejection : &dsc_verifier_greedy;
    rig_init(&r, family, 3, temperature);
    record(&r, &plain, path);
    dsc_trace *t = open_trace(path);
    dsc_config config = method_of(j);
    live_draft_record drafts;
    assert_ok(live_draft_record_find(&drafts, t, &config, j->rule, &err), err);
    rig_init(&other, family, 8, 0);
    dsc_shard *shard;
    assert_ok(dsc_shard_open(&shard, t, 0, &err), err);
    dsc_loop loop = {0};
    dsc_arena arena = {0};
    live_replayed target = {0};
    live_replay_draft draft = {0};
    int64_t histogram[2 * NODES] = {0};
    dsc_counts counts =
        zero_counts(histogram, drafts.written ? drafts.nodes : dsc_config_limit(&config));
    for (int64_t i = 0; i < j->requests; i++) {
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        dsc_arena_reset(&arena);
        if (drafts.written)
            assert_ok(config.drafter->view(&config, drafts.info, &q, &arena, &err), err);
        begin(&other, q.prompt);
        assert_ok(live_replay_begin(&target, other.target_session, VOCAB, q.output, &drafts, &err),
                  err);
        target.draft = drafts.written ? &draft : NULL;
        live_replay_draft_begin(&draft, other.draft_session, VOCAB, &drafts, &q, 5);
        const dsc_models models = {.target = &target.base, .draft = &draft.replayed.base};
        const dsc_loop_input in = {.config = &config,
                                   .rule = &dsc_verifier_greedy,
                                   .kind = DSC_DRAFT_TOPK,
                                   .models = &models,
                                   .request = &q,
                                   .arena = &arena};
        assert_ok(dsc_loop_run(&loop, &in, &counts, &err), err);
        assert_int_equal(live_session_model(other.draft_session)->length, q.output.count);
    }
    assert_int_equal(live_session_times(other.target_session)->passes, counts.target_calls);
    assert_int_equal(live_session_times(other.target_session)->pass_tokens,
                     counts.target_call_tokens);
    assert_int_equal(live_session_times(other.draft_session)->passes, counts.draft_calls);
    assert_true(counts.num_accepted_tokens > 0);
    assert_true(counts.num_accepted_tokens < counts.num_draft_tokens);
    if (exact) {
        dsc_results s = replay(t, j, (dsc_run_options){.engine = DSC_ENGINE_LOOP});
        const dsc_counts *sim = &s.counts[0];
        assert_int_equal(sim->target_calls, counts.target_calls);
        assert_int_equal(sim->num_drafts_started, counts.num_drafts_started);
        assert_int_equal(sim->num_drafts, counts.num_drafts);
        assert_int_equal(sim->num_draft_tokens, counts.num_draft_tokens);
        assert_int_equal(sim->draft_calls, counts.draft_calls);
        assert_memory_equal(sim->histogram, histogram, (size_t)(j->length + 1) * sizeof *histogram);
        dsc_results_fini(&s);
    }
    live_replayed_fini(&target);
    live_replay_draft_fini(&draft);
    dsc_loop_fini(&loop);
    dsc_arena_fini(&arena);
    dsc_config_fini(&config);
    dsc_shard_close(shard);
    dsc_trace_close(t);
    rig_fini(&r);
    rig_fini(&other);
}

static void test_replay_draft(void **state)
{
    (void)state;
    job j = {.method = &dsc_drafter_draft_model,
             .rule = &dsc_verifier_greedy,
             .length = 4,
             .requests = 6,
             .record = {.shard_s = 1e9, .K = 2, .rank_depth = 4, .force = true}};
    replay_draft(LIVE_LLAMA, &j, 0, true);
    replay_draft(LIVE_EAGLE, &j, 0, true);
    j.method = &dsc_drafter_recorded_steps;
    replay_draft(LIVE_LLAMA, &j, 0, true);
    replay_draft(LIVE_EAGLE, &j, 0, true);
    j.method = &dsc_drafter_spectr;
    j.rule = &dsc_verifier_kseq;
    replay_draft(LIVE_LLAMA, &j, 1, false);
    j.rule = &dsc_verifier_greedy;
    replay_draft(LIVE_LLAMA, &j, 1, false);
    j.method = &dsc_drafter_draft_model;
    j.rule = &dsc_verifier_block;
    replay_draft(LIVE_LLAMA, &j, 1, false);
}

// Tokens that are unknown, or not in this model's vocabulary, are run as other tokens.
static void test_placeholder(void **state)
{
    (void)state;
    enum { HERE = 2, COUNT = 6 };
    dsc_error err = {0};
    const int32_t output[] = {3, 1, 0, 2, 1};
    int32_t token[COUNT] = {0, DSC_TOKEN_OTHER, 9, 2, 4, DSC_TOKEN_OTHER};
    int32_t parent[COUNT] = {-1, -1, -1, 0, 1, 3};
    const dsc_draft d = {.token = token, .parent = parent, .count = COUNT};
    live_placeholder s = {.recorded = {output, 5}, .vocab = 5};
    for (int again = 0; again < 2; again++) {
        assert_ok(live_placeholder_take(&s, &d, HERE, &err), err);
        assert_int_equal(s.draft.count, COUNT);
        assert_ptr_equal(s.draft.parent, parent);
        const int32_t right[COUNT] = {0, 0, 0, 2, -1, 1}; // what the output has there
        for (int j = 0; j < COUNT; j++) {
            assert_in_range(s.draft.token[j], 0, 4);
            if (token[j] >= 0 && token[j] < 5)
                assert_int_equal(s.draft.token[j], token[j]);
            else
                assert_int_not_equal(s.draft.token[j], right[j]);
        }
    }
    token[0] = 4; // below it nothing is the output's any more
    assert_ok(live_placeholder_take(&s, &d, HERE, &err), err);
    assert_int_equal(s.depth[0], -1);
    assert_int_equal(s.depth[3], -1);
    live_placeholder_fini(&s);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(live_record)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_chain_counts),    SCRATCH_TEST(test_head_counts),
        SCRATCH_TEST(test_expectation),     SCRATCH_TEST(test_shards),
        SCRATCH_TEST(test_reduced),         SCRATCH_TEST(test_target_alone),
        SCRATCH_TEST(test_rollouts),        SCRATCH_TEST(test_excluded),
        SCRATCH_TEST(test_replay),          SCRATCH_TEST(test_replay_draft),
        cmocka_unit_test(test_placeholder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

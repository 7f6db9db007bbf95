// SPDX-License-Identifier: Apache-2.0
// Tests the columns with a value for each output token or step. They are read as they were written,
// each group alone and all together; every kind of error is refused by the writer, the reader or
// the verifier.
#include "tests/unit/trace_columns_fixture.h"

#include "tests/close.h"
#include "theory/kseq.h"
#include "theory/specinfer.h"
#include "theory/otm_sampler.h"

// --- round trips -------------------------------------------------------------------------------

static void same(const void *is, const void *want, size_t bytes, bool recorded)
{
    assert_int_equal(is != NULL, recorded);
    if (recorded && bytes)
        assert_memory_equal(is, want, bytes);
}

static void same_columns(const dsc_request *q, const dsc_trace_info *i, int r)
{
    const made *m = &all[r];
    size_t n = (size_t)outputs[r], steps = (size_t)step_counts[r];
    same(q->target_logp, m->target_logp, 4 * n, i->has_target_logp);
    same(q->draft_logp, m->draft_logp, 4 * n, i->has_draft_logp);
    for (int side = 0; side < DSC_SIDES; side++) {
        same(q->replayed.argmax[side], m->argmax[side], 4 * n, i->has_argmax[side]);
        same(q->replayed.entropy[side], m->entropy[side], 4 * n, i->has_entropy[side]);
    }
    same(q->replayed.draft_rank, m->rank, 2 * n * DEPTH, i->has_draft_rank);
    same(q->sufficient.kseq, m->kseq, 8 * n * K, i->has_kseq);
    same(q->sufficient.specinfer, m->specinfer, 4 * n * (K + 1), i->has_specinfer);
    same(q->sufficient.otm, m->otm, 4 * n * OTM, i->has_otm);
    same(q->rollouts.draft, m->draft_rollout, 4 * n * G, i->has_rollout[DSC_SIDE_DRAFT]);
    same(q->rollouts.target, m->target_rollout, 4 * n * (G + 1), i->has_rollout[DSC_SIDE_TARGET]);
    same(q->candidates.token, m->candidate, 4 * n * NODES, i->has_candidates);
    same(q->candidates.parent, m->parent, 2 * n * NODES, i->has_candidates);
    same(q->candidates.logp, m->path, 4 * n * NODES, i->has_candidates);
    same(q->candidates.scored, m->scored, 2 * n * PASSES, i->has_candidates);
    same(q->marginals.token, m->marginal, 4 * n * OFFSETS * TOP, i->has_marginals);
    same(q->marginals.logp, m->marginal_logp, 4 * n * OFFSETS * TOP, i->has_marginals);
    same(q->marginals.logp_y, m->logp_y, 4 * n * OFFSETS, i->has_marginals);
    assert_int_equal(q->steps.count, i->steps ? steps : 0);
    same(q->steps.accepted, m->accepted, 2 * steps, i->steps);
    same(q->steps.drafted, m->drafted, 2 * steps, i->has_step_drafted);
    same(q->steps.draft_s, m->draft_s, 4 * steps, i->has_step_draft_s);
    same(q->steps.verify_s, m->verify_s, 4 * steps, i->has_step_verify_s);
    for (int d = 0; d < DSC_DRAFTERS_MAX; d++)
        same(q->accept[d], d < 2 ? m->accept[d] : NULL, 2 * n, d < i->drafters);
}

// The manifest lists the requested columns and no others.
static void same_info(const dsc_trace_info *is, const dsc_trace_info *want)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++)
        assert_int_equal(dsc_field_kind(is, f), dsc_field_kind(want, f));
    for (int p = 0; p < DSC_PARAMETERS; p++)
        assert_int_equal(dsc_parameter_value(is, p),
                         dsc_parameter_needed(want, p) ? dsc_parameter_value(want, p) : 0);
    assert_int_equal(is->drafters, want->drafters);
    for (int d = 0; d < is->drafters; d++) {
        assert_string_equal(is->drafter[d].name, want->drafter[d].name);
        assert_int_equal(is->drafter[d].cap, want->drafter[d].cap);
    }
}

static void check_columns(const dsc_trace_info *want, int64_t shards)
{
    dsc_error err = {0};
    dsc_trace *t;
    int r = 0;
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_trace_verify(t, &err), &err);
    same_info(dsc_trace_get_info(t), want);
    assert_int_equal(dsc_trace_shards(t), shards);
    for (int64_t k = 0; k < shards; k++) {
        dsc_shard *s;
        expect_ok(dsc_shard_open(&s, t, k, &err), &err);
        assert_int_equal(dsc_shard_unknown(s), 0);
        for (int64_t i = 0; i < dsc_shard_requests(s); i++, r++) {
            dsc_request q;
            dsc_shard_request(s, i, &q);
            same_columns(&q, want, r);
        }
        dsc_shard_close(s);
    }
    assert_int_equal(r, REQUESTS);
    dsc_trace_close(t);
}

// Nothing, each field by itself (with the steps it needs), and all.
static void columns_round_trip(void **state)
{
    (void)state;
    const dsc_trace_info full = columns_info();
    for (int f = FIELD_TARGET_LOGP; f <= DSC_FIELDS; f++) {
        dsc_trace_info info = columns_info();
        for (dsc_field other = FIELD_TEXT; f < DSC_FIELDS && other < DSC_FIELDS; other++)
            if ((int)other != f)
                dsc_field_set(&info, other, 0);
        if (info.has_step_drafted || info.has_step_draft_s || info.has_step_verify_s)
            info.steps = f % 2 ? DSC_STEPS_ALIGNED : DSC_STEPS_LOGGED;
        for (int cut = 0; cut < 2; cut++) {
            write_columns(f == DSC_FIELDS ? &full : &info, cut);
            check_columns(f == DSC_FIELDS ? &full : &info, cut ? REQUESTS : 1);
        }
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
    dsc_request_copy room = {0};
    write_all();
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("b.dst"), dsc_trace_get_info(t), false, 0, &err),
              &err);
    for (int64_t i = 0; i < REQUESTS; i++) {
        dsc_request q;
        dsc_request_input in;
        dsc_shard_request(s, i, &q);
        expect_ok(dsc_request_copy_view(&room, &q, &in, &err), &err);
        expect_ok(dsc_trace_writer_add(w, &in, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    expect_ok(dsc_trace_open(&copy, in_scratch("b.dst"), &err), &err);
    assert_string_equal(dsc_trace_get_info(copy)->hash, dsc_trace_get_info(t)->hash);
    dsc_request_copy_fini(&room);
    dsc_trace_close(copy);
    dsc_shard_close(s);
    dsc_trace_close(t);
}

// Names, parameters and bytes of what is recorded.
static void recorded_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t bytes; // 11 output tokens, 5 steps, 4 requests
    } want[] = {{"tokens", 4 + 3 * 5 * 8 + 4 * (8 + 11)},
                {"references", 8 + 5 * 8},
                {"metadata", 5 * 8},
                {"target_logp", 44},
                {"draft_logp", 44},
                {"draft_argmax", 44},
                {"target_argmax", 44},
                {"draft_entropy", 44},
                {"target_entropy", 44},
                {"draft_rank", 22 * DEPTH},
                {"kseq", 88 * K},
                {"specinfer", 44 * (K + 1)},
                {"otm", 44 * OTM},
                {"draft_rollout", 44 * G},
                {"target_rollout", 44 * (G + 1)},
                {"candidates", 11 * (10 * NODES + 2 * PASSES)},
                {"marginals", 44 * OFFSETS * (2 * TOP + 1)},
                {"steps_aligned", 5 * 8 + 10},
                {"step_drafted", 10},
                {"step_draft_s", 20},
                {"step_verify_s", 20},
                {"accept", 2 * 22}};
    enum { WANTED = sizeof want / sizeof want[0] };
    dsc_error err = {0};
    dsc_trace *t;
    dsc_shard *s;
    char *parameters;
    write_all();
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    const dsc_trace_info *info = dsc_trace_get_info(t);
    for (int i = 0; i < WANTED; i++) {
        assert_string_equal(dsc_trace_recorded(info, i), want[i].name);
        assert_int_equal(dsc_shard_recorded_bytes(s, i), want[i].bytes);
    }
    assert_null(dsc_trace_recorded(info, WANTED));
    assert_null(dsc_trace_recorded(info, -1));
    assert_int_equal(dsc_shard_recorded_bytes(s, WANTED), 0);
    expect_ok(dsc_trace_parameters(&parameters, info, &err), &err);
    assert_string_equal(parameters,
                        "{\"rank_depth\":2,\"statistics_k\":3,\"rollout_length\":2,"
                        "\"candidate_steps\":2,\"candidate_topk\":5,"
                        "\"candidate_nodes\":4,\"marginal_offsets\":3,"
                        "\"marginal_top\":2,\"accept\":{\"z\":5,\"eagle-2.1_a+B\":65535}}");
    free(parameters);
    dsc_shard_close(s);
    dsc_trace_close(t);
    const dsc_trace_info none = sample_info(false, false);
    expect_ok(dsc_trace_parameters(&parameters, &none, &err), &err);
    assert_string_equal(parameters, "{}");
    free(parameters);
}

// --- statistics --------------------------------------------------------------------------------

// The reader accepts the statistics that theory/ computes for extreme distributions, rounded to
// float; the distribution of k drafts is at the place that dsc_sufficient_otm returns.
static void statistics_of_theory(void **state)
{
    (void)state;
    enum { V = 8, DISTS = 5 };
    static const double dists[DISTS][V] = {{1},
                                           {0, 1},
                                           {.5, .25, .25},
                                           {.125, .125, .125, .125, .125, .125, .125, .125},
                                           {1e-300, .5, 1e-12, .3, .2}};
    dsc_error err = {0};
    dsc_trace_info info = sample_info(false, false);
    info.statistics_k = DSC_STATISTICS_K_MAX;
    dsc_otm_sampler *sampler;
    expect_ok(dsc_otm_sampler_new(&sampler, &err), &err);
    static float kseq[DSC_STATISTICS_K_MAX][2], c[DSC_STATISTICS_K_MAX + 1];
    static float otm[DSC_STATISTICS_K_MAX * (DSC_STATISTICS_K_MAX + 3) / 2];
    const dsc_sufficient s = {kseq[0], c, otm};
    for (int pair = 0; pair < DISTS * DISTS; pair++) {
        const double *draft = dists[pair / DISTS], *target = dists[pair % DISTS];
        dsc_curve curve = {0};
        dsc_specinfer rounds = {0};
        expect_ok(dsc_curve_init(&curve, draft, target, V, &err), &err);
        expect_ok(dsc_specinfer_init(&rounds, &curve, DSC_STATISTICS_K_MAX, &err), &err);
        int y = 0;
        while (target[y] < .05)
            y++;
        for (int k = 1; k <= DSC_STATISTICS_K_MAX; k++) {
            double dist[DSC_STATISTICS_K_MAX + 1];
            dsc_kseq best = dsc_kseq_best(&curve, k);
            kseq[k - 1][0] = (float)best.rho;
            kseq[k - 1][1] = (float)best.beta;
            expect_ok(dsc_otm_sampler_build(sampler, draft, target, V, k, &err), &err);
            dsc_otm_sampler_survivors(sampler, draft[y], target[y], dist);
            float *out = otm + (dsc_sufficient_otm(&s, DSC_STATISTICS_K_MAX, 0, k) - otm);
            for (int m = 0; m <= k; m++)
                out[m] = (float)fmax(0, dist[m]); // what is left over may be a rounding below 0
        }
        for (int i = 0; i <= DSC_STATISTICS_K_MAX; i++)
            c[i] = (float)rounds.c[i];
        for (int column = COL_KSEQ; column <= COL_OTM; column++) {
            const void *data = column == COL_KSEQ ? (void *)kseq : column == COL_OTM ? otm : c;
            int64_t width = dsc_column_width(&info, column);
            assert_int_equal(dsc_bad_value(&info, column, DSC_F32, data, width), -1);
        }
        dsc_specinfer_fini(&rounds);
        dsc_curve_fini(&curve);
    }
    assert_ptr_equal(dsc_sufficient_otm(&s, 3, 0, 1), otm);
    assert_ptr_equal(dsc_sufficient_otm(&s, 3, 0, 2), otm + 2);
    assert_ptr_equal(dsc_sufficient_otm(&s, 3, 2, 3), otm + 2 * 9 + 5);
    dsc_otm_sampler_free(sampler);
}

static void amounts_are_found_anywhere(void **state)
{
    (void)state;
    enum { LONG = 2500 };
    static float x[LONG];
    assert_int_equal(dsc_bad_amount(x, LONG), -1);
    for (int i = 0; i < LONG; i++) {
        static const float bad[] = {__builtin_nanf(""), -1e-45f, __builtin_inff(),
                                    -__builtin_inff()};
        x[i] = bad[i % 4];
        assert_int_equal(dsc_bad_amount(x, LONG), i);
        x[i] = i % 2 ? -0.0f : 3.4028234e38f;
        assert_int_equal(dsc_bad_amount(x, LONG), -1);
    }
}

// --- steps against outputs ---------------------------------------------------------------------

static void aligned_steps_add_up(void **state)
{
    (void)state;
    static const struct {
        int64_t tokens, count;
        uint16_t accepted[4];
        bool good;
    } cases[] = {
        {0, 0, {0}, true},           // nothing was written
        {1, 0, {0}, true},           // all by the prefill
        {2, 0, {0}, false},          //
        {3, 2, {1, 0}, true},        // 2 + 1
        {4, 2, {1, 0}, true},        // prefill + 2 + 1
        {5, 2, {1, 0}, false},       // one more than they can have written
        {2, 2, {1, 0}, false},       // the last step would have written nothing
        {3, 2, {1, 9}, true},        // the last one cut to 1
        {1, 1, {65535}, true},       // so here
        {0, 1, {0}, false},          // a step writes a token at least
        {65537, 1, {65535}, true},   // prefill + 65536
        {65538, 1, {65535}, false},  //
        {7, 4, {2, 0, 1, 0}, true},  // 3 + 1 + 2 + 1
        {6, 4, {2, 0, 1, 0}, false}, // 3 + 1 + 2 were there before the last
    };
    dsc_trace_info info = sample_info(false, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const int32_t id[65538]; // the most tokens of a case
        const dsc_request_input q = {
            .output = {id, cases[i].tokens},
            .steps = {.count = cases[i].count, .accepted = cases[i].accepted},
        };
        dsc_error err = {0};
        info.steps = DSC_STEPS_ALIGNED;
        dsc_input_columns columns = dsc_input_columns_of(&info);
        int rc = dsc_check_request(&info, &columns, &q, 3, NULL, &err);
        if (cases[i].good)
            expect_ok(rc, &err);
        else
            expect_failure(rc, DSC_EINPUT, &err, "request 3: the output has ");
        info.steps = DSC_STEPS_LOGGED;
        columns = dsc_input_columns_of(&info);
        assert_int_equal(dsc_check_request(&info, &columns, &q, 3, NULL, &err), DSC_OK);
    }
}

// --- the writer refuses ------------------------------------------------------------------------

enum { USAGE_CASES = 5, CASES = 30 };

// Makes change number i to request 3. Returns the expected message.
static const char *spoil(int i, dsc_request_input *q)
{
    made *m = &all[3];
    switch (i) {
    case 0: q->replayed.draft_rank = NULL; return "request 0: 'draft.rank_y' is missing";
    case 1: q->accept[1] = NULL; return "request 0: 'accept.eagle-2.1_a+B' is missing";
    case 2: q->steps.accepted = NULL; return "request 0: 'step.accepted' is missing";
    case 3: q->steps.count = -1; return "request 0: the number of steps is negative";
    case 4: q->steps.verify_s = NULL; return "request 0: 'step.verify_s' is missing";
    case 5: m->draft_logp[6] = 1e-7f; return "'draft.logp_y'[6]: 1e-07 is not the logarithm";
    case 6: m->entropy[0][2] = -1; return "'draft.entropy'[2]: -1 is not finite and >= 0";
    case 7: m->entropy[1][0] = __builtin_inff(); return "'target.entropy'[0]: inf is not finite";
    case 8: m->argmax[0][1] = VOCAB; return "'draft.argmax'[1]: token id 1000 is outside";
    case 9: m->argmax[1][1] = -1; return "'target.argmax'[1]: token id 4294967295 is outside";
    case 10: m->rank[6][1] = VOCAB; return "'draft.rank_y'[13]: rank 1000 is outside";
    case 11: m->kseq[1][0][0] = 1.5f; return "'stat.kseq'[6]: 1.5 is not in range";
    case 12: m->kseq[1][2][1] = __builtin_nanf(""); return "'stat.kseq'[11]: nan is not in range";
    case 13: m->specinfer[2][0] = 1e-6f; return "'stat.specinfer'[8]: 1e-06; c_1 must be 0";
    case 14: m->specinfer[2][3] = 3.5f; return "'stat.specinfer'[11]: 3.5; c_1 must be 0";
    case 15: m->otm[0][8] = -.5f; return "'stat.otm'[8]: -0.5 is not in [0, 1]";
    case 16: m->otm[6][2] += 2e-4f; return "'stat.otm'[56]: ";
    case 17: m->draft_rollout[6][1] = 5000; return "'rollout.draft'[13]: token id 5000";
    case 18: m->target_rollout[6][2] = 5000; return "'rollout.target'[20]: token id 5000";
    case 19: m->accept[0][4] = 6; return "'accept.z'[4]: length 6 is above the drafter's cap of 5";
    case 20: m->drafted[2] = 3; return "request 0: step 2 accepted 4 tokens but drafted only 3";
    case 21: m->draft_s[1] = -1; return "'step.draft_s'[1]: -1 is not finite";
    case 22: m->accepted[1] = m->drafted[1] = 3; return "aligned steps must add up to the output";
    case 23: m->candidate[1][2] = VOCAB; return "'candidate.token'[6]: token id 1000 is outside";
    case 24: m->parent[1][1] = 2; return "'candidate.parent'[5]: parent 2; it must be";
    case 25:
        m->parent[0][1] = DSC_PARENT_NONE;
        return "'candidate.parent'[2]: parent "; // one follows the end
    case 26: m->path[1][1] = 1e-7f; return "'candidate.logp'[5]: 1e-07 is not the logarithm";
    case 27: m->marginal[1][0][1] = -1; return "'marginal.token'[7]: token id";
    case 28: m->logp_y[1][1] = .5f; return "'marginal.logp_y'[4]: 0.5 is not the logarithm";
    default: q->output.count = 2; return "the output has 2 tokens, but its steps wrote";
    }
}

static void bad_columns_are_not_written(void **state)
{
    (void)state;
    const dsc_trace_info info = columns_info();
    for (int i = 0; i < CASES; i++) {
        dsc_error err = {0};
        dsc_trace_writer *w;
        make_all();
        dsc_request_input q = request_of(3);
        const char *word = spoil(i, &q);
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), &err);
        expect_failure(dsc_trace_writer_add(w, &q, &err), i < USAGE_CASES ? DSC_EUSAGE : DSC_EINPUT,
                       &err, word);
        make_all(); // and nothing of it is left
        for (int r = 0; r < REQUESTS; r++) {
            q = request_of(r);
            expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
        }
        expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
        check_columns(&info, 1);
    }
}

static void bad_descriptions_are_refused(void **state)
{
    (void)state;
    static const char *const words[] = {
        "rank_depth is 0; it must be 1 to 65535",
        "statistics_k is 65; it must be 1 to 64",
        "rollout_length is -1",
        "unknown kind 3 of steps",
        "times of steps require the steps",
        "accept lengths of 17 drafters; the limit is 16",
        "accept lengths of -1 drafters",
        "a drafter's name must be 1 to 63 letters",
        "a drafter's name must be 1 to 63",
        "a drafter's name must be 1 to 63",
        "the cap of drafter z is 0; it must be 1",
        "the cap of drafter z is 65536",
        "two drafters are named z",
        "candidate_steps is 0; it must be 1 to 65535",
        "candidate_topk is -1",
        "candidate_nodes is 65535; it must be 1 to 65534",
        "marginal_offsets is 0",
        "marginal_top is 65536",
    };
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++) {
        dsc_error err = {0};
        dsc_trace_writer *w;
        dsc_trace_info info = columns_info();
        switch (i) {
        case 0: info.rank_depth = 0; break;
        case 1: info.statistics_k = DSC_STATISTICS_K_MAX + 1; break;
        case 2: info.rollout_length = -1; break;
        case 3: info.steps = (dsc_steps_kind)3; break;
        case 4: info.steps = DSC_STEPS_NONE; break;
        case 5: info.drafters = 17; break;
        case 6: info.drafters = -1; break;
        case 7: info.drafter[1].name[0] = '\0'; break;
        case 8: info.drafter[0].name[0] = '/'; break;
        case 9: memset(info.drafter[0].name, 'x', DSC_DRAFTER_NAME_BYTES); break;
        case 10: info.drafter[0].cap = 0; break;
        case 11: info.drafter[0].cap = 65536; break;
        case 12: strcpy(info.drafter[1].name, "z"); break;
        case 13: info.candidate_steps = 0; break;
        case 14: info.candidate_topk = -1; break;
        case 15: info.candidate_nodes = 65535; break;
        case 16: info.marginal_offsets = 0; break;
        case 17: info.marginal_top = 65536; break;
        }
        expect_failure(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err),
                       DSC_EUSAGE, &err, words[i]);
        assert_null(w);
    }
}

// --- the reader refuses ------------------------------------------------------------------------

static void values_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *tensor;
        int64_t index;
        union {
            int64_t i64;
            uint32_t u32;
            float f32;
            uint16_t u16;
        } value;
        const char *word;
    } cases[] = {
        {"draft.logp_y", 0, {.f32 = 0.5f}, "'draft.logp_y'[0]: 0.5 is not the logarithm"},
        {"draft.logp_y", -1, {.f32 = __builtin_nanf("")}, "'draft.logp_y'[10]: nan"},
        {"draft.argmax", 3, {.u32 = VOCAB}, "'draft.argmax'[3]: token id 1000 is outside"},
        {"target.argmax", -1, {.u32 = UINT32_MAX}, "'target.argmax'[10]: token id 4294967295"},
        {"draft.entropy", 5, {.f32 = -1}, "'draft.entropy'[5]: -1 is not finite and >= 0"},
        {"target.entropy", 5, {.f32 = __builtin_inff()}, "'target.entropy'[5]: inf"},
        {"draft.rank_y", 7, {.u16 = 65534}, "'draft.rank_y'[7]: rank 65534 is outside"},
        {"stat.kseq", 0, {.f32 = 0.999f}, "'stat.kseq'[0]: 0.999 is not in range"},
        {"stat.kseq", 2, {.f32 = 2.001f}, "'stat.kseq'[2]: 2.001 is not in range"},
        {"stat.kseq", -1, {.f32 = 1.001f}, "'stat.kseq'[65]: 1.001 is not in range"},
        {"stat.kseq", 1, {.f32 = __builtin_nanf("")}, "'stat.kseq'[1]: nan is not in range"},
        {"stat.specinfer", 4, {.f32 = -0.1f}, "'stat.specinfer'[4]: -0.1; c_1 must be 0"},
        {"stat.specinfer", 5, {.f32 = 1.1f}, "'stat.specinfer'[5]: 1.1; c_1 must be 0"},
        {"stat.specinfer", 6, {.f32 = __builtin_nanf("")}, "'stat.specinfer'[6]: nan"},
        {"stat.specinfer", 7, {.f32 = 0}, "'stat.specinfer'[7]: 0; c_1 must be 0"},
        {"stat.otm", 0, {.f32 = 1.5f}, "'stat.otm'[0]: 1.5 is not in [0, 1]"},
        {"stat.otm", 98, {.f32 = __builtin_nanf("")}, "'stat.otm'[98]: nan is not in [0, 1]"},
        {"stat.otm", 98, {.f32 = 1}, "or the distribution that begins here does not sum to 1"},
        {"rollout.draft", 21, {.u32 = VOCAB}, "'rollout.draft'[21]: token id 1000"},
        {"rollout.target", 32, {.u32 = 1u << 31}, "'rollout.target'[32]: token id 2147483648"},
        {"step.offset", 1, {.i64 = -1}, "'step.offset'[1]: offset -1"},
        {"step.offset", 1, {.i64 = 3}, "'step.offset'[2]: offset 2"},
        {"step.offset", -1, {.i64 = 4}, "'step.accepted' has 5 elements"},
        {"step.offset", -1, {.i64 = INT64_MAX}, "'step.accepted' has 5 elements"},
        {"step.accepted",
         1,
         {.u16 = 2},
         "'step.accepted'[1]: 2 tokens were accepted, but only 1 drafted"},
        {"step.drafted",
         -1,
         {.u16 = 3},
         "'step.accepted'[4]: 4 tokens were accepted, but only 3 drafted"},
        {"step.draft_s", 2, {.f32 = -1e-9f}, "'step.draft_s'[2]: -1e-09 is not finite"},
        {"step.verify_s", 4, {.f32 = __builtin_nanf("")}, "'step.verify_s'[4]: nan"},
        {"accept.z", 10, {.u16 = 6}, "'accept.z'[10]: length 6 is above the drafter's cap of 5"},
    };
    size_t n;
    write_all();
    char *sound = get_file(in_scratch(FIRST_SHARD), &n);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err;
        put_file(in_scratch(FIRST_SHARD), sound, n);
        patch(cases[i].tensor, cases[i].index, &cases[i].value);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, cases[i].word);
        assert_non_null(strstr(err.message, FIRST_SHARD));
    }
    put_file(in_scratch(FIRST_SHARD), sound, n);
    free(sound);
    dsc_error err;
    patch("step.offset", 1, &(int64_t){3}); // a step of the last request becomes the first's
    patch("step.offset", 2, &(int64_t){3});
    patch("step.offset", 3, &(int64_t){3});
    reseal(NULL, 0);
    assert_int_equal(open_shard(&err), DSC_OK);
    expect_failure(
        verify("a.dst", &err), DSC_EINPUT, &err,
        "request 0: the output has 3 tokens, but its steps wrote 6 (3 before the last step)");
}

static void tensors_are_checked(void **state)
{
    (void)state;
    static const uint32_t zeros[128];
    static const struct {
        dsc_tensor tensor;
        const char *word;
    } cases[] = {
        {{"accept.z", DSC_U32, 1, {11}, 0, zeros, 0, 0},
         "'accept.z' is U32 of rank 1; it must be U16"},
        {{"accept.z", DSC_U16, 1, {10}, 0, zeros, 0, 0},
         "'accept.z' has 10 elements; by the last entry of"},
        {{"accept.z", DSC_U16, 1, {0}, 0, NULL, 0, 0}, "'accept.z' is missing"},
        {{"step.offset", DSC_I64, 1, {4}, 0, zeros, 0, 0}, "'step.offset' has 4 elements"},
        {{"step.offset", DSC_I64, 1, {5}, 0, zeros, 0, 0}, "'step.accepted' has 5 elements"},
        {{"step.drafted", DSC_U16, 1, {6}, 0, zeros, 0, 0}, "'step.drafted' has 6 elements"},
        {{"draft.rank_y", DSC_U16, 1, {11}, 0, zeros, 0, 0}, "'draft.rank_y' is U16 of rank 1"},
        {{"draft.rank_y", DSC_U16, 2, {11, 3}, 0, zeros, 0, 0},
         "dimension 1 of tensor 'draft.rank_y' is 3; by the manifest it must be 2"},
        {{"draft.rank_y", DSC_U16, 2, {22, 1}, 0, zeros, 0, 0}, "dimension 1 of tensor"},
        {{"stat.kseq", DSC_F32, 2, {11, 6}, 0, zeros, 0, 0}, "'stat.kseq' is F32 of rank 2"},
        {{"stat.kseq", DSC_F32, 3, {11, 2, 3}, 0, zeros, 0, 0},
         "dimension 1 of tensor 'stat.kseq'"},
        {{"stat.kseq", DSC_F32, 3, {11, 3, 1}, 0, zeros, 0, 0},
         "dimension 2 of tensor 'stat.kseq'"},
        {{"stat.specinfer", DSC_BF16, 2, {11, 4}, 0, zeros, 0, 0}, "'stat.specinfer' is BF16"},
        {{"stat.specinfer", DSC_F32, 2, {10, 4}, 0, zeros, 0, 0}, "'stat.specinfer' has 10"},
        {{"rollout.target", DSC_U32, 2, {11, 2}, 0, zeros, 0, 0}, "'rollout.target' is 2; by"},
        {{"rollout.draft", DSC_U32, 2, {0, 2}, 0, zeros, 0, 0}, "'rollout.draft' has 0 elements"},
        {{"target.entropy", DSC_F64, 1, {11}, 0, zeros, 0, 0}, "'target.entropy' is F64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err;
        write_all();
        replace(cases[i].tensor);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, cases[i].word);
    }
}

// Sets root[key], or root[object][key], to a JSON value; NULL takes it away.
static void change(const char *object, const char *key, const char *value)
{
    json_t *root = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL);
    json_t *at = object ? json_object_get(root, object) : root;
    assert_non_null(at);
    if (value)
        assert_int_equal(json_object_set_new(at, key, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    else
        assert_int_equal(json_object_del(at, key), 0);
    assert_int_equal(json_dump_file(root, in_scratch("a.dst/manifest.json"), 0), 0);
    json_decref(root);
}

#define STEP_LIST "[\"tokens\", \"step_draft_s\"]"

static void manifest_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *object, *key, *value, *word;
    } cases[] = {
        {NULL, "parameters", NULL, "\"parameters\": missing"},
        {NULL, "parameters", "[]", "\"parameters\": must be an object"},
        {NULL, "recorded", STEP_LIST, "lists drafted tokens or times of steps without"},
        {NULL, "recorded", "[\"tokens\", \"steps\", \"steps_aligned\"]", "lists both \"steps_ali"},
        {"parameters", "rank_depth", NULL, "\"parameters.rank_depth\": missing"},
        {"parameters", "rank_depth", "0", "\"parameters.rank_depth\": 0 is not in [1, 65535]"},
        {"parameters", "statistics_k", "65", "\"parameters.statistics_k\": 65 is not in [1, 64]"},
        {"parameters", "statistics_k", "2.0", "\"parameters.statistics_k\": must be an integer"},
        {"parameters", "rollout_length", "65536", "\"parameters.rollout_length\": 65536 is not"},
        {"parameters", "accept", NULL, "\"parameters.accept\": missing"},
        {"parameters", "accept", "5", "\"parameters.accept\": must be an object"},
        {"parameters", "accept", "{}", "0 drafters, must be 1 to 16"},
        {"parameters", "accept", "{\"a/b\": 1}",
         "\"parameters.accept.a/b\": a drafter's name must be"},
        {"parameters", "accept", "{\"\": 1}", "\"parameters.accept.\": a drafter's name must be"},
        {"parameters", "accept", "{\"z\": 0}", "\"parameters.accept.z\": 0 is not in [1, 65535]"},
        {"parameters", "accept", "{\"z\": null}", "\"parameters.accept.z\": must be an integer"},
        {"parameters", "rank_depth", "3", "\"manifest_sha256\": does not match"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err = {0};
        dsc_trace *t;
        write_all();
        change(cases[i].object, cases[i].key, cases[i].value);
        expect_failure(dsc_trace_open(&t, in_scratch("a.dst"), &err), DSC_EINPUT, &err,
                       cases[i].word);
    }
    dsc_buffer many = {0};
    dsc_error err = {0};
    dsc_trace *t;
    for (int i = 0; i < 17; i++)
        dsc_buffer_printf(&many, &err, "%c\"d%d\":1", i ? ',' : '{', i);
    dsc_buffer_puts(&many, "}", &err);
    write_all();
    change("parameters", "accept", many.data);
    expect_failure(dsc_trace_open(&t, in_scratch("a.dst"), &err), DSC_EINPUT, &err,
                   "17 drafters, must be 1 to 16");
    dsc_buffer_fini(&many);
}

// Columns that the manifest does not list, and its unknown fields, are ignored.
static void unknown_is_left_unread(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace *t;
    dsc_shard *s;
    write_all();
    change(NULL, "recorded", "[\"tokens\", \"steps\", \"step_drafted\", \"kseq\", \"new\"]");
    change("parameters", "future", "{\"x\": [1]}");
    reseal(NULL, 0);
    expect_ok(verify("a.dst", &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    const dsc_trace_info *info = dsc_trace_get_info(t);
    assert_int_equal(info->steps, DSC_STEPS_LOGGED);
    assert_int_equal(info->rank_depth, 0);
    assert_int_equal(info->statistics_k, K);
    assert_int_equal(info->drafters, 0);
    assert_int_equal(dsc_shard_unknown(s), 27 - 5); // of 23 columns, offsets and two drafters
    dsc_shard_close(s);
    dsc_trace_close(t);
}

static void corrupted_anywhere(void **state)
{
    (void)state;
    write_all();
    check_corrupted(7);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_columns)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_round_trip),
        TEST(views_can_be_written),
        TEST(recorded_is_told),
        cmocka_unit_test(statistics_of_theory),
        cmocka_unit_test(amounts_are_found_anywhere),
        cmocka_unit_test(aligned_steps_add_up),
        TEST(bad_columns_are_not_written),
        TEST(bad_descriptions_are_refused),
        TEST(values_are_checked),
        TEST(tensors_are_checked),
        TEST(manifest_is_checked),
        TEST(unknown_is_left_unread),
        TEST(corrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

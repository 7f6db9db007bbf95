// SPDX-License-Identifier: Apache-2.0
// A trace with every column that has a value for each output token or step, of a few requests.
#ifndef DSC_TESTS_UNIT_TRACE_COLUMNS_FIXTURE_H
#define DSC_TESTS_UNIT_TRACE_COLUMNS_FIXTURE_H

#include "tests/unit/trace_fixture.h"
#include "traces/trace/trace_copy.h"

enum { REQUESTS = 4, MOST = 7, K = 3, G = 2, DEPTH = 2, OTM = K * (K + 3) / 2, STEPS = 3 };
enum { NODES = 4, PASSES = 2, TOPK = 5, OFFSETS = 3, TOP = 2 };

static const int64_t outputs[REQUESTS] = {3, 0, 1, MOST};
static const int64_t step_counts[REQUESTS] = {2, 0, 0, 3};

// All that can be recorded of one request, in the type of its tensors.
typedef struct made {
    float target_logp[MOST], draft_logp[MOST], entropy[DSC_SIDES][MOST];
    int32_t argmax[DSC_SIDES][MOST], draft_rollout[MOST][G], target_rollout[MOST][G + 1];
    uint16_t rank[MOST][DEPTH], accept[2][MOST];
    float kseq[MOST][K][2], specinfer[MOST][K + 1], otm[MOST][OTM];
    uint16_t accepted[STEPS], drafted[STEPS];
    float draft_s[STEPS], verify_s[STEPS];
    int32_t candidate[MOST][NODES], marginal[MOST][OFFSETS][TOP];
    uint16_t parent[MOST][NODES], scored[MOST][PASSES];
    float path[MOST][NODES], marginal_logp[MOST][OFFSETS][TOP], logp_y[MOST][OFFSETS];
} made;

static made all[REQUESTS];

static float uniform(uint64_t *random)
{
    return (float)(draw(random) >> 40) * 0x1p-24f;
}

static void make_dist(float *dist, int n, uint64_t *random)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += dist[i] = uniform(random);
    for (int i = 0; i < n; i++)
        dist[i] /= sum;
}

static void make_position(made *m, int64_t j, uint64_t *random)
{
    m->target_logp[j] = -uniform(random);
    m->draft_logp[j] = j % 3 == 1 ? -__builtin_inff() : -uniform(random);
    for (int side = 0; side < DSC_SIDES; side++) {
        m->entropy[side][j] = 5 * uniform(random);
        m->argmax[side][j] = (int32_t)(draw(random) % VOCAB);
    }
    for (int i = 0; i < G; i++)
        m->draft_rollout[j][i] = (int32_t)(draw(random) % VOCAB);
    for (int i = 0; i <= G; i++)
        m->target_rollout[j][i] = (int32_t)(draw(random) % VOCAB);
    for (int d = 0; d < DEPTH; d++)
        m->rank[j][d] = j % 4 == 3 ? DSC_RANK_NONE : (uint16_t)(draw(random) % VOCAB);
    for (int i = 0; i < NODES; i++) { // the last one is missing at every other position
        const bool none = i + 1 == NODES && j % 2;
        m->candidate[j][i] = none ? 0 : (int32_t)(draw(random) % VOCAB);
        m->parent[j][i] = none ? DSC_PARENT_NONE : (uint16_t)(draw(random) % (uint64_t)(i + 1));
        m->path[j][i] = none ? -__builtin_inff() : -uniform(random);
    }
    for (int i = 0; i < PASSES; i++)
        m->scored[j][i] = (uint16_t)(draw(random) % (TOPK + 1));
    for (int i = 0; i < OFFSETS; i++) {
        for (int t = 0; t < TOP; t++) {
            m->marginal[j][i][t] = (int32_t)(draw(random) % VOCAB);
            m->marginal_logp[j][i][t] = t && j % 3 == 0 ? -__builtin_inff() : -uniform(random);
        }
        m->logp_y[j][i] = -uniform(random);
    }
    m->accept[0][j] = (uint16_t)(draw(random) % 6);
    m->accept[1][j] = (uint16_t)(draw(random) % 65536);
    for (int k = 1, at = 0; k <= K; at += ++k) {
        m->kseq[j][k - 1][0] = 1 + (float)(k - 1) * uniform(random);
        m->kseq[j][k - 1][1] = uniform(random);
        make_dist(&m->otm[j][at], k + 1, random);
        m->specinfer[j][k] = m->specinfer[j][k - 1] + uniform(random);
    }
}

static void make_all(void)
{
    static const uint16_t accepted[REQUESTS][STEPS] = {{1, 0}, {0}, {0}, {2, 0, 4}};
    uint64_t random = 1;
    memset(all, 0, sizeof all);
    for (int r = 0; r < REQUESTS; r++) {
        for (int64_t j = 0; j < outputs[r]; j++)
            make_position(&all[r], j, &random);
        for (int i = 0; i < STEPS; i++) {
            all[r].accepted[i] = accepted[r][i];
            all[r].drafted[i] = (uint16_t)(accepted[r][i] + i % 2);
            all[r].draft_s[i] = uniform(&random);
            all[r].verify_s[i] = uniform(&random);
        }
    }
}

static dsc_trace_info columns_info(void)
{
    dsc_trace_info info = sample_info(false, true);
    info.has_draft_logp = info.has_draft_rank = true;
    info.has_kseq = info.has_specinfer = info.has_otm = true;
    for (int side = 0; side < DSC_SIDES; side++)
        info.has_argmax[side] = info.has_entropy[side] = info.has_rollout[side] = true;
    info.has_candidates = info.has_marginals = true;
    info.candidate_steps = PASSES;
    info.candidate_topk = TOPK;
    info.candidate_nodes = NODES;
    info.marginal_offsets = OFFSETS;
    info.marginal_top = TOP;
    info.steps = DSC_STEPS_ALIGNED;
    info.has_step_drafted = info.has_step_draft_s = info.has_step_verify_s = true;
    info.rank_depth = DEPTH;
    info.statistics_k = K;
    info.rollout_length = G;
    info.drafters = 2;
    info.drafter[0] = (dsc_drafter_record){"z", 5};
    info.drafter[1] = (dsc_drafter_record){"eagle-2.1_a+B", 65535};
    return info;
}

static dsc_request_input request_of(int r)
{
    static const int32_t tokens[MOST] = {1, 2, 3, 4, 5, 6, 7};
    static const char ids[] = "abcdefgh";
    made *m = &all[r];
    return (dsc_request_input){
        .id = {ids + r, 1},
        .prompt = {tokens, 2},
        .output = {tokens, outputs[r]},
        .target_logp = m->target_logp,
        .draft_logp = m->draft_logp,
        .accept = {m->accept[0], m->accept[1]},
        .steps = {step_counts[r], m->accepted, m->drafted, m->draft_s, m->verify_s},
        .replayed = {{m->argmax[0], m->argmax[1]}, {m->entropy[0], m->entropy[1]}, m->rank[0]},
        .sufficient = {m->kseq[0][0], m->specinfer[0], m->otm[0]},
        .rollouts = {m->draft_rollout[0], m->target_rollout[0]},
        .candidates = {m->candidate[0], m->parent[0], m->path[0], m->scored[0]},
        .marginals = {m->marginal[0][0], m->marginal_logp[0][0], m->logp_y[0]},
    };
}

static void write_columns(const dsc_trace_info *info, int64_t shard_tokens)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    make_all();
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), info, true, shard_tokens, &err), &err);
    for (int r = 0; r < REQUESTS; r++) {
        dsc_request_input q = request_of(r);
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static void write_all(void)
{
    const dsc_trace_info info = columns_info();
    write_columns(&info, 0);
}

#endif

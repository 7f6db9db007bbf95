// SPDX-License-Identifier: Apache-2.0
// Times expectations on recorded columns, with draft lengths 1..32 in one pass, in output positions
// per second and core. The bar is 5 M for rule rejection.
//
// Usage: bench_expect [POSITIONS]; prints CSV, the best of 40 rounds. Columns are synthetic, with
// acceptance rates of 0.5 to 1.
#include "sim/expect/expect_rule.h"
#include "tests/bench/bench.h"
#include "tests/zero_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { LENGTHS = 32, OUTPUT = 1000, K = 8, ROUNDS = 40 };

static double uniform(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(*s >> 11) * 0x1p-53;
}

typedef struct made_up {
    int32_t output[OUTPUT], argmax[OUTPUT];
    float draft[OUTPUT], target[OUTPUT], kseq[OUTPUT][K][2];
    dsc_request request;
    dsc_trace_info info;
} made_up;

// The statistics are those of one pair of distributions at every position; the walk does not care.
static void make_up(made_up *m)
{
    uint64_t s = 1;
    for (int t = 0; t < OUTPUT; t++) {
        double target = .2 + .8 * uniform(&s), ratio = .5 + uniform(&s);
        m->output[t] = 1;
        m->argmax[t] = uniform(&s) < .8;
        m->target[t] = (float)log(target);
        m->draft[t] = (float)log(fmin(target * ratio, 1));
        for (int k = 1; k <= K; k++) {
            m->kseq[t][k - 1][0] = (float)(1 + .3 * (k - 1));
            m->kseq[t][k - 1][1] = (float)(.7 / (1 + .2 * (k - 1)));
        }
    }
    m->request = (dsc_request){.output = {m->output, OUTPUT},
                               .target_logp = m->target,
                               .draft_logp = m->draft,
                               .replayed.argmax[DSC_SIDE_DRAFT] = m->argmax,
                               .sufficient.kseq = m->kseq[0][0]};
    m->info = (dsc_trace_info){.vocab_size = 2,
                               .max_output_tokens = OUTPUT,
                               .has_target_logp = true,
                               .has_draft_logp = true,
                               .has_argmax[DSC_SIDE_DRAFT] = true,
                               .has_kseq = true,
                               .statistics_k = K};
}

typedef struct row {
    const char *name;
    const dsc_drafter_type *drafter;
    const dsc_verifier_type *rule;
    int drafts;
} row;

static void run(const row *r, const made_up *m, int64_t positions)
{
    dsc_error e;
    dsc_config config[LENGTHS];
    dsc_rule_plan plan;
    dsc_arena arena = {0};
    dsc_position_room room = {0};
    dsc_counts counts[LENGTHS];
    dsc_expected expected[LENGTHS];
    static int64_t unused[LENGTHS][LENGTHS + 1];
    static double histogram[LENGTHS][LENGTHS + 1];
    for (int l = 0; l < LENGTHS; l++) {
        bool several = r->drafter == &dsc_drafter_spectr;
        config[l] = (dsc_config){.drafter = r->drafter};
        config[l].parameter[0] = r->drafts;
        config[l].parameter[several] = l + 1;
        counts[l] = zero_counts(unused[l], LENGTHS);
        expected[l] = (dsc_expected){.histogram = histogram[l]};
        counts[l].expected = &expected[l];
    }
    must(dsc_rule_plan_init(&plan, config, LENGTHS, r->rule, &m->info, &e), &e);
    double best = 1e99;
    for (int round = 0; round < ROUNDS; round++) {
        double start = thread_s();
        for (int64_t done = 0; done < positions; done += OUTPUT) {
            dsc_arena_reset(&arena);
            must(dsc_expect_rule_run(&plan, &m->request, &room, &arena, counts, &e), &e);
        }
        double took = thread_s() - start;
        best = took < best ? took : best;
    }
    printf("%s,%d,%d,%.3f,%.6f\n", r->name, r->drafts, LENGTHS, (double)positions / best / 1e6,
           dsc_block_efficiency(&counts[LENGTHS - 1]));
    dsc_rule_plan_fini(&plan);
    dsc_position_room_fini(&room);
    dsc_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    static const row rows[] = {
        {"draft-model greedy", &dsc_drafter_draft_model, &dsc_verifier_greedy, 1},
        {"draft-model rejection", &dsc_drafter_draft_model, &dsc_verifier_rejection, 1},
        {"draft-model block", &dsc_drafter_draft_model, &dsc_verifier_block, 1},
        {"spectr kseq", &dsc_drafter_spectr, &dsc_verifier_kseq, 2},
        {"spectr kseq", &dsc_drafter_spectr, &dsc_verifier_kseq, 4},
        {"spectr kseq", &dsc_drafter_spectr, &dsc_verifier_kseq, 8},
    };
    int64_t positions = argc > 1 ? strtoll(argv[1], NULL, 10) : 50000;
    made_up *m = calloc(1, sizeof *m);
    if (!m)
        return 1;
    make_up(m);
    printf("# %s\nwork,drafts,lengths,M_positions_per_s,block_efficiency\n", BENCH_FLAGS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run(&rows[i], m, i < 3 ? positions : positions / 10);
    free(m);
    return 0;
}

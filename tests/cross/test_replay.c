// SPDX-License-Identifier: Apache-2.0
// The loop and the exact replay of all draft lengths must agree to the last count, and their
// metrics with a direct recomputation from the records of steps.
#include "tests/close.h"

#include "sim/expect/expect.h"
#include "sim/loop.h"
#include "sim/model/model_trace.h"

#include <math.h>
#include <string.h>

// A request made up for a test: references that share spans with the output.
enum { MOST_TOKENS = 4000, MOST_REFERENCES = 6 };
typedef struct made_up {
    int32_t prompt[64], output[256], reference[MOST_TOKENS];
    int64_t offset[MOST_REFERENCES + 1];
    uint8_t kind[MOST_REFERENCES];
    dsc_request request;
} made_up;

static uint32_t lcg(uint32_t *s)
{
    return (*s = *s * 1664525u + 1013904223u) >> 8;
}

static void make_up(made_up *m, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 1;
    int32_t vocabulary = 2 + (int32_t)(lcg(&s) % (seed % 3 ? 40 : 3));
    int64_t references = lcg(&s) % (MOST_REFERENCES + 1), total = 0;
    m->offset[0] = 0;
    for (int64_t r = 0; r < references; r++) {
        int64_t n = lcg(&s) % 60;
        for (int64_t j = 0; j < n; j++)
            m->reference[total++] = (int32_t)(lcg(&s) % (uint32_t)vocabulary);
        m->offset[r + 1] = total;
        m->kind[r] = lcg(&s) % 3 == 0;
    }
    for (int j = 0; j < 64; j++)
        m->prompt[j] = (int32_t)(lcg(&s) % (uint32_t)vocabulary);
    int64_t length = lcg(&s) % 200, i = 0;
    while (i < length) { // spans of the references with errors in between
        int64_t from = total ? lcg(&s) % (uint32_t)total : 0, n = total ? lcg(&s) % 25 : 0;
        for (int64_t j = 0; j < n && from + j < total && i < length; j++)
            m->output[i++] = m->reference[from + j];
        if (i < length)
            m->output[i++] = (int32_t)(lcg(&s) % (uint32_t)vocabulary);
    }
    m->request = (dsc_request){.index = seed,
                               .prompt = {m->prompt, lcg(&s) % 64},
                               .output = {m->output, length},
                               .references = references,
                               .reference_offset = m->offset,
                               .reference_token = m->reference,
                               .reference_kind = m->kind};
}

enum { N, K, MAX_MATCH, TIE, SEMANTICS, REFERENCES }; // LLMA's options

static dsc_config llma(int64_t n, int64_t k, int64_t max_match, int64_t tie, int64_t semantics,
                       int64_t references)
{
    return (dsc_config){.drafter = &dsc_drafter_llma,
                        .parameter = {n, k, max_match, tie, semantics, references}};
}

static void assert_same(const dsc_counts *a, const dsc_counts *b)
{
    assert_int_equal(a->target_call_tokens, b->target_call_tokens);
    assert_int_equal(a->target_call_context, b->target_call_context);
    assert_int_equal(a->output_context, b->output_context);
    assert_int_equal(a->requests, b->requests);
    assert_int_equal(a->output_tokens, b->output_tokens);
    assert_int_equal(a->target_calls, b->target_calls);
    assert_int_equal(a->num_drafts_started, b->num_drafts_started);
    assert_int_equal(a->num_drafts, b->num_drafts);
    assert_int_equal(a->num_draft_tokens, b->num_draft_tokens);
    assert_int_equal(a->num_accepted_tokens, b->num_accepted_tokens);
    for (int64_t m = 0; m < a->histogram_length; m++)
        assert_int_equal(a->histogram[m], b->histogram[m]);
    for (int64_t m = 0; m < a->histogram_length; m++)
        assert_int_equal(a->whole[m], b->whole[m]);
    assert_int_equal(a->lengths_length, b->lengths_length);
    for (int64_t m = 0; m < a->lengths_length; m++)
        assert_int_equal(a->lengths[m], b->lengths[m]);
    for (int64_t m = 0; m < a->width_length; m++)
        assert_int_equal(a->width[m], b->width[m]);
}

// Checks the counts of one request for properties that hold under every lossless rule.
static void assert_sound(const dsc_counts *c, int64_t length)
{
    int64_t calls = 0, accepted = 0;
    for (int64_t m = 0; m < c->histogram_length; m++) {
        calls += c->histogram[m];
        accepted += m * c->histogram[m];
        assert_true(c->histogram[m] >= 0);
    }
    assert_int_equal(calls, c->target_calls);
    assert_int_equal(accepted, c->num_accepted_tokens);
    assert_int_equal(c->output_tokens, length);
    assert_int_equal(c->target_calls + c->num_accepted_tokens, length);
    assert_true(c->num_accepted_tokens <= c->num_draft_tokens);
    assert_true(c->num_drafts <= c->num_drafts_started);
    assert_true(c->num_drafts_started <= c->target_calls);
}

enum { ROOM = 256, LONGEST = 64, LISTS = 2 * ROOM + 2 * (LONGEST + 1) };

static dsc_counts zero_counts(int64_t lists[LISTS])
{
    const dsc_counts_room room = {.most = ROOM - 1, .limit = LONGEST, .width = LONGEST + 1};
    assert_int_equal(dsc_counts_elements(&room), LISTS);
    memset(lists, 0, LISTS * sizeof *lists);
    return dsc_counts_in(lists, &room);
}

typedef struct bench {
    dsc_arena arena;
    dsc_loop loop;
    dsc_model_trace target;
    dsc_counts counts[512];
    int64_t lists[512][LISTS];
} bench;

// The text before each step, from the tokens that the steps emitted; and the records of the steps.
typedef struct growth {
    int64_t length, sum, plain;
    dsc_step_record step[ROOM];
    size_t steps;
} growth;

static int grow(void *user, const dsc_step_record *r, dsc_error *err)
{
    growth *t = user;
    (void)err;
    assert_int_equal(r->context, t->length);
    t->sum += t->length;
    for (int64_t i = 0; i < r->emitted_tokens; i++)
        t->plain += t->length++;
    assert_true(t->steps < ROOM);
    t->step[t->steps++] = *r;
    return DSC_OK;
}

static double share(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

static void assert_equal(double got, double want)
{
    assert_int_equal(isnan(got), isnan(want));
    if (!isnan(want))
        assert_close(got, want, 1e-12 * fmax(1, fabs(want)));
}

// Steps of which position i of the draft was accepted (`accepted`), or was there with all earlier
// ones accepted.
static double steps_at(const growth *t, int64_t i, bool accepted)
{
    double n = 0;
    for (size_t s = 0; s < t->steps; s++)
        n += accepted ? t->step[s].accepted_tokens >= i
                      : t->step[s].accepted_tokens >= i - 1 && t->step[s].draft_length >= i;
    return n;
}

// Tokens that are accepted in the mean when each is with probability a, less those that were.
static double surplus(const growth *t, double a)
{
    double sum = 0;
    for (size_t s = 0; s < t->steps; s++) {
        double power = 1;
        for (int64_t i = 0; i < t->step[s].draft_length; i++)
            sum += power *= a;
        sum -= (double)t->step[s].accepted_tokens;
    }
    return sum;
}

// The definitions of base/metrics.h, applied to the steps one after the other.
static void assert_metrics(bench *b, const dsc_counts *c, const growth *t)
{
    dsc_error e;
    dsc_metrics m;
    double emitted = 0, drafts = 0, drafted = 0, accepted = 0;
    int64_t positions = 0;
    for (size_t s = 0; s < t->steps; s++) {
        emitted += (double)t->step[s].emitted_tokens;
        drafts += t->step[s].draft_tokens > 0;
        drafted += (double)t->step[s].draft_tokens;
        accepted += (double)t->step[s].accepted_tokens;
    }
    const dsc_metric_counts counts = dsc_counts_metrics(c);
    assert_ok(dsc_metrics_init(&m, &counts, &b->arena, &e), e);
    assert_equal(m.block_efficiency, share(emitted, (double)t->steps));
    assert_equal(m.mean_acceptance_length, 1 + share(accepted, drafts));
    assert_equal(m.draft_acceptance_rate, share(accepted, drafted));
    while (steps_at(t, positions + 1, false) > 0)
        positions++;
    assert_int_equal(m.positions, positions);
    for (int64_t i = 1; i <= positions; i++) {
        const double n = steps_at(t, i, true);
        assert_equal(m.acceptance_rate_pos[i - 1], share(n, drafts));
        assert_equal(m.conditional_acceptance_rate[i - 1], share(n, steps_at(t, i, false)));
    }
    assert_int_equal(isnan(m.alpha_iid), drafts == 0);
    if (!drafts)
        return;
    assert_true(m.alpha_iid >= 0 && m.alpha_iid <= 1);
    assert_close(surplus(t, m.alpha_iid), 0, 1e-9 * (1 + drafted));
}

static void run_loop(bench *b, const dsc_config *config, const dsc_request *q, uint64_t seed,
                     dsc_counts *out, int64_t lists[LISTS])
{
    dsc_error e;
    *out = zero_counts(lists);
    dsc_arena_reset(&b->arena);
    dsc_model_trace_begin(&b->target, q->output);
    const dsc_models models = {.target = &b->target.base};
    growth t = {.length = q->prompt.count, .steps = 0};
    const dsc_loop_input in = {.config = config,
                               .rule = &dsc_verifier_greedy,
                               .kind = DSC_DRAFT_TOPK,
                               .models = &models,
                               .request = q,
                               .seed = seed,
                               .arena = &b->arena,
                               .step = grow,
                               .user = &t};
    assert_ok(dsc_loop_run(&b->loop, &in, out, &e), e);
    assert_int_equal(b->target.base.refused, 0);
    assert_int_equal(out->target_call_context, t.sum);
    assert_int_equal(out->output_context, t.plain);
    assert_metrics(b, out, &t);
}

static bench *new_bench(void)
{
    return calloc(1, sizeof(bench));
}

static void free_bench(bench *b)
{
    dsc_arena_fini(&b->arena);
    dsc_loop_fini(&b->loop);
    dsc_model_trace_fini(&b->target);
    free(b);
}

static void compare_all(bench *b, const dsc_config *config, size_t count, const dsc_request *q)
{
    dsc_error e;
    dsc_plan plan;
    assert_ok(dsc_plan_init(&plan, config, count, &e), e);
    for (size_t c = 0; c < count; c++)
        b->counts[c] = zero_counts(b->lists[c]);
    dsc_arena_reset(&b->arena);
    assert_ok(dsc_expect_run(&plan, q, 11, &b->arena, b->counts, &e), e);
    for (size_t c = 0; c < count; c++) {
        dsc_counts loop;
        int64_t lists[LISTS];
        run_loop(b, &config[c], q, 11, &loop, lists);
        assert_sound(&loop, q->output.count);
        assert_same(&loop, &b->counts[c]);
    }
    dsc_plan_fini(&plan);
}

static void loop_equals_expect(void **state)
{
    (void)state;
    bench *b = new_bench();
    made_up *m = calloc(1, sizeof *m);
    for (uint32_t seed = 0; seed < 400; seed++) {
        dsc_config config[80];
        uint32_t s = seed;
        make_up(m, seed);
        for (int c = 0; c < 80; c++) {
            uint32_t max_match = lcg(&s) % 4;
            config[c] = llma(1 + lcg(&s) % 9, lcg(&s) % 30, max_match == 3 ? 9 : max_match * 3,
                             lcg(&s) % 2, lcg(&s) % 2, lcg(&s) % 4);
        }
        compare_all(b, config, 80, &m->request);
        for (int c = 0; c < 40; c++) { // n-most, n-least (sometimes more), length, semantics
            config[c] = (dsc_config){.drafter = &dsc_drafter_ngram};
            config[c].parameter[0] = 1 + lcg(&s) % 6;
            config[c].parameter[1] = 1 + lcg(&s) % 4;
            config[c].parameter[2] = 1 + lcg(&s) % 30;
            config[c].parameter[3] = lcg(&s) % 4;
        }
        compare_all(b, config, 40, &m->request);
        for (int c = 0; c < 40; c++) { // length, depth, branches; max-spec-factor, min-token-prob
            config[c] = (dsc_config){.drafter = &dsc_drafter_suffix};
            config[c].parameter[0] = lcg(&s) % 30;
            config[c].parameter[1] = 2 + lcg(&s) % 20;
            config[c].parameter[2] = 1;
            config[c].real[3] = (lcg(&s) % 8) / 2.0;
            config[c].real[4] = (lcg(&s) % 4) / 5.0;
        }
        compare_all(b, config, 40, &m->request);
        for (int64_t k = 0; k < 20; k++)
            config[k] = (dsc_config){.drafter = &dsc_drafter_oracle, .parameter = {k}};
        compare_all(b, config, 20, &m->request);
        config[0] = (dsc_config){.drafter = &dsc_drafter_none, .parameter = {0}};
        compare_all(b, config, 1, &m->request);
        assert_int_equal(b->counts[0].target_calls, m->request.output.count);
    }
    free(m);
    free_bench(b);
}

// Every step drafts a whole reference in vain: more draft tokens than 32 bits hold.
static void long_drafts_do_not_overflow(void **state)
{
    (void)state;
    enum { OUTPUT = 40000, REFERENCE = 70001 };
    dsc_error e;
    int32_t *output = calloc(OUTPUT, sizeof *output), *text = malloc(REFERENCE * sizeof *text);
    for (int i = 0; i < REFERENCE; i++)
        text[i] = i > 0;
    const int64_t offset[] = {0, REFERENCE};
    const uint8_t kind = DSC_REFERENCE_DOCUMENT;
    dsc_request q = {.output = {output, OUTPUT},
                     .references = 1,
                     .reference_offset = offset,
                     .reference_token = text,
                     .reference_kind = &kind};
    dsc_config config = llma(1, 1000000, 5, 0, 0, 0);
    dsc_plan plan;
    dsc_arena arena = {0};
    static int64_t lists[2 + 1 + DSC_LONGEST_LENGTH];
    dsc_counts c = dsc_counts_in(lists, &(dsc_counts_room){.limit = 1000000});
    assert_ok(dsc_plan_init(&plan, &config, 1, &e), e);
    assert_ok(dsc_expect_run(&plan, &q, 0, &arena, &c, &e), e);
    assert_int_equal(c.num_drafts, OUTPUT - 1);
    assert_int_equal(c.num_draft_tokens, (int64_t)(OUTPUT - 1) * (REFERENCE - 1));
    assert_int_equal(c.target_calls, OUTPUT);
    assert_int_equal(c.histogram[0], OUTPUT);
    dsc_plan_fini(&plan);
    dsc_arena_fini(&arena);
    free(output);
    free(text);
}

static void oracle_accepts_everything(void **state)
{
    (void)state;
    bench *b = new_bench();
    made_up *m = calloc(1, sizeof *m);
    for (uint32_t seed = 0; seed < 50; seed++)
        for (int64_t k = 0; k < 40; k++) {
            make_up(m, seed);
            dsc_counts c;
            int64_t lists[LISTS], length = m->request.output.count;
            dsc_config config = {.drafter = &dsc_drafter_oracle, .parameter = {k}};
            run_loop(b, &config, &m->request, 0, &c, lists);
            assert_int_equal(c.target_calls, (length + k) / (k + 1)); // ceil(length / (k + 1))
            assert_int_equal(c.num_accepted_tokens, c.num_draft_tokens);
        }
    free(m);
    free_bench(b);
}

// The example of the LLMA paper's Figure 2 in small: what the drafter may and may not see.
static void references_choose_what_is_copied(void **state)
{
    (void)state;
    static const int32_t document[] = {5, 6, 7, 8}, turn[] = {5, 6, 9, 9};
    int32_t text[8];
    memcpy(text, document, sizeof document);
    memcpy(text + 4, turn, sizeof turn);
    static const int64_t offset[] = {0, 4, 8};
    static const uint8_t kind[] = {DSC_REFERENCE_DOCUMENT, DSC_REFERENCE_TURN};
    static const int32_t output[] = {6, 9, 9, 1}, prompt[] = {6, 9, 9, 1};
    dsc_request q = {.prompt = {prompt, 4},
                     .output = {output, 4},
                     .references = 2,
                     .reference_offset = offset,
                     .reference_token = text,
                     .reference_kind = kind};
    bench *b = new_bench();
    const int64_t accepted[] = {0, 2, 2,
                                1}; // docs; turns; prompt (the last token is the target's);
                                    // all: the document's 6 7 8 comes first, then 9 9
    for (int which = 0; which < 4; which++) {
        dsc_counts c;
        int64_t lists[LISTS];
        dsc_config config = llma(1, 8, 5, 0, 0, which);
        run_loop(b, &config, &q, 0, &c, lists);
        assert_int_equal(c.num_accepted_tokens, accepted[which]);
    }
    free_bench(b);
}

static void trace_model_refuses_what_was_not_recorded(void **state)
{
    (void)state;
    static const int32_t output[] = {1, 2, 3};
    dsc_error e;
    dsc_model_trace m = {0};
    dsc_draft d = {0};
    dsc_next next;
    dsc_model_trace_begin(&m, (dsc_token_view){output, 3});
    const int32_t right[] = {1, 2}, wrong[] = {7, 1};
    assert_ok(dsc_draft_append_chain(&d, -1, right, 2, &e), e);
    assert_ok(dsc_draft_append_chain(&d, 0, wrong, 1, &e), e);     // a sibling of the second
    assert_ok(dsc_draft_append_chain(&d, 2, wrong + 1, 1, &e), e); // under it
    assert_ok(m.base.type->score(&m.base, &d, &e), e);
    assert_ok(m.base.type->next(&m.base, 1, &next, &e), e);
    assert_int_equal(next.token, 3);
    assert_true(next.ends);
    assert_int_equal(m.base.type->next(&m.base, 2, &next, &e), DSC_EABSENT);
    assert_int_equal(m.base.refused, 1);
    assert_int_equal(m.base.type->next(&m.base, 3, &next, &e), DSC_EABSENT);
    assert_int_equal(m.base.type->commit(&m.base, wrong, 1, &e), DSC_ECHECK);
    assert_ok(m.base.type->commit(&m.base, output, 1, &e), e);
    assert_ok(m.base.type->score(&m.base, &d, &e), e); // now 2 comes next: no node is right
    for (int32_t node = 0; node < 4; node++)
        assert_int_equal(m.base.type->next(&m.base, node, &next, &e), DSC_EABSENT);
    assert_ok(m.base.type->commit(&m.base, output + 1, 2, &e), e);
    assert_true(m.base.ended);
    dsc_draft_fini(&d);
    dsc_model_trace_fini(&m);
}

// A tree: the greedy rule follows the child that the target names, whatever its place.
static void greedy_rule_verifies_trees(void **state)
{
    (void)state;
    static const int32_t output[] = {4, 5, 6, 7};
    dsc_error e;
    dsc_model_trace m = {0};
    dsc_draft d = {0};
    dsc_verdict v = {0};
    dsc_model_trace_begin(&m, (dsc_token_view){output, 4});
    const int32_t a[] = {9, 5}, c[] = {4, 8}, x[] = {5, 6};
    assert_ok(dsc_draft_append_chain(&d, -1, a, 2, &e), e); // nodes 0 1: 9 5
    assert_ok(dsc_draft_append_chain(&d, -1, c, 2, &e), e); // nodes 2 3: 4 8
    assert_ok(dsc_draft_append_chain(&d, 2, x, 2, &e), e);  // nodes 4 5: under 4, 5 6
    assert_ok(m.base.type->score(&m.base, &d, &e), e);
    const dsc_models models = {.target = &m.base};
    dsc_arena arena = {0};
    dsc_verify_room room = {.arena = &arena};
    const dsc_verify_input in = {&models, &d, 0, 0, &room, &dsc_verifier_greedy};
    assert_ok(dsc_verifier_greedy.verify(&in, &v, &e), e);
    assert_int_equal(v.accepted, 3);
    static const int32_t path[] = {2, 4, 5};
    assert_memory_equal(v.node, path, sizeof path);
    dsc_verify_room_fini(&room);
    dsc_arena_fini(&arena);
    assert_memory_equal(v.token, output, sizeof output);
    dsc_draft_fini(&d);
    dsc_verdict_fini(&v);
    dsc_model_trace_fini(&m);
}

SUITE(replay)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_equals_expect),
        cmocka_unit_test(long_drafts_do_not_overflow),
        cmocka_unit_test(oracle_accepts_everything),
        cmocka_unit_test(references_choose_what_is_copied),
        cmocka_unit_test(trace_model_refuses_what_was_not_recorded),
        cmocka_unit_test(greedy_rule_verifies_trees),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}

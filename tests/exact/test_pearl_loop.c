// SPDX-License-Identifier: Apache-2.0
// Tests PEARL in the loop. On pairs with a given acceptance rate, throughput, speedup and accepted
// drafts are compared with the closed forms of theory/pearl.h. On a pair small enough to enumerate,
// the output has the target's distribution, whatever the window and the ablation.
//
// A segment runs from one token of the target's own to the next. Segments are i.i.d., so a ratio of
// their sums has the standard error of a ratio of means.
#include "tests/default_config.h"
#include "tests/exact/texts.h"
#include "tests/zero_counts.h"

#include "sim/cost/cost.h"
#include "sim/cost/price.h"
#include "sim/loop.h"
#include "sim/model/model_iid.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_spec.h"
#include "sim/model/model_synthetic.h"
#include "sim/run/timeline.h"
#include "theory/pearl.h"

#include <string.h>

enum { WINDOWS = 8, ROOM = WINDOWS + 2, SEGMENTS = 100000 };

// Pre-verify and post-verify as the method's options encode them: 0 means on.
static const int64_t switches[DSC_PEARL_FORMS][2] = {
    [DSC_PEARL_FULL] = {0, 0},
    [DSC_PEARL_NO_PRE_VERIFY] = {1, 0},
    [DSC_PEARL_NO_POST_VERIFY] = {0, 1},
};

// Sums over a segment.
enum { ONE, STEPS, TOKENS, ACCEPTED, QUANTITIES };
typedef struct segment {
    double sum[QUANTITIES];
} segment;

typedef struct bench {
    dsc_language *target, *draft;
    dsc_model_synthetic t, d;
    dsc_loop loop;
    dsc_arena arena;
    // Results of the last run:
    dsc_counts counts;
    int64_t histogram[ROOM], parallel_steps[ROOM * ROOM];
    segment *segment; // [SEGMENTS] or NULL: not wanted
    size_t segments;
    segment open;
    // Called with each step, or NULL.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    void *user;
} bench;

static void init_iid(bench *b, double rate)
{
    dsc_error err = {0};
    const dsc_acceptance_rates h = {.conditional_rate = &rate, .positions = 1, .later = rate};
    *b = (bench){.segment = calloc(SEGMENTS, sizeof(segment))};
    assert_non_null(b->segment);
    assert_ok(dsc_iid_new(&b->target, &h, DSC_SIDE_TARGET, &err), err);
    assert_ok(dsc_iid_new(&b->draft, &h, DSC_SIDE_DRAFT, &err), err);
}

static void init_markov(bench *b, int32_t vocab)
{
    dsc_error err = {0};
    dsc_markov_options o = {.vocab_size = vocab, .seed = 3, .noise = 1.5};
    *b = (bench){0};
    assert_ok(dsc_markov_new(&b->target, &o, DSC_SIDE_TARGET, &err), err);
    assert_ok(dsc_markov_new(&b->draft, &o, DSC_SIDE_DRAFT, &err), err);
}

static void fini(bench *b)
{
    dsc_model_synthetic_fini(&b->t);
    dsc_model_synthetic_fini(&b->d);
    dsc_loop_fini(&b->loop);
    dsc_arena_fini(&b->arena);
    dsc_language_free(b->target);
    dsc_language_free(b->draft);
    free(b->segment);
}

static int on_step(void *user, const dsc_step_record *r, dsc_error *err)
{
    bench *b = user;
    b->open.sum[ONE] = 1;
    b->open.sum[STEPS]++;
    b->open.sum[TOKENS] += (double)r->emitted_tokens;
    b->open.sum[ACCEPTED] += (double)r->accepted_tokens;
    if (b->segment && r->emitted_tokens > r->accepted_tokens) {
        assert_true(b->segments < SEGMENTS);
        b->segment[b->segments++] = b->open;
        b->open = (segment){{0}};
    }
    return b->step ? b->step(b->user, r, err) : DSC_OK;
}

static dsc_config config_of(int64_t window, const int64_t off[2])
{
    return (dsc_config){.drafter = &dsc_drafter_pearl, .parameter = {window, off[0], off[1]}};
}

// One request of `tokens`; only the Markov pair uses the prompt.
static void run(bench *b, const dsc_config *c, const dsc_verifier_type *rule, dsc_draft_kind kind,
                int64_t tokens, int64_t request, double temperature)
{
    dsc_error err = {0};
    dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
    dsc_request q = {.index = request, .prompt = prompt};
    assert_ok(dsc_model_synthetic_begin(&b->t, b->target, prompt, tokens, temperature, &err), err);
    assert_ok(dsc_model_synthetic_begin(&b->d, b->draft, prompt, tokens, temperature, &err), err);
    dsc_models models = {&b->t.base, &b->d.base, NULL};
    dsc_arena_reset(&b->arena);
    b->segments = 0;
    b->open = (segment){{0}};
    b->counts = zero_counts(b->histogram, ROOM - 1);
    b->counts.parallel_steps = b->parallel_steps;
    b->counts.parallel_length = dsc_config_width(c);
    assert_true(b->counts.parallel_length <= ROOM);
    memset(b->parallel_steps, 0, sizeof b->parallel_steps);
    dsc_loop_input in = {.config = c,
                         .rule = rule,
                         .kind = kind,
                         .models = &models,
                         .request = &q,
                         .seed = 11,
                         .arena = &b->arena,
                         .step = on_step,
                         .user = b};
    assert_ok(dsc_loop_run(&b->loop, &in, &b->counts, &err), err);
    assert_int_equal(b->t.base.length, tokens);
    b->segments -= b->segments > 0; // the last one was cut off by the end of the output
}

// --- closed forms --------------------------------------------------------------------------

// Sum of one quantity over the sum of another, and its standard error.
static double ratio_of(const bench *b, int above, int below, double *error)
{
    double x = 0, y = 0, squares = 0, n = (double)b->segments;
    for (size_t i = 0; i < b->segments; i++) {
        x += b->segment[i].sum[above];
        y += b->segment[i].sum[below];
    }
    for (size_t i = 0; i < b->segments; i++) {
        double d = b->segment[i].sum[above] - x / y * b->segment[i].sum[below];
        squares += d * d;
    }
    *error = sqrt(squares / (n - 1) / n) / (y / n);
    return x / y;
}

static dsc_price price_of(const dsc_cost *cost, const dsc_counts *counts)
{
    dsc_price p;
    dsc_error err = {0};
    assert_ok(dsc_price_run(&p, cost, counts, 1, &err), err);
    return p;
}

static void check_speedup(const bench *b, dsc_pearl_form form, double rate, int window,
                          double error)
{
    static const double ratios[] = {1, 2.62, 4.79};
    for (int i = 0; i < 3; i++) {
        const dsc_cost cost = {.type = &dsc_cost_linear, .fixed_s = 1, .draft_s = 1 / ratios[i]};
        double found = price_of(&cost, &b->counts).speedup;
        double closed = dsc_pearl_speedup(form, rate, window, ratios[i]);
        double slower = fmax(window / ratios[i], 1);
        if (!(fabs(found - closed) <= 4 * error / slower))
            fail_msg("form %d, rate %g, window %d, ratio %g: speed-up %g, %g expected", form, rate,
                     window, ratios[i], found, closed);
    }
}

static void throughput_is_that_of_the_closed_forms(void **state)
{
    (void)state;
    static const double rates[] = {0.5, 0.8, 0.9, 0.95};
    for (int i = 0; i < 4; i++) {
        bench b;
        init_iid(&b, rates[i]);
        for (int form = 0; form < DSC_PEARL_FORMS; form++)
            for (int window = 1; window <= WINDOWS; window++) {
                dsc_config c = config_of(window, switches[form]);
                double closed = dsc_pearl_tokens((dsc_pearl_form)form, rates[i], window), error;
                run(&b, &c, &dsc_verifier_rejection, DSC_DRAFT_SAMPLED, 40000, 0, 1);
                double found = ratio_of(&b, TOKENS, STEPS, &error);
                if (!(fabs(found - closed) <= 4 * error + 1e-12))
                    fail_msg("form %d, rate %g, window %d: %g tokens per iteration, %g expected, "
                             "standard error %g",
                             form, rates[i], window, found, closed, error);
                check_speedup(&b, (dsc_pearl_form)form, rates[i], window, error);
            }
        fini(&b);
    }
}

// Each ablation differs from the others; otherwise the test above could not fail.
static void ablations_differ(void **state)
{
    (void)state;
    bench b;
    init_iid(&b, 0.9);
    for (int form = 0; form < DSC_PEARL_FORMS; form++) {
        dsc_config c = config_of(6, switches[form]);
        double error;
        run(&b, &c, &dsc_verifier_rejection, DSC_DRAFT_SAMPLED, 100000, 0, 1);
        double found = ratio_of(&b, TOKENS, STEPS, &error);
        for (int other = 0; other < DSC_PEARL_FORMS; other++)
            if (other != form)
                assert_true(fabs(found - dsc_pearl_tokens((dsc_pearl_form)other, 0.9, 6)) >
                            10 * error);
    }
    fini(&b);
}

// Between two corrections a/(1 - a) drafts are accepted, which makes 1/(1 - a) tokens with the
// correction. The printed Theorem 2 has 1/(1 - a) + 1, and no reading of it is close.
static void theorem_2_is_off_by_one(void **state)
{
    (void)state;
    static const double rates[] = {0.5, 0.8, 0.9, 0.95};
    for (int i = 0; i < 4; i++)
        for (int window = 1; window <= 5; window += 4) {
            double a = rates[i], error;
            bench b;
            dsc_config c = config_of(window, switches[DSC_PEARL_FULL]);
            init_iid(&b, a);
            run(&b, &c, &dsc_verifier_rejection, DSC_DRAFT_SAMPLED, (int64_t)(50000 / (1 - a)), 1,
                1);
            double accepted = ratio_of(&b, ACCEPTED, ONE, &error);
            assert_close(accepted, dsc_pearl_accepted_exact(a), 4 * error);
            assert_true(fabs(accepted - 1 / (1 - a)) > 10 * error);
            double printed = dsc_pearl_accepted_as_printed(a);
            assert_true(fabs(accepted - printed) > 10 * error);
            double tokens = ratio_of(&b, TOKENS, ONE, &error);
            assert_close(tokens, 1 / (1 - a), 4 * error);
            assert_true(fabs(tokens - printed) > 10 * error);
            fini(&b);
        }
}

// Theorem 1: the best window takes as long as a target call.
static void the_best_window_is_the_ratio(void **state)
{
    (void)state;
    bench b;
    init_iid(&b, 0.9);
    for (int ratio = 2; ratio <= 6; ratio += 2) {
        const dsc_cost cost = {.type = &dsc_cost_linear, .fixed_s = 1, .draft_s = 1.0 / ratio};
        double best = 0;
        int at = 0;
        for (int window = 1; window <= WINDOWS; window++) {
            dsc_config c = config_of(window, switches[DSC_PEARL_FULL]);
            run(&b, &c, &dsc_verifier_rejection, DSC_DRAFT_SAMPLED, 40000, 0, 1);
            double s = price_of(&cost, &b.counts).speedup;
            at = s > best ? window : at;
            best = fmax(best, s);
        }
        assert_int_equal(at, ratio);
    }
    fini(&b);
}

// --- steps ---------------------------------------------------------------------------------

// The steps that may follow the previous one.
typedef struct follower {
    int window;
    bool begun;   // a window is pending
    int64_t left; // tokens to the end of the output
} follower;

static int follow(void *user, const dsc_step_record *r, dsc_error *err)
{
    (void)err;
    follower *f = user;
    assert_true(r->parallel);
    assert_int_equal(r->draft_calls, r->draft_call_tokens);
    assert_int_equal(r->target_call_tokens, r->draft_tokens); // the last one has no pass
    f->left -= r->emitted_tokens;
    if (f->left > 2 * f->window) { // away from the end
        assert_int_equal(r->draft_calls, f->window);
        assert_int_equal(r->draft_tokens, f->begun ? f->window : 1);
    }
    bool all = r->accepted_tokens == r->draft_tokens;
    assert_int_equal(r->emitted_tokens, r->accepted_tokens + !all); // no bonus
    f->begun = all;
    return DSC_OK;
}

static void steps_are_those_of_the_state_machine(void **state)
{
    (void)state;
    static const dsc_verifier_type *const rule[] = {&dsc_verifier_rejection, &dsc_verifier_greedy,
                                                    &dsc_verifier_block};
    for (int window = 1; window <= 6; window++)
        for (int i = 0; i < 3; i++) {
            bench b;
            follower f = {.window = window, .left = 3000};
            dsc_config c = config_of(window, switches[DSC_PEARL_FULL]);
            init_iid(&b, 0.8);
            b.step = follow;
            b.user = &f;
            run(&b, &c, rule[i], DSC_DRAFT_SAMPLED, 3000, 0, 1);
            assert_int_equal(f.left, 0);
            fini(&b);
        }
}

// --- the target's distribution
// ----------------------------------------------------------------------

// Windows shorter than the output, so that one follows another; both switches at a time.
static void every_window_is_lossless(void **state)
{
    (void)state;
    static const dsc_verifier_type *const rule[] = {&dsc_verifier_rejection,
                                                    &dsc_verifier_specinfer, &dsc_verifier_kseq,
                                                    &dsc_verifier_otm, &dsc_verifier_block};
    enum { REQUESTS = 6000 };
    bench b;
    double dist[TEXTS];
    init_markov(&b, TEXT_VOCAB);
    dist_of_texts(&b.t, b.target, dist);
    for (int window = 1; window <= 3; window++)
        for (int form = 0; form < 4; form++)
            for (int i = 0; i < 5; i++) {
                const int64_t off[2] = {form & 1, form >> 1};
                dsc_config c = config_of(window, off);
                int64_t count[TEXTS] = {0};
                int degrees;
                for (int64_t r = 0; r < REQUESTS; r++) {
                    run(&b, &c, rule[i], DSC_DRAFT_SAMPLED, TEXT_TOKENS, r, 1);
                    count[text_of(&b.t.base)]++;
                }
                const double x = pearson(count, dist, TEXTS, REQUESTS, &degrees);
                if (!(x <= degrees + 5 * sqrt(2 * degrees)))
                    fail_msg("window %d, switches %d, rule %s: chi-square %.1f", window, form,
                             rule[i]->name, x);
            }
    fini(&b);
}

static void a_greedy_target_emits_the_target_output(void **state)
{
    (void)state;
    enum { TOKENS_EACH = 300 };
    static const int64_t none[2] = {0, 0};
    int32_t alone[TOKENS_EACH];
    bench b;
    init_markov(&b, 50);
    dsc_config plain = {.drafter = &dsc_drafter_none}, c = config_of(1, none);
    run(&b, &plain, &dsc_verifier_greedy, DSC_DRAFT_TOPK, TOKENS_EACH, 0, 0);
    memcpy(alone, b.t.base.output, sizeof alone);
    for (int window = 1; window <= WINDOWS; window++)
        for (int form = 0; form < 4; form++)
            for (int kind = DSC_DRAFT_TOPK; kind <= DSC_DRAFT_SAMPLED; kind++) {
                const int64_t off[2] = {form & 1, form >> 1};
                c = config_of(window, off);
                run(&b, &c, &dsc_verifier_greedy, (dsc_draft_kind)kind, TOKENS_EACH, 0, 0);
                assert_memory_equal(b.t.base.output, alone, sizeof alone);
            }
    fini(&b);
}

// --- time ----------------------------------------------------------------------------------

typedef struct clock {
    dsc_table table;
    dsc_cost cost;
    double now_s;
} clock;

static int tick(void *user, const dsc_step_record *r, dsc_error *err)
{
    clock *k = user;
    return dsc_timeline_add(&k->table, &k->now_s, &k->cost, r, err);
}

static double cell(const dsc_table *t, size_t row, const char *column)
{
    return dsc_table_real(t, row, (size_t)dsc_table_find(t, column));
}

// Both models run side by side, for as long as the counts cost.
static void the_timeline_matches_the_cost(void **state)
{
    (void)state;
    for (int window = 1; window <= WINDOWS; window++)
        for (int form = 0; form < 4; form++) {
            const int64_t off[2] = {form & 1, form >> 1};
            bench b;
            clock k = {.cost = {.type = &dsc_cost_linear,
                                .fixed_s = 0.02,
                                .per_token_s = 0.0005,
                                .draft_s = 0.006}};
            dsc_config c = config_of(window, off);
            dsc_error err = {0};
            init_iid(&b, 0.8);
            b.step = tick;
            b.user = &k;
            assert_ok(dsc_timeline_columns(&k.table, &err), err);
            run(&b, &c, &dsc_verifier_rejection, DSC_DRAFT_SAMPLED, 500, 0, 1);
            assert_close(k.now_s, price_of(&k.cost, &b.counts).time_s, 1e-10);
            double end = 0, tokens = 0;
            for (size_t i = 0; i < k.table.rows; i++) {
                bool draft = !strcmp(dsc_table_at(&k.table, i, 0)->text, "draft");
                double start = cell(&k.table, i, "start_s");
                if (draft || !i || cell(&k.table, i - 1, "step") != cell(&k.table, i, "step"))
                    assert_close(start, end, 1e-10); // a step begins where the last one ended
                if (!draft)
                    tokens += cell(&k.table, i, "emitted");
                if (i + 1 < k.table.rows &&
                    cell(&k.table, i + 1, "step") == cell(&k.table, i, "step"))
                    assert_close(cell(&k.table, i + 1, "start_s"), start, 0); // together
                else
                    end = fmax(cell(&k.table, i, "end_s"),
                               draft || !i ? 0 : cell(&k.table, i - 1, "end_s"));
            }
            assert_close(end, k.now_s, 1e-10);
            assert_close(tokens, 500, 0);
            dsc_table_fini(&k.table);
            fini(&b);
        }
}

static void costs_that_take_turns(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_cost cost;
    dsc_counts counts = {.output_tokens = 30,
                         .target_calls = 10,
                         .target_call_tokens = 60,
                         .draft_calls = 50,
                         .draft_call_tokens = 50};
    assert_ok(dsc_cost_parse(&cost, "linear:2,0.5,0.25", &err), err);
    assert_close(price_of(&cost, &counts).time_s, 20 + 30 + 12.5, 1e-12);
    assert_close(price_of(&cost, &counts).speedup, 75 / 62.5, 1e-12);
    assert_ok(dsc_cost_parse(&cost, "linear:2,0.5", &err), err);
    assert_close(price_of(&cost, &counts).time_s, 50, 1e-12);
    dsc_timeline_step s = dsc_timeline_place(1, false, 0.5, 2);
    assert_close(s.target_start_s, 1.5, 0);
    assert_close(s.end_s, 3.5, 0);
    s = dsc_timeline_place(1, true, 3, 2);
    assert_close(s.target_start_s, 1, 0);
    assert_close(s.end_s, 4, 0);
    static const char *const bad[] = {"linear:",       "linear:1",        "linear:1,",
                                      "linear:1,0,",   "linear:1,0,-1",   "linear:1,0,nan",
                                      "linear:0,0,1",  "linear:1,0,1,1",  "linear:,,",
                                      "linear:1,0,1 ", "linear:1,0,0x1p", "lin"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dsc_cost_parse(&cost, bad[i], &err) != DSC_EUSAGE)
            fail_msg("%s was taken for a cost", bad[i]);
}

SUITE(pearl_loop)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throughput_is_that_of_the_closed_forms),
        cmocka_unit_test(ablations_differ),
        cmocka_unit_test(theorem_2_is_off_by_one),
        cmocka_unit_test(the_best_window_is_the_ratio),
        cmocka_unit_test(steps_are_those_of_the_state_machine),
        cmocka_unit_test(every_window_is_lossless),
        cmocka_unit_test(a_greedy_target_emits_the_target_output),
        cmocka_unit_test(the_timeline_matches_the_cost),
        cmocka_unit_test(costs_that_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

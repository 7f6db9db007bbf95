// SPDX-License-Identifier: Apache-2.0
// The drafts that a server gets from a trace against dsc_run: a walk over them from the first
// position has its counts, exactly, and in the mean over seeds where a rule samples; and an engine
// with one client makes as many steps as the walk after the prefill.
#include "tests/unit/trace_fixture.h"

#include "sim/run/run.h"
#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_source.h"
#include "tests/close.h"

enum { REQUESTS = 40, LONGEST = 60, DEPTH = 6, TOKENS_KNOWN = 5 };

static uint32_t seed = 7;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

// Outputs over few tokens, so that n-grams repeat; ranks and argmax tokens agree 3 times in 4.
static dsc_trace *make_trace(void)
{
    static int32_t output[LONGEST], argmax[LONGEST];
    static uint16_t rank[LONGEST * DEPTH], accept[LONGEST];
    static float target[LONGEST], drafted[LONGEST];
    static const int32_t prompt[] = {1, 2, 3};
    dsc_error e;
    dsc_trace_writer *w;
    dsc_trace *t;
    const dsc_trace_info info = {.vocab_size = TOKENS_KNOWN,
                                 .eos_token = -1,
                                 .tokenizer_name = "none",
                                 .has_target_logp = true,
                                 .has_draft_logp = true,
                                 .has_argmax = {[DSC_SIDE_DRAFT] = true},
                                 .has_draft_rank = true,
                                 .rank_depth = DEPTH,
                                 .drafters = 1,
                                 .drafter = {{"d", 9}}};
    assert_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &e), e);
    for (int r = 0; r < REQUESTS; r++) {
        const int64_t n = r == 3 ? 0 : 1 + pick(LONGEST);
        char id[16];
        for (int64_t i = 0; i < n; i++) {
            output[i] = (int32_t)pick(TOKENS_KNOWN);
            argmax[i] = pick(4) ? output[i] : (output[i] + 1) % TOKENS_KNOWN;
            target[i] = -(float)pick(100) / 50;
            drafted[i] = -(float)pick(100) / 50;
            accept[i] = (uint16_t)pick(10);
            for (int64_t d = 0; d < DEPTH; d++)
                rank[i * DEPTH + d] = i + d >= n ? DSC_RANK_NONE : (uint16_t)(pick(4) == 0);
        }
        snprintf(id, sizeof id, "%d", r);
        const dsc_request_input q = {
            .id = {id, (int64_t)strlen(id)},
            .prompt = {prompt, 3},
            .output = {output, n},
            .target_logp = target,
            .draft_logp = drafted,
            .accept = {accept},
            .replayed = {.argmax = {[DSC_SIDE_DRAFT] = argmax}, .draft_rank = rank}};
        assert_ok(dsc_trace_writer_add(w, &q, &e), e);
    }
    assert_ok(dsc_trace_writer_commit(w, NULL, &e), e);
    assert_ok(dsc_trace_open(&t, in_scratch("a.dst"), &e), e);
    return t;
}

typedef struct walk {
    int64_t calls, accepted, drafted;
} walk;

// Walks over the drafts of all requests, from output position `first` on.
static walk follow(const dsc_serve_source *s, int32_t first)
{
    walk w = {0};
    for (size_t r = 0; r < s->count; r++) {
        const dsc_serve_item *q = &s->item[r];
        for (int32_t i = first; i < q->output; w.calls++) {
            const dsc_serve_draft d = q->draft[i];
            const int32_t left = q->output - 1 - i;
            assert_true(d.run <= d.available && d.run <= left);
            w.drafted += d.available < left ? d.available : left;
            w.accepted += d.run;
            i += d.run + 1;
        }
    }
    return w;
}

static int64_t engine_steps(const dsc_serve_source *s)
{
    dsc_error e;
    dsc_cost cost;
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_serve_totals totals;
    assert_ok(dsc_cost_parse(&cost, "linear:.25,0", &e), e);
    assert_ok(dsc_arrivals_parse(&arrivals, "closed:1", &e), e);
    assert_ok(dsc_serve_policy_parse(&policy, "fixed", s->longest, &e), e);
    const dsc_serve_pool pool = {.item = s->item, .count = s->count};
    const dsc_serve_price price = {.cost = &cost, .prefill_s = NAN};
    const dsc_serve_options options = {.requests = (int64_t)s->count,
                                       .max_num_seqs = 1,
                                       .max_num_batched_tokens = 2048,
                                       .block_size = 16,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY};
    assert_ok(dsc_serve_run(&totals, &pool, &arrivals, &price, &policy, &options, &e), e);
    const int64_t steps = totals.steps;
    assert_true(totals.end_s == .25 * (double)steps);
    dsc_serve_totals_fini(&totals);
    dsc_serve_policy_fini(&policy);
    dsc_cost_fini(&cost);
    return steps;
}

static dsc_config config_of(const dsc_drafter_type *drafter, const char *length)
{
    dsc_error e;
    dsc_config c;
    dsc_config_init(&c, drafter);
    if (length)
        assert_ok(dsc_config_set(&c, "num-speculative-tokens", length, &e), e);
    assert_ok(dsc_config_prepare(&c, &e), e);
    return c;
}

static walk run(const dsc_trace *t, const dsc_config *c, const dsc_verifier_type *rule,
                double *accepted)
{
    dsc_error e;
    dsc_results results;
    const dsc_run_options options = {.engine = DSC_ENGINE_EXPECT, .rule = rule, .threads = 1};
    assert_ok(dsc_run(t, c, 1, &options, &results, &e), e);
    const dsc_expected real = dsc_counts_real(results.counts);
    *accepted = real.num_accepted_tokens;
    const walk w = {(int64_t)real.target_calls, (int64_t)real.num_accepted_tokens,
                    (int64_t)real.num_draft_tokens};
    dsc_results_fini(&results);
    return w;
}

static void exact(void **state)
{
    (void)state;
    const dsc_drafter_type *const drafter[] = {&dsc_drafter_none, &dsc_drafter_oracle,
                                               &dsc_drafter_ngram, &dsc_drafter_recorded,
                                               &dsc_drafter_draft_model};
    const char *const length[] = {NULL, "3", "4", "5", "6"};
    dsc_trace *t = make_trace();
    for (int m = 0; m < 5; m++) {
        dsc_error e;
        dsc_serve_source s;
        double accepted;
        dsc_config c = config_of(drafter[m], length[m]);
        assert_ok(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_greedy, 0, 2, &e), e);
        const walk all = follow(&s, 0), expected = run(t, &c, &dsc_verifier_greedy, &accepted);
        assert_int_equal(s.count, REQUESTS - 1); // one has no output
        assert_int_equal(all.calls, expected.calls);
        assert_int_equal(all.accepted, expected.accepted);
        // dsc_run also counts what other methods draft after the end of an output.
        assert_true(all.drafted == expected.drafted || (m >= 2 && all.drafted < expected.drafted));
        assert_true(m == 0 || all.accepted > 50);
        assert_int_equal(s.drafting, m < 3 ? DSC_SERVE_DRAFT_FREE : DSC_SERVE_DRAFT_EACH);
        assert_int_equal(engine_steps(&s), (int64_t)s.count + follow(&s, 1).calls);
        dsc_serve_source_fini(&s);
        dsc_config_fini(&c);
    }
    dsc_trace_close(t);
}

// The mean over seeds is within 4 standard errors, which are below 1 %.
static void sampled(void **state)
{
    (void)state;
    const dsc_verifier_type *const rule[] = {&dsc_verifier_rejection, &dsc_verifier_block};
    const int seeds = (int)quick_part(400, 100);
    dsc_trace *t = make_trace();
    dsc_config c = config_of(&dsc_drafter_draft_model, "4");
    for (int i = 0; i < 2; i++) {
        double sum = 0, square = 0, expected;
        run(t, &c, rule[i], &expected);
        for (int k = 0; k < seeds; k++) {
            dsc_error e;
            dsc_serve_source s;
            assert_ok(dsc_serve_source_trace(&s, t, &c, rule[i], (uint64_t)k, 1, &e), e);
            const double x = (double)follow(&s, 0).accepted;
            sum += x;
            square += x * x;
            dsc_serve_source_fini(&s);
        }
        const double mean = sum / seeds, error = sqrt((square / seeds - mean * mean) / seeds);
        assert_true(error < 0.01 * expected);
        assert_close(mean, expected, 4 * error);
    }
    dsc_config_fini(&c);
    dsc_trace_close(t);
}

static void refused(void **state)
{
    (void)state;
    dsc_error e;
    dsc_serve_source s;
    dsc_trace *t = make_trace();
    dsc_config c = config_of(&dsc_drafter_spectr, NULL);
    assert_int_equal(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_greedy, 0, 1, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "none, oracle, llma"));
    dsc_serve_source_fini(&s);
    assert_int_equal(dsc_serve_source_rates(&s, &(dsc_serve_rates){.requests = 1}, 0, &e),
                     DSC_EUSAGE);
    dsc_serve_source_fini(&s);
    dsc_config_fini(&c);
    dsc_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exact, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(sampled, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(refused, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

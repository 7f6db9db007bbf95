// SPDX-License-Identifier: Apache-2.0
// The drafts that a server gets from a trace against dsc_run: a walk over them from the first
// position has its counts, exactly, and in the mean over seeds where a rule samples; and an engine
// with one client makes as many steps as the walk after the prefill.
#include "tests/unit/trace_fixture.h"

#include "sim/cost/price.h"
#include "sim/run/run.h"
#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_source.h"
#include "tests/close.h"

enum { REQUESTS = 40, LONGEST = 60, DEPTH = 7, TOKENS_KNOWN = 5 };

static uint32_t seed = 7;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

// Outputs over few tokens, so that n-grams repeat; ranks and argmax tokens agree 3 times in 4.
// `prefilled`: the first token of each output is the last of the prompt.
static dsc_trace *make_trace_of(const char *name, bool prefilled)
{
    static int32_t output[LONGEST], argmax[LONGEST];
    static uint16_t rank[LONGEST * DEPTH], accept[LONGEST];
    static float target[LONGEST], drafted[LONGEST];
    int32_t prompt[] = {1, 2, 3, 0};
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
    const int64_t skip = prefilled;
    seed = 7;
    assert_ok(dsc_trace_writer_open(&w, in_scratch(name), &info, true, 0, &e), e);
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
        prompt[3] = output[0];
        const dsc_request_input q = {.id = {id, (int64_t)strlen(id)},
                                     .prompt = {prompt, 3 + skip},
                                     .output = {output + skip, n > skip ? n - skip : 0},
                                     .target_logp = target + skip,
                                     .draft_logp = drafted + skip,
                                     .accept = {accept + skip},
                                     .replayed = {.argmax = {[DSC_SIDE_DRAFT] = argmax + skip},
                                                  .draft_rank = rank + skip * DEPTH}};
        assert_ok(dsc_trace_writer_add(w, &q, &e), e);
    }
    assert_ok(dsc_trace_writer_commit(w, NULL, &e), e);
    assert_ok(dsc_trace_open(&t, in_scratch(name), &e), e);
    return t;
}

static dsc_trace *make_trace(void)
{
    return make_trace_of("a.dst", false);
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

// Powers of 2, so that sums are exact: seconds of a pass, of each of its tokens, of a draft pass.
#define LINEAR "linear:.25,.0078125,.125"

// No step has more tokens than the engine allows.
static int check_step(void *user, const dsc_serve_engine *engine, dsc_error *err)
{
    const dsc_serve_step *step = &engine->step;
    (void)user, (void)err;
    assert_true(step->decode_tokens + step->prefill_tokens <=
                engine->options->max_num_batched_tokens);
    assert_true(engine->free_blocks >= 0);
    return DSC_OK;
}

// Serves every request once. `scarce`: 8 clients, few KV blocks and few tokens in a step.
static dsc_serve_totals serve(const dsc_serve_source *s, const char *speculation, bool scarce)
{
    dsc_error e;
    dsc_cost cost;
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_serve_totals totals;
    assert_ok(dsc_cost_parse(&cost, LINEAR, &e), e);
    assert_ok(dsc_arrivals_parse(&arrivals, scarce ? "closed:8" : "closed:1", &e), e);
    assert_ok(dsc_serve_policy_parse(&policy, speculation, s->longest, &e), e);
    const dsc_serve_pool pool = dsc_serve_source_pool(s);
    const dsc_serve_price price = {
        .cost = &cost, .drafting = s->drafting, .overlap = s->overlap, .prefill_s = NAN};
    const dsc_serve_options options = {.requests = (int64_t)s->count,
                                       .drain = true,
                                       .max_num_seqs = scarce ? 8 : 1,
                                       .max_num_batched_tokens = scarce ? 2 * s->widest + 8 : 2048,
                                       .kv_blocks = scarce ? 3 + (66 + s->widest) / 4 : 0,
                                       .block_size = 4,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY,
                                       .step = check_step};
    assert_ok(dsc_serve_run(&totals, &pool, &arrivals, &price, &policy, &options, &e), e);
    const dsc_serve_totals counts = totals;
    dsc_serve_totals_fini(&totals);
    dsc_serve_policy_fini(&policy);
    dsc_cost_fini(&cost);
    return counts;
}

static int64_t engine_steps(const dsc_serve_source *s)
{
    return serve(s, "fixed", false).steps;
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
    const dsc_drafter_type *const drafter[] = {&dsc_drafter_none,     &dsc_drafter_oracle,
                                               &dsc_drafter_suffix,   &dsc_drafter_ngram,
                                               &dsc_drafter_recorded, &dsc_drafter_draft_model};
    const char *const length[] = {NULL, "3", "4", "4", "5", "6"};
    dsc_trace *t = make_trace(), *after = make_trace_of("b.dst", true);
    for (int m = 0; m < 6; m++) {
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
        assert_int_equal(s.drafting, m < 4 ? DSC_SERVE_DRAFT_FREE : DSC_SERVE_DRAFT_EACH);
        // After the prefill's token, wherever the steps of a run from the first one begin.
        const walk served = follow(&s, 1), later = run(after, &c, &dsc_verifier_greedy, &accepted);
        assert_int_equal(served.calls, later.calls);
        assert_int_equal(served.accepted, later.accepted);
        assert_int_equal(engine_steps(&s), (int64_t)s.count + served.calls);
        dsc_serve_source_fini(&s);
        dsc_config_fini(&c);
    }
    dsc_trace_close(after);
    dsc_trace_close(t);
}

// The mean over seeds is within 4 standard errors, which are below 1 %.
static void sampled(void **state)
{
    (void)state;
    const dsc_verifier_type *const rule[] = {&dsc_verifier_rejection, &dsc_verifier_block};
    const int seeds = few_or_many(100, 400);
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

// The draft tokens of a walk. A simulated tree has as many levels as the output has tokens left; a
// server knows that one of these is its own.
static int64_t nodes_of(const dsc_serve_source *s, int32_t own)
{
    int64_t nodes = 0;
    for (size_t r = 0; r < s->count; r++) {
        const dsc_serve_item *q = &s->item[r];
        for (int32_t i = own; i < q->output; i += q->draft[i].run + 1) {
            const int32_t left = q->output - i - own;
            nodes += s->tree[s->longest < left ? s->longest : left].tokens;
        }
    }
    return nodes;
}

static const struct {
    const dsc_drafter_type *drafter;
    const char *option, *value;
} drafted[] = {{&dsc_drafter_tree, "tree", "2^3"},
               {&dsc_drafter_tree, "tree", "eagle"},
               {&dsc_drafter_sequoia, "budget", "20"},
               {&dsc_drafter_hf_dynamic, "max", "6"},
               {&dsc_drafter_pearl, "num-speculative-tokens", "3"},
               {&dsc_drafter_pearl, "pre-verify", "off"},
               {&dsc_drafter_pearl, "post-verify", "off"},
               {&dsc_drafter_suffix, "branches", "0"},
               {&dsc_drafter_spectr, "num-drafts", "3"},
               {&dsc_drafter_spectr_tree, "branches", "3,2,1"}};
enum { TREES = 3, SCRIPTS = 8, DRAFTED = sizeof drafted / sizeof *drafted };

static dsc_config drafted_config(int i)
{
    dsc_error e;
    dsc_config c;
    dsc_config_init(&c, drafted[i].drafter);
    if (drafted[i].drafter == &dsc_drafter_sequoia)
        assert_ok(dsc_config_set(&c, "depth", "5", &e), e);
    assert_ok(dsc_config_set(&c, drafted[i].option, drafted[i].value, &e), e);
    assert_ok(dsc_config_prepare(&c, &e), e);
    return c;
}

// *seconds: by the cost model of the engine.
static dsc_counts count(const dsc_trace *t, const dsc_config *c, double *seconds)
{
    dsc_error e;
    dsc_results results;
    const dsc_run_options options = {.threads = 1};
    assert_ok(dsc_run(t, c, 1, &options, &results, &e), e);
    const dsc_counts counts = *results.counts;
    dsc_cost cost;
    dsc_price price;
    assert_ok(dsc_cost_parse(&cost, LINEAR, &e), e);
    assert_ok(dsc_price_run(&price, &cost, results.counts, 1, &e), e);
    *seconds = price.time_s;
    dsc_cost_fini(&cost);
    dsc_results_fini(&results);
    return counts;
}

// A walk over trees has the counts of dsc_run. One client's engine makes these steps from the first
// token on, and any policy cuts a tree to a number of levels.
static void trees(void **state)
{
    (void)state;
    dsc_trace *t = make_trace();
    for (int i = 0; i < TREES; i++) {
        dsc_error e;
        dsc_serve_source s;
        dsc_serve_policy adaptive;
        dsc_config c = drafted_config(i);
        double seconds;
        const dsc_counts expected = count(t, &c, &seconds);
        assert_ok(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_greedy, 0, 2, &e), e);
        const walk all = follow(&s, 0), served = follow(&s, 1);
        assert_int_equal(all.calls, expected.target_calls);
        assert_int_equal(all.accepted, expected.num_accepted_tokens);
        assert_true(all.accepted > 50);
        assert_int_equal(nodes_of(&s, 0), expected.num_draft_tokens);
        assert_int_equal(s.widest, dsc_config_width(&c) - 1);
        const dsc_serve_totals one = serve(&s, "fixed", false);
        assert_int_equal(one.steps, (int64_t)s.count + served.calls);
        assert_int_equal(one.num_accepted_tokens, served.accepted);
        assert_int_equal(one.num_draft_tokens, nodes_of(&s, 1));
        const dsc_serve_totals off = serve(&s, "schedule:1-=0", false);
        assert_int_equal(off.num_draft_tokens, 0);
        assert_int_equal(off.steps, off.output_tokens);
        const dsc_serve_totals level = serve(&s, "schedule:1-=1", false);
        assert_int_equal(level.num_draft_tokens, level.num_drafts * s.tree[1].tokens);
        const dsc_serve_totals few = serve(&s, "fixed", true);
        assert_true(few.preemptions > 0 && few.output_tokens == one.output_tokens);
        assert_ok(dsc_serve_policy_parse(&adaptive, "adaptive", s.longest, &e), e);
        assert_int_equal(dsc_serve_source_admits(&s, c.drafter, &adaptive, &e), DSC_EUSAGE);
        dsc_serve_policy_fini(&adaptive);
        dsc_serve_source_fini(&s);
        dsc_config_fini(&c);
    }
    dsc_trace_close(t);
}

// Drafts that depend on the steps before them: one client's steps are those of dsc_run on the text
// after the first token, and so are any number of clients', whatever the engine has no room for.
static void scripts(void **state)
{
    (void)state;
    dsc_trace *t = make_trace(), *after = make_trace_of("b.dst", true);
    for (int i = TREES; i < SCRIPTS; i++) {
        dsc_error e;
        dsc_serve_source s;
        dsc_serve_policy schedule;
        dsc_config c = drafted_config(i);
        double seconds;
        const dsc_counts expected = count(after, &c, &seconds);
        assert_ok(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_greedy, 0, 2, &e), e);
        assert_non_null(s.script);
        assert_true(expected.num_accepted_tokens > 50);
        assert_int_equal(s.overlap, c.drafter->parallel);
        assert_int_equal(s.drafting,
                         c.drafter->needs_draft ? DSC_SERVE_DRAFT_EACH : DSC_SERVE_DRAFT_FREE);
        for (int scarce = 0; scarce < 2; scarce++) {
            const dsc_serve_totals x = serve(&s, "fixed", scarce);
            assert_int_equal(x.num_draft_tokens, expected.num_draft_tokens);
            assert_int_equal(x.num_accepted_tokens, expected.num_accepted_tokens);
            assert_int_equal(x.num_drafts, expected.num_drafts);
            assert_true(scarce ? x.preemptions > 0 && x.most_running > 1
                               : x.steps == (int64_t)s.count + expected.target_calls);
            const double prefills = (double)s.count * (.25 + 3 * .0078125);
            assert_true(scarce || x.end_s == prefills + seconds);
        }
        assert_ok(dsc_serve_policy_parse(&schedule, "schedule:1-=0", s.longest, &e), e);
        assert_int_equal(dsc_serve_source_admits(&s, c.drafter, &schedule, &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "--speculation fixed"));
        dsc_serve_policy_fini(&schedule);
        dsc_serve_source_fini(&s);
        dsc_config_fini(&c);
    }
    dsc_trace_close(after);
    dsc_trace_close(t);
}

// Several samples at a position, in the mean over seeds as above.
static void several(void **state)
{
    (void)state;
    const int seeds = few_or_many(100, 400);
    dsc_trace *t = make_trace();
    for (int i = SCRIPTS; i < DRAFTED; i++) {
        double sum = 0, square = 0, nodes = 0, expected;
        dsc_config c = drafted_config(i);
        const walk mean = run(t, &c, &dsc_verifier_greedy, &expected);
        for (int k = 0; k < seeds; k++) {
            dsc_error e;
            dsc_serve_source s;
            assert_ok(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_greedy, (uint64_t)k, 1, &e),
                      e);
            const double x = (double)follow(&s, 0).accepted;
            sum += x;
            square += x * x;
            nodes += (double)nodes_of(&s, 0) / seeds;
            dsc_serve_source_fini(&s);
        }
        const double average = sum / seeds,
                     error = sqrt((square / seeds - average * average) / seeds);
        assert_true(error < 0.01 * expected);
        assert_close(average, expected, 4 * error);
        assert_close(nodes, (double)mean.drafted, 0.02 * (double)mean.drafted);
        dsc_config_fini(&c);
    }
    dsc_trace_close(t);
}

static void refused(void **state)
{
    (void)state;
    dsc_error e;
    dsc_serve_source s;
    dsc_trace *t = make_trace();
    dsc_config c = config_of(&dsc_drafter_hf_dynamic, NULL);
    assert_int_equal(dsc_serve_source_trace(&s, t, &c, &dsc_verifier_rejection, 0, 1, &e),
                     DSC_EUSAGE);
    assert_non_null(strstr(e.message, "--rule greedy"));
    dsc_serve_source_fini(&s);
    assert_int_equal(dsc_serve_source_rates(&s, &(dsc_serve_rates){.requests = 0}, 0, &e),
                     DSC_EUSAGE);
    dsc_serve_source_fini(&s);
    dsc_config_fini(&c);
    dsc_trace_close(t);
}

SUITE(serve_source)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exact, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(sampled, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(trees, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(scripts, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(several, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(refused, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

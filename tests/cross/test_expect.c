// SPDX-License-Identifier: Apache-2.0
// Compares expectations over traces of a synthetic pair with the loop on the pair itself. The two
// share no random number and no formula, and must agree within the loop's sampling error. Further
// tests check properties of the expectations that hold for every trace.
#include "tests/unit/model_fixture.h"

#include "sim/model/synth.h"
#include "sim/model/workload.h"
#include "sim/reduce/reduce.h"
#include "sim/run/run.h"

enum { TOKENS = 40, DRAFTS = 4, LENGTH = 6 };

static int requests = 150;

typedef struct bench {
    dsc_language *target, *draft;
    dsc_trace *rows, *reduced;
} bench;

static void write_trace(const bench *b, const char *path, int rows, double temperature)
{
    dsc_error err = {0};
    const dsc_synth o = {.load.target = b->target,
                         .load.draft = b->draft,
                         .load.requests = requests,
                         .load.prompt_tokens = 8,
                         .load.max_tokens = TOKENS,
                         .load.temperature = temperature,
                         .rows = rows,
                         .seed = 9};
    assert_ok(dsc_synthesize(&o, path, &err), err);
}

static void bench_init(bench *b, const char *target, const char *draft)
{
    dsc_error err = {0};
    *b = (bench){make(target, DSC_SIDE_TARGET), make(draft, DSC_SIDE_DRAFT), NULL, NULL};
    const char *rows = in_scratch("rows.dst"), *reduced = in_scratch("reduced.dst");
    write_trace(b, rows, 1 << 20, 1);
    assert_ok(dsc_trace_open(&b->rows, rows, &err), err);
    const dsc_reduce o = {.K = DRAFTS, .threads = 1};
    assert_ok(dsc_reduce_trace(b->rows, reduced, &o, &err), err);
    assert_ok(dsc_trace_open(&b->reduced, reduced, &err), err);
}

static void bench_fini(bench *b)
{
    dsc_trace_close(b->rows);
    dsc_trace_close(b->reduced);
    dsc_language_free(b->target);
    dsc_language_free(b->draft);
}

static dsc_config config_of(const dsc_drafter_type *d, int drafts, int length)
{
    dsc_config c = {.drafter = d};
    if (d == &dsc_drafter_spectr)
        c.parameter[0] = drafts;
    c.parameter[d == &dsc_drafter_spectr] = length;
    return c;
}

// --- means over requests -------------------------------------------------------------------------

// Quantities per request: calls, draft tokens, calls that accept nothing, calls that accept all.
enum { CALLS, TOKENS_DRAFTED, NONE, ALL, SEEN };
static const char *const seen_name[SEEN] = {"calls", "draft tokens", "calls accepting nothing",
                                            "calls accepting everything"};
typedef struct means {
    int64_t n, length; // number of requests; draft length
    double sum[SEEN], squares[SEEN];
} means;

static int see(void *user, const dsc_request *q, const dsc_counts *c, dsc_error *err)
{
    means *m = user;
    const dsc_expected x = dsc_counts_real(c);
    double bin[2];
    (void)q, (void)err;
    for (int i = 0; i < 2; i++) {
        int64_t at = i ? m->length : 0;
        bin[i] = x.histogram ? x.histogram[at] : (double)c->histogram[at];
    }
    const double seen[SEEN] = {x.target_calls, x.num_draft_tokens, bin[0], bin[1]};
    m->n++;
    for (int s = 0; s < SEEN; s++) {
        m->sum[s] += seen[s];
        m->squares[s] += seen[s] * seen[s];
    }
    return DSC_OK;
}

static double error_of(const means *m, int s)
{
    double n = (double)m->n, mean = m->sum[s] / n;
    return sqrt(fmax(m->squares[s] / n - mean * mean, 0) / (n - 1));
}

static void run_one(const dsc_trace *trace, const bench *b, const dsc_config *config,
                    const dsc_verifier_type *rule, means *m)
{
    dsc_error err = {0};
    dsc_results r;
    const dsc_workload load = {.target = b->target,
                               .draft = b->draft,
                               .temperature = 1,
                               .requests = requests,
                               .prompt_tokens = 8,
                               .max_tokens = TOKENS};
    const dsc_run_options o = {.rule = rule,
                               .workload = trace ? NULL : &load,
                               .threads = 1,
                               .seed = 77,
                               .request = see,
                               .user = m};
    *m = (means){.length = dsc_config_limit(config)};
    assert_ok(dsc_run(trace, config, 1, &o, &r, &err), err);
    assert_true((r.counts[0].expected != NULL) == (trace != NULL));
    dsc_results_fini(&r);
}

// The largest |z| of the quantities up to `last`.
static double compare_config(const bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                             const char *name, int last)
{
    means loop, sum;
    double most = 0;
    run_one(NULL, b, c, rule, &loop);
    // The place of a sequence among all needs whole rows.
    run_one(rule == &dsc_verifier_gbv ? b->rows : b->reduced, b, c, rule, &sum);
    for (int s = 0; s <= last; s++) {
        double error = hypot(error_of(&loop, s), error_of(&sum, s));
        double z = (loop.sum[s] / (double)loop.n - sum.sum[s] / (double)sum.n) / fmax(error, 1e-9);
        if (!(fabs(z) <= 4))
            fail_msg("%s, %s, %s: %s %.4f in the loop, %.4f expected, %.1f s.e.", c->drafter->name,
                     rule->name, name, seen_name[s], loop.sum[s] / (double)loop.n,
                     sum.sum[s] / (double)sum.n, z);
        most = fmax(most, fabs(z));
    }
    return most;
}

static double compare(const bench *b, const dsc_drafter_type *d, const dsc_verifier_type *rule,
                      int drafts, int length, int last)
{
    const dsc_config c = config_of(d, drafts, length);
    char name[64];
    snprintf(name, sizeof name, "%d drafts of %d", drafts, length);
    return compare_config(b, &c, rule, name, last);
}

static void loop_agrees_on_a_markov_pair(void **state)
{
    static const dsc_verifier_type *const rules[] = {&dsc_verifier_kseq, &dsc_verifier_specinfer,
                                                     &dsc_verifier_otm};
    bench b;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    for (int length = 1; length <= LENGTH; length++) {
        compare(&b, &dsc_drafter_draft_model, &dsc_verifier_rejection, 1, length, SEEN - 1);
        compare(&b, &dsc_drafter_draft_model, &dsc_verifier_block, 1, length, SEEN - 1);
        for (int r = 0; r < 3; r++)
            for (int k = 1; k <= DRAFTS && (r < 2 || length % 2); k++) // otm takes the longest
                compare(&b, &dsc_drafter_spectr, rules[r], k, length, SEEN - 1);
        compare(&b, &dsc_drafter_draft_model, &dsc_verifier_traversal, 1, length, SEEN - 1);
        for (int k = 1; k <= DRAFTS && length % 2; k++)
            compare(&b, &dsc_drafter_spectr, &dsc_verifier_gbv, k, length, SEEN - 1);
    }
    bench_fini(&b);
}

// Rules whose decisions do not follow from what was recorded along the output.
static void other_replays_are_refused(void **state)
{
    static const struct {
        const dsc_drafter_type *drafter;
        const dsc_verifier_type *rule;
        bool rows;
        const char *words;
    } cases[] = {
        {&dsc_drafter_spectr, &dsc_verifier_gbv, false, "--logprobs dense"},
        {&dsc_drafter_spectr, &dsc_verifier_traversal, true, "after tokens that it rejects"},
        {&dsc_drafter_spectr_tree, &dsc_verifier_traversal, true, "after tokens that it rejects"},
        {&dsc_drafter_draft_model, &dsc_verifier_ensemble, true, "does not have the distribution"},
        {&dsc_drafter_draft_model, &dsc_verifier_typical, true, "does not have the distribution"},
    };
    bench b;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsc_error err = {0};
        dsc_results r = {0};
        dsc_config c = config_of(cases[i].drafter, 2, 2);
        c.text[0] = cases[i].drafter == &dsc_drafter_spectr_tree ? "2,2" : NULL;
        assert_ok(dsc_config_prepare(&c, &err), err);
        const dsc_run_options o = {.rule = cases[i].rule, .threads = 1};
        assert_int_equal(dsc_run(cases[i].rows ? b.rows : b.reduced, &c, 1, &o, &r, &err),
                         DSC_EUSAGE);
        if (!strstr(err.message, cases[i].words))
            fail_msg("'%s' is not in: %s", cases[i].words, err.message);
        dsc_config_fini(&c);
    }
    bench_fini(&b);
}

static void loop_agrees_on_trees(void **state)
{
    static const dsc_verifier_type *const rules[] = {&dsc_verifier_kseq, &dsc_verifier_specinfer,
                                                     &dsc_verifier_otm};
    static const char *const trees[] = {"1", "4", "2,2", "1,3", "2,1,2", "1,2,1,2,1,1"};
    dsc_error err = {0};
    bench b;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    for (int r = 0; r < 3; r++)
        for (size_t t = 0; t < sizeof trees / sizeof *trees; t++) {
            dsc_config c = {.drafter = &dsc_drafter_spectr_tree, .text = {trees[t]}};
            assert_ok(dsc_config_prepare(&c, &err), err);
            compare_config(&b, &c, rules[r], trees[t], SEEN - 1);
            dsc_config_fini(&c);
        }
    bench_fini(&b);
}

// Outputs that end at EOS. Drafts that end at EOS have fewer tokens, and a trace does not contain
// where that happens, so draft tokens are not compared.
static void loop_agrees_on_ngrams(void **state)
{
    static const char text[] = "the cat sat on the mat and the dog sat on the log. "
                               "a cat and a dog met on a mat. the log sat on a mat.\n";
    char spec[2][500];
    bench b;
    (void)state;
    const char *path = in_scratch("corpus.txt");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 12; i++)
        fprintf(f, "%.*s\n", 20 + 3 * i, text + 5 * i % 50);
    assert_int_equal(fclose(f), 0);
    snprintf(spec[0], sizeof spec[0], "ngram:%s,order=4,hold=4", path);
    snprintf(spec[1], sizeof spec[1], "ngram:%s,order=2,hold=4", path);
    bench_init(&b, spec[0], spec[1]);
    for (int length = 1; length <= LENGTH; length += 2) {
        compare(&b, &dsc_drafter_draft_model, &dsc_verifier_rejection, 1, length, CALLS);
        compare(&b, &dsc_drafter_draft_model, &dsc_verifier_block, 1, length, CALLS);
        compare(&b, &dsc_drafter_spectr, &dsc_verifier_kseq, 3, length, CALLS);
        compare(&b, &dsc_drafter_spectr, &dsc_verifier_specinfer, 2, length, CALLS);
    }
    bench_fini(&b);
}

// --- properties ----------------------------------------------------------------------------------

enum { GRID = DRAFTS * (LENGTH + 1) };

static size_t at(int drafts, int length)
{
    return (size_t)((drafts - 1) * (LENGTH + 1) + length);
}

// Every number of drafts with every length; method draft-model has one draft.
static void run_grid(const dsc_trace *trace, const dsc_drafter_type *d,
                     const dsc_verifier_type *rule, int threads, dsc_results *r)
{
    dsc_error err = {0};
    dsc_config config[GRID];
    size_t n = 0;
    for (int k = 1; k <= (d == &dsc_drafter_spectr ? DRAFTS : 1); k++)
        for (int length = 0; length <= LENGTH; length++)
            config[n++] = config_of(d, k, length);
    const dsc_run_options o = {.rule = rule, .threads = threads, .engine = DSC_ENGINE_EXPECT};
    assert_ok(dsc_run(trace, config, n, &o, r, &err), err);
}

static void one_draft_is_one_rule(void **state)
{
    static const dsc_verifier_type *const rules[] = {&dsc_verifier_kseq, &dsc_verifier_specinfer,
                                                     &dsc_verifier_otm};
    bench b;
    dsc_results single, r;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    run_grid(b.rows, &dsc_drafter_draft_model, &dsc_verifier_rejection, 1, &single);
    for (int i = 0; i < 3; i++) {
        run_grid(b.reduced, &dsc_drafter_spectr, rules[i], 1, &r);
        for (int length = 0; length <= LENGTH; length++) {
            const dsc_expected *x = r.counts[at(1, length)].expected;
            const dsc_expected *y = single.counts[length].expected;
            assert_close(x->target_calls, y->target_calls, 1e-9 * y->target_calls);
            assert_close(x->num_draft_tokens, y->num_draft_tokens, 1e-9 * y->num_draft_tokens);
        }
        dsc_results_fini(&r);
    }
    dsc_results_fini(&single);
    bench_fini(&b);
}

static void longer_drafts_and_better_rules_save_calls(void **state)
{
    static const dsc_verifier_type *const rules[] = {&dsc_verifier_specinfer, &dsc_verifier_kseq,
                                                     &dsc_verifier_otm};
    bench b;
    dsc_results r[3], single, block;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    run_grid(b.rows, &dsc_drafter_draft_model, &dsc_verifier_rejection, 1, &single);
    run_grid(b.rows, &dsc_drafter_draft_model, &dsc_verifier_block, 1, &block);
    for (int i = 0; i < 3; i++)
        run_grid(b.reduced, &dsc_drafter_spectr, rules[i], 1, &r[i]);
    for (int k = 1; k <= DRAFTS; k++)
        for (int length = 0; length <= LENGTH; length++)
            for (int i = 0; i < 3; i++) {
                double calls = r[i].counts[at(k, length)].expected->target_calls;
                if (length) // longer drafts
                    assert_true(calls < r[i].counts[at(k, length - 1)].expected->target_calls);
                else
                    assert_close(calls, requests * TOKENS, 0);
                if (length && k > 1) // more of them
                    assert_true(calls < r[i].counts[at(k - 1, length)].expected->target_calls);
                if (length && k > 1 && i) // a better rule
                    assert_true(calls < r[i - 1].counts[at(k, length)].expected->target_calls);
            }
    for (int length = 1; length <= LENGTH; length++) {
        double s = single.counts[length].expected->target_calls;
        double w = block.counts[length].expected->target_calls;
        if (length == 1) // block verification is rejection sampling there
            assert_close(w, s, 1e-9 * s);
        else
            assert_true(w < s);
    }
    for (int i = 0; i < 3; i++)
        dsc_results_fini(&r[i]);
    dsc_results_fini(&single);
    dsc_results_fini(&block);
    bench_fini(&b);
}

static void assert_sums(const dsc_counts *c)
{
    const dsc_expected *x = c->expected;
    double calls = 0, accepted = 0;
    for (int64_t m = 0; m < c->histogram_length; m++) {
        assert_true(x->histogram[m] >= 0);
        calls += x->histogram[m];
        accepted += (double)m * x->histogram[m];
    }
    assert_close(calls, x->target_calls, 1e-9 * calls);
    assert_close(accepted, x->num_accepted_tokens, 1e-9 * calls);
    assert_close(accepted + calls, (double)c->output_tokens, 1e-9 * calls);
    assert_true(x->num_accepted_tokens <= x->num_draft_tokens);
    double with_drafts = 0;
    for (int64_t m = 1; m < c->lengths_length; m++)
        with_drafts += x->lengths[m];
    assert_close(with_drafts, x->num_drafts, 1e-9 * calls);
}

// The statistics give the results of the full distributions, within fp32 precision, and results do
// not depend on the number of threads.
static void statistics_equal_distributions(void **state)
{
    static const dsc_verifier_type *const rules[] = {&dsc_verifier_kseq, &dsc_verifier_specinfer,
                                                     &dsc_verifier_otm, &dsc_verifier_greedy};
    bench b;
    dsc_results rows, columns, again;
    (void)state;
    bench_init(&b, "markov:6,noise=1.5", "markov:6,noise=1.5");
    for (int i = 0; i < 4; i++) {
        run_grid(b.rows, &dsc_drafter_spectr, rules[i], 1, &rows);
        run_grid(b.reduced, &dsc_drafter_spectr, rules[i], 1, &columns);
        run_grid(b.reduced, &dsc_drafter_spectr, rules[i], 3, &again);
        for (size_t c = 0; c < rows.count; c++) {
            const dsc_expected *x = rows.counts[c].expected, *y = columns.counts[c].expected;
            assert_sums(&rows.counts[c]);
            assert_close(x->target_calls, y->target_calls, 2e-6 * x->target_calls);
            assert_close(x->num_draft_tokens, y->num_draft_tokens, 2e-6 * x->num_draft_tokens);
            assert_close(y->target_calls, again.counts[c].expected->target_calls, 0);
            assert_close(y->num_draft_tokens, again.counts[c].expected->num_draft_tokens, 0);
            for (int64_t m = 0; m < rows.counts[c].histogram_length; m++)
                assert_close(y->histogram[m], again.counts[c].expected->histogram[m], 0);
        }
        dsc_results_fini(&rows);
        dsc_results_fini(&columns);
        dsc_results_fini(&again);
    }
    bench_fini(&b);
}

// --- greedy --------------------------------------------------------------------------------------

// At temperature 0 the loop on the pair generates the outputs of the trace, so the counts are
// equal.
static void greedy_counts_are_equal(void **state)
{
    dsc_error err = {0};
    bench b = {0};
    dsc_trace *trace;
    dsc_results loop, sum, copied;
    (void)state;
    b.target = make("markov:50,noise=0.3", DSC_SIDE_TARGET);
    b.draft = make("markov:50,noise=0.3", DSC_SIDE_DRAFT);
    const char *path = in_scratch("greedy.dst");
    write_trace(&b, path, 0, 0);
    assert_ok(dsc_trace_open(&trace, path, &err), err);
    const dsc_workload load = {.target = b.target,
                               .draft = b.draft,
                               .requests = requests,
                               .prompt_tokens = 8,
                               .max_tokens = TOKENS};
    const dsc_run_options model = {.workload = &load, .threads = 1}, recorded = {.threads = 1};
    for (int length = 0; length <= LENGTH; length++) {
        dsc_config c = config_of(&dsc_drafter_draft_model, 1, length);
        assert_ok(dsc_run(NULL, &c, 1, &model, &loop, &err), err);
        assert_ok(dsc_run(trace, &c, 1, &recorded, &sum, &err), err);
        const dsc_expected x = dsc_counts_real(&loop.counts[0]), *y = sum.counts[0].expected;
        assert_close(x.target_calls, y->target_calls, 0);
        assert_close(x.num_drafts_started, y->num_drafts_started, 0);
        assert_close(x.num_drafts, y->num_drafts, 0);
        assert_close(x.num_draft_tokens, y->num_draft_tokens, 0);
        assert_close(x.num_accepted_tokens, y->num_accepted_tokens, 0);
        assert_close(x.draft_calls, y->draft_calls, 0);
        assert_close(x.draft_call_tokens, y->draft_call_tokens, 0);
        for (int64_t m = 0; m < sum.counts[0].histogram_length; m++)
            assert_close((double)loop.counts[0].histogram[m], y->histogram[m], 0);
        for (int64_t m = 0; m < sum.counts[0].histogram_length; m++)
            assert_close((double)loop.counts[0].whole[m], y->whole[m], 0);
        for (int64_t m = 0; m < sum.counts[0].lengths_length; m++)
            assert_close((double)loop.counts[0].lengths[m], y->lengths[m], 0);
        dsc_results_fini(&loop);
        dsc_results_fini(&sum);
    }
    // LLMA drafts one deterministic sequence, so every lossless rule accepts the same tokens.
    dsc_config llma = {.drafter = &dsc_drafter_llma, .parameter = {2, 8, 0, 0, 0, 0}};
    dsc_run_options certain = {.threads = 1, .rule = &dsc_verifier_specinfer};
    assert_ok(dsc_run(trace, &llma, 1, &recorded, &loop, &err), err);
    assert_ok(dsc_run(trace, &llma, 1, &certain, &copied, &err), err);
    assert_int_equal(loop.counts[0].target_calls, copied.counts[0].target_calls);
    dsc_results_fini(&loop);
    dsc_results_fini(&copied);
    dsc_trace_close(trace);
    bench_fini(&b);
}

// --- a recorded draft model ----------------------------------------------------------------------

static void assert_same_counts(const dsc_counts *x, const dsc_counts *y)
{
    const int64_t *a = (const int64_t *)x, *b = (const int64_t *)y;
    for (int i = 0; i < DSC_COUNTS_TOTALS; i++)
        assert_int_equal(a[i], b[i]);
    for (int64_t m = 0; m < x->histogram_length && m < y->histogram_length; m++)
        assert_int_equal(x->histogram[m], y->histogram[m]);
    assert_int_equal(x->lengths_length, y->lengths_length);
    for (int64_t m = 0; m < x->lengths_length; m++)
        assert_int_equal(x->lengths[m], y->lengths[m]);
    assert_int_equal(x->width_length, y->width_length);
    for (int64_t m = 0; m < x->width_length; m++)
        assert_int_equal(x->width[m], y->width[m]);
    assert_int_equal(x->parallel_length, y->parallel_length);
    for (int64_t m = 0; m < x->parallel_length * x->parallel_length; m++)
        assert_int_equal(x->parallel_steps[m], y->parallel_steps[m]);
}

// The rank of y in the draft model's distribution before the temperature. Ties are broken by the
// lower token id.
static uint16_t rank_of(dsc_model_synthetic *m, int32_t y)
{
    static const dsc_draft none = {0};
    static double row[64];
    dsc_error err = {0};
    dsc_dist dist;
    int rank = 0;
    assert_ok(m->base.type->score(&m->base, &none, &err), err);
    assert_ok(m->base.type->base_dist(&m->base, -1, &dist, &err), err);
    dsc_dist_fill(&dist, row);
    for (int32_t x = 0; x < dist.vocab_size; x++)
        rank += row[x] > row[y] || (row[x] == row[y] && x < y);
    return (uint16_t)rank;
}

enum { DEPTH = 10 };

// Copies a trace and adds the ranks of the output's tokens under a draft model.
static void add_ranks(const dsc_trace *trace, const dsc_language *draft, const char *path)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    dsc_shard *shard;
    dsc_model_synthetic m = {0};
    dsc_trace_info info = *dsc_trace_get_info(trace);
    info.has_draft_rank = true;
    info.rank_depth = DEPTH;
    assert_int_equal(dsc_trace_shards(trace), 1);
    assert_ok(dsc_trace_writer_open(&w, path, &info, false, 0, &err), err);
    assert_ok(dsc_shard_open(&shard, trace, 0, &err), err);
    for (int64_t i = 0; i < info.requests; i++) {
        uint16_t own[TOKENS], rank[TOKENS][DEPTH];
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        assert_ok(dsc_model_synthetic_begin(&m, draft, q.prompt, TOKENS, 1, &err), err);
        for (int64_t j = 0; j < q.output.count; j++) {
            own[j] = rank_of(&m, q.output.id[j]);
            assert_ok(m.base.type->commit(&m.base, &q.output.id[j], 1, &err), err);
        }
        for (int64_t j = 0; j < q.output.count; j++)
            for (int64_t d = 0; d < DEPTH; d++)
                rank[j][d] = j + d < q.output.count ? own[j + d] : DSC_RANK_NONE;
        const dsc_request_input in = {
            .id = q.id,
            .prompt = q.prompt,
            .output = q.output,
            .target_logp = q.target_logp,
            .draft_logp = q.draft_logp,
            .replayed = {.argmax = {q.replayed.argmax[0], q.replayed.argmax[1]},
                         .entropy = {q.replayed.entropy[0], q.replayed.entropy[1]},
                         .draft_rank = rank[0]}};
        assert_ok(dsc_trace_writer_add(w, &in, &err), err);
    }
    assert_ok(dsc_trace_writer_commit(w, NULL, &err), err);
    dsc_shard_close(shard);
    dsc_model_synthetic_fini(&m);
}

// Greedy runs of a pair and replays of its recorded ranks have equal counts.
static void ranks_replace_the_draft_model(void **state)
{
    static const dsc_config config[] = {
        {.drafter = &dsc_drafter_draft_model, .parameter = {5}},
        {.drafter = &dsc_drafter_hf_dynamic, .parameter = {3, 2, 1, 1, 9}},
        {.drafter = &dsc_drafter_tree, .text = {"eagle"}},
        {.drafter = &dsc_drafter_tree, .text = {"3^3"}},
        {.drafter = &dsc_drafter_sequoia,
         .parameter = {24, 6},
         .text = {NULL, NULL, ".5,.2,.1,.05"}},
        {.drafter = &dsc_drafter_pearl, .parameter = {3, 0, 0}},
        {.drafter = &dsc_drafter_pearl, .parameter = {3, 1, 0}},
        {.drafter = &dsc_drafter_pearl, .parameter = {3, 0, 1}},
        {.drafter = &dsc_drafter_pearl, .parameter = {2, 1, 1}}};
    dsc_error err = {0};
    bench b = {0};
    dsc_trace *plain, *trace;
    (void)state;
    b.target = make("markov:50,noise=0.3", DSC_SIDE_TARGET);
    b.draft = make("markov:50,noise=0.3", DSC_SIDE_DRAFT);
    const char *path = in_scratch("greedy.dst"), *ranked = in_scratch("ranked.dst");
    write_trace(&b, path, 0, 0);
    assert_ok(dsc_trace_open(&plain, path, &err), err);
    add_ranks(plain, b.draft, ranked);
    assert_ok(dsc_trace_open(&trace, ranked, &err), err);
    const dsc_workload load = {.target = b.target,
                               .draft = b.draft,
                               .requests = requests,
                               .prompt_tokens = 8,
                               .max_tokens = TOKENS};
    const dsc_run_options model = {.workload = &load, .widths = true, .threads = 1},
                          recorded = {.engine = DSC_ENGINE_LOOP, .widths = true, .threads = 2};
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        dsc_config c = config[i];
        dsc_results want, got;
        assert_ok(dsc_config_prepare(&c, &err), err);
        assert_ok(dsc_run(NULL, &c, 1, &model, &want, &err), err);
        assert_ok(dsc_run(trace, &c, 1, &recorded, &got, &err), err);
        assert_true(got.counts[0].num_accepted_tokens > 0);
        assert_same_counts(&got.counts[0], &want.counts[0]);
        dsc_results_fini(&want);
        dsc_results_fini(&got);
        dsc_config_fini(&c);
    }
    dsc_trace_close(trace);
    dsc_trace_close(plain);
    bench_fini(&b);
}

// --- errors name the missing data ----------------------------------------------------------------

static void assert_refused(const dsc_trace *trace, dsc_config config, const dsc_verifier_type *rule,
                           dsc_engine engine, const char *word)
{
    dsc_error err = {0};
    dsc_engine_choice choice;
    dsc_results r;
    const dsc_run_options o = {.rule = rule, .threads = 1, .engine = engine};
    assert_int_equal(dsc_run_choose(trace, &config, 1, &o, &choice, &err), DSC_EUSAGE);
    if (!strstr(err.message, word))
        fail_msg("'%s', expected '%s'", err.message, word);
    assert_int_equal(dsc_run(trace, &config, 1, &o, &r, &err), DSC_EUSAGE);
}

static void errors_name_the_missing_data(void **state)
{
    dsc_error err = {0};
    bench b = {0};
    dsc_trace *bare;
    (void)state;
    bench_init(&b, "markov:6", "markov:6");
    dsc_language *draft = b.draft;
    b.draft = NULL;
    const char *path = in_scratch("bare.dst");
    write_trace(&b, path, 0, 1);
    b.draft = draft;
    assert_ok(dsc_trace_open(&bare, path, &err), err);
    const dsc_config chain = config_of(&dsc_drafter_draft_model, 1, 4);
    const dsc_config two = config_of(&dsc_drafter_spectr, 2, 4);
    const dsc_engine any = DSC_ENGINE_AUTO;
    assert_refused(bare, chain, &dsc_verifier_rejection, any, "column draft_logp");
    assert_refused(bare, chain, &dsc_verifier_greedy, any, "column draft_argmax");
    assert_refused(bare, two, &dsc_verifier_kseq, any, "column kseq, draft_logp");
    assert_refused(b.reduced, config_of(&dsc_drafter_spectr, DRAFTS + 1, 4), &dsc_verifier_otm, any,
                   "up to 4 drafts, not to 5");
    assert_refused(b.reduced, chain, &dsc_verifier_typical, any, "--draft");
    assert_refused(b.reduced, two, &dsc_verifier_kseq, DSC_ENGINE_LOOP, "--draft");
    assert_refused(bare, (dsc_config){.drafter = &dsc_drafter_oracle}, &dsc_verifier_typical,
                   DSC_ENGINE_EXPECT, "no exact replay");
    // A recorded draft model with one rank per position.
    assert_refused(b.reduced, (dsc_config){.drafter = &dsc_drafter_threshold, .parameter = {0, 4}},
                   &dsc_verifier_greedy, any, "probabilities off the output");
    assert_refused(b.reduced, two, &dsc_verifier_greedy, DSC_ENGINE_LOOP, "samples from the draft");
    dsc_config tree = {.drafter = &dsc_drafter_tree, .text = {"2^3"}};
    assert_ok(dsc_config_prepare(&tree, &err), err);
    assert_refused(b.reduced, tree, &dsc_verifier_greedy, any, "with --rank-depth 3");
    assert_refused(bare, tree, &dsc_verifier_greedy, any, "draftscope live record");
    dsc_config_fini(&tree);
    dsc_config nodes = {.drafter = &dsc_drafter_spectr_tree, .text = {"2,3"}};
    assert_ok(dsc_config_prepare(&nodes, &err), err);
    assert_refused(b.reduced, nodes, &dsc_verifier_kseq, any, "up to 4 drafts, not to 6");
    dsc_config_fini(&nodes);
    dsc_trace_close(bare);
    bench_fini(&b);
}

SUITE(expect)
{
#define WITH_SCRATCH(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(loop_agrees_on_a_markov_pair),
        WITH_SCRATCH(loop_agrees_on_ngrams),
        WITH_SCRATCH(loop_agrees_on_trees),
        WITH_SCRATCH(other_replays_are_refused),
        WITH_SCRATCH(ranks_replace_the_draft_model),
        WITH_SCRATCH(one_draft_is_one_rule),
        WITH_SCRATCH(longer_drafts_and_better_rules_save_calls),
        WITH_SCRATCH(statistics_equal_distributions),
        WITH_SCRATCH(greedy_counts_are_equal),
        WITH_SCRATCH(errors_name_the_missing_data),
    };
    requests = few_or_many(50, requests);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

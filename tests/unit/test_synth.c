// SPDX-License-Identifier: Apache-2.0
// Tests that synthetic traces contain their models' distributions, and that recorded rows are read
// as distributions.
#include "model_fixture.h"

#include "base/rng.h"
#include "sim/model/model_trace.h"
#include "sim/model/synth.h"

static const char corpus_text[] = "the cat sat on the mat\nthe dog sat on the log\n"
                                  "a cat and a dog met on the mat\nthe log sat on a mat\n"
                                  "on the mat a dog sat\ndogs sat on a cat\n";

typedef struct pair {
    dsc_language *target, *draft;
} pair;

static pair ngram_pair(void)
{
    char spec[500];
    put_text(in_scratch("corpus.txt"), corpus_text);
    snprintf(spec, sizeof spec, "ngram:%s,order=4,hold=3", in_scratch("corpus.txt"));
    dsc_language *target = make(spec, DSC_SIDE_TARGET);
    snprintf(spec, sizeof spec, "ngram:%s,2,hold=3", in_scratch("corpus.txt"));
    return (pair){target, make(spec, DSC_SIDE_DRAFT)};
}

enum { SEED = 11, MOST_VOCAB = 512 };

// A row against the distribution it was made from: the most probable tokens, and the mass of the
// others.
static void check_row(const dsc_row *row, const double *dist, int32_t vocab, int64_t listed)
{
    double is[MOST_VOCAB], least = 1, others = 0, tail = dsc_row_dist(row, vocab, is);
    assert_int_equal(row->count, listed);
    assert_int_equal(!row->token, listed == vocab); // all of them are no list
    for (int32_t x = 0; x < vocab; x++)
        if (is[x] > 0) {
            assert_close(is[x] / dist[x], 1, 1e-5);
            least = fmin(least, dist[x]);
        }
    for (int32_t x = 0; x < vocab; x++)
        if (!(is[x] > 0)) {
            others += dist[x];
            assert_true(dist[x] <= least);
        }
    assert_close(tail, others, 1e-6);
}

// Checks the recorded values of one position against the models.
static void check_position(const pair *p, const dsc_request *q, dsc_model_side side, int64_t j,
                           const int32_t *text, int64_t rows)
{
    const dsc_language *l = side == DSC_SIDE_TARGET ? p->target : p->draft;
    const float *logp = side == DSC_SIDE_TARGET ? q->target_logp : q->draft_logp;
    size_t before = (size_t)(q->prompt.count + j);
    double dist[MOST_VOCAB], entropy = 0;
    dsc_row row;
    dsc_dist d = dist_at(l, text, before);
    double u = dsc_rng_uniform(SEED, (uint64_t)q->index, (uint32_t)j, DSC_RNG_OUTPUT);
    if (side == DSC_SIDE_TARGET)
        assert_int_equal(q->output.id[j], dsc_dist_sample(&d, u));
    dsc_dist_fill(&d, dist);
    for (int32_t x = 0; x < l->vocab_size; x++)
        entropy -= dist[x] * log(dist[x]);
    assert_close(logp[j], log(dist[q->output.id[j]]), 1e-6);
    assert_close(q->replayed.entropy[side][j], entropy, 1e-6);
    assert_int_equal(q->replayed.argmax[side][j],
                     l->type->best(l, &(dsc_place){text, before, 0, 0, 0}));
    assert_int_equal(dsc_request_row(q, side, j, &row), rows > 0);
    if (rows)
        check_row(&row, dist, l->vocab_size, rows);
}

static void check_request(const pair *p, const dsc_request *q, int64_t rows)
{
    int32_t text[512];
    memcpy(text, q->prompt.id, (size_t)q->prompt.count * sizeof *text);
    memcpy(text + q->prompt.count, q->output.id, (size_t)q->output.count * sizeof *text);
    for (int64_t j = 0; j < q->output.count; j++)
        for (int side = 0; side < DSC_SIDES; side++)
            check_position(p, q, (dsc_model_side)side, j, text, rows);
}

static void synthesize_and_check(const pair *p, int32_t rows, char hash[DSC_SHA256_HEX])
{
    enum { REQUESTS = 6, PROMPT = 5, MAX_TOKENS = 40 };
    // Lines 3 and 6 are held out.
    static const int32_t prompt[2][PROMPT] = {{256, 'a', ' ', 'c', 'a'}, {256, 'd', 'o', 'g', 's'}};
    dsc_error err;
    dsc_trace *t;
    dsc_shard *shard;
    int ends = 0;
    dsc_synth o = {.load.target = p->target,
                   .load.draft = p->draft,
                   .load.requests = REQUESTS,
                   .load.prompt_tokens = PROMPT,
                   .load.max_tokens = MAX_TOKENS,
                   .load.temperature = 1,
                   .rows = rows,
                   .seed = SEED,
                   .force = true};
    assert_ok(dsc_synthesize(&o, in_scratch("s.dst"), &err), err);
    assert_ok(dsc_trace_open(&t, in_scratch("s.dst"), &err), err);
    assert_ok(dsc_trace_verify(t, &err), err);
    const dsc_trace_info *info = dsc_trace_get_info(t);
    assert_int_equal(info->requests, REQUESTS);
    assert_string_equal(info->tokenizer_name, "bytes");
    assert_string_equal(info->tokenizer_sha256, p->target->tokenizer_sha256);
    assert_int_equal(info->eos_token, 257);
    memcpy(hash, info->hash, DSC_SHA256_HEX);
    assert_ok(dsc_shard_open(&shard, t, 0, &err), err);
    for (int64_t i = 0; i < REQUESTS; i++) {
        dsc_request q;
        dsc_shard_request(shard, i, &q);
        assert_int_equal(q.prompt.count, PROMPT);
        assert_memory_equal(q.prompt.id, prompt[i % 2], sizeof prompt[0]);
        bool end = q.output.id[q.output.count - 1] == 257;
        assert_true(end || q.output.count == MAX_TOKENS);
        ends += end;
        check_request(p, &q, rows);
    }
    assert_true(ends > 0);
    dsc_shard_close(shard);
    dsc_trace_close(t);
}

static void traces_hold_what_models_say(void **state)
{
    (void)state;
    char hash[DSC_SHA256_HEX], again[DSC_SHA256_HEX];
    pair p = ngram_pair();
    synthesize_and_check(&p, 0, hash);
    synthesize_and_check(&p, 0, again);
    assert_string_equal(hash, again);
    synthesize_and_check(&p, 8, hash);
    synthesize_and_check(&p, 258, hash);
    dsc_language_free(p.target);
    dsc_language_free(p.draft);
}

// At temperature 0 distributions are of one token, and prompts end before the end of their text.
static void greedy_traces(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace *t;
    dsc_shard *shard;
    dsc_request q;
    pair p = ngram_pair();
    dsc_synth o = {.load.target = p.target,
                   .load.draft = p.draft,
                   .load.requests = 30,
                   .load.prompt_tokens = 1000,
                   .load.max_tokens = 12,
                   .load.temperature = 0,
                   .rows = 2};
    assert_ok(dsc_synthesize(&o, in_scratch("g.dst"), &err), err);
    assert_int_equal(dsc_synthesize(&o, in_scratch("g.dst"), &err), DSC_EUSAGE); // exists
    assert_ok(dsc_trace_open(&t, in_scratch("g.dst"), &err), err);
    assert_ok(dsc_trace_verify(t, &err), err);
    assert_ok(dsc_shard_open(&shard, t, 0, &err), err);
    dsc_shard_request(shard, 0, &q); // "a cat and a dog met on the mat" but for its end
    assert_int_equal(q.prompt.count, 1 + 30);
    assert_int_equal(q.prompt.id[30], 't');
    for (int64_t j = 0; j < q.output.count; j++) {
        assert_int_equal(q.output.id[j], q.replayed.argmax[DSC_SIDE_TARGET][j]);
        assert_true(q.target_logp[j] == 0);
        bool same = q.replayed.argmax[DSC_SIDE_DRAFT][j] == q.output.id[j];
        assert_true(q.draft_logp[j] == (same ? 0 : -INFINITY));
    }
    dsc_shard_close(shard);
    dsc_trace_close(t);
    dsc_language_free(p.target);
    dsc_language_free(p.draft);
}

// A trace is a corpus too; without prompts or a common vocabulary there is no trace.
static void synth_refuses(void **state)
{
    (void)state;
    dsc_error err;
    char spec[500];
    pair p = ngram_pair();
    dsc_synth o = {.load.target = p.target,
                   .load.requests = 30,
                   .load.prompt_tokens = 8,
                   .load.max_tokens = 12,
                   .load.temperature = 1};
    assert_ok(dsc_synthesize(&o, in_scratch("g.dst"), &err), err);
    snprintf(spec, sizeof spec, "ngram:%s,order=3,hold=0", in_scratch("g.dst"));
    dsc_language *again = make(spec, DSC_SIDE_TARGET), *iid = make("iid:0.5", DSC_SIDE_TARGET);
    assert_int_equal(again->vocab_size, 258);
    assert_int_equal(again->end_token, 257);
    o.load.target = again;
    assert_int_equal(dsc_synthesize(&o, in_scratch("h.dst"), &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "hold=0"));
    o.load.target = iid;
    assert_ok(dsc_synthesize(&o, in_scratch("i.dst"), &err), err); // has no prompts
    o.load.draft = p.draft;
    assert_int_equal(dsc_synthesize(&o, in_scratch("h.dst"), &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "vocabularies"));
    o.load.draft = NULL;
    o.load.max_tokens = 0;
    assert_int_equal(dsc_synthesize(&o, in_scratch("h.dst"), &err), DSC_EUSAGE);
    assert_int_not_equal(access(in_scratch("h.dst"), F_OK), 0);
    dsc_language_free(again);
    dsc_language_free(iid);
    dsc_language_free(p.target);
    dsc_language_free(p.draft);
}

SUITE(synth)
{
#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(traces_hold_what_models_say),
        IN_SCRATCH(greedy_traces),
        IN_SCRATCH(synth_refuses),
    };
    return cmocka_run_group_tests_name("synth", tests, NULL, NULL);
}

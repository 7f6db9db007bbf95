// SPDX-License-Identifier: Apache-2.0
// Languages: distributions that add up to 1, an n-gram model against a recount by brute force,
// sampling by inversion, Markov chains, pairs of a given acceptance; the models on top of them;
// recorded rows as distributions; synthetic traces.
#include "model_fixture.h"
#include "tests/zero_counts.h"

#include "base/rng.h"
#include "sim/loop.h"
#include "sim/model/model_iid.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_ngram.h"
#include "sim/model/model_synthetic.h"
#include "theory/curve.h"
#include "theory/single.h"

enum { VOCAB = 7, MOST_TOKENS = 4000 };

// --- a corpus by hand --------------------------------------------------------------------------

// Sequences of 2 to 12 tokens, low ids more probable; the last token of the vocabulary never
// occurs.
static dsc_corpus random_corpus(int64_t sequences, uint64_t seed)
{
    static int32_t token[MOST_TOKENS];
    static int64_t start[MOST_TOKENS];
    dsc_corpus c = {.count = sequences, .vocab_size = VOCAB, .end_token = VOCAB - 2};
    int64_t at = 0;
    for (int64_t s = 0; s < sequences; s++) {
        uint32_t n = 2 + dsc_rng_below(seed, (uint64_t)s, 0, 100, 11);
        start[s] = at;
        token[at++] = -1;
        for (uint32_t i = 0; i < n; i++) {
            double u = dsc_rng_uniform(seed, (uint64_t)s, i, 101);
            token[at++] = (int32_t)(u * u * (VOCAB - 1));
        }
    }
    start[sequences] = at;
    dsc_error err;
    assert_ok(dsc_alloc(&c.token, (size_t)at, sizeof *token, &err), err);
    assert_ok(dsc_alloc(&c.start, (size_t)sequences + 1, sizeof *start, &err), err);
    memcpy(c.token, token, (size_t)at * sizeof *token);
    memcpy(c.start, start, ((size_t)sequences + 1) * sizeof *start);
    return c;
}

// How often x followed the context in sequences that are learnt (x < 0: anything).
static int64_t recount(const dsc_corpus *c, int64_t hold, const int32_t *context, int64_t length,
                       int32_t x)
{
    int64_t n = 0;
    for (int64_t s = 0; s < c->count; s++) {
        dsc_token_view q = dsc_corpus_sequence(c, s);
        for (int64_t i = length > 1 ? length : 1; i < q.count; i++)
            n += !(hold && s % hold == hold - 1) && (x < 0 || q.id[i] == x) &&
                 !memcmp(q.id + i - length, context, (size_t)length * sizeof *context);
    }
    return n;
}

// The equations of sim/model/model_ngram.h, term by term.
static double brute_force(const dsc_corpus *c, const dsc_ngram_options *o, const int32_t *recent,
                          int64_t count, int32_t x)
{
    double p = 1.0 / c->vocab_size;
    for (int64_t j = 0; j < o->order && j <= count; j++) {
        const int32_t *context = recent + count - j;
        double n = (double)recount(c, o->hold, context, j, -1), different = 0;
        if (n == 0)
            break;
        for (int32_t t = 0; t < c->vocab_size; t++)
            different += recount(c, o->hold, context, j, t) > 0;
        double other = 1 - (1 - (j ? o->mix : 0)) * n / (n + different);
        p = (1 - other) * (double)recount(c, o->hold, context, j, x) / n + other * p;
    }
    return p;
}

static void check_context(const dsc_language *l, const dsc_corpus *c, const dsc_ngram_options *o,
                          const int32_t *recent, int64_t count)
{
    double dist[VOCAB], sum = 0;
    int32_t best = 0;
    dsc_dist d = dist_at(l, recent, (size_t)count);
    dsc_dist_fill(&d, dist);
    for (int32_t x = 0; x < VOCAB; x++) {
        assert_close(dist[x], brute_force(c, o, recent, count, x), 1e-14);
        assert_true(dist[x] > 0);
        assert_close(dsc_dist_probability(&d, x), dist[x], 1e-16);
        sum += dist[x];
        if (dist[x] > dist[best])
            best = x;
    }
    assert_close(sum, 1, 1e-14);
    int32_t said = l->type->best(l, &(dsc_place){recent, (size_t)count, count, 0, 0});
    if (said != best) // ties: rounding decides
        assert_close(dist[said], dist[best], 1e-15);
}

static void ngram_is_the_recount(void **state)
{
    (void)state;
    static const dsc_ngram_options options[] = {{1, 0, 0},   {2, 0, 0},  {4, 0, 0},
                                                {4, 0.3, 5}, {16, 0, 3}, {3, 1, 0}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        dsc_corpus c = random_corpus(60, i), learnt = random_corpus(60, i);
        dsc_language *l;
        dsc_error err;
        assert_ok(dsc_ngram_learn(&l, &learnt, &options[i], &err), err);
        assert_int_equal(l->end_token, VOCAB - 2);
        for (int64_t s = 0; s < c.count; s += 4) { // held-out contexts too
            dsc_token_view q = dsc_corpus_sequence(&c, s);
            for (int64_t n = 0; n <= q.count; n++)
                check_context(l, &c, &options[i], q.id, n);
        }
        const int32_t never[] = {VOCAB - 1, 1, 0}, cut[] = {1, VOCAB - 1};
        check_context(l, &c, &options[i], never, 3);
        check_context(l, &c, &options[i], cut, 2);
        dsc_language_free(l);
        dsc_corpus_fini(&c);
    }
}

static void ngram_refuses(void **state)
{
    (void)state;
    dsc_language *l;
    dsc_error err;
    dsc_corpus c = random_corpus(3, 1);
    assert_int_equal(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){17, 0, 0}, &err), DSC_EUSAGE);
    assert_null(c.token);
    c = random_corpus(3, 1);
    assert_int_equal(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){2, 1.5, 0}, &err), DSC_EUSAGE);
    c = random_corpus(3, 1);
    assert_int_equal(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){2, 0, 1}, &err), DSC_EINPUT);
    assert_null(l);
}

// One token in the vocabulary, one n-gram.
static void ngram_of_one_token(void **state)
{
    (void)state;
    dsc_error err;
    dsc_language *l;
    dsc_corpus c = {.count = 1, .vocab_size = 1, .end_token = -1};
    assert_ok(dsc_alloc(&c.token, 3, sizeof *c.token, &err), err);
    assert_ok(dsc_alloc(&c.start, 2, sizeof *c.start, &err), err);
    c.token[0] = -1;
    c.start[1] = 3;
    assert_ok(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){16, 0, 0}, &err), err);
    dsc_dist d = dist_at(l, (int32_t[]){0, 0}, 2);
    assert_int_equal(d.levels, 2);
    assert_close(dsc_dist_probability(&d, 0), 1, 1e-16);
    assert_int_equal(dsc_dist_sample(&d, 0.999), 0);
    dsc_language_free(l);
}

// --- sampling ----------------------------------------------------------------------------------

// On a grid of u every token gets its probability, within a cell for each of its pieces.
static void check_sampling(const dsc_dist *d)
{
    enum { GRID = 100000, PIECES = DSC_DIST_LEVELS + 1 };
    int64_t hits[512] = {0};
    for (int i = 0; i < GRID; i++) {
        int32_t x = dsc_dist_sample(d, (i + 0.5) / GRID);
        assert_in_range(x, 0, d->vocab_size - 1);
        hits[x]++;
    }
    for (int32_t x = 0; x < d->vocab_size; x++) {
        double p = dsc_dist_probability(d, x);
        assert_close((double)hits[x] / GRID, p, (double)PIECES / GRID);
        if (p == 0)
            assert_int_equal(hits[x], 0);
    }
    double last = dsc_dist_probability(d, dsc_dist_sample(d, 1 - 0x1p-53));
    assert_true(last > 0);
}

static void sampling_inverts(void **state)
{
    (void)state;
    dsc_error err;
    dsc_corpus c = random_corpus(80, 9);
    dsc_language *l;
    assert_ok(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){5, 0.1, 0}, &err), err);
    const int32_t context[] = {0, 1, 0, 0};
    for (size_t n = 0; n <= 4; n++) {
        dsc_dist d = dist_at(l, context + 4 - n, n);
        check_sampling(&d);
    }
    dsc_language_free(l);
    const double dense[] = {0, 0.25, 0, 0.75, 0}, list[] = {0, 1};
    check_sampling(&(dsc_dist){.vocab_size = 5, .dense = dense});
    dsc_dist one = {.vocab_size = 5, .levels = 1};
    one.level[0] = (dsc_dist_level){(int32_t[]){2, 4}, list, NULL, 2, 0};
    check_sampling(&one);
}

// --- Markov chains -----------------------------------------------------------------------------

static void markov_is_a_chain(void **state)
{
    (void)state;
    enum { STATES = 5, STEPS = 200000 };
    dsc_language *l = make("markov:5,seed=3", DSC_SIDE_TARGET);
    double dist[STATES], now[STATES] = {1, 0, 0, 0, 0}, then[STATES];
    for (int i = 0; i < 500; i++) { // power iteration
        memset(then, 0, sizeof then);
        for (int32_t s = 0; s < STATES; s++) {
            dsc_dist d = dist_at(l, &s, 1);
            dsc_dist_fill(&d, dist);
            for (int x = 0; x < STATES; x++)
                then[x] += now[s] * dist[x];
        }
        memcpy(now, then, sizeof now);
    }
    double hits[STATES] = {0};
    int32_t token = 0;
    for (int i = 0; i < STEPS; i++) {
        dsc_dist d = dist_at(l, &token, 1);
        token = dsc_dist_sample(&d, dsc_rng_uniform(1, 0, (uint32_t)i, 102));
        hits[token] += 1.0 / STEPS;
    }
    for (int x = 0; x < STATES; x++) // 4 standard errors, times 3 for the correlation of steps
        assert_close(hits[x], now[x], 12 * sqrt(now[x] * (1 - now[x]) / STEPS));
    dsc_language_free(l);
}

static void markov_pairs(void **state)
{
    (void)state;
    enum { V = 50 };
    double draft[V], target[V], sum, distance = 0;
    const char *const spec[] = {"markov:50,seed=8,noise=0", "markov:50,8", "markov:50,8,2"};
    double acceptance[3] = {0};
    for (int i = 0; i < 3; i++) {
        dsc_language *d = make(spec[i], DSC_SIDE_DRAFT), *t = make(spec[i], DSC_SIDE_TARGET);
        for (int32_t s = -1; s < V; s++) { // -1: the empty context
            dsc_dist dist = dist_at(d, &s, s >= 0);
            dsc_dist_fill(&dist, draft);
            dist = dist_at(t, &s, s >= 0);
            dsc_dist_fill(&dist, target);
            sum = 0;
            for (int x = 0; x < V; x++) {
                sum += draft[x];
                distance += fabs(draft[x] - target[x]);
                acceptance[i] += fmin(draft[x], target[x]) / (V + 1);
            }
            assert_close(sum, 1, 1e-12);
        }
        if (i == 0)
            assert_close(distance, 0, 0);
        dsc_language_free(d);
        dsc_language_free(t);
    }
    assert_true(acceptance[0] > 1 - 1e-12);
    assert_true(acceptance[1] < 0.95 && acceptance[1] > acceptance[2] && acceptance[2] > 0.05);
}

// --- given acceptances -------------------------------------------------------------------------

static void check_acceptance(const dsc_language *draft, const dsc_language *target, int64_t depth,
                             double expected)
{
    double d[DSC_IID_VOCAB], t[DSC_IID_VOCAB];
    for (int64_t position = 0; position < 200; position++) {
        dsc_place at = {NULL, 0, position, depth, 0};
        dsc_dist dist;
        dsc_curve curve;
        dsc_error err;
        draft->type->dist(draft, &at, &dist);
        dsc_dist_fill(&dist, d);
        target->type->dist(target, &at, &dist);
        dsc_dist_fill(&dist, t);
        assert_ok(dsc_curve_init(&curve, d, t, DSC_IID_VOCAB, &err), err);
        assert_true(dsc_single_acceptance(&curve) == expected);
        dsc_curve_fini(&curve);
        int32_t y = target->type->best(target, &at);
        assert_true(t[y] == 1 && dsc_single_given(d[y], t[y]) == expected);
        if (expected != 0.5)
            assert_int_equal(draft->type->best(draft, &at) == y, expected > 0.5);
    }
}

static void iid_accepts_exactly(void **state)
{
    (void)state;
    const double alpha[] = {0, 0.5, 0.8, 1};
    for (int i = 0; i < 4; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "iid:%g", alpha[i]);
        dsc_language *d = make(spec, DSC_SIDE_DRAFT), *t = make(spec, DSC_SIDE_TARGET);
        check_acceptance(d, t, 0, alpha[i]);
        check_acceptance(d, t, 77, alpha[i]);
        dsc_language_free(d);
        dsc_language_free(t);
    }
}

static void iid_follows_conditional_rates(void **state)
{
    (void)state;
    dsc_language *d = make("conditional:0.9,.25,later=.125", DSC_SIDE_DRAFT),
                 *t = make("conditional:0.9,.25,later=.125", DSC_SIDE_TARGET);
    const double expected[] = {0.9, 0.25, 0.125, 0.125};
    for (int depth = 0; depth < 4; depth++)
        check_acceptance(d, t, depth, expected[depth]);
    assert_int_equal(d->positions, 0);
    dsc_language_free(d);
    dsc_language_free(t);
}

// A draft that is longer than the list of rates is refused where it asks for a distribution.
static void iid_knows_its_positions(void **state)
{
    (void)state;
    dsc_language *l = make("rates:0.9,.8", DSC_SIDE_DRAFT);
    const int32_t token[] = {1, 2, 3};
    dsc_model_synthetic m = {0};
    dsc_draft draft = {0};
    dsc_error err;
    assert_int_equal(l->positions, 2);
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){token, 1}, 99, 1, &err), err);
    assert_ok(dsc_draft_append_chain(&draft, -1, token, 3, &err), err);
    assert_ok(m.base.type->score(&m.base, &draft, &err), err);
    for (int32_t node = -1; node < 3; node++) {
        dsc_dist dist;
        dsc_next next;
        const int expected = node + 1 < 2 ? DSC_OK : DSC_EUSAGE;
        assert_int_equal(m.base.type->dist(&m.base, node, &dist, &err), expected);
        assert_int_equal(m.base.type->next(&m.base, node, &next, &err), expected);
    }
    assert_non_null(strstr(err.message, "drafts of at most 2 tokens"));
    dsc_draft_fini(&draft);
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
    l = make("rates:0.9,.8", DSC_SIDE_TARGET);
    assert_int_equal(l->positions, 0);
    dsc_language_free(l);
}

// The rates of requests spread around that of the median request, the same at every position.
static void iid_requests_differ(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    dsc_language *d = make("iid:0.7,request-sd=0.8", DSC_SIDE_DRAFT),
                 *t = make("iid:0.7,request-sd=0.8", DSC_SIDE_TARGET);
    double sum = 0, squares = 0;
    for (int r = 0; r < MANY; r++) {
        double h[2];
        for (int i = 0; i < 2; i++) {
            const dsc_place at = {NULL, 0, 3 + i, i, r};
            dsc_dist dist;
            d->type->dist(d, &at, &dist);
            h[i] = dsc_dist_probability(&dist, t->type->best(t, &at));
        }
        assert_true(h[0] == h[1]);
        const double effect = log(h[0] / (1 - h[0])) - log(0.7 / 0.3);
        sum += effect;
        squares += effect * effect;
    }
    assert_close(sum / MANY, 0, 5 * 0.8 / sqrt(MANY));
    assert_close(sqrt(squares / MANY), 0.8, 0.02);
    dsc_language_free(d);
    dsc_language_free(t);
}

// --- texts that name them ----------------------------------------------------------------------

static void specs_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *says;
        int status;
    } bad[] = {
        {"ngrm:x", "did you mean ngram", DSC_EUSAGE},
        {"zzzzzzzz", "ngram, markov, or acceptance rates", DSC_EUSAGE},
        {"ngram", "ngram:FILE", DSC_EUSAGE},
        {"ngram:", "ngram:FILE", DSC_EUSAGE},
        {"markov:5,,1", "markov:V", DSC_EUSAGE},
        {"markov:5,seed=1,", "markov:V", DSC_EUSAGE},
        {"markov:5,1,2,3", "too many", DSC_EUSAGE},
        {"markov:0", "'0' is not an integer from 1 to 4096", DSC_EUSAGE},
        {"markov:5,sed=1", "did you mean --seed", DSC_EUSAGE},
        {"markov:5,noise=-1", "--noise", DSC_EUSAGE},
        {"iid:1.5", "iid:1.5: 1.5 is neither a rate", DSC_EUSAGE},
        {"0.9,0.8", "of which drafts", DSC_EUSAGE},
        {"ngram:/nowhere/at all,order=2", "/nowhere/at all", DSC_EINPUT},
        {"ngram:/dev/null,order=17", "'17' is not an integer from 1 to 16", DSC_EUSAGE},
        {"ngram:/dev/null,order=2", "needs a tokenizer", DSC_EUSAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_language *l = NULL;
        dsc_error err = {0};
        assert_int_equal(dsc_language_make(&l, bad[i].spec, DSC_SIDE_TARGET, NULL, &err),
                         bad[i].status);
        if (!strstr(err.message, bad[i].says))
            fail_msg("%s: '%s' does not say '%s'", bad[i].spec, err.message, bad[i].says);
        assert_null(l);
    }
}

static void corpora_are_read(void **state)
{
    (void)state;
    static const char text[] = "ab\n\nabc\n", json[] = "{\"text\": \"ab\"}\n"
                                                       "{\"prompt\": \"a\", \"output\": \"bc\"}\n";
    dsc_error err;
    dsc_tokenizer *bytes;
    assert_ok(dsc_tokenizer_load(&bytes, "bytes", &err), err);
    for (int i = 0; i < 2; i++) {
        dsc_corpus c = {0};
        const char *path = in_scratch(i ? "corpus.jsonl" : "corpus.txt");
        put_text(path, i ? json : text);
        assert_ok(dsc_corpus_read(&c, path, bytes, &err), err);
        static const int32_t expected[] = {-1, 256, 'a', 'b', 257, -1, 256, 'a', 'b', 'c', 257};
        assert_int_equal(c.count, 2);
        assert_int_equal(c.start[2], 11);
        assert_memory_equal(c.token, expected, sizeof expected);
        dsc_corpus_fini(&c);
    }
    static const struct {
        const char *bytes, *says;
    } bad[] = {{"{\"text\": 5}\n", ":1: field 'text' must be a string, not a number"},
               {"{\"text\": \"ab\"}\n{\"prompt\": \"a\"}\n", ":2: field 'output'"},
               {"{\"text\": \"ab\"}\n{\"text\": \n", ":2:"},
               {"{\"words\": \"ab\"}\n", ":1: the line must be an object with"},
               {"{\"text\": \"ab\"}\n5\n", ":2: the line must be an object with"},
               {"\n\n", "no sequence"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_corpus c = {0};
        put_text(in_scratch("bad"), bad[i].bytes);
        assert_int_equal(dsc_corpus_read(&c, in_scratch("bad"), bytes, &err), DSC_EINPUT);
        if (!strstr(err.message, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.message, bad[i].says);
    }
    dsc_tokenizer_free(bytes);
}

// --- models ------------------------------------------------------------------------------------

// In a tree after a committed text, the distribution at a node is that after the node's text.
static void models_follow_a_tree(void **state)
{
    (void)state;
    const int32_t prompt[] = {0, 1}, committed[] = {2, 0}, leaf[] = {0, 1, 2, 0, 1, 3, 0};
    const int32_t chain[] = {1, 3, 0};
    double is[VOCAB], should[VOCAB];
    dsc_error err;
    dsc_corpus c = random_corpus(100, 4);
    dsc_language *l;
    assert_ok(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){4, 0, 0}, &err), err);
    dsc_model_synthetic m = {0};
    dsc_draft draft = {0};
    for (int round = 0; round < 2; round++) { // reused
        assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){prompt, 2}, 6, 1, &err), err);
        assert_ok(m.base.type->commit(&m.base, committed, 2, &err), err);
        dsc_draft_clear(&draft);
        assert_ok(dsc_draft_append_chain(&draft, -1, chain, 3, &err), err);
        assert_ok(dsc_draft_append_chain(&draft, 0, chain + 2, 1, &err), err);
        assert_ok(m.base.type->score(&m.base, &draft, &err), err);
        for (int32_t node = -1; node < 3; node++) {
            dsc_dist dist;
            dsc_next next;
            assert_ok(m.base.type->dist(&m.base, node, &dist, &err), err);
            dsc_dist_fill(&dist, is);
            dist = dist_at(l, leaf, 4 + (size_t)(node + 1));
            dsc_dist_fill(&dist, should);
            assert_memory_equal(is, should, sizeof is);
            assert_ok(m.base.type->next(&m.base, node, &next, &err), err);
            for (int x = 0; x < VOCAB; x++)
                assert_true(should[x] <= should[next.token]);
            // two of six tokens are committed: behind three drafted ones comes the last
            assert_int_equal(next.ends, node == 2 || next.token == l->end_token);
        }
        const int32_t sibling[] = {2, 0, 1, 0};
        dsc_dist dist;
        assert_ok(m.base.type->dist(&m.base, 3, &dist, &err), err);
        dsc_dist_fill(&dist, is);
        dist = dist_at(l, sibling, 4);
        dsc_dist_fill(&dist, should);
        assert_memory_equal(is, should, sizeof is);
    }
    assert_int_equal(m.base.refused, 0);
    const int32_t end[] = {0, VOCAB - 2, 0};
    assert_int_equal(m.base.type->commit(&m.base, end, 3, &err), DSC_ECHECK);
    assert_int_equal(m.base.type->commit(&m.base, (int32_t[]){VOCAB}, 1, &err), DSC_EUSAGE);
    assert_ok(m.base.type->commit(&m.base, end, 2, &err), err);
    assert_true(m.base.ended);
    assert_int_equal(m.base.length, 4);
    dsc_draft_fini(&draft);
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

// A language by position and depth: prompt, committed and drafted tokens count.
static void models_count_tokens(void **state)
{
    (void)state;
    const int32_t token[] = {1, 2, 3, 4, 5};
    double is[DSC_IID_VOCAB], should[DSC_IID_VOCAB];
    dsc_error err;
    dsc_language *l = make("conditional:0.9,0.8,0.7,later=0.6", DSC_SIDE_DRAFT);
    dsc_model_synthetic m = {0};
    dsc_draft draft = {0};
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){token, 5}, 99, 1, &err), err);
    assert_ok(m.base.type->commit(&m.base, token, 4, &err), err);
    assert_ok(dsc_draft_append_chain(&draft, -1, token, 3, &err), err);
    assert_ok(m.base.type->score(&m.base, &draft, &err), err);
    for (int32_t node = -1; node < 3; node++) {
        dsc_dist dist;
        dsc_next next;
        dsc_place at = {NULL, 0, 5 + 4 + node + 1, node + 1, 0};
        assert_ok(m.base.type->dist(&m.base, node, &dist, &err), err);
        dsc_dist_fill(&dist, is);
        l->type->dist(l, &at, &dist);
        dsc_dist_fill(&dist, should);
        assert_memory_equal(is, should, sizeof is);
        assert_ok(m.base.type->next(&m.base, node, &next, &err), err);
        assert_int_equal(next.token, l->type->best(l, &at));
    }
    dsc_draft_fini(&draft);
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

static void temperature_shapes_dists(void **state)
{
    (void)state;
    double plain[VOCAB], is[VOCAB], sum = 0;
    dsc_error err;
    dsc_corpus c = random_corpus(100, 4);
    dsc_language *l;
    dsc_dist dist;
    dsc_next next;
    assert_ok(dsc_ngram_learn(&l, &c, &(dsc_ngram_options){3, 0, 0}, &err), err);
    dsc_model_synthetic m = {0};
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){0}, 5, 1, &err), err);
    assert_ok(m.base.type->dist(&m.base, -1, &dist, &err), err);
    dsc_dist_fill(&dist, plain);
    for (int x = 0; x < VOCAB; x++)
        sum += pow(plain[x], 2.5);
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){0}, 5, 0.4, &err), err);
    assert_ok(m.base.type->dist(&m.base, -1, &dist, &err), err);
    dsc_dist_fill(&dist, is);
    for (int x = 0; x < VOCAB; x++)
        assert_close(is[x], pow(plain[x], 2.5) / sum, 1e-14);
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){0}, 5, 0, &err), err);
    assert_ok(m.base.type->dist(&m.base, -1, &dist, &err), err);
    assert_ok(m.base.type->next(&m.base, -1, &next, &err), err);
    dsc_dist_fill(&dist, is);
    for (int x = 0; x < VOCAB; x++)
        assert_true(is[x] == (x == next.token));
    assert_int_equal(dsc_model_synthetic_begin(&m, l, (dsc_token_view){0}, 5, -1, &err),
                     DSC_EUSAGE);
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

// The one loop runs on a language as it does on a recording.
static void the_loop_runs(void **state)
{
    (void)state;
    dsc_error err;
    dsc_language *l = make("markov:9,seed=2", DSC_SIDE_TARGET);
    dsc_model_synthetic m = {0};
    dsc_loop loop = {0};
    dsc_arena arena = {0};
    int64_t histogram[1] = {0};
    dsc_config none = {.drafter = &dsc_drafter_none};
    dsc_request q = {0};
    dsc_counts counts = zero_counts(histogram, 0);
    assert_ok(dsc_model_synthetic_begin(&m, l, (dsc_token_view){(int32_t[]){4}, 1}, 20, 0, &err),
              err);
    const dsc_models models = {.target = &m.base};
    const dsc_loop_input in = {.config = &none,
                               .rule = &dsc_verifier_greedy,
                               .kind = DSC_DRAFT_TOPK,
                               .models = &models,
                               .request = &q,
                               .arena = &arena};
    assert_ok(dsc_loop_run(&loop, &in, &counts, &err), err);
    assert_int_equal(counts.output_tokens, 20);
    for (int64_t i = 0, before = 4; i < 20; before = m.base.output[i++])
        assert_int_equal(m.base.output[i],
                         l->type->best(l, &(dsc_place){(int32_t[]){(int32_t)before}, 1, 0, 0, 0}));
    dsc_arena_fini(&arena);
    dsc_loop_fini(&loop);
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

SUITE(models)
{
#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ngram_is_the_recount),     cmocka_unit_test(ngram_refuses),
        cmocka_unit_test(ngram_of_one_token),       cmocka_unit_test(sampling_inverts),
        cmocka_unit_test(markov_is_a_chain),        cmocka_unit_test(markov_pairs),
        cmocka_unit_test(iid_accepts_exactly),      cmocka_unit_test(iid_follows_conditional_rates),
        cmocka_unit_test(iid_knows_its_positions),  cmocka_unit_test(iid_requests_differ),
        cmocka_unit_test(specs_are_checked),        IN_SCRATCH(corpora_are_read),
        cmocka_unit_test(models_follow_a_tree),     cmocka_unit_test(models_count_tokens),
        cmocka_unit_test(temperature_shapes_dists), cmocka_unit_test(the_loop_runs),
    };
    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}

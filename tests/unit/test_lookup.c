// SPDX-License-Identifier: Apache-2.0
// Lookup methods against straightforward programs, on texts of few different tokens, so that there
// is always something to find: drafts must be equal token by token.
#include "tests/close.h"

#include "sim/draft/suffix_cache.h"
#include "sim/loop.h"

#include <string.h>

enum { MOST = 1200, ROOM = 64, END = 1 }; // END: the EOS token where there is one

static uint32_t lcg(uint32_t *s)
{
    return (*s = *s * 1664525u + 1013904223u) >> 8;
}

// A random text; with `copies` it repeats stretches of itself.
static void make_text(int32_t *text, int n, uint32_t vocabulary, bool copies, uint32_t *s)
{
    for (int i = 0; i < n; i++) {
        int from = i ? (int)(lcg(s) % (uint32_t)i) : 0;
        for (int j = (int)(lcg(s) % 20); copies && i && j > 0 && i < n; j--)
            text[i++] = text[from++];
        if (i < n)
            text[i] = (int32_t)(lcg(s) % vocabulary);
    }
}

typedef struct bench {
    dsc_arena arena;
    dsc_draft draft;
    dsc_model target;
    dsc_request request;
    void *state;
} bench;

static void bench_begin(bench *b, const dsc_config *config, const int32_t *text, int prompt,
                        int32_t end_token)
{
    dsc_error e;
    dsc_arena_reset(&b->arena);
    b->target = (dsc_model){.limit = MOST, .end_token = end_token};
    b->request = (dsc_request){.prompt = {text, prompt}};
    dsc_models models = {.target = &b->target};
    dsc_drafter_input in = {.request = &b->request,
                            .config = config,
                            .parameter = config->parameter,
                            .arena = &b->arena,
                            .models = &models};
    assert_ok(dsc_arena_alloc(&b->arena, &b->state, config->drafter->state_size, 1, &e), e);
    assert_ok(dsc_loop_begin(b->state, &in, &e), e);
}

static void bench_propose(bench *b, const dsc_config *config, const int32_t *output, int length)
{
    dsc_error e;
    dsc_draft_clear(&b->draft);
    assert_ok(config->drafter->propose(b->state, output, length, &b->draft, &e), e);
    assert_int_equal(b->draft.started, b->draft.count > 0);
    assert_true((int64_t)b->draft.count < dsc_config_width(config));
}

static void bench_fini(bench *b)
{
    dsc_arena_fini(&b->arena);
    dsc_draft_fini(&b->draft);
}

// The draft of a program after text[0, n): nodes and their parents.
typedef struct nodes {
    int count;
    int32_t token[MOST], parent[MOST];
} nodes;

typedef void (*propose)(const dsc_config *config, const int32_t *text, int n, int32_t end_token,
                        nodes *out);

static bool same(const int32_t *a, const int32_t *b, int n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// The method's drafts along a text, after steps of 1 to 6 tokens, are those of the program. Returns
// the tokens drafted.
static int64_t compare(bench *b, const dsc_config *config, propose program, const int32_t *text,
                       int n, int32_t end_token, uint32_t *s)
{
    static nodes want;
    int64_t drafted = 0;
    int prompt = (int)(lcg(s) % 40);
    bench_begin(b, config, text, prompt, end_token);
    for (int at = prompt; at < n; at += 1 + (int)(lcg(s) % 6)) {
        program(config, text, at, end_token, &want);
        bench_propose(b, config, text + prompt, at - prompt);
        assert_int_equal(b->draft.count, want.count);
        assert_true(same(b->draft.token, want.token, want.count));
        assert_true(same(b->draft.parent, want.parent, want.count));
        drafted += want.count;
    }
    return drafted;
}

// --- ngram ---------------------------------------------------------------------------------------

enum { N_MOST, N_LEAST, NGRAM_LENGTH, SEMANTICS };
enum { VLLM, TRANSFORMERS, ORIGINAL, ALL_SEMANTICS };

// The functions of Saxena, transformers and vLLM, line by line.
static void lookup(const dsc_config *config, const int32_t *text, int n, int32_t end_token,
                   nodes *out)
{
    const int64_t *parameter = config->parameter;
    out->count = 0;
    for (int gram = (int)parameter[N_MOST]; gram >= parameter[N_LEAST]; gram--)
        for (int at = 0; at + gram <= n && gram < n; at++) {
            int start = at + gram, end = start + (int)parameter[NGRAM_LENGTH];
            if (!same(text + at, text + n - gram, gram))
                continue;
            if (parameter[SEMANTICS] == ORIGINAL ? end > n || start >= n - gram : start >= n)
                continue;
            for (; start < end && start < n; start++) {
                if (parameter[SEMANTICS] == TRANSFORMERS && text[start] == end_token)
                    return;
                out->parent[out->count] = out->count - 1;
                out->token[out->count++] = text[start];
            }
            return;
        }
}

static void ngram_equals_the_published_functions(void **state)
{
    (void)state;
    static int32_t text[MOST];
    bench b = {0};
    int64_t drafted[ALL_SEMANTICS] = {0};
    for (uint32_t seed = 0; seed < 450; seed++) {
        uint32_t s = seed * 2654435761u + 1;
        dsc_config c = {.drafter = &dsc_drafter_ngram};
        int n = seed % 50 ? (int)(lcg(&s) % 150) : MOST;
        make_text(text, n, seed % 2 ? 2 + lcg(&s) % 30 : 2, seed % 3, &s);
        c.parameter[N_MOST] = 1 + lcg(&s) % 6;
        c.parameter[N_LEAST] = 1 + lcg(&s) % (uint32_t)c.parameter[N_MOST];
        c.parameter[NGRAM_LENGTH] = 1 + lcg(&s) % (lcg(&s) % 2 ? 15 : 3);
        c.parameter[SEMANTICS] = lcg(&s) % ALL_SEMANTICS;
        drafted[c.parameter[SEMANTICS]] +=
            compare(&b, &c, lookup, text, n, seed % 4 ? -1 : END, &s);
    }
    for (int i = 0; i < ALL_SEMANTICS; i++)
        assert_true(drafted[i] > 5000);
    bench_fini(&b);
}

// n-grams are looked for in prompt and output, the first step included; the default is 10 tokens
// after a trigram.
static void ngram_by_hand(void **state)
{
    (void)state;
    static const int32_t text[] = {7, 1, 2, 3, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 1, 2, 3};
    enum { N = sizeof text / sizeof *text };
    bench b = {0};
    dsc_config c = {.drafter = &dsc_drafter_ngram, .parameter = {3, 1, 10, ORIGINAL}};
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 10);
    assert_true(same(b.draft.token, text + 4, 10));
    c.parameter[NGRAM_LENGTH] = 14; // only 13 are there: nothing, or fewer
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 0);
    c.parameter[SEMANTICS] = TRANSFORMERS;
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 13);
    bench_begin(&b, &c, text, N, 22); // up to the EOS token
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 2);
    c.parameter[SEMANTICS] = VLLM; // EOS tokens are copied, too
    bench_begin(&b, &c, text, N, 22);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 13);
    c.parameter[SEMANTICS] = TRANSFORMERS;
    const int32_t more[] = {30, 21}; // of several EOS tokens the first that comes
    bench_begin(&b, &c, text, N, 22);
    b.target.more_ends = more;
    b.target.more = 2;
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 1);
    assert_true(dsc_model_ends(&b.target, 0, 22) && dsc_model_ends(&b.target, 0, 21));
    assert_false(dsc_model_ends(&b.target, 0, 23));
    b.target.end_token = -1;
    assert_false(dsc_model_is_end(&b.target, -1) || dsc_model_is_end(&b.target, 22));
    dsc_error e;
    void *prepared;
    c.parameter[N_LEAST] = 4;
    assert_int_equal(c.drafter->prepare(&c, &prepared, &e), DSC_EUSAGE);
    bench_fini(&b);
}

// --- suffix --------------------------------------------------------------------------------------

enum { LENGTH, DEPTH, BRANCHES, FACTOR, PROBABILITY };

// Occurrences of w in the text.
static int occurrences(const int32_t *text, int n, const int32_t *w, int length)
{
    int count = 0;
    for (int at = 0; at + length <= n; at++)
        count += same(text + at, w, length);
    return count;
}

// A continuation on the list: its path below the match, and how often both occur.
typedef struct path {
    int32_t token[ROOM];
    int length, count, parent;
    float probability;
    bool taken;
} path;

typedef struct list {
    int count;
    path item[2000];
} list;

typedef struct child {
    int32_t token;
    int count;
} child;

// The children of w in the order that the public program gives them, step by step; returns their
// number.
static int find_children(const int32_t *text, int n, const int32_t *w, int length, child *out)
{
    int children = 0;
    for (int at = 0; at + length < n; at++) {
        int c = 0, to;
        if (!same(text + at, w, length))
            continue;
        while (c < children && out[c].token != text[at + length])
            c++;
        if (c == children)
            out[children++] = (child){text[at + length], 0};
        child risen = {out[c].token, out[c].count + 1};
        for (to = c; risen.count > 1 && c && to > 0 && out[c - 1].count <= risen.count &&
                     out[to - 1].count == out[c - 1].count;)
            to--;
        for (int j = c; j > to; j--)
            out[j] = out[j - 1];
        out[to] = risen;
    }
    return children;
}

// Adds the continuations of a path, which is below the last m tokens, the most frequent first.
static void add_continuations(list *l, const dsc_config *c, const int32_t *text, int n, int m,
                              const path *above, int parent, int all)
{
    static child found[64];
    int32_t w[2 * ROOM];
    memcpy(w, text + n - m, (size_t)m * sizeof *w);
    memcpy(w + m, above->token, (size_t)above->length * sizeof *w);
    if (m + above->length >= c->parameter[DEPTH])
        return;
    int children = find_children(text, n, w, m + above->length, found);
    if (c->parameter[BRANCHES] && children > c->parameter[BRANCHES])
        children = (int)c->parameter[BRANCHES];
    for (int j = 0; j < children; j++) {
        path p = *above;
        const float share =
            (float)found[j].count / (float)occurrences(text, n, w, m + above->length);
        p.count = found[j].count;
        p.probability = above->probability * share;
        if (c->parameter[BRANCHES] == 1 ? p.probability < (float)c->real[PROBABILITY]
                                        : (double)p.count < c->real[PROBABILITY] * all)
            continue;
        p.token[p.length++] = found[j].token;
        p.parent = parent;
        p.taken = false;
        l->item[l->count++] = p;
    }
}

// The nodes below the last m tokens; returns their score.
static double most_probable(const dsc_config *c, const int32_t *text, int n, int m, nodes *out)
{
    static list l;
    const int all = occurrences(text, n, text + n - m, m);
    int most = (int)((double)m * c->real[FACTOR] + 1e-6);
    int64_t counts = 0;
    float sum = 0;
    most = most < c->parameter[LENGTH] ? most : (int)c->parameter[LENGTH];
    l.count = out->count = 0;
    add_continuations(&l, c, text, n, m, &(path){.probability = 1}, -1, all);
    while (out->count < most) {
        path *best = NULL;
        for (int j = 0; j < l.count; j++)
            if (!l.item[j].taken && (!best || l.item[j].count > best->count))
                best = &l.item[j];
        if (!best)
            break;
        best->taken = true;
        path p = *best;
        out->token[out->count] = p.token[p.length - 1];
        out->parent[out->count++] = p.parent;
        counts += p.count;
        sum += p.probability;
        add_continuations(&l, c, text, n, m, &p, out->count - 1, all);
    }
    return c->parameter[BRANCHES] == 1 ? (double)sum : (double)counts / all;
}

// The public program's way through all matches: from the shortest up, the last of the best.
static void continue_text(const dsc_config *config, const int32_t *text, int n, int32_t end_token,
                          nodes *out)
{
    static nodes trial;
    double best = 0;
    (void)end_token;
    out->count = 0;
    for (int m = 1; m < n && m < config->parameter[DEPTH]; m++) {
        double score = most_probable(config, text, n, m, &trial);
        if (score < best)
            continue;
        best = score;
        out->count = trial.count;
        memcpy(out->token, trial.token, (size_t)trial.count * sizeof *out->token);
        memcpy(out->parent, trial.parent, (size_t)trial.count * sizeof *out->parent);
    }
}

static void suffix_equals_the_straightforward_program(void **state)
{
    (void)state;
    static int32_t text[MOST];
    static const double factor[] = {0.5, 1, 2.5}, probability[] = {0, 0.1, 0.4};
    bench b = {0};
    int64_t drafted = 0;
    for (uint32_t seed = 0; seed < 1000; seed++) {
        uint32_t s = seed * 2654435761u + 1;
        dsc_config c = {.drafter = &dsc_drafter_suffix};
        int n = (int)(lcg(&s) % 70);
        make_text(text, n, seed % 2 ? 2 + lcg(&s) % 30 : 2, seed % 3, &s);
        c.parameter[LENGTH] = lcg(&s) % 12;
        c.parameter[DEPTH] = 2 + lcg(&s) % 14;
        c.parameter[BRANCHES] = lcg(&s) % 4;
        c.real[FACTOR] = factor[lcg(&s) % 3];
        c.real[PROBABILITY] = probability[lcg(&s) % 3];
        drafted += compare(&b, &c, continue_text, text, n, -1, &s);
    }
    assert_true(drafted > 10000);
    bench_fini(&b);
}

// A text that is longer than what the index starts with, of one token: every suffix is repeated,
// and of the text (n tokens) the last m occur n - m + 1 times.
static void suffix_of_a_long_run(void **state)
{
    (void)state;
    static int32_t text[MOST];
    bench b = {0};
    dsc_config c = {.drafter = &dsc_drafter_suffix,
                    .parameter = {24, 24, 1},
                    .real = {[FACTOR] = 1, [PROBABILITY] = 0.1}};
    bench_begin(&b, &c, text, 5, -1);
    bench_propose(&b, &c, text, MOST - 5);
    assert_int_equal(b.draft.count, 12); // m = 12: 12 tokens, no more in a depth of 24
    for (int j = 0; j < 12; j++)
        assert_int_equal(b.draft.token[j], 0);
    bench_fini(&b);
}

// The longest suffix of text[0, n) that ends at an earlier position too: its length, and *end is
// the first of these positions.
static int longest_repeat(const int32_t *text, int n, int *end)
{
    int longest = *end = 0;
    for (int at = 1; at < n; at++) {
        int m = 0;
        while (m < at && text[at - 1 - m] == text[n - 1 - m])
            m++;
        if (m > longest) {
            longest = m;
            *end = at;
        }
    }
    return longest;
}

static void longest_repeat_equals_a_search(void **state)
{
    (void)state;
    static int32_t text[MOST];
    dsc_arena arena = {0};
    int64_t found = 0;
    for (uint32_t seed = 0; seed < 300; seed++) {
        uint32_t s = seed * 2654435761u + 1;
        dsc_error e = {0};
        dsc_suffix_index x;
        const int n = 1 + (int)(lcg(&s) % 150);
        make_text(text, n, seed % 2 ? 2 + lcg(&s) % 30 : 1 + seed % 4, seed % 3, &s);
        dsc_arena_reset(&arena);
        assert_int_equal(dsc_suffix_begin(&x, 1 + (int)(seed % 2) * 8, &arena, &e), DSC_OK);
        for (int i = 0; i <= n; i++) {
            int32_t length;
            int end;
            const int expected = longest_repeat(text, i, &end);
            assert_int_equal(dsc_suffix_repeated(&x, &length), end);
            assert_int_equal(length, expected);
            found += end > 0;
            if (i < n)
                assert_int_equal(dsc_suffix_append(&x, text + i, 1, &e), DSC_OK);
        }
    }
    assert_true(found > 10000);
    dsc_arena_fini(&arena);
}

// --- the cache of suffix -------------------------------------------------------------------------

enum { DEPTH_OF_CACHE = 6, LONGEST_OUTPUT = 300 };

// The continuations of a string are the same, with the same counts in the same order.
static void assert_same_edges(const dsc_suffix_index *a, int32_t at, const dsc_suffix_index *b,
                              int32_t from)
{
    int32_t e = a->state[at].edge, f = b->state[from].edge;
    for (; e >= 0 && a->state[a->edge[e].to].count; e = a->edge[e].next, f = b->edge[f].next) {
        assert_true(f >= 0);
        assert_int_equal(a->edge[e].token, b->edge[f].token);
        assert_int_equal(a->state[a->edge[e].to].count, b->state[b->edge[f].to].count);
    }
    assert_true(f < 0 || !b->state[b->edge[f].to].count);
}

// The same for all suffixes of the last tokens, as far as they and a token more are counted.
static void assert_same_places(const dsc_suffix_index *a, const dsc_suffix_index *b)
{
    assert_int_equal(a->length, b->length);
    for (int32_t m = a->length < a->depth ? a->length : a->depth - 1; m > 0; m--) {
        int32_t length;
        const int32_t at = dsc_suffix_last(a, m, &length), from = dsc_suffix_last(b, m, &length);
        assert_int_equal(a->state[at].count, b->state[from].count);
        assert_same_edges(a, at, b, from);
    }
}

// Requests of few different tokens, whose ties depend on outputs that were evicted: a cache equals
// an index that never forgets the strings of evicted requests.
static void cache_equals_an_index_that_forgets_nothing(void **state)
{
    (void)state;
    enum { REQUESTS = 120, KEPT = 4 };
    static int32_t text[REQUESTS][LONGEST_OUTPUT];
    int n[REQUESTS];
    dsc_history history = {0};
    dsc_arena arena = {0};
    dsc_suffix_index all;
    dsc_suffix_cache *cache;
    dsc_error e;
    uint32_t s = 7;
    assert_int_equal(dsc_suffix_begin(&all, DEPTH_OF_CACHE, &arena, &e), DSC_OK);
    for (int r = 0; r < REQUESTS; r++) {
        n[r] = 1 + (int)(lcg(&s) % LONGEST_OUTPUT);
        make_text(text[r], n[r], 2 + lcg(&s) % 30, lcg(&s) % 2, &s);
        assert_int_equal(dsc_suffix_cache_begin(&cache, &history, KEPT, DEPTH_OF_CACHE, &e),
                         DSC_OK);
        if (r >= KEPT)
            assert_int_equal(dsc_suffix_remove(&all, text[r - KEPT], n[r - KEPT], &e), DSC_OK);
        dsc_suffix_next_text(&all);
        for (int j = 0; j < n[r]; j++) {
            assert_int_equal(dsc_suffix_append(&all, &text[r][j], 1, &e), DSC_OK);
            assert_int_equal(dsc_suffix_cache_append(cache, &text[r][j], 1, &e), DSC_OK);
            assert_same_places(&cache->index, &all);
        }
    }
    assert_true(cache->index.states < all.states / 2);
    dsc_arena_fini(&history.arena);
    dsc_arena_fini(&arena);
}

// Elements that have memory.
static size_t room_of(const dsc_suffix_cache *c)
{
    const dsc_suffix_index *x = &c->index;
    return c->token_capacity + c->start_capacity + x->state_capacity + x->edge_capacity +
           x->room_capacity + x->group_capacity + x->place_capacity + x->slots;
}

// The memory of a cache of ten requests does not depend on the number of requests.
static void memory_of_a_cache_is_bounded(void **state)
{
    (void)state;
    enum { REQUESTS = 2000, EARLY = 200 };
    static int32_t text[LONGEST_OUTPUT];
    dsc_history history = {0};
    dsc_suffix_cache *cache;
    dsc_error e;
    uint32_t s = 3;
    size_t early = 0;
    for (int r = 0; r < REQUESTS; r++) {
        make_text(text, LONGEST_OUTPUT, 1000, true, &s);
        assert_int_equal(dsc_suffix_cache_begin(&cache, &history, 10, 24, &e), DSC_OK);
        assert_int_equal(dsc_suffix_cache_append(cache, text, LONGEST_OUTPUT, &e), DSC_OK);
        if (r == EARLY)
            early = room_of(cache);
    }
    assert_int_equal(room_of(cache), early);
    dsc_arena_fini(&history.arena);
}

SUITE(lookup)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ngram_equals_the_published_functions),
        cmocka_unit_test(ngram_by_hand),
        cmocka_unit_test(suffix_equals_the_straightforward_program),
        cmocka_unit_test(suffix_of_a_long_run),
        cmocka_unit_test(longest_repeat_equals_a_search),
        cmocka_unit_test(cache_equals_an_index_that_forgets_nothing),
        cmocka_unit_test(memory_of_a_cache_is_bounded),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}

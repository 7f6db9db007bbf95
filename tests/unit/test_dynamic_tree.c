// SPDX-License-Identifier: Apache-2.0
// The dynamic tree against its definition: every path of the vocabulary is enumerated, and a node
// is expanded or kept if few enough others are better. Small random models with many equal
// probabilities, EOS tokens, outputs that end, and temperatures, which must not matter.
#include "tests/close.h"

#include "base/rng.h"
#include "sim/draft/candidate_tree.h"
#include "sim/loop.h"
#include "sim/model/language.h"
#include "sim/model/model_synthetic.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 5, LEVELS = 4, MOST = 5 + 25 + 125 + 625, ROOT = -1, NO_END = -1 };

// Each token has a row of its own.
typedef struct table {
    dsc_language base;
    double row[VOCAB][VOCAB];
} table;

static void table_dist(const dsc_language *l, const dsc_place *at, dsc_dist *out)
{
    const int32_t last = at->recent[at->count - 1];
    *out = (dsc_dist){.vocab_size = VOCAB, .dense = ((const table *)l)->row[last]};
}

static int32_t table_best(const dsc_language *l, const dsc_place *at)
{
    const double *row = ((const table *)l)->row[at->recent[at->count - 1]];
    int32_t best = 0;
    for (int32_t x = 1; x < VOCAB; x++)
        best = row[x] > row[best] ? x : best;
    return best;
}

static const dsc_language_type table_type = {
    .name = "table", .dist = table_dist, .best = table_best};

// Weights from 0 to 3, so that equal probabilities are common and some are 0.
static void draw_table(table *t, uint64_t seed)
{
    *t = (table){
        .base = {.type = &table_type, .vocab_size = VOCAB, .reach = 1, .end_token = NO_END}};
    if (seed % 3 == 0)
        t->base.end_token = (int32_t)(seed % VOCAB);
    for (uint32_t s = 0; s < VOCAB; s++) {
        double sum = 0;
        for (uint32_t x = 0; x < VOCAB; x++) {
            const double u = dsc_rng_uniform(seed, s, x, 0);
            t->row[s][x] = seed % 2 ? floor(4 * u) : u;
            sum += t->row[s][x];
        }
        t->row[s][seed % VOCAB] += sum > 0 ? 0 : 1;
        sum += sum > 0 ? 0 : 1;
        for (int x = 0; x < VOCAB; x++)
            t->row[s][x] /= sum;
    }
}

// --- the definition ----------------------------------------------------------------------------

typedef struct path {
    double score, probability; // of the path, and of its last token
    int32_t token, parent, level;
    bool candidate, expanded, kept;
} path;

typedef struct enumeration {
    path node[MOST];
    int32_t count;
} enumeration;

static bool better(const enumeration *e, int32_t a, int32_t b);

// Whether candidate a has the lower number.
static bool precedes(const enumeration *e, int32_t a, int32_t b)
{
    const path *x = &e->node[a], *y = &e->node[b];
    if (x->level != y->level)
        return x->level < y->level;
    if (x->parent != y->parent)
        return better(e, x->parent, y->parent);
    return x->probability > y->probability ||
           (x->probability == y->probability && x->token < y->token);
}

static bool better(const enumeration *e, int32_t a, int32_t b)
{
    const path *x = &e->node[a], *y = &e->node[b];
    return x->score > y->score || (x->score == y->score && precedes(e, a, b));
}

// All paths of positive probability, level by level.
static void enumerate(enumeration *e, const table *t, int32_t last, int levels)
{
    e->count = 0;
    for (int32_t from = ROOT, end = 0, level = 0; level < levels; level++) {
        for (int32_t above = from; above < end; above++) {
            const path *p = above == ROOT ? NULL : &e->node[above];
            for (int32_t x = 0; x < VOCAB; x++) {
                const double q = t->row[p ? p->token : last][x];
                if (q > 0)
                    e->node[e->count++] = (path){.score = log(q) + (p ? p->score : 0),
                                                 .probability = q,
                                                 .token = x,
                                                 .parent = above,
                                                 .level = level};
            }
        }
        from = end;
        end = e->count;
    }
}

// Number of candidates better than a, of its level or of all.
static int better_candidates(const enumeration *e, int32_t a, bool of_level)
{
    int n = 0;
    for (int32_t b = 0; b < e->count; b++)
        n += e->node[b].candidate && (!of_level || e->node[b].level == e->node[a].level) &&
             better(e, b, a);
    return n;
}

static int better_siblings(const enumeration *e, int32_t a)
{
    int n = 0;
    for (int32_t b = 0; b < e->count; b++)
        n += e->node[b].parent == e->node[a].parent && precedes(e, b, a);
    return n;
}

static void define(enumeration *e, const dsc_model *target, const int64_t *option)
{
    for (int level = 0; level < option[0]; level++) {
        for (int32_t a = 0; a < e->count; a++) {
            path *p = &e->node[a];
            if (p->level == level)
                p->candidate = (p->parent == ROOT || e->node[p->parent].expanded) &&
                               better_siblings(e, a) < option[1];
        }
        for (int32_t a = 0; a < e->count; a++) {
            path *p = &e->node[a];
            if (p->level == level && p->candidate && level + 1 < option[0])
                p->expanded = better_candidates(e, a, true) < option[1] &&
                              !dsc_model_ends(target, level, p->token);
        }
    }
    for (int32_t a = 0; a < e->count; a++)
        e->node[a].kept = e->node[a].candidate && better_candidates(e, a, false) < option[2] - 1;
}

// --- comparison --------------------------------------------------------------------------------

// The place of a kept candidate among the kept ones.
static int32_t place(const enumeration *e, int32_t a)
{
    int32_t n = 0;
    for (int32_t b = 0; b < e->count; b++)
        n += e->node[b].kept && precedes(e, b, a);
    return n;
}

static void assert_draft(const enumeration *e, const dsc_draft *d, int64_t fresh)
{
    size_t kept = 0;
    int64_t calls = 1, tokens = fresh;
    for (int32_t a = 0; a < e->count; a++) {
        const path *p = &e->node[a];
        tokens += p->expanded;
        calls = p->expanded && p->level + 2 > calls ? p->level + 2 : calls;
        if (!p->kept)
            continue;
        const int32_t at = place(e, a);
        kept++;
        assert_in_range(at, 0, d->count - 1);
        assert_int_equal(d->token[at], p->token);
        assert_int_equal(d->parent[at], p->parent == ROOT ? -1 : place(e, p->parent));
    }
    assert_int_equal(d->count, kept);
    assert_int_equal(d->draft_calls, calls);
    assert_int_equal(d->draft_call_tokens, tokens);
}

typedef struct rig {
    dsc_model_synthetic target, draft;
    dsc_models models;
    dsc_config config;
    dsc_request request;
    dsc_drafter_input in;
    dsc_arena arena;
    dsc_draft d;
    void *state;
} rig;

static const int32_t prompt[] = {1, 0, 2};

static void rig_begin(rig *r, const int64_t *option, const table *t, int64_t limit, double temp)
{
    dsc_error err = {0};
    *r = (rig){0};
    dsc_config_init(&r->config, &dsc_drafter_dynamic_tree);
    for (int o = 0; o < 3; o++)
        r->config.parameter[o] = option[o];
    assert_ok(dsc_config_prepare(&r->config, &err), err);
    r->request.prompt = (dsc_token_view){prompt, 3};
    dsc_model_synthetic *model[] = {&r->target, &r->draft};
    for (int m = 0; m < 2; m++)
        assert_ok(
            dsc_model_synthetic_begin(model[m], &t->base, r->request.prompt, limit, temp, &err),
            err);
    r->models = (dsc_models){.target = &r->target.base, .draft = &r->draft.base};
    r->in = (dsc_drafter_input){.request = &r->request,
                                .config = &r->config,
                                .parameter = r->config.parameter,
                                .arena = &r->arena,
                                .models = &r->models,
                                .kind = DSC_DRAFT_TOPK};
    assert_ok(dsc_arena_alloc(&r->arena, &r->state, dsc_drafter_dynamic_tree.state_size, 1, &err),
              err);
    assert_ok(dsc_loop_begin(r->state, &r->in, &err), err);
}

static void rig_end(rig *r)
{
    dsc_config_fini(&r->config);
    dsc_model_synthetic_fini(&r->target);
    dsc_model_synthetic_fini(&r->draft);
    dsc_draft_fini(&r->d);
    dsc_arena_fini(&r->arena);
}

static void propose_and_compare(rig *r, const table *t, int32_t last, int64_t fresh)
{
    static enumeration e;
    dsc_error err = {0};
    const dsc_model *m = &r->target.base;
    dsc_draft_clear(&r->d);
    assert_ok(r->config.drafter->propose(r->state, m->output, m->length, &r->d, &err), err);
    enumerate(&e, t, last, (int)r->config.parameter[0]);
    define(&e, m, r->config.parameter);
    assert_draft(&e, &r->d, fresh);
    assert_true(r->d.started && r->d.kind == DSC_DRAFT_TOPK);
    assert_true(dsc_draft_length(&r->d) <= dsc_config_limit(&r->config));
    assert_true(dsc_draft_width(&r->d) <= dsc_config_width(&r->config));
}

static void the_best_candidates_are_kept(void **state)
{
    (void)state;
    static const double temperature[] = {0, 1, 0.5};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const int64_t steps = 1 + (int64_t)(seed % LEVELS), k = 1 + (int64_t)(seed / 4 % VOCAB),
                      most = k + (steps - 1) * k * k,
                      n = k == 1 ? steps + 1 : 2 + (int64_t)(seed * 7919 % (uint64_t)most),
                      limit = seed % 5 ? 100 : 4;
        dsc_error err = {0};
        table t;
        rig r;
        draw_table(&t, seed);
        rig_begin(&r, (int64_t[]){steps, k, n}, &t, limit, temperature[seed % 3]);
        propose_and_compare(&r, &t, prompt[2], 1);
        static const int32_t token[] = {4, 3};
        if (t.base.end_token < 0) {
            assert_ok(r.target.base.type->commit(&r.target.base, token, 2, &err), err);
            assert_ok(r.draft.base.type->commit(&r.draft.base, token, 2, &err), err);
            propose_and_compare(&r, &t, token[1], 2);
        }
        rig_end(&r);
    }
}

// --- recorded candidates -----------------------------------------------------------------------

// A draft model that has candidates only.
typedef struct recording {
    dsc_model base;
    dsc_recorded_candidates candidates;
    int32_t token[MOST];
    uint16_t parent[MOST], scored[LEVELS];
} recording;

static int no_pass(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    (void)m, (void)d, (void)err;
    return DSC_OK;
}

static int recorded_candidates(dsc_model *m, dsc_recorded_candidates *out, dsc_error *err)
{
    (void)err;
    *out = ((recording *)m)->candidates;
    return DSC_OK;
}

static const dsc_model_type recording_type = {
    .name = "recording", .score = no_pass, .candidates = recorded_candidates};

// Records the best `nodes` candidates of a setting after the prompt.
static void record(recording *m, const table *t, int64_t limit, int64_t steps, int64_t topk,
                   int32_t nodes)
{
    static int32_t place[MOST];
    dsc_error err = {0};
    dsc_candidate_tree tree;
    dsc_draft grown = {0};
    rig r;
    rig_begin(&r, (int64_t[]){steps, topk, topk == 1 ? steps + 1 : 2}, t, limit, 1);
    assert_ok(dsc_candidate_tree_init(&tree, &r.in, steps, topk, &err), err);
    assert_ok(dsc_candidate_tree_grow(&tree, 1, &grown, &err), err);
    const int32_t count = dsc_candidate_tree_rank(&tree, 0);
    *m = (recording){.base = {.type = &recording_type, .limit = limit}};
    m->candidates = (dsc_recorded_candidates){m->token, m->parent,      m->scored,
                                              nodes,    (int32_t)steps, (int32_t)topk};
    for (int32_t i = 0; i < nodes; i++) {
        m->parent[i] = DSC_PARENT_NONE;
        if (i >= count)
            continue;
        const dsc_candidate *c = &tree.candidate[tree.ranked[i].candidate];
        place[tree.ranked[i].candidate] = i + 1;
        m->token[i] = c->token;
        m->parent[i] = (uint16_t)(c->parent < 0 ? 0 : place[c->parent]);
    }
    for (int64_t i = 0; i < steps; i++)
        m->scored[i] = (uint16_t)tree.scored[i];
    dsc_draft_fini(&grown);
    rig_end(&r);
}

static int by_number(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(int64_t));
}

// The nodes of a draft as numbers of their paths, sorted.
static void list_paths(const dsc_draft *d, int64_t *number)
{
    for (size_t i = 0; i < d->count; i++)
        number[i] = (d->parent[i] < 0 ? 0 : number[d->parent[i]]) * (VOCAB + 1) + d->token[i] + 1;
    qsort(number, d->count, sizeof *number, by_number);
}

// Drafts with a setting from the model and from the recording; returns whether the latter can.
static bool same_drafts(const table *t, recording *m, int64_t limit, const int64_t *option)
{
    static int64_t grown[MOST], replayed[MOST];
    dsc_error err = {0};
    rig a, b;
    rig_begin(&a, option, t, limit, 1);
    rig_begin(&b, option, t, limit, 1);
    assert_ok(a.config.drafter->propose(a.state, NULL, 0, &a.d, &err), err);
    b.models.draft = &m->base;
    const int rc = b.config.drafter->propose(b.state, NULL, 0, &b.d, &err);
    if (rc) {
        assert_int_equal(rc, DSC_EUSAGE);
        assert_non_null(strstr(err.message, "output position 0: the recorded candidates"));
    } else {
        list_paths(&a.d, grown);
        list_paths(&b.d, replayed);
        assert_int_equal(b.d.count, a.d.count);
        assert_memory_equal(replayed, grown, a.d.count * sizeof *grown);
        assert_int_equal(b.d.draft_calls, a.d.draft_calls);
        assert_int_equal(b.d.draft_call_tokens, a.d.draft_call_tokens);
    }
    rig_end(&a);
    rig_end(&b);
    return !rc;
}

// Every smaller setting is replayed as it would be drafted, or refused: fewer tokens never, fewer
// steps only where candidates were left out.
static void recorded_candidates_give_smaller_trees(void **state)
{
    (void)state;
    static recording m;
    int replayed = 0, refused = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        const int64_t steps = 1 + (int64_t)(seed % LEVELS), topk = 1 + (int64_t)(seed / 4 % 3),
                      all = dsc_candidate_tree_most(steps, topk), limit = seed % 5 ? 100 : 4;
        const int32_t nodes = (int32_t)(seed % 2 ? all : 1 + (int64_t)(seed * 31 % (uint64_t)all));
        table t;
        draw_table(&t, seed);
        record(&m, &t, limit, steps, topk, nodes);
        for (int64_t s = 1; s <= steps; s++)
            for (int64_t k = 1; k <= topk; k++)
                for (int64_t n = 1; n <= dsc_candidate_tree_most(s, k) && n <= nodes; n++) {
                    if (k == 1 && n != s)
                        continue;
                    const bool can = same_drafts(&t, &m, limit, (int64_t[]){s, k, n + 1});
                    replayed += can;
                    refused += !can;
                    assert_true(can || k < topk || (s < steps && nodes < all));
                }
    }
    assert_in_range(replayed, 1000, 1000000);
    assert_in_range(refused, 20, replayed / 2);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t option[3];
        const char *says;
    } bad[] = {{{5, 1, 5}, "--num-steps + 1 = 6, not 5"}, {{2, 2, 8}, "at most 7"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error err = {0};
        dsc_config c;
        dsc_config_init(&c, &dsc_drafter_dynamic_tree);
        memcpy(c.parameter, bad[i].option, sizeof bad[i].option);
        assert_int_equal(dsc_config_prepare(&c, &err), DSC_EUSAGE);
        assert_non_null(strstr(err.message, bad[i].says));
    }
    dsc_error err = {0};
    assert_ptr_equal(dsc_drafter_find("eagle2", &err), &dsc_drafter_dynamic_tree);
}

SUITE(dynamic_tree)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_candidates_are_kept),
        cmocka_unit_test(recorded_candidates_give_smaller_trees),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

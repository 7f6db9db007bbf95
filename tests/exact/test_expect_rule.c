// SPDX-License-Identifier: Apache-2.0
// Conditional replay against enumeration: every draft that can be sampled and every decision of a
// rule, written out for outputs of a few tokens. The enumeration uses no formula of conditional
// distributions, only the definitions of the rules.
#include "tests/close.h"
#include "tests/zero_counts.h"

#include "sim/expect/expect_rule.h"
#include "theory/block_verify.h"
#include "theory/kseq.h"
#include "theory/specinfer.h"

#include <stdbool.h>
#include <string.h>

enum { VOCAB = 3, TOKENS = 4, MOST_DRAFTS = 3, MOST_LENGTH = 3, MOST_LIVE = 4, ROOM = 8 };

// --- a recorded request --------------------------------------------------------------------------

// Both models' distributions depend on the last token only: one row per last token.
typedef struct pair {
    double draft[VOCAB][VOCAB], target[VOCAB][VOCAB]; // [last token][next token]
    double marginal[TOKENS][MOST_LENGTH][VOCAB];      // [where a call begins][offset][token]
    float logp_y[TOKENS][MOST_LENGTH];
    int32_t y[TOKENS];
    float logp[DSC_SIDES][TOKENS][VOCAB];
    dsc_request request;
    dsc_trace_info info;
} pair;

static uint32_t lcg(uint32_t *s)
{
    return (*s = *s * 1664525u + 1013904223u) >> 8;
}

// Probabilities that fp32 logarithms represent; with `holes`, the draft has zeros.
static void make_row(float logp[VOCAB], uint32_t *s, bool holes)
{
    double weight[VOCAB], sum = 0;
    for (int x = 0; x < VOCAB; x++)
        sum += weight[x] = holes && lcg(s) % 4 == 0 ? 0 : 1 + lcg(s) % 20;
    if (!(sum > 0))
        sum = weight[0] = 1;
    for (int x = 0; x < VOCAB; x++)
        logp[x] = (float)log(weight[x] / sum);
}

static void take_row(const float logp[VOCAB], double row[VOCAB])
{
    double sum = 0;
    for (int x = 0; x < VOCAB; x++)
        sum += row[x] = exp((double)logp[x]);
    for (int x = 0; x < VOCAB; x++)
        row[x] /= sum;
}

// A distribution of its own at each offset of each position, whose probability of the output's
// token is that of a float logarithm.
static void make_marginals(pair *p, uint32_t *s)
{
    for (int t = 0; t < TOKENS; t++)
        for (int d = 0; d < MOST_LENGTH; d++) {
            double *row = p->marginal[t][d], others = 0;
            float logp[VOCAB];
            const int32_t y = t + d < TOKENS ? p->y[t + d] : 0;
            make_row(logp, s, false);
            take_row(logp, row);
            p->logp_y[t][d] = lcg(s) % 8 ? logp[y] : -INFINITY;
            for (int x = 0; x < VOCAB; x++)
                others += x == y ? 0 : row[x];
            row[y] = exp((double)p->logp_y[t][d]);
            for (int x = 0; x < VOCAB; x++)
                row[x] *= x == y ? 1 : (1 - row[y]) / others;
        }
}

// The token before the output is 0.
static void make_pair(pair *p, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 17;
    float draft[VOCAB][VOCAB], target[VOCAB][VOCAB];
    *p = (pair){0};
    for (int last = 0; last < VOCAB; last++) {
        make_row(draft[last], &s, seed % 2);
        make_row(target[last], &s, false);
        take_row(draft[last], p->draft[last]);
        take_row(target[last], p->target[last]);
    }
    for (int t = 0; t < TOKENS; t++) {
        int32_t last = t ? p->y[t - 1] : 0;
        p->y[t] = (int32_t)(lcg(&s) % VOCAB);
        memcpy(p->logp[DSC_SIDE_DRAFT][t], draft[last], sizeof draft[0]);
        memcpy(p->logp[DSC_SIDE_TARGET][t], target[last], sizeof target[0]);
    }
    make_marginals(p, &s);
    p->request = (dsc_request){.output = {p->y, TOKENS}, .marginals = {.logp_y = p->logp_y[0]}};
    p->info = (dsc_trace_info){.vocab_size = VOCAB,
                               .max_output_tokens = TOKENS,
                               .has_marginals = true,
                               .marginal_offsets = MOST_LENGTH,
                               .marginal_top = 1};
    for (int side = 0; side < DSC_SIDES; side++) {
        p->request.rows[side] =
            (dsc_rows){.kind = DSC_ROWS_DENSE, .logp = p->logp[side][0], .vocab_size = VOCAB};
        p->info.rows[side] = DSC_ROWS_DENSE;
    }
}

// The target continues 0 with 1, 1 with 2 and 2 with 0.
static void make_certain(pair *p)
{
    for (int t = 0; t < TOKENS; t++)
        p->y[t] = (t + 1) % VOCAB;
    for (int t = 0; t < TOKENS; t++) {
        int32_t last = t % VOCAB;
        for (int x = 0; x < VOCAB; x++) {
            p->target[last][x] = x == p->y[t];
            p->logp[DSC_SIDE_DRAFT][t][x] = (float)log(p->draft[last][x]);
        }
        take_row(p->logp[DSC_SIDE_DRAFT][t], p->draft[last]);
    }
}

static const double *row_at(const pair *p, bool target, int t)
{
    int32_t last = t ? p->y[t - 1] : 0;
    return target ? p->target[last] : p->draft[last];
}

// --- rules on one position -----------------------------------------------------------------------

// One position under a rule on k candidates.
typedef struct verdict {
    double accept[MOST_LIVE]; // Pr(candidate i is accepted)
    double residual[VOCAB];   // Pr(all are rejected and the output is x)
} verdict;

static void judge_kseq(const double *draft, const double *target, const int *x, int k, verdict *v)
{
    dsc_curve curve = {0};
    dsc_error err;
    double left = 1;
    assert_ok(dsc_curve_init(&curve, draft, target, VOCAB, &err), err);
    dsc_kseq s = dsc_kseq_best(&curve, k);
    for (int i = 0; i < k; i++) {
        double a = fmin(1, target[x[i]] / (s.rho * draft[x[i]]));
        v->accept[i] = left * a;
        left *= 1 - a;
    }
    dsc_kseq_residual(&s, draft, target, VOCAB, v->residual);
    for (int t = 0; t < VOCAB; t++)
        v->residual[t] *= left;
    dsc_curve_fini(&curve);
}

static void judge_specinfer(const double *draft, const double *target, const int *x, int k,
                            verdict *v)
{
    double r[VOCAB], left = 1;
    memcpy(r, target, sizeof r);
    for (int i = 0; i < k; i++) {
        double a = fmin(1, r[x[i]] / draft[x[i]]), sum = 0;
        v->accept[i] = left * a;
        left *= 1 - a;
        for (int t = 0; t < VOCAB; t++)
            sum += r[t] = fmax(r[t] - draft[t], 0);
        for (int t = 0; t < VOCAB; t++)
            r[t] = sum > 0 ? r[t] / sum : 0;
    }
    for (int t = 0; t < VOCAB; t++)
        v->residual[t] = left * r[t];
}

static void judge_otm(const double *draft, const double *target, const int *x, int k, verdict *v)
{
    static dsc_otm_sampler *s; // reused: built again for each
    double p[MOST_LIVE + 1], draft_x[MOST_LIVE], target_x[MOST_LIVE];
    dsc_residual rule;
    dsc_error err;
    if (!s)
        assert_ok(dsc_otm_sampler_new(&s, &err), err);
    assert_ok(dsc_otm_sampler_build(s, draft, target, VOCAB, k, &err), err);
    for (int i = 0; i < k; i++) {
        draft_x[i] = draft[x[i]];
        target_x[i] = target[x[i]];
    }
    dsc_otm_sampler_dist(s, draft_x, target_x, p);
    memcpy(v->accept, p, (size_t)k * sizeof *p);
    dsc_otm_sampler_residual(s, &rule);
    double sum = dsc_residual_fill(&rule, draft, target, VOCAB, v->residual);
    for (int t = 0; t < VOCAB; t++)
        v->residual[t] *= sum > 0 ? p[k] / sum : 0;
}

// A greedy target: a draft that equals the output's token is accepted; that token is certain.
static void judge_greedy(const double *draft, const double *target, const int *x, int k, verdict *v)
{
    bool said = false;
    (void)draft;
    for (int i = 0; i < k; i++) {
        v->accept[i] = !said && target[x[i]] > 0;
        said = said || v->accept[i] > 0;
    }
    for (int t = 0; t < VOCAB; t++)
        v->residual[t] = said ? 0 : target[t];
}

typedef void judge(const double *draft, const double *target, const int *x, int k, verdict *v);

// --- a call --------------------------------------------------------------------------------------

// A call from position t: emit[e] = Pr(e tokens are emitted, and they are the output's), the last
// one the target's own.
typedef struct call {
    double emit[TOKENS + 1];
} call;

typedef struct setting {
    const pair *p;
    judge *judge; // NULL: block verification
    int drafts, length;
    const int *children; // [length] of a node of each level, the root's first; NULL: sequences
    bool parallel;       // the draft is of the marginals
} setting;

// The distribution of the draft token at `depth` of a call from t, after `last`.
static const double *draft_row(const setting *s, int t, int depth, int last)
{
    return s->parallel ? s->p->marginal[t][depth < MOST_LENGTH ? depth : 0] : s->p->draft[last];
}

static int last_before(const pair *p, int t)
{
    return t ? p->y[t - 1] : 0;
}

// K sequences, position after position: those in `live` equal the output so far.
static void walk(const setting *s, int t, int depth, int most, int drawn[MOST_DRAFTS][MOST_LENGTH],
                 int live, double weight, call *out)
{
    int at = t + depth, x[MOST_DRAFTS] = {0}, y = s->p->y[at], k = 0, next = 0;
    const double *draft = draft_row(s, t, depth, last_before(s->p, at)),
                 *target = row_at(s->p, true, at);
    if (depth == most) {
        out->emit[depth + 1] += weight * target[y];
        return;
    }
    for (int i = 0; i < s->drafts; i++)
        if (live >> i & 1) {
            x[k++] = drawn[i][depth];
            next |= (drawn[i][depth] == y) << i;
        }
    verdict v = {{0}, {0}};
    s->judge(draft, target, x, k, &v);
    double go = 0;
    for (int i = 0; i < k; i++)
        go += x[i] == y ? v.accept[i] : 0;
    out->emit[depth + 1] += weight * v.residual[y];
    if (go > 0 && at + 1 == TOKENS) // the last token is the target's own, drafted or not
        out->emit[depth + 1] += weight * go;
    else if (go > 0)
        walk(s, t, depth + 1, most, drawn, next, weight * go, out);
}

// --- a tree --------------------------------------------------------------------------------------

enum { MOST_NODES = 10 };

// Nodes of the first `levels` levels, level by level; parent -1 is the root.
typedef struct shape {
    int count, parent[MOST_NODES], level[MOST_NODES];
    int of_level[MOST_LENGTH + 1]; // nodes; of_level[0] is the root's 1
} shape;

static shape shape_of(const setting *s, int levels)
{
    shape h = {.of_level = {1}};
    for (int level = 0, first = -1; level < levels; level++) {
        const int above = h.of_level[level], next = h.count;
        for (int i = 0; i < above; i++)
            for (int c = 0; c < s->children[level]; c++) {
                h.parent[h.count] = level ? first + i : -1;
                h.level[h.count++] = level;
            }
        h.of_level[level + 1] = h.count - next;
        first = next;
    }
    return h;
}

// `live`: bits of nodes of the level above, all of them the output so far; the root's is 1 << 31.
static void walk_tree(const setting *s, const shape *h, const int *token, int t, int depth,
                      int most, uint32_t live, double weight, call *out)
{
    const int at = t + depth, y = s->p->y[at];
    const double *draft = row_at(s->p, false, at), *target = row_at(s->p, true, at);
    int x[MOST_LIVE] = {0}, k = 0;
    uint32_t next = 0;
    if (depth == most) {
        out->emit[depth + 1] += weight * target[y];
        return;
    }
    for (int i = 0; i < h->count; i++)
        if (live >> (h->parent[i] < 0 ? 31 : h->parent[i]) & 1) {
            x[k++] = token[i];
            next |= (uint32_t)(token[i] == y) << i;
        }
    verdict v = {{0}, {0}};
    s->judge(draft, target, x, k, &v);
    double go = 0;
    for (int i = 0; i < k; i++)
        go += x[i] == y ? v.accept[i] : 0;
    out->emit[depth + 1] += weight * v.residual[y];
    if (go > 0 && at + 1 == TOKENS)
        out->emit[depth + 1] += weight * go;
    else if (go > 0)
        walk_tree(s, h, token, t, depth + 1, most, next, weight * go, out);
}

// All trees that can be sampled.
static call enumerate_tree(const setting *s, int t, int most)
{
    const shape h = shape_of(s, most);
    call c = {{0}};
    int texts = 1;
    for (int i = 0; i < h.count; i++)
        texts *= VOCAB;
    for (int text = 0; text < texts; text++) {
        int token[MOST_NODES], code = text;
        double w = 1;
        for (int i = 0; i < h.count; i++, code /= VOCAB) {
            const int last = h.level[i] ? token[h.parent[i]] : t ? s->p->y[t - 1] : 0;
            token[i] = code % VOCAB;
            w *= s->p->draft[last][token[i]];
        }
        if (w > 0)
            walk_tree(s, &h, token, t, 0, most, (uint32_t)1 << 31, w, &c);
    }
    return c;
}

// The distribution of draft i's tokens along its own path.
static double path_weight(const setting *s, int t, const int *x, int length)
{
    double w = 1;
    for (int d = 0; d < length; d++)
        w *= draft_row(s, t, d, d ? x[d - 1] : last_before(s->p, t))[x[d]];
    return w;
}

// Block verification by its coins (Algorithm 2), one chain.
static void walk_block(const setting *s, int t, int most, const int *x, double weight, call *out)
{
    double p[MOST_LENGTH + 1] = {1}, coin[MOST_LENGTH + 1] = {1};
    for (int i = 0; i <= most; i++) {
        const int last = i ? x[i - 1] : last_before(s->p, t);
        const double *draft = draft_row(s, t, i, last), *target = s->p->target[last];
        double left = 0;
        if (i < most) {
            for (int z = 0; z < VOCAB; z++)
                left += fmax(p[i] * target[z] - draft[z], 0);
            p[i + 1] = fmin(p[i] * target[x[i]] / draft[x[i]], 1);
        }
        if (i)
            coin[i] = i == most ? p[i] : left > 0 ? left / (left + 1 - p[i]) : 0;
    }
    double above = 1; // no coin of a longer prefix came up
    for (int tau = most; tau >= 0; above *= 1 - coin[tau], tau--) {
        bool same = true;
        for (int i = 0; i < tau && t + i < TOKENS; i++)
            same = same && x[i] == s->p->y[t + i];
        double w = weight * above * coin[tau];
        if (!same || !(w > 0))
            continue;
        if (t + tau == TOKENS) { // cut
            out->emit[tau] += w;
            continue;
        }
        int y = s->p->y[t + tau];
        const double *draft = draft_row(s, t, tau, last_before(s->p, t + tau)),
                     *target = row_at(s->p, true, t + tau);
        double sum = 0, z_y = fmax(p[tau] * target[y] - draft[y], 0);
        for (int z = 0; z < VOCAB; z++)
            sum += fmax(p[tau] * target[z] - draft[z], 0);
        out->emit[tau + 1] += w * (tau == most ? target[y] : z_y / sum);
    }
}

static call enumerate_call(const setting *s, int t)
{
    call c = {{0}};
    int left = TOKENS - t, most = s->length < left ? s->length : left;
    if (s->children)
        return enumerate_tree(s, t, most);
    int digits = s->drafts * most, drawn[MOST_DRAFTS][MOST_LENGTH], texts = 1;
    for (int i = 0; i < digits; i++)
        texts *= VOCAB;
    for (int text = 0; text < texts; text++) {
        double w = 1;
        int code = text;
        for (int i = 0; i < s->drafts; i++) {
            for (int d = 0; d < most; d++, code /= VOCAB)
                drawn[i][d] = code % VOCAB;
            w *= path_weight(s, t, drawn[i], most);
        }
        if (!(w > 0))
            continue;
        if (s->judge)
            walk(s, t, 0, most, drawn, (1 << s->drafts) - 1, w, &c);
        else
            walk_block(s, t, most, drawn[0], w, &c);
    }
    return c;
}

// Expectations over all ways to write the output.
typedef struct expectation {
    double calls, accepted, tokens, places; // places: sum of the positions where calls begin
    double pass_tokens;                     // of the draft model's passes over a tree
    double histogram[ROOM];
} expectation;

static void merge(expectation *sum, const expectation *x, double weight)
{
    sum->calls += weight * x->calls;
    sum->accepted += weight * x->accepted;
    sum->tokens += weight * x->tokens;
    sum->places += weight * x->places;
    sum->pass_tokens += weight * x->pass_tokens;
    for (int a = 0; a < ROOM; a++)
        sum->histogram[a] += weight * x->histogram[a];
}

// The expectations from position t on; *distribution is the probability of the output from there,
// which must be the target's.
static expectation enumerate(const setting *s, int t, double *dist)
{
    expectation sum = {0};
    *dist = 1;
    if (t == TOKENS)
        return sum;
    call c = enumerate_call(s, t);
    int left = TOKENS - t;
    *dist = 0;
    for (int e = 1; e <= left; e++) {
        double rest;
        expectation x = enumerate(s, t + e, &rest);
        x.calls++;
        x.accepted += e - 1;
        x.places += t;
        const int most = s->length < left ? s->length : left;
        const shape h = s->children ? shape_of(s, most) : (shape){0};
        x.tokens += s->children ? h.count : s->drafts * most;
        // The first pass covers the tokens of the last call, the others the level before.
        x.pass_tokens += (t == 0) + (e < left ? e : 0) + h.count - h.of_level[most];
        x.histogram[e - 1]++;
        merge(&sum, &x, c.emit[e] * rest);
        *dist += c.emit[e] * rest;
    }
    expectation given = {0};
    merge(&given, &sum, 1 / *dist);
    return given;
}

// --- what is tested ------------------------------------------------------------------------------

typedef struct bench {
    dsc_arena arena;
    dsc_position_room room;
} bench;

static dsc_config config_of(const dsc_drafter_type *d, int drafts, int length)
{
    dsc_config c = {.drafter = d};
    if (d == &dsc_drafter_spectr) {
        c.parameter[0] = drafts;
        c.parameter[1] = length;
    } else {
        c.parameter[0] = length;
    }
    return c;
}

static void replay(bench *b, const pair *p, const dsc_config *config, size_t count,
                   const dsc_verifier_type *rule, dsc_expected *out, double (*histogram)[ROOM])
{
    dsc_error err = {0};
    dsc_rule_plan plan;
    dsc_counts counts[64];
    int64_t unused[ROOM];
    assert_ok(dsc_rule_plan_init(&plan, config, count, rule, &p->info, &err), err);
    for (size_t c = 0; c < count; c++) {
        memset(histogram[c], 0, sizeof histogram[c]);
        out[c] = (dsc_expected){.histogram = histogram[c]};
        counts[c] = zero_counts(unused, ROOM - 1);
        counts[c].expected = &out[c];
    }
    dsc_arena_reset(&b->arena);
    assert_ok(dsc_expect_rule_run(&plan, &p->request, &b->room, &b->arena, counts, &err), err);
    assert_int_equal(counts[0].output_tokens, p->request.output.count);
    dsc_rule_plan_fini(&plan);
}

// The continuation under the rule must have the target's distribution; otherwise the enumeration is
// wrong.
static double target_dist(const pair *p)
{
    double dist = 1;
    for (int t = 0; t < TOKENS; t++)
        dist *= row_at(p, true, t)[p->y[t]];
    return dist;
}

static void compare(bench *b, const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                    judge *how, int most_drafts)
{
    uint32_t pairs = most_drafts > 1 ? 6 : 80;
    for (uint32_t seed = 0; seed < pairs; seed++) {
        pair p;
        dsc_config config[MOST_DRAFTS * (MOST_LENGTH + 1)];
        dsc_expected got[MOST_DRAFTS * (MOST_LENGTH + 1)];
        double histogram[MOST_DRAFTS * (MOST_LENGTH + 1)][ROOM];
        size_t n = 0;
        make_pair(&p, seed);
        if (rule->greedy)
            make_certain(&p);
        // Longer drafts first: the plan sorts them.
        for (int k = 1; k <= most_drafts; k++)
            for (int length = MOST_LENGTH; length >= 0; length--)
                config[n++] = config_of(drafter, k, length);
        replay(b, &p, config, n, rule, got, histogram);
        n = 0;
        for (int k = 1; k <= most_drafts; k++)
            for (int length = MOST_LENGTH; length >= 0; length--, n++) {
                const bool parallel = drafter == &dsc_drafter_parallel;
                const setting s = {&p, how, k, length, NULL, parallel};
                double dist;
                // Nine drafts are enumerated for two pairs.
                if (k * length > 6 && seed > 1)
                    continue;
                expectation want = enumerate(&s, 0, &dist);
                assert_close(dist, target_dist(&p), 1e-9);
                assert_close(got[n].target_calls, want.calls, 1e-10);
                assert_close(got[n].num_accepted_tokens, want.accepted, 1e-10);
                assert_close(got[n].num_draft_tokens, want.tokens, 1e-10);
                assert_close(got[n].target_call_context, want.places, 1e-10);
                assert_close(got[n].draft_calls * k,
                             !parallel ? want.tokens
                             : length  ? want.calls
                                       : 0,
                             1e-10);
                assert_close(got[n].num_drafts, length ? want.calls : 0, 1e-10);
                assert_close(got[n].num_drafts_started, got[n].num_drafts, 0);
                for (int a = 0; a < ROOM; a++)
                    assert_close(histogram[n][a], want.histogram[a], 1e-10);
            }
    }
}

// Trees of up to four drafts at a position.
static void compare_trees(bench *b, const dsc_verifier_type *rule, judge *how, uint32_t pairs)
{
    static const struct {
        const char *text;
        int length, children[MOST_LENGTH];
    } tree[] = {{"1", 1, {1}},           {"1,1,1", 3, {1, 1, 1}}, {"3", 1, {3}},
                {"2,1", 2, {2, 1}},      {"1,2,1", 3, {1, 2, 1}}, {"2,2", 2, {2, 2}},
                {"2,1,1", 3, {2, 1, 1}}, {"1,3", 2, {1, 3}},      {"2,2,1", 3, {2, 2, 1}}};
    enum { TREES = sizeof tree / sizeof *tree };
    dsc_error err = {0};
    for (uint32_t seed = 0; seed < pairs; seed++) {
        pair p;
        dsc_config config[TREES];
        dsc_expected got[TREES];
        double histogram[TREES][ROOM];
        make_pair(&p, seed);
        if (rule->greedy)
            make_certain(&p);
        for (size_t n = 0; n < TREES; n++) {
            config[n] = (dsc_config){.drafter = &dsc_drafter_spectr_tree, .text = {tree[n].text}};
            assert_ok(dsc_config_prepare(&config[n], &err), err);
        }
        replay(b, &p, config, TREES, rule, got, histogram);
        for (size_t n = 0; n < TREES; n++) {
            const setting s = {
                .p = &p, .judge = how, .length = tree[n].length, .children = tree[n].children};
            double dist;
            dsc_config_fini(&config[n]);
            if (n + 1 == TREES && (seed > 0 || how == judge_otm)) // ten drafts
                continue;
            expectation want = enumerate(&s, 0, &dist);
            assert_close(dist, target_dist(&p), 1e-9);
            assert_close(got[n].target_calls, want.calls, 1e-10);
            assert_close(got[n].num_accepted_tokens, want.accepted, 1e-10);
            assert_close(got[n].num_draft_tokens, want.tokens, 1e-10);
            assert_close(got[n].target_call_tokens, want.calls + want.tokens, 1e-10);
            assert_close(got[n].target_call_context, want.places, 1e-10);
            assert_close(got[n].draft_call_tokens, want.pass_tokens, 1e-10);
            for (int a = 0; a < ROOM; a++)
                assert_close(histogram[n][a], want.histogram[a], 1e-10);
        }
    }
}

typedef struct case_of_rule {
    const dsc_drafter_type *drafter; // NULL: trees
    const dsc_verifier_type *rule;
    judge *how;
    int most; // drafts at a position; of trees: pairs
} case_of_rule;

static const case_of_rule cases[] = {
    {&dsc_drafter_draft_model, &dsc_verifier_rejection, judge_specinfer, 1},
    {&dsc_drafter_draft_model, &dsc_verifier_block, NULL, 1},
    {&dsc_drafter_draft_model, &dsc_verifier_traversal, NULL, 1},
    {&dsc_drafter_draft_model, &dsc_verifier_gbv, NULL, 1},
    {&dsc_drafter_spectr, &dsc_verifier_gbv, NULL, 1},
    {&dsc_drafter_parallel, &dsc_verifier_rejection, judge_specinfer, 1},
    {&dsc_drafter_parallel, &dsc_verifier_block, NULL, 1},
    {&dsc_drafter_parallel, &dsc_verifier_gbv, NULL, 1},
    {&dsc_drafter_spectr, &dsc_verifier_kseq, judge_kseq, MOST_DRAFTS},
    {&dsc_drafter_spectr, &dsc_verifier_specinfer, judge_specinfer, MOST_DRAFTS},
    {&dsc_drafter_spectr, &dsc_verifier_otm, judge_otm, 2},
    {&dsc_drafter_spectr, &dsc_verifier_greedy, judge_greedy, MOST_DRAFTS},
    {NULL, &dsc_verifier_kseq, judge_kseq, 4},
    {NULL, &dsc_verifier_specinfer, judge_specinfer, 4},
    {NULL, &dsc_verifier_greedy, judge_greedy, 4},
    {NULL, &dsc_verifier_otm, judge_otm, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static void expectations_are_those_of_enumeration(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        bench b = {0};
        const case_of_rule *c = &cases[i];
        if (c->drafter)
            compare(&b, c->drafter, c->rule, c->how, c->most);
        else
            compare_trees(&b, c->rule, c->how, (uint32_t)c->most);
        dsc_arena_fini(&b.arena);
        dsc_position_room_fini(&b.room);
    }
}

SUITE(expect_rule)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations_are_those_of_enumeration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

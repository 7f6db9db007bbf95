// SPDX-License-Identifier: Apache-2.0
// Suffix decoding (Oliaro et al. 2024, "SuffixDecoding", arXiv 2411.04975), as vLLM serves it
// (vllm/v1/spec_decode/suffix_decoding.py at 044ac3a on github.com/snowflakedb/ArcticInference at
// 9d46438): the draft is the most frequent continuation of the last m tokens, for the m with the
// highest expected acceptance.
//
// Let c(w) be the number of occurrences of w in prompt and output, and s the last m tokens. The
// draft token at the end of the path d below s has the estimated probability c(s d) / c(s). For
// each m, the most probable nodes of the tree of continuations are used: at most max-spec-factor *
// m + max-spec-offset (the paper's MAX_SPEC) and at most `length` nodes, each of at least
// min-token-prob, with s d of at most max-tree-depth tokens. The m whose nodes have the largest sum
// of probabilities wins; ties go to the longest. s itself counts as an occurrence without a
// continuation.
//
// With max-cached-requests, the same is done with the outputs of earlier requests (suffix_cache.h),
// and the tree with the larger sum is used, prompt and output if they are equal.
//
// --branches 1, a path, is the program's default, and drafts are equal to its drafts. --branches 0
// is the paper's tree (its use_tree_spec); nodes of equal probability are taken in the order in
// which they were found, where that program's heap has an order of its own.
#include "sim/draft/suffix_cache.h"
#include "sim/draft/suffix_paths.h"

#include <inttypes.h>
#include <string.h>

enum { LENGTH, DEPTH, BRANCHES, FACTOR, PROBABILITY, OFFSET, CACHED };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "24", .min = 0, .max = 4096,
     .help = "largest number of draft tokens"},
    {.name = "max-tree-depth", .kind = DSC_OPTION_INT, .metavar = "D", .initial = "24", .min = 2,
     .max = 4096, .help = "largest number of tokens of the match and the draft together"},
    {.name = "branches", .kind = DSC_OPTION_INT, .metavar = "B", .initial = "1", .min = 0,
     .max = 1024, .help = "largest number of continuations of a token; 1: a path, 0: no limit"},
    {.name = "max-spec-factor", .kind = DSC_OPTION_REAL, .metavar = "F", .initial = "1",
     .least = 0, .most = 4096, .help = "largest number of draft tokens per matched token"},
    {.name = "min-token-prob", .kind = DSC_OPTION_REAL, .metavar = "P", .initial = "0.1",
     .least = 0, .most = 1, .help = "smallest empirical probability of a drafted path"},
    {.name = "max-spec-offset", .kind = DSC_OPTION_REAL, .metavar = "O", .initial = "0",
     .least = 0, .most = 4096,
     .help = "number of draft tokens that is added to the limit of --max-spec-factor"},
    {.name = "max-cached-requests", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0",
     .min = 0, .max = INT32_MAX,
     .help = "number of requests whose outputs are looked up too, the latest ones; 0: none"},
};
// clang-format on

static int64_t limit(const dsc_config *config)
{
    int64_t length = config->parameter[LENGTH], path = config->parameter[DEPTH] - 1;
    return length < path ? length : path;
}

static int64_t width(const dsc_config *config)
{
    return 1 + config->parameter[LENGTH];
}

static bool is_chain(const dsc_config *config)
{
    return config->parameter[BRANCHES] == 1;
}

static bool uses_history(const dsc_config *config)
{
    return config->parameter[CACHED] > 0;
}

static dsc_suffix_limits limits_of(const dsc_config *config)
{
    return (dsc_suffix_limits){.length = config->parameter[LENGTH],
                               .depth = config->parameter[DEPTH],
                               .factor = config->real[FACTOR],
                               .offset = config->real[OFFSET],
                               .probability = config->real[PROBABILITY]};
}

// A continuation that may become a node.
typedef struct candidate {
    int32_t edge, count;   // of the index; occurrences of match and path
    int32_t parent, depth; // of the node
} candidate;

// The nodes below a match.
typedef struct offer {
    int32_t *token, *parent; // [length]
    int64_t count;
    double score; // sum of their probabilities
} offer;

typedef struct state {
    dsc_suffix_index index;
    dsc_suffix_cache *cache; // NULL: none
    dsc_drafter_input in;
    dsc_suffix_limits limits;
    dsc_suffix_paths own, cached; // with one branch
    int32_t *recent;              // [depth] scratch
    int64_t prompt;
    offer best, trial;
    candidate *frontier; // [length] [head, tail), by descending count, ties oldest first
    candidate *sibling;  // [length]
    int64_t head, tail;
} state;

static int allocate(state *s, dsc_error *err)
{
    size_t n = (size_t)s->in.parameter[LENGTH];
    const int32_t depth = (int32_t)s->limits.depth;
    int32_t **array[] = {&s->best.token, &s->best.parent, &s->trial.token, &s->trial.parent};
    int rc = dsc_arena_new(s->in.arena, &s->frontier, n, err);
    if (!rc)
        rc = dsc_arena_new(s->in.arena, &s->sibling, n, err);
    for (size_t a = 0; a < sizeof array / sizeof *array && !rc; a++)
        rc = dsc_arena_new(s->in.arena, array[a], n, err);
    if (!rc)
        rc = dsc_arena_new(s->in.arena, &s->recent, (size_t)depth, err);
    const int64_t longest = limit(s->in.config);
    if (!rc)
        rc = dsc_suffix_paths_init(&s->own, &s->index, depth, longest, s->in.arena, err);
    if (!rc && s->cache)
        rc = dsc_suffix_paths_init(&s->cached, &s->cache->index, depth, longest, s->in.arena, err);
    return rc;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    dsc_token_view prompt = in->request->prompt;
    const int32_t depth = (int32_t)in->parameter[DEPTH];
    int rc = DSC_OK;
    *s = (state){.in = *in, .prompt = prompt.count, .limits = limits_of(in->config)};
    if (in->history && in->parameter[CACHED])
        rc = dsc_suffix_cache_begin(&s->cache, in->history, in->parameter[CACHED], depth, err);
    if (!rc)
        rc = allocate(s, err);
    if (!rc)
        rc = dsc_suffix_begin(&s->index, depth, in->arena, err);
    return rc ? rc : dsc_suffix_append(&s->index, prompt.id, prompt.count, err);
}

// --- the most probable nodes below a match -------------------------------------------------------

// Writes the first continuations of an automaton state to sibling[]: at most `most`, each with at
// least `least` occurrences.
static int64_t find_siblings(state *s, const dsc_suffix_index *x, int32_t from, double least,
                             int64_t most)
{
    int64_t n = 0;
    for (int32_t e = x->state[from].edge; e >= 0 && n < most; e = x->edge[e].next) {
        const int32_t count = x->state[x->edge[e].to].count;
        if (!count || (double)count < least)
            break;
        s->sibling[n++] = (candidate){.edge = e, .count = count};
    }
    return n;
}

// Adds the continuations of a node to the frontier, which keeps at most `most`.
static void widen(state *s, const dsc_suffix_index *x, int32_t from, int32_t parent, int32_t depth,
                  double least, int64_t most)
{
    const int64_t branches = s->in.parameter[BRANCHES],
                  widest = branches && branches < most ? branches : most;
    const int64_t n = most > 0 ? find_siblings(s, x, from, least, widest) : 0;
    for (int64_t j = 0; j < n; j++) {
        candidate c = s->sibling[j];
        if (s->tail - s->head == most && c.count <= s->frontier[s->tail - 1].count)
            break;
        int64_t at = s->tail - s->head < most ? s->tail++ : s->tail - 1;
        for (; at > s->head && s->frontier[at - 1].count < c.count; at--)
            s->frontier[at] = s->frontier[at - 1];
        c.parent = parent;
        c.depth = depth;
        s->frontier[at] = c;
    }
}

// Fills s->trial with at most `most` nodes, on paths of at most `deepest`, below a state.
static void expand(state *s, const dsc_suffix_index *x, int32_t from, int64_t most, int64_t deepest)
{
    offer *t = &s->trial;
    double all = x->state[from].count, least = s->in.config->real[PROBABILITY] * all, sum = 0;
    t->count = s->head = s->tail = 0;
    widen(s, x, from, -1, 1, least, most);
    while (s->head < s->tail && t->count < most) {
        candidate c = s->frontier[s->head++];
        t->token[t->count] = x->edge[c.edge].token;
        t->parent[t->count++] = c.parent;
        sum += c.count;
        if (c.depth < deepest)
            widen(s, x, x->edge[c.edge].to, (int32_t)t->count - 1, c.depth + 1, least,
                  most - t->count);
    }
    t->score = sum / all;
}

// --- the match -----------------------------------------------------------------------------------

// The largest number of nodes below a match of m tokens, on paths of at most `deepest`.
static int64_t tree_nodes(const dsc_suffix_limits *limits, int64_t m)
{
    dsc_suffix_limits free = *limits;
    free.depth = m + limits->length;
    return dsc_suffix_most(&free, m);
}

// Leaves the best offer of all matches of an index in s->best, if it is better than that: `from`
// contains the last `longest` tokens.
static void choose_tree(state *s, const dsc_suffix_index *x, int32_t from, int64_t longest)
{
    const double best = s->best.score;
    bool found = false;
    for (int64_t m = longest; m >= 1; m--) {
        while (x->state[x->state[from].link].length >= m)
            from = x->state[from].link;
        const int64_t most = tree_nodes(&s->limits, m), deepest = s->limits.depth - m;
        if (deepest < 1 || (double)most <= (found ? s->best.score : best))
            continue;
        expand(s, x, from, most, deepest);
        if (s->trial.score > s->best.score) {
            offer better = s->trial;
            s->trial = s->best;
            s->best = better;
            found = true;
        }
    }
}

// Leaves a path in s->best.
static void copy_path(state *s, const dsc_suffix_path *p, int64_t count)
{
    s->best.count = count;
    for (int64_t j = 0; j < count; j++) {
        s->best.token[j] = p->token[j];
        s->best.parent[j] = (int32_t)j - 1;
    }
}

// Leaves the best path of all matches in s->best: `from` contains the last `match` tokens, among
// the cached outputs.
static int choose_path(state *s, int32_t from, int32_t match, dsc_error *err)
{
    const dsc_suffix_index *x = &s->index;
    int64_t drafted = 0;
    float score = 0;
    int rc = dsc_suffix_paths_begin(&s->own, x->active, x->length, 2, err);
    if (!rc && s->cache)
        rc = dsc_suffix_paths_begin(&s->cached, from, match, 1, err);
    if (rc)
        return rc;
    const dsc_suffix_path *own = dsc_suffix_paths_choose(&s->own, &s->limits, &drafted, &score),
                          *cached = NULL;
    if (s->cache)
        cached = dsc_suffix_paths_choose(&s->cached, &s->limits, &drafted, &score);
    copy_path(s, cached ? cached : own, drafted);
    return DSC_OK;
}

// Adds the tokens of the output that are not known yet.
static int catch_up(state *s, const int32_t *token, int64_t n, dsc_error *err)
{
    int rc = dsc_suffix_append(&s->index, token, n, err);
    return rc || !s->cache ? rc : dsc_suffix_cache_append(s->cache, token, n, err);
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    const int64_t known = s->index.count - s->prompt;
    int32_t match = 0, from = 0;
    int rc = catch_up(s, output + known, length - known, err);
    if (rc)
        return rc;
    s->limits.length = s->in.parameter[LENGTH]; // a controller may change it at every step
    s->best.count = 0;
    s->best.score = 0;
    if (s->cache)
        from = dsc_suffix_cache_find(s->cache, s->in.request->prompt, output, length, s->recent,
                                     &match);
    if (is_chain(s->in.config)) {
        rc = choose_path(s, from, match, err);
    } else {
        choose_tree(s, &s->index, s->index.active, s->index.length);
        if (s->cache)
            choose_tree(s, &s->cache->index, from, match);
    }
    draft->started = s->best.count > 0;
    for (int64_t j = 0; j < s->best.count && !rc; j++)
        rc = dsc_draft_append_chain(draft, s->best.parent[j], &s->best.token[j], 1, err);
    return rc;
}

// The tokens of the last step are the cache's, which no draft follows.
static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    (void)draft;
    return s->cache ? dsc_suffix_cache_keep(s->cache, verdict->token, verdict->count, err) : DSC_OK;
}

// --- replay: all settings on one index -----------------------------------------------------------
//
// With one branch, the nodes below a match are a path that no setting changes: only where it ends.
// So the paths of a position are found once, as far as any setting needs them. Most matches are
// short, where many settings have the same limits: they share what one of them drafts. What a cache
// contains does not depend on the drafts, so settings with the same number of requests share it.

typedef struct replay {
    dsc_suffix_index index;
    dsc_suffix_paths own;
    dsc_suffix_cache **cache; // [settings] of the first setting with that number of requests, else
                              // NULL
    dsc_suffix_paths *cached; // [settings] the paths of cache[]
    size_t *cache_of;         // [settings] the setting whose cache is used
    int32_t *recent;          // [depth] scratch
    int64_t longest;          // nodes of any path
    int32_t match;            // the longest at this position
    const dsc_drafter_input *in; // [settings]
    dsc_suffix_limits *limits;   // [settings]
    size_t settings;
    int32_t *same; // [depth + 1][settings] the first setting with the same probability and cache
                   // and with the same limits of matches of up to m tokens
    int32_t known; // rows of `same`
    int64_t *most; // [settings] of one row
} replay;

static int replay_caches(replay *r, int32_t depth, dsc_error *err)
{
    const dsc_drafter_input *in = r->in;
    int rc = DSC_OK;
    for (size_t j = 0; j < r->settings && !rc; j++) {
        const int64_t most = in[j].parameter[CACHED];
        size_t first = 0;
        while (first < j && in[first].parameter[CACHED] != most)
            first++;
        r->cache_of[j] = first;
        if (!most || first < j)
            continue;
        if (!in[j].history)
            return dsc_fail(err, DSC_EUSAGE,
                            "--max-cached-requests %" PRId64
                            " needs all requests in order, which this replay does not keep; use "
                            "--max-cached-requests 0",
                            most);
        rc = dsc_suffix_cache_begin(&r->cache[j], in[j].history, most, depth, err);
        if (!rc)
            rc = dsc_suffix_paths_init(&r->cached[j], &r->cache[j]->index, depth, r->longest,
                                       in->arena, err);
    }
    return rc;
}

static int replay_allocate(replay *r, dsc_arena *arena, size_t depth, dsc_error *err)
{
    const size_t count = r->settings;
    int rc = dsc_arena_new(arena, &r->same, (depth + 1) * count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->limits, count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->cache, count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->cached, count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->cache_of, count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->recent, depth, err);
    if (!rc)
        rc = dsc_arena_new(arena, &r->most, count, err);
    for (size_t j = 0; j < count && !rc; j++) {
        r->limits[j] = limits_of(r->in[j].config);
        r->cache[j] = NULL;
    }
    return rc;
}

static int replay_init(replay *r, const dsc_drafter_input *in, size_t count, dsc_error *err)
{
    int64_t depth = 2;
    *r = (replay){.longest = 1, .in = in, .settings = count};
    for (size_t j = 0; j < count; j++) {
        const int64_t most = limit(in[j].config);
        depth = in[j].parameter[DEPTH] > depth ? in[j].parameter[DEPTH] : depth;
        r->longest = most > r->longest ? most : r->longest;
    }
    int rc = replay_allocate(r, in->arena, (size_t)depth, err);
    if (!rc)
        rc = replay_caches(r, (int32_t)depth, err);
    if (!rc)
        rc = dsc_suffix_begin(&r->index, (int32_t)depth, in->arena, err);
    if (!rc)
        rc = dsc_suffix_paths_init(&r->own, &r->index, (int32_t)depth, r->longest, in->arena, err);
    return rc ? rc
              : dsc_suffix_append(&r->index, in->request->prompt.id, in->request->prompt.count,
                                  err);
}

// The row of `same` for matches of up to m tokens. Settings of a row are further apart in the next.
static const int32_t *same_settings(replay *r, int32_t m)
{
    for (; r->known <= m; r->known++) {
        int32_t *row = r->same + (size_t)r->known * r->settings;
        const int32_t *before = row - r->settings;
        for (size_t j = 0; j < r->settings; j++) {
            const double probability = r->limits[j].probability;
            size_t i = 0;
            r->most[j] = dsc_suffix_most(&r->limits[j], r->known);
            while (i < j && (r->known ? before[i] != before[j] || r->most[i] != r->most[j]
                                      : r->limits[i].probability != probability ||
                                            r->cache_of[i] != r->cache_of[j]))
                i++;
            row[j] = (int32_t)i;
        }
    }
    return r->same + (size_t)m * r->settings;
}

// Begins the paths of position i of the output.
static int begin_paths(replay *r, const int32_t *output, int64_t i, dsc_error *err)
{
    int rc = dsc_suffix_paths_begin(&r->own, r->index.active, r->index.length, 2, err);
    r->match = r->own.match;
    for (size_t j = 0; j < r->settings && !rc; j++) {
        int32_t match, from;
        if (!r->cache[j])
            continue;
        from = dsc_suffix_cache_find(r->cache[j], r->in->request->prompt, output, i, r->recent,
                                     &match);
        rc = dsc_suffix_paths_begin(&r->cached[j], from, match, 1, err);
        r->match = match > r->match ? match : r->match;
    }
    return rc;
}

// The path that a setting drafts, and the number of its tokens.
static const dsc_suffix_path *chosen_path(replay *r, size_t j, int64_t *count)
{
    const size_t c = r->cache_of[j];
    float score = 0;
    *count = 0;
    const dsc_suffix_path *own = dsc_suffix_paths_choose(&r->own, &r->limits[j], count, &score),
                          *cached = NULL;
    if (r->cache[c])
        cached = dsc_suffix_paths_choose(&r->cached[c], &r->limits[j], count, &score);
    return cached ? cached : own;
}

// What a setting drafts at a position.
typedef struct drafted {
    int64_t position; // -1: none yet
    int32_t count, accepted;
} drafted;

// Drafts for all settings that begin a step at position i of the output, which next[] holds.
static void draft_position(replay *r, dsc_token_view output, int64_t i, drafted *draft,
                           int64_t *next, dsc_match_lengths *out)
{
    const int32_t *same = same_settings(r, r->match);
    for (size_t j = 0; j < r->settings; j++) {
        if (next[j] > i)
            continue;
        drafted *d = &draft[same[j]];
        if (d->position != i) {
            int64_t count, run = 0;
            const dsc_suffix_path *p = chosen_path(r, (size_t)same[j], &count);
            const int64_t left = output.count - 1 - i, most = count < left ? count : left;
            while (run < most && p->token[run] == output.id[i + run])
                run++;
            *d = (drafted){i, (int32_t)count, (int32_t)run};
        }
        if (!d->count)
            continue;
        out[j].available[i] = d->count;
        out[j].run[i] = d->accepted;
        next[j] = i + d->accepted + 1;
    }
}

// Whether a setting begins a step at position i; a step without a draft has one token.
static bool begins_step(const int64_t *next, size_t count, int64_t i)
{
    for (size_t j = 0; j < count; j++)
        if (next[j] <= i)
            return true;
    return false;
}

// Adds a token to the output.
static int replay_append(replay *r, const int32_t *token, dsc_error *err)
{
    int rc = dsc_suffix_append(&r->index, token, 1, err);
    for (size_t j = 0; j < r->settings && !rc; j++)
        rc = r->cache[j] ? dsc_suffix_cache_append(r->cache[j], token, 1, err) : DSC_OK;
    return rc;
}

// Fills the positions where a step of a setting begins, which are known as far as the last step.
static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    (void)longest; // the limits of the settings are not larger
    const dsc_token_view output = in->request->output;
    int64_t *next;
    drafted *draft;
    replay r;
    int rc = dsc_arena_new(in->arena, &next, count, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &draft, count, err);
    if (!rc)
        rc = replay_init(&r, in, count, err);
    for (size_t j = 0; j < count && !rc; j++) {
        next[j] = 0;
        draft[j].position = -1;
        memset(out[j].available, 0xff, (size_t)output.count * sizeof *out[j].available); // -1
        memset(out[j].run, 0, (size_t)output.count * sizeof *out[j].run);
    }
    for (int64_t i = 0; i < output.count && !rc; i++) {
        if (begins_step(next, count, i)) {
            rc = begin_paths(&r, output.id, i, err);
            if (!rc && r.match) // else no setting drafts
                draft_position(&r, output, i, draft, next, out);
        }
        if (!rc)
            rc = replay_append(&r, &output.id[i], err);
    }
    return rc;
}

const dsc_drafter_type dsc_drafter_suffix = {
    .name = "suffix",
    .summary = "the most frequent continuation of the last tokens in the text (SuffixDecoding)",
    .source = "Oliaro et al. 2024, SuffixDecoding, arXiv 2411.04975",
    .engines = "vLLM suffix; TensorRT-LLM SA is similar",
    .recording = "token ids",
    .matches_steps = true,
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .uses_history = uses_history,
    .limit = limit,
    .width = width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
    .match_lengths = match_lengths,
    .is_chain = is_chain,
};

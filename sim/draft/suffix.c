// SPDX-License-Identifier: Apache-2.0
// Suffix decoding (Oliaro et al. 2024, "SuffixDecoding", arXiv 2411.04975; the public program is
// github.com/snowflakedb/ArcticInference): the draft is the most frequent continuation of the
// last m tokens in prompt and output, for the m with the highest expected acceptance.
//
// Let c(w) be the number of occurrences of w in prompt and output, and s the last m tokens. The
// draft token at the end of the path d below s has the estimated probability c(s d) / c(s). For
// each m, the most probable nodes of the tree of continuations are used (ties: the node found
// first, among siblings the one seen last): at most spec-factor * m (the paper's MAX_SPEC) and at
// most `length` nodes, each of at least min-probability, with s d of at most `depth` tokens. The m
// whose nodes have the largest sum of probabilities wins; ties go to the longest.
//
// As in that program, s itself counts as an occurrence without a continuation. Its defaults are
// ours (and vLLM's): a path, --branches 1; the paper's tree is --branches 0. Its second tree, of
// earlier requests' outputs, is not here.
#include "sim/draft/suffix_index.h"
#include "sim/drafter.h"

#include <string.h>

enum { LENGTH, DEPTH, BRANCHES, FACTOR, PROBABILITY };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "24", .min = 0, .max = 4096,
     .help = "largest number of draft tokens"},
    {.name = "depth", .kind = DSC_OPTION_INT, .metavar = "D", .initial = "24", .min = 2,
     .max = 4096, .help = "largest number of tokens of the match and the draft together"},
    {.name = "branches", .kind = DSC_OPTION_INT, .metavar = "B", .initial = "1", .min = 0,
     .max = 1024, .help = "largest number of continuations of a token; 1: a path, 0: no limit"},
    {.name = "spec-factor", .kind = DSC_OPTION_REAL, .metavar = "F", .initial = "1", .least = 0,
     .most = 4096, .help = "largest number of draft tokens per matched token"},
    {.name = "min-probability", .kind = DSC_OPTION_REAL, .metavar = "P", .initial = "0.1",
     .least = 0, .most = 1, .help = "smallest empirical probability of a drafted path"},
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
    dsc_drafter_input in;
    int64_t prompt;
    offer best, trial;
    candidate *frontier; // [length] [head, tail), by descending count, ties oldest first
    candidate *sibling;  // [length]
    int64_t head, tail;
} state;

static int allocate(state *s, dsc_error *err)
{
    size_t n = (size_t)s->in.parameter[LENGTH];
    int32_t **array[] = {&s->best.token, &s->best.parent, &s->trial.token, &s->trial.parent};
    int rc = dsc_arena_new(s->in.arena, &s->frontier, n, err);
    if (!rc)
        rc = dsc_arena_new(s->in.arena, &s->sibling, n, err);
    for (size_t a = 0; a < sizeof array / sizeof *array && !rc; a++)
        rc = dsc_arena_new(s->in.arena, array[a], n, err);
    return rc;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    dsc_token_view prompt = in->request->prompt;
    *s = (state){.in = *in, .prompt = prompt.count};
    int rc = allocate(s, err);
    if (!rc)
        rc = dsc_suffix_begin(&s->index, (int32_t)in->parameter[DEPTH], in->arena, err);
    return rc ? rc : dsc_suffix_append(&s->index, prompt.id, prompt.count, err);
}

// --- the most probable nodes below a match -------------------------------------------------------

static bool before(const dsc_suffix_index *x, const candidate *a, const candidate *b)
{
    return a->count != b->count
               ? a->count > b->count
               : x->state[x->edge[a->edge].to].last > x->state[x->edge[b->edge].to].last;
}

// Writes the first continuations of an automaton state to sibling[]: at most `most`, each with at
// least `least` occurrences.
static int64_t find_siblings(state *s, int32_t from, double least, int64_t most)
{
    const dsc_suffix_index *x = &s->index;
    int64_t n = 0;
    for (int32_t e = x->state[from].edge; e >= 0; e = x->edge[e].next) {
        candidate c = {.edge = e, .count = x->state[x->edge[e].to].count};
        if ((double)c.count < least || (n == most && !before(x, &c, &s->sibling[n - 1])))
            continue;
        int64_t at = n < most ? n++ : n - 1;
        for (; at > 0 && before(x, &c, &s->sibling[at - 1]); at--)
            s->sibling[at] = s->sibling[at - 1];
        s->sibling[at] = c;
    }
    return n;
}

// Adds the continuations of a node to the frontier, which keeps at most `most`.
static void widen(state *s, int32_t from, int32_t parent, int32_t depth, double least, int64_t most)
{
    int64_t branches = s->in.parameter[BRANCHES];
    int64_t n =
        most > 0 ? find_siblings(s, from, least, branches && branches < most ? branches : most) : 0;
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
static void expand(state *s, int32_t from, int64_t most, int64_t deepest)
{
    const dsc_suffix_index *x = &s->index;
    offer *t = &s->trial;
    double all = x->state[from].count, least = s->in.config->real[PROBABILITY] * all, sum = 0;
    t->count = s->head = s->tail = 0;
    widen(s, from, -1, 1, least, most);
    while (s->head < s->tail && t->count < most) {
        candidate c = s->frontier[s->head++];
        t->token[t->count] = x->edge[c.edge].token;
        t->parent[t->count++] = c.parent;
        sum += c.count;
        if (c.depth < deepest)
            widen(s, x->edge[c.edge].to, (int32_t)t->count - 1, c.depth + 1, least,
                  most - t->count);
    }
    t->score = sum / all;
}

// --- the match -----------------------------------------------------------------------------------

// Leaves the best offer of all matches in s->best.
static void choose(state *s)
{
    const dsc_suffix_index *x = &s->index;
    const int64_t *parameter = s->in.parameter;
    int32_t from = x->active;
    s->best.count = 0;
    s->best.score = 0;
    for (int64_t m = x->length; m >= 1; m--) {
        while (x->state[x->state[from].link].length >= m)
            from = x->state[from].link;
        int64_t most = (int64_t)((double)m * s->in.config->real[FACTOR] + 1e-6);
        int64_t deepest = parameter[DEPTH] - m;
        most = most < parameter[LENGTH] ? most : parameter[LENGTH];
        if (parameter[BRANCHES] == 1 && most > deepest)
            most = deepest;
        // The last occurrence has no continuation, which bounds the score of any offer.
        int32_t count = x->state[from].count;
        if (deepest < 1 || (double)most * (count - 1) / count <= s->best.score)
            continue;
        expand(s, from, most, deepest);
        if (s->trial.score > s->best.score) {
            offer better = s->trial;
            s->trial = s->best;
            s->best = better;
        }
    }
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    int64_t known = s->index.count - s->prompt;
    int rc = dsc_suffix_append(&s->index, output + known, length - known, err);
    if (rc)
        return rc;
    choose(s);
    draft->started = s->best.count > 0;
    for (int64_t j = 0; j < s->best.count && !rc; j++)
        rc = dsc_draft_append_chain(draft, s->best.parent[j], &s->best.token[j], 1, err);
    return rc;
}

// --- replay: all settings on one index -----------------------------------------------------------
//
// With one branch, the nodes below a match are a path that no setting changes: only where it ends.
// So the paths of a position are found once, as far as any setting needs them. Most matches are
// short, where many settings have the same limits: they share what one of them drafts.

static bool is_chain(const dsc_config *config)
{
    return config->parameter[BRANCHES] == 1;
}

// The path below a match of m tokens.
typedef struct path {
    int32_t state, all;    // of the index; occurrences of the match
    int32_t end;           // the state after the last node, -1: it has no continuation
    int64_t count;         // nodes found so far
    int32_t *token, *seen; // [longest] the nodes; how often match and path up to there occur
    double *sum;           // [longest + 1] of seen[0, i)
} path;

typedef struct replay {
    dsc_suffix_index index;
    int64_t longest;  // nodes of any path
    path *path;       // [depth] those of this position, the longest match first
    int32_t paths;    // that have memory
    int32_t *of;      // [depth + 1] the path of a match of m tokens
    int32_t repeated; // the longest match that occurs twice; longer ones have no continuation
    const dsc_drafter_input *in; // [settings]
    size_t settings;
    int32_t *same; // [depth + 1][settings] the first setting with the same probability and with the
                   // same limits of matches of up to m tokens
    int32_t known; // rows of `same`
    int64_t *most; // [settings] of one row
} replay;

// Nodes below a match of m tokens.
static int64_t most_nodes(const dsc_drafter_input *in, int64_t m)
{
    const int64_t deepest = in->parameter[DEPTH] - m, length = in->parameter[LENGTH];
    int64_t most = (int64_t)((double)m * in->config->real[FACTOR] + 1e-6);
    most = most < length ? most : length;
    most = most < deepest ? most : deepest;
    return most > 0 ? most : 0;
}

// The next path, which few positions need if there are many already.
static int add_path(replay *r, dsc_error *err)
{
    const size_t n = (size_t)r->longest;
    dsc_arena *arena = r->index.arena;
    path *p = &r->path[r->paths++];
    int rc = dsc_arena_new(arena, &p->token, n, err);
    if (!rc)
        rc = dsc_arena_new(arena, &p->seen, n, err);
    return rc ? rc : dsc_arena_new(arena, &p->sum, n + 1, err);
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
    int rc = dsc_arena_new(in->arena, &r->path, (size_t)depth, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &r->of, (size_t)depth + 1, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &r->same, ((size_t)depth + 1) * count, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &r->most, count, err);
    if (!rc)
        rc = dsc_suffix_begin(&r->index, (int32_t)depth, in->arena, err);
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
            const double probability = r->in[j].config->real[PROBABILITY];
            size_t i = 0;
            r->most[j] = most_nodes(&r->in[j], r->known);
            while (i < j && (r->known ? before[i] != before[j] || r->most[i] != r->most[j]
                                      : r->in[i].config->real[PROBABILITY] != probability))
                i++;
            row[j] = (int32_t)i;
        }
    }
    return r->same + (size_t)m * r->settings;
}

// Begins the paths of a position: one for each state of its suffixes.
static int begin_paths(replay *r, dsc_error *err)
{
    const dsc_suffix_index *x = &r->index;
    int32_t from = x->active, paths = 0;
    int rc = DSC_OK;
    r->repeated = x->length;
    for (; r->repeated && x->state[from].count < 2; from = x->state[from].link)
        r->repeated = x->state[x->state[from].link].length;
    for (int32_t m = r->repeated; m >= 1 && !rc; m--) {
        while (x->state[x->state[from].link].length >= m)
            from = x->state[from].link;
        if (!paths || r->path[paths - 1].state != from) {
            rc = paths == r->paths ? add_path(r, err) : DSC_OK;
            if (rc)
                break;
            path *p = &r->path[paths++];
            p->state = p->end = from;
            p->all = x->state[from].count;
            p->count = 0;
            p->sum[0] = 0;
        }
        r->of[m] = paths - 1;
    }
    return rc;
}

// Extends a path to `most` nodes, if it has as many.
static void extend_path(const dsc_suffix_index *x, path *p, int64_t most)
{
    while (p->count < most && p->end >= 0) {
        int32_t best = -1;
        for (int32_t e = x->state[p->end].edge; e >= 0; e = x->edge[e].next) {
            const dsc_suffix_state *a = &x->state[x->edge[e].to],
                                   *b = best < 0 ? NULL : &x->state[x->edge[best].to];
            if (!b || a->count > b->count || (a->count == b->count && a->last > b->last))
                best = e;
        }
        p->end = best < 0 ? -1 : x->edge[best].to;
        if (best < 0)
            return;
        p->token[p->count] = x->edge[best].token;
        p->seen[p->count] = x->state[p->end].count;
        p->sum[p->count + 1] = p->sum[p->count] + p->seen[p->count];
        p->count++;
    }
}

// As choose(), for a setting: the path of the best match, and how many of its nodes are drafted.
static const path *choose_path(replay *r, const dsc_drafter_input *in, int64_t *drafted)
{
    const int64_t depth = in->parameter[DEPTH];
    const double probability = in->config->real[PROBABILITY];
    const path *best = NULL;
    double score = 0;
    *drafted = 0;
    for (int64_t m = r->repeated < depth ? r->repeated : depth; m >= 1; m--) {
        path *p = &r->path[r->of[m]];
        int64_t most = most_nodes(in, m), n = 0;
        if (most < 1 || (double)most * (p->all - 1) / p->all <= score)
            continue;
        extend_path(&r->index, p, most);
        for (const double least = probability * p->all;
             n < most && n < p->count && (double)p->seen[n] >= least;)
            n++;
        if (p->sum[n] / p->all > score) {
            score = p->sum[n] / p->all;
            best = p;
            *drafted = n;
        }
    }
    return best;
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
    const int32_t *same = same_settings(r, r->repeated);
    for (size_t j = 0; j < r->settings; j++) {
        if (next[j] > i)
            continue;
        drafted *d = &draft[same[j]];
        if (d->position != i) {
            int64_t count, run = 0;
            const path *p = choose_path(r, &r->in[same[j]], &count);
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
        rc = begin_paths(&r, err);
        if (!rc && r.repeated) // else no setting drafts
            draft_position(&r, output, i, draft, next, out);
        if (!rc)
            rc = dsc_suffix_append(&r.index, &output.id[i], 1, err);
    }
    return rc;
}

const dsc_drafter_type dsc_drafter_suffix = {
    .name = "suffix",
    .summary = "the most frequent continuation of the last tokens in the text (SuffixDecoding)",
    .matches_steps = true,
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .width = width,
    .begin = begin,
    .propose = propose,
    .match_lengths = match_lengths,
    .is_chain = is_chain,
};

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

const dsc_drafter_type dsc_drafter_suffix = {
    .name = "suffix",
    .summary = "the most frequent continuation of the last tokens in the text (SuffixDecoding)",
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .width = width,
    .begin = begin,
    .propose = propose,
};

// SPDX-License-Identifier: Apache-2.0
// SGLang's NGRAM (python/sglang/srt/speculative/ngram_worker.py at 0037c14 and cpp_ngram/trie.cpp
// at 0d1d60f of github.com/sgl-project/sglang), without overlap scheduling and at batch size 1: the
// draft is a tree of the continuations of the latest text in a trie that all requests share.
//
// After every step that verified, all suffixes of the last max-trie-depth tokens of prompt and
// output are inserted (ngram_trie.h). A draft merges what the trie has below each suffix of these
// tokens, the longest first, until it has num-draft-tokens - 1 nodes. BFS takes the latest children
// of each node, fewer on lower levels and for longer suffixes; PROB takes the path with the largest
// product of relative frequencies among the max-bfs-breadth most frequent children. Its heap orders
// equal products as libstdc++'s std::priority_queue does.
//
// The engine fills a smaller tree up with children of the root with token 0; they are left out.
#include "sim/draft/ngram_trie.h"
#include "sim/drafter.h"

#include <inttypes.h>
#include <string.h>

enum { TOKENS, LEAST_BREADTH, MOST_BREADTH, MATCH_TYPE, DEPTH, CAPACITY };
enum { MATCH_BFS, MATCH_PROB };
// clang-format off
static const dsc_option options[] = {
    {.name = "num-draft-tokens", .synonyms = "speculative-num-draft-tokens",
     .column = "max_num_draft_tokens",
     .kind = DSC_OPTION_INT, .metavar = "N", .initial = "12", .min = 1, .max = 4096,
     .help = "largest number of tokens to verify, the last committed one included"},
    {.name = "min-bfs-breadth", .synonyms = "speculative-ngram-min-bfs-breadth",
     .kind = DSC_OPTION_INT, .metavar = "B", .initial = "1", .min = 1, .max = 1024,
     .help = "number of children of a node after the longest match"},
    {.name = "max-bfs-breadth", .synonyms = "speculative-ngram-max-bfs-breadth",
     .kind = DSC_OPTION_INT, .metavar = "B", .initial = "10", .min = 1, .max = 1024,
     .help = "largest number of children of a node"},
    {.name = "match-type", .synonyms = "speculative-ngram-match-type",
     .kind = DSC_OPTION_CHOICE, .choices = "BFS|PROB", .initial = "BFS",
     .help = "which children are drafted: the latest (BFS) or the most frequent ones (PROB)"},
    {.name = "max-trie-depth", .synonyms = "speculative-ngram-max-trie-depth",
     .kind = DSC_OPTION_INT, .metavar = "D", .initial = "18", .min = 2, .max = 1024,
     .help = "largest number of tokens of the match and the draft together"},
    {.name = "capacity", .synonyms = "speculative-ngram-capacity",
     .kind = DSC_OPTION_INT, .metavar = "N", .initial = "10000000", .min = 3, .max = 1000000000,
     .help = "number of nodes of the trie; the least recently used ones are evicted"},
};
// clang-format on

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    const int64_t *p = config->parameter;
    *prepared = NULL;
    if (p[LEAST_BREADTH] > p[MOST_BREADTH])
        return dsc_fail(err, DSC_EUSAGE,
                        "--min-bfs-breadth %" PRId64 " exceeds --max-bfs-breadth %" PRId64
                        "; it must be at most that",
                        p[LEAST_BREADTH], p[MOST_BREADTH]);
    if (p[CAPACITY] <= p[DEPTH])
        return dsc_fail(err, DSC_EUSAGE,
                        "--capacity %" PRId64 " is too small for --max-trie-depth %" PRId64
                        "; it must be larger",
                        p[CAPACITY], p[DEPTH]);
    return DSC_OK;
}

static int64_t limit(const dsc_config *config)
{
    const int64_t nodes = config->parameter[TOKENS] - 1, path = config->parameter[DEPTH] - 1;
    return nodes < path ? nodes : path;
}

static int64_t width(const dsc_config *config)
{
    return config->parameter[TOKENS];
}

static bool uses_history(const dsc_config *config)
{
    (void)config;
    return true;
}

// A node of the trie as it was at an earlier step; -1: none.
typedef struct anchor {
    int32_t node;
    uint32_t version;
} anchor;

// A node of the trie whose children, or which itself, may be drafted.
typedef struct candidate {
    int32_t node, parent; // of the trie; of the draft, 0: the root
    double value;         // BFS: its breadth; PROB: the probability of its path
} candidate;

// A node of the draft; 0 is the root. Links are 0 where there is none.
typedef struct leaf {
    int32_t token, parent, child, sibling;
} leaf;

typedef struct state {
    dsc_ngram_trie *trie;
    dsc_drafter_input in;
    int32_t *recent;          // [2 * depth] the last `kept` tokens of prompt and output
    int64_t kept, known;      // known: tokens of prompt and output at the last draft
    anchor *match, *previous; // [depth] of the last d + 1 tokens
    int64_t matches;
    leaf *draft;      // [num-draft-tokens]
    int32_t drafted;  // root included
    candidate *queue; // BFS: first in, first out; PROB: a heap
    int64_t queued;
} state;

static int find_trie(state *s, const dsc_drafter_input *in, dsc_error *err)
{
    dsc_arena *arena = in->history ? &in->history->arena : in->arena;
    s->trie = in->history ? in->history->state : NULL;
    if (s->trie)
        return DSC_OK;
    int rc = dsc_arena_new(arena, &s->trie, 1, err);
    if (!rc)
        rc = dsc_ngram_trie_begin(s->trie, (int32_t)in->parameter[DEPTH], in->parameter[CAPACITY],
                                  arena, err);
    if (!rc && in->history)
        in->history->state = s->trie;
    return rc;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const size_t depth = (size_t)in->parameter[DEPTH], nodes = (size_t)in->parameter[TOKENS],
                 breadth = (size_t)in->parameter[MOST_BREADTH];
    *s = (state){.in = *in};
    int rc = find_trie(s, in, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->recent, 2 * depth, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->match, depth, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->previous, depth, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->draft, nodes, err);
    if (!rc) // a node of the draft is queued at most once, with all its candidates
        rc = dsc_arena_new(in->arena, &s->queue,
                           in->parameter[MATCH_TYPE] == MATCH_BFS ? nodes : nodes * breadth, err);
    return rc;
}

// --- the match -----------------------------------------------------------------------------------

// Leaves the last tokens of prompt and output in s->recent.
static void keep_recent(state *s, const int32_t *output, int64_t length)
{
    const dsc_token_view prompt = s->in.request->prompt;
    const int64_t text = prompt.count + length, depth = s->trie->depth;
    s->kept = text < depth ? text : depth;
    for (int64_t i = 0; i < s->kept; i++) {
        const int64_t at = text - s->kept + i;
        s->recent[i] = at < prompt.count ? prompt.id[at] : output[at - prompt.count];
    }
}

static anchor child_of(const dsc_ngram_trie *t, int32_t node, int32_t token)
{
    const int32_t at = node < 0 ? -1 : dsc_ngram_trie_child(t, node, token);
    return (anchor){at, at < 0 ? 0 : t->node[at].version};
}

static void match_anew(state *s)
{
    s->matches = s->kept;
    for (int64_t d = 0; d < s->matches; d++) {
        anchor a = {0, 0};
        for (int64_t i = s->kept - 1 - d; i < s->kept && a.node >= 0; i++)
            a = child_of(s->trie, a.node, s->recent[i]);
        s->match[d] = a;
    }
}

static void advance(state *s, int32_t token)
{
    const int64_t depth = s->trie->depth, n = s->matches < depth ? s->matches + 1 : depth;
    anchor *next = s->previous;
    next[0] = child_of(s->trie, 0, token);
    for (int64_t d = 1; d < n; d++)
        next[d] = child_of(s->trie, s->match[d - 1].node, token);
    s->previous = s->match;
    s->match = next;
    s->matches = n;
}

static bool is_current(const state *s)
{
    for (int64_t d = 0; d < s->matches; d++)
        if (s->match[d].node >= 0 && s->trie->node[s->match[d].node].version != s->match[d].version)
            return false;
    return true;
}

// The matches of the last draft are extended where that is possible, as the engine does: a suffix
// that was not in the trie then is not found now, even if a later step inserted it.
static void find_matches(state *s, int64_t text)
{
    const int64_t added = text - s->known;
    if (!s->known || added > s->kept || !is_current(s)) {
        match_anew(s);
    } else {
        for (int64_t i = s->kept - added; i < s->kept; i++)
            advance(s, s->recent[i]);
    }
    s->known = text;
}

// --- the tree ------------------------------------------------------------------------------------

// The child of a node of the draft with this token, which is added if there is none.
static int32_t draft_child(state *s, int32_t parent, int32_t token)
{
    int32_t at = s->draft[parent].child;
    while (at && s->draft[at].token != token)
        at = s->draft[at].sibling;
    if (at)
        return at;
    at = s->drafted++;
    s->draft[at] = (leaf){.token = token, .parent = parent, .sibling = s->draft[parent].child};
    s->draft[parent].child = at;
    return at;
}

static void add_latest(state *s, int32_t match, int64_t matched)
{
    const int64_t *p = s->in.parameter;
    const dsc_trie_node *node = s->trie->node;
    const int32_t longest = p[DEPTH] > 2 ? (int32_t)p[DEPTH] - 1 : 1;
    const double scale = (double)(p[MOST_BREADTH] - p[LEAST_BREADTH]) / longest;
    s->queue[0] =
        (candidate){match, 0, (double)(longest - matched) * scale + (double)p[LEAST_BREADTH]};
    s->queued = 1;
    for (int64_t head = 0; head < s->queued && s->drafted < p[TOKENS]; head++) {
        const candidate c = s->queue[head];
        const int32_t breadth = c.value < 1 ? 1 : (int32_t)c.value;
        int32_t at = node[c.node].child;
        for (int32_t i = 0; i < breadth && at >= 0 && s->drafted < p[TOKENS]; i++) {
            const int32_t to = draft_child(s, c.parent, node[at].token);
            s->queue[s->queued++] = (candidate){at, to, c.value - scale};
            at = node[at].next;
        }
    }
}

// Moves a candidate up from a gap in the heap until its parent is not smaller.
static void sift_up(candidate *heap, int64_t gap, candidate c)
{
    for (; gap > 0 && heap[(gap - 1) / 2].value < c.value; gap = (gap - 1) / 2)
        heap[gap] = heap[(gap - 1) / 2];
    heap[gap] = c;
}

// Moves the gap at the top to the bottom, past the larger children, and the last candidate into it.
static candidate pop(state *s)
{
    candidate *heap = s->queue;
    const candidate top = heap[0], last = heap[--s->queued];
    int64_t gap = 0, child = 2;
    for (; child < s->queued; child = 2 * gap + 2) {
        child -= heap[child].value < heap[child - 1].value;
        heap[gap] = heap[child];
        gap = child;
    }
    if (child == s->queued) {
        heap[gap] = heap[child - 1];
        gap = child - 1;
    }
    if (s->queued)
        sift_up(heap, gap, last);
    return top;
}

// Adds the most frequent children of a node to the heap, ties by ascending token.
static void add_frequent(state *s, int32_t from, int32_t parent, double probability)
{
    const dsc_trie_node *node = s->trie->node;
    const int64_t most = s->in.parameter[MOST_BREADTH], first = s->queued;
    candidate *best = s->queue + first;
    int64_t n = 0;
    for (int32_t x = node[from].child; x >= 0; x = node[x].next) {
        int64_t at = n < most ? n++ : most;
        for (; at > 0; at--) {
            const dsc_trie_node *other = &node[best[at - 1].node];
            if (other->count > node[x].count ||
                (other->count == node[x].count && other->token < node[x].token))
                break;
            if (at < most)
                best[at] = best[at - 1];
        }
        if (at < most)
            best[at] = (candidate){.node = x, .parent = parent};
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += node[best[i].node].count;
    for (int64_t i = 0; i < n; i++) {
        candidate c = best[i]; // the heap grows over best[0, i]
        c.value = node[c.node].count / sum * probability;
        sift_up(s->queue, s->queued++, c);
    }
}

static void add_probable(state *s, int32_t match)
{
    s->queued = 0;
    add_frequent(s, match, 0, 1);
    while (s->queued && s->drafted < s->in.parameter[TOKENS]) {
        const candidate c = pop(s);
        const int32_t to = draft_child(s, c.parent, s->trie->node[c.node].token);
        add_frequent(s, c.node, to, c.value);
    }
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    const int64_t *p = s->in.parameter;
    int rc = DSC_OK;
    keep_recent(s, output, length);
    find_matches(s, s->in.request->prompt.count + length);
    s->draft[0] = (leaf){0};
    s->drafted = 1;
    for (int64_t d = s->matches; d >= 1 && s->drafted < p[TOKENS]; d--) {
        const int32_t match = s->match[d - 1].node;
        if (match < 0 || s->trie->node[match].child < 0)
            continue;
        if (p[MATCH_TYPE] == MATCH_BFS)
            add_latest(s, match, d);
        else
            add_probable(s, match);
    }
    draft->started = s->drafted > 1;
    for (int32_t i = 1; i < s->drafted && !rc; i++)
        rc = dsc_draft_append_chain(draft, s->draft[i].parent - 1, &s->draft[i].token, 1, err);
    return rc;
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    (void)draft;
    const int64_t depth = s->trie->depth, all = (int64_t)verdict->count,
                  added = all < depth ? all : depth;
    int64_t old = s->kept + added > depth ? depth - added : s->kept;
    memmove(s->recent, s->recent + s->kept - old, (size_t)old * sizeof *s->recent);
    memcpy(s->recent + old, verdict->token + all - added, (size_t)added * sizeof *s->recent);
    return dsc_ngram_trie_insert(s->trie, s->recent, old + added, err);
}

const dsc_drafter_type dsc_drafter_ngram_tree = {
    .name = "ngram-tree",
    .synonyms = "sglang-ngram",
    .summary = "tree of continuations in a trie that all requests share (SGLang's NGRAM)",
    .source = "no paper: SGLang's cpp_ngram/trie.cpp",
    .engines = "SGLang NGRAM",
    .recording = "token ids",
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .uses_history = uses_history,
    .prepare = prepare,
    .limit = limit,
    .width = width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};

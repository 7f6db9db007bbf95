// SPDX-License-Identifier: Apache-2.0
// The suffix automaton of a growing text (Blumer et al. 1985), with counts of its strings and edges
// in one hash table.
#include "sim/draft/suffix_index.h"

#include <assert.h>
#include <string.h>

enum { ROOT = 0, NONE = -1, FIRST_CAPACITY = 1024 };

// --- edges ---------------------------------------------------------------------------------------

static size_t slot_of(const dsc_suffix_index *x, int32_t from, int32_t token)
{
    uint64_t hash = ((uint64_t)(uint32_t)from << 32 | (uint32_t)token) * 0x9e3779b97f4a7c15u;
    size_t at = (hash ^ hash >> 32) & x->mask;
    while (x->table[at] >= 0 &&
           (x->edge[x->table[at]].from != from || x->edge[x->table[at]].token != token))
        at = (at + 1) & x->mask;
    return at;
}

static int32_t edge_of(const dsc_suffix_index *x, int32_t from, int32_t token)
{
    return x->table[slot_of(x, from, token)];
}

// Rebuilds the table, which is at most half full.
static int lay_table(dsc_suffix_index *x, dsc_error *err)
{
    size_t slots = 64;
    while (slots < 2 * x->edge_capacity)
        slots *= 2;
    int rc = dsc_arena_new(x->arena, &x->table, slots, err);
    if (rc)
        return rc;
    memset(x->table, 0xff, slots * sizeof *x->table);
    x->mask = slots - 1;
    for (size_t e = 0; e < x->edges; e++)
        x->table[slot_of(x, x->edge[e].from, x->edge[e].token)] = (int32_t)e;
    return DSC_OK;
}

static int add_edge(dsc_suffix_index *x, int32_t from, int32_t token, int32_t to, dsc_error *err)
{
    size_t before = x->edge_capacity;
    int rc = dsc_arena_resize(x->arena, &x->edge, &x->edge_capacity, x->edges + 1, err);
    if (!rc && x->edge_capacity != before)
        rc = lay_table(x, err);
    if (rc)
        return rc;
    int32_t e = (int32_t)x->edges++;
    x->edge[e] = (dsc_suffix_edge){token, from, to, x->state[from].edge};
    x->state[from].edge = e;
    x->table[slot_of(x, from, token)] = e;
    return DSC_OK;
}

// --- states --------------------------------------------------------------------------------------

static int add_state(dsc_suffix_index *x, dsc_suffix_state s, int32_t *out, dsc_error *err)
{
    int rc = dsc_arena_resize(x->arena, &x->state, &x->state_capacity, x->states + 1, err);
    if (rc)
        return rc;
    *out = (int32_t)x->states++;
    x->state[*out] = s;
    return DSC_OK;
}

// Splits the strings of at most `length` tokens off state `from`, which the states from p on along
// the links reach by `token`.
static int split(dsc_suffix_index *x, int32_t p, int32_t token, int32_t from, int32_t length,
                 int32_t *out, dsc_error *err)
{
    dsc_suffix_state s = x->state[from];
    s.length = length;
    s.edge = NONE;
    int rc = add_state(x, s, out, err);
    for (int32_t e = x->state[from].edge; e >= 0 && !rc; e = x->edge[e].next)
        rc = add_edge(x, *out, x->edge[e].token, x->edge[e].to, err);
    for (; p >= 0 && !rc; p = x->state[p].link) {
        int32_t e = edge_of(x, p, token);
        if (x->edge[e].to != from)
            break;
        x->edge[e].to = *out;
    }
    if (!rc)
        x->state[from].link = *out;
    return rc;
}

// Adds the state of the whole text with `token` appended.
static int extend(dsc_suffix_index *x, int32_t token, dsc_error *err)
{
    dsc_suffix_state whole = {(int32_t)x->count + 1, ROOT, NONE, 0, 0};
    int32_t p = x->whole, e = NONE, link = ROOT;
    int rc = add_state(x, whole, &x->whole, err);
    while (!rc && p >= 0 && (e = edge_of(x, p, token)) < 0) {
        rc = add_edge(x, p, token, x->whole, err);
        p = x->state[p].link;
    }
    if (!rc && p >= 0) {
        int32_t length = x->state[p].length + 1;
        link = x->edge[e].to;
        if (x->state[link].length != length)
            rc = split(x, p, token, link, length, &link, err);
    }
    x->state[x->whole].link = link;
    x->count++;
    return rc;
}

// Counts the suffixes that end here. Since the last token, the state `active` may have been split
// and its strings have one token more: its links lead to the right state.
static void count_suffixes(dsc_suffix_index *x, int32_t token)
{
    x->active = x->edge[edge_of(x, x->active, token)].to;
    if (x->length < x->depth)
        x->length++;
    while (x->state[x->state[x->active].link].length >= x->length)
        x->active = x->state[x->active].link;
    for (int32_t s = x->active; s != ROOT; s = x->state[s].link) {
        x->state[s].count++;
        x->state[s].last = (int32_t)x->count;
    }
}

int dsc_suffix_begin(dsc_suffix_index *x, int32_t depth, dsc_arena *arena, dsc_error *err)
{
    assert(depth >= 1);
    *x = (dsc_suffix_index){.depth = depth, .arena = arena};
    int32_t root;
    int rc = dsc_arena_resize(arena, &x->state, &x->state_capacity, FIRST_CAPACITY, err);
    if (!rc)
        rc = dsc_arena_resize(arena, &x->edge, &x->edge_capacity, FIRST_CAPACITY, err);
    if (!rc)
        rc = lay_table(x, err);
    return rc ? rc : add_state(x, (dsc_suffix_state){0, NONE, NONE, 0, 0}, &root, err);
}

int dsc_suffix_append(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err)
{
    if (x->count + n > INT32_MAX / 4) // 2 states and 3 edges a token at most
        return dsc_fail(err, DSC_EINPUT, "prompt and output have more than %d tokens",
                        INT32_MAX / 4);
    int rc = DSC_OK;
    for (int64_t j = 0; j < n && !rc; j++) {
        rc = extend(x, token[j], err);
        if (!rc)
            count_suffixes(x, token[j]);
    }
    return rc;
}

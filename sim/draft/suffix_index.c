// SPDX-License-Identifier: Apache-2.0
// The suffix automaton of growing texts (Blumer et al. 1985), with counts of their strings, edges
// in one hash table, and the edges of a state in the order of their counts.
#include "sim/draft/suffix_index.h"

#include <assert.h>
#include <string.h>

enum { ROOT = 0, NONE = -1, FIRST_CAPACITY = 1024, FIRST_SLOTS = 256 };

// --- edges ---------------------------------------------------------------------------------------

static uint64_t hash_of(int32_t from, int32_t token)
{
    const uint64_t hash = ((uint64_t)(uint32_t)from << 32 | (uint32_t)token) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static int32_t edge_in_table(const dsc_suffix_index *x, int32_t from, int32_t token)
{
    const uint64_t hash = hash_of(from, token);
    for (size_t at = hash & x->mask; x->table[at].edge >= 0; at = (at + 1) & x->mask) {
        const int32_t e = x->table[at].edge;
        if (x->table[at].tag == (uint32_t)(hash >> 32) && x->edge[e].from == from &&
            x->edge[e].token == token)
            return e;
    }
    return NONE;
}

// Most states have no edge or one, which are not in the table. Of several edges the first is the
// most frequent one.
static inline int32_t edge_of(const dsc_suffix_index *x, int32_t from, int32_t token)
{
    const int32_t first = x->state[from].edge;
    if (first < 0 || x->edge[first].token == token)
        return first;
    return x->edge[first].next < 0 ? NONE : edge_in_table(x, from, token);
}

static void write_slot(dsc_suffix_index *x, int32_t e)
{
    const uint64_t hash = hash_of(x->edge[e].from, x->edge[e].token);
    size_t at = hash & x->mask;
    while (x->table[at].edge >= 0)
        at = (at + 1) & x->mask;
    x->table[at] = (dsc_suffix_slot){(uint32_t)(hash >> 32), e};
}

static bool has_several(const dsc_suffix_index *x, int32_t from)
{
    const int32_t first = x->state[from].edge;
    return first >= 0 && x->edge[first].next >= 0;
}

static void fill_table(dsc_suffix_index *x)
{
    memset(x->table, 0xff, (x->mask + 1) * sizeof *x->table); // no edge
    x->entered = 0;
    for (size_t e = 0; e < x->edges; e++)
        if (has_several(x, x->edge[e].from)) {
            write_slot(x, (int32_t)e);
            x->entered++;
        }
}

// As many slots as a table needs that holds all edges.
static size_t slots_for(const dsc_suffix_index *x)
{
    size_t slots = FIRST_SLOTS;
    while (slots < 2 * x->edges)
        slots *= 2;
    return slots < x->mask + 1 ? slots : x->mask + 1;
}

// Makes a table of `slots` slots, a power of two.
static int lay_table(dsc_suffix_index *x, size_t slots, dsc_error *err)
{
    int rc = dsc_arena_resize(x->arena, &x->table, &x->slots, slots, err);
    if (rc)
        return rc;
    x->mask = slots - 1;
    fill_table(x);
    return DSC_OK;
}

// Enters the last edge that was made, which is in the list of its state, and with it the edge that
// was alone before. The table is at most half full.
static int enter_edge(dsc_suffix_index *x, int32_t from, dsc_error *err)
{
    if (!has_several(x, from))
        return DSC_OK;
    if (2 * (x->entered + 2) > x->mask + 1)
        return lay_table(x, 2 * (x->mask + 1), err);
    const int32_t first = x->state[from].edge, last = x->edge[first].prev,
                  made = (int32_t)x->edges - 1;
    if (x->edge[first].next == last) {
        write_slot(x, first == made ? last : first);
        x->entered++;
    }
    write_slot(x, made);
    x->entered++;
    return DSC_OK;
}

// --- the order of a state's edges ----------------------------------------------------------------

static int32_t count_of(const dsc_suffix_index *x, int32_t e)
{
    return x->state[x->edge[e].to].count;
}

// A group of one edge.
static int new_group(dsc_suffix_index *x, int32_t e, dsc_error *err)
{
    int32_t g = x->free_group;
    if (g >= 0) {
        x->free_group = x->head[g];
    } else {
        int rc = dsc_arena_resize(x->arena, &x->head, &x->group_capacity, x->groups + 1, err);
        if (rc)
            return rc;
        g = (int32_t)x->groups++;
    }
    x->head[g] = e;
    x->edge[e].group = g;
    return DSC_OK;
}

static bool is_first(const dsc_suffix_index *x, int32_t e)
{
    return x->state[x->edge[e].from].edge == e;
}

// The edge before e, or -1.
static int32_t edge_before(const dsc_suffix_index *x, int32_t e)
{
    return is_first(x, e) ? NONE : x->edge[e].prev;
}

static void leave_group(dsc_suffix_index *x, int32_t e)
{
    const int32_t g = x->edge[e].group, next = x->edge[e].next;
    if (x->head[g] != e)
        return;
    if (next >= 0 && x->edge[next].group == g) {
        x->head[g] = next;
    } else {
        x->head[g] = x->free_group;
        x->free_group = g;
    }
}

// Joins the group of the neighbors that occur `count` times, or starts one.
static int join_group(dsc_suffix_index *x, int32_t e, int32_t count, dsc_error *err)
{
    const int32_t prev = edge_before(x, e), next = x->edge[e].next;
    if (prev >= 0 && count_of(x, prev) == count) {
        x->edge[e].group = x->edge[prev].group;
    } else if (next >= 0 && count_of(x, next) == count) {
        x->edge[e].group = x->edge[next].group;
        x->head[x->edge[e].group] = e;
    } else {
        return new_group(x, e, err);
    }
    return DSC_OK;
}

static void unlink_edge(dsc_suffix_index *x, int32_t e)
{
    const dsc_suffix_edge *this = &x->edge[e];
    int32_t *first = &x->state[this->from].edge;
    if (this->next >= 0)
        x->edge[this->next].prev = this->prev;
    else
        x->edge[*first].prev = this->prev;
    if (*first == e)
        *first = this->next;
    else
        x->edge[this->prev].next = this->next;
}

// Links e before `other`, an edge of the same state, or last if that is -1.
static void link_edge(dsc_suffix_index *x, int32_t e, int32_t other)
{
    int32_t *first = &x->state[x->edge[e].from].edge;
    x->edge[e].next = other;
    if (*first < 0) {
        x->edge[e].prev = *first = e;
        return;
    }
    const int32_t after = other < 0 ? *first : other, prev = x->edge[after].prev;
    x->edge[e].prev = prev;
    x->edge[after].prev = e;
    if (other == *first)
        *first = e;
    else
        x->edge[prev].next = e;
}

// Where an edge that occurs once goes: before those that no longer occur.
static int32_t end_of_living(const dsc_suffix_index *x, int32_t from)
{
    const int32_t first = x->state[from].edge;
    const int32_t last = first < 0 || !x->removed ? NONE : x->edge[first].prev;
    return last >= 0 && !count_of(x, last) ? x->head[x->edge[last].group] : NONE;
}

// Moves e before `other`, where edges that occur `count` times are.
static int move_edge(dsc_suffix_index *x, int32_t e, int32_t other, int32_t count, dsc_error *err)
{
    leave_group(x, e);
    if (other != e) {
        unlink_edge(x, e);
        link_edge(x, e, other);
    }
    return join_group(x, e, count, err);
}

// e is the first of its group, and its count rises to one that no edge has: it keeps its place.
static int part_from_group(dsc_suffix_index *x, int32_t e, dsc_error *err)
{
    const int32_t next = x->edge[e].next;
    if (next < 0 || x->edge[next].group != x->edge[e].group)
        return DSC_OK;
    x->head[x->edge[e].group] = next;
    return new_group(x, e, err);
}

// The count of e is about to rise.
static int raise_edge(dsc_suffix_index *x, int32_t e, dsc_error *err)
{
    const int32_t count = count_of(x, e), prev = edge_before(x, e);
    if (!count) {
        leave_group(x, e);
        unlink_edge(x, e);
        link_edge(x, e, end_of_living(x, x->edge[e].from));
        return join_group(x, e, 1, err);
    }
    if (prev < 0 || count_of(x, prev) > count + 1)
        return part_from_group(x, e, err);
    return move_edge(x, e, x->head[x->edge[prev].group], count + 1, err);
}

// The count of e is about to fall.
static int lower_edge(dsc_suffix_index *x, int32_t e, dsc_error *err)
{
    const int32_t count = count_of(x, e);
    int32_t other = x->edge[e].next;
    while (other >= 0 && x->edge[other].group == x->edge[e].group)
        other = x->edge[other].next;
    return move_edge(x, e, other == x->edge[e].next ? e : other, count - 1, err);
}

// Adds an edge, which is not in the list of its state yet.
static int make_edge(dsc_suffix_index *x, int32_t from, int32_t token, int32_t to, int32_t *out,
                     dsc_error *err)
{
    int rc = dsc_arena_resize(x->arena, &x->edge, &x->edge_capacity, x->edges + 1, err);
    if (rc)
        return rc;
    *out = (int32_t)x->edges++;
    x->edge[*out] = (dsc_suffix_edge){token, from, to, NONE, NONE, NONE};
    return DSC_OK;
}

// Adds the edge of a continuation that occurs for the first time.
static int add_edge(dsc_suffix_index *x, int32_t from, int32_t token, int32_t to, dsc_error *err)
{
    int32_t e;
    int rc = make_edge(x, from, token, to, &e, err);
    if (rc)
        return rc;
    link_edge(x, e, from == ROOT ? NONE : end_of_living(x, from));
    rc = enter_edge(x, from, err);
    return rc || from == ROOT ? rc : join_group(x, e, 1, err);
}

// Gives a new state the edges of another, in their order.
static int copy_edges(dsc_suffix_index *x, int32_t from, int32_t to, dsc_error *err)
{
    int32_t group = NONE, own = NONE;
    int rc = DSC_OK;
    for (int32_t e = x->state[from].edge; e >= 0 && !rc; e = x->edge[e].next) {
        int32_t copy;
        rc = make_edge(x, to, x->edge[e].token, x->edge[e].to, &copy, err);
        if (rc)
            return rc;
        link_edge(x, copy, NONE);
        rc = enter_edge(x, to, err);
        if (rc)
            return rc;
        if (x->edge[e].group == group) {
            x->edge[copy].group = own;
            continue;
        }
        rc = new_group(x, copy, err);
        group = x->edge[e].group;
        own = x->edge[copy].group;
    }
    return rc;
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
    if (!rc)
        rc = copy_edges(x, from, *out, err);
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

// As extend(), if an earlier text contains the current one with `token` appended.
static int extend_known(dsc_suffix_index *x, int32_t e, int32_t token, dsc_error *err)
{
    const int32_t p = x->whole, length = x->state[p].length + 1;
    x->whole = x->edge[e].to;
    x->count++;
    return x->state[x->whole].length == length
               ? DSC_OK
               : split(x, p, token, x->whole, length, &x->whole, err);
}

// Adds the state of the current text with `token` appended.
static int extend(dsc_suffix_index *x, int32_t token, dsc_error *err)
{
    dsc_suffix_state whole = {x->state[x->whole].length + 1, ROOT, NONE, 0, (int32_t)x->count + 1};
    int32_t p = x->whole, e = edge_of(x, p, token), link = ROOT;
    if (e >= 0)
        return extend_known(x, e, token, err);
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

// Prepares the edges from the suffixes of the last tokens, state `at`, for one more or one less
// occurrence of `token` after them.
static int move_edges(dsc_suffix_index *x, int32_t at, int32_t token, bool rises, dsc_error *err)
{
    int rc = DSC_OK;
    for (int32_t p = at; p != ROOT && !rc; p = x->state[p].link) {
        if (x->state[x->state[p].link].length + 2 > x->depth)
            continue; // a string with a continuation is too long
        const int32_t e = edge_of(x, p, token);
        if (e >= 0)
            rc = rises ? raise_edge(x, e, err) : lower_edge(x, e, err);
    }
    return rc;
}

// Follows `token` from state *at of the last *length tokens. Since the last token, that state may
// have been split and its strings have one token more: its links lead to the right state.
static void follow(const dsc_suffix_index *x, int32_t token, int32_t *at, int32_t *length)
{
    *at = x->edge[edge_of(x, *at, token)].to;
    if (*length < x->depth)
        ++*length;
    while (x->state[x->state[*at].link].length >= *length)
        *at = x->state[*at].link;
}

int dsc_suffix_begin(dsc_suffix_index *x, int32_t depth, dsc_arena *arena, dsc_error *err)
{
    assert(depth >= 1);
    *x = (dsc_suffix_index){.depth = depth, .arena = arena, .free_group = NONE};
    int32_t root;
    int rc = dsc_arena_resize(arena, &x->state, &x->state_capacity, FIRST_CAPACITY, err);
    if (!rc)
        rc = dsc_arena_resize(arena, &x->edge, &x->edge_capacity, FIRST_CAPACITY, err);
    if (!rc)
        rc = add_state(x, (dsc_suffix_state){0, NONE, NONE, 0, 0}, &root, err);
    return rc ? rc : lay_table(x, FIRST_SLOTS, err);
}

void dsc_suffix_next_text(dsc_suffix_index *x)
{
    x->whole = x->active = ROOT;
    x->length = 0;
}

int dsc_suffix_append(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err)
{
    if (x->count + n > INT32_MAX / 4) // 2 states and 3 edges a token at most
        return dsc_fail(err, DSC_EINPUT, "the texts of a suffix index have more than %d tokens",
                        INT32_MAX / 4);
    int rc = DSC_OK;
    for (int64_t j = 0; j < n && !rc; j++) {
        rc = move_edges(x, x->active, token[j], true, err);
        if (!rc)
            rc = extend(x, token[j], err);
        if (rc)
            return rc;
        follow(x, token[j], &x->active, &x->length);
        for (int32_t s = x->active; s != ROOT; s = x->state[s].link)
            x->state[s].count++;
    }
    return rc;
}

int dsc_suffix_remove(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err)
{
    int32_t at = ROOT, length = 0;
    int rc = DSC_OK;
    x->removed = true;
    for (int64_t j = 0; j < n && !rc; j++) {
        rc = move_edges(x, at, token[j], false, err);
        follow(x, token[j], &at, &length);
        for (int32_t s = at; s != ROOT && !rc; s = x->state[s].link)
            x->state[s].count--;
    }
    return rc;
}

// --- compaction ----------------------------------------------------------------------------------
//
// All strings of a state occur at the same positions, so that all of them are dropped or none. The
// states that are kept are not merged, although some may now have the same positions: their edges
// may have had different histories.

// Marks the states of all strings of a text.
static void mark_text(const dsc_suffix_index *x, const int32_t *token, int64_t n)
{
    int32_t at = ROOT;
    for (int64_t j = 0; j < n; j++) {
        at = x->edge[edge_of(x, at, token[j])].to;
        for (int32_t s = at; x->place[s] < 0; s = x->state[s].link)
            x->place[s] = 0;
    }
}

// Numbers the states that are kept.
static int place_states(dsc_suffix_index *x, const int32_t *token, const int64_t *start,
                        size_t texts, dsc_error *err)
{
    int32_t n = 0;
    int rc = dsc_arena_resize(x->arena, &x->place, &x->place_capacity, x->states, err);
    if (rc)
        return rc;
    memset(x->place, 0xff, x->states * sizeof *x->place); // dropped
    x->place[ROOT] = 0;
    for (size_t i = 0; i < texts; i++)
        mark_text(x, token + start[i], start[i + 1] - start[i]);
    for (size_t s = 0; s < x->states; s++)
        if (x->place[s] >= 0)
            x->place[s] = n++;
    return DSC_OK;
}

// Writes the edges that are kept of one state, whose old edges begin with `e`.
static int keep_edges(dsc_suffix_index *x, int32_t from, const dsc_suffix_edge *old, int32_t e,
                      dsc_error *err)
{
    int32_t group = NONE;
    int rc = DSC_OK;
    x->state[from].edge = NONE;
    for (; e >= 0 && !rc; e = old[e].next) {
        if (x->place[old[e].to] < 0)
            continue;
        const int32_t made = (int32_t)x->edges++;
        x->edge[made] =
            (dsc_suffix_edge){old[e].token, from, x->place[old[e].to], NONE, NONE, NONE};
        link_edge(x, made, NONE);
        if (from == ROOT)
            continue;
        if (old[e].group == group)
            x->edge[made].group = x->edge[made - 1].group;
        else
            rc = new_group(x, made, err);
        group = old[e].group;
    }
    return rc;
}

int dsc_suffix_compact(dsc_suffix_index *x, const int32_t *token, const int64_t *start,
                       size_t texts, dsc_error *err)
{
    dsc_suffix_edge *old = x->edge;
    const size_t capacity = x->edge_capacity;
    size_t kept = 0;
    int rc = place_states(x, token, start, texts, err);
    if (!rc)
        rc = dsc_arena_resize(x->arena, &x->room, &x->room_capacity, capacity, err);
    if (rc)
        return rc;
    x->edge = x->room;
    x->edge_capacity = x->room_capacity;
    x->edges = x->groups = 0;
    x->free_group = NONE;
    for (size_t s = 0; s < x->states && !rc; s++) {
        const dsc_suffix_state was = x->state[s];
        if (x->place[s] < 0)
            continue;
        x->state[kept] = was; // at s or before it
        x->state[kept].link = was.link < 0 ? NONE : x->place[was.link];
        rc = keep_edges(x, (int32_t)kept++, old, was.edge, err);
    }
    x->room = old;
    x->room_capacity = capacity;
    x->states = kept;
    x->count = texts ? start[texts] - start[0] : 0;
    x->removed = false;
    dsc_suffix_next_text(x);
    return rc ? rc : lay_table(x, slots_for(x), err);
}

int32_t dsc_suffix_find(const dsc_suffix_index *x, const int32_t *token, int64_t n, int32_t *length)
{
    int32_t at = ROOT;
    *length = 0;
    for (int64_t j = 0; j < n; j++) {
        int32_t e;
        while ((e = edge_of(x, at, token[j]), e < 0 || !count_of(x, e)) && at != ROOT) {
            at = x->state[at].link;
            *length = x->state[at].length;
        }
        if (e < 0 || !count_of(x, e))
            continue;
        at = x->edge[e].to;
        ++*length;
    }
    return at;
}

int32_t dsc_suffix_last(const dsc_suffix_index *x, int32_t n, int32_t *length)
{
    int32_t at = x->active;
    *length = n > 0 ? n : 0;
    while (at != ROOT && x->state[x->state[at].link].length >= n)
        at = x->state[at].link;
    return at;
}

// The link of the state of the whole text is the one of its longest suffix that also ends
// elsewhere.
int32_t dsc_suffix_repeated(const dsc_suffix_index *x, int32_t *length)
{
    const int32_t link = x->whole == ROOT ? ROOT : x->state[x->whole].link;
    *length = x->state[link].length;
    return x->state[link].end;
}

// SPDX-License-Identifier: Apache-2.0
// Draft/target overlap (theory/rows/overlap.h) computed on the device that both models run on. One
// comparison serves all positions of a draft; its masses by ratio slot are copied to the host. A
// ratio within a slot is answered exactly from the slot's tokens, which are listed on demand.
#include "live/session/session_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_WORDS = DSC_RATIO_SLOTS / WORD };

struct live_overlaps {
    dsc_overlap base;
    live_session *target;

    // The draft that was compared, while target->compared. Nodes with the same text share a
    // position; a position with candidates has a pair of distributions.
    bool drawn;
    int64_t nodes, pairs;
    int32_t *position;      // [1 + nodes] position of node i - 1
    int32_t *parent, *last; // [1 + nodes] per position: its parent and its last token
    int32_t *pair;          // [1 + nodes] per position: index of the pair, or -1
    live_dists *dists;      // [pairs]
    live_mass_query *query; // [nodes] the token of each node at its parent's position
    dsc_mass *mass;         // [nodes] its masses, in pinned host memory
    live_masses *masses;    // [pairs] in pinned host memory

    // The current pair: tokens of the slots that were listed, slot by slot.
    int64_t current; // -1: none
    dsc_mass upto[DSC_RATIO_SLOTS + 1];
    uint64_t listed[SLOT_WORDS], wanted[SLOT_WORDS];
    bool estimates;                  // between prepare and look_up
    uint32_t begin[DSC_RATIO_SLOTS]; // of listed slots
    dsc_mass *found;                 // [vocab] in pinned host memory
    dsc_mass *token;                 // [vocab]
    uint32_t tokens;
    live_residual_sample *sample; // in pinned host memory
};

static bool has(const uint64_t *set, int slot)
{
    return set[slot / WORD] >> slot % WORD & 1;
}

static void add(uint64_t *set, int slot)
{
    set[slot / WORD] |= (uint64_t)1 << slot % WORD;
}

void live_overlaps_free(live_overlaps *m, live_backend *b)
{
    if (!m)
        return;
    void *const pinned[] = {m->mass, m->masses, m->found, m->sample};
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        b->type->memory.free_host(b, pinned[i]);
    free(m);
}

static int overlaps_new(live_session *s, dsc_error *err)
{
    const size_t room = (size_t)s->nodes + 2, vocab = (size_t)s->w->config.vocab;
    live_overlaps *m;
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    m->target = s;
    const struct {
        void *out;
        size_t count, size;
        bool pinned;
    } want[] = {{&m->position, room, sizeof *m->position, false},
                {&m->parent, room, sizeof *m->parent, false},
                {&m->last, room, sizeof *m->last, false},
                {&m->pair, room, sizeof *m->pair, false},
                {&m->dists, room, sizeof *m->dists, false},
                {&m->query, room, sizeof *m->query, false},
                {&m->token, vocab, sizeof *m->token, false},
                {&m->mass, room, sizeof *m->mass, true},
                {&m->masses, room, sizeof *m->masses, true},
                {&m->found, vocab, sizeof *m->found, true},
                {&m->sample, 1, sizeof *m->sample, true}};
    for (size_t i = 0; i < sizeof want / sizeof *want && !rc; i++)
        rc = want[i].pinned
                 ? s->b->type->memory.alloc_host(s->b, want[i].out, want[i].count * want[i].size,
                                                 err)
                 : dsc_arena_alloc(&s->arena, want[i].out, want[i].count, want[i].size, err);
    if (rc)
        live_overlaps_free(m, s->b);
    else
        s->overlaps = m;
    return rc;
}

// --- the draft -----------------------------------------------------------------------------------

// Returns the position of a text that continues that of `parent`, creating it if there is none.
static int32_t position_of(live_overlaps *m, int32_t *positions, int32_t parent, int32_t token)
{
    int32_t i = 1;
    while (i < *positions && !(m->parent[i] == parent && m->last[i] == token))
        i++;
    if (i == *positions) {
        m->parent[i] = parent;
        m->last[i] = token;
        m->pair[i] = -1;
        (*positions)++;
    }
    return i;
}

static live_dist_row dist_row(const dsc_softmax *s, const float *logits)
{
    return (live_dist_row){logits, s->most, s->by, 1 / s->sum, {s->least, (int32_t)s->last}};
}

// Adds the pair of distributions after a node; `draft` is NULL if nothing was sampled.
static int add_pair(live_overlaps *m, live_session *draft, int32_t node, dsc_error *err)
{
    const dsc_softmax *dist;
    const float *logits;
    live_dists *l = &m->dists[m->pairs];
    *l = (live_dists){.draft = {.logits = NULL}};
    int rc = live_session_softmax(m->target, node, &dist, &logits, err);
    if (!rc)
        l->target = dist_row(dist, logits);
    if (!rc && draft) {
        rc = live_session_softmax(draft, node, &dist, &logits, err);
        l->draft = rc ? l->draft : dist_row(dist, logits);
    }
    m->pairs += !rc;
    return rc;
}

static int compare(live_overlaps *m, live_session *draft, const dsc_draft *d, dsc_error *err)
{
    live_backend *b = m->target->b;
    int32_t positions = 1;
    int rc = DSC_OK;
    m->nodes = (int64_t)d->proposed;
    m->pairs = 0;
    m->current = -1;
    m->drawn = draft != NULL;
    m->position[0] = 0;
    m->pair[0] = -1;
    for (int32_t i = 0; i < (int32_t)m->nodes && !rc; i++) {
        const int32_t parent = m->position[d->parent[i] + 1];
        m->position[i + 1] = position_of(m, &positions, parent, d->token[i]);
        if (m->pair[parent] < 0) {
            m->pair[parent] = (int32_t)m->pairs;
            rc = add_pair(m, draft, d->parent[i], err);
        }
        m->query[i] = (live_mass_query){d->token[i], m->pair[parent]};
    }
    const live_comparison comparison = {m->dists, m->pairs, draft ? m->masses : NULL,
                                        m->query, m->mass,  m->nodes};
    if (!rc && draft && draft->b != b) // its rows may still be on their way to their buffers
        rc = draft->b->type->pass.wait(draft->b, err);
    if (!rc)
        rc = b->type->dist.compare(b, &comparison, m->target->w->config.vocab, err);
    if (!rc)
        rc = b->type->pass.wait(b, err);
    m->target->compared = !rc;
    return rc;
}

// --- a pair --------------------------------------------------------------------------------------

static void choose_pair(live_overlaps *m, int64_t pair)
{
    const live_masses *l = &m->masses[pair];
    uint64_t draft = 0, target = 0;
    m->current = pair;
    m->estimates = false;
    m->tokens = 0;
    memset(m->listed, 0, sizeof m->listed);
    memset(m->wanted, 0, sizeof m->wanted);
    m->upto[0] = (dsc_mass){0, 0};
    for (int s = 0; s < DSC_RATIO_SLOTS && m->drawn; s++) {
        draft += l->draft[s];
        target += l->target[s];
        m->upto[s + 1] = (dsc_mass){dsc_mass_of(draft), dsc_mass_of(target)};
    }
}

// Lists the tokens of the wanted slots, sorted by slot.
static void look_up(dsc_overlap *base)
{
    live_overlaps *m = (live_overlaps *)base;
    const live_masses *l = &m->masses[m->current];
    live_backend *b = m->target->b;
    dsc_error err;
    uint32_t count = 0, end[DSC_RATIO_SLOTS];
    m->estimates = false;
    for (int s = 0; s < DSC_RATIO_SLOTS; s++) {
        if (!has(m->wanted, s))
            continue;
        m->begin[s] = end[s] = m->tokens + count;
        count += l->count[s];
        add(m->listed, s);
    }
    int rc = !count ? DSC_OK
                    : b->type->dist.list(b, m->found, &m->dists[m->current], m->wanted, count,
                                         (int64_t)base->vocab, &err);
    if (!rc && count)
        rc = b->type->pass.wait(b, &err);
    for (uint32_t i = 0; i < count && !rc; i++) {
        const int s = dsc_ratio_slot_of(m->found[i].draft, m->found[i].target);
        if (!has(m->wanted, s) || end[s] == m->begin[s] + l->count[s])
            rc = dsc_fail(&err, DSC_ECHECK, "%s: the tokens of a ratio slot have changed",
                          b->device);
        else
            m->token[end[s]++] = m->found[i];
    }
    if (rc)
        memset(m->token + m->tokens, 0, count * sizeof *m->token);
    m->tokens += count;
    memset(m->wanted, 0, sizeof m->wanted);
    live_session_defer(m->target, rc, &err);
}

static void prepare(dsc_overlap *base, int questions)
{
    (void)questions;
    ((live_overlaps *)base)->estimates = true;
}

// Masses of a listed slot's tokens with target <= at draft, summed in units.
static dsc_mass below_in(const live_overlaps *m, int slot, double at)
{
    const dsc_mass *token = m->token + m->begin[slot];
    uint64_t draft = 0, target = 0;
    for (uint32_t i = 0; i < m->masses[m->current].count[slot]; i++) {
        const bool in = token[i].target <= at * token[i].draft;
        draft += in ? dsc_mass_units(token[i].draft) : 0;
        target += in ? dsc_mass_units(token[i].target) : 0;
    }
    return (dsc_mass){dsc_mass_of(draft), dsc_mass_of(target)};
}

// Interpolates as if the tokens were evenly spread over the slot.
static dsc_mass estimate_in(const live_overlaps *m, int slot, double at)
{
    const double low = slot > 1 ? dsc_ratio_slot_begin(slot) : 0;
    const double high = slot + 1 < DSC_RATIO_SLOTS ? dsc_ratio_slot_begin(slot + 1) : 2 * low;
    const double share = fmin((at - low) / (high - low), 1);
    const dsc_mass *upto = &m->upto[slot];
    return (dsc_mass){share * (upto[1].draft - upto[0].draft),
                      share * (upto[1].target - upto[0].target)};
}

static dsc_mass overlap_below(dsc_overlap *base, double at)
{
    live_overlaps *m = (live_overlaps *)base;
    if (!(at > 0))
        return m->upto[1];
    const int slot = dsc_ratio_slot(at);
    if (!has(m->listed, slot)) {
        add(m->wanted, slot);
        if (!m->estimates)
            look_up(base);
    }
    const dsc_mass in = has(m->listed, slot) ? below_in(m, slot, at) : estimate_in(m, slot, at);
    return (dsc_mass){m->upto[slot].draft + in.draft, m->upto[slot].target + in.target};
}

static double residual(dsc_overlap *base, const dsc_residual *r, double u, int32_t *token)
{
    live_overlaps *m = (live_overlaps *)base;
    live_backend *b = m->target->b;
    dsc_error err;
    int rc = b->type->dist.sample_residual(b, m->sample, &m->dists[m->current], r, u,
                                           (int64_t)base->vocab, &err);
    if (!rc)
        rc = b->type->pass.wait(b, &err);
    live_session_defer(m->target, rc, &err);
    if (!rc && token && m->sample->sum > 0)
        *token = m->sample->token;
    return rc ? 0 : m->sample->sum;
}

static const dsc_overlap_type type = {overlap_below, prepare, look_up, residual};

// --- the model's answer --------------------------------------------------------------------------

// Whether the distributions can be compared on the device.
static bool can_overlap(const live_session *s, const live_session *draft)
{
    if (s->b->on_host || !(s->sampling.temperature > 0))
        return false;
    return !draft || (draft->sampling.temperature > 0 && !strcmp(draft->b->device, s->b->device) &&
                      draft->w->config.vocab == s->w->config.vocab);
}

int live_session_overlap(dsc_model *model, dsc_overlap_query *q, dsc_error *err)
{
    live_session *s = (live_session *)model;
    live_session *draft = (live_session *)q->draft_model;
    q->overlap = NULL;
    if (!q->count || q->count > LIVE_OWN || (draft && draft->base.type != model->type) ||
        !can_overlap(s, draft))
        return DSC_OK;
    int rc = s->overlaps ? DSC_OK : overlaps_new(s, err);
    live_overlaps *m = s->overlaps;
    if (!rc && (!s->compared || m->drawn != (draft != NULL)))
        rc = compare(m, draft, q->draft, err);
    if (rc)
        return rc;
    const int32_t pair = m->pair[m->position[q->node + 1]];
    for (size_t c = 0; c < q->count; c++) {
        int64_t i = 0;
        while (i < m->nodes && !(m->query[i].dists == pair && m->query[i].token == q->token[c]))
            i++;
        if (i == m->nodes)
            return dsc_fail(err, DSC_ECHECK, "token %d is not a candidate after node %d",
                            (int)q->token[c], (int)q->node);
        q->target_of[c] = m->mass[i].target;
        if (draft)
            q->draft_of[c] = m->mass[i].draft;
    }
    choose_pair(m, pair);
    m->base = (dsc_overlap){&type, (size_t)s->w->config.vocab};
    q->overlap = &m->base;
    return DSC_OK;
}

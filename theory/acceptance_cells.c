// SPDX-License-Identifier: Apache-2.0
// Cells of the ratio target/draft; theory/acceptance_cells.h.
//
// Where a cell begins. The fp32 quotient rounds to nearest, so it is at or above the float e
// exactly when the true ratio is above the middle between e and the float before it (or equal to
// it, which cannot matter: that ratio is the boundary itself). floor[] holds these middles, exact
// in double: the cells know the true ratios, without any error of rounding.
#include "theory/acceptance_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double float_of(int64_t bits)
{
    float x;
    uint32_t b = (uint32_t)bits;
    memcpy(&x, &b, sizeof x);
    return x;
}

static int64_t bits_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static double threshold(int64_t bits)
{
    return bits <= 0 ? 0 : (float_of(bits) + float_of(bits - 1)) / 2;
}

int dsc_cells_init(dsc_cells *c, dsc_error *err)
{
    *c = (dsc_cells){0};
    int rc = dsc_new(&c->above, DSC_PLACES, err);
    if (!rc)
        rc = dsc_new(&c->floor, DSC_PLACES, err);
    if (!rc)
        rc = dsc_new(&c->child, DSC_PLACES, err);
    if (!rc)
        rc = dsc_new(&c->node, DSC_NODES + 1, err);
    if (rc)
        dsc_cells_fini(c);
    return rc;
}

void dsc_cells_fini(dsc_cells *c)
{
    free(c->above);
    free(c->floor);
    free(c->child);
    free(c->node);
    free(c->slot);
    free(c->found);
    free(c->token);
    *c = (dsc_cells){0};
}

int dsc_cells_reserve(dsc_cells *c, size_t vocab, dsc_error *err)
{
    if (vocab <= c->vocab_capacity)
        return DSC_OK;
    free(c->slot);
    free(c->found);
    c->found = NULL;
    c->vocab_capacity = 0;
    int rc = dsc_new(&c->slot, vocab, err);
    if (!rc)
        rc = dsc_new(&c->found, vocab, err);
    if (!rc)
        c->vocab_capacity = vocab;
    return rc;
}

// Node 0: the bottom cell, which ends where the inner cells begin, then those, then the top.
static void lay_out_slots(dsc_cells *c, int64_t lowest)
{
    c->node[0] = (dsc_node){.first = lowest - (1 << DSC_CELL_SHIFT),
                            .shift = DSC_CELL_SHIFT,
                            .at = DSC_BOTTOM,
                            .count = DSC_INNER_CELLS + 2};
    c->floor[DSC_BOTTOM] = 0;
    for (int i = 0; i <= DSC_INNER_CELLS; i++)
        c->floor[DSC_SINKS + i] = threshold(lowest + ((int64_t)i << DSC_CELL_SHIFT));
    c->floor[DSC_TOP + 1] = INFINITY;
}

void dsc_cells_reset(dsc_cells *c, int octave)
{
    int64_t lowest = (int64_t)(127 + DSC_LOWEST_OCTAVE + octave) << 23;
    if (c->node[0].first != lowest - (1 << DSC_CELL_SHIFT))
        lay_out_slots(c, lowest);
    memset(c->above, 0, DSC_SLOTS * sizeof *c->above);
    if (c->nodes)
        memset(c->child, 0, DSC_PLACES * sizeof *c->child);
    c->nodes = c->tokens = 0;
}

static int check_row(const char *what, const float *row, size_t begin, size_t n, dsc_error *err)
{
    for (size_t x = 0; x < n; x++)
        if (!isfinite(row[x]) || row[x] < 0)
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is %s (%g)", what, begin + x,
                            isfinite(row[x]) ? "negative" : "not finite", (double)row[x]);
    return DSC_OK;
}

int dsc_cells_check(const float *draft, const float *target, size_t begin, size_t n, dsc_error *err)
{
    int rc = check_row("draft", draft, begin, n, err);
    return rc ? rc : check_row("target", target, begin, n, err);
}

static inline void add(dsc_mass *to, dsc_mass m)
{
    to->draft += m.draft;
    to->target += m.target;
}

// Suffix sums of [DSC_BOTTOM, DSC_TOP], four parts at a time: an addition waits for the one before
// it in its part.
static void sum_from_above(dsc_mass *above)
{
    enum { PARTS = 4, CELLS = DSC_INNER_CELLS / PARTS };
    dsc_mass total[PARTS + 1] = {{0, 0}}, *part = above + DSC_SINKS;
    for (int i = 0; i < CELLS; i++)
        for (int p = 0; p < PARTS; p++)
            add(&total[p], part[p * CELLS + i]);
    total[PARTS] = above[DSC_TOP];
    for (int p = PARTS; p-- > 0;)
        add(&total[p], total[p + 1]);
    for (int i = CELLS; i-- > 0;)
        for (int p = 0; p < PARTS; p++) {
            add(&total[p + 1], part[p * CELLS + i]);
            part[p * CELLS + i] = total[p + 1];
        }
    add(&above[DSC_BOTTOM], above[DSC_SINKS]);
}

void dsc_cells_close(dsc_cells *c)
{
    for (int i = 0; i < DSC_SINKS - 1; i++) {
        add(&c->above[DSC_BOTTOM], c->above[i]);
        add(&c->above[DSC_TOP], c->above[DSC_TOP + 1 + i]);
    }
    c->above[DSC_TOP + 1] = (dsc_mass){0, 0};
    sum_from_above(c->above);
    c->draft_sum = c->above[DSC_BOTTOM].draft;
    c->target_sum = c->above[DSC_BOTTOM].target;
}

static size_t find_in(const dsc_cells *c, const dsc_node *n, double x)
{
    int64_t guess = (bits_of((float)x) - n->first) >> n->shift;
    int64_t last = (int64_t)n->count - 1;
    size_t i = n->at + (size_t)(guess < 0 ? 0 : guess > last ? last : guess);
    while (i > n->at && x < c->floor[i])
        i--;
    while (i < n->at + (size_t)last && x >= c->floor[i + 1])
        i++;
    return i;
}

size_t dsc_cells_find(const dsc_cells *c, double x)
{
    size_t i = find_in(c, &c->node[0], x);
    while (c->child[i])
        i = find_in(c, &c->node[c->child[i]], x);
    return i;
}

// The node cell i belongs to.
static const dsc_node *node_of(const dsc_cells *c, size_t i)
{
    return &c->node[i < DSC_SLOTS ? 0 : (i - DSC_SLOTS) / (DSC_FAN + 1) + 1];
}

// Makes the cells of cell i, still empty. false: there is no room, or nothing to split.
static bool make_node(dsc_cells *c, size_t i)
{
    const dsc_node *parent = node_of(c, i);
    int64_t first = parent->first + ((int64_t)(i - parent->at) << parent->shift);
    int64_t end = first + ((int64_t)1 << parent->shift);
    if (i == DSC_BOTTOM)
        first = 0;
    if (c->nodes == DSC_NODES || end - first <= 1 || i == DSC_TOP)
        return false;
    dsc_node n = {.first = first, .at = (uint32_t)(DSC_SLOTS + c->nodes * (DSC_FAN + 1))};
    while ((end - first) >> n.shift > DSC_FAN)
        n.shift++;
    n.count = (uint32_t)((end - first + ((int64_t)1 << n.shift) - 1) >> n.shift);
    for (uint32_t j = 0; j < n.count; j++) {
        c->floor[n.at + j] = threshold(first + ((int64_t)j << n.shift));
        c->above[n.at + j] = (dsc_mass){0, 0};
    }
    c->floor[n.at + n.count] = c->floor[i + 1];
    c->above[n.at + n.count] = c->above[i + 1];
    c->node[++c->nodes] = n;
    c->child[i] = (uint16_t)c->nodes;
    return true;
}

// Adds to c->token the tokens whose slots are among the cells to split.
static int collect(dsc_cells *c, const dsc_rows_kernel *kernel, const float *draft,
                   const float *target, size_t vocab, const uint32_t *cell, size_t count,
                   dsc_error *err)
{
    uint16_t wanted[DSC_NODES + DSC_SINKS];
    size_t slots = 0;
    for (size_t i = 0; i < count; i++)
        if (cell[i] < DSC_SLOTS)
            wanted[slots++] = (uint16_t)cell[i];
    for (size_t i = 0; i < count; i++)
        for (uint16_t part = 0; cell[i] == DSC_BOTTOM && part < DSC_BOTTOM; part++)
            wanted[slots++] = part;
    if (!slots)
        return DSC_OK;
    size_t n = kernel->select(c->slot, vocab, wanted, slots, c->found);
    int rc = dsc_resize(&c->token, &c->token_capacity, c->tokens + n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        float d = fabsf(draft[c->found[i]]), t = fabsf(target[c->found[i]]);
        if (d > 0 || t > 0)
            c->token[c->tokens++] = (dsc_token){d, t, t / d};
    }
    return rc;
}

// Adds a token to the one cell on its way down that is new.
static void place(dsc_cells *c, const dsc_token *t, size_t old_nodes)
{
    const dsc_node *n = &c->node[0];
    int64_t bits = bits_of(t->ratio);
    size_t i = bits < n->first ? DSC_BOTTOM : n->at + (size_t)((bits - n->first) >> n->shift);
    while (c->child[i]) {
        n = &c->node[c->child[i]];
        i = n->at + (size_t)((bits - n->first) >> n->shift);
        if (n > c->node + old_nodes)
            add(&c->above[i], (dsc_mass){t->draft, t->target});
    }
}

int dsc_cells_split(dsc_cells *c, const dsc_rows_kernel *kernel, const float *draft,
                    const float *target, size_t vocab, const uint32_t *cell, size_t count,
                    bool *done, dsc_error *err)
{
    size_t old_nodes = c->nodes;
    *done = c->nodes + count <= DSC_NODES;
    for (size_t i = 0; i < count && *done; i++)
        *done = make_node(c, cell[i]);
    int rc = *done ? collect(c, kernel, draft, target, vocab, cell, count, err) : DSC_OK;
    if (rc || !*done)
        return rc;
    for (size_t i = 0; i < c->tokens; i++)
        place(c, &c->token[i], old_nodes);
    for (size_t k = old_nodes + 1; k <= c->nodes; k++)
        for (size_t i = c->node[k].at + c->node[k].count; i-- > c->node[k].at;)
            add(&c->above[i], c->above[i + 1]);
    return DSC_OK;
}

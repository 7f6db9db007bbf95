// SPDX-License-Identifier: Apache-2.0
// Draws a draft tree from the root on the left: a column per depth, a row per leaf, with the best
// candidate of each node in the same row. Each node is labeled with the probability that it is
// accepted, which also determines the size of its point; their sum is the expected number of tokens
// per target call.
#include "plots/draw/select.h"
#include "plots/draw/style.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1024 };

typedef struct node {
    int64_t id, parent_id, rank;
    size_t parent;   // index; the root is its own parent
    size_t depth;    // below the root
    size_t row;      // from the top
    size_t last_row; // row of its last child; its own row without children
    bool children;   // has any
    double probability;
} node;

typedef struct tree {
    node *node; // a parent before its children, children of a node in order of rank
    size_t nodes, rows, depth;
    double expected;
} tree;

// --- reading -------------------------------------------------------------------------------

static int by_depth_and_rank(const void *pa, const void *pb)
{
    const node *a = pa, *b = pb;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id); // a total order, independent of qsort
}

// Finds the parent of each node among the nodes before it.
static void link_nodes(dsc_plot *p, tree *t)
{
    for (size_t i = 0; i < t->nodes; i++) {
        node *n = &t->node[i];
        size_t j = 0;
        while (j < i && t->node[j].id != n->parent_id)
            j++;
        bool root = i == 0 && n->depth == 0;
        if (!root && (j == i || t->node[j].depth + 1 != n->depth))
            dsc_refuse(p, "tree: node %lld has no parent in the table", (long long)n->id);
        for (size_t k = 0; k < i; k++)
            if (t->node[k].id == n->id)
                dsc_refuse(p, "tree: two rows have node %lld", (long long)n->id);
        n->parent = root ? 0 : j;
        t->node[n->parent].children |= !root;
        t->depth = n->depth;
        t->expected += n->probability;
    }
}

// Assigns rows in depth-first order: the first child of a node shares its row, further ones start
// new rows.
static void place(tree *t, size_t i)
{
    bool first = true;
    t->node[i].row = t->node[i].last_row = t->rows;
    for (size_t j = i + 1; j < t->nodes; j++) {
        if (t->node[j].parent != i)
            continue;
        t->rows += !first;
        first = false;
        t->node[i].last_row = t->rows;
        place(t, j);
    }
}

static void read_node(dsc_plot *p, node *n, size_t row, const int *column)
{
    double v[5]; // node parent depth rank probability
    for (int c = 0; c < 5; c++)
        v[c] = dsc_table_real(p->table, row, (size_t)column[c]);
    bool whole = v[2] >= 0 && v[2] <= MOST_NODES;
    for (int c = 0; c < 4; c++)
        whole = whole && fabs(v[c]) < 1e9 && v[c] == floor(v[c]); // false for NaN
    if (!whole || !(v[4] >= 0 && v[4] <= 1))
        dsc_refuse(p,
                   "tree: row %zu is invalid: node, parent, depth and rank must be small "
                   "integers, and probability in [0, 1]",
                   row + 1);
    else
        *n = (node){.id = (int64_t)v[0],
                    .parent_id = (int64_t)v[1],
                    .rank = (int64_t)v[3],
                    .depth = (size_t)v[2],
                    .probability = v[4]};
}

static void read_tree(dsc_plot *p, tree *t)
{
    int column[5];
    dsc_need_columns(p, p->needs, column);
    dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    if (s.rows > MOST_NODES)
        dsc_refuse(p, "tree: the table has %zu nodes and the figure shows at most %d", s.rows,
                   MOST_NODES);
    t->node = dsc_plot_new(p, node, s.rows);
    for (size_t i = 0; i < s.rows && !p->rc; i++)
        read_node(p, &t->node[i], s.row[i], column);
    if (p->rc)
        return;
    t->nodes = s.rows;
    qsort(t->node, t->nodes, sizeof *t->node, by_depth_and_rank);
    link_nodes(p, t);
    if (!p->rc)
        place(t, 0);
    t->rows++;
}

// --- drawing -------------------------------------------------------------------------------

// Formats a probability in at most `characters`: "0.600", ".60" or nothing. A positive number that
// would round to zero is "<.001" or "<.01".
static const char *number(double p, int characters, char text[16])
{
    text[0] = '\0';
    if (characters >= 5 && p > 0 && p < 0.0005)
        snprintf(text, 16, "<.001");
    else if (characters >= 5)
        snprintf(text, 16, "%.3f", p);
    else if (characters >= 3 && p > 0 && p < 0.005)
        snprintf(text, 16, "<.01");
    else if (characters >= 3 && p >= 0.995)
        snprintf(text, 16, "1.0");
    else if (characters >= 3)
        snprintf(text, 16, ".%02d", (int)lround(100 * p));
    return text;
}

typedef struct layout {
    double left, top, column, pitch; // the root's point; distances of columns and rows
    double text;                     // width of a number
    int characters;                  // length of a number: 5, 3 or 0
} layout;

#define DIGIT (0.64 * DSC_FONT_CELL) // width of a character of a number

enum { POINT = 8, GAP = 3, TRUNK = 9 }; // space right of a point, around a number, left of a point

static void put_line(dsc_writer *w, const dsc_canvas *c, double x1, double y1, double x2, double y2)
{
    dsc_put(w, "set arrow from");
    dsc_put_at(w, c, x1, y1);
    dsc_put(w, " to");
    dsc_put_at(w, c, x2, y2);
    dsc_put(w, " nohead lt 1 lw 1 lc rgb '#8a8a8a'\n");
}

static void put_node(dsc_plot *p, const dsc_canvas *c, const tree *t, const layout *l, size_t i)
{
    dsc_writer *w = &p->script;
    const node *n = &t->node[i];
    char text[16];
    double x = l->left + (double)n->depth * l->column, y = l->top + (double)n->row * l->pitch;
    double trunk = x + l->column - TRUNK;
    number(n->probability, l->characters, text);
    if (n->children) { // the line begins after the number, in one column if possible
        double width = fmax(l->text, DIGIT * (double)strlen(text));
        double from = x + (l->characters ? POINT + width + GAP : 3);
        put_line(w, c, from, y, x + l->column - 3, y);
        if (n->last_row > n->row)
            put_line(w, c, trunk, y, trunk, l->top + (double)n->last_row * l->pitch);
    }
    if (i && n->row != t->node[n->parent].row)
        put_line(w, c, x - TRUNK, y, x - 3, y);
    dsc_put(w, "set label '' at");
    dsc_put_at(w, c, x, y);
    dsc_put(w, " point lt 1 lc rgb '%s' pt 7 ps %.3g\n", dsc_style_color(0),
            0.35 + 0.75 * sqrt(n->probability));
    dsc_mark(p, x, y, dsc_text(p, "node %lld", (long long)n->id),
             "depth %zu, candidate %lld: accepted with probability %.4g", n->depth,
             (long long)n->rank, n->probability);
    if (!*text)
        return;
    dsc_put(w, "set label '%s' at", text);
    dsc_put_at(w, c, x + POINT, y);
    dsc_put(w, " left noenhanced font ',%d' textcolor rgb '" DSC_INK "'\n", DSC_FONT_CELL);
}

static void put_columns(dsc_writer *w, const dsc_canvas *c, const tree *t, const layout *l,
                        double y)
{
    size_t stride = 1;
    while ((double)stride * l->column < 3 * c->char_width)
        stride++;
    for (size_t d = 0; d <= t->depth; d += stride) {
        dsc_put(w, "set label '%zu' at", d);
        dsc_put_at(w, c, l->left + (double)d * l->column, y + c->line_height / 2);
        dsc_put(w, " center font ',%d' textcolor rgb '" DSC_INK "'\n", DSC_FONT_SMALL);
    }
}

// Draws the tree; numbers have as many digits as fit, or are left out.
static void put_graph(dsc_plot *p, const dsc_canvas *c, const tree *t, const char *title,
                      const char *subtitle)
{
    dsc_writer *w = &p->script;
    enum { MARGIN = 12 };
    double room = c->width - 2 * MARGIN - 6;
    layout l = {.left = MARGIN + 6};
    dsc_put_terminal(w, c, "tree");
    double y = dsc_put_heading(w, c, title, subtitle, NULL, NULL, 0) + 6;
    y += dsc_put_paragraph(w, c, MARGIN, y, room, DSC_FONT_SMALL, DSC_INK_SOFT, 1, "depth");
    for (l.characters = 5; l.characters > 0; l.characters -= 2) {
        l.text = DIGIT * l.characters;
        l.column = t->depth ? (room - POINT - l.text) / (double)t->depth : room;
        if (l.characters != 1 && l.column >= POINT + l.text + GAP + TRUNK + 6)
            break;
    }
    l.characters = l.characters < 3 ? 0 : l.characters;
    if (!l.characters) {
        l.text = 0;
        l.column = t->depth ? (room - POINT) / (double)t->depth : room;
    }
    l.top = y + 1.6 * c->line_height;
    l.pitch = (c->height - MARGIN - l.top) / fmax(1, (double)t->rows - 1);
    l.pitch = fmin(l.pitch, 24);
    if (l.pitch < DSC_FONT_CELL + 2)
        l.characters = 0;
    put_columns(w, c, t, &l, y);
    if (!w->rc && (l.pitch < 1 || l.column < TRUNK + 3))
        w->rc = dsc_fail(w->err, DSC_EUSAGE,
                         "%g x %g is too small for a tree of %zu rows and depth %zu: increase "
                         "--width or --height",
                         c->width, c->height, t->rows, t->depth);
    for (size_t i = 0; i < t->nodes && !w->rc; i++)
        put_node(p, c, t, &l, i);
    dsc_put_empty_plot(w);
}

// Draws the tree in characters: "1.0-+-.60-+-.36" and, below, the other children of each node.
static void put_text(dsc_writer *w, const dsc_canvas *c, const tree *t, const char *title,
                     const char *subtitle)
{
    size_t column = t->depth ? (size_t)(c->width - 5) / t->depth : 6;
    int characters = column >= 6 ? 3 : 0;
    dsc_put_terminal(w, c, "tree");
    double top = dsc_put_heading(w, c, title, subtitle, NULL, NULL, 0) + 1;
    size_t room = (size_t)(c->height - top), shown = t->rows > room ? room - 1 : t->rows;
    char line[512], text[16];
    column = column < 12 ? column : 12;
    if (!w->rc && column < 3)
        w->rc = dsc_fail(w->err, DSC_EUSAGE,
                         "%g characters are too few for a tree of depth %zu: increase --width",
                         c->width, t->depth);
    for (size_t row = 0; row < shown && !w->rc; row++) {
        memset(line, ' ', sizeof line);
        for (size_t i = 0; i < t->nodes; i++) {
            const node *n = &t->node[i];
            size_t x = 1 + n->depth * column, trunk = x + column - 2;
            const char *label = characters ? number(n->probability, characters, text) : "o";
            if (n->row == row)
                memcpy(line + x, label, strlen(label));
            if (n->row == row && i && t->node[n->parent].row != row)
                memcpy(line + x - 2, "+-", 2);
            bool on = n->row == row && n->children; // has a child in its row
            if (on)
                memset(line + x + strlen(label), '-', column - strlen(label));
            if (on && n->last_row > row)
                line[trunk] = '+';
            if (n->row < row && n->last_row > row && line[trunk] == ' ')
                line[trunk] = '|';
        }
        size_t end = 1 + t->depth * column + 4;
        while (end > 1 && line[end - 1] == ' ')
            end--;
        line[end] = '\0';
        dsc_put_paragraph(w, c, 1, top + (double)row, c->width - 1, DSC_FONT_BODY, DSC_INK, 1,
                          line + 1);
    }
    if (shown < t->rows) {
        snprintf(line, sizeof line, "... %zu more rows", t->rows - shown);
        dsc_put_paragraph(w, c, 1, top + (double)shown, c->width - 1, DSC_FONT_BODY, DSC_INK, 1,
                          line);
    }
    dsc_put_empty_plot(w);
}

// --- words and numbers ---------------------------------------------------------------------

static void put_finding(dsc_writer *w, const tree *t)
{
    dsc_put(w,
            "Draft tree with %zu node%s (including the root) and depth %zu. The expected number of "
            "tokens per target call is %.3f. Nodes by depth: ",
            t->nodes, t->nodes == 1 ? "" : "s", t->depth, t->expected);
    for (size_t d = 0, i = 0; d <= t->depth; d++) {
        size_t count = 0;
        for (; i < t->nodes && t->node[i].depth == d; i++)
            count++;
        dsc_put(w, "%s%zu", d ? ", " : "", count);
    }
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const tree *t)
{
    dsc_data_numbers(p, "node parent depth rank row probability");
    for (size_t i = 0; i < t->nodes; i++) {
        const node *n = &t->node[i];
        dsc_data_row(p, NULL,
                     (double[]){(double)n->id, (double)n->parent_id, (double)n->depth,
                                (double)n->rank, (double)n->row, n->probability});
    }
}

static const char *subtitle_of(dsc_plot *p, const tree *t, bool dumb)
{
    // The speedup is that of the whole tree; a filter selects a part of it.
    const char *comment = p->options->filters ? NULL : dsc_table_get_comment(p->table, "speedup");
    double speedup = comment ? strtod(comment, NULL) : NAN;
    dsc_writer *w = dsc_text_begin(p);
    dsc_put(w, "%.3f expected tokens per target call", t->expected);
    if (speedup > 0 && speedup < 1e6) // false for NaN
        dsc_put(w, ", speedup %.2f×", speedup);
    dsc_put(w, "%s", dumb ? "" : "; points: acceptance probability");
    return dsc_text_end(p);
}

static void draw(dsc_plot *p)
{
    tree t = {.nodes = 0};
    read_tree(p, &t);
    dsc_canvas c = dsc_canvas_of(
        p, fmin(1000, fmax(560, 90 * (double)t.depth)),
        fmin(4000, fmax(200, (dsc_is_narrow(p) ? 170 : 120) + 18 * (double)t.rows)), 0);
    if (p->rc)
        return;
    const char *title = dsc_text(p, "Draft tree with %zu node%s, depth %zu", t.nodes,
                                 t.nodes == 1 ? "" : "s", t.depth);
    if (c.dumb)
        put_text(&p->script, &c, &t, title, subtitle_of(p, &t, true));
    else
        put_graph(p, &c, &t, title, subtitle_of(p, &t, false));
    put_finding(&p->finding, &t);
    put_data(p, &t);
}

const dsc_figure_type dsc_figure_tree = {
    .name = "tree",
    .summary = "a draft tree with the acceptance probability of each node",
    .needs = "node parent depth rank probability",
    .draw = draw,
};

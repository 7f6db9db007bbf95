// SPDX-License-Identifier: Apache-2.0
// Draws the draft/target timeline of `draftscope sim --timeline`: one lane with the drafting
// intervals, one with the target calls. Target calls that reject a token have their own color,
// because a method that drafts ahead (PEARL) discards its draft after one.
#include "plots/draw/select.h"
#include "plots/draw/style.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { DRAFT, TARGET, LANES };
static const char *const lane_name[LANES] = {"draft", "target"};

static const char title[] = "Draft/target timeline";

// Line styles.
enum { DRAFTS, REJECTS, ACCEPTS, KEYS };
static const dsc_key keys[KEYS] = {{"draft model", DRAFTS | DSC_KEY_BOX},
                                   {"target, all accepted", ACCEPTS | DSC_KEY_BOX},
                                   {"target, token rejected", REJECTS | DSC_KEY_BOX}};

// A row of the table.
typedef struct work {
    int lane;
    double step, start, end, tokens, emitted;
    bool rejects;
} work;

typedef struct timeline {
    work *work; // [count] as in the table
    size_t count;
    double *step; // [steps] their numbers, ascending
    size_t steps;
    double start, end;     // time span of all rows
    double busy[LANES];    // total time of the intervals
    double emitted, calls; // tokens and calls of the target
    const char *unit;      // unit of time
} timeline;

// --- reading -------------------------------------------------------------------------------

static int lane_of(const char *name)
{
    return !strcmp(name, lane_name[DRAFT]) ? DRAFT : !strcmp(name, lane_name[TARGET]) ? TARGET : -1;
}

static void read_work(dsc_plot *p, work *out, size_t row, const int *column)
{
    double v[7]; // the columns after lane
    bool good = true;
    for (int c = 0; c < 7; c++) {
        v[c] = dsc_table_real(p->table, row, (size_t)column[c + 1]);
        good = good && v[c] >= 0 && v[c] < 1e15; // false for NaN
    }
    *out = (work){.lane = lane_of(dsc_text_at(p->table, row, "lane")),
                  .step = v[0],
                  .start = v[1],
                  .end = v[2],
                  .tokens = v[3],
                  .emitted = v[6],
                  .rejects = v[5] < v[4]};
    if (!good || out->lane < 0 || out->end < out->start)
        dsc_refuse(p,
                   "timeline: row %zu is invalid: lane must be draft or target, numbers must "
                   "not be negative, and end_s not less than start_s",
                   row + 1);
}

static void read_timeline(dsc_plot *p, timeline *l)
{
    int column[8];
    dsc_need_columns(p, p->needs, column);
    dsc_need(p, "lane", DSC_NAMES);
    dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    const char *cost = dsc_table_get_comment(p->table, "cost");
    l->work = dsc_plot_new(p, work, s.rows);
    l->count = s.rows;
    l->start = INFINITY;
    l->unit = cost && !strcmp(cost, "unit") ? "target calls" : "seconds";
    for (size_t i = 0; i < s.rows && !p->rc; i++) {
        work *w = &l->work[i];
        read_work(p, w, s.row[i], column);
        if (p->rc)
            return;
        l->start = fmin(l->start, w->start);
        l->end = fmax(l->end, w->end);
        l->busy[w->lane] += w->end - w->start;
        l->emitted += w->lane == TARGET ? w->emitted : 0;
        l->calls += w->lane == TARGET;
    }
    if (!(l->end > l->start))
        dsc_refuse(p, "timeline: all intervals have length 0");
    l->step = dsc_distinct(p, &s, column[1], &l->steps);
}

// --- drawing -------------------------------------------------------------------------------

typedef struct layout {
    double left, right, top, lane, pitch; // canvas; height and distance of lanes
    double start, end;                    // time
    double last;                          // last step drawn
} layout;

static double place(const layout *l, double time)
{
    return l->left + (time - l->start) / (l->end - l->start) * (l->right - l->left);
}

static int style_of(const work *x)
{
    return x->lane == DRAFT ? DRAFTS : x->rejects ? REJECTS : ACCEPTS;
}

static const char *label_of(const work *x)
{
    size_t i = 0;
    while (keys[i].style != (style_of(x) | DSC_KEY_BOX))
        i++;
    return keys[i].label;
}

static void put_work(dsc_plot *p, const dsc_canvas *c, const layout *l, const work *x,
                     const char *unit)
{
    dsc_writer *w = &p->script;
    double from = place(l, x->start), to = place(l, x->end);
    double y = l->top + x->lane * l->pitch;
    char text[32];
    dsc_mark(p, (from + to) / 2, y + l->lane / 2, label_of(x),
             "step %g: %g tokens %s, %.4g to %.4g %s", x->step,
             x->lane == TARGET ? x->emitted : x->tokens, x->lane == TARGET ? "emitted" : "drafted",
             x->start, x->end, unit);
    dsc_put(w, "set object rectangle from");
    dsc_put_at(w, c, from, y);
    dsc_put(w, " to");
    dsc_put_at(w, c, to, y + l->lane);
    dsc_put(w, " fc rgb '%s' fs solid border rgb '#ffffff'\n", dsc_style_color(style_of(x)));
    snprintf(text, sizeof text, "%s%.0f", x->lane == TARGET ? "+" : "",
             x->lane == TARGET ? x->emitted : x->tokens);
    if ((double)strlen(text) * 0.64 * DSC_FONT_CELL + 2 > to - from)
        return;
    dsc_put(w, "set label '%s' at", text);
    dsc_put_at(w, c, (from + to) / 2, y + l->lane / 2);
    dsc_put(w, " center front noenhanced font ',%d' textcolor rgb '%s'\n", DSC_FONT_CELL,
            x->lane == DRAFT ? "#ffffff" : DSC_INK);
}

static void put_time_axis(dsc_writer *w, const dsc_canvas *c, const layout *l, double y,
                          const char *unit)
{
    dsc_axis a = dsc_axis_fit(l->start, l->end, (int)fmax(2, (l->right - l->left) / 90));
    for (int i = 0; a.lo + i * a.step <= l->end + 1e-9 * a.step && i < 100; i++) {
        char text[DSC_AXIS_TEXT];
        double time = a.lo + i * a.step, x = place(l, time);
        if (time < l->start - 1e-9 * a.step)
            continue;
        dsc_put(w, "set arrow from");
        dsc_put_at(w, c, x, y - 4);
        dsc_put(w, " to");
        dsc_put_at(w, c, x, y);
        dsc_put(w, " nohead lt 1 lw 1 lc rgb '" DSC_INK_SOFT "'\n");
        dsc_put(w, "set label '%s' at", dsc_axis_text(&a, time, text));
        dsc_put_at(w, c, x, y + c->line_height / 2 + 1);
        dsc_put(w, " center font ',%d' textcolor rgb '" DSC_INK "'\n", DSC_FONT_SMALL);
    }
    dsc_put_paragraph(w, c, l->left, y + c->line_height + 2, l->right - l->left, DSC_FONT_SMALL,
                      DSC_INK_SOFT, 1, unit);
}

// Chooses the first steps that fit if each has a width of `least`.
static void fit_steps(layout *l, const timeline *t, double least)
{
    size_t n = (size_t)fmax(1, (l->right - l->left) / least);
    l->last = t->step[(n < t->steps ? n : t->steps) - 1];
    l->start = t->end;
    l->end = t->start;
    for (size_t i = 0; i < t->count; i++)
        if (t->work[i].step <= l->last) {
            l->start = fmin(l->start, t->work[i].start);
            l->end = fmax(l->end, t->work[i].end);
        }
    if (!(l->end > l->start)) // steps that take no time
        l->end = l->start + 1;
}

static size_t steps_drawn(const layout *l, const timeline *t)
{
    size_t n = 0;
    while (n < t->steps && t->step[n] <= l->last)
        n++;
    return n;
}

// Writes which part of the timeline is shown and what the numbers mean.
static const char *subtitle_of(const layout *l, const timeline *t, bool dumb, char text[200])
{
    size_t n = steps_drawn(l, t);
    int used = snprintf(text, 200, "%zu step%s", n, n == 1 ? "" : "s");
    if (n < t->steps)
        used = snprintf(text, 200, "the first %zu of %zu steps", n, t->steps);
    if (!dumb)
        snprintf(text + used, 200 - (size_t)used, "; numbers: tokens drafted, tokens emitted");
    return text;
}

static void put_graph(dsc_plot *p, const dsc_canvas *c, const timeline *t, layout *l)
{
    dsc_writer *w = &p->script;
    enum { MARGIN = 12 };
    char text[200];
    l->left = MARGIN + 7 * c->char_width;
    l->right = c->width - MARGIN - 8;
    fit_steps(l, t, 36);
    dsc_put_terminal(w, c, "timeline");
    l->top = dsc_put_heading(w, c, title, subtitle_of(l, t, false, text), NULL, keys, KEYS) + 12;
    double bottom = c->height - MARGIN - 2 * c->line_height;
    l->pitch = fmin((bottom - l->top) / LANES, 44);
    l->lane = l->pitch * 0.85;
    dsc_check_room(w, c, l->right - l->left, bottom - l->top);
    for (int lane = 0; lane < LANES; lane++)
        dsc_put_paragraph(w, c, MARGIN, l->top + lane * l->pitch + (l->lane - c->line_height) / 2,
                          l->left, DSC_FONT_BODY, DSC_INK, 1, lane_name[lane]);
    put_time_axis(w, c, l, l->top + LANES * l->pitch, t->unit);
    for (size_t i = 0; i < t->count && !w->rc; i++)
        if (t->work[i].step <= l->last)
            put_work(p, c, l, &t->work[i], t->unit);
}

// Draws an interval as "[==4=]" (draft), "[##+3#]" (target) or "[xx+1x]" (a token was rejected).
static void draw_work(char *line, const layout *l, const work *x)
{
    static const char fill[KEYS] = {[DRAFTS] = '=', [ACCEPTS] = '#', [REJECTS] = 'x'};
    size_t from = (size_t)place(l, x->start), to = (size_t)place(l, x->end);
    char text[32];
    if (to < from + 2)
        return;
    memset(line + from, fill[style_of(x)], to - from);
    line[from] = '[';
    line[to - 1] = ']';
    snprintf(text, sizeof text, "%s%.0f", x->lane == TARGET ? "+" : "",
             x->lane == TARGET ? x->emitted : x->tokens);
    size_t n = strlen(text);
    if (n + 2 <= to - from)
        memcpy(line + (from + to - n) / 2, text, n);
}

static void put_text(dsc_writer *w, const dsc_canvas *c, const timeline *t, layout *l)
{
    char line[512], subtitle[200];
    l->left = 7;
    l->right = c->width - 1;
    fit_steps(l, t, 5);
    dsc_put_terminal(w, c, "timeline");
    double y = dsc_put_heading(w, c, title, subtitle_of(l, t, true, subtitle), NULL, NULL, 0) + 1;
    for (int lane = 0; lane < LANES && !w->rc; lane++, y += 1) {
        memset(line, ' ', sizeof line);
        memcpy(line, lane_name[lane], strlen(lane_name[lane]));
        for (size_t i = 0; i < t->count; i++)
            if (t->work[i].lane == lane && t->work[i].step <= l->last)
                draw_work(line, l, &t->work[i]);
        size_t end = (size_t)c->width - 1;
        while (line[end - 1] == ' ')
            end--;
        line[end] = '\0';
        dsc_put_paragraph(w, c, 0, y, c->width, DSC_FONT_BODY, DSC_INK, 1, line);
    }
    snprintf(line, sizeof line, "= draft model, # target, x target with a token rejected; %.4g %s",
             l->end - l->start, t->unit);
    dsc_put_paragraph(w, c, 0, y + 1, c->width - 1, DSC_FONT_BODY, DSC_INK, 3, line);
}

// --- words and numbers ---------------------------------------------------------------------

static void put_finding(dsc_writer *w, const timeline *t)
{
    double time = t->end - t->start;
    dsc_put(w,
            "Timeline of %zu step%s: %.0f tokens in %.4g %s, %.3f per target call. The draft model "
            "is busy %.0f %% of the time, the target %.0f %%.",
            t->steps, t->steps == 1 ? "" : "s", t->emitted, time, t->unit, t->emitted / t->calls,
            100 * t->busy[DRAFT] / time, 100 * t->busy[TARGET] / time);
}

static void put_data(dsc_plot *p, const timeline *t, const layout *l)
{
    dsc_data_text(p, "lane", NULL);
    dsc_data_numbers(p, "step start_s end_s tokens emitted");
    for (size_t i = 0; i < t->count; i++) {
        const work *x = &t->work[i];
        if (x->step <= l->last)
            dsc_data_row(p, &lane_name[x->lane],
                         (double[]){x->step, x->start, x->end, x->tokens, x->emitted});
    }
}

static void draw(dsc_plot *p)
{
    timeline t = {.count = 0};
    layout l = {0};
    read_timeline(p, &t);
    dsc_canvas c = dsc_canvas_of(p, 1000, dsc_is_narrow(p) ? 260 : 220, 0);
    if (p->rc)
        return;
    if (c.dumb)
        put_text(&p->script, &c, &t, &l);
    else
        put_graph(p, &c, &t, &l);
    dsc_put_empty_plot(&p->script);
    put_finding(&p->finding, &t);
    put_data(p, &t, &l);
}

const dsc_figure_type dsc_figure_timeline = {
    .name = "timeline",
    .summary = "busy intervals of draft model and target, step by step (sim --timeline)",
    .needs = "lane step start_s end_s tokens proposed accepted emitted",
    .draw = draw,
};

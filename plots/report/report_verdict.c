// SPDX-License-Identifier: Apache-2.0
// The verdicts of the report: those that tune wrote, repeated with their intervals and their lines
// for an engine, and the best observed rows of results that were not tuned. The report recommends
// nothing by itself, and it never compares results here: they may differ in trace, cost model and
// condition.
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <string.h>

static bool is_tune(const dsc_result_view *r)
{
    return dsc_table_find(&r->table, "significant") >= 0;
}

// Whether rows are ranked by speedup; tune names its objective in a comment.
static bool is_speedup(const dsc_result_view *r)
{
    const char *objective = dsc_table_get_comment(&r->table, "objective");
    return is_tune(r) ? objective && !strncmp(objective, "speedup", 7)
                      : dsc_table_find(&r->table, "speedup") >= 0;
}

// --- the best configuration by batch size --------------------------------------------------

// The best configuration at one batch size.
typedef struct best {
    size_t row;
    double batch, value;
    double low, high; // 95 % interval of value; NaN: none
} best;

static bool is_better(const dsc_result_view *r, size_t row, size_t than)
{
    if (is_tune(r))
        return dsc_number_at(&r->table, row, "rank") == 1;
    return dsc_merit(r, row) > -INFINITY && (than == SIZE_MAX || dsc_is_better(r, row, than));
}

// Finds the best configuration at the next batch size, in the order of the table; *row is where to
// continue, 0 at first. Returns false after the last one.
static bool next_best(const dsc_result_view *r, size_t *row, best *b)
{
    const dsc_table *t = &r->table;
    for (; *row < t->rows; ++*row) {
        double batch = dsc_number_at(t, *row, "batch");
        size_t found = SIZE_MAX, earlier = 0;
        while (earlier < *row && dsc_number_at(t, earlier, "batch") != batch)
            earlier++;
        for (size_t i = *row; i < t->rows && earlier == *row; i++)
            if (dsc_number_at(t, i, "batch") == batch && is_better(r, i, found))
                found = i;
        if (found == SIZE_MAX)
            continue;
        *b = (best){found, batch, dsc_merit(r, found), NAN, NAN};
        if (is_tune(r)) {
            b->value = dsc_number_at(t, found, "test");
            b->low = dsc_number_at(t, found, "test_low");
            b->high = dsc_number_at(t, found, "test_high");
        }
        ++*row;
        return true;
    }
    return false;
}

// A speedup is one only where drafting costs something.
static bool has_costs(const dsc_result_view *r)
{
    const char *cost = dsc_table_get_comment(&r->table, "cost");
    return is_speedup(r) && !(cost && !strcmp(cost, "unit"));
}

bool dsc_was_chosen_here(const dsc_result_view *r)
{
    bool methods = r->kind == DSC_RESULT_METHODS || r->kind == DSC_RESULT_TUNED;
    return methods && !is_tune(r) && dsc_has_best(r) && dsc_table_find(&r->table, "request") < 0;
}

size_t dsc_count_slow(const dsc_result_view *r)
{
    size_t slow = 0, row = 0;
    for (best b; has_costs(r) && next_best(r, &row, &b);)
        slow += b.value < 1;
    return slow;
}

// --- tables of verdicts ------------------------------------------------------------------------

enum { CONDITION, VERDICT, SPEEDUP, INTERVAL, VERDICT_COLUMNS };

// Lines of a table, one per condition.
typedef struct lines {
    dsc_page *page;
    dsc_plot memory; // of the texts
    dsc_table table; // [VERDICT_COLUMNS] of texts
} lines;

static lines lines_of(dsc_page *p, const char *name[VERDICT_COLUMNS])
{
    lines l = {.page = p, .memory = dsc_plot_of(NULL, NULL, p->w.err)};
    for (int i = 0; i < VERDICT_COLUMNS && !p->w.rc; i++)
        p->w.rc = dsc_table_add_column(&l.table, name[i], DSC_CELL_TEXT, NULL, p->w.err);
    return l;
}

static void add_line(lines *l, const char *const text[VERDICT_COLUMNS])
{
    dsc_cell cell[VERDICT_COLUMNS];
    for (int i = 0; i < VERDICT_COLUMNS; i++)
        cell[i] = dsc_cell_text(text[i]);
    if (!l->page->w.rc)
        l->page->w.rc =
            l->memory.rc ? l->memory.rc : dsc_table_add_row(&l->table, cell, l->page->w.err);
}

// A single line is shown as sentence and numbers, several as a table. `caption`: their result.
static void put_lines(lines *l, const char *caption)
{
    dsc_page *p = l->page;
    const dsc_table *t = &l->table;
    size_t row[64], column[VERDICT_COLUMNS], columns = 0, rows = t->rows < 64 ? t->rows : 64;
    for (size_t i = 0; i < rows; i++)
        row[i] = i;
    for (size_t c = 0; c < t->columns; c++) {
        bool any = false;
        for (size_t i = 0; i < rows; i++)
            any = any || *dsc_table_at(t, i, c)->text;
        if (any)
            column[columns++] = c;
    }
    if (rows > 1 && !p->w.rc) {
        p->type->table(p, &(dsc_page_table){t, row, column, rows, columns, caption, NULL});
    } else if (rows && !p->w.rc) {
        dsc_open(p, DSC_BOX);
        dsc_open(p, DSC_PARAGRAPH);
        dsc_say_block(p, DSC_STRONG, "%s: %s", dsc_table_at(t, 0, CONDITION)->text,
                      dsc_table_at(t, 0, VERDICT)->text);
        dsc_close(p, DSC_PARAGRAPH);
        dsc_open(p, DSC_MERITS);
        for (size_t c = SPEEDUP; c < VERDICT_COLUMNS; c++)
            if (*dsc_table_at(t, 0, c)->text)
                p->type->merit(&p->w, t->column[c].name, dsc_table_at(t, 0, c)->text);
        dsc_close(p, DSC_MERITS);
        dsc_say_block(p, DSC_SOFT, "%s.", caption);
        dsc_close(p, DSC_BOX);
    }
    dsc_table_fini(&l->table);
    dsc_plot_fini(&l->memory);
}

// --- verdicts of tune --------------------------------------------------------------------------

// The condition that a comment is about: "verdict_batch_8", or "verdict" for the only one.
static const char *condition_of(dsc_plot *memory, const dsc_table *t, const char *key)
{
    static const char batch[] = "verdict_batch_";
    if (!strncmp(key, batch, strlen(batch)))
        return dsc_text(memory, "batch size %s", key + strlen(batch));
    if (key[strlen("verdict")])
        return dsc_text(memory, "%s", key + strlen("verdict_"));
    double size = t->rows ? dsc_number_at(t, 0, "batch") : NAN;
    return isnan(size) ? "all requests" : dsc_text(memory, "batch size %g", size);
}

dsc_verdict_words dsc_split_verdict(dsc_plot *memory, const char *verdict)
{
    const char *times = strstr(verdict, " times "), *number = times, *name = strstr(verdict, ": ");
    const char *range = times ? strstr(times, "(95 %: ") : NULL,
               *rest = times ? strstr(times, "; ") : NULL;
    dsc_verdict_words w = {verdict, "", "", ""};
    double gain, low, high;
    while (number && number > verdict && number[-1] != ' ')
        number--;
    if (!name || !number || number < name + 2 || sscanf(number, "%lf", &gain) != 1)
        return w;
    const char *verb = number - 2; // of ": ", " is " or " has "
    while (verb > name && *verb != ' ')
        verb--;
    w.verdict = verb > name ? dsc_text(memory, "%.*s (%.*s was judged)", (int)(name - verdict),
                                       verdict, (int)(verb - name - 2), name + 2)
                            : dsc_text(memory, "%.*s", (int)(name - verdict), verdict);
    w.gain = dsc_text(memory, "%.2f×", gain);
    if (range && sscanf(range, "(95 %%: %lf to %lf", &low, &high) == 2)
        w.interval = dsc_text(memory, "%.2f to %.2f", low, high);
    w.rest = rest ? rest + 2 : "";
    return w;
}

static void add_verdict(lines *l, const dsc_table *t, const char *key, const char *verdict)
{
    const dsc_verdict_words w = dsc_split_verdict(&l->memory, verdict);
    const char *text[VERDICT_COLUMNS] = {condition_of(&l->memory, t, key), w.verdict, w.gain,
                                         w.interval};
    add_line(l, text);
}

// The lines for an engine, as tune wrote them.
static void put_engine_lines(dsc_page *p, const dsc_table *t)
{
    bool any = false;
    for (size_t i = 0; i < t->comments; i++) {
        if (strncmp(t->key[i], "engine_line", 11) != 0)
            continue;
        dsc_open_once(p, DSC_LINES, &any);
        dsc_say(p, "%s", t->value[i]);
        dsc_put(&p->w, "%s", p->type->line_end);
    }
    if (any)
        dsc_close(p, DSC_LINES);
}

// The verdicts that tune wrote into its comments, one per condition. The report adds none.
static void put_verdicts(dsc_page *p, const dsc_result_view *r, size_t number)
{
    const dsc_table *t = &r->table;
    const char *split = dsc_table_get_comment(t, "split"), *cost = dsc_table_get_comment(t, "cost");
    lines l =
        lines_of(p, (const char *[]){"condition", "verdict", "held-out speedup", "95 % interval"});
    for (size_t i = 0; i < t->comments; i++)
        if (!strncmp(t->key[i], "verdict", 7))
            add_verdict(&l, t, t->key[i], t->value[i]);
    if (!l.table.rows)
        dsc_say_block(p, DSC_PARAGRAPH,
                      "Result %zu has no verdict in its comments; draftscope tune writes one.",
                      number);
    const char *caption =
        dsc_text(&l.memory, "Verdict of result %zu%s%s%s%s", number, cost ? "; cost: " : "",
                 cost ? cost : "", split ? "; " : "", split ? split : "");
    put_lines(&l, caption);
}

// --- best observed rows ------------------------------------------------------------------------

// "llma with n = 1, draft length 32"
static void put_configuration(dsc_writer *w, const dsc_table *t, size_t row, const char *but)
{
    if (dsc_table_is_bound(t, row))
        dsc_put(w, "no method, upper bound: ");
    int method = dsc_table_find(t, "method");
    if (method >= 0 && t->rows > 1 && !dsc_varies(t, (size_t)method)) {
        dsc_put_method(w, t, row);
        dsc_put(w, " with ");
    }
    dsc_put_configuration(w, t, row, but);
}

// The best rows by batch size of a result without a test set: what was observed, not what to run.
static void put_observed(dsc_page *p, const dsc_result_view *r, size_t number)
{
    size_t row = 0;
    lines l = lines_of(p, (const char *[]){"condition", "best observed",
                                           is_speedup(r) ? "speedup" : "block efficiency", ""});
    for (best b; next_best(r, &row, &b);) {
        dsc_writer *w = dsc_text_begin(&l.memory);
        put_configuration(w, &r->table, b.row, "batch");
        const char *what = dsc_text_end(&l.memory);
        add_line(&l, (const char *[]){
                         dsc_text(&l.memory, "batch size %g", b.batch), what,
                         dsc_text(&l.memory, "%.2f%s", b.value, has_costs(r) ? "×" : ""), ""});
    }
    const char *caption =
        dsc_text(&l.memory, "Best observed in result %zu, %zu rows", number, r->table.rows);
    put_lines(&l, caption);
}

// The best rows of results without a condition in their rows, one line for each result.
static void put_best_rows(dsc_page *p, const dsc_result_view *r, size_t n)
{
    lines l =
        lines_of(p, (const char *[]){"result", "best observed", "speedup", "block efficiency"});
    for (size_t i = 0; i < n; i++) {
        if (r[i].kind != DSC_RESULT_METHODS || !dsc_was_chosen_here(&r[i]))
            continue;
        const dsc_table *t = &r[i].table;
        const char *slash = strrchr(r[i].path, '/');
        double speedup = dsc_number_at(t, r[i].ranked[0], "speedup");
        double tokens = dsc_number_at(t, r[i].ranked[0], "block_efficiency");
        dsc_writer *w = dsc_text_begin(&l.memory);
        put_configuration(w, t, r[i].ranked[0], NULL);
        const char *what = dsc_text_end(&l.memory);
        add_line(
            &l,
            (const char *[]){
                dsc_text(&l.memory, "Result %zu: %s", i + 1, slash ? slash + 1 : r[i].path), what,
                has_costs(&r[i]) && !isnan(speedup) ? dsc_text(&l.memory, "%.2f×", speedup) : "",
                isnan(tokens) ? "" : dsc_text(&l.memory, "%.2f", tokens)});
    }
    put_lines(&l, "Best observed on the requests they were selected on, so optimistically biased");
}

bool dsc_put_recommendation(dsc_page *p, const dsc_result_view *r, size_t n)
{
    bool tuned = false, observed = false;
    for (size_t i = 0; i < n; i++)
        if (is_tune(&r[i]) && r[i].table.rows) {
            put_verdicts(p, &r[i], i + 1);
            tuned = true;
        }
    for (size_t i = 0; i < n; i++)
        if (dsc_was_chosen_here(&r[i])) {
            if (!tuned && !observed)
                dsc_say_block(p, DSC_PARAGRAPH,
                              "No configuration is recommended, because no result was tuned: its "
                              "rows were selected and reported on the same requests. draftscope "
                              "tune gives a verdict on held-out requests.");
            observed = true;
            if (r[i].kind == DSC_RESULT_TUNED)
                put_observed(p, &r[i], i + 1);
        }
    put_best_rows(p, r, n);
    return tuned || observed;
}

void dsc_put_engine_lines(dsc_page *p, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((is_tune(&r[i]) || r[i].kind == DSC_RESULT_SERVED) && r[i].table.rows)
            put_engine_lines(p, &r[i].table);
}

// SPDX-License-Identifier: Apache-2.0
// Judges the loads of a table of draftscope serve (sim/tune/advice_load.h) from what its rows
// contain.
#include "base/columns.h"
#include "base/number.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_none(const dsc_table *t, size_t row)
{
    return strcmp(cli_serve_text(t, row, DSC_COL_METHOD), dsc_drafter_none.name) == 0;
}

bool cli_serve_has_answer(const dsc_table *t)
{
    bool drafts = false;
    for (size_t r = 0; r < t->rows; r++)
        drafts = drafts || !is_none(t, r);
    return drafts && dsc_table_find(t, "arrivals") >= 0 &&
           dsc_table_find(t, cli_serve_block_columns[0].name) >= 0;
}

// --- rows ----------------------------------------------------------------------------------------

// A policy that knows what will be accepted is an upper bound, as a method that does.
static bool is_bound(const dsc_table *t, size_t row)
{
    return dsc_table_is_bound(t, row) || strstr(cli_serve_text(t, row, "speculation"), "oracle");
}

// Copies a list of at most CLI_SERVE_BLOCKS numbers and returns its length.
static size_t read_list(const dsc_table *t, size_t row, const char *column, double *to)
{
    const int c = dsc_table_find(t, column);
    const dsc_cell *cell = c >= 0 ? dsc_table_at(t, row, (size_t)c) : NULL;
    size_t n = 0;
    if (cell && cell->type == DSC_CELL_LIST)
        for (; n < (size_t)cell->i && n < CLI_SERVE_BLOCKS; n++)
            to[n] = dsc_cell_element(cell, (int64_t)n);
    return n;
}

// The sums of one row: over blocks, and over batches.
typedef struct lists {
    double requests[CLI_SERVE_BLOCKS], latency_s[CLI_SERVE_BLOCKS], good[CLI_SERVE_BLOCKS],
        engine_s[CLI_SERVE_BLOCKS];
} lists;

// `column`: the first of four.
static dsc_load_sums read_sums(const dsc_table *t, size_t row, const dsc_column *column, lists *l)
{
    const size_t n = read_list(t, row, column[0].name, l->requests),
                 latency = read_list(t, row, column[1].name, l->latency_s),
                 good = read_list(t, row, column[2].name, l->good),
                 engine = read_list(t, row, column[3].name, l->engine_s);
    return (dsc_load_sums){l->requests, l->good, l->latency_s, l->engine_s,
                           latency == n && good == n && engine == n ? n : 0};
}

static dsc_load_row read_row(const dsc_table *t, size_t row, bool slo, lists l[2])
{
    const dsc_column *c = cli_serve_block_columns;
    return (dsc_load_row){.none = is_none(t, row),
                          .may_run = !is_bound(t, row),
                          .saturated = !strcmp(cli_serve_text(t, row, "saturated"), "yes"),
                          .too_short = !strcmp(cli_serve_text(t, row, "saturated"), "unknown"),
                          .e2e_mean_s = cli_serve_number(t, row, "e2e_mean_s"),
                          .tokens_per_s = cli_serve_number(t, row, "tokens_per_s"),
                          .within = slo ? cli_serve_within(t, row) : 1,
                          .elasticity = cli_serve_number(t, row, c[1].name),
                          .blocks = read_sums(t, row, &c[2], &l[0]),
                          .batches = read_sums(t, row, &c[6], &l[1]),
                          .requests = cli_serve_number(t, row, DSC_COL_REQUESTS),
                          .tokens = cli_serve_number(t, row, DSC_COL_OUTPUT_TOKENS),
                          .distinct = cli_serve_number(t, row, c[0].name)};
}

// --- a load --------------------------------------------------------------------------------------

// The rows of one load; `at` are their indices in the table.
typedef struct load_rows {
    dsc_load_row *row;
    lists (*list)[2];
    size_t *at, count;
} load_rows;

static void load_rows_fini(load_rows *l)
{
    free(l->row);
    free(l->list);
    free(l->at);
}

static int read_load(load_rows *l, const cli_serve_answer *a, const char *arrivals, dsc_error *err)
{
    const dsc_table *t = a->table;
    *l = (load_rows){0};
    for (size_t r = 0; r < t->rows; r++)
        l->count += !strcmp(cli_serve_text(t, r, "arrivals"), arrivals);
    int rc = dsc_new(&l->row, l->count, err);
    rc = rc ?: dsc_new(&l->list, l->count, err);
    rc = rc ?: dsc_new(&l->at, l->count, err);
    for (size_t r = 0, n = 0; r < t->rows && !rc; r++)
        if (!strcmp(cli_serve_text(t, r, "arrivals"), arrivals)) {
            l->row[n] = read_row(t, r, a->slo != NULL, l->list[n]);
            l->at[n++] = r;
        }
    return rc;
}

// The advice, with the row's index in the table.
static dsc_load_advice advise(const load_rows *l, bool closed)
{
    dsc_load_advice out;
    dsc_advise_load(l->row, l->count, closed, &out);
    out.row = out.row < l->count ? l->at[out.row] : SIZE_MAX;
    return out;
}

static bool lacks(const cli_serve_answer *a, size_t row)
{
    return a->use && row != SIZE_MAX && cli_serve_row_lacks(a->use, a->table, row);
}

static int judge(cli_serve_answer *a, cli_load_verdict *v, dsc_error *err)
{
    load_rows l;
    const bool closed = v->unit == CLI_LOAD_CLIENTS;
    int rc = read_load(&l, a, v->arrivals, err);
    v->none = SIZE_MAX;
    rc = rc ? rc : dsc_compare_load(l.row, l.count, closed, err);
    if (!rc) {
        for (size_t i = 0; i < l.count; i++) {
            a->gain[l.at[i]] = l.row[i].than_none;
            v->none = l.row[i].none ? l.at[i] : v->none;
        }
        v->own = v->all = advise(&l, closed);
        v->differs = lacks(a, v->all.row);
    }
    if (v->differs) {
        for (size_t i = 0; i < l.count; i++)
            l.row[i].may_run = l.row[i].may_run && (l.row[i].none || !lacks(a, l.at[i]));
        v->own = advise(&l, closed);
    }
    load_rows_fini(&l);
    return rc;
}

// The loads of a sweep, as in --arrivals, and what they have in common.
static const struct {
    const char *name, *kind;
    cli_load_unit unit;
} kinds[] = {
    {"poisson:", "Poisson arrivals", CLI_LOAD_RATE},
    {"constant:", "Constant arrivals", CLI_LOAD_RATE},
    {"gamma:", "Gamma arrivals", CLI_LOAD_RATE},
    {"closed:", "Closed loop", CLI_LOAD_CLIENTS},
    {"recorded:x", "Recorded arrivals", CLI_LOAD_SPEED},
    {"recorded", "Recorded arrivals", CLI_LOAD_SPEED},
};

// "gamma:4,2" is kind "Gamma arrivals, cv 2" at 4, "recorded" at 1, a file its own kind.
static void parse_load(cli_load_verdict *v)
{
    char *end = NULL;
    v->unit = CLI_LOAD_LISTED;
    snprintf(v->kind, sizeof v->kind, "%.60s", v->arrivals);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && v->unit == CLI_LOAD_LISTED; i++) {
        const size_t n = strlen(kinds[i].name);
        if (strncmp(v->arrivals, kinds[i].name, n) != 0)
            continue;
        v->unit = kinds[i].unit;
        v->at = v->arrivals[n] ? dsc_strtod(v->arrivals + n, &end) : 1;
        snprintf(v->kind, sizeof v->kind, "%s%s%.20s", kinds[i].kind,
                 end && *end == ',' ? ", cv " : "", end && *end == ',' ? end + 1 : "");
    }
}

// --- all loads -----------------------------------------------------------------------------------

static bool is_known(const cli_serve_answer *a, const char *arrivals)
{
    for (size_t i = 0; i < a->loads; i++)
        if (!strcmp(a->load[i].arrivals, arrivals))
            return true;
    return false;
}

// By kind in the order of the table, which `place` is the first load of, then ascending.
static void sort(cli_serve_answer *a)
{
    for (size_t i = 1; i < a->loads; i++) {
        const cli_load_verdict x = a->load[i];
        size_t kind = i; // where its kind begins
        for (size_t j = 0; j < i && kind == i; j++)
            if (!strcmp(a->load[j].kind, x.kind))
                kind = j;
        size_t to = kind;
        while (kind < i && to < i && !strcmp(a->load[to].kind, x.kind) && a->load[to].at <= x.at)
            to++;
        memmove(&a->load[to + 1], &a->load[to], (i - to) * sizeof x);
        a->load[to] = x;
    }
}

// The place of a word in "a|b|c", or -1.
static int place_of(const char *word, const char *words)
{
    int place = 0;
    const size_t n = word ? strlen(word) : 0;
    for (const char *p = words; n && p; place++) {
        if (!strncmp(p, word, n) && (!p[n] || p[n] == '|'))
            return place;
        p = strchr(p, '|');
        p = p ? p + 1 : NULL;
    }
    return -1;
}

static void read_engine(cli_serve_answer *a)
{
    const int engine = place_of(dsc_table_get_comment(a->table, "engine"), CLI_ENGINES),
              kind = place_of(dsc_table_get_comment(a->table, "draft_kind"), CLI_DRAFT_KINDS);
    a->engine = (cli_engine_use){(cli_engine)(engine < 0 ? 0 : engine),
                                 (cli_draft_kind)(kind < 0 ? 0 : kind)};
    a->use = engine < 0 ? NULL : &a->engine;
}

int cli_serve_judge(cli_serve_answer *a, const dsc_table *t, dsc_error *err)
{
    size_t capacity = 0;
    int rc = DSC_OK;
    *a = (cli_serve_answer){.table = t, .slo = dsc_table_get_comment(t, "slo")};
    read_engine(a);
    rc = dsc_new(&a->gain, t->rows, err);
    for (size_t r = 0; r < t->rows && !rc; r++) {
        const char *arrivals = cli_serve_text(t, r, "arrivals");
        if (is_known(a, arrivals))
            continue;
        rc = dsc_resize(&a->load, &capacity, a->loads + 1, err);
        if (!rc) {
            a->load[a->loads] = (cli_load_verdict){.arrivals = arrivals};
            parse_load(&a->load[a->loads++]);
        }
    }
    sort(a);
    for (size_t i = 0; i < a->loads && !rc; i++)
        rc = judge(a, &a->load[i], err);
    return rc;
}

void cli_serve_answer_fini(cli_serve_answer *a)
{
    free(a->load);
    free(a->gain);
    *a = (cli_serve_answer){0};
}

const char *cli_serve_advice(const cli_serve_answer *a, size_t row)
{
    for (size_t i = 0; i < a->loads; i++) {
        const cli_load_verdict *v = &a->load[i];
        if (row == v->own.row)
            return v->own.kind == DSC_ADVICE_ON ? "run" : "judged";
        if (row == v->none && v->own.kind == DSC_ADVICE_OFF)
            return "run";
    }
    return "";
}

// --- several loads -------------------------------------------------------------------------------

size_t cli_serve_kind_end(const cli_serve_answer *a, size_t first)
{
    size_t end = first + 1;
    while (end < a->loads && !strcmp(a->load[end].kind, a->load[first].kind))
        end++;
    return end;
}

const char *cli_serve_load_unit(const cli_load_verdict *v)
{
    static const char *const one[] = {[CLI_LOAD_RATE] = " request/s",
                                      [CLI_LOAD_CLIENTS] = " client",
                                      [CLI_LOAD_SPEED] = " times the recorded speed",
                                      [CLI_LOAD_LISTED] = ""},
                             *const many[] = {[CLI_LOAD_RATE] = " requests/s",
                                              [CLI_LOAD_CLIENTS] = " clients",
                                              [CLI_LOAD_SPEED] = " times the recorded speed",
                                              [CLI_LOAD_LISTED] = ""};
    return v->at > 1 || v->at < 1 ? many[v->unit] : one[v->unit];
}

int cli_serve_load_words(dsc_buffer *b, const cli_load_verdict *from, const cli_load_verdict *to,
                         dsc_error *err)
{
    if (from->unit == CLI_LOAD_LISTED)
        return dsc_buffer_puts(b, from->arrivals, err);
    int rc = from == to ? DSC_OK : dsc_buffer_printf(b, err, "%g to ", from->at);
    return rc ? rc : dsc_buffer_printf(b, err, "%g%s", to->at, cli_serve_load_unit(to));
}

bool cli_serve_same_setting(const cli_serve_answer *a, const cli_load_verdict *x,
                            const cli_load_verdict *y)
{
    dsc_buffer one = {0}, two = {0};
    if (x->own.kind != y->own.kind || x->own.kind != DSC_ADVICE_ON)
        return x->own.kind == y->own.kind;
    const bool same = !cli_serve_row_name(&one, a->table, x->own.row, NULL) &&
                      !cli_serve_row_name(&two, a->table, y->own.row, NULL) &&
                      !strcmp(one.data, two.data);
    dsc_buffer_fini(&one);
    dsc_buffer_fini(&two);
    return same;
}

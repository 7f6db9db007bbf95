// SPDX-License-Identifier: Apache-2.0
// The answer of draftscope serve in words: the verdict at each load, and up to which load
// speculation pays with which setting. The loads of a sweep are judged one by one: what is said
// between two of them is that the verdict changes there.
#include "base/outfile.h"
#include "cli/result.h"
#include "cli/serve/serve_answer.h"

#include <math.h>
#include <string.h>

static bool is_on(const cli_load_verdict *v)
{
    return v->own.kind == DSC_ADVICE_ON;
}

// --- the verdict at a load -----------------------------------------------------------------------

// "1.2345 times as fast as without speculation from arrival to last token (95 %: 1.1 to 1.3)".
static int put_gain(dsc_buffer *b, const cli_serve_answer *a, const cli_load_verdict *load,
                    size_t row, dsc_error *err)
{
    const dsc_load_gain *g = &a->gain[row];
    const bool closed = load->unit == CLI_LOAD_CLIENTS;
    const char *what = a->slo && !g->of_queues  ? "the utility of no speculation"
                       : g->of_queues || closed ? "the throughput of no speculation"
                                                : "as fast as without speculation from arrival to "
                                                  "last token";
    const int rc = dsc_buffer_printf(b, err, "%.4f times %s", g->gain, what);
    return rc || isnan(g->low)
               ? rc
               : dsc_buffer_printf(b, err, " (95 %%: %.4f to %.4f)", g->low, g->high);
}

// What is to know about the judged row in addition to its numbers.
static const char *remark(const cli_serve_answer *a, const dsc_load_advice *v)
{
    const dsc_load_gain *g = v->row == SIZE_MAX ? NULL : &a->gain[v->row];
    return !g                                         ? ""
           : g->of_queues && v->all_saturated         ? "; the queue grows whatever is set"
           : g->of_queues                             ? "; without speculation the queue grows"
           : v->kind == DSC_ADVICE_OFF && g->gain > 1 ? "; its interval contains 1"
                                                      : "";
}

// Appends what the gain is made of: the column that is compared, and the share within the SLO.
static int put_numbers(dsc_buffer *b, const cli_serve_answer *a, const cli_load_verdict *load,
                       size_t row, bool brief, dsc_error *err)
{
    const dsc_table *t = a->table;
    const bool rate = a->gain[row].of_queues || load->unit == CLI_LOAD_CLIENTS;
    const char *column = rate ? "tokens_per_s" : "e2e_mean_s";
    const double with = cli_serve_number(t, row, column),
                 without = cli_serve_number(t, load->none, column),
                 kept = 100 * cli_serve_within(t, row),
                 kept_without = 100 * cli_serve_within(t, load->none);
    int rc = brief
                 ? dsc_buffer_printf(b, err, rate ? "tokens/s %.4g -> %.4g" : "e2e %.4g -> %.4g s",
                                     without, with)
                 : dsc_buffer_printf(b, err, "; %s %.4g, without %.4g", column, with, without);
    if (!rc && a->slo)
        rc = brief ? dsc_buffer_printf(b, err, ", SLO %.4g -> %.4g %%", kept_without, kept)
                   : dsc_buffer_printf(b, err, "; within the SLO %.4g %%, without %.4g %%", kept,
                                       kept_without);
    return rc;
}

// Why no row was judged.
static int put_why(dsc_buffer *b, const cli_serve_answer *a, const cli_load_verdict *v,
                   const dsc_load_advice *of, dsc_error *err)
{
    return v->differs && of == &v->own && of->kind == DSC_ADVICE_ABSTAIN
               ? dsc_buffer_printf(b, err, "%s has no setting for any of these configurations",
                                   cli_engine_word[a->use->engine])
               : dsc_buffer_puts(b, of->why, err);
}

// `v`: one of the two of the load.
static int put_verdict(dsc_buffer *b, const cli_serve_answer *a, const cli_load_verdict *load,
                       const dsc_load_advice *v, dsc_error *err)
{
    static const char *const begin[] = {[DSC_ADVICE_ABSTAIN] = "no recommendation: ",
                                        [DSC_ADVICE_OFF] = "leave speculation off: ",
                                        [DSC_ADVICE_ON] = "run "};
    int rc = dsc_buffer_puts(b, begin[v->kind], err);
    if (!rc && v->row == SIZE_MAX)
        return put_why(b, a, load, v, err);
    rc = rc ?: cli_serve_row_name(b, a->table, v->row, err);
    rc = rc ?: dsc_buffer_puts(b, v->kind == DSC_ADVICE_ON ? ": " : " has ", err);
    rc = rc ?: put_gain(b, a, load, v->row, err);
    rc = rc ?: put_numbers(b, a, load, v->row, false, err);
    return rc ? rc : dsc_buffer_puts(b, remark(a, v), err);
}

// --- the answer over a sweep ---------------------------------------------------------------------

// Appends "1 to 3 requests/s and at 7 requests/s": the loads at which speculation pays.
static int put_where_on(dsc_buffer *b, const cli_serve_answer *a, size_t first, size_t end,
                        dsc_error *err)
{
    const char *before = "at ";
    int rc = DSC_OK;
    for (size_t i = first, next; i < end && !rc; i = next) {
        next = i + 1;
        if (!is_on(&a->load[i]))
            continue;
        while (next < end && is_on(&a->load[next]))
            next++;
        rc = dsc_buffer_puts(b, before, err);
        rc = rc ?: cli_serve_load_words(b, &a->load[i], &a->load[next - 1], err);
        before = " and at ";
    }
    return rc;
}

// Where speculation pays: at all loads, at none, up to a load, from one on, or at some; or that no
// load has a verdict.
static int put_pays(dsc_buffer *b, const cli_serve_answer *a, size_t first, size_t end,
                    dsc_error *err)
{
    const cli_load_verdict *v = a->load;
    size_t on = 0, none = 0, changes = 0, change = first;
    for (size_t i = first; i < end; i++) {
        on += is_on(&v[i]);
        none += v[i].own.kind == DSC_ADVICE_ABSTAIN;
        if (i > first && is_on(&v[i]) != is_on(&v[i - 1])) {
            changes++;
            change = i;
        }
    }
    if (none == end - first)
        return dsc_buffer_puts(b, "no verdict", err);
    int rc = dsc_buffer_puts(
        b, end - first == 1 && !on ? "speculation does not pay " : "speculation pays ", err);
    if (!rc && changes > 1)
        return put_where_on(b, a, first, end, err);
    if (!rc && changes)
        rc = dsc_buffer_printf(b, err, "%s a load between %g and ",
                               is_on(&v[first]) ? "up to" : "from", v[change - 1].at);
    else if (!rc)
        rc = dsc_buffer_puts(b,
                             end - first == 1 ? "at "
                             : on             ? "at every load, "
                                              : "at no load, ",
                             err);
    if (!rc)
        rc = cli_serve_load_words(b, changes ? &v[change] : &v[first],
                                  changes ? &v[change] : &v[end - 1], err);
    return rc || !changes || is_on(&v[first]) ? rc : dsc_buffer_puts(b, " on", err);
}

// What to set from load to load.
static int put_settings(dsc_buffer *b, const cli_serve_answer *a, size_t first, size_t end,
                        dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = first, next; i < end && !rc; i = next) {
        const cli_load_verdict *v = &a->load[i];
        for (next = i + 1; next < end && cli_serve_same_setting(a, v, &a->load[next]);)
            next++;
        rc = dsc_buffer_puts(b, "; at ", err);
        rc = rc ?: cli_serve_load_words(b, v, &a->load[next - 1], err);
        if (!rc)
            rc = dsc_buffer_puts(b,
                                 is_on(v)                            ? " run "
                                 : v->own.kind == DSC_ADVICE_ABSTAIN ? " there is no verdict"
                                                                     : " leave speculation off",
                                 err);
        if (!rc && is_on(v))
            rc = cli_serve_row_name(b, a->table, v->own.row, err);
    }
    return rc;
}

static int put_answer(dsc_buffer *b, const cli_serve_answer *a, size_t first, size_t end,
                      dsc_error *err)
{
    int rc = dsc_buffer_printf(b, err, "%s: ", a->load[first].kind);
    rc = rc ?: put_pays(b, a, first, end, err);
    return rc ? rc : put_settings(b, a, first, end, err);
}

// --- comments ------------------------------------------------------------------------------------

static int comment(dsc_table *t, const char *key, size_t number, dsc_buffer *b, dsc_error *err)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s_%zu", key, number);
    const int rc = dsc_table_comment(t, whole, b->data, err);
    dsc_buffer_fini(b);
    return rc;
}

static int describe_load(const cli_serve_answer *a, size_t i, dsc_table *t, dsc_error *err)
{
    const cli_load_verdict *v = &a->load[i];
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s: ", v->arrivals);
    rc = rc ?: put_verdict(&b, a, v, &v->own, err);
    rc = rc ?: comment(t, "load_verdict", i + 1, &b, err);
    if (!rc && v->differs) {
        rc = dsc_buffer_printf(&b, err, "%s: ", v->arrivals);
        rc = rc ?: put_verdict(&b, a, v, &v->all, err);
        if (!rc)
            rc = dsc_buffer_printf(&b, err, "; %s has no setting for it: %s",
                                   cli_engine_word[a->use->engine],
                                   cli_serve_row_lacks(a->use, a->table, v->all.row));
        rc = rc ?: comment(t, "load_best_of_all", i + 1, &b, err);
    }
    dsc_buffer_fini(&b);
    return rc;
}

static int describe_lines(const cli_serve_answer *a, dsc_table *t, dsc_error *err)
{
    dsc_buffer lines = {0}, b = {0};
    size_t number = 1;
    int rc = a->use ? cli_serve_engine_lines(&lines, a, err) : DSC_OK;
    for (const char *p = lines.data; p && *p && !rc; p += strcspn(p, "\n") + 1) {
        rc = dsc_buffer_append(&b, p, strcspn(p, "\n"), err);
        rc = rc ?: comment(t, "engine_line", number++, &b, err);
    }
    dsc_buffer_fini(&b);
    dsc_buffer_fini(&lines);
    return rc;
}

// The columns are those of a table that was read, too, where empty ones are of another type.
static void set_cells(const cli_serve_answer *a, dsc_table *t)
{
    const int first = dsc_table_find(t, cli_serve_gain_columns[0].name);
    for (int c = 0; first >= 0 && c < CLI_SERVE_GAIN_COLUMNS; c++)
        t->column[first + c].type = cli_serve_gain_columns[c].type;
    for (size_t r = 0; first >= 0 && r < t->rows; r++)
        cli_serve_gain_cells(&a->gain[r], cli_serve_advice(a, r),
                             &t->cell[r * t->columns + (size_t)first]);
}

// The cells of cli_serve_gain_columns, and the comments.
static int describe(const cli_serve_answer *a, dsc_table *t, dsc_error *err)
{
    size_t number = 1;
    int rc = DSC_OK;
    set_cells(a, t);
    for (size_t i = 0; i < a->loads && !rc; i++)
        rc = describe_load(a, i, t, err);
    for (size_t i = 0; i < a->loads && !rc; i = cli_serve_kind_end(a, i)) {
        dsc_buffer b = {0};
        rc = put_answer(&b, a, i, cli_serve_kind_end(a, i), err);
        rc = rc ?: comment(t, "load_answer", number++, &b, err);
        dsc_buffer_fini(&b);
    }
    return rc ? rc : describe_lines(a, t, err);
}

int cli_serve_answer_make(cli_serve_answer *a, dsc_table *t, dsc_error *err)
{
    *a = (cli_serve_answer){0};
    if (!cli_serve_has_answer(t) || dsc_table_get_comment(t, "load_verdict_1"))
        return DSC_OK;
    const int rc = cli_serve_judge(a, t, err);
    return rc ?: describe(a, t, err);
}

// --- for a person --------------------------------------------------------------------------------

static int numbers_width(const cli_serve_answer *a)
{
    return a->slo ? 46 : 24;
}

// "poisson:4  1.21  1.15 to 1.28  e2e 1.5 -> 1.2 s  run ngram ...". `of`: one of the two of v.
static int print_row(const cli_serve_answer *a, const cli_load_verdict *v,
                     const dsc_load_advice *of, FILE *f, dsc_error *err)
{
    static const char *const verb[] = {[DSC_ADVICE_ABSTAIN] = "no verdict: ",
                                       [DSC_ADVICE_OFF] = "leave speculation off: ",
                                       [DSC_ADVICE_ON] = "run "};
    dsc_buffer what = {0}, numbers = {0};
    char gain[32] = "-", interval[64] = "-";
    const bool own = of == &v->own, judged = of->row != SIZE_MAX;
    const dsc_load_gain *g = judged ? &a->gain[of->row] : NULL;
    int rc = own ? dsc_buffer_puts(&what, verb[of->kind], err)
                 : dsc_buffer_printf(&what, err, "(best of all, no setting of %s: ",
                                     cli_engine_word[a->use->engine]);
    if (!rc)
        rc = judged ? cli_serve_row_name(&what, a->table, of->row, err)
                    : put_why(&what, a, v, of, err);
    if (!rc)
        rc = judged ? put_numbers(&numbers, a, v, of->row, true, err)
                    : dsc_buffer_puts(&numbers, "-", err);
    if (g)
        snprintf(gain, sizeof gain, "%.2f", g->gain);
    if (g && !isnan(g->low))
        snprintf(interval, sizeof interval, "%.2f to %.2f", g->low, g->high);
    if (!rc)
        fprintf(f, "%-16s  %6s  %-14s  %-*s  %s%s%s\n", own ? v->arrivals : "", gain, interval,
                numbers_width(a), numbers.data, what.data, remark(a, of), own ? "" : ")");
    dsc_buffer_fini(&what);
    dsc_buffer_fini(&numbers);
    return rc || !own || !v->differs ? rc : print_row(a, v, &v->all, f, err);
}

int cli_serve_answer_print(const cli_serve_answer *a, FILE *f, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = DSC_OK;
    fprintf(f, "\n%-16s  %6s  %-14s  %-*s  %s\n", "arrivals", "gain", "95 % interval",
            numbers_width(a), "without -> with", "verdict");
    for (size_t i = 0; i < a->loads && !rc; i++)
        rc = print_row(a, &a->load[i], &a->load[i].own, f, err);
    for (size_t i = 0; i < a->loads && !rc; i = cli_serve_kind_end(a, i)) {
        rc = put_answer(&b, a, i, cli_serve_kind_end(a, i), err);
        if (!rc)
            fprintf(f, "\n%s.\n", b.data);
        dsc_buffer_fini(&b);
    }
    if (!rc && a->use)
        rc = cli_serve_engine_lines(&b, a, err);
    if (!rc && a->use)
        fprintf(f, "\n%s", b.data ? b.data : "");
    dsc_buffer_fini(&b);
    return rc;
}

// --- files ---------------------------------------------------------------------------------------

// Whether the head of a file names the columns that an answer is made from.
static bool is_of_loads(const char *path)
{
    char head[1 << 15];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof head - 1, f) : 0;
    head[n] = '\0';
    if (f)
        fclose(f);
    return strstr(head, "block_latency_s") != NULL;
}

int cli_serve_answer_file(const char *path, bool jsonl, dsc_error *err)
{
    cli_serve_answer a = {0};
    dsc_table t = {0};
    dsc_outfile f = {0};
    if (!strcmp(path, "-") || !is_of_loads(path))
        return DSC_OK;
    int rc = dsc_table_read(&t, path, err);
    rc = rc ?: cli_serve_answer_make(&a, &t, err);
    rc = rc ?: dsc_outfile_open(&f, path, true, err);
    if (!rc) {
        cli_result_print(&t, jsonl, true, f.stream);
        rc = dsc_outfile_commit(&f, err);
    }
    cli_serve_answer_fini(&a);
    dsc_outfile_abort(&f);
    dsc_table_fini(&t);
    return rc;
}

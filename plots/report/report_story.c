// SPDX-License-Identifier: Apache-2.0
// What the report says over all results: what to deploy, how sure that is, what speaks against it;
// the workload; the best at each batch size; bounds; verdicts; and what is uncertain. Every number
// in a sentence stands in a table of the report.
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/figure/checks.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <string.h>

static const char *text_of(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    const dsc_cell *cell = c < 0 ? NULL : dsc_table_at(t, row, (size_t)c);
    return cell && cell->type == DSC_CELL_TEXT ? cell->text : "";
}

static double number_of(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    return c < 0 ? NAN : dsc_table_real(t, row, (size_t)c);
}

static bool is_tune(const dsc_result_view *r)
{
    return dsc_table_find(&r->table, "significant") >= 0;
}

// Whether the configuration of a row saves time; tune says what its numbers are in a comment.
static bool is_speedup(const dsc_result_view *r)
{
    const char *objective = dsc_table_get_comment(&r->table, "objective");
    return is_tune(r) ? objective && !strncmp(objective, "speedup", 7)
                      : dsc_table_find(&r->table, "speedup") >= 0;
}

// --- the best by batch size --------------------------------------------------------------------

// "chain, greedy, length=4"
static void say_tuned(dsc_page *p, const dsc_table *t, size_t row)
{
    const char *rule = text_of(t, row, "rule"), *parameters = text_of(t, row, "parameters");
    dsc_say(p, "%s%s%s%s%s", text_of(t, row, "method"), *rule ? ", " : "", rule,
            *parameters ? ", " : "", parameters);
}

// The best row of a batch size: of tune the one ranked first, else the fastest; SIZE_MAX: none.
static size_t best_at(const dsc_result_view *r, double batch)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < r->table.rows; i++) {
        if (number_of(&r->table, i, "batch") != batch)
            continue;
        if (is_tune(r) ? number_of(&r->table, i, "rank") == 1
                       : dsc_merit(r, i) > -INFINITY &&
                             (best == SIZE_MAX || dsc_merit(r, i) > dsc_merit(r, best)))
            best = i;
    }
    return best;
}

// "llma with n = 1, k = 32"
static void say_configuration(dsc_page *p, const dsc_table *t, size_t row, const char *but)
{
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = p->w.err};
    int method = dsc_table_find(t, "method");
    if (method >= 0 && t->rows > 1 && !dsc_varies(t, (size_t)method)) {
        dsc_put_method(&w, t, row);
        dsc_put(&w, " with ");
    }
    dsc_put_configuration(&w, t, row, but);
    if (!w.rc)
        dsc_say(p, "%s", b.data);
    else if (!p->w.rc)
        p->w.rc = w.rc;
    dsc_buffer_fini(&b);
}

static void say_best_at(dsc_page *p, const dsc_result_view *r, size_t row)
{
    const dsc_table *t = &r->table;
    const char *unit = is_speedup(r) ? "×" : "";
    if (is_tune(r)) {
        say_tuned(p, t, row);
        dsc_say(p, ": %.2f%s", number_of(t, row, "test"), unit);
        if (isfinite(number_of(t, row, "test_low")))
            dsc_say(p, ", 95 %% interval %.2f to %.2f", number_of(t, row, "test_low"),
                    number_of(t, row, "test_high"));
        if (is_speedup(r) && number_of(t, row, "test_high") < 1)
            dsc_say(p, ": speculation slows this batch size down");
        else if (is_speedup(r) && number_of(t, row, "test_low") < 1)
            dsc_say(p, ": it may slow down");
        return;
    }
    say_configuration(p, t, row, "batch"); // which is said
    dsc_say(p, ": %.2f%s%s", dsc_merit(r, row), unit,
            is_speedup(r) && dsc_merit(r, row) < 1 ? ": speculation slows this batch size down"
                                                   : "");
}

// Whether row i is the first of its batch size.
static bool is_first_of_batch(const dsc_table *t, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (number_of(t, j, "batch") == number_of(t, i, "batch"))
            return false;
    return isfinite(number_of(t, i, "batch"));
}

void dsc_put_batches(dsc_page *p, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    bool any = false;
    for (size_t i = 0; i < t->rows; i++) {
        double batch = number_of(t, i, "batch");
        size_t best = is_first_of_batch(t, i) ? best_at(r, batch) : SIZE_MAX;
        if (best == SIZE_MAX)
            continue;
        if (!any)
            dsc_open(p, DSC_LIST);
        any = true;
        dsc_open(p, DSC_ITEM);
        dsc_say(p, "Batch size %g: ", batch);
        say_best_at(p, r, best);
        dsc_say(p, ".");
        dsc_close(p, DSC_ITEM);
    }
    if (any)
        dsc_close(p, DSC_LIST);
}

// --- the summary -------------------------------------------------------------------------------

// Whether a result's best row is a configuration, chosen on the requests it is reported on.
static bool was_chosen_here(const dsc_result_view *r)
{
    bool methods = r->kind == DSC_RESULT_METHODS || r->kind == DSC_RESULT_TUNED;
    return methods && !is_tune(r) && dsc_has_best(r) && dsc_table_find(&r->table, "request") < 0;
}

static double best_merit(const dsc_result_view *r)
{
    return dsc_merit(r, r->ranked[0]);
}

// The result whose best row is the fastest, tuned ones first; SIZE_MAX: nothing to deploy.
static size_t find_best(const dsc_result_view *r, size_t n)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        if (is_tune(&r[i]) && r[i].table.rows)
            return i;
    for (size_t i = 0; i < n; i++)
        if (was_chosen_here(&r[i]) &&
            (best == SIZE_MAX || is_speedup(&r[i]) > is_speedup(&r[best]) ||
             (is_speedup(&r[i]) == is_speedup(&r[best]) &&
              best_merit(&r[i]) > best_merit(&r[best]))))
            best = i;
    return best;
}

// A configuration of another table that is faster than what tune found on the same trace and cost.
static void say_faster(dsc_page *p, const dsc_result_view *tuned, const dsc_result_view *r,
                       size_t n)
{
    size_t other = SIZE_MAX;
    double found = -INFINITY;
    for (size_t i = 0; i < tuned->table.rows; i++)
        if (number_of(&tuned->table, i, "rank") == 1)
            found = fmax(found, number_of(&tuned->table, i, "test"));
    for (size_t i = 0; i < n && is_speedup(tuned); i++)
        if (was_chosen_here(&r[i]) && is_speedup(&r[i]) && best_merit(&r[i]) > found &&
            dsc_same_comment(&tuned->table, &r[i].table, "trace_hash") &&
            dsc_same_comment(&tuned->table, &r[i].table, "cost")) {
            other = i;
            found = best_merit(&r[i]);
        }
    if (other == SIZE_MAX)
        return;
    dsc_say(p, " Faster, but chosen on the requests it is reported on: ");
    say_configuration(p, &r[other].table, r[other].ranked[0], NULL);
    dsc_say(p, ", %.2f× (result %zu).", found, other + 1);
}

static void put_deploy(dsc_page *p, const dsc_result_view *all, size_t n, size_t at)
{
    const dsc_result_view *r = &all[at];
    const dsc_table *t = &r->table;
    size_t number = at + 1;
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "What to deploy:");
    dsc_say(p, " ");
    if (is_tune(r)) {
        const char *split = dsc_table_get_comment(t, "split");
        const char *separator = "";
        for (size_t i = 0; i < t->rows; i++) {
            size_t best = is_first_of_batch(t, i) ? best_at(r, number_of(t, i, "batch")) : SIZE_MAX;
            if (best == SIZE_MAX)
                continue;
            dsc_say(p, "%sat batch size %g ", separator, number_of(t, i, "batch"));
            say_best_at(p, r, best);
            separator = "; ";
        }
        dsc_say(p, " (result %zu%s%s).", number, split ? "; " : "", split ? split : "");
        say_faster(p, r, all, n);
    } else {
        size_t best = r->ranked[0];
        double v = dsc_merit(r, best);
        if (is_speedup(r) && v <= 1)
            dsc_say(p, "nothing: no configuration is faster than plain decoding. The best, ");
        say_configuration(p, t, best, NULL);
        if (is_speedup(r))
            dsc_say(p, ": %.2f× the speed of plain decoding", v);
        else
            dsc_say(p, ": %.2f output tokens per target call", v);
        dsc_say(p, ", the best of %zu row%s (result %zu).", t->rows, t->rows == 1 ? "" : "s",
                number);
    }
    dsc_close(p, DSC_PARAGRAPH);
}

static size_t count_verdict(const dsc_result_view *r, const char *verdict)
{
    size_t n = 0;
    for (size_t i = 0; r->kind == DSC_RESULT_VALIDATED && i < r->table.rows; i++)
        n += !strcmp(text_of(&r->table, i, "verdict"), verdict);
    return n;
}

static size_t count_all(const dsc_result_view *r, size_t n, const char *verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += count_verdict(&r[i], verdict);
    return count;
}

// "Block efficiency (result 3): off by 0.4 % on average, ...", of a table of validate --live;
// number 0: where it is plain which result is meant.
static void say_errors(dsc_page *p, const dsc_result_view *r, size_t number)
{
    static const char *const wanted[] = {"block_efficiency", "speedup", NULL};
    static const dsc_figure_options all = {0};
    dsc_checks c;
    if (dsc_checks_init(&c, &r->table, "", &all, wanted, DSC_CHECK_GROUPS, NULL))
        return;
    for (size_t q = 0; q < c.quantities; q++) {
        char heading[100];
        dsc_buffer b = {0};
        dsc_writer w = {.to = &b, .err = p->w.err};
        dsc_term_heading(c.quantity[q], heading, sizeof heading);
        dsc_put_check_errors(&w, &c, q);
        dsc_say(p, " %s", heading);
        if (number)
            dsc_say(p, " (result %zu)", number);
        dsc_say(p, ": %s.", w.rc ? "" : b.data);
        dsc_buffer_fini(&b);
    }
    dsc_checks_fini(&c);
}

static void put_sure(dsc_page *p, const dsc_result_view *r, size_t n)
{
    size_t pass = count_all(r, n, "pass"), fail = count_all(r, n, "fail");
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "How sure:");
    if (pass + fail)
        dsc_say(p, " of %zu predictions that were judged, %zu are within their tolerance.",
                pass + fail, pass);
    else
        dsc_say(p, " no table here holds predictions against measurements.");
    for (size_t i = 0; i < n; i++)
        if (r[i].kind == DSC_RESULT_VALIDATED)
            say_errors(p, &r[i], i + 1);
    dsc_close(p, DSC_PARAGRAPH);
}

// Whether times are made of target calls alone.
static bool is_unit(const dsc_result_view *r)
{
    const char *cost = dsc_table_get_comment(&r->table, "cost");
    return cost && !strcmp(cost, "unit");
}

// How many batch sizes the best configuration of a result slows down.
static size_t count_slow(const dsc_result_view *r)
{
    size_t slow = 0;
    for (size_t i = 0; is_speedup(r) && i < r->table.rows; i++) {
        size_t best = is_first_of_batch(&r->table, i) ? best_at(r, number_of(&r->table, i, "batch"))
                                                      : SIZE_MAX;
        if (best != SIZE_MAX)
            slow += (is_tune(r) ? number_of(&r->table, best, "test") : dsc_merit(r, best)) < 1;
    }
    return slow;
}

static void put_against(dsc_page *p, const dsc_result_view *r, size_t n, size_t best)
{
    size_t fail = count_all(r, n, "fail"), unpredicted = count_all(r, n, "not predicted");
    bool any = false;
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "What speaks against it:");
    if (best != SIZE_MAX && is_unit(&r[best])) {
        dsc_say(p, " times are counted in target calls, so drafting and longer passes cost nothing "
                   "(cost: unit).");
        any = true;
    }
    for (size_t i = 0; i < n; i++) {
        size_t slow = r[i].kind == DSC_RESULT_TUNED ? count_slow(&r[i]) : 0;
        if (slow)
            dsc_say(p, " At %zu batch size%s of result %zu even the best configuration slows down.",
                    slow, slow == 1 ? "" : "s", i + 1);
        any = any || slow;
    }
    if (fail)
        dsc_say(p, " %zu prediction%s outside the tolerance.", fail, fail == 1 ? " is" : "s are");
    if (unpredicted)
        dsc_say(p, " %zu could not be made.", unpredicted);
    if (best != SIZE_MAX && !is_tune(&r[best]) && r[best].table.rows > 1) {
        dsc_say(p, " The best was chosen on the requests it is reported on (draftscope tune splits "
                   "them).");
        any = true;
    }
    if (!any && !fail && !unpredicted)
        dsc_say(p, " nothing in these tables.");
    dsc_close(p, DSC_PARAGRAPH);
}

void dsc_put_summary(dsc_page *p, const dsc_result_view *r, size_t n)
{
    size_t best = find_best(r, n);
    if (best != SIZE_MAX)
        put_deploy(p, r, n, best);
    if (best != SIZE_MAX || count_all(r, n, "pass") + count_all(r, n, "fail")) {
        put_sure(p, r, n);
        put_against(p, r, n, best);
    }
}

// --- workload and models -----------------------------------------------------------------------

// Comments that say what ran where.
static const char *const setting[] = {
    "trace",       "trace_hash",   "target",          "draft",          "middle", "temperature",
    "device_name", "dtype_stored", "target_measured", "draft_measured", "cost"};

static bool said_before(const dsc_result_view *r, size_t before, const char *key, const char *value)
{
    for (size_t i = 0; i < before; i++) {
        const char *other = dsc_table_get_comment(&r[i].table, key);
        if (other && !strcmp(other, value))
            return true;
    }
    return false;
}

void dsc_put_workload(dsc_page *p, const dsc_result_view *r, size_t n)
{
    bool any = false;
    for (size_t k = 0; k < sizeof setting / sizeof *setting; k++)
        for (size_t i = 0; i < n; i++) {
            const char *value = dsc_table_get_comment(&r[i].table, setting[k]);
            if (!value || said_before(r, i, setting[k], value))
                continue;
            if (!any)
                dsc_open(p, DSC_PAIRS);
            any = true;
            dsc_say_pair(p, setting[k], DSC_CODE, value);
        }
    if (any)
        dsc_close(p, DSC_PAIRS);
    for (size_t i = 0; i < n; i++) {
        if (!r[i].facts)
            continue;
        dsc_say_block(p, DSC_PARAGRAPH, "Trace of result %zu:", i + 1);
        dsc_open(p, DSC_PAIRS);
        for (size_t f = 0; f < r[i].facts; f++)
            dsc_say_pair(p, r[i].fact[f].key, DSC_CODE, r[i].fact[f].value);
        dsc_close(p, DSC_PAIRS);
        any = true;
    }
    if (!any)
        dsc_say_block(p, DSC_SOFT, "The tables do not say what they were made of.");
}

// --- bounds ------------------------------------------------------------------------------------

// The optimal-transport row with the drafts and length of row i, in any result; NaN: none.
static double bound_of(const dsc_result_view *r, size_t n, const dsc_table *t, size_t i)
{
    const char *hash = dsc_table_get_comment(t, "trace_hash");
    for (size_t k = 0; k < n; k++) {
        const dsc_table *other = &r[k].table;
        const char *its = dsc_table_get_comment(other, "trace_hash");
        if ((hash ? hash : its) && (!hash || !its || strcmp(hash, its)))
            continue;
        for (size_t j = 0; j < other->rows; j++)
            if (!strcmp(text_of(other, j, "rule"), "otm") &&
                number_of(other, j, "drafts") == number_of(t, i, "drafts") &&
                number_of(other, j, "num_speculative_tokens") ==
                    number_of(t, i, "num_speculative_tokens"))
                return number_of(other, j, "block_efficiency");
    }
    return NAN;
}

// Block efficiency over its bound for each rule met: least, mean, most.
typedef struct share {
    const char *rule;
    double least, sum, most;
    size_t n;
} share;

enum { SHARES = 16 };

static size_t find_shares(const dsc_result_view *r, size_t n, share s[SHARES])
{
    size_t shares = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; r[k].kind == DSC_RESULT_METHODS && i < r[k].table.rows && i < 4096;
             i++) {
            const dsc_table *t = &r[k].table;
            const char *rule = text_of(t, i, "rule");
            double bound = *rule && strcmp(rule, "otm") ? bound_of(r, n, t, i) : NAN;
            double v = number_of(t, i, "block_efficiency") / bound;
            size_t j = 0;
            while (j < shares && strcmp(s[j].rule, rule))
                j++;
            if (!isfinite(v) || j == SHARES)
                continue;
            if (j == shares)
                s[shares++] = (share){rule, v, 0, v, 0};
            s[j].least = fmin(s[j].least, v);
            s[j].most = fmax(s[j].most, v);
            s[j].sum += v;
            s[j].n++;
        }
    return shares;
}

bool dsc_any_bounds(const dsc_result_view *r, size_t n)
{
    share s[SHARES];
    return find_shares(r, n, s) > 0;
}

void dsc_put_bounds(dsc_page *p, const dsc_result_view *r, size_t n)
{
    share s[SHARES];
    size_t shares = find_shares(r, n, s);
    if (!shares) {
        dsc_say_block(
            p, DSC_SOFT,
            "No rule was run beside the optimal one (otm) with the same drafts and length.");
        return;
    }
    dsc_open(p, DSC_LIST);
    for (size_t i = 0; i < shares; i++)
        dsc_say_block(p, DSC_ITEM,
                      "%s comes to %.1f %% of the block efficiency of the optimal rule (otm) with "
                      "the same drafts and length, on average over %zu configuration%s; %.1f to "
                      "%.1f %%.",
                      s[i].rule, 100 * s[i].sum / (double)s[i].n, s[i].n, s[i].n == 1 ? "" : "s",
                      100 * s[i].least, 100 * s[i].most);
    dsc_close(p, DSC_LIST);
    dsc_say_block(p, DSC_SOFT,
                  "At one position no rule accepts more often of drafts drawn independently; rules "
                  "that decide whole blocks, and drafts without replacement, are not under it.");
}

// --- verdicts ----------------------------------------------------------------------------------

// The rows behind the figures, not folded: a page that is printed has them.
static void put_checked(dsc_page *p, const dsc_result_view *r)
{
    enum { MOST = 80 };
    static const char *const name[] = {"row",        "where",       "method",        "rule",
                                       "parameters", "temperature", "quantity",      "predicted",
                                       "measured",   "published",   "error_percent", "z",
                                       "verdict"};
    const dsc_table *t = &r->table;
    size_t row[MOST], rows = 0, column[sizeof name / sizeof *name], columns = 0;
    bool live = dsc_table_find(t, "measured") >= 0;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (dsc_table_find(t, name[i]) >= 0)
            column[columns++] = (size_t)dsc_table_find(t, name[i]);
    for (size_t i = 0; i < t->rows && rows < MOST; i++) {
        const char *quantity = text_of(t, i, "quantity");
        if (live ? !strcmp(quantity, "block_efficiency") || !strcmp(quantity, "speedup")
                 : strcmp(text_of(t, i, "verdict"), "shown") != 0)
            row[rows++] = i;
    }
    if (rows)
        p->type->table(&p->w,
                       &(dsc_page_table){t, row, column, rows, columns,
                                         live ? "Block efficiency and speed-up" : "What was judged",
                                         NULL});
}

void dsc_put_verdicts(dsc_page *p, const dsc_result_view *r)
{
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say(p, "%zu pass, %zu fail, %zu not predicted, %zu disputed, %zu skipped, %zu only shown.",
            count_verdict(r, "pass"), count_verdict(r, "fail"), count_verdict(r, "not predicted"),
            count_verdict(r, "disputed"), count_verdict(r, "skipped"), count_verdict(r, "shown"));
    say_errors(p, r, 0);
    dsc_close(p, DSC_PARAGRAPH);
    put_checked(p, r);
}

// --- what is uncertain -------------------------------------------------------------------------

typedef struct doubts {
    dsc_page *page;
    size_t said;
} doubts;

static void begin_doubt(doubts *d, size_t number)
{
    if (!d->said++)
        dsc_open(d->page, DSC_LIST);
    dsc_open(d->page, DSC_ITEM);
    if (number)
        dsc_say(d->page, "Result %zu: ", number);
}

// What commands remark on their own numbers.
static void put_remarks(doubts *d, const dsc_result_view *r, size_t number)
{
    static const char *const remark[] = {"note", "warning", "optimism", "alike"};
    for (size_t i = 0; i < r->table.comments; i++)
        for (size_t k = 0; k < sizeof remark / sizeof *remark; k++) {
            if (strncmp(r->table.key[i], remark[k], strlen(remark[k])))
                continue;
            begin_doubt(d, number);
            dsc_say(d->page, "%s: %s.", r->table.key[i], r->table.value[i]);
            dsc_close(d->page, DSC_ITEM);
        }
}

static const char *doubt_of_cost(const dsc_result_view *r)
{
    const char *cost = dsc_table_get_comment(&r->table, "cost");
    return !cost                           ? NULL
           : !strcmp(cost, "unit")         ? "counts target calls, nothing is timed"
           : !strncmp(cost, "linear", 6)   ? "a line that was given, not measured"
           : !strncmp(cost, "roofline", 8) ? "the least times the hardware allows"
                                           : NULL;
}

// Each cost model once, with the results it priced.
static void put_costs(doubts *d, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *cost = dsc_table_get_comment(&r[i].table, "cost"), *separator = " (results ";
        if (!doubt_of_cost(&r[i]) || said_before(r, i, "cost", cost))
            continue;
        begin_doubt(d, 0);
        dsc_say(d->page, "Times are by the cost model %s: %s", cost, doubt_of_cost(&r[i]));
        for (size_t j = i; j < n; j++) {
            const char *other = dsc_table_get_comment(&r[j].table, "cost");
            if (!other || strcmp(other, cost))
                continue;
            dsc_say(d->page, "%s%zu", separator, j + 1);
            separator = ", ";
        }
        dsc_say(d->page, ").");
        dsc_close(d->page, DSC_ITEM);
    }
}

static bool is_open(const char *verdict)
{
    static const char *const open[] = {"fail", "not predicted", "disputed", "skipped"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (!strcmp(verdict, open[i]))
            return true;
    return false;
}

static void put_open_verdicts(doubts *d, const dsc_result_view *r, size_t number)
{
    enum { TOLD = 20 };
    const dsc_table *t = &r->table;
    size_t told = 0, open = 0;
    for (size_t i = 0; r->kind == DSC_RESULT_VALIDATED && i < t->rows; i++) {
        const char *verdict = text_of(t, i, "verdict"), *note = text_of(t, i, "note");
        const char *what[] = {text_of(t, i, "row"), text_of(t, i, "where"), text_of(t, i, "method"),
                              text_of(t, i, "rule"), text_of(t, i, "parameters")};
        if (!is_open(verdict) || ++open > TOLD)
            continue;
        told++;
        begin_doubt(d, number);
        dsc_say(d->page, "%s: %s of", verdict, text_of(t, i, "quantity"));
        for (size_t k = 0; k < sizeof what / sizeof *what; k++)
            if (*what[k])
                dsc_say(d->page, " %s", what[k]);
        double predicted = number_of(t, i, "predicted"), held = number_of(t, i, "measured");
        held = isnan(held) ? number_of(t, i, "published") : held;
        if (!isnan(predicted) && !isnan(held))
            dsc_say(d->page, ", %.4g predicted and %.4g %s", predicted, held,
                    dsc_table_find(t, "measured") >= 0 ? "measured" : "published");
        dsc_say(d->page, "%s%s.", *note && strcmp(note, "-") ? "; " : "",
                strcmp(note, "-") ? note : "");
        dsc_close(d->page, DSC_ITEM);
    }
    if (open > told) {
        begin_doubt(d, number);
        dsc_say(d->page, "and %zu more of its verdicts.", open - told);
        dsc_close(d->page, DSC_ITEM);
    }
}

// Numbers chosen and reported on the same rows.
static void put_chosen(doubts *d, const dsc_result_view *r, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!was_chosen_here(&r[i]) || r[i].table.rows < 2)
            continue;
        if (!any)
            begin_doubt(d, 0);
        dsc_say(d->page, "%s%zu",
                any ? ", "
                    : "The best configuration was chosen on the requests "
                      "it is reported on, and gains somewhat less on "
                      "others (results ",
                i + 1);
        any = true;
    }
    if (!any)
        return;
    dsc_say(d->page, ").");
    dsc_close(d->page, DSC_ITEM);
}

void dsc_put_uncertain(dsc_page *p, const dsc_result_view *r, size_t n)
{
    doubts d = {.page = p};
    put_costs(&d, r, n);
    put_chosen(&d, r, n);
    for (size_t i = 0; i < n; i++) {
        put_remarks(&d, &r[i], i + 1);
        put_open_verdicts(&d, &r[i], i + 1);
    }
    if (!count_all(r, n, "pass") && !count_all(r, n, "fail")) {
        begin_doubt(&d, 0);
        dsc_say(p,
                "No prediction here was held against a run of the models (draftscope validate).");
        dsc_close(p, DSC_ITEM);
    }
    if (d.said)
        dsc_close(p, DSC_LIST);
    else
        dsc_say_block(p, DSC_SOFT, "The tables name nothing.");
}

// SPDX-License-Identifier: Apache-2.0
// The chapters of the report over all results: validation and caveats; the workload; bounds;
// checked predictions; limitations. Every number in a sentence is also in a table of the report.
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/figure/checks.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <string.h>

// --- the summary -------------------------------------------------------------------------------

enum { PASS, FAIL, UNPREDICTED, DISPUTED, SKIPPED, SHOWN, VERDICTS };

// The verdict of a row; VERDICTS: it has none.
static int verdict_of(const dsc_table *t, size_t row)
{
    static const char *const name[] = {"pass",     "fail",    "not predicted",
                                       "disputed", "skipped", "shown"};
    int v = 0;
    while (v < VERDICTS && strcmp(dsc_text_at(t, row, "verdict"), name[v]))
        v++;
    return v;
}

typedef struct verdicts {
    size_t of[VERDICTS + 1];
    size_t judged; // passes and fails
} verdicts;

static verdicts count_verdicts(const dsc_result_view *r, size_t n)
{
    verdicts v = {.judged = 0};
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; r[k].kind == DSC_RESULT_VALIDATED && i < r[k].table.rows; i++)
            v.of[verdict_of(&r[k].table, i)]++;
    v.judged = v.of[PASS] + v.of[FAIL];
    return v;
}

// Summarizes the errors of a table of validate --live: "Block efficiency (result 3): mean |error|
// 0.4 %, ...". number 0: the context identifies the result.
static void say_errors(dsc_page *p, const dsc_result_view *r, size_t number)
{
    static const char *const wanted[] = {"block_efficiency", "speedup", NULL};
    dsc_checks c;
    dsc_plot plot = dsc_plot_of(&r->table, NULL, NULL);
    dsc_checks_init(&plot, &c, wanted, DSC_CHECK_GROUPS);
    for (size_t q = 0; !plot.rc && q < c.quantities; q++) {
        dsc_say(p, " %s", c.heading[q]);
        if (number)
            dsc_say(p, " (result %zu)", number);
        dsc_writer *w = dsc_say_begin(p);
        dsc_put(w, ": ");
        dsc_put_check_errors(w, &c, q);
        dsc_put(w, ".");
        dsc_say_end(p);
    }
    dsc_plot_fini(&plot);
}

static void put_validation(dsc_page *p, const dsc_result_view *r, size_t n)
{
    verdicts v = count_verdicts(r, n);
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "Validation:");
    if (v.judged)
        dsc_say(p, " %zu of %zu predictions with a tolerance are within it.", v.of[PASS], v.judged);
    else
        dsc_say(p, " No table contains measurements to compare the predictions with.");
    for (size_t i = 0; i < n; i++)
        if (r[i].kind == DSC_RESULT_VALIDATED)
            say_errors(p, &r[i], i + 1);
    dsc_close(p, DSC_PARAGRAPH);
}

static bool in_earlier(const dsc_result_view *r, size_t before, const char *key, const char *value)
{
    for (size_t i = 0; i < before; i++) {
        const char *other = dsc_table_get_comment(&r[i].table, key);
        if (other && !strcmp(other, value))
            return true;
    }
    return false;
}

static bool has_setting(const char *cost, const char *text)
{
    const char *found = strstr(cost, text);
    return found && (found[strlen(text)] == ',' || !found[strlen(text)]);
}

// A roofline at full efficiency without overhead (sim/cost/cost_roofline.c).
static bool is_bound(const char *cost)
{
    return !strncmp(cost, "roofline", 8) && has_setting(cost, ",efficiency=1") &&
           has_setting(cost, ",overhead=0");
}

static const char *limitation_of_cost(const dsc_result_view *r)
{
    const char *cost = dsc_table_get_comment(&r->table, "cost");
    return !cost                           ? NULL
           : !strcmp(cost, "unit")         ? "counts target calls and measures no time"
           : !strncmp(cost, "linear", 6)   ? "is a given line, not a measurement"
           : is_bound(cost)                ? "is a lower bound by the hardware's peak rates"
           : !strncmp(cost, "roofline", 8) ? "has an engine's efficiency from published steps of "
                                             "one model, or given values, and is not a measurement"
                                           : NULL;
}

// Names each cost model that is no measurement once.
static void put_cost_caveats(dsc_page *p, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *cost = dsc_table_get_comment(&r[i].table, "cost");
        bool said = dsc_table_get_comment(&r[i].table, "caveat") != NULL; // tune says more
        if (!said && limitation_of_cost(&r[i]) && !in_earlier(r, i, "cost", cost))
            dsc_say(p, " Cost %s %s.", cost, limitation_of_cost(&r[i]));
    }
}

static bool remarks(const dsc_result_view *r)
{
    return r->kind == DSC_RESULT_TUNED || r->kind == DSC_RESULT_SERVED;
}

// Adds what tune and serve noted about their verdicts: few requests, and what they do not model.
static void put_remarks(dsc_page *p, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; remarks(&r[i]) && k < r[i].table.comments; k++) {
            const char *key = r[i].table.key[k], *value = r[i].table.value[k];
            if (strcmp(key, "note") && strcmp(key, "caveat") && strcmp(key, "not_modeled"))
                continue;
            dsc_say(p, " Result %zu%s: %s.", i + 1,
                    strcmp(key, "not_modeled") ? "" : " does not model", value);
        }
}

static void put_caveats(dsc_page *p, const dsc_result_view *r, size_t n)
{
    verdicts v = count_verdicts(r, n);
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "Caveats:");
    size_t before = p->w.to->length;
    for (size_t i = 0; i < n; i++) {
        size_t slow = r[i].kind == DSC_RESULT_TUNED ? dsc_count_slow(&r[i]) : 0;
        if (slow)
            dsc_say(p,
                    " At %zu batch size%s of result %zu, even the best configuration slows "
                    "decoding down.",
                    slow, slow == 1 ? "" : "s", i + 1);
    }
    if (v.of[FAIL])
        dsc_say(p, " %zu prediction%s outside the tolerance.", v.of[FAIL],
                v.of[FAIL] == 1 ? " is" : "s are");
    if (v.of[UNPREDICTED])
        dsc_say(p, " %zu prediction%s could not be made.", v.of[UNPREDICTED],
                v.of[UNPREDICTED] == 1 ? "" : "s");
    put_cost_caveats(p, r, n);
    put_remarks(p, r, n);
    if (p->w.to->length == before)
        dsc_say(p, " These tables indicate none.");
    dsc_close(p, DSC_PARAGRAPH);
}

void dsc_put_summary(dsc_page *p, const dsc_result_view *r, size_t n)
{
    const bool found = dsc_put_recommendation(p, r, n), served = dsc_put_load_answers(p, r, n);
    if (found || served || count_verdicts(r, n).judged) {
        put_validation(p, r, n);
        put_caveats(p, r, n);
    }
}

// --- workload and models -----------------------------------------------------------------------

// Comments that identify the trace, the models and the hardware.
static const char *const setting[] = {
    "trace",       "trace_hash",   "target",          "draft",          "middle", "temperature",
    "device_name", "dtype_stored", "target_measured", "draft_measured", "cost"};

void dsc_put_workload(dsc_page *p, const dsc_result_view *r, size_t n)
{
    bool any = false;
    for (size_t k = 0; k < sizeof setting / sizeof *setting; k++)
        for (size_t i = 0; i < n; i++) {
            const char *value = dsc_table_get_comment(&r[i].table, setting[k]);
            if (!value || in_earlier(r, i, setting[k], value))
                continue;
            dsc_open_once(p, DSC_PAIRS, &any);
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
        dsc_say_block(p, DSC_SOFT, "The tables do not identify the trace, the models or the cost.");
}

// --- bounds ------------------------------------------------------------------------------------

// The block efficiency of rule otm with the drafts and length of row i of `t`, in any result of the
// same trace; NaN: none.
static double bound_of(const dsc_result_view *r, size_t n, const dsc_table *t, size_t i)
{
    for (size_t k = 0; k < n; k++) {
        const dsc_table *other = &r[k].table;
        for (size_t j = 0; dsc_same_comment(t, other, "trace_hash") && j < other->rows; j++)
            if (!strcmp(dsc_text_at(other, j, "rule"), "otm") &&
                dsc_number_at(other, j, "drafts") == dsc_number_at(t, i, "drafts") &&
                dsc_number_at(other, j, "num_speculative_tokens") ==
                    dsc_number_at(t, i, "num_speculative_tokens"))
                return dsc_number_at(other, j, "block_efficiency");
    }
    return NAN;
}

// The ratio of block efficiency to its bound for one rule.
typedef struct share {
    const char *rule;
    double least, sum, most;
    size_t n;
} share;

enum { SHARES = 16, MOST_ROWS = 4096 };

static size_t find_shares(const dsc_result_view *r, size_t n, share s[SHARES])
{
    size_t shares = 0;
    for (size_t k = 0; k < n; k++) {
        const dsc_table *t = &r[k].table;
        for (size_t i = 0; r[k].kind == DSC_RESULT_METHODS && i < t->rows && i < MOST_ROWS; i++) {
            const char *rule = dsc_text_at(t, i, "rule");
            double bound = *rule && strcmp(rule, "otm") ? bound_of(r, n, t, i) : NAN;
            double v = dsc_number_at(t, i, "block_efficiency") / bound;
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
        dsc_say_block(p, DSC_SOFT,
                      "No result contains both the optimal rule (otm) and another rule with the "
                      "same drafts and length.");
        return;
    }
    dsc_open(p, DSC_LIST);
    for (size_t i = 0; i < shares; i++)
        dsc_say_block(p, DSC_ITEM,
                      "%s attains %.1f %% of the block efficiency of the optimal rule (otm) with "
                      "the same drafts and length, on average over %zu configuration%s; the range "
                      "is %.1f to %.1f %%.",
                      s[i].rule, 100 * s[i].sum / (double)s[i].n, s[i].n, s[i].n == 1 ? "" : "s",
                      100 * s[i].least, 100 * s[i].most);
    dsc_close(p, DSC_LIST);
    dsc_say_block(p, DSC_SOFT,
                  "At one position, no rule for independently sampled drafts accepts more often "
                  "than otm. The bound does not apply to rules that verify whole blocks or to "
                  "drafts sampled without replacement.");
}

// --- verdicts ----------------------------------------------------------------------------------

// Writes the checked rows as an open table, so that a printed page contains them.
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
        const char *quantity = dsc_text_at(t, i, "quantity");
        if (live ? !strcmp(quantity, "block_efficiency") || !strcmp(quantity, "speedup")
                 : verdict_of(t, i) != SHOWN)
            row[rows++] = i;
    }
    if (rows)
        p->type->table(p, &(dsc_page_table){t, row, column, rows, columns,
                                            live ? "Block efficiency and speedup" : "Judged rows",
                                            NULL});
}

void dsc_put_verdicts(dsc_page *p, const dsc_result_view *r)
{
    verdicts v = count_verdicts(r, 1);
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say(p, "%zu pass, %zu fail, %zu not predicted, %zu disputed, %zu skipped, %zu only shown.",
            v.of[PASS], v.of[FAIL], v.of[UNPREDICTED], v.of[DISPUTED], v.of[SKIPPED], v.of[SHOWN]);
    say_errors(p, r, 0);
    dsc_close(p, DSC_PARAGRAPH);
    put_checked(p, r);
}

// --- limitations -------------------------------------------------------------------------------

typedef struct limitations {
    dsc_page *page;
    bool any;
} limitations;

// Begins an item of the list, of result `number` unless that is 0.
static void begin_item(limitations *d, size_t number)
{
    dsc_open_once(d->page, DSC_LIST, &d->any);
    dsc_open(d->page, DSC_ITEM);
    if (number)
        dsc_say(d->page, "Result %zu: ", number);
}

// Repeats the remarks that commands wrote into their tables.
static void put_comments(limitations *d, const dsc_result_view *r, size_t number)
{
    static const char *const remark[] = {"note", "warning", "optimism", "not_significant"};
    for (size_t i = 0; i < r->table.comments; i++)
        for (size_t k = 0; k < sizeof remark / sizeof *remark; k++) {
            if (strncmp(r->table.key[i], remark[k], strlen(remark[k])))
                continue;
            begin_item(d, number);
            dsc_say(d->page, "%s: %s.", r->table.key[i], r->table.value[i]);
            dsc_close(d->page, DSC_ITEM);
        }
}

// Whether a result belongs to a list of results; `key` is the caller's.
typedef bool (*belongs_fn)(const dsc_result_view *r, const char *key);

static bool has_cost(const dsc_result_view *r, const char *cost)
{
    const char *own = dsc_table_get_comment(&r->table, "cost");
    return own && !strcmp(own, cost);
}

static bool is_biased(const dsc_result_view *r, const char *unused)
{
    (void)unused;
    return dsc_was_chosen_here(r) && r->table.rows > 1;
}

static size_t count_those(const dsc_result_view *r, size_t n, belongs_fn belongs, const char *key)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += belongs(&r[i], key);
    return all;
}

// Ends an item: " (result 3)." or " (results 3, 4)."; the list is not empty.
static void end_item(dsc_page *p, const dsc_result_view *r, size_t n, belongs_fn belongs,
                     const char *key)
{
    const char *separator = count_those(r, n, belongs, key) == 1 ? " (result " : " (results ";
    for (size_t i = 0; i < n; i++)
        if (belongs(&r[i], key)) {
            dsc_say(p, "%s%zu", separator, i + 1);
            separator = ", ";
        }
    dsc_say(p, ").");
    dsc_close(p, DSC_ITEM);
}

// Lists each cost model once, with the results it priced.
static void put_costs(limitations *d, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *cost = dsc_table_get_comment(&r[i].table, "cost");
        if (!limitation_of_cost(&r[i]) || in_earlier(r, i, "cost", cost))
            continue;
        begin_item(d, 0);
        dsc_say(d->page, "Times come from the cost model %s, which %s", cost,
                limitation_of_cost(&r[i]));
        end_item(d->page, r, n, has_cost, cost);
    }
}

static void put_open_verdict(limitations *d, const dsc_table *t, size_t i, size_t number)
{
    static const char *const name[] = {"row", "where", "method", "rule", "parameters"};
    const char *note = dsc_text_at(t, i, "note");
    double predicted = dsc_number_at(t, i, "predicted"), other = dsc_number_at(t, i, "measured");
    other = isnan(other) ? dsc_number_at(t, i, "published") : other;
    begin_item(d, number);
    dsc_say(d->page, "%s: %s of", dsc_text_at(t, i, "verdict"), dsc_text_at(t, i, "quantity"));
    for (size_t k = 0; k < sizeof name / sizeof *name; k++)
        if (*dsc_text_at(t, i, name[k]))
            dsc_say(d->page, " %s", dsc_text_at(t, i, name[k]));
    if (!isnan(predicted) && !isnan(other))
        dsc_say(d->page, ", %.4g predicted and %.4g %s", predicted, other,
                dsc_table_find(t, "measured") >= 0 ? "measured" : "published");
    if (*note && strcmp(note, "-"))
        dsc_say(d->page, "; %s", note);
    dsc_say(d->page, ".");
    dsc_close(d->page, DSC_ITEM);
}

static void put_open_verdicts(limitations *d, const dsc_result_view *r, size_t number)
{
    enum { LISTED = 20 };
    static const bool is_open[VERDICTS + 1] = {
        [FAIL] = true, [UNPREDICTED] = true, [DISPUTED] = true, [SKIPPED] = true};
    size_t open = 0;
    for (size_t i = 0; r->kind == DSC_RESULT_VALIDATED && i < r->table.rows; i++)
        if (is_open[verdict_of(&r->table, i)] && ++open <= LISTED)
            put_open_verdict(d, &r->table, i, number);
    if (open <= LISTED)
        return;
    begin_item(d, number);
    dsc_say(d->page, "%zu more verdicts are not listed.", open - LISTED);
    dsc_close(d->page, DSC_ITEM);
}

// Lists the results whose best configuration was selected on the requests it is reported on.
static void put_chosen(limitations *d, const dsc_result_view *r, size_t n)
{
    if (!count_those(r, n, is_biased, NULL))
        return;
    begin_item(d, 0);
    dsc_say(d->page, "The best configuration was selected on the requests it is reported on, so "
                     "its result is optimistically biased");
    end_item(d->page, r, n, is_biased, NULL);
}

void dsc_put_limitations(dsc_page *p, const dsc_result_view *r, size_t n)
{
    limitations d = {.page = p};
    verdicts v = count_verdicts(r, n);
    put_costs(&d, r, n);
    put_chosen(&d, r, n);
    for (size_t i = 0; i < n; i++) {
        put_comments(&d, &r[i], i + 1);
        put_open_verdicts(&d, &r[i], i + 1);
    }
    if (!v.judged) {
        begin_item(&d, 0);
        dsc_say(p, "These predictions have not been validated against a live run (draftscope "
                   "validate).");
        dsc_close(p, DSC_ITEM);
    }
    if (d.any)
        dsc_close(p, DSC_LIST);
    else
        dsc_say_block(p, DSC_SOFT, "The tables indicate none.");
}

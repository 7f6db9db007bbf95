// SPDX-License-Identifier: Apache-2.0
// The summary of a tuning result as comment lines: search, sets, the best configuration, those not
// significantly worse, and the engine settings of the best.
#include "cli/tune/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 30 }; // test requests, below which percentile intervals are too narrow

int cli_tune_comment(dsc_table *t, dsc_error *err, const char *key, const char *tail,
                     const char *format, ...)
{
    char whole[96], text[1024];
    va_list args;
    snprintf(whole, sizeof whole, "%s%s", key, tail);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dsc_table_comment(t, whole, text, err);
}

// The end of a comment's key, which names the batch size where there are several.
static void price_tail(const dsc_tune *tune, size_t price, char tail[32])
{
    *tail = '\0';
    if (tune->options.prices > 1)
        snprintf(tail, 32, "_batch_%" PRId64, tune->options.price[price].batch);
}

// Describes the search, after the number of configurations.
static int search_words(dsc_buffer *b, dsc_search_kind kind, const dsc_tune_report *x,
                        dsc_error *err)
{
    const dsc_space *s = x->space;
    size_t at = x->search.at;
    int rc = DSC_OK;
    if (kind == DSC_SEARCH_COORDINATE) {
        at = 0;
        for (size_t a = 0; a < s->axes; a++)
            at = at * s->axis_count[a] + s->axis_start[a];
        rc = dsc_buffer_printf(b, err, ", %zu round%s from ", x->search.rounds,
                               x->search.rounds == 1 ? "" : "s");
    } else if (kind == DSC_SEARCH_GOLDEN && x->search.shape == DSC_SHAPE_DIP) {
        rc = dsc_buffer_puts(
            b, "; more than one peak, a better one may have been missed: a dip at ", err);
    } else if (kind == DSC_SEARCH_GOLDEN && x->search.shape == DSC_SHAPE_FLAT) {
        rc = dsc_buffer_puts(
            b, "; the objective is level there, the search chose the lower side: at ", err);
    } else {
        return DSC_OK;
    }
    const dsc_config c = dsc_space_at(s, at);
    return rc ? rc : dsc_space_words(b, s, &c, err);
}

static int describe_search(dsc_table *t, const dsc_tune *tune, const dsc_tune_report *x,
                           dsc_error *err)
{
    char key[64], tail[32];
    dsc_buffer how = {0};
    snprintf(key, sizeof key, "tried_%s", x->space->drafter->name);
    price_tail(tune, x->price, tail);
    int rc = search_words(&how, tune->options.search, x, err);
    if (!rc)
        rc = cli_tune_comment(t, err, key, tail, "%zu of %zu configurations%s", x->tried,
                              x->space->total, how.data ? how.data : "");
    dsc_buffer_fini(&how);
    return rc;
}

static int describe_all(dsc_table *t, const dsc_tune *tune, const cli_tune_naming *name,
                        dsc_error *err)
{
    int rc = cli_tune_comment(t, err, "objective", "", "%s, higher is better", name->objective);
    if (!rc && tune->options.split > 0)
        rc = cli_tune_comment(t, err, "split", "",
                              "selection set: %zu requests; test set: %zu others", tune->selection,
                              tune->test);
    else if (!rc)
        rc = cli_tune_comment(t, err, "split", "",
                              "none: selected and reported on the same %zu requests, so the result "
                              "of the best is optimistically biased",
                              tune->selection);
    rc = rc ?: dsc_table_comment(t, "search", name->search, err);
    for (size_t i = 0; i < tune->reports && !rc; i++)
        rc = describe_search(t, tune, &tune->report[i], err);
    if (!rc && tune->refused)
        rc = cli_tune_comment(t, err, "refused", "", "%zu combinations, the first: %s",
                              tune->refused, tune->why_refused);
    if (!rc)
        rc = cli_tune_comment(t, err, "resamples", "",
                              "%d Poisson bootstrap resamples of the test set, 95 %% intervals",
                              tune->options.resamples);
    if (!rc && tune->test < FEW)
        rc = cli_tune_comment(t, err, "note", "",
                              "with only %zu test requests the intervals are too narrow",
                              tune->test);
    return rc;
}

// The configurations that are not significantly worse than the best. Upper bounds do not count.
typedef struct alike {
    size_t others;   // all but the best
    size_t count;    // without the best
    size_t cheapest; // the one that drafts least
    size_t better;   // those significantly better on the test set
} alike;

static alike find_alike(const dsc_tune *tune, const dsc_standing *s)
{
    alike a = {0};
    for (size_t i = 1; i < tune->trials; i++) {
        if (dsc_trial_is_bound(&tune->trial[s[i].trial]))
            continue;
        a.others++;
        a.better += s[i].significant && s[i].ratio > 1;
        if (s[i].significant || isnan(s[i].test))
            continue;
        a.count++;
        const dsc_trial *x = &tune->trial[s[i].trial], *y = &tune->trial[s[a.cheapest].trial];
        double less = dsc_trial_drafted(x) - dsc_trial_drafted(y);
        if (less < 0 || (less == 0 && x->totals.draft_calls < y->totals.draft_calls))
            a.cheapest = i;
    }
    return a;
}

static int describe_alike(dsc_table *t, const dsc_tune *tune, const dsc_standing *s,
                          const char *tail, dsc_error *err)
{
    const alike a = find_alike(tune, s);
    const dsc_trial *cheapest = &tune->trial[s[a.cheapest].trial], *best = &tune->trial[s[0].trial];
    dsc_buffer name = {0};
    int rc = cli_tune_name(&name, cheapest, err);
    if (!rc && a.others)
        rc = cli_tune_comment(
            t, err, "not_significant", tail,
            "%zu of %zu other configurations are not significantly worse (95 %%, no "
            "correction for multiple tests)",
            a.count, a.others);
    if (!rc && a.better)
        rc = cli_tune_comment(t, err, "better", tail,
                              "%zu other configurations are significantly better on the test set",
                              a.better);
    if (!rc && a.cheapest)
        rc = cli_tune_comment(
            t, err, "cheapest", tail,
            "%s: drafts the fewest tokens of these, %.3f per output token (best: %.3f); "
            "%.4f on test",
            name.data, dsc_trial_drafted(cheapest), dsc_trial_drafted(best), s[a.cheapest].test);
    dsc_buffer_fini(&name);
    return rc;
}

// Adds the optimism of the selection: the lead of the best configuration over the mean of all, on
// the selection set and on the test set. A lead is not affected when one set has harder requests.
static int describe_optimism(dsc_table *t, const dsc_tune *tune, const dsc_standing *s,
                             const char *tail, dsc_error *err)
{
    double selection = 0, test = 0, n = 0;
    for (size_t i = 0; i < tune->trials; i++)
        if (!isnan(s[i].selection) && !isnan(s[i].test) &&
            !dsc_trial_is_bound(&tune->trial[s[i].trial])) {
            selection += s[i].selection;
            test += s[i].test;
            n++;
        }
    return cli_tune_comment(
        t, err, "optimism", tail,
        "%+.4f: %.4f on the selection set, %.4f on test; above the mean of all tried by "
        "%.2f %% on the selection set, %.2f %% on test",
        s[0].selection - s[0].test, s[0].selection, s[0].test,
        100 * (n * s[0].selection / selection - 1), 100 * (n * s[0].test / test - 1));
}

// The highest of the upper bounds, which are last in the ranking: what no method exceeds.
static int describe_bound(dsc_table *t, const dsc_tune *tune, const dsc_standing *s,
                          const char *tail, dsc_error *err)
{
    dsc_buffer name = {0};
    size_t i = 0;
    while (i < tune->trials && !dsc_trial_is_bound(&tune->trial[s[i].trial]))
        i++;
    if (i == tune->trials)
        return DSC_OK;
    int rc = cli_tune_name(&name, &tune->trial[s[i].trial], err);
    if (!rc)
        rc = cli_tune_comment(
            t, err, "upper_bound", tail, "%s: %.4f%s (95 %%: %.4f to %.4f); it cannot be run",
            name.data, s[i].test, tune->options.split > 0 ? " on test" : "", s[i].low, s[i].high);
    dsc_buffer_fini(&name);
    return rc;
}

static int describe_best(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                         dsc_error *err)
{
    char tail[32];
    dsc_buffer best = {0};
    price_tail(tune, price, tail);
    int rc = cli_tune_name(&best, &tune->trial[s[0].trial], err);
    if (!rc)
        rc = cli_tune_comment(t, err, "best", tail, "%s: %.4f%s (95 %%: %.4f to %.4f)", best.data,
                              s[0].test, tune->options.split > 0 ? " on test" : "", s[0].low,
                              s[0].high);
    dsc_buffer_fini(&best);
    if (!rc && tune->options.split > 0 && tune->trials > 1)
        rc = describe_optimism(t, tune, s, tail, err);
    rc = rc ?: describe_alike(t, tune, s, tail, err);
    return rc ? rc : describe_bound(t, tune, s, tail, err);
}

// --- the verdict --------------------------------------------------------------------------------

static int describe_verdict(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                            const cli_engine_use *use, const cli_verdict *v, dsc_error *err)
{
    char tail[32];
    dsc_buffer words = {0};
    price_tail(tune, price, tail);
    int rc = cli_tune_verdict_words(&words, tune, s, &v->own, err);
    rc = rc ?: cli_tune_comment(t, err, "verdict", tail, "%s", words.data);
    dsc_buffer_fini(&words);
    if (!rc && v->differs)
        rc = cli_tune_best_of_all(&words, tune, s, use, v, err);
    if (!rc && v->differs)
        rc = cli_tune_comment(t, err, "best_of_all_methods", tail, "%s", words.data);
    dsc_buffer_fini(&words);
    return rc;
}

const char *cli_tune_not_modeled(const dsc_cost *cost)
{
    return strcmp(cost->type->name, "roofline") == 0 // which refuses what does not fit
               ? "arrival of requests, queueing, other work of the server"
               : "arrival of requests, queueing, other work of the server, memory";
}

// What speaks against a prediction that looks certain, from facts of this search.
static int describe_caveats(dsc_table *t, const dsc_tune *tune, dsc_error *err)
{
    const dsc_cost *cost = tune->options.price[0].cost;
    int rc = DSC_OK;
    if (tune->options.objective == DSC_OBJECTIVE_BLOCK_EFFICIENCY)
        return DSC_OK;
    if (cost && cost->caveat)
        rc = cli_tune_comment(t, err, "caveat", "", "%s; draftscope live profile measures",
                              cost->caveat);
    return rc || !cost ? rc : dsc_table_comment(t, "not_modeled", cli_tune_not_modeled(cost), err);
}

int cli_tune_describe(dsc_table *t, const dsc_tune *tune, dsc_standing *const *standing,
                      const cli_tune_naming *name, const cli_engine_use *use, const cli_verdict *v,
                      dsc_error *err)
{
    int rc = describe_all(t, tune, name, err);
    for (size_t p = 0; p < tune->options.prices && !rc; p++)
        rc = describe_best(t, tune, p, standing[p], err);
    rc = rc ?: describe_caveats(t, tune, err);
    if (!rc && use)
        rc = dsc_table_comment(t, "engine", cli_engine_word[use->engine], err);
    for (size_t p = 0; p < tune->options.prices && !rc; p++)
        rc = describe_verdict(t, tune, p, standing[p], use, &v[p], err);
    return rc;
}

int cli_tune_describe_group(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                            const char *value, size_t number, int threads, dsc_error *err)
{
    char tail[64];
    dsc_advice a = {.kind = DSC_ADVICE_ABSTAIN};
    dsc_buffer words = {0};
    price_tail(tune, price, tail);
    snprintf(tail + strlen(tail), 24, "_%zu", number);
    int rc = DSC_OK;
    if (!tune->selection)
        rc = dsc_buffer_puts(
            &words, "no recommendation: the selection set has no request of this value", err);
    else
        rc = dsc_tune_advise(tune, price, s, NULL, NULL, threads, &a, err);
    if (!rc && tune->selection)
        rc = cli_tune_verdict_words(&words, tune, s, &a, err);
    if (!rc)
        rc =
            cli_tune_comment(t, err, "by_verdict", tail, "%.200s (%zu + %zu requests): %s%s", value,
                             tune->selection, tune->options.split > 0 ? tune->test : 0, words.data,
                             a.kind != DSC_ADVICE_ABSTAIN && tune->test < FEW
                                 ? "; with so few test requests the interval is too narrow"
                                 : "");
    dsc_buffer_fini(&words);
    return rc;
}

int cli_tune_comment_lines(dsc_table *t, const char *name, const char *lines, dsc_error *err)
{
    int rc = DSC_OK, number = 1;
    for (const char *p = lines; p && *p && !rc; p += strcspn(p, "\n") + 1) {
        char key[64], *line;
        rc = dsc_strndup(&line, p, strcspn(p, "\n"), err);
        snprintf(key, sizeof key, "%s_%d", name, number++);
        rc = rc ?: dsc_table_comment(t, key, line, err);
        free(line);
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// The summary of a tuning result as comment lines: search, sets, the best configuration, those not
// significantly worse, and the engine settings of the best.
#include "cli/tune/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int cli_tune_name(dsc_buffer *b, const dsc_trial *x, dsc_error *err)
{
    dsc_config c = dsc_space_at(x->space, x->point);
    int rc = dsc_buffer_printf(b, err, "%s ", x->space->drafter->name);
    return rc ? rc : dsc_space_words(b, x->space, &c, err);
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
    if (!rc)
        rc = dsc_table_comment(t, "search", name->search, err);
    for (size_t i = 0; i < tune->reports && !rc; i++)
        rc = describe_search(t, tune, &tune->report[i], err);
    if (!rc && tune->refused)
        rc = cli_tune_comment(t, err, "refused", "", "%zu combinations, the first: %s",
                              tune->refused, tune->why_refused);
    if (!rc)
        rc = cli_tune_comment(t, err, "resamples", "",
                              "%d Poisson bootstrap resamples of the test set, 95 %% intervals",
                              tune->options.resamples);
    if (!rc && tune->test < 30)
        rc = cli_tune_comment(t, err, "note", "",
                              "with only %zu test requests the intervals are too narrow",
                              tune->test);
    return rc;
}

// The configurations that are not significantly worse than the best.
typedef struct alike {
    size_t count;    // without the best
    size_t cheapest; // the one that drafts least
    size_t better;   // those significantly better on the test set
} alike;

static alike find_alike(const dsc_tune *tune, const dsc_standing *s)
{
    alike a = {0};
    for (size_t i = 1; i < tune->trials; i++) {
        a.better += s[i].significant && s[i].ratio > 1;
        if (s[i].significant || isnan(s[i].test))
            continue;
        a.count++;
        const dsc_trial *x = &tune->trial[s[i].trial], *y = &tune->trial[s[a.cheapest].trial];
        double less = dsc_trial_drafted(x) - dsc_trial_drafted(y);
        if (less < 0 || (less == 0 && x->draft_calls < y->draft_calls))
            a.cheapest = i;
    }
    return a;
}

static int describe_alike(dsc_table *t, const dsc_tune *tune, const dsc_standing *s,
                          const char *tail, dsc_error *err)
{
    size_t others = tune->trials - 1;
    const alike a = find_alike(tune, s);
    const dsc_trial *cheapest = &tune->trial[s[a.cheapest].trial], *best = &tune->trial[s[0].trial];
    dsc_buffer name = {0};
    int rc = cli_tune_name(&name, cheapest, err);
    if (!rc && others)
        rc = cli_tune_comment(
            t, err, "not_significant", tail,
            "%zu of %zu other configurations are not significantly worse (95 %%, no "
            "correction for multiple tests)",
            a.count, others);
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
        if (!isnan(s[i].selection) && !isnan(s[i].test)) {
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
    return rc ? rc : describe_alike(t, tune, s, tail, err);
}

// --- the verdict --------------------------------------------------------------------------------

// "draft-model num-speculative-tokens=3: 1.4211 times as fast as without speculation (...)"
static int verdict_words(dsc_buffer *b, const dsc_tune *tune, const dsc_standing *s,
                         const dsc_advice *a, dsc_error *err)
{
    dsc_buffer name = {0};
    int rc = cli_tune_name(&name, &tune->trial[s[a->standing].trial], err);
    if (!rc && a->kind == DSC_ADVICE_ON)
        rc = dsc_buffer_printf(b, err,
                               "run %s: %.4f times as fast as without speculation on held-out "
                               "requests (95 %%: %.4f to %.4f)",
                               name.data, a->speedup, a->low, a->high);
    else if (!rc && a->kind == DSC_ADVICE_OFF && a->speedup > 0)
        rc = dsc_buffer_printf(b, err,
                               "leave speculation off: %s is %.4f times as fast as without on "
                               "held-out requests (95 %%: %.4f to %.4f)",
                               name.data, a->speedup, a->low, a->high);
    else if (!rc && a->kind == DSC_ADVICE_OFF)
        rc = dsc_buffer_printf(b, err, "leave speculation off: %s", a->why);
    else if (!rc)
        rc = dsc_buffer_printf(b, err, "no recommendation: %s; best observed: %s", a->why,
                               name.data);
    dsc_buffer_fini(&name);
    return rc;
}

static int describe_verdict(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                            int threads, dsc_error *err)
{
    char tail[32];
    dsc_advice a;
    dsc_buffer words = {0};
    price_tail(tune, price, tail);
    int rc = dsc_tune_advise(tune, price, s, NULL, NULL, threads, &a, err);
    if (!rc)
        rc = verdict_words(&words, tune, s, &a, err);
    if (!rc)
        rc = cli_tune_comment(t, err, "verdict", tail, "%s", words.data);
    dsc_buffer_fini(&words);
    return rc;
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
    return rc ? rc
              : dsc_table_comment(t, "not_modeled",
                                  "arrival of requests, queueing, other work of the server, memory",
                                  err);
}

int cli_tune_describe(dsc_table *t, const dsc_tune *tune, dsc_standing *const *standing,
                      const cli_tune_naming *name, int threads, dsc_error *err)
{
    int rc = describe_all(t, tune, name, err);
    for (size_t p = 0; p < tune->options.prices && !rc; p++)
        rc = describe_best(t, tune, p, standing[p], err);
    if (!rc)
        rc = describe_caveats(t, tune, err);
    for (size_t p = 0; p < tune->options.prices && !rc; p++)
        rc = describe_verdict(t, tune, p, standing[p], threads, err);
    return rc;
}

// --- engine lines ------------------------------------------------------------------------------

bool cli_tune_engine_fits(const void *engine, const dsc_trial *x)
{
    const dsc_config config = dsc_space_at(x->space, x->point);
    return !cli_engine_lacks(*(const cli_engine *)engine, &config);
}

// Remarks that the engine lacks the best configuration.
static int remark_lack(dsc_buffer *out, const dsc_tune *tune, const dsc_standing *s,
                       cli_engine engine, const char *name, const dsc_advice *a, dsc_error *err)
{
    const dsc_trial *x = &tune->trial[s[0].trial];
    const dsc_config config = dsc_space_at(x->space, x->point);
    const char *lacks = cli_engine_lacks(engine, &config);
    if (!lacks)
        return DSC_OK;
    dsc_buffer best = {0};
    int rc = cli_tune_name(&best, x, err);
    if (!rc)
        rc = dsc_buffer_printf(out, err,
                               "# %s has no setting for the best, %s: %s; this is number %zu\n",
                               name, best.data, lacks, a->standing + 1);
    dsc_buffer_fini(&best);
    return rc;
}

// The verdict for one batch size as a choice, and remarks. Returns through *kept whether there is a
// choice at all.
static int engine_choice(dsc_buffer *out, const dsc_tune *tune, size_t price, const dsc_standing *s,
                         cli_engine engine, const char *name, int threads, dsc_config *config,
                         cli_engine_choice *choice, size_t *kept, dsc_error *err)
{
    dsc_advice a;
    dsc_buffer words = {0};
    int rc = dsc_tune_advise(tune, price, s, cli_tune_engine_fits, &engine, threads, &a, err);
    if (!rc)
        rc = remark_lack(out, tune, s, engine, name, &a, err);
    if (!rc)
        rc = verdict_words(&words, tune, s, &a, err);
    if (!rc)
        rc = dsc_buffer_printf(out, err, "# batch size %" PRId64 ": %s\n",
                               tune->options.price[price].batch, words.data);
    dsc_buffer_fini(&words);
    if (rc || a.kind == DSC_ADVICE_ABSTAIN)
        return rc;
    const dsc_trial *x = &tune->trial[s[a.standing].trial];
    *config = dsc_space_at(x->space, x->point);
    *choice = (cli_engine_choice){a.kind == DSC_ADVICE_ON ? config : NULL, x->rule,
                                  tune->options.price[price].batch};
    ++*kept;
    return DSC_OK;
}

int cli_tune_engine_lines(dsc_buffer *out, const dsc_tune *tune, dsc_standing *const *standing,
                          cli_engine engine, const cli_tune_naming *name, int threads,
                          dsc_error *err)
{
    dsc_config *config;
    cli_engine_choice *choice = NULL;
    size_t n = tune->options.prices, kept = 0;
    int rc = dsc_new(&config, n, err);
    if (!rc)
        rc = dsc_new(&choice, n, err);
    for (size_t p = 0; p < n && !rc; p++)
        rc = engine_choice(out, tune, p, standing[p], engine, name->engine, threads, &config[p],
                           &choice[kept], &kept, err);
    if (!rc)
        rc = cli_engine_lines(out, engine, choice, kept, err);
    free(config);
    free(choice);
    return rc;
}

// A comment for each line.
int cli_tune_comment_lines(dsc_table *t, const char *lines, dsc_error *err)
{
    int rc = DSC_OK, number = 1;
    for (const char *p = lines; p && *p && !rc; p += strcspn(p, "\n") + 1) {
        char key[32], *line;
        rc = dsc_strndup(&line, p, strcspn(p, "\n"), err);
        snprintf(key, sizeof key, "engine_line_%d", number++);
        if (!rc)
            rc = dsc_table_comment(t, key, line, err);
        free(line);
    }
    return rc;
}

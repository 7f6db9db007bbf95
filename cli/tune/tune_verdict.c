// SPDX-License-Identifier: Apache-2.0
// The verdict for each batch size, made once: on all methods and, for an engine, on what it has
// settings for; in words, as a table for a person, and as settings of the engine.
#include "cli/tune/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int cli_tune_ended(dsc_tune *found, int rc, bool *stopped, dsc_error *err)
{
    *stopped = rc == DSC_EINTERRUPT && found->trials > 1;
    if (*stopped)
        dsc_tune_hurry(found);
    else if (rc == DSC_EINTERRUPT)
        dsc_fail(err, rc, "interrupted before a configuration was finished: nothing was written");
    return *stopped ? DSC_OK : rc;
}

// --- making it ----------------------------------------------------------------------------------

static bool fits(const void *use, const dsc_trial *x)
{
    const dsc_config config = dsc_space_at(x->space, x->point);
    return !cli_engine_lacks(use, &config, x->rule);
}

static int judge(const dsc_tune *tune, size_t price, const dsc_standing *s,
                 const cli_engine_use *use, int threads, cli_verdict *out, dsc_error *err)
{
    int rc = dsc_tune_advise(tune, price, s, NULL, NULL, threads, &out->all, err);
    out->own = out->all;
    // The best of all, if it was judged, is also the best that the engine has.
    const bool judged = out->all.speedup > 0;
    if (rc || !use || (judged && fits(use, &tune->trial[s[out->all.standing].trial])))
        return rc;
    rc = dsc_tune_advise(tune, price, s, fits, use, threads, &out->own, err);
    out->differs = judged;
    return rc;
}

int cli_tune_judge(cli_verdict **out, const dsc_tune *tune, dsc_standing *const *standing,
                   const cli_engine_use *use, int threads, dsc_error *err)
{
    int rc = dsc_new(out, tune->options.prices, err);
    for (size_t p = 0; p < tune->options.prices && !rc; p++)
        rc = judge(tune, p, standing[p], use, threads, &(*out)[p], err);
    return rc;
}

// --- in words -----------------------------------------------------------------------------------

int cli_tune_verdict_words(dsc_buffer *b, const dsc_tune *tune, const dsc_standing *s,
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
    if (!rc && a->cost_low > 0)
        rc = dsc_buffer_printf(
            b, err, "; %.4f to %.4f within the quartiles of the measured times%s", a->cost_low,
            a->cost_high, a->caveat ? ", where the verdict changes" : "");
    dsc_buffer_fini(&name);
    return rc;
}

// "suffix num-speculative-tokens=16: 1.9300 times as fast (95 %: 1.8000 to 2.1000); vllm ...".
int cli_tune_best_of_all(dsc_buffer *b, const dsc_tune *tune, const dsc_standing *s,
                         const cli_engine_use *use, const cli_verdict *v, dsc_error *err)
{
    const dsc_trial *x = &tune->trial[s[v->all.standing].trial];
    const dsc_config config = dsc_space_at(x->space, x->point);
    dsc_buffer name = {0};
    int rc = cli_tune_name(&name, x, err);
    if (!rc)
        rc = dsc_buffer_printf(
            b, err,
            "%s: %.4f times as fast as without speculation (95 %%: %.4f to %.4f); %s has "
            "no setting for it: %s",
            name.data, v->all.speedup, v->all.low, v->all.high, cli_engine_word[use->engine],
            cli_engine_lacks(use, &config, x->rule));
    dsc_buffer_fini(&name);
    return rc;
}

// --- a table for a person -----------------------------------------------------------------------

// "   8  1.62      1.45 to 1.89      run ngram ..."; `head`: the batch size, or nothing.
static int print_row(const dsc_tune *tune, const dsc_standing *s, const char *head,
                     const char *note, const dsc_advice *a, dsc_error *err)
{
    static const char *const verb[] = {[DSC_ADVICE_ABSTAIN] = "no verdict: ",
                                       [DSC_ADVICE_OFF] = "leave speculation off: ",
                                       [DSC_ADVICE_ON] = "run "};
    dsc_buffer name = {0};
    char speedup[32] = "-", interval[64] = "-";
    int rc = cli_tune_name(&name, &tune->trial[s[a->standing].trial], err);
    if (!rc && a->speedup > 0) {
        snprintf(speedup, sizeof speedup, "%.2f", a->speedup);
        snprintf(interval, sizeof interval, "%.2f to %.2f", a->low, a->high);
    }
    const bool named = a->kind == DSC_ADVICE_ON || a->speedup > 0;
    if (!rc)
        printf("%8s  %-7s  %-14s  %s%s%s\n", head, speedup, interval, note ? note : verb[a->kind],
               named ? name.data : a->why, note ? ")" : "");
    if (!rc && a->cost_low > 0)
        printf("%8s  %-7s  %.2f to %-6.2f  %s\n", "", "", a->cost_low, a->cost_high,
               a->caveat ? a->caveat : "within the quartiles of the measured times");
    dsc_buffer_fini(&name);
    return rc;
}

int cli_tune_print_verdicts(const dsc_tune *tune, dsc_standing *const *standing,
                            const cli_verdict *v, const cli_engine_use *use, dsc_error *err)
{
    int rc = DSC_OK;
    char note[96];
    if (use)
        snprintf(note, sizeof note,
                 "(best of all, no setting of %s: ", cli_engine_word[use->engine]);
    printf("%8s  %-7s  %-14s  %s\n", "batch", "speedup", "95 % interval", "verdict");
    for (size_t p = 0; p < tune->options.prices && !rc; p++) {
        char batch[32];
        snprintf(batch, sizeof batch, "%" PRId64, tune->options.price[p].batch);
        rc = print_row(tune, standing[p], batch, NULL, &v[p].own, err);
        if (!rc && v[p].differs)
            rc = print_row(tune, standing[p], "", note, &v[p].all, err);
    }
    return rc;
}

// --- settings of an engine ----------------------------------------------------------------------

// The verdict for one batch size as remarks and, unless there is none, as a choice.
static int engine_choice(dsc_buffer *out, const dsc_tune *tune, size_t price, const dsc_standing *s,
                         const cli_engine_use *use, const cli_verdict *v, dsc_config *config,
                         cli_engine_choice *choice, size_t *kept, dsc_error *err)
{
    dsc_buffer words = {0};
    int rc = DSC_OK;
    const int64_t batch = tune->options.price[price].batch;
    if (v->differs)
        rc = cli_tune_best_of_all(&words, tune, s, use, v, err);
    if (!rc && v->differs)
        rc = dsc_buffer_printf(out, err, "# best of all methods: %s; this is number %zu\n",
                               words.data, v->own.standing + 1);
    dsc_buffer_fini(&words);
    rc = rc ?: cli_tune_verdict_words(&words, tune, s, &v->own, err);
    rc = rc ?: dsc_buffer_printf(out, err, "# batch size %" PRId64 ": %s\n", batch, words.data);
    dsc_buffer_fini(&words);
    if (rc || v->own.kind == DSC_ADVICE_ABSTAIN)
        return rc;
    const dsc_trial *x = &tune->trial[s[v->own.standing].trial];
    *config = dsc_space_at(x->space, x->point);
    *choice = (cli_engine_choice){v->own.kind == DSC_ADVICE_ON ? config : NULL, x->rule, batch};
    ++*kept;
    return DSC_OK;
}

int cli_tune_engine_lines(dsc_buffer *out, const dsc_tune *tune, dsc_standing *const *standing,
                          const cli_engine_use *use, const cli_verdict *v, dsc_error *err)
{
    dsc_config *config;
    cli_engine_choice *choice = NULL;
    size_t n = tune->options.prices, kept = 0;
    int rc = dsc_new(&config, n, err);
    rc = rc ?: dsc_new(&choice, n, err);
    for (size_t p = 0; p < n && !rc; p++)
        rc = engine_choice(out, tune, p, standing[p], use, &v[p], &config[p], &choice[kept], &kept,
                           err);
    rc = rc ?: cli_engine_lines(out, use, choice, kept, err);
    free(config);
    free(choice);
    return rc;
}

int cli_tune_acceptance_lines(dsc_buffer *out, const dsc_tune *tune, dsc_standing *const *standing,
                              const cli_verdict *v, cli_acceptance kind, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t p = 0; p < tune->options.prices && !rc; p++) {
        const dsc_trial *x = &tune->trial[standing[p][v[p].own.standing].trial];
        const dsc_config config = dsc_space_at(x->space, x->point);
        dsc_buffer name = {0};
        rc = cli_tune_name(&name, x, err);
        if (!rc)
            rc = dsc_buffer_printf(out, err, "# batch size %" PRId64 ", acceptance of %s\n",
                                   tune->options.price[p].batch, name.data);
        if (!rc)
            rc = cli_tune_acceptance(out, kind, &x->totals.metrics, dsc_config_limit(&config), err);
        dsc_buffer_fini(&name);
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// The command line with which draftscope advise simulates a server under load: the best
// configurations of its search, so that a few are served instead of all.
#include "cli/advise/advise_load.h"
#include "sim/serve/serve_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void cli_words_fini(cli_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->word[i]);
    free(w->word);
    *w = (cli_words){0};
}

int cli_words_add(cli_words *w, const char *text, dsc_error *err)
{
    int rc = dsc_resize(&w->word, &w->capacity, w->count + 1, err);
    rc = rc ?: dsc_strndup(&w->word[w->count], text, strlen(text), err);
    w->count += !rc;
    return rc;
}

static int add_option(cli_words *w, const char *option, const char *value, dsc_error *err)
{
    int rc = value ? cli_words_add(w, option, err) : DSC_OK;
    return rc || !value ? rc : cli_words_add(w, value, err);
}

// --- options -------------------------------------------------------------------------------------

static int add_engine(cli_words *w, const cli_engine_use *use, dsc_error *err)
{
    static const dsc_option kind = CLI_OPTION_DRAFT_KIND;
    char text[32];
    dsc_option_text(&kind, use->kind, text, sizeof text);
    int rc = add_option(w, "--engine", cli_engine_word[use->engine], err);
    return rc ? rc : add_option(w, "--draft-kind", text, err);
}

int cli_advise_load_options(cli_words *w, const cli_advise_load *load, const cli_call *call,
                            dsc_error *err)
{
    static const char *const progress[] = {"auto", "never", "json"};
    char seed[24], threads[24];
    snprintf(seed, sizeof seed, "%" PRIu64, call->seed);
    snprintf(threads, sizeof threads, "%d", call->threads);
    const char *const pair[][2] = {{"--cost", load->cost}, {"--prefill-time", load->prefill_time},
                                   {"--slo", load->slo},   {"--seed", call->seed ? seed : NULL},
                                   {"--threads", threads}, {"--progress", progress[call->progress]},
                                   {"-o", load->output}};
    int rc =
        load->arrivals_count ? DSC_OK : add_option(w, "--arrivals", "recorded:x0.5,x1,x2,x4", err);
    for (size_t i = 0; i < load->arrivals_count && !rc; i++)
        rc = add_option(w, "--arrivals", load->arrivals[i], err);
    for (size_t i = 0; i < sizeof pair / sizeof *pair && !rc; i++)
        rc = add_option(w, pair[i][0], pair[i][1], err);
    return rc || !load->use ? rc : add_engine(w, load->use, err);
}

// --- methods -------------------------------------------------------------------------------------

static bool fits(const cli_engine_use *use, const dsc_trial *x)
{
    const dsc_config config = dsc_space_at(x->space, x->point);
    return !use || !cli_engine_lacks(use, &config, x->rule);
}

// The best configuration of a method at a batch size, or NULL: of those that the engine has, or
// else of all.
static const dsc_trial *best_of(const dsc_tune *t, const dsc_standing *s, const dsc_space *space,
                                const cli_engine_use *use)
{
    const dsc_trial *best = NULL;
    for (size_t i = 0; i < t->trials; i++) {
        const dsc_trial *x = &t->trial[s[i].trial];
        if (x->space != space || dsc_trial_is_bound(x))
            continue;
        if (fits(use, x))
            return x;
        best = best ? best : x;
    }
    return best;
}

static bool is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, word, n) && (!p[n] || p[n] == ','))
            return true;
    return false;
}

// Appends the value of option `o` unless the list has it.
static int add_value(dsc_buffer *list, const dsc_trial *x, size_t o, dsc_error *err)
{
    const dsc_config c = dsc_space_at(x->space, x->point);
    const dsc_option *option = &x->space->drafter->option[o];
    char text[DSC_NUMBER_TEXT > 64 ? DSC_NUMBER_TEXT : 64];
    const char *value = text;
    if (option->kind == DSC_OPTION_TEXT)
        value = c.text[o];
    else if (option->kind == DSC_OPTION_REAL)
        dsc_number_text(c.real[o], text);
    else
        dsc_option_text(option, c.parameter[o], text, sizeof text);
    if (list->length && is_listed(list->data, value))
        return DSC_OK;
    return dsc_buffer_printf(list, err, "%s%s", list->length ? "," : "", value);
}

// The values of every option that the search varied, for the best of each batch size.
static int add_values(cli_words *w, const dsc_tune *t, dsc_standing *const *standing,
                      const dsc_space *space, const cli_engine_use *use, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < space->stated_count && !rc; i++) {
        const size_t o = space->stated[i];
        dsc_buffer list = {0}, name = {0};
        for (size_t p = 0; p < t->options.prices && !rc; p++)
            rc = add_value(&list, best_of(t, standing[p], space, use), o, err);
        if (!rc)
            rc = dsc_buffer_printf(&name, err, "--%s.%s", space->drafter->name,
                                   space->drafter->option[o].name);
        rc = rc ?: add_option(w, name.data, list.data, err);
        dsc_buffer_fini(&name);
        dsc_buffer_fini(&list);
    }
    return rc;
}

// Whether a server can use the method on this trace; if not, a note says why.
static bool can_be_served(const dsc_trace *trace, const dsc_trial *x, const cli_call *call)
{
    dsc_error why = {0};
    dsc_serve_source source = {0};
    dsc_config config = dsc_space_at(x->space, x->point);
    int rc = dsc_config_prepare(&config, &why);
    if (!rc) {
        rc = dsc_serve_source_trace(&source, trace, &config, x->rule, call->seed, call->threads,
                                    &why);
        dsc_serve_source_fini(&source);
    }
    dsc_config_fini(&config);
    if (rc)
        fprintf(stderr, "draftscope: note: not served under load: %s\n", why.message);
    return !rc;
}

int cli_advise_load_methods(cli_words *w, size_t *served, const dsc_trace *trace,
                            const dsc_tune *found, dsc_standing *const *standing,
                            const cli_engine_use *use, const cli_call *call, dsc_error *err)
{
    dsc_buffer names = {0};
    const dsc_space *last = NULL;
    int rc = dsc_buffer_puts(&names, dsc_drafter_none.name, err);
    *served = 0;
    for (size_t i = 0; i < found->trials && !rc; i++) {
        const dsc_space *space = found->trial[i].space;
        const dsc_trial *best = space == last ? NULL : best_of(found, standing[0], space, use);
        last = space; // the trials of a method follow each other
        if (!best || space->drafter == &dsc_drafter_none || !can_be_served(trace, best, call))
            continue;
        ++*served;
        rc = dsc_buffer_printf(&names, err, ",%s", space->drafter->name);
        rc = rc ?: add_values(w, found, standing, space, use, err);
    }
    rc = rc ?: add_option(w, "--method", names.data, err);
    dsc_buffer_fini(&names);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Prices a full step with sim/cost/price.h, as every other run: the loop counts the passes of a
// synthetic pair whose drafts are all accepted (sim/model/model_iid.h, rate 1), and each pass of
// the target gets the most tokens that the method may verify. Nothing is timed here.
#include "live/program/step_price.h"

#include "sim/cost/cost_types.h"
#include "sim/model/model_iid.h"
#include "sim/model/model_synthetic.h"
#include "theory/block.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1024, STEPS = 16 }; // of the synthetic pair's output
enum { LONGEST_TEXT = 24 };              // of a parameter that is printed

int live_cost_open(dsc_cost *out, const char *text, dsc_error *err)
{
    static const dsc_cost_type *const types[] = {&dsc_cost_table, &dsc_cost_linear, NULL};
    return dsc_cost_open(out, types, "table:FILE (draftscope live profile writes it) or linear:...",
                         text, err);
}

// --- a synthetic pair ----------------------------------------------------------------------------

typedef struct pair {
    dsc_language *language[DSC_SIDES];
    dsc_model_synthetic model[DSC_SIDES];
    int32_t *prompt;
    dsc_loop loop;
    dsc_arena arena;
} pair;

static void pair_fini(pair *p)
{
    for (int s = 0; s < DSC_SIDES; s++) {
        dsc_model_synthetic_fini(&p->model[s]);
        if (p->language[s])
            p->language[s]->type->free(p->language[s]);
    }
    free(p->prompt);
    dsc_loop_fini(&p->loop);
    dsc_arena_fini(&p->arena);
}

static int pair_begin(pair *p, const dsc_drafter_type *d, int64_t prompt, int64_t limit,
                      dsc_error *err)
{
    double rate = 1;
    const dsc_acceptance_rates all = {.conditional_rate = &rate, .positions = 1, .later = rate};
    int rc = dsc_new(&p->prompt, (size_t)prompt, err);
    for (int64_t i = 0; i < prompt && !rc; i++)
        p->prompt[i] = (int32_t)(i % DSC_IID_VOCAB);
    for (int s = 0; s < DSC_SIDES && !rc; s++) {
        rc = dsc_iid_new(&p->language[s], &all, (dsc_model_side)s, err);
        if (!rc)
            rc = dsc_model_synthetic_begin(&p->model[s], p->language[s],
                                           (dsc_token_view){p->prompt, prompt}, limit, 1, err);
    }
    return !rc && d->needs_marginals ? dsc_model_synthetic_parallel(&p->model[DSC_SIDE_DRAFT], err)
                                     : rc;
}

// Counts the steps of the method on the pair.
static int count_steps(dsc_counts *counts, const live_run *run, int64_t prompt, dsc_error *err)
{
    pair p = {0};
    const int64_t most = STEPS * (dsc_config_limit(run->config) + 1);
    int64_t limit = most < MOST_TOKENS ? most : MOST_TOKENS;
    limit = run->max_tokens < limit ? run->max_tokens : limit;
    int rc = pair_begin(&p, run->config->drafter, prompt, limit, err);
    const dsc_models models = {.target = &p.model[DSC_SIDE_TARGET].base,
                               .draft = &p.model[DSC_SIDE_DRAFT].base};
    const dsc_request request = {.prompt = {p.prompt, prompt}};
    const dsc_loop_input in = {.config = run->config,
                               .rule = run->rule,
                               .kind = run->kind,
                               .models = &models,
                               .request = &request,
                               .arena = &p.arena};
    if (!rc)
        rc = dsc_loop_run(&p.loop, &in, counts, err);
    pair_fini(&p);
    return rc;
}

// --- a price -------------------------------------------------------------------------------------

// Chains of a draft model are full as they are: their length may have no limit but the text.
static bool is_full(const dsc_drafter_type *d)
{
    return d->parallel || (d->needs_draft && !d->width);
}

// The most tokens in a pass; where widths are not counted, their mean.
static int64_t widest(const dsc_counts *c)
{
    int64_t width = c->width_length;
    if (!width)
        return (c->target_call_tokens + c->target_calls - 1) / c->target_calls;
    while (width > 1 && !c->width[width - 1])
        width--;
    return width;
}

// Makes each pass of the target as wide as the method allows.
static void widen(dsc_counts *c, int64_t width)
{
    for (int64_t w = 0; w < c->width_length; w++)
        c->width[w] = w + 1 == width ? c->target_calls : 0;
    c->target_call_tokens = c->target_calls * width;
}

// The mean time of a step in passes of plain decoding.
static int step_cost(double *out, const dsc_cost *cost, const dsc_counts *c, dsc_error *err)
{
    dsc_price price;
    int rc = dsc_price_run(&price, cost, c, 1, err);
    if (!rc)
        *out = price.time_s / (double)c->target_calls / (price.plain_s / (double)c->output_tokens);
    return rc;
}

// The rate at which drafts of a fixed length emit as many tokens as a step costs.
static double break_even(const dsc_config *config, const live_step_price *p)
{
    const bool chain = config->drafter->replay == DSC_DRAFT_REPLAY_CHAIN && p->most > 1;
    const double accepted = p->cost - 1;
    return !chain                           ? (double)NAN
           : accepted > (double)p->most - 1 ? INFINITY
                                            : dsc_iid_rate(fmax(accepted, 0), (int)p->most - 1);
}

int live_step_price_of(live_step_price *out, const dsc_cost *cost, const live_run *run,
                       int64_t prompt, dsc_error *err)
{
    const dsc_config *config = run->config;
    const dsc_drafter_type *d = config->drafter;
    dsc_counts counts;
    if (d->needs_middle)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: it covers a target and a draft model; method %s has a third",
                        d->name);
    int rc = live_run_counts(run, &counts, err);
    if (rc)
        return rc;
    rc = count_steps(&counts, run, prompt > 1 ? prompt : 1, err);
    *out = (live_step_price){
        .width = dsc_config_width(config), .most = dsc_config_limit(config) + 1, .least = 0};
    if (!rc && !d->needs_draft)
        rc = step_cost(&out->least, cost, &counts, err);
    if (!rc && is_full(d)) {
        out->width = widest(&counts);
        out->most = out->most < out->width ? out->most : out->width;
    } else if (!rc) {
        widen(&counts, out->width);
    }
    if (!rc)
        rc = step_cost(&out->cost, cost, &counts, err);
    if (!rc) {
        out->draft_calls = (double)counts.draft_calls / (double)counts.target_calls;
        out->rate = break_even(config, out);
    }
    free(counts.histogram);
    return rc;
}

// --- text ----------------------------------------------------------------------------------------

// "window=15 level=5 guesses=15": the numbers of a configuration, and short texts.
static void parameters_text(const dsc_config *config, char *out, size_t size)
{
    const dsc_drafter_type *d = config->drafter;
    size_t at = 0;
    *out = '\0';
    for (size_t o = 0; o < d->option_count && at < size; o++) {
        const char *text = d->option[o].kind == DSC_OPTION_TEXT ? config->text[o] : NULL;
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, config->parameter[o]);
        if (d->option[o].kind == DSC_OPTION_INT || (text && strlen(text) <= LONGEST_TEXT))
            at += (size_t)snprintf(out + at, size - at, "%s%s=%s", at ? " " : "", d->option[o].name,
                                   text ? text : number);
    }
}

void live_step_price_text(const live_step_price *p, const dsc_config *config, const char *cost,
                          char *out, size_t size)
{
    char parameters[200], drafts[80] = "", pays[200], rate[80] = "";
    parameters_text(config, parameters, sizeof parameters);
    if (p->draft_calls > 0)
        snprintf(drafts, sizeof drafts, ", %.3g pass%s of the draft model", p->draft_calls,
                 p->draft_calls == 1 ? "" : "es");
    if (p->rate <= 1)
        snprintf(rate, sizeof rate, ", an i.i.d. acceptance rate of %.2f", p->rate);
    if (p->cost < (double)p->most)
        snprintf(pays, sizeof pays, "it pays only above %.2f tokens per step%s", p->cost, rate);
    else
        snprintf(pays, sizeof pays,
                 "%s pays, whatever is accepted, because it emits at most %" PRId64
                 " tokens; choose smaller sizes or no speculation",
                 p->least < (double)p->most ? "no full step" : "no step", p->most);
    snprintf(out, size,
             "a full step of %s%s%s (up to %" PRId64
             " tokens in the target's pass%s) costs %.2f plain tokens on %s: %s",
             config->drafter->name, *parameters ? " with " : "", parameters, p->width, drafts,
             p->cost, cost, pays);
}

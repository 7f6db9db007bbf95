// SPDX-License-Identifier: Apache-2.0
// The requests of draftscope serve with the drafts of every configuration: from a trace, a result
// table with acceptance rates, or an i.i.d. pair of models; and the arrival times of a trace.
#include "base/columns.h"
#include "base/file.h"
#include "cli/serve/serve.h"
#include "sim/model/model_spec.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIGURATIONS = 4096 };

// --- acceptance rates ----------------------------------------------------------------------------

// The rates of a model or a table.
typedef struct rates {
    const char *name;             // of --target or of the table
    dsc_language *target, *draft; // of --target, or NULL
    dsc_table table;
    const dsc_cell *list; // of the table, or NULL
    int32_t output;       // tokens of a request
} rates;

static void rates_fini(rates *r)
{
    dsc_language_free(r->target);
    dsc_language_free(r->draft);
    dsc_table_fini(&r->table);
}

// The draft's probability of the target's only token, after d drafted tokens.
static void rates_of_model(void *user, int64_t request, int32_t length, double *rate)
{
    const rates *r = user;
    for (int32_t d = 0; d < length; d++) {
        const dsc_place at = {.position = d, .depth = d, .request = request};
        dsc_dist dist;
        r->draft->type->dist(r->draft, &at, &dist);
        rate[d] = dsc_dist_probability(&dist, r->target->type->best(r->target, &at));
    }
}

static void rates_of_table(void *user, int64_t request, int32_t length, double *rate)
{
    const rates *r = user;
    (void)request;
    for (int32_t d = 0; d < length; d++)
        rate[d] = fmin(fmax(dsc_cell_element(r->list, d), 0), 1);
}

static int open_model(rates *r, const char *spec, dsc_error *err)
{
    r->name = spec;
    if (strncmp(spec, "iid:", 4))
        return dsc_fail(err, DSC_EUSAGE,
                        "--target: serve takes iid:ALPHA; for '%.60s', draftscope trace synth "
                        "makes a trace to serve",
                        spec);
    int rc = dsc_language_make(&r->target, spec, DSC_SIDE_TARGET, NULL, err);
    return rc ? rc : dsc_language_make(&r->draft, spec, DSC_SIDE_DRAFT, NULL, err);
}

static int open_table(rates *r, const char *path, dsc_error *err)
{
    r->name = path;
    int rc = dsc_table_read(&r->table, path, err);
    if (rc)
        return rc;
    const int list = dsc_table_find(&r->table, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE),
              requests = dsc_table_find(&r->table, DSC_COL_REQUESTS),
              tokens = dsc_table_find(&r->table, DSC_COL_OUTPUT_TOKENS);
    if (r->table.rows != 1 || list < 0 || r->table.column[list].type != DSC_CELL_LIST)
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: totals to serve are one row with a list " DSC_COL_CONDITIONAL_ACCEPTANCE_RATE
            " of at least two rates, as draftscope sim --json prints it; the file has "
            "%zu rows",
            path, r->table.rows);
    r->list = dsc_table_at(&r->table, 0, (size_t)list);
    for (int64_t i = 0; i < r->list->i; i++)
        if (!(dsc_cell_element(r->list, i) >= 0 && dsc_cell_element(r->list, i) <= 1))
            return dsc_fail(err, DSC_EINPUT, "%s: acceptance rate %" PRId64 " is not in [0, 1]",
                            path, i + 1);
    if (requests < 0 || tokens < 0)
        return DSC_OK;
    const double mean = dsc_table_real(&r->table, 0, (size_t)tokens) /
                        dsc_table_real(&r->table, 0, (size_t)requests);
    if (mean >= 1 && mean <= INT32_MAX / 4)
        r->output = (int32_t)(mean + 0.5);
    return DSC_OK;
}

static int draw(cli_serve_method *m, rates *r, const cli_call *call, int64_t requests,
                dsc_error *err)
{
    const dsc_drafter_type *d = m->config.drafter;
    const bool drafts = d == &dsc_drafter_draft_model;
    const int64_t limit = drafts ? dsc_config_limit(&m->config) : 0;
    if (!drafts && d != &dsc_drafter_none)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s needs the tokens of a trace; with %.60s, serve takes "
                        "draft-model, whose draft tokens are accepted at the given rates",
                        d->name, r->name);
    if (r->list && limit > r->list->i)
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-speculative-tokens %" PRId64
                        ": %.200s has acceptance rates of %" PRId64 " positions",
                        limit, r->name, r->list->i);
    if (limit > DSC_SERVE_LONGEST)
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-speculative-tokens %" PRId64
                        ": a served draft has at most %d tokens",
                        limit, DSC_SERVE_LONGEST);
    const bool own_length = r->output && !call->value[SERVE_MAX_TOKENS].given;
    const dsc_serve_rates synthetic = {
        .requests = requests,
        .prompt = (int32_t)call->value[SERVE_PROMPT_TOKENS].integer,
        .output = own_length ? r->output : (int32_t)call->value[SERVE_MAX_TOKENS].integer,
        .length = (int32_t)limit,
        .rates = r->list ? rates_of_table : rates_of_model,
        .user = r,
        .seed = call->seed};
    return dsc_serve_source_rates(&m->source, &synthetic,
                                  drafts ? DSC_SERVE_DRAFT_EACH : DSC_SERVE_DRAFT_FREE, err);
}

// --- arrivals of a trace -------------------------------------------------------------------------

typedef struct moment {
    double at;
    size_t item;
} moment;

static int by_time(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int read_arrival(void *context, const dsc_request *q, dsc_error *err)
{
    double *at = context;
    json_t *metadata =
        json_loadb(q->metadata.bytes ? q->metadata.bytes : "", (size_t)q->metadata.length, 0, NULL);
    const json_t *value = json_object_get(metadata, "arrival_s");
    const bool number = json_is_number(value);
    at[q->index] = json_number_value(value);
    json_decref(metadata);
    return number && isfinite(at[q->index])
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "--arrivals recorded: request %" PRId64
                          " has no number arrival_s in its metadata; --arrivals file:CSV or "
                          "poisson:QPS needs none",
                          q->index);
}

// The requests that are served, by the time of their arrival, the first at 0.
static int read_arrivals(cli_serve_methods *m, const dsc_trace *trace, dsc_error *err)
{
    const dsc_serve_source *s = &m->method[0].source;
    double *at = NULL;
    moment *all = NULL;
    if (!trace)
        return dsc_fail(err, DSC_EUSAGE, "--arrivals recorded needs a trace with arrival_s");
    int rc = dsc_new(&at, (size_t)dsc_trace_get_info(trace)->requests, err);
    if (!rc)
        rc = dsc_trace_each(trace, read_arrival, at, err);
    if (!rc)
        rc = dsc_new(&all, s->count, err);
    if (!rc)
        rc = dsc_new(&m->time, s->count, err);
    if (!rc)
        rc = dsc_new(&m->order, s->count, err);
    for (size_t i = 0; i < s->count && !rc; i++)
        all[i] = (moment){at[s->request[i]], i};
    if (!rc)
        qsort(all, s->count, sizeof *all, by_time);
    for (size_t i = 0; i < s->count && !rc; i++) {
        m->time[i] = all[i].at - all[0].at;
        m->order[i] = all[i].item;
    }
    m->times = rc ? 0 : s->count;
    free(all);
    free(at);
    return rc;
}

static int sort_items(cli_serve_methods *m, cli_serve_method *x, dsc_error *err)
{
    if (x->source.count != m->times)
        return dsc_fail(err, DSC_EUSAGE,
                        "--arrivals recorded: method %s replays %zu requests and none %zu; their "
                        "arrivals would differ",
                        x->config.drafter->name, x->source.count, m->times);
    int rc = dsc_new(&x->arriving, m->times, err);
    for (size_t i = 0; i < m->times && !rc; i++)
        x->arriving[i] = x->source.item[m->order[i]];
    x->order = m->order;
    return rc;
}

// --- methods -------------------------------------------------------------------------------------

// The grids outlive the configurations, whose texts they own.
static int add_drafter(cli_serve_methods *m, const dsc_drafter_type *d,
                       const dsc_option_value *value, dsc_error *err)
{
    dsc_grid *grid = &m->grid[m->drafters];
    int rc = dsc_grid_init(grid, d, &dsc_verifier_greedy, value, err);
    if (rc)
        return rc;
    m->drafter[m->drafters++] = d;
    if (m->count + grid->total > MOST_CONFIGURATIONS)
        return dsc_fail(err, DSC_EUSAGE, "serve takes at most %d configurations in one run",
                        MOST_CONFIGURATIONS);
    rc = dsc_resize(&m->method, &m->capacity, m->count + grid->total, err);
    for (size_t c = 0; c < grid->total && !rc; c++) {
        cli_serve_method *x = &m->method[m->count++];
        *x = (cli_serve_method){0};
        rc = dsc_grid_configs(grid, c, 1, &x->config, err);
    }
    return rc;
}

static int add_all(cli_serve_methods *m, const cli_call *call, dsc_error *err)
{
    static const dsc_option_value defaults[DSC_MAX_PARAMETERS] = {0};
    int rc = add_drafter(m, &dsc_drafter_none, defaults, err);
    for (size_t i = 0; i < call->methods && !rc; i++)
        if (call->method[i] != &dsc_drafter_none)
            rc = add_drafter(m, call->method[i], call->list[i], err);
    return rc;
}

// The rule of a configuration: that of the one before it where both are of one method, so that a
// note on the choice of the rule is printed once.
static const dsc_verifier_type *rule_of(const cli_serve_methods *m, size_t i,
                                        const cli_simulation *s, const cli_call *call,
                                        dsc_error *err)
{
    const dsc_drafter_type *d = m->method[i].config.drafter;
    if (d == &dsc_drafter_none)
        return &dsc_verifier_greedy;
    return m->method[i - 1].config.drafter == d
               ? m->method[i - 1].rule
               : cli_simulation_rule(s, call->value[SERVE_RULE].text, d, err);
}

static int read_method(cli_serve_methods *all, size_t i, const cli_simulation *s, rates *r,
                       const cli_call *call, int64_t requests, dsc_error *err)
{
    cli_serve_method *m = &all->method[i];
    m->rule = r->name ? &dsc_verifier_greedy : rule_of(all, i, s, call, err);
    if (!m->rule)
        return DSC_EUSAGE;
    const int rc = r->name ? draw(m, r, call, requests, err)
                           : dsc_serve_source_trace(&m->source, s->trace, &m->config, m->rule,
                                                    call->seed, call->threads, err);
    return rc || i == 0 ? rc : cli_serve_confidence_read(m, s, call, err);
}

int cli_serve_methods_read(cli_serve_methods *m, const cli_simulation *s, const cli_call *call,
                           int64_t requests, bool recorded, dsc_error *err)
{
    const char *target = call->value[SERVE_TARGET].text;
    rates r = {0};
    int rc = DSC_OK;
    if (target)
        rc = open_model(&r, target, err);
    else if (!s->trace)
        rc = open_table(&r, call->word[0], err);
    if (!rc)
        rc = add_all(m, call, err);
    for (size_t i = 0; i < m->count && !rc; i++)
        rc = read_method(m, i, s, &r, call, requests, err);
    rates_fini(&r);
    if (!rc && recorded)
        rc = read_arrivals(m, s->trace, err);
    for (size_t i = 0; i < m->count && recorded && !rc; i++)
        rc = sort_items(m, &m->method[i], err);
    return rc;
}

void cli_serve_methods_fini(cli_serve_methods *m)
{
    for (size_t i = 0; i < m->count; i++) {
        dsc_serve_confidence_fini(&m->method[i].confidence);
        dsc_serve_source_fini(&m->method[i].source);
        dsc_config_fini(&m->method[i].config);
        free(m->method[i].arriving);
    }
    for (size_t d = 0; d < m->drafters; d++)
        dsc_grid_fini(&m->grid[d]);
    free(m->method);
    free(m->time);
    free(m->order);
    *m = (cli_serve_methods){0};
}

// SPDX-License-Identifier: Apache-2.0
// The requests of draftscope serve with the drafts of every configuration: from a trace, from
// models, or from acceptance rates; and the arrival times of a trace.
#include "cli/serve/serve.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIGURATIONS = 4096 };

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
    rc = rc ?: dsc_trace_each(trace, read_arrival, at, err);
    rc = rc ?: dsc_new(&all, s->count, err);
    rc = rc ?: dsc_new(&m->time, s->count, err);
    rc = rc ?: dsc_new(&m->order, s->count, err);
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
    if (!rc && x->source.script)
        rc = dsc_new(&x->arriving_script, m->times, err);
    for (size_t i = 0; i < m->times && !rc; i++)
        x->arriving[i] = x->source.item[m->order[i]];
    for (size_t i = 0; i < m->times && !rc && x->arriving_script; i++)
        x->arriving_script[i] = x->source.script[m->order[i]];
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
        return s->target ? cli_simulation_rule(s, NULL, d, err) : &dsc_verifier_greedy;
    return m->method[i - 1].config.drafter == d
               ? m->method[i - 1].rule
               : cli_simulation_rule(s, call->value[SERVE_RULE].text, d, err);
}

// State that requests leave to later ones does not depend on when they are served.
static void note_history(const dsc_config *c)
{
    const dsc_drafter_type *d = c->drafter;
    if (d->uses_history && d->uses_history(c))
        fprintf(stderr,
                "draftscope: note: %s: what requests leave to later ones passes in their own "
                "order, whenever they are served\n",
                d->name);
}

static int read_method(cli_serve_methods *all, size_t i, const cli_simulation *s,
                       cli_serve_rates *rates, const cli_call *call, int64_t requests,
                       dsc_error *err)
{
    cli_serve_method *m = &all->method[i];
    const bool models = s->target || s->draft || s->middle;
    m->rule = rates ? &dsc_verifier_greedy : rule_of(all, i, s, call, err);
    if (!m->rule)
        return DSC_EUSAGE;
    note_history(&m->config);
    const int rc =
        rates ? cli_serve_rates_draw(rates, m, requests, err)
              : dsc_serve_source_models(&m->source, s->trace, &m->config, m->rule,
                                        models ? &s->load : NULL, call->seed, call->threads, err);
    return rc || i == 0 ? rc : cli_serve_confidence_read(m, s, call, err);
}

int cli_serve_methods_read(cli_serve_methods *m, cli_simulation *s, const cli_call *call,
                           int64_t requests, bool recorded, dsc_error *err)
{
    cli_serve_rates *rates = NULL;
    int rc = cli_serve_models_open(s, call, requests, err);
    if (!rc && !s->trace && !s->target)
        rc = cli_serve_rates_open(&rates, s, call, err);
    rc = rc ?: add_all(m, call, err);
    for (size_t i = 0; i < m->count && !rc; i++)
        rc = read_method(m, i, s, rates, call, requests, err);
    cli_serve_rates_close(rates);
    if (!rc && recorded)
        rc = read_arrivals(m, s->trace, err);
    for (size_t i = 0; i < m->count && recorded && !rc; i++)
        rc = sort_items(m, &m->method[i], err);
    return rc;
}

int32_t cli_serve_lookahead(const cli_serve_method *m)
{
    const dsc_serve_source *s = &m->source;
    return s->drafting == DSC_SERVE_DRAFT_FREE ? 0 : s->widest ? s->widest : s->longest;
}

dsc_serve_pool cli_serve_pool(const cli_serve_method *m, const cli_serve_load *load,
                              const cli_call *call)
{
    dsc_serve_pool pool = dsc_serve_source_pool(&m->source);
    pool.shuffled = call->value[SERVE_ORDER].integer == 1;
    pool.seed = call->seed;
    if (load->recorded) {
        pool.item = m->arriving;
        pool.script = m->arriving_script;
    }
    return pool;
}

int cli_serve_methods_admit(const cli_serve_methods *m, const char *const *policy, size_t policies,
                            dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 1; i < m->count; i++)
        for (size_t p = 0; p < policies && !rc; p++) {
            const cli_serve_method *x = &m->method[i];
            dsc_serve_policy policy_of;
            rc = dsc_serve_policy_parse(&policy_of, policy[p], x->source.longest, err);
            if (rc)
                return rc;
            rc = dsc_serve_source_admits(&x->source, x->config.drafter, &policy_of, err);
            dsc_serve_policy_fini(&policy_of);
        }
    return rc;
}

void cli_serve_methods_fini(cli_serve_methods *m)
{
    for (size_t i = 0; i < m->count; i++) {
        dsc_serve_confidence_fini(&m->method[i].confidence);
        dsc_serve_source_fini(&m->method[i].source);
        dsc_config_fini(&m->method[i].config);
        free(m->method[i].arriving);
        free(m->method[i].arriving_script);
    }
    for (size_t d = 0; d < m->drafters; d++)
        dsc_grid_fini(&m->grid[d]);
    free(m->method);
    free(m->time);
    free(m->order);
    *m = (cli_serve_methods){0};
}

// SPDX-License-Identifier: Apache-2.0
// The answer of draftscope serve as settings of an engine. Engines switch by the number of running
// requests and not by load, so each load is translated into its mean number of running requests.
#include "base/columns.h"
#include "cli/serve/serve_answer.h"
#include "sim/serve/serve_policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- choices by batch size -----------------------------------------------------------------------

typedef struct choices {
    dsc_config *config; // [count]
    cli_engine_choice *choice;
    size_t count, room[2];
} choices;

static void choices_fini(choices *c)
{
    free(c->config);
    free(c->choice);
}

// `config` NULL: speculation is off. A choice up to no larger batch size than the one before it is
// left out.
static int add(choices *c, const dsc_config *config, const dsc_verifier_type *rule, int64_t batch,
               dsc_error *err)
{
    if (c->count && batch <= c->choice[c->count - 1].batch)
        return DSC_OK;
    int rc = dsc_resize(&c->config, &c->room[0], c->count + 1, err);
    rc = rc ?: dsc_resize(&c->choice, &c->room[1], c->count + 1, err);
    if (rc)
        return rc;
    if (config)
        c->config[c->count] = *config;
    c->choice[c->count] = (cli_engine_choice){config ? c->config : NULL, rule, batch};
    c->count++;
    for (size_t i = 0; i < c->count; i++) // the array may have moved
        if (c->choice[i].config)
            c->choice[i].config = &c->config[i];
    return DSC_OK;
}

// The tiers of a schedule, as a policy contains them, are choices of their own. The last one, which
// goes on without end, ends where as many requests run as were simulated.
static int add_schedule(choices *c, dsc_config *config, const dsc_verifier_type *rule,
                        const char *policy, int64_t most, dsc_error *err)
{
    dsc_serve_policy p;
    int rc = dsc_serve_policy_parse(&p, policy, (int32_t)dsc_config_limit(config), err);
    for (int64_t i = 1; i < p.sizes && !rc; i++) {
        char k[24];
        if (i + 1 < p.sizes && p.by_size[i + 1] == p.by_size[i])
            continue;
        snprintf(k, sizeof k, "%" PRId32, p.by_size[i]);
        rc = dsc_config_set(config, "num-speculative-tokens", k, err);
        rc = rc ?: add(c, config, rule, i + 1 == p.sizes && most > i ? most : i, err);
    }
    dsc_serve_policy_fini(&p);
    return rc;
}

static int64_t running(const cli_serve_answer *a, const cli_load_verdict *v)
{
    const size_t row = v->own.kind == DSC_ADVICE_ON ? v->own.row : v->none;
    const int c = dsc_table_find(a->table, "mean_running");
    const double mean = c < 0 ? NAN : dsc_table_real(a->table, row, (size_t)c);
    return mean > 1 ? (int64_t)ceil(mean) : 1;
}

static int add_load(choices *c, const cli_serve_answer *a, const cli_load_verdict *v,
                    dsc_error *err)
{
    dsc_config config;
    if (v->own.kind == DSC_ADVICE_ABSTAIN)
        return DSC_OK;
    if (v->own.kind == DSC_ADVICE_OFF)
        return add(c, NULL, &dsc_verifier_greedy, running(a, v), err);
    const dsc_verifier_type *rule =
        dsc_verifier_find(cli_serve_text(a->table, v->own.row, DSC_COL_RULE), err);
    const char *policy = cli_serve_text(a->table, v->own.row, "speculation");
    int rc = rule ? cli_serve_row_config(&config, a->table, v->own.row, err) : DSC_EINPUT;
    if (rc)
        return rc;
    return cli_serve_is_schedule(policy)
               ? add_schedule(c, &config, rule, policy, running(a, v), err)
               : add(c, &config, rule, running(a, v), err);
}

// --- lines ---------------------------------------------------------------------------------------

// "# Poisson arrivals: the mean number of running requests is 2 at 0.5 requests/s, 3 at 0.75".
static int put_loads(dsc_buffer *out, const cli_serve_answer *a, size_t first, size_t end,
                     dsc_error *err)
{
    const cli_load_verdict *v = a->load;
    int rc =
        dsc_buffer_printf(out, err, "# %s: the mean number of running requests is", v[first].kind);
    for (size_t i = first; i < end && !rc; i++)
        rc = dsc_buffer_printf(out, err, "%s %" PRId64 " at %g%s", i > first ? "," : "",
                               running(a, &v[i]), v[i].at,
                               i > first ? "" : cli_serve_load_unit(&v[i]));
    return rc ? rc : dsc_buffer_puts(out, "\n", err);
}

static int put_kind(dsc_buffer *out, const cli_serve_answer *a, size_t first, size_t end,
                    dsc_error *err)
{
    choices c = {0};
    bool differ = false;
    int rc = DSC_OK;
    for (size_t i = first + 1; i < end; i++)
        differ = differ || !cli_serve_same_setting(a, &a->load[first], &a->load[i]);
    for (size_t i = first; i < end && !rc; i++) // the last load of each setting
        if (i + 1 == end || !cli_serve_same_setting(a, &a->load[i], &a->load[i + 1]))
            rc = add_load(&c, a, &a->load[i], err);
    if (!rc && differ)
        rc = put_loads(out, a, first, end, err);
    else if (!rc)
        rc = dsc_buffer_printf(out, err, "# %s: %s\n", a->load[first].kind,
                               c.count ? "one setting for every load" : "no verdict");
    if (!rc && c.count)
        rc = cli_engine_lines(out, a->use, c.choice, c.count, err);
    choices_fini(&c);
    return rc;
}

int cli_serve_engine_lines(dsc_buffer *out, const cli_serve_answer *a, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0, end; i < a->loads && !rc; i = end) {
        end = cli_serve_kind_end(a, i);
        rc = put_kind(out, a, i, end, err);
    }
    return rc;
}

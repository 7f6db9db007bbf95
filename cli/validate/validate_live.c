// SPDX-License-Identifier: Apache-2.0
// Groups the lines of live runs by configuration, predicts each configuration, and fills the table
// of the comparison.
#include "cli/result.h"
#include "cli/validate/validate_live.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// clang-format off
const dsc_option validate_live_options[VALIDATE_LIVE_OPTIONS] = {
    [VALIDATE_TRACE] = {.name = "trace", .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "trace of the same models and prompts, written by draftscope live record; requires "
             "--live"},
    [VALIDATE_LIVE] = {.name = "live", .kind = DSC_OPTION_TEXT, .metavar = "FILE.jsonl",
     .help = "measured results to compare with: lines of draftscope live run --json"},
    [VALIDATE_COST] = {.name = "cost", .kind = DSC_OPTION_TEXT,
     .metavar = "unit|linear:...|table:FILE|fit:TRACE|prometheus:...|bench:...|sps:FILE|"
                "roofline:...",
     .help = "with --live or two traces: cost model that predicts latencies and speedups, as in "
             "draftscope sim --cost (default: none are predicted with --live; of two traces, step "
             "times fitted to other requests)"},
    [VALIDATE_BOOTSTRAP] = {.name = "bootstrap", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "1000", .min = 4, .max = 1000000,
     .help = "number of bootstrap resamples of the requests, a multiple of 4"},
    [VALIDATE_SEED] = CLI_OPTION_SEED,
    [VALIDATE_THREADS] = CLI_OPTION_THREADS,
    [VALIDATE_Z] = {.name = "z", .kind = DSC_OPTION_REAL, .metavar = "Z", .initial = "3",
     .least = 0, .most = 38,
     .help = "family-wise threshold: a sampled count fails if |z| exceeds Z after correction for "
             "the number of comparisons (Student's t over requests)"},
    [VALIDATE_POOLED] = {.name = "pooled-tolerance", .kind = DSC_OPTION_REAL, .metavar = "PERCENT",
     .initial = "1", .least = 0, .most = 1000,
     .help = "tolerance for the pooled block efficiency of a method; an error within Z standard "
             "errors also passes, since the requests are too few to resolve it"},
    [VALIDATE_SPEEDUP] = {.name = "speedup-tolerance", .kind = DSC_OPTION_REAL,
     .metavar = "PERCENT", .initial = "10", .least = 0, .most = 1000,
     .help = "tolerance for speedups, percent"},
    [VALIDATE_SECONDS] = {.name = "seconds-tolerance", .kind = DSC_OPTION_REAL,
     .metavar = "PERCENT", .initial = "25", .least = 0, .most = 1000,
     .help = "tolerance for pass latency, percent"},
};
// clang-format on

// Repeats with the same seed must have the same counts.
static int check_repeat(const validate_comparison *c, const validate_line *a,
                        const validate_line *b, dsc_error *err)
{
    for (int l = 0; l < VALIDATE_COUNTS; l++)
        for (size_t i = 0; i < a->requests.requests; i++)
            if (a->requests.list[l][i] != b->requests.list[l][i])
                return dsc_fail(err, DSC_EINPUT,
                                "%s:%zu: same configuration and seed as line %zu, but different "
                                "counts in request %zu",
                                c->results.path, b->number, a->number, i);
    return DSC_OK;
}

// Adds the counts of a line to the sums of its configuration.
static void add_sample(validate_group *g, const validate_line *l)
{
    validate_requests *to = &g->measured;
    const validate_requests *from = &l->requests;
    const size_t length = from->histogram_length;
    for (int i = 0; i <= VALIDATE_ENTROPY; i++) // the last two exist for sampled outputs only
        for (size_t q = 0; q < to->requests && from->list[i]; q++)
            to->list[i][q] += from->list[i][q];
    for (size_t q = 0; q < to->requests; q++)
        for (size_t m = 0; m < length; m++)
            to->histogram[q * to->histogram_length + m] += from->histogram[q * length + m];
    g->seeds++;
}

static int gather(validate_comparison *c, validate_group *g, dsc_error *err)
{
    size_t length = 1;
    for (size_t i = 0; i < g->lines; i++)
        if (g->line[i]->requests.histogram_length > length)
            length = g->line[i]->requests.histogram_length;
    int rc = validate_requests_init(&g->measured, g->first->requests.requests, length,
                                    VALIDATE_ENTROPY + 1, err);
    for (size_t i = 0; i < g->lines && !rc; i++) {
        size_t j = 0;
        while (g->line[j]->seed != g->line[i]->seed)
            j++;
        if (j < i)
            rc = check_repeat(c, g->line[j], g->line[i], err);
        else
            add_sample(g, g->line[i]);
    }
    return rc ? rc : validate_parameters(&g->parameters, &g->first->config, err);
}

// Returns whether a replayed line has the configuration of a free-running one: at temperature 0 the
// recorded output is what the model generates.
static bool stands_for(const validate_line *replayed, const validate_line *line)
{
    validate_line as = *replayed;
    as.trace_hash = NULL;
    as.temperature = 0;
    return replayed->trace_hash && validate_same(&as, line);
}

static const validate_line *replay_of(const validate_comparison *c, const validate_line *line)
{
    for (size_t i = 0; i < c->results.count; i++)
        if (stands_for(&c->results.line[i], line))
            return &c->results.line[i];
    return NULL;
}

static bool is_prediction(const validate_comparison *c, const validate_line *replayed)
{
    bool found = false;
    for (size_t i = 0; i < c->results.count && !found; i++)
        found = stands_for(replayed, &c->results.line[i]);
    return found;
}

static int predict(validate_comparison *c, validate_group *g, dsc_error *err)
{
    const bool free_run = !g->first->trace_hash;
    int rc = gather(c, g, err);
    if (!rc)
        rc = validate_predict(&g->predicted, c->trace, g->first,
                              free_run ? replay_of(c, g->first) : NULL, c->costs ? &c->cost : NULL,
                              cli_threads(c->value[VALIDATE_THREADS].integer), err);
    return rc ? dsc_error_prefix(err, rc, "%s:%zu", c->results.path, g->first->number) : DSC_OK;
}

// Groups lines by configuration, in the order of their first lines.
static int group_lines(validate_comparison *c, dsc_error *err)
{
    const size_t n = c->results.count;
    size_t used = 0;
    int rc = dsc_new(&c->group, n, err);
    if (!rc)
        rc = dsc_new(&c->line, n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        const validate_line *first = &c->results.line[i];
        bool seen = first->trace_hash && is_prediction(c, first);
        for (size_t j = 0; j < c->groups && !seen; j++)
            seen = validate_same(c->group[j].first, first);
        if (seen)
            continue;
        validate_group *g = &c->group[c->groups++];
        *g = (validate_group){.first = first, .line = c->line + used};
        for (size_t j = i; j < n; j++)
            if (validate_same(first, &c->results.line[j]))
                g->line[g->lines++] = &c->results.line[j];
        used += g->lines;
    }
    return rc;
}

// --- the command ---------------------------------------------------------------------------------

static int put_all(validate_comparison *c, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < c->groups && !rc; i++)
        rc = predict(c, &c->group[i], err);
    for (size_t i = 0; i < c->groups && !rc; i++) // two rates, a distance, a likelihood
        c->sampled += c->group[i].first->temperature > 0 ? 4 : 0;
    for (size_t i = 0; i < c->groups && !rc; i++)
        rc = validate_put_group(c, &c->group[i], err);
    for (size_t i = 0; i < c->groups && !rc; i++) {
        bool seen = !validate_pools(&c->group[i], &c->group[i]);
        for (size_t j = 0; j < i && !seen; j++)
            seen = validate_pools(&c->group[j], &c->group[i]);
        if (!seen)
            rc = validate_put_pooled(c, i, err);
    }
    return rc;
}

static int begin(validate_comparison *c, dsc_trace **trace, dsc_error *err)
{
    const dsc_option_value *v = c->value;
    size_t longest = 0;
    if (!v[VALIDATE_TRACE].text || !v[VALIDATE_LIVE].text)
        return dsc_fail(err, DSC_EUSAGE,
                        "--trace NAME.dst and --live FILE.jsonl are both required");
    if (v[VALIDATE_BOOTSTRAP].integer % 4)
        return dsc_fail(err, DSC_EUSAGE, "--bootstrap %" PRId64 ": not a multiple of 4",
                        v[VALIDATE_BOOTSTRAP].integer);
    int rc = v[VALIDATE_COST].text ? dsc_cost_parse(&c->cost, v[VALIDATE_COST].text, err) : DSC_OK;
    c->costs = !rc && v[VALIDATE_COST].text;
    if (!rc)
        rc = dsc_trace_open(trace, v[VALIDATE_TRACE].text, err);
    c->trace = *trace;
    if (!rc)
        rc = validate_results_read(&c->results, v[VALIDATE_LIVE].text, err);
    if (!rc)
        rc = validate_results_check(&c->results, c->trace, err);
    for (size_t i = 0; i < c->results.count; i++)
        if (validate_end(&c->results.line[i]) > longest)
            longest = validate_end(&c->results.line[i]);
    if (!rc)
        rc = dsc_new(&c->request, longest, err);
    for (size_t i = 0; i < longest && !rc; i++)
        c->request[i] = (int64_t)i;
    return rc ? rc : group_lines(c, err);
}

static void end(validate_comparison *c)
{
    for (size_t i = 0; i < c->groups; i++) {
        validate_prediction_fini(&c->group[i].predicted);
        validate_requests_fini(&c->group[i].measured);
        free(c->group[i].parameters);
    }
    free(c->group);
    free(c->line);
    free(c->request);
    validate_results_fini(&c->results);
    if (c->costs)
        dsc_cost_fini(&c->cost);
}

int validate_live(dsc_table *t, const dsc_option_value *value, validate_summary *summary,
                  dsc_error *err)
{
    validate_comparison c = {.table = t, .value = value, .summary = summary};
    dsc_trace *trace = NULL;
    *summary = (validate_summary){.worst_z = NAN, .worst_speedup = NAN};
    int rc = begin(&c, &trace, err);
    if (!rc)
        rc = cli_comments(t, trace, (uint64_t)value[VALIDATE_SEED].integer,
                          value[VALIDATE_COST].text, err);
    if (!rc)
        rc = dsc_table_comment(t, "live", value[VALIDATE_LIVE].text, err);
    if (!rc && c.costs && c.cost.note[0])
        rc = dsc_table_comment(t, "cost_note", c.cost.note, err);
    if (!rc)
        rc = dsc_table_add_columns(t, validate_live_columns, VALIDATE_LIVE_COLUMNS, err);
    if (!rc)
        rc = put_all(&c, err);
    end(&c);
    dsc_trace_close(trace);
    return rc;
}

static void print_worst(char *out, size_t size, const char *what, double x, const char *unit)
{
    if (isnan(x))
        *out = '\0';
    else
        snprintf(out, size, "; %s %.2f%s", what, x, unit);
}

int validate_live_sum_up(const validate_summary *s, dsc_error *err)
{
    char z[64], speedup[64];
    print_worst(z, sizeof z, "worst |z|", s->worst_z, "");
    print_worst(speedup, sizeof speedup, "worst speedup error", s->worst_speedup, " %");
    if (s->first[0])
        return dsc_fail(err, DSC_ECHECK,
                        "%zu configurations: %zu pass, %zu fail, %zu are not predicted; %zu pooled "
                        "rows fail%s%s; first %s",
                        s->configurations, s->passed, s->failed, s->unknown, s->pooled_failed, z,
                        speedup, s->first);
    fprintf(stderr, "draftscope: %zu configurations: %zu pass, 0 fail, %zu are not predicted%s%s\n",
            s->configurations, s->passed, s->unknown, z, speedup);
    return DSC_OK;
}

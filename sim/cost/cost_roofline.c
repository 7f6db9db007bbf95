// SPDX-License-Identifier: Apache-2.0
// The cost model `roofline`: TARGET[,DRAFT|none],HARDWARE and settings NAME=VALUE. The time of a
// pass is in sim/cost/roofline.c.
#include "sim/cost/roofline.h"

#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- settings ----------------------------------------------------------------------------------

// A setting with a number, and the number that it sets.
typedef struct number_setting {
    const char *name;
    size_t offset; // in dsc_roofline
    double least, most, unit;
    bool whole;
    bool engine; // of the engine: replaces a constant of its preset
    const char *what;
} number_setting;

#define AT(member) offsetof(dsc_roofline, member)
static const number_setting numbers[] = {
    {"tp", AT(machines), 1, 1024, 1, true, false, "a whole number of machines from 1 to 1024"},
    {"bandwidth-efficiency", AT(engine.bandwidth), 1e-3, 1, 1, false, true,
     "a share of the bandwidth from 0.001 to 1"},
    {"compute-efficiency", AT(engine.compute), 1e-3, 1, 1, false, true,
     "a share of the peak from 0.001 to 1"},
    {"attention-efficiency", AT(engine.attention), 1e-3, 1, 1, false, true,
     "a share of the peak from 0.001 to 1"},
    {"attention-tile", AT(engine.tile), 1, 1024, 1, true, true,
     "a whole number of query rows from 1 to 1024"},
    {"overlap", AT(engine.overlap), 0, 1, 1, false, true, "a share from 0 to 1"},
    {"overhead", AT(overhead_s), 0, 1e3, 1, false, true, "seconds per pass from 0 to 1000"},
    {"draft-overhead", AT(draft_overhead_s), 0, 1e3, 1, false, true,
     "seconds per pass of the draft model from 0 to 1000"},
    {"memory", AT(machine.memory), 1e-3, 1e9, 1e9, false, false,
     "GB of one machine from 0.001 to 1e9"},
    {"gpu-memory-utilization", AT(utilization), 1e-3, 1, 1, false, false,
     "a share of the memory from 0.001 to 1"},
};
#undef AT
#define SETTINGS                                                                                   \
    "tp, engine, efficiency, bandwidth-efficiency, compute-efficiency, attention-efficiency, "     \
    "attention-tile, overlap, overhead, draft-overhead, weights, kv, experts, memory, "            \
    "gpu-memory-utilization"

static bool read_number(const char *text, double *out)
{
    char *end;
    if (!*text || !strchr("0123456789.", *text))
        return false;
    *out = dsc_strtod(text, &end);
    return isfinite(*out) && !*end;
}

static int set_number(dsc_roofline *r, const number_setting *s, const char *value, dsc_error *err)
{
    double x;
    if (!read_number(value, &x) || !(x >= s->least && x <= s->most) || (s->whole && x != floor(x)))
        return dsc_fail(err, DSC_EUSAGE, "--cost: '%s=%.40s' is not %s", s->name, value, s->what);
    *(double *)((char *)r + s->offset) = x * s->unit;
    r->given = r->given || s->engine;
    return DSC_OK;
}

// All shares, whole tiles, and reading and multiplying fully overlapped: the classical roofline.
static int set_efficiency(dsc_roofline *r, const char *value, dsc_error *err)
{
    double x;
    if (!read_number(value, &x) || !(x >= 1e-3 && x <= 1))
        return dsc_fail(
            err, DSC_EUSAGE,
            "--cost: 'efficiency=%.40s' is not a share of bandwidth and peak from 0.001 "
            "to 1",
            value);
    r->engine.bandwidth = r->engine.compute = r->engine.attention = x;
    r->engine.overlap = r->engine.tile = 1;
    r->given = true;
    return DSC_OK;
}

static int set_engine(dsc_roofline *r, const char *value, dsc_error *err)
{
    size_t count, at;
    const dsc_engine *e = dsc_engines(&count);
    int rc = dsc_preset_find(&at, "engine", (dsc_preset_table){e, sizeof *e, count}, value, err);
    if (!rc)
        r->engine = e[at];
    return rc;
}

static int set_weights(dsc_roofline *r, const char *value, dsc_error *err)
{
    size_t count, at;
    const dsc_number_format *f = dsc_weight_formats(&count);
    int rc =
        dsc_preset_find(&at, "weight format", (dsc_preset_table){f, sizeof *f, count}, value, err);
    if (!rc)
        r->weights = &f[at];
    return rc;
}

static int set_cache(dsc_roofline *r, const char *value, dsc_error *err)
{
    size_t count, at;
    const dsc_number_format *f = dsc_cache_formats(&count);
    int rc = dsc_preset_find(&at, "KV cache format", (dsc_preset_table){f, sizeof *f, count}, value,
                             err);
    if (!rc)
        r->cache = &f[at];
    return rc;
}

static int set_experts(dsc_roofline *r, const char *value, dsc_error *err)
{
    dsc_experts_fini(&r->experts);
    return dsc_experts_parse(&r->experts, value, err);
}

static int read_value(dsc_roofline *r, const char *name, const char *value, dsc_error *err)
{
    static const struct {
        const char *name;
        int (*set)(dsc_roofline *r, const char *value, dsc_error *err);
    } others[] = {{"engine", set_engine},
                  {"efficiency", set_efficiency},
                  {"weights", set_weights},
                  {"kv", set_cache},
                  {"experts", set_experts}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i].name) == 0)
            return others[i].set(r, value, err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return set_number(r, &numbers[i], value, err);
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: '%.40s' is not one of the settings of a roofline: " SETTINGS, name);
}

// "NAME=VALUE". An engine sets what other settings replace, so it is read before them.
static int read_settings(dsc_roofline *r, char *const *word, int count, dsc_error *err)
{
    int rc = DSC_OK;
    for (int engine = 1; engine >= 0; engine--)
        for (int i = 0; i < count && !rc; i++) {
            char name[40] = "";
            const char *value = strchr(word[i], '=');
            snprintf(name, sizeof name, "%.*s", value ? (int)(value - word[i]) : 39, word[i]);
            if (!value)
                rc = dsc_fail(
                    err, DSC_EUSAGE,
                    "--cost: '%.40s' is not NAME=VALUE with a setting of a roofline: " SETTINGS,
                    word[i]);
            else if ((strcmp(name, "engine") == 0) == engine)
                rc = read_value(r, name, value + 1, err);
        }
    return rc;
}

// --- words -------------------------------------------------------------------------------------

enum { MOST_WORDS = 32 };

// TARGET,HARDWARE or TARGET,DRAFT,HARDWARE.
static int read_names(dsc_roofline *r, char *const *word, int count, dsc_error *err)
{
    if (count != 2 && count != 3)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: roofline:TARGET[,DRAFT|none],HARDWARE[,NAME=VALUE...] expected");
    r->has_draft = count == 3 && strcmp(word[1], "none") != 0;
    int rc = dsc_model_shape_find(&r->target, word[0], err);
    if (!rc && r->has_draft)
        rc = dsc_model_shape_draft(&r->draft, word[1], &r->target, err);
    return rc ? rc : dsc_hardware_find(&r->machine, word[count - 1], err);
}

static int read_words(dsc_roofline *r, char *text, dsc_error *err)
{
    char *rest = text, *word[MOST_WORDS];
    int count = 0, names = 0;
    while (rest && count < MOST_WORDS)
        word[count++] = strsep(&rest, ",");
    if (rest)
        return dsc_fail(err, DSC_EUSAGE, "--cost: a roofline takes at most %d words", MOST_WORDS);
    while (names < count && names < 3 && !strchr(word[names], '='))
        names++;
    int rc = read_names(r, word, names, err);
    if (!rc)
        rc = read_settings(r, word + names, count - names, err);
    // A pass of the draft model has no more overhead than one of the target.
    const double draft = r->engine.pass_s + (double)r->draft.layers * r->engine.layer_s;
    if (!isnan(r->overhead_s) && isnan(r->draft_overhead_s))
        r->draft_overhead_s = fmin(r->overhead_s, draft);
    return rc ? rc : dsc_roofline_fits(r, 0, 0, err);
}

// --- cost model --------------------------------------------------------------------------------

static void close_roofline(void *model)
{
    dsc_roofline *r = model;
    if (r)
        dsc_experts_fini(&r->experts);
    free(r);
}

static const char *caveat(const dsc_roofline *r)
{
    if (dsc_roofline_is_bound(r))
        return "the roofline is the least time that the hardware permits, not a measurement";
    return r->given ? "the roofline has shares or overheads that were given, not measured here"
                    : "the roofline has the shares and overheads of an engine that were fitted to "
                      "published steps of one model, not measured here";
}

static int open_roofline(dsc_cost *cost, const char *text, dsc_error *err)
{
    dsc_roofline *r;
    char *words;
    int rc = dsc_new(&r, 1, err);
    if (rc)
        return rc;
    dsc_roofline_init(r);
    rc = dsc_strndup(&words, text, strlen(text), err);
    if (!rc) {
        rc = read_words(r, words, err);
        free(words);
    }
    if (rc) {
        close_roofline(r);
        return rc;
    }
    cost->model = r;
    cost->caveat = caveat(r);
    return DSC_OK;
}

static int target_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    return dsc_roofline_target(cost->model, pass, seconds, err);
}

static bool target_times(const dsc_cost *cost, dsc_pass pass, int64_t least, int64_t step,
                         size_t count, double *seconds)
{
    return dsc_roofline_targets(cost->model, pass, least, step, count, seconds);
}

static int draft_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    return dsc_roofline_draft(cost->model, pass, seconds, err);
}

static int mixed_time(const dsc_cost *cost, const dsc_mixed_pass *pass, double *seconds,
                      dsc_error *err)
{
    return dsc_roofline_mixed(cost->model, pass, seconds, err);
}

static int first_draft_time(const dsc_cost *cost, dsc_pass pass, const dsc_mixed_pass *after,
                            double *seconds, dsc_error *err)
{
    return dsc_roofline_first_draft(cost->model, pass, after, seconds, err);
}

const dsc_cost_type dsc_cost_roofline = {
    .name = "roofline",
    .summary = "the time by the models' shapes, the machine and an engine's efficiency",
    .usage = "TARGET[,DRAFT|none],HARDWARE[,NAME=VALUE...]",
    .open = open_roofline,
    .close = close_roofline,
    .target = target_time,
    .draft = draft_time,
    .targets = target_times,
    .mixed = mixed_time,
    .first_draft = first_draft_time};

// SPDX-License-Identifier: Apache-2.0
// Configurations of drafting methods: defaults, values by option name, and the checks that stand
// between a caller's numbers and the methods, which rely on their ranges.
#include "sim/drafter.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// --- one option ----------------------------------------------------------------------------------

static int set_option(dsc_config *config, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &config->drafter->option[o];
    switch (option->kind) {
    case DSC_OPTION_INT:
    case DSC_OPTION_CHOICE: return dsc_option_single(option, text, &config->parameter[o], err);
    case DSC_OPTION_REAL: return dsc_option_real(option, text, &config->real[o], err);
    case DSC_OPTION_TEXT: config->text[o] = text; return DSC_OK;
    default:
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s: option %s is a flag; a method's option needs a value",
                        config->drafter->name, option->name);
    }
}

static int64_t last_choice(const dsc_option *o)
{
    int64_t last = 0;
    for (const char *c = o->choices; *c; c++)
        last += *c == '|';
    return last;
}

static int check_integer(const dsc_config *config, size_t o, dsc_error *err)
{
    const dsc_option *option = &config->drafter->option[o];
    const bool choice = option->kind == DSC_OPTION_CHOICE;
    const int64_t value = config->parameter[o], min = choice ? 0 : option->min;
    const int64_t max = choice ? last_choice(option) : option->max;
    if (value >= min && value <= max)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s: %s is %" PRId64 "; it must be from %" PRId64 " to %" PRId64
                    " (dsc_config_init sets the defaults)",
                    config->drafter->name, option->name, value, min, max);
}

static int check_option(const dsc_config *config, size_t o, dsc_error *err)
{
    const dsc_option *option = &config->drafter->option[o];
    const double real = config->real[o];
    switch (option->kind) {
    case DSC_OPTION_INT:
    case DSC_OPTION_CHOICE: return check_integer(config, o, err);
    case DSC_OPTION_REAL:
        if (isfinite(real) && real >= option->least && real <= option->most)
            return DSC_OK;
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s: %s is %g; it must be from %g to %g (dsc_config_init sets the "
                        "defaults)",
                        config->drafter->name, option->name, real, option->least, option->most);
    default:
        if (config->text[o] || !option->initial)
            return DSC_OK;
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s: %s has no value (dsc_config_init sets the defaults)",
                        config->drafter->name, option->name);
    }
}

// --- a configuration -----------------------------------------------------------------------------

// The option that is the limit of a method's drafts, or NULL.
static const dsc_option *draft_length(const dsc_drafter_type *d)
{
    return dsc_option_find(d->option, d->option_count, "num-speculative-tokens");
}

static int check_drafter(const dsc_drafter_type *d, dsc_error *err)
{
    if (!d)
        return dsc_fail(err, DSC_EUSAGE,
                        "the configuration has no drafting method; dsc_drafter_find returns one");
    if (d->option_count > DSC_MAX_PARAMETERS || d->extra_count > DSC_MAX_EXTRA)
        return dsc_fail(
            err, DSC_EUSAGE,
            "method %s has %zu options and %zu counters; at most %d and %d are possible", d->name,
            d->option_count, d->extra_count, DSC_MAX_PARAMETERS, DSC_MAX_EXTRA);
    if (!d->propose || (!d->limit && !draft_length(d)))
        return dsc_fail(err, DSC_EUSAGE, "method %s lacks the function %s", d->name,
                        d->propose ? "limit" : "propose");
    return DSC_OK;
}

void dsc_config_init(dsc_config *config, const dsc_drafter_type *drafter)
{
    if (!config)
        return;
    *config = (dsc_config){.drafter = drafter};
    if (check_drafter(drafter, NULL))
        return; // dsc_config_prepare reports it
    for (size_t o = 0; o < drafter->option_count; o++)
        if (drafter->option[o].initial)
            set_option(config, o, drafter->option[o].initial, NULL);
}

static int check_method(const dsc_config *config, dsc_error *err)
{
    return config ? check_drafter(config->drafter, err)
                  : dsc_fail(err, DSC_EUSAGE, "config must not be NULL");
}

static const dsc_option *find_option(const dsc_config *config, const char *name, dsc_error *err)
{
    const char *names[DSC_MAX_PARAMETERS];
    char what[80];
    if (check_method(config, err))
        return NULL;
    const dsc_drafter_type *d = config->drafter;
    if (!name) {
        dsc_fail(err, DSC_EUSAGE, "method %s: name must not be NULL", d->name);
        return NULL;
    }
    const dsc_option *option = dsc_option_find(d->option, d->option_count, name);
    if (option)
        return option;
    for (size_t o = 0; o < d->option_count; o++)
        names[o] = d->option[o].name;
    snprintf(what, sizeof what, "option of method %.40s:", d->name);
    dsc_unknown_name(what, name, names, d->option_count,
                     d->option_count ? "its options are listed in dsc_drafter_type.option"
                                     : "the method has no options",
                     err);
    return NULL;
}

int dsc_config_set(dsc_config *config, const char *name, const char *text, dsc_error *err)
{
    const dsc_option *option = find_option(config, name, err);
    if (!option)
        return DSC_EUSAGE;
    if (!text)
        return dsc_fail(err, DSC_EUSAGE, "method %s: option %s needs a value",
                        config->drafter->name, name);
    dsc_config changed = *config;
    int rc = set_option(&changed, (size_t)(option - config->drafter->option), text, err);
    if (rc)
        return rc;
    dsc_config_fini(config);
    changed.prepared = NULL;
    *config = changed;
    return DSC_OK;
}

int dsc_config_check(const dsc_config *config, dsc_error *err)
{
    int rc = check_method(config, err);
    for (size_t o = 0; !rc && o < config->drafter->option_count; o++)
        rc = check_option(config, o, err);
    return rc;
}

int dsc_config_prepare(dsc_config *config, dsc_error *err)
{
    dsc_config_fini(config);
    int rc = dsc_config_check(config, err);
    return rc || !config->drafter->prepare
               ? rc
               : config->drafter->prepare(config, &config->prepared, err);
}

void dsc_config_fini(dsc_config *config)
{
    if (!config || !config->prepared)
        return;
    config->drafter->release(config->prepared);
    config->prepared = NULL;
}

// --- what a configuration amounts to -------------------------------------------------------------

// Methods rely on the ranges of their options and on what `prepare` made.
static bool is_ready(const dsc_config *config)
{
    return !dsc_config_check(config, NULL) && (!config->drafter->release || config->prepared);
}

static int64_t limit_of(const dsc_config *config)
{
    const dsc_drafter_type *d = config->drafter;
    return d->limit ? d->limit(config) : config->parameter[draft_length(d) - d->option];
}

static int64_t width_of(const dsc_config *config)
{
    return config->drafter->width ? config->drafter->width(config) : 1 + limit_of(config);
}

int64_t dsc_config_limit(const dsc_config *config)
{
    return is_ready(config) ? limit_of(config) : 0;
}

int64_t dsc_config_width(const dsc_config *config)
{
    return is_ready(config) ? width_of(config) : 0;
}

int64_t dsc_config_draft_width(const dsc_config *config)
{
    if (!is_ready(config))
        return 0;
    return config->drafter->draft_width ? config->drafter->draft_width(config) : width_of(config);
}

int dsc_config_drafts(const dsc_config *config)
{
    int32_t nodes[DSC_MAX_LEVELS + 1];
    if (!is_ready(config))
        return 0;
    const dsc_drafter_type *d = config->drafter;
    const dsc_option *drafts = dsc_option_find(d->option, d->option_count, "num-drafts");
    return d->levels ? nodes[d->levels(config, nodes)]
           : drafts  ? (int)config->parameter[drafts - d->option]
                     : 1;
}

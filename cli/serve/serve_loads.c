// SPDX-License-Identifier: Apache-2.0
// The loads of draftscope serve: lists and ranges of --arrivals, and files of arrival times; and
// the limits of --slo.
#include "base/file.h"
#include "base/number.h"
#include "cli/serve/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30, MOST_LOADS = 1 << 14, WORD = 256 };

// A load like `text` that is called `name`.
static int add_named(cli_serve_loads *l, const char *text, const char *name, dsc_error *err)
{
    if (l->count == MOST_LOADS)
        return dsc_fail(err, DSC_EUSAGE, "--arrivals: one sweep has at most %d loads", MOST_LOADS);
    int rc = dsc_resize(&l->load, &l->capacity, l->count + 1, err);
    if (rc)
        return rc;
    cli_serve_load *load = &l->load[l->count];
    *load = (cli_serve_load){0};
    rc = dsc_arrivals_parse(&load->arrivals, text, err);
    rc = rc ?: dsc_strndup(&load->text, name, strlen(name), err);
    load->recorded = load->arrivals.kind == DSC_ARRIVALS_LISTED;
    l->count += !rc;
    return rc;
}

static int add(cli_serve_loads *l, const char *text, dsc_error *err)
{
    return add_named(l, text, text, err);
}

// NAME:NUMBER and `end` for each number of a list.
static int add_rates(cli_serve_loads *l, const char *name, const char *list, const char *end,
                     dsc_error *err)
{
    static const dsc_option rate = {
        .name = "arrivals", .kind = DSC_OPTION_REAL, .least = 1e-9, .most = 1e9};
    double *value;
    size_t count;
    int rc = dsc_option_reals(&rate, list, &value, &count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        char number[DSC_NUMBER_TEXT], text[WORD];
        dsc_number_text(value[i], number);
        snprintf(text, sizeof text, "%s:%s%s", name, number, end);
        rc = add(l, text, err);
    }
    free(value);
    return rc;
}

static int add_clients(cli_serve_loads *l, const char *list, dsc_error *err)
{
    static const dsc_option clients = {
        .name = "arrivals", .kind = DSC_OPTION_INT, .min = 1, .max = 1 << 20};
    int64_t *value;
    size_t count;
    int rc = dsc_option_list(&clients, list, &value, &count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        char text[WORD];
        snprintf(text, sizeof text, "closed:%lld", (long long)value[i]);
        rc = add(l, text, err);
    }
    free(value);
    return rc;
}

// gamma:LIST,CV.
static int add_gamma(cli_serve_loads *l, const char *rest, dsc_error *err)
{
    const char *comma = strrchr(rest, ',');
    char list[WORD], end[WORD];
    if (!comma || comma == rest)
        return add(l, "gamma:", err);
    snprintf(list, sizeof list, "%.*s", (int)(comma - rest), rest);
    snprintf(end, sizeof end, "%.100s", comma);
    return add_rates(l, "gamma", list, end, err);
}

// recorded:xSPEED[,xSPEED...].
static int add_speeds(cli_serve_loads *l, const char *rest, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t n; rest && !rc; rest = rest[n] ? rest + n + 1 : NULL) {
        char text[WORD];
        n = strcspn(rest, ",");
        snprintf(text, sizeof text, "recorded:%.*s", (int)(n < 100 ? n : 100), rest);
        rc = add(l, text, err);
    }
    return rc;
}

// --- file:CSV ------------------------------------------------------------------------------------

static int bad_time(const char *path, int64_t line, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "%s:%lld: %s; the first column must be arrival times in seconds, at least 0 "
                    "and ascending",
                    path, (long long)line, what);
}

// The first column of each line. The first line may be a heading.
static int read_times(cli_serve_load *load, const char *path, dsc_error *err)
{
    char *text = NULL;
    size_t capacity = 0;
    int rc = dsc_read_text(&text, path, MOST_BYTES, err);
    int64_t line = 0;
    for (char *p = text, *next; !rc && p && *p; p = next) {
        char *end;
        next = p + strcspn(p, "\n");
        next += *next == '\n';
        line++;
        const double x = dsc_strtod(p, &end);
        const bool number = end != p && *end && strchr(",;\t\r\n ", *end);
        if (*p == '\n' || *p == '#' || (!number && line == 1))
            continue;
        if ((!number && (end == p || *end)) || !isfinite(x) || x < 0)
            rc = bad_time(path, line, "it does not begin with a time", err);
        else if (load->times && x < load->time[load->times - 1])
            rc = bad_time(path, line, "the time is before that of the line above", err);
        else
            rc = dsc_resize(&load->time, &capacity, (size_t)load->times + 1, err);
        if (!rc)
            load->time[load->times++] = x;
    }
    free(text);
    if (!rc && !load->times)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the file has no arrival times", path);
    return rc;
}

static int add_file(cli_serve_loads *l, const char *text, dsc_error *err)
{
    const int rc = add_named(l, "recorded", text, err);
    if (rc)
        return rc;
    cli_serve_load *load = &l->load[l->count - 1];
    load->recorded = false;
    return read_times(load, text + strlen("file:"), err);
}

// --- all -----------------------------------------------------------------------------------------

static int add_auto(cli_serve_loads *l, const char *text, dsc_error *err)
{
    const int rc = add_named(l, "poisson:1", text, err);
    if (!rc)
        l->load[l->count - 1].automatic = true;
    return rc;
}

static int add_all(cli_serve_loads *l, const char *text, dsc_error *err)
{
    if (!strcmp(text, "auto"))
        return add_auto(l, text, err);
    const char *colon = strchr(text, ':');
    const size_t name = colon ? (size_t)(colon - text) : strlen(text);
    if (colon && name == 7 && !strncmp(text, "poisson", name))
        return add_rates(l, "poisson", colon + 1, "", err);
    if (colon && name == 8 && !strncmp(text, "constant", name))
        return add_rates(l, "constant", colon + 1, "", err);
    if (colon && name == 6 && !strncmp(text, "closed", name))
        return add_clients(l, colon + 1, err);
    if (colon && name == 5 && !strncmp(text, "gamma", name))
        return add_gamma(l, colon + 1, err);
    if (colon && name == 8 && !strncmp(text, "recorded", name))
        return add_speeds(l, colon + 1, err);
    if (colon && name == 4 && !strncmp(text, "file", name))
        return add_file(l, text, err);
    return add(l, text, err);
}

int cli_serve_loads_read(cli_serve_loads *l, const cli_call *call, dsc_error *err)
{
    const dsc_option *arrivals = &call->command->option[SERVE_ARRIVALS];
    int rc = DSC_OK;
    for (size_t u = 0; u < call->uses.count && !rc; u++)
        if (call->uses.use[u].option == arrivals)
            rc = add_all(l, call->uses.use[u].text, err);
    for (size_t i = 0; i < l->count; i++)
        l->load[i].arrivals.seed = call->seed;
    if (!rc && !l->count)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--arrivals is missing: auto, closed:CLIENTS, constant:QPS, poisson:QPS, "
                      "gamma:QPS,CV, recorded[:xSPEED] or file:CSV, with lists and ranges, as in "
                      "poisson:1:20:1");
    return rc;
}

// A step of 1, 2 or 5 times a power of ten, at least `x`.
static double round_step(double x)
{
    const double power = pow(10, floor(log10(x)));
    const double digits = x / power;
    return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

int cli_serve_loads_expand(cli_serve_loads *l, double low, double high, uint64_t seed,
                           dsc_error *err)
{
    const double step = round_step((high - low) / 8);
    cli_serve_loads all = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < l->count && !rc; i++) {
        cli_serve_load *load = &l->load[i];
        for (double n = fmax(1, floor(low / step));
             load->automatic && !rc && n * step < high + step; n++) {
            char text[WORD], number[DSC_NUMBER_TEXT];
            snprintf(number, sizeof number, "%.6g", n * step);
            snprintf(text, sizeof text, "poisson:%s", number);
            rc = add(&all, text, err);
        }
        if (load->automatic || rc)
            continue;
        rc = dsc_resize(&all.load, &all.capacity, all.count + 1, err);
        if (!rc) {
            all.load[all.count++] = *load;
            *load = (cli_serve_load){0};
        }
    }
    for (size_t i = 0; i < all.count; i++)
        all.load[i].arrivals.seed = seed;
    cli_serve_loads_fini(l);
    *l = all;
    return rc;
}

void cli_serve_loads_fini(cli_serve_loads *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->load[i].text);
        free(l->load[i].time);
    }
    free(l->load);
    *l = (cli_serve_loads){0};
}

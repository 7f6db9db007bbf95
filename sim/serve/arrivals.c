// SPDX-License-Identifier: Apache-2.0
// Arrival processes: parsing, and the gap before a request.
#include "sim/serve/arrivals.h"

#include "base/number.h"
#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_CLIENTS = 1 << 20 };

// Beyond these, a gap or its sum overflows, or the shape 1 / cv^2 of gamma gaps cannot be drawn
// with.
static const double least = 1e-9, most = 1e9, least_cv = 1e-3, most_cv = 1e3;

static bool parse_number(const char **text, char stop, double *out)
{
    char *end;
    if (!**text || !strchr("0123456789.", **text))
        return false;
    *out = dsc_strtod(*text, &end);
    const bool ok = end != *text && *end == stop && *out >= least && *out <= most;
    *text = end + (stop != '\0');
    return ok;
}

static bool parse(dsc_arrivals *a, const char *text)
{
    static const char *const name[] = {"closed:", "constant:", "poisson:", "gamma:"};
    double clients;
    if (!strcmp(text, "recorded")) {
        a->kind = DSC_ARRIVALS_LISTED;
        a->rate = 1;
        return true;
    }
    if (!strncmp(text, "recorded:x", strlen("recorded:x"))) {
        text += strlen("recorded:x");
        a->kind = DSC_ARRIVALS_LISTED;
        return parse_number(&text, '\0', &a->rate);
    }
    for (int kind = DSC_ARRIVALS_CLOSED; kind <= DSC_ARRIVALS_GAMMA; kind++) {
        if (strncmp(text, name[kind], strlen(name[kind])))
            continue;
        text += strlen(name[kind]);
        a->kind = (dsc_arrival_kind)kind;
        if (kind == DSC_ARRIVALS_GAMMA)
            return parse_number(&text, ',', &a->rate) && parse_number(&text, '\0', &a->cv) &&
                   a->cv >= least_cv && a->cv <= most_cv;
        if (kind != DSC_ARRIVALS_CLOSED)
            return parse_number(&text, '\0', &a->rate);
        if (!parse_number(&text, '\0', &clients) || clients != floor(clients) ||
            clients > MOST_CLIENTS)
            return false;
        a->clients = (int64_t)clients;
        return true;
    }
    return false;
}

int dsc_arrivals_parse(dsc_arrivals *out, const char *text, dsc_error *err)
{
    *out = (dsc_arrivals){0};
    if (parse(out, text))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--arrivals: '%.60s' is not auto, closed:CLIENTS, constant:QPS, poisson:QPS, "
                    "gamma:QPS,CV or recorded[:xSPEED], with at most %d clients, QPS and "
                    "SPEED from %g to %g and CV from %g to %g",
                    text, MOST_CLIENTS, least, most, least_cv, most_cv);
}

// Draw number `n` of request i, in (0, 1].
static double draw(const dsc_arrivals *a, int64_t i, uint32_t n)
{
    return 1 - dsc_rng_uniform(a->seed, (uint64_t)i, n, DSC_RNG_ARRIVALS);
}

// A gamma variable of shape >= 1 with mean `shape` (Marsaglia & Tsang 2000, "A simple method for
// generating gamma variables"), from draws *n, *n + 1, ...
static double gamma_above_one(const dsc_arrivals *a, int64_t i, double shape, uint32_t *n)
{
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d), turn = 2 * acos(-1);
    for (;;) {
        const double radius = sqrt(-2 * log(draw(a, i, *n)));
        const double x = radius * cos(turn * draw(a, i, *n + 1)), u = draw(a, i, *n + 2);
        const double root = 1 + c * x, v = root * root * root;
        *n += 3;
        if (v > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

// For a shape below 1, G(shape) = G(shape + 1) U^(1 / shape).
static double gamma_variable(const dsc_arrivals *a, int64_t i, double shape)
{
    uint32_t n = 1;
    if (shape >= 1)
        return gamma_above_one(a, i, shape, &n);
    return gamma_above_one(a, i, shape + 1, &n) * pow(draw(a, i, 0), 1 / shape);
}

// From the first time of a list to that of its repetition.
static double period(const dsc_arrivals *a)
{
    const double n = (double)a->times;
    return a->times > 1 ? (a->time[a->times - 1] - a->time[0]) * n / (n - 1) : 0;
}

double dsc_arrivals_rate(const dsc_arrivals *a)
{
    if (a->kind == DSC_ARRIVALS_CLOSED)
        return NAN;
    return a->kind == DSC_ARRIVALS_LISTED ? a->rate * (double)a->times / period(a) : a->rate;
}

void dsc_arrivals_settle(dsc_arrivals *a, int64_t first, int64_t count)
{
    double sum = 0;
    if (a->kind != DSC_ARRIVALS_POISSON && a->kind != DSC_ARRIVALS_GAMMA)
        return;
    for (int64_t i = first + 1; i <= first + count; i++)
        sum += dsc_arrivals_next(a, i, 0);
    a->rate *= sum / ((double)count / a->rate);
}

double dsc_arrivals_next(const dsc_arrivals *a, int64_t i, double last_s)
{
    const double shape = 1 / (a->cv * a->cv);
    switch (a->kind) {
    case DSC_ARRIVALS_CONSTANT: return (double)i / a->rate;
    case DSC_ARRIVALS_POISSON: return last_s - log(draw(a, i, 0)) / a->rate;
    case DSC_ARRIVALS_GAMMA: return last_s + gamma_variable(a, i, shape) / (shape * a->rate);
    case DSC_ARRIVALS_LISTED:
        return (a->time[i % a->times] + (double)(i / a->times) * period(a)) / a->rate;
    case DSC_ARRIVALS_CLOSED: break;
    }
    return last_s;
}

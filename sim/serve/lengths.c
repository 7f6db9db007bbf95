// SPDX-License-Identifier: Apache-2.0
// Distributions of lengths: parsing and draws.
#include "sim/serve/lengths.h"

#include "base/number.h"
#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static bool parse_number(const char **text, char stop, double least, double most, double *out)
{
    char *end;
    if (!**text || !strchr("0123456789.", **text))
        return false;
    *out = dsc_strtod(*text, &end);
    const bool ok = end != *text && *end == stop && *out >= least && *out <= most;
    *text = end + (stop != '\0');
    return ok;
}

static bool parse_length(const char **text, char stop, int32_t *out)
{
    double x;
    if (!parse_number(text, stop, 1, DSC_LONGEST_SERVED, &x) || x != floor(x))
        return false;
    *out = (int32_t)x;
    return true;
}

static bool starts(const char **text, const char *name)
{
    const size_t n = strlen(name);
    if (strncmp(*text, name, n))
        return false;
    *text += n;
    return true;
}

static bool parse(dsc_lengths *l, const char *text)
{
    if (starts(&text, "uniform:")) {
        l->kind = DSC_LENGTHS_UNIFORM;
        return parse_length(&text, ':', &l->least) && parse_length(&text, '\0', &l->most) &&
               l->least <= l->most;
    }
    if (starts(&text, "lognormal:")) {
        l->kind = DSC_LENGTHS_LOGNORMAL;
        return parse_number(&text, ',', 1, DSC_LONGEST_SERVED, &l->mean) &&
               parse_number(&text, '\0', 0, 100, &l->cv);
    }
    if (starts(&text, "geometric:")) {
        l->kind = DSC_LENGTHS_GEOMETRIC;
        return parse_number(&text, '\0', 1, DSC_LONGEST_SERVED, &l->mean);
    }
    l->kind = DSC_LENGTHS_CONSTANT;
    if (!parse_length(&text, '\0', &l->least))
        return false;
    l->most = l->least;
    return true;
}

int dsc_lengths_parse(dsc_lengths *out, const char *option, const char *text, dsc_error *err)
{
    *out = (dsc_lengths){.kind = DSC_LENGTHS_CONSTANT};
    if (parse(out, text))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--%s: '%.60s' is not a number of tokens, uniform:A:B, lognormal:MEAN,CV, "
                    "geometric:MEAN, trace:DIR or file:FILE, with lengths from 1 to %d and CV up "
                    "to 100",
                    option, text, DSC_LONGEST_SERVED);
}

static int32_t whole(double x)
{
    return x < 1 ? 1 : x < DSC_LONGEST_SERVED ? (int32_t)x : DSC_LONGEST_SERVED;
}

int32_t dsc_lengths_draw(const dsc_lengths *l, uint64_t seed, int64_t request, dsc_lengths_use use)
{
    const uint64_t r = (uint64_t)request;
    const uint32_t at = 1 + 2 * (uint32_t)use; // 0: the row of a list
    if (l->kind == DSC_LENGTHS_CONSTANT)
        return l->least;
    if (l->kind == DSC_LENGTHS_LISTED)
        return l->list[dsc_rng_below(seed, r, 0, DSC_RNG_LENGTH, (uint32_t)l->count)];
    const double u = 1 - dsc_rng_uniform(seed, r, at, DSC_RNG_LENGTH); // in (0, 1]
    if (l->kind == DSC_LENGTHS_UNIFORM)
        return l->most - (int32_t)floor((1 - u) * ((double)l->most - l->least + 1));
    if (l->kind == DSC_LENGTHS_GEOMETRIC)
        return whole(l->mean > 1 ? ceil(log(u) / log1p(-1 / l->mean)) : 1);
    const double turn = 2 * acos(-1) * dsc_rng_uniform(seed, r, at + 1, DSC_RNG_LENGTH),
                 variance = log1p(l->cv * l->cv); // of the logarithm; Box and Muller 1958
    const double z = sqrt(-2 * log(u)) * cos(turn);
    return whole(floor(l->mean * exp(sqrt(variance) * z - variance / 2) + 0.5));
}

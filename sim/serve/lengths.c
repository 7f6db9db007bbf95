// SPDX-License-Identifier: Apache-2.0
// Distributions of lengths: parsing and draws.
#include "sim/serve/lengths.h"

#include "base/number.h"
#include "base/rng.h"
#include "base/statistics.h"

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

// The place of request i among n, a permutation: a Feistel network of four rounds over the least
// even number of bits that has n numbers, again until the number is one of them.
static uint64_t place_of(uint64_t seed, uint64_t i, uint64_t n, uint32_t use)
{
    uint32_t bits = 1;
    while (n >> 2 * bits)
        bits++;
    do {
        uint64_t left = i >> bits, right = i & ((1u << bits) - 1);
        for (uint32_t round = 0; round < 4; round++) {
            const uint64_t next =
                left ^ dsc_rng_below(seed, right, 8 * use + round, DSC_RNG_LENGTH, 1u << bits);
            left = right;
            right = next;
        }
        i = left << bits | right;
    } while (i >= n);
    return i;
}

int32_t dsc_lengths_draw(const dsc_lengths *l, uint64_t seed, int64_t request, int64_t requests,
                         dsc_lengths_use use)
{
    const bool list = l->kind == DSC_LENGTHS_LISTED;
    const uint64_t r = (uint64_t)request, n = (uint64_t)requests;
    const uint32_t at = list ? 0 : 1 + (uint32_t)use; // 0: the row of a list, for both
    if (l->kind == DSC_LENGTHS_CONSTANT)
        return l->least;
    const double within = dsc_rng_uniform(seed, r, 8 * at + 4, DSC_RNG_LENGTH),
                 u = ((double)place_of(seed, r, n, at) + 1 - within) / (double)n; // in (0, 1]
    if (list)
        return l->list[(size_t)fmin(floor(u * (double)l->count), (double)l->count - 1)];
    if (l->kind == DSC_LENGTHS_UNIFORM)
        return l->most - (int32_t)floor((1 - u) * ((double)l->most - l->least + 1));
    if (l->kind == DSC_LENGTHS_GEOMETRIC)
        return whole(l->mean > 1 ? ceil(log(u) / log1p(-1 / l->mean)) : 1);
    const double variance = log1p(l->cv * l->cv), z = dsc_normal_quantile(fmin(u, 1 - 1e-16));
    return whole(floor(l->mean * exp(sqrt(variance) * z - variance / 2) + 0.5));
}

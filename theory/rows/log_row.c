// SPDX-License-Identifier: Apache-2.0
// Log probabilities to probabilities, block by block; theory/rows/log_row.h.
//
// Log probabilities have a sign or are 0, so their bits without the sign, as integers, fall as they
// grow. Comparisons use those integers, because compilers turn a choice between floats into a
// branch.
#include "theory/rows/log_row.h"

#include "theory/rows/fast_exp.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK = DSC_LOG_ROW_BLOCK, LEAST = 0x42ae0000 }; // bits of 87.0f

// The bits of ln p without its sign.
static int32_t size_of(float logp)
{
    uint32_t bits;
    memcpy(&bits, &logp, sizeof bits);
    return (int32_t)(bits & INT32_MAX);
}

typedef struct tally {
    int64_t above;       // tokens with size < limit
    int32_t least, most; // of all sizes in the block
} tally;

DSC_FOR_EVERY_PROCESSOR
static void exponentials(const float *logp, size_t n, int32_t limit, float *dist, tally *out)
{
    int32_t above = 0, least = out->least, most = out->most;
#pragma omp simd reduction(+ : above) reduction(min : least) reduction(max : most)
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float x, p;
        memcpy(&bits, &logp[i], sizeof bits);
        int32_t size = (int32_t)(bits & INT32_MAX), bounded = size < LEAST ? size : LEAST;
        bits = (uint32_t)bounded | 0x80000000;
        memcpy(&x, &bits, sizeof x);
        p = dsc_fast_expf(x);
        memcpy(&bits, &p, sizeof bits);
        bits &= size < LEAST ? UINT32_MAX : 0;
        memcpy(&p, &bits, sizeof p);
        dist[i] = p;
        above += size < limit ? 1 : 0;
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    out->above += above;
    out->least = least;
    out->most = most;
}

// The sum of p ln p over a block, in floats with at most 64 terms each.
DSC_FOR_EVERY_PROCESSOR
static double sum_p_logp(const float *dist, const float *logp, size_t n)
{
    enum { LANES = 16 };
    float lane[LANES] = {0};
    double sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += dist[i + j] * (logp[i + j] > -87 ? logp[i + j] : -87);
    for (; i < n; i++)
        lane[0] += dist[i] * (logp[i] > -87 ? logp[i] : -87);
    for (int j = 0; j < LANES; j++)
        sum += (double)lane[j];
    return sum;
}

DSC_FOR_EVERY_PROCESSOR
static double sum_of(const float *dist, size_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)dist[i];
    return sum;
}

static float logp_at(const dsc_log_row *r, size_t x)
{
    if (r->logp)
        return r->logp[x];
    uint32_t bits = (uint32_t)r->bf16[x] << 16; // bf16 is the upper half of a binary32
    float logp;
    memcpy(&logp, &bits, sizeof logp);
    return logp;
}

static void unpack(const uint16_t *bf16, size_t n, float *logp)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)bf16[i] << 16;
        memcpy(&logp[i], &bits, sizeof bits);
    }
}

static void start(dsc_log_row *r)
{
    r->mass_logp = 0;
    r->rank_y = 0;
    r->argmax = 0;
    r->most = -INFINITY;
    r->dist_most = 0;
    r->logp_y = logp_at(r, r->y);
}

size_t dsc_log_row_block(dsc_log_row *r, size_t begin, float *dist)
{
    size_t n = r->vocab - begin < BLOCK ? r->vocab - begin : BLOCK;
    float unpacked[BLOCK];
    const float *logp = r->logp ? r->logp + begin : unpacked;
    if (!r->logp)
        unpack(r->bf16 + begin, n, unpacked);
    if (begin == 0)
        start(r);
    // Before y a token that is equally probable counts, after y it does not.
    size_t before = r->y < begin ? 0 : r->y - begin < n ? r->y - begin : n;
    int32_t limit = size_of(r->logp_y);
    tally t = {.least = INT32_MAX};
    exponentials(logp, before, limit + 1, dist, &t);
    exponentials(logp + before, n - before, limit, dist + before, &t);
    r->mass_logp += sum_p_logp(dist, logp, n);
    r->rank_y += t.above;
    r->zeros = t.most >= LEAST;
    if (t.least < size_of(r->most)) {
        size_t i = 0;
        while (size_of(logp[i]) != t.least)
            i++;
        r->argmax = begin + i;
        r->most = logp[i];
        r->dist_most = dist[i];
    }
    return n;
}

// The rounding of the most probable token is most of the error.
void dsc_log_row_finish(dsc_log_row *r, double sum)
{
    r->mass = sum + (exp((double)r->most) - (double)r->dist_most);
}

void dsc_log_row_read(dsc_log_row *r)
{
    float dist[BLOCK];
    double sum = 0;
    for (size_t begin = 0, n; begin < r->vocab; begin += n) {
        n = dsc_log_row_block(r, begin, dist);
        sum += sum_of(dist, n);
    }
    dsc_log_row_finish(r, sum);
}

void dsc_log_row_some(const dsc_log_row *r, const uint32_t *token, size_t count, float *dist)
{
    tally t = {0};
    for (size_t i = 0; i < count; i++)
        dist[i] = logp_at(r, token[i]);
    exponentials(dist, count, 0, dist, &t);
}

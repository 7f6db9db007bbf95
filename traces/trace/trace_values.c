// SPDX-License-Identifier: Apache-2.0
// Checks the numbers in the columns of a shard: ids, offsets, probabilities, ranks and statistics
// (draftscope-trace(5) lists the ranges). Returns the index of the first bad number.
#include "traces/trace/trace_values.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// --- independent numbers -----------------------------------------------------------------------

// Elements checked between two branches; a multiple of every vector length.
enum { BLOCK = 1024, SMALL_BLOCK = 32 };

#define INLINE static inline __attribute__((always_inline))

// The sign bit is set when some id < 0 or > last. (last >= 0, so last - id is exact for id >= 0.)
INLINE uint32_t token_signs(const uint32_t *id, int n, uint32_t last)
{
    uint32_t signs = 0;
    for (int i = 0; i < n; i++)
        signs |= id[i] | (last - id[i]);
    return signs;
}

// The number of tokens in the blocks before the first block with a bad token.
INLINE int64_t good_blocks(const uint32_t *id, int64_t count, uint32_t last)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !(token_signs(id + i, BLOCK, last) >> 31))
        i += BLOCK;
    while (count - i >= SMALL_BLOCK && !(token_signs(id + i, SMALL_BLOCK, last) >> 31))
        i += SMALL_BLOCK;
    return i;
}

// Half of the data of most traces are tokens; AVX2 saves a tenth of the time to open a shard.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static int64_t good_blocks_avx2(const uint32_t *id, int64_t count,
                                                                uint32_t last)
{
    return good_blocks(id, count, last);
}
#endif

static int64_t good_tokens(const uint32_t *id, int64_t count, uint32_t last)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2"))
        return good_blocks_avx2(id, count, last);
#endif
    return good_blocks(id, count, last);
}

int64_t dsc_bad_token(const int32_t *id, int64_t count, int32_t vocab_size)
{
    const uint32_t *u = (const uint32_t *)id;
    for (int64_t i = good_tokens(u, count, (uint32_t)vocab_size - 1); i < count; i++)
        if (id[i] < 0 || id[i] >= vocab_size)
            return i;
    return -1;
}

// Returns whether one of n numbers is outside [low, high]; a NaN is.
static inline int floats_out(const float *x, int n, float low, float high)
{
    int out = 0;
    for (int i = 0; i < n; i++)
        out |= !(x[i] >= low) | !(x[i] <= high);
    return out;
}

static int64_t first_outside(const float *x, int64_t count, float low, float high)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !floats_out(x + i, BLOCK, low, high))
        i += BLOCK;
    for (; i < count; i++)
        if (floats_out(x + i, 1, low, high))
            return i;
    return -1;
}

int64_t dsc_bad_logp(const float *logp, int64_t count)
{
    return first_outside(logp, count, -FLT_MAX, 0);
}

int64_t dsc_bad_amount(const float *x, int64_t count)
{
    return first_outside(x, count, 0, FLT_MAX);
}

int64_t dsc_bad_log_mass(const float *x, int64_t count)
{
    return first_outside(x, count, -INFINITY, 0);
}

// Permitted are +0, and -0 (0x8000) to -inf (0xff80).
static inline int bf16_log_mass_out(const uint16_t *x, int n)
{
    int out = 0;
    for (int i = 0; i < n; i++)
        out |= (x[i] != 0) & ((uint16_t)(x[i] - 0x8000) > 0x7f80);
    return out;
}

int64_t dsc_bad_bf16_log_mass(const uint16_t *x, int64_t count)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !bf16_log_mass_out(x + i, BLOCK))
        i += BLOCK;
    for (; i < count; i++)
        if (bf16_log_mass_out(x + i, 1))
            return i;
    return -1;
}

int64_t dsc_bad_kind(const uint8_t *kind, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (kind[i] != DSC_REFERENCE_DOCUMENT && kind[i] != DSC_REFERENCE_TURN)
            return i;
    return -1;
}

// The sign bit is set when some o[1..n] is negative or, if none is, some difference is. o[0] >= 0.
static inline uint64_t offset_signs(const uint64_t *o, int n)
{
    uint64_t signs = 0;
    for (int i = 0; i < n; i++)
        signs |= o[i + 1] | (o[i + 1] - o[i]);
    return signs;
}

int64_t dsc_bad_offset(const int64_t *offset, int64_t count)
{
    if (offset[0])
        return 0;
    const uint64_t *u = (const uint64_t *)offset;
    int64_t i = 0;
    while (count - 1 - i >= BLOCK && !(offset_signs(u + i, BLOCK) >> 63))
        i += BLOCK;
    for (; i + 1 < count; i++)
        if (offset[i + 1] < offset[i])
            return i + 1;
    return -1;
}

// --- numbers with a shape ----------------------------------------------------------------------

static int64_t bad_u16(const uint16_t *x, int64_t count, int32_t largest, int32_t also)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] > largest && x[i] != also)
            return i;
    return -1;
}

// Returns whether x is in [low, high]; false for a NaN.
static bool between(float x, double low, double high)
{
    return (double)x >= low && (double)x <= high;
}

// x[count / (2 K)][K][2]
static int64_t bad_kseq(const float *x, int64_t count, int K)
{
    for (int64_t i = 0; i < count; i += 2) {
        if (!between(x[i], 1, (double)(i / 2 % K + 1)))
            return i;
        if (!between(x[i + 1], 0, 1))
            return i + 1;
    }
    return -1;
}

// x[count / (K + 1)][K + 1]
static int64_t bad_specinfer(const float *x, int64_t count, int K)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t number = i % (K + 1);
        if (!between(x[i], number ? (double)x[i - 1] : 0, (double)number))
            return i;
    }
    return -1;
}

// x[count / (K (K + 3) / 2)] times the distributions [2], [3], .. [K + 1]. For a distribution that
// does not sum to 1, returns its first element.
static int64_t bad_otm(const float *x, int64_t count, int K)
{
    for (int64_t at = 0; at < count;)
        for (int k = 1; k <= K; at += k++ + 1) {
            double sum = 0;
            for (int64_t i = at; i <= at + k; i++) {
                if (!between(x[i], 0, 1))
                    return i;
                sum += (double)x[i];
            }
            if (fabs(sum - 1) > DSC_ROW_TOLERANCE)
                return at;
        }
    return -1;
}

// x[count / C][C]
static int64_t bad_parent(const uint16_t *x, int64_t count, int32_t C)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = i % C;
        const bool ended = number && x[i - 1] == DSC_PARENT_NONE;
        if (x[i] != DSC_PARENT_NONE && (ended || x[i] > number))
            return i;
    }
    return -1;
}

int64_t dsc_bad_step(const uint16_t *accepted, const uint16_t *drafted, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (accepted[i] > drafted[i])
            return i;
    return -1;
}

// --- by column ---------------------------------------------------------------------------------

int64_t dsc_bad_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                      int64_t count)
{
    switch (dsc_columns[column].values) {
    case VALUES_ANY: return -1;
    case VALUES_OFFSET: return dsc_bad_offset(data, count);
    case VALUES_TOKEN: return dsc_bad_token(data, count, info->vocab_size);
    case VALUES_KIND: return dsc_bad_kind(data, count);
    case VALUES_LOGP: return dsc_bad_logp(data, count);
    case VALUES_LOG_MASS:
        return dtype == DSC_BF16 ? dsc_bad_bf16_log_mass(data, count)
                                 : dsc_bad_log_mass(data, count);
    case VALUES_AMOUNT: return dsc_bad_amount(data, count);
    case VALUES_RANK: return bad_u16(data, count, info->vocab_size - 1, DSC_RANK_NONE);
    case VALUES_LENGTH: return bad_u16(data, count, info->drafter[column - COL_ACCEPT].cap, -1);
    case VALUES_KSEQ: return bad_kseq(data, count, info->statistics_k);
    case VALUES_SPECINFER: return bad_specinfer(data, count, info->statistics_k);
    case VALUES_OTM: return bad_otm(data, count, info->statistics_k);
    case VALUES_PARENT: return bad_parent(data, count, info->candidate_nodes);
    }
    return -1;
}

static double number_at(dsc_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case DSC_U8: return ((const uint8_t *)data)[i];
    case DSC_U16: return ((const uint16_t *)data)[i];
    case DSC_U32: return ((const uint32_t *)data)[i];
    case DSC_BF16: return (double)dsc_of_bf16(((const uint16_t *)data)[i]);
    case DSC_F32: return (double)((const float *)data)[i];
    default: return (double)((const int64_t *)data)[i];
    }
}

// The reason why a number is refused: formats of that number (a double) and of the vocabulary size
// or the drafter's cap.
static const char *const reasons[] = {
    [VALUES_ANY] = "",
    [VALUES_OFFSET] = "offset %.0f; offsets must begin at 0 and never decrease",
    [VALUES_TOKEN] = "token id %.0f is outside the vocabulary of %d",
    [VALUES_KIND] = "unknown kind %.0f (0: document, 1: turn)",
    [VALUES_LOGP] = "%g is not a log-probability (finite, <= 0)",
    [VALUES_LOG_MASS] = "%g is not the logarithm of a probability (<= 0)",
    [VALUES_AMOUNT] = "%g is not finite and >= 0",
    [VALUES_RANK] = "rank %.0f is outside the vocabulary of %d",
    [VALUES_LENGTH] = "length %.0f is above the drafter's cap of %d",
    [VALUES_KSEQ] = "%g is not in range (rho in [1, k], beta in [0, 1])",
    [VALUES_SPECINFER] = "%g; c_1 must be 0, and c_i at least c_{i-1} and at most i - 1",
    [VALUES_PARENT] = "parent %.0f; it must be 0, an earlier candidate, or 65535 to the end",
    [VALUES_OTM] = "%g is not in [0, 1], or the distribution that begins here does not sum to 1",
};

int dsc_fail_value(const dsc_trace_info *info, int column, dsc_dtype dtype, const void *data,
                   int64_t i, const char *where, dsc_error *err)
{
    char name[DSC_COLUMN_NAME_BYTES], why[120];
    dsc_values values = dsc_columns[column].values;
    int largest =
        values == VALUES_LENGTH ? info->drafter[column - COL_ACCEPT].cap : info->vocab_size;
    snprintf(why, sizeof why, reasons[values], number_at(dtype, data, i), largest);
    return dsc_fail(err, DSC_EINPUT, "%s'%s'[%" PRId64 "]: %s", where,
                    dsc_column_name(info, column, name), i, why);
}

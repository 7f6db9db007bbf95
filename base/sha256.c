// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4, section 6.2) of messages and files; eight files are hashed side by side
// (base/sha256_lanes.c). Test value: SHA-256("abc") = ba7816bf...15ad.
#include "base/sha256.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/sha256_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

// One step of the compression. The caller renames the eight words instead of moving them.
static inline void mix(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                       uint32_t g, uint32_t *h, uint32_t key)
{
    uint32_t t1 = *h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + key;
    uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    *d += t1;
    *h = t1 + t2;
}

static void compress_block(uint32_t state[8], const uint8_t block[64])
{
    const uint32_t *K = dsc_sha256_constants;
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 8) {
        mix(a, b, c, &d, e, f, g, &h, K[t] + w[t]);
        mix(h, a, b, &c, d, e, f, &g, K[t + 1] + w[t + 1]);
        mix(g, h, a, &b, c, d, e, &f, K[t + 2] + w[t + 2]);
        mix(f, g, h, &a, b, c, d, &e, K[t + 3] + w[t + 3]);
        mix(e, f, g, &h, a, b, c, &d, K[t + 4] + w[t + 4]);
        mix(d, e, f, &g, h, a, b, &c, K[t + 5] + w[t + 5]);
        mix(c, d, e, &f, g, h, a, &b, K[t + 6] + w[t + 6]);
        mix(b, c, d, &e, f, g, h, &a, K[t + 7] + w[t + 7]);
    }
    const uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += add[i];
}

static void compress(uint32_t state[8], const uint8_t *bytes, size_t blocks)
{
    for (; blocks; blocks--, bytes += 64)
        compress_block(state, bytes);
}

static bool always(void)
{
    return true;
}

const dsc_sha256_kernel dsc_sha256_kernel_c = {"c", always, compress};

const dsc_sha256_kernel *const dsc_sha256_kernels[] = {
#ifdef DSC_SHA256_X86
    &dsc_sha256_kernel_sha,
#endif
    &dsc_sha256_kernel_c,
    NULL,
};

const dsc_sha256_lanes *const dsc_sha256_lane_kernels[] = {
#ifdef DSC_SHA256_X86
    &dsc_sha256_lanes_avx512,
    &dsc_sha256_lanes_avx2,
#endif
    NULL,
};

void dsc_sha256_init(dsc_sha256 *s)
{
    if (!s)
        return;
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, initial, sizeof initial);
    s->length = 0;
    const dsc_sha256_kernel *const *kernel = dsc_sha256_kernels;
    while (!(*kernel)->supported())
        kernel++;
    s->compress = (*kernel)->compress;
}

void dsc_sha256_update(dsc_sha256 *s, const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    if (!s || !s->compress || !p)
        return;
    size_t have = s->length % 64;
    s->length += length;
    if (have) {
        size_t take = length < 64 - have ? length : 64 - have;
        if (take)
            memcpy(s->block + have, p, take);
        p += take;
        length -= take;
        if (have + take < 64)
            return;
        s->compress(s->state, s->block, 1);
    }
    if (length >= 64)
        s->compress(s->state, p, length / 64);
    if (length % 64)
        memcpy(s->block, p + (length - length % 64), length % 64);
}

void dsc_sha256_final(dsc_sha256 *s, char hex[DSC_SHA256_HEX])
{
    if (hex)
        *hex = '\0';
    if (!hex || !s || !s->compress)
        return;
    uint64_t bits = s->length * 8;
    uint8_t tail[72] = {0x80};
    size_t pad = 64 - (s->length + 8) % 64; // 1..64 bytes: 0x80 and zeros, up to the length field
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    dsc_sha256_update(s, tail, pad + 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", s->state[i]);
}

// --- files -------------------------------------------------------------------------------------

enum {
    LANES = DSC_SHA256_LANES,
    FEW_LANES = 2,    // with fewer messages, one after the other is faster
    CHUNK = 64 << 10, // bytes read at a time: whole blocks
};

// A file being hashed.
typedef struct stream {
    FILE *file;
    dsc_sha256 hash;
    uint8_t *chunk;       // [CHUNK]
    size_t begin, length; // the bytes in it that are not hashed yet
} stream;

// The fastest way to hash several messages at once; NULL: there is none. With the SHA extensions
// one after the other is faster.
static const dsc_sha256_lanes *choose_lanes(void)
{
    const dsc_sha256_lanes *const *k = dsc_sha256_lane_kernels;
#ifdef DSC_SHA256_X86
    if (dsc_sha256_kernel_sha.supported())
        return NULL;
#endif
    while (*k && !(*k)->supported())
        k++;
    return *k;
}

// Hashes the blocks that all non-empty streams have; false when these streams are too few.
static bool side_by_side(stream s[], size_t count, const dsc_sha256_lanes *lanes)
{
    uint32_t state[LANES][8] = {{0}};
    const uint8_t *bytes[LANES];
    size_t used = 0, which[LANES], blocks = CHUNK / 64;
    for (size_t i = 0; i < count; i++) {
        size_t have = s[i].length / 64;
        if (!have)
            continue;
        which[used++] = i;
        blocks = have < blocks ? have : blocks;
    }
    if (used < FEW_LANES)
        return false;
    for (size_t l = 0; l < LANES; l++) { // unused lanes repeat the first
        const stream *from = &s[which[l < used ? l : 0]];
        bytes[l] = from->chunk + from->begin;
        if (l < used)
            memcpy(state[l], from->hash.state, sizeof state[l]);
    }
    lanes->compress(state, bytes, blocks);
    for (size_t l = 0; l < used; l++) {
        stream *to = &s[which[l]];
        memcpy(to->hash.state, state[l], sizeof state[l]);
        to->hash.length += 64 * blocks;
        to->begin += 64 * blocks;
        to->length -= 64 * blocks;
    }
    return true;
}

// Chunks hold whole blocks, except the last of a file, so no stream has a partial block pending.
static int hash_streams(stream s[], const char *const *paths, size_t count, dsc_error *err)
{
    const dsc_sha256_lanes *lanes = choose_lanes();
    for (size_t total = 1; total;) {
        total = 0;
        for (size_t i = 0; i < count; i++) {
            s[i].begin = 0;
            s[i].length = fread(s[i].chunk, 1, CHUNK, s[i].file);
            if (ferror(s[i].file))
                return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", paths[i]);
            total += s[i].length;
        }
        while (lanes && side_by_side(s, count, lanes))
            ;
        for (size_t i = 0; i < count; i++)
            dsc_sha256_update(&s[i].hash, s[i].chunk + s[i].begin, s[i].length);
    }
    return DSC_OK;
}

// Hashes at most LANES files.
static int hash_files(const char *const *paths, size_t count, char (*hex)[DSC_SHA256_HEX],
                      dsc_error *err)
{
    stream s[LANES] = {{0}};
    void *chunks;
    int rc = dsc_alloc(&chunks, count, CHUNK, err);
    for (size_t i = 0; i < count && !rc; i++) {
        s[i].chunk = (uint8_t *)chunks + i * CHUNK;
        dsc_sha256_init(&s[i].hash);
        rc = dsc_check_regular(paths[i], err);
        if (!rc && !(s[i].file = fopen(paths[i], "rb")))
            rc = dsc_fail_errno(err, DSC_EINPUT, errno, "%s", paths[i]);
    }
    if (!rc)
        rc = hash_streams(s, paths, count, err);
    for (size_t i = 0; i < count; i++) {
        if (!rc)
            dsc_sha256_final(&s[i].hash, hex[i]);
        if (s[i].file)
            fclose(s[i].file);
    }
    free(chunks);
    return rc;
}

int dsc_sha256_files(const char *const *paths, size_t count, char (*hex)[DSC_SHA256_HEX],
                     dsc_error *err)
{
    int rc = DSC_OK;
    if (count && (!paths || !hex))
        rc = dsc_fail(err, DSC_EUSAGE, "dsc_sha256_files: paths and hex must not be NULL");
    for (size_t i = 0; i < count && !rc; i++)
        if (!paths[i])
            rc = dsc_fail(err, DSC_EUSAGE, "dsc_sha256_files: path %zu is NULL", i);
    for (size_t i = 0, n; i < count && !rc; i += n) {
        n = count - i < LANES ? count - i : LANES;
        rc = hash_files(paths + i, n, hex + i, err);
    }
    return rc;
}

int dsc_sha256_file(const char *path, char hex[DSC_SHA256_HEX], dsc_error *err)
{
    return dsc_sha256_files(&path, 1, (char(*)[DSC_SHA256_HEX])hex, err);
}

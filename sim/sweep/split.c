// SPDX-License-Identifier: Apache-2.0
// Block sizes, cells and their shards, and the text form of a division (sim/sweep/split.h).
#include "sim/sweep/split.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dsc_split_shard(dsc_split *s, const char *text, dsc_error *err)
{
    int end = 0;
    char slash;
    // Digits only: sscanf takes signs and spaces.
    bool digits = text[strspn(text, "0123456789/")] == '\0' && strlen(text) < 16;
    if (!digits ||
        sscanf(text, "%" SCNd64 "%c%" SCNd64 "%n", &s->shard, &slash, &s->shards, &end) != 3 ||
        slash != '/' || text[end] || s->shard < 1 || s->shard > s->shards ||
        s->shards > DSC_MAX_SHARDS)
        return dsc_fail(err, DSC_EUSAGE, "--shard: '%.60s' is not I/N with 1 <= I <= N <= %d", text,
                        DSC_MAX_SHARDS);
    return DSC_OK;
}

static int64_t blocks(int64_t n, int64_t block)
{
    return n / block + (n % block != 0);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

int64_t dsc_split_cells(const dsc_split *s)
{
    return blocks(s->configurations, s->configuration_block) *
           blocks(s->requests, s->request_block);
}

int dsc_split_blocks(dsc_split *s, int64_t output_tokens, dsc_error *err)
{
    // A cell is at most some seconds of work (tokens x configurations), and a shard has several
    // cells, so that shares are even. The configurations of a cell share one pass over its
    // requests.
    enum { REQUESTS = 64, REQUEST_BLOCKS = 256, CONFIGURATIONS = 1024, CELLS_A_SHARD = 16 };
    static const int64_t work = 1 << 26;
    if (!s->request_block)
        s->request_block = clamp(blocks(s->requests, REQUEST_BLOCKS), REQUESTS, INT64_MAX);
    int64_t across = blocks(s->requests, s->request_block);
    if (!s->configuration_block) {
        int64_t tokens = across ? output_tokens / across + 1 : 1;
        int64_t light = clamp(work / tokens, 1, CONFIGURATIONS);
        int64_t even = s->configurations * across / (CELLS_A_SHARD * s->shards);
        s->configuration_block = clamp(even, 1, light);
    }
    s->configuration_block = clamp(s->configuration_block, 1, s->configurations);
    s->request_block = clamp(s->request_block, 1, s->requests > 0 ? s->requests : 1);
    int64_t down = blocks(s->configurations, s->configuration_block);
    if (across && down > DSC_MAX_CELLS / across)
        return dsc_fail(err, DSC_EUSAGE,
                        "%" PRId64 " x %" PRId64 " blocks of configurations and requests are more "
                        "than %d cells: larger --block or --request-block",
                        down, across, DSC_MAX_CELLS);
    return DSC_OK;
}

#define SPLIT_FORMAT(number)                                                                       \
    "shard=%" number "/%" number " configurations=%" number " requests=%" number                   \
    " configuration_block=%" number " request_block=%" number

void dsc_split_text(const dsc_split *s, char text[DSC_SPLIT_TEXT])
{
    snprintf(text, DSC_SPLIT_TEXT, SPLIT_FORMAT(PRId64), s->shard, s->shards, s->configurations,
             s->requests, s->configuration_block, s->request_block);
}

int dsc_split_parse(dsc_split *s, const char *text, dsc_error *err)
{
    char again[DSC_SPLIT_TEXT];
    *s = (dsc_split){0};
    int n = sscanf(text, SPLIT_FORMAT(SCNd64), &s->shard, &s->shards, &s->configurations,
                   &s->requests, &s->configuration_block, &s->request_block);
    bool ok = n == 6 && s->shard >= 1 && s->shard <= s->shards && s->shards <= DSC_MAX_SHARDS &&
              s->configurations >= 1 && s->requests >= 0 && s->configuration_block >= 1 &&
              s->request_block >= 1;
    if (ok) {
        int64_t across = blocks(s->requests, s->request_block);
        dsc_split_text(s, again);
        ok = strcmp(text, again) == 0 &&
             (!across ||
              blocks(s->configurations, s->configuration_block) <= DSC_MAX_CELLS / across);
    }
    return ok ? DSC_OK : dsc_fail(err, DSC_EINPUT, "'%.150s' is not the division of a sweep", text);
}

typedef struct card {
    uint64_t hash;
    int64_t cell;
} card;

static int by_hash(const void *a, const void *b)
{
    const card *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->cell > y->cell) - (x->cell < y->cell);
}

dsc_cell_range dsc_split_cell(const dsc_split *s, int64_t cell)
{
    int64_t down = blocks(s->configurations, s->configuration_block);
    int64_t c = cell % down * s->configuration_block, r = cell / down * s->request_block;
    int64_t left_c = s->configurations - c, left_r = s->requests - r;
    return (dsc_cell_range){
        c, c + (left_c < s->configuration_block ? left_c : s->configuration_block), //
        r, r + (left_r < s->request_block ? left_r : s->request_block)};
}

int dsc_split_deal(const dsc_split *s, int32_t **owner, dsc_error *err)
{
    int64_t cells = dsc_split_cells(s), down = blocks(s->configurations, s->configuration_block);
    card *deck;
    *owner = NULL;
    int rc = dsc_new(&deck, (size_t)cells, err);
    if (!rc)
        rc = dsc_new(owner, (size_t)cells, err);
    for (int64_t i = 0; i < cells && !rc; i++) {
        uint32_t word[4];
        dsc_rng_words(0, (uint64_t)(i / down), (uint32_t)(i % down), DSC_RNG_SPLIT, word);
        deck[i] = (card){(uint64_t)word[0] << 32 | word[1], i};
    }
    if (!rc)
        qsort(deck, (size_t)cells, sizeof *deck, by_hash);
    for (int64_t i = 0; i < cells && !rc; i++)
        (*owner)[deck[i].cell] = (int32_t)(i % s->shards) + 1;
    free(deck);
    return rc;
}

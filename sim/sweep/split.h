// SPDX-License-Identifier: Apache-2.0
// The division of a sweep among processes that do not communicate.
//
// A cell is a block of configurations on a block of requests. The cells, ordered by a hash of their
// position, are dealt to the shards in turn. So a shard's cells depend on these numbers only, two
// shards differ by at most one cell, and neighbors in the grid, which cost about the same, are
// spread over all shards. Blocks of requests let few configurations, or one, use many processes.
#ifndef DSC_SIM_SPLIT_H
#define DSC_SIM_SPLIT_H

#include "base/memory.h"

#include <stdint.h>

typedef struct dsc_split {
    int64_t shard, shards;                      // 1 <= shard <= shards
    int64_t configurations, requests;           // of the whole sweep
    int64_t configuration_block, request_block; // of a cell; the last ones may be smaller
} dsc_split;

enum { DSC_MAX_SHARDS = 1000000, DSC_MAX_CELLS = 1 << 24 };

// Configurations [configuration, configuration_end) on requests [request, request_end).
typedef struct dsc_cell_range {
    int64_t configuration, configuration_end;
    int64_t request, request_end;
} dsc_cell_range;

// "I/N", 1 <= I <= N <= DSC_MAX_SHARDS. DSC_EUSAGE otherwise.
int dsc_split_shard(dsc_split *s, const char *text, dsc_error *err);

// Chooses the block sizes that are 0, from the sweep and the number of shards alone, so that every
// machine chooses the same. `output_tokens`: of all requests. DSC_EUSAGE: more than DSC_MAX_CELLS.
int dsc_split_blocks(dsc_split *s, int64_t output_tokens, dsc_error *err);

// The split as text, and its parser: "shard=3/8 configurations=256 requests=117
// configuration_block=2 request_block=64". DSC_EINPUT when it is not such a text, or a number is
// out of range.
enum { DSC_SPLIT_TEXT = 192 };
void dsc_split_text(const dsc_split *s, char text[DSC_SPLIT_TEXT]);
int dsc_split_parse(dsc_split *s, const char *text, dsc_error *err);

int64_t dsc_split_cells(const dsc_split *s);                     // of all shards together
dsc_cell_range dsc_split_cell(const dsc_split *s, int64_t cell); // 0 <= cell < cells
// owner[cell]: the shard that counts the cell, from 1. *owner [cells] is owned by the caller. A
// shard runs its cells in ascending order, and so reads the requests once.
int dsc_split_deal(const dsc_split *s, int32_t **owner, dsc_error *err);

#endif

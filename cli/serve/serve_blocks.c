// SPDX-License-Identifier: Apache-2.0
// Sums over blocks and batches of requests, which rows carry so that the verdict by load can be
// made from a table alone, also from one that was merged of shards.
#include "cli/serve/serve.h"
#include "sim/serve/serve_schedule.h"

const dsc_column cli_serve_block_columns[] = {
    {"distinct_requests", DSC_CELL_INT,
     "number of different requests of the trace that are served"},
    {"block_latency_s", DSC_CELL_LIST,
     "sum of the times from arrival to last token in each of 40 blocks of the trace's requests; a "
     "verdict is chosen on the blocks 0, 2, ... and judged on the others"},
    {"block_good", DSC_CELL_LIST, "number of requests within every limit of --slo in each block"},
    {"block_engine_s", DSC_CELL_LIST,
     "the engine's time in each block, divided equally among the requests that run together"},
    {"batch_latency_s", DSC_CELL_LIST,
     "sum of the times from arrival to last token in each of 20 batches of consecutive requests, "
     "of the requests in blocks 1, 3, ..."},
    {"batch_good", DSC_CELL_LIST,
     "number of requests within every limit of --slo in each batch, of those in blocks 1, 3, ..."},
    {"batch_engine_s", DSC_CELL_LIST,
     "the engine's time in each batch, of the requests in blocks 1, 3, ..."},
};
const size_t cli_serve_block_columns_count =
    sizeof cli_serve_block_columns / sizeof *cli_serve_block_columns;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void cli_serve_blocks_begin(cli_serve_blocks *b, const dsc_serve_options *o, size_t items)
{
    *b = (cli_serve_blocks){.first = o->ramp,
                            .measured = o->requests,
                            .items = least(o->requests, (int64_t)items),
                            .slo_ttft_s = o->slo_ttft_s,
                            .slo_tpot_s = o->slo_tpot_s};
    b->blocks = (size_t)least(b->items, CLI_SERVE_BLOCKS);
    b->batches = (size_t)least(b->measured, CLI_SERVE_RUN_BATCHES);
}

static void add(cli_serve_sums *s, const cli_serve_sums *x)
{
    s->latency_s += x->latency_s;
    s->engine_s += x->engine_s;
    s->good += x->good;
}

// Where fewer requests are drawn (--order shuffle) than there are items, several of these count as
// one, so that a block still has requests that no other has.
static void add_request(cli_serve_blocks *b, int64_t number, size_t item, const cli_serve_sums *x)
{
    const size_t block = (size_t)((int64_t)item % b->items * (int64_t)b->blocks / b->items),
                 batch = (size_t)((number - b->first) * (int64_t)b->batches / b->measured);
    add(&b->block[block], x);
    if (block % 2)
        add(&b->batch[batch], x);
}

// Every few steps the time since the last time is divided among the requests that run then: all
// time is counted, at little cost.
void cli_serve_blocks_step(cli_serve_blocks *b, const dsc_serve_engine *e)
{
    enum { EVERY = 8 };
    b->passed_s += e->step.seconds;
    if (++b->steps % EVERY || !e->running_count)
        return;
    const cli_serve_sums share = {.engine_s = b->passed_s / (double)e->running_count};
    for (int64_t i = 0; i < e->running_count; i++) {
        const int64_t number = e->running[i].number;
        if (number >= b->first && number < b->first + b->measured)
            add_request(b, number, (size_t)(dsc_serve_item_of(e->pool, number) - e->pool->item),
                        &share);
    }
    b->passed_s = 0;
}

void cli_serve_blocks_add(cli_serve_blocks *b, const dsc_serve_sequence *s, size_t item)
{
    const double ttft = s->first_s - s->arrival_s,
                 tpot = s->output > 1 ? (s->last_s - s->first_s) / (s->output - 1) : 0;
    const cli_serve_sums x = {.latency_s = s->last_s - s->arrival_s,
                              .good = ttft <= b->slo_ttft_s && tpot <= b->slo_tpot_s};
    if (s->number >= b->first && s->number < b->first + b->measured)
        add_request(b, s->number, item, &x);
}

// The three lists of `count` sums.
static void put_lists(const cli_serve_sums *s, size_t count, dsc_cell cell[3], double *reals,
                      int64_t *good)
{
    for (size_t i = 0; i < count; i++) {
        reals[i] = s[i].latency_s;
        reals[count + i] = s[i].engine_s;
        good[i] = s[i].good;
    }
    const int64_t n = (int64_t)count;
    cell[0] = (dsc_cell){.type = DSC_CELL_LIST, .reals = reals, .i = n};
    cell[1] = (dsc_cell){.type = DSC_CELL_LIST, .list = good, .i = n};
    cell[2] = (dsc_cell){.type = DSC_CELL_LIST, .reals = reals + count, .i = n};
}

void cli_serve_block_cells(const cli_serve_blocks *b, dsc_cell *cell, cli_serve_block_room *room)
{
    cell[0] = dsc_cell_int(b->items);
    put_lists(b->block, b->blocks, cell + 1, room->reals, room->good);
    put_lists(b->batch, b->batches, cell + 4, room->reals + 2 * CLI_SERVE_BLOCKS,
              room->good + CLI_SERVE_BLOCKS);
}

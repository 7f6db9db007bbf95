// SPDX-License-Identifier: Apache-2.0
// Sums over blocks and batches of requests, which rows carry so that the verdict by load can be
// made from a table alone, also from one that was merged of shards; and the cells of the verdict.
#include "cli/serve/serve.h"
#include "sim/serve/serve_schedule.h"

#include <math.h>

const dsc_column cli_serve_block_columns[] = {
    {"distinct_requests", DSC_CELL_INT,
     "number of different requests of the trace that are served"},
    {"load_elasticity", DSC_CELL_REAL,
     "percent by which the utility, of which gain is a ratio, changes if the rate of arrivals "
     "rises "
     "by one percent; nan for closed loops and where the queue grows"},
    {"block_requests", DSC_CELL_LIST,
     "number of measured requests in each of 40 blocks of the trace's requests"},
    {"block_latency_s", DSC_CELL_LIST, "sum of the times from arrival to last token in each block"},
    {"block_good", DSC_CELL_LIST, "number of requests within every limit of --slo in each block"},
    {"block_engine_s", DSC_CELL_LIST,
     "the engine's time in each block, divided equally among the requests that run together"},
    {"batch_requests", DSC_CELL_LIST,
     "number of measured requests in each of 20 batches of consecutive ones"},
    {"batch_latency_s", DSC_CELL_LIST, "sum of the times from arrival to last token in each batch"},
    {"batch_good", DSC_CELL_LIST, "number of requests within every limit of --slo in each batch"},
    {"batch_engine_s", DSC_CELL_LIST, "the engine's time in each batch"},
};
const size_t cli_serve_block_columns_count =
    sizeof cli_serve_block_columns / sizeof *cli_serve_block_columns;

const dsc_column cli_serve_gain_columns[CLI_SERVE_GAIN_COLUMNS] = {
    {"gain", DSC_CELL_REAL,
     "utility divided by that of no speculation at the load; utility: the share of requests within "
     "--slo plus a tenth of the rest, divided by e2e_mean_s, in a closed loop times tokens_per_s; "
     "where the queue grows with one of the two, tokens_per_s alone"},
    {"gain_low", DSC_CELL_REAL,
     "lower end of the 95 % interval of gain, which holds for all rows of the load together; nan "
     "where the queue grows with one of the two alone"},
    {"gain_high", DSC_CELL_REAL, "upper end of this interval"},
    {"advice", DSC_CELL_TEXT,
     "run: what to run at the load; judged: the best configuration that drafts where the advice is "
     "to leave speculation off"},
};
void cli_serve_gain_cells(const dsc_load_gain *g, const char *advice, dsc_cell *cell)
{
    cell[0] = dsc_cell_real(g->gain);
    cell[1] = dsc_cell_real(g->low);
    cell[2] = dsc_cell_real(g->high);
    cell[3] = dsc_cell_text(advice);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void cli_serve_blocks_begin(cli_serve_blocks *b, const dsc_serve_options *o, size_t items)
{
    *b = (cli_serve_blocks){.first = o->ramp,
                            .measured = o->requests,
                            .items = least(o->requests, (int64_t)items),
                            .elasticity = NAN,
                            .slo_ttft_s = o->slo_ttft_s,
                            .slo_tpot_s = o->slo_tpot_s};
    b->blocks = (size_t)least(b->items, CLI_SERVE_BLOCKS);
    b->batches = (size_t)least(b->measured, CLI_SERVE_BATCHES);
}

static void add(cli_serve_sums *s, const cli_serve_sums *x)
{
    s->ttft_s += x->ttft_s;
    s->tpot_s += x->tpot_s;
    s->tpots += x->tpots;
    s->latency_s += x->latency_s;
    s->engine_s += x->engine_s;
    s->requests += x->requests;
    s->good += x->good;
}

// Where fewer requests are drawn (--order shuffle) than there are items, several of these count as
// one, so that a block still has requests that no other has.
static void add_request(cli_serve_blocks *b, int64_t number, size_t item, const cli_serve_sums *x)
{
    const size_t block = (size_t)((int64_t)item % b->items * (int64_t)b->blocks / b->items),
                 batch = (size_t)((number - b->first) * (int64_t)b->batches / b->measured);
    add(&b->block[block], x);
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
    const bool good = ttft <= b->slo_ttft_s && tpot <= b->slo_tpot_s;
    add_request(b, s->number, item,
                &(cli_serve_sums){.requests = 1,
                                  .good = good,
                                  .ttft_s = ttft,
                                  .tpot_s = tpot,
                                  .tpots = s->output > 1,
                                  .latency_s = s->last_s - s->arrival_s});
}

int64_t cli_serve_blocks_first(const cli_serve_blocks *b, bool all)
{
    int64_t requests = 0;
    for (size_t i = 0; i < b->batches && (all || 4 * i < b->batches); i++)
        requests += b->batch[i].requests;
    return requests;
}

void cli_serve_blocks_elasticity(cli_serve_blocks *b, const dsc_serve_totals *t, double by)
{
    cli_serve_sums same = {0};
    for (size_t i = 0; i < b->batches && same.requests < t->measured; i++)
        add(&same, &b->batch[i]);
    const double n = (double)t->measured;
    b->elasticity =
        (log(dsc_load_worth((double)t->good / n) / dsc_load_worth((double)same.good / n)) -
         log(dsc_latency_mean(&t->e2e) / (same.latency_s / n))) /
        log(by);
}

// The lists of `count` sums.
static void put_lists(const cli_serve_sums *s, size_t count, dsc_cell cell[4], double *reals,
                      int64_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = s[i].requests;
        reals[i] = s[i].latency_s;
        numbers[count + i] = s[i].good;
        reals[count + i] = s[i].engine_s;
    }
    for (size_t i = 0; i < 4; i += 2) {
        cell[i] =
            (dsc_cell){.type = DSC_CELL_LIST, .list = numbers + i / 2 * count, .i = (int64_t)count};
        cell[i + 1] =
            (dsc_cell){.type = DSC_CELL_LIST, .reals = reals + i / 2 * count, .i = (int64_t)count};
    }
}

void cli_serve_block_cells(const cli_serve_blocks *b, dsc_cell *cell, cli_serve_block_room *room)
{
    cell[0] = dsc_cell_int(b->items);
    cell[1] = dsc_cell_real(b->elasticity);
    put_lists(b->block, b->blocks, cell + 2, room->reals, room->numbers);
    put_lists(b->batch, b->batches, cell + 6, room->reals + 2 * CLI_SERVE_BLOCKS,
              room->numbers + 2 * CLI_SERVE_BLOCKS);
}

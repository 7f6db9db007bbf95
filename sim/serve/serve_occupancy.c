// SPDX-License-Identifier: Apache-2.0
// Bins a run over time in bounded memory: when a step ends beyond the last bin, pairs of bins are
// merged and their length doubles, so at least half of the bins are in use at the end.
#include "sim/serve/serve_occupancy.h"

#include <math.h>
#include <string.h>

static const double shortest_s = 0x1p-20; // a power of two: bins are halves of each other, exactly

static void merge_pairs(dsc_serve_occupancy *o)
{
    for (size_t i = 0; i < DSC_SERVE_BINS / 2; i++)
        for (int q = 0; q < DSC_SERVE_QUANTITIES; q++)
            o->bin[i][q] = o->bin[2 * i][q] + o->bin[2 * i + 1][q];
    memset(o->bin[DSC_SERVE_BINS / 2], 0, sizeof o->bin / 2);
    o->width_s *= 2;
}

static size_t bin_of(const dsc_serve_occupancy *o, double seconds)
{
    const double i = floor(seconds / o->width_s);
    return i < DSC_SERVE_BINS ? (size_t)i : DSC_SERVE_BINS - 1;
}

// Divides `more` among the bins by their shares of [from, to], in seconds from the begin on.
static void spread(dsc_serve_occupancy *o, const double *more, double from, double to)
{
    const size_t first = bin_of(o, from), last = bin_of(o, to);
    for (size_t i = first; i <= last; i++) {
        const double low = fmax(from, (double)i * o->width_s),
                     high = i == last ? to : (double)(i + 1) * o->width_s,
                     share = first == last ? 1 : (high - low) / (to - from);
        for (int q = 0; q < DSC_SERVE_QUANTITIES; q++)
            o->bin[i][q] += share * more[q];
    }
}

void dsc_serve_occupancy_add(dsc_serve_occupancy *o, const dsc_serve_engine *e)
{
    const dsc_serve_totals *t = e->totals;
    const double sum[DSC_SERVE_QUANTITIES] = {
        [DSC_SERVE_BUSY_S] = o->before[DSC_SERVE_BUSY_S] + e->step.seconds,
        [DSC_SERVE_RUNNING_S] = t->running_area,
        [DSC_SERVE_WAITING_S] = t->waiting_area,
        [DSC_SERVE_BLOCKS_S] = t->block_area,
        [DSC_SERVE_STEPS] = (double)t->steps,
        [DSC_SERVE_DECODING] = o->before[DSC_SERVE_DECODING] + (double)e->step.decoding,
        [DSC_SERVE_DRAFTED] = (double)t->num_draft_tokens,
        [DSC_SERVE_ACCEPTED] = (double)t->num_accepted_tokens};
    double more[DSC_SERVE_QUANTITIES];
    if (!(o->width_s > 0)) {
        o->width_s = shortest_s;
        o->begin_s = e->begin_s;
    }
    o->end_s = e->now_s;
    while (o->end_s - o->begin_s > DSC_SERVE_BINS * o->width_s)
        merge_pairs(o);
    for (int q = 0; q < DSC_SERVE_QUANTITIES; q++)
        more[q] = sum[q] - o->before[q];
    const double to = o->end_s - o->begin_s;
    spread(o, more, fmax(0, to - e->step.seconds), to);
    memcpy(o->before, sum, sizeof sum);
}

size_t dsc_serve_occupancy_bins(const dsc_serve_occupancy *o)
{
    return o->width_s > 0 ? (size_t)fmax(1, ceil((o->end_s - o->begin_s) / o->width_s)) : 0;
}

double dsc_serve_occupancy_seconds(const dsc_serve_occupancy *o, size_t i)
{
    const double left = o->end_s - o->begin_s - (double)i * o->width_s;
    return left < o->width_s ? left : o->width_s;
}

// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the specification that others are checked against. A pass of fewer than
// LIVE_BLAS_ROWS rows, and any pass of an invariant backend, gives every token the same bits,
// whatever the other tokens are and whichever slots lie between those that it sees.
#include "live/device/cpu.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

static dsc_dtype cache_dtype(dsc_dtype weights)
{
    (void)weights;
    return DSC_F32;
}

static int begin(live_backend *b, const void *owner, const live_batch *batch, bool *replayed,
                 dsc_error *err)
{
    (void)owner;
    (void)err;
    cpu_backend *c = cpu_of(b);
    c->batch = batch;
    c->angles_of = NULL;
    *replayed = false;
    return DSC_OK;
}

static int end(live_backend *b, dsc_error *err)
{
    (void)err;
    cpu_of(b)->batch = NULL;
    return DSC_OK;
}

// Operations have happened when they return.
static int wait(live_backend *b, dsc_error *err)
{
    (void)b;
    (void)err;
    return DSC_OK;
}

static void close_cpu(live_backend *b)
{
    cpu_backend *c = cpu_of(b);
    live_cpu_free(b, c->angles.data);
    live_cpu_free(b, c->work.data);
    live_cpu_leave_page(c);
    free(c);
}

static const live_backend_type type = {
    .name = "cpu",
    .alloc = live_cpu_alloc,
    .free = live_cpu_free,
    .upload = live_cpu_copy,
    .download = live_cpu_copy,
    .copy = live_cpu_copy,
    .alloc_host = live_cpu_alloc,
    .free_host = live_cpu_free,
    .fill = live_cpu_fill,
    .cache_dtype = cache_dtype,
    .memory = live_cpu_memory,
    .begin = begin,
    .end = end,
    .wait = wait,
    .embed = live_cpu_embed,
    .gather = live_cpu_gather,
    .scatter = live_cpu_scatter,
    .norm = live_cpu_norm,
    .product = live_cpu_product,
    .rotate = live_cpu_rotate,
    .attend = live_cpu_attend,
    .add = live_cpu_add,
    .select = live_cpu_select,
    .summarize = live_cpu_summarize,
    .fetch = live_cpu_copy,
    .compare = live_cpu_compare,
    .list = live_cpu_list,
    .leave = live_cpu_leave,
    .move = live_cpu_move,
    .probe = live_cpu_probe,
    .close = close_cpu,
};

int live_backend_cpu(live_backend **out, int threads, bool invariant, dsc_error *err)
{
    void *p;
    *out = NULL;
    if (threads < 1)
        return dsc_fail(err, DSC_EUSAGE, "%d threads, at least 1 is needed", threads);
    int rc = dsc_alloc(&p, 1, sizeof(cpu_backend), err);
    if (rc)
        return rc;
    cpu_backend *c = p;
    c->base =
        (live_backend){.type = &type, .threads = threads, .invariant = invariant, .on_host = true};
    snprintf(c->base.device, sizeof c->base.device, "cpu");
    c->kernel = live_cpu_kernel_choose();
    *out = &c->base;
    return DSC_OK;
}

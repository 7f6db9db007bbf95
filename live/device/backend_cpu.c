// SPDX-License-Identifier: Apache-2.0
// The CPU backend, the specification for other backends. In a pass of fewer than LIVE_BLAS_ROWS
// rows, and in any pass of an invariant backend, the result of a token has the same bits for any
// other tokens and for any slots between those that it attends to.
#include "live/device/cpu.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

static dsc_dtype cache_dtype(dsc_dtype weights)
{
    (void)weights;
    return DSC_F32;
}

static int begin(live_backend *b, live_pass_key key, const live_batch *batch, bool *replayed,
                 dsc_error *err)
{
    (void)key;
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

// Operations are complete when they return.
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
    live_cpu_free(b, c->experts.data);
    live_cpu_free(b, c->work.data);
    live_cpu_leave_page(c);
    free(c);
}

static const live_backend_type type = {
    .name = "cpu",
    .memory =
        {
            .alloc = live_cpu_alloc,
            .free = live_cpu_free,
            .alloc_host = live_cpu_alloc,
            .free_host = live_cpu_free,
            .upload = live_cpu_copy,
            .download = live_cpu_copy,
            .copy = live_cpu_copy,
            .fetch = live_cpu_copy,
            .fill = live_cpu_fill,
            .cache_dtype = cache_dtype,
            .available = live_cpu_available,
        },
    .pass =
        {
            .begin = begin,
            .end = end,
            .wait = wait,
            .embed = live_cpu_embed,
            .gather = live_cpu_gather,
            .spread = live_cpu_spread,
            .scatter = live_cpu_scatter,
            .norm = live_cpu_norm,
            .product = live_cpu_product,
            .experts = live_cpu_experts,
            .rotate = live_cpu_rotate,
            .attend = live_cpu_attend,
            .add = live_cpu_add,
            .select = live_cpu_select,
            .summarize = live_cpu_summarize,
            .move = live_cpu_move,
        },
    .dist =
        {
            .compare = live_cpu_compare,
            .list = live_cpu_list,
            .sample_residual = live_cpu_sample_residual,
        },
    .probe = live_cpu_probe,
    .close = close_cpu,
};

int live_backend_cpu(live_backend **out, int threads, bool invariant, dsc_error *err)
{
    cpu_backend *c;
    *out = NULL;
    if (threads < 1)
        return dsc_fail(err, DSC_EUSAGE, "%d threads; at least 1 is required", threads);
    int rc = dsc_new(&c, 1, err);
    if (rc)
        return rc;
    c->base =
        (live_backend){.type = &type, .threads = threads, .invariant = invariant, .on_host = true};
    snprintf(c->base.device, sizeof c->base.device, "cpu");
    c->kernel = live_cpu_kernel_choose();
    *out = &c->base;
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// The runs of a shard of draftscope serve: the longest first, each to the shard that has the least
// to do, so that shards differ by at most one run.
#include "cli/serve/serve.h"

#include <stdlib.h>

typedef struct job {
    int64_t requests;
    size_t run;
} job;

static int by_length(const void *a, const void *b)
{
    const job *x = a, *y = b;
    if (x->requests != y->requests)
        return x->requests > y->requests ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

int cli_serve_deal(cli_serve_run *run, size_t runs, const dsc_split *split, dsc_error *err)
{
    // More shards than runs leave some without any.
    const int64_t shards = split->shards < (int64_t)runs ? split->shards : (int64_t)runs;
    job *all = NULL;
    int64_t *load = NULL;
    int rc = dsc_new(&all, runs, err);
    if (!rc)
        rc = dsc_new(&load, (size_t)shards, err);
    for (size_t i = 0; i < runs && !rc; i++)
        all[i] = (job){run[i].ramp + run[i].requests, i};
    if (!rc)
        qsort(all, runs, sizeof *all, by_length);
    for (size_t i = 0; i < runs && !rc; i++) {
        int64_t least = 0;
        for (int64_t s = 1; s < shards && load[least] > 0; s++)
            if (load[s] < load[least])
                least = s;
        load[least] += all[i].requests;
        run[all[i].run].elsewhere = least + 1 != split->shard;
    }
    free(all);
    free(load);
    return rc;
}

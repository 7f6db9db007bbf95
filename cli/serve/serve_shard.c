// SPDX-License-Identifier: Apache-2.0
// The runs of a shard of draftscope serve: the longest first, each to the shard that has the least
// to do, so that shards differ by at most one run.
#include "cli/serve/serve.h"

#include <stdlib.h>
#include <string.h>

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
    rc = rc ?: dsc_new(&load, (size_t)shards, err);
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

int cli_serve_read_split(dsc_split *out, const cli_call *call, dsc_error *err)
{
    static const int files[] = {SERVE_TIMELINE, SERVE_SCHEDULE, SERVE_OCCUPANCY};
    const dsc_option_value *v = call->value;
    *out = (dsc_split){.shard = 1, .shards = 1};
    if (!v[SERVE_SHARD].given)
        return DSC_OK;
    if (!strcmp(call->out, "-"))
        return dsc_fail(err, DSC_EUSAGE, "--shard: -o FILE expected, for draftscope merge");
    if (call->json)
        return dsc_fail(err, DSC_EUSAGE,
                        "--shard and --json cannot be combined: draftscope merge "
                        "-o FILE.jsonl writes JSON lines");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (v[files[i]].given)
            return dsc_fail(err, DSC_EUSAGE,
                            "--shard and --%s cannot be combined: merge joins tables only",
                            call->command->option[files[i]].name);
    return dsc_split_shard(out, v[SERVE_SHARD].text, err);
}

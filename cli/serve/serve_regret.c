// SPDX-License-Identifier: Apache-2.0
// The references that policies are compared with: the best fixed draft length and the oracle, once
// for each method and load, whatever the number of policies.
#include "base/threads.h"
#include "cli/guard.h"
#include "cli/serve/serve.h"

// Recorded steps have no draft length that a policy could choose: their regret is not a number.
static bool is_compared(const cli_serve_run *run)
{
    return run->done && *run->policy && !run->method->source.script;
}

static bool same_load(const cli_serve_run *a, const cli_serve_run *b)
{
    return a->method == b->method && a->load == b->load;
}

// The first run of the same method and load.
static size_t first_of(const cli_serve_run *run, size_t i)
{
    size_t first = 0;
    while (!is_compared(&run[first]) || !same_load(&run[first], &run[i]))
        first++;
    return first;
}

void cli_serve_find_references(cli_serve_run *run, size_t runs, int threads,
                               cli_serve_reference find, const void *context)
{
    (void)threads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t i = 0; i < runs; i++)
        if (is_compared(&run[i]) && first_of(run, i) == i && !cli_signal()) {
            run[i].rc = find(context, &run[i], &run[i].error);
            if (run[i].rc)
                run[i].reference = (dsc_serve_reference){0};
        }
    for (size_t i = 0; i < runs; i++)
        if (is_compared(&run[i]))
            run[i].reference = run[first_of(run, i)].reference;
}

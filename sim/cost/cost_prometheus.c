// SPDX-License-Identifier: Apache-2.0
// A cost from a server's own metrics: pairs of snapshots of its page (sim/cost/server_load.h), each
// of which is the mean step time at one load (sim/cost/step_times.h).
#include "sim/cost/cost.h"

#include "base/memory.h"
#include "sim/cost/server_load.h"
#include "sim/cost/step_times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES_MAX = 64 };

// Splits a text in place at its commas.
static size_t split(char *text, const char *page[PAGES_MAX])
{
    size_t pages = 0;
    for (char *at = text; at && pages < PAGES_MAX;) {
        page[pages++] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    return pages;
}

static int read_pairs(dsc_step_time *t, const char *const *page, size_t pairs, char model[128],
                      dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < pairs && !rc; i++) {
        dsc_server_load load;
        rc = dsc_server_load_read(&load, page[2 * i], page[2 * i + 1], err);
        if (!rc && i && strcmp(load.model, model) != 0)
            rc = dsc_fail(err, DSC_EINPUT, "%s: the model is '%.60s', in the first pair '%.60s'",
                          page[2 * i + 1], load.model, model);
        memcpy(model, load.model, sizeof load.model);
        if (!rc)
            t[i] = (dsc_step_time){load.step_s, load.batch, load.num_draft_tokens / load.steps};
    }
    return rc;
}

static int open_prometheus(dsc_cost *cost, const char *text, dsc_error *err)
{
    const char *page[PAGES_MAX];
    dsc_step_time t[PAGES_MAX / 2];
    char *copy, model[128] = "";
    int rc = dsc_strndup(&copy, text, strlen(text), err);
    if (rc)
        return rc;
    const size_t pages = split(copy, page);
    if (pages % 2 || !*page[0] || !*page[1])
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--cost: 'prometheus:%.60s' is not prometheus:BEFORE,AFTER[,BEFORE,AFTER...] "
                      "with at most %d pairs",
                      text, PAGES_MAX / 2);
    if (!rc)
        rc = read_pairs(t, page, pages / 2, model, err);
    if (!rc)
        rc = dsc_step_times_fit(cost, t, pages / 2, page[pages - 1], err);
    free(copy);
    return rc;
}

const dsc_cost_type dsc_cost_prometheus = {.name = "prometheus",
                                           .summary =
                                               "linear, from snapshots of a vLLM server's /metrics",
                                           .usage = "BEFORE,AFTER[,BEFORE,AFTER...]",
                                           .linear = true,
                                           .open = open_prometheus};

// SPDX-License-Identifier: Apache-2.0
// What a server does today, by snapshots of its metrics page: the steps, their time and batch, and
// what is accepted of its drafts.
#include "cli/advise/advise.h"
#include "sim/cost/server_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_load(const dsc_server_load *s)
{
    const double passes = s->steps / s->batch; // of the engines
    printf("  %.0f output tokens in %.0f steps of %.3g ms at a batch size of %.3g",
           s->output_tokens, passes, s->step_s * 1e3, s->batch);
    if (s->engines > 1)
        printf(" on each of %d engines", s->engines);
    printf("; %.3g prompt tokens per step are part of that time\n", s->prompt_tokens / passes);
    if (s->num_drafts > 0)
        printf("  %.3g draft tokens per draft, of which %.1f %% are accepted: mean acceptance "
               "length %.3f\n",
               s->num_draft_tokens / s->num_drafts,
               100 * s->num_accepted_tokens / s->num_draft_tokens,
               1 + s->num_accepted_tokens / s->num_drafts);
    else
        puts("  No speculation.");
}

int cli_advise_check_metrics(const char *pages, dsc_error *err)
{
    size_t files = 1;
    for (const char *p = pages; (p = strchr(p, ',')); p++)
        files++;
    if (files % 2 == 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--metrics %.200s: %s; a page from before the load and one from after it "
                    "expected, with a comma and no space between them: --metrics BEFORE,AFTER",
                    pages, files == 1 ? "one page is given" : "a page has no pair");
}

int cli_advise_metrics(const char *pages, bool quiet, dsc_error *err)
{
    char *text;
    int rc = dsc_strndup(&text, pages, strlen(pages), err);
    if (rc)
        return rc;
    for (char *before = text; before && !rc;) {
        char *after = strchr(before, ','), *next = NULL;
        dsc_server_load load;
        *after++ = '\0';
        next = strchr(after, ',');
        if (next)
            *next++ = '\0';
        rc = dsc_server_load_read(&load, before, after, err);
        if (!rc && !quiet) {
            printf("Server from %s to %s%s%s\n", before, after, *load.model ? ": " : "",
                   load.model);
            print_load(&load);
        }
        before = next;
    }
    free(text);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// What the trace commands print on stderr while they run.
#include "cli/trace/trace.h"

#include <stdio.h>

void cli_trace_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}

void cli_trace_skipped(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: skipped: %s\n", message);
}

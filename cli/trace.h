// SPDX-License-Identifier: Apache-2.0
// The parts of draftscope trace that have a file of their own.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"
#include "traces/import.h"

int cli_trace_info(int argc, char **argv, dsc_error *err);
int cli_trace_synth(int argc, char **argv, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// The commands of draftscope-live.
#ifndef DSC_LIVE_LIVE_H
#define DSC_LIVE_LIVE_H

#include "cli/cli.h"

// An interrupted command finishes its step, a second or more for a large model on a CPU.
enum { LIVE_PATIENCE_S = 60 };

extern const cli_command live_cmd_run, live_cmd_record, live_cmd_profile, live_cmd_list;

#endif

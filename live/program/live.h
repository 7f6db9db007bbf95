// SPDX-License-Identifier: Apache-2.0
// The commands of draftscope-live.
#ifndef DSC_LIVE_LIVE_H
#define DSC_LIVE_LIVE_H

#include "cli/cli.h"

// An interrupted command that has something to keep finishes its layer (live_backend.stop) and its
// files.
enum { LIVE_PATIENCE_S = 60 };

extern const cli_command live_cmd_run, live_cmd_record, live_cmd_profile, live_cmd_list;

#endif

// SPDX-License-Identifier: Apache-2.0
// Runs one job at a time on a thread of its own.
#ifndef DSC_LIVE_BACKGROUND_H
#define DSC_LIVE_BACKGROUND_H

#include "base/status.h"

typedef struct live_background live_background;

typedef int (*live_job)(void *user, dsc_error *err);

int live_background_new(live_background **out, dsc_error *err);
// Starts a job. DSC_ECHECK: the last job was not joined.
int live_background_start(live_background *b, live_job job, void *user, dsc_error *err);
// Waits for the job and returns its status and error.
int live_background_join(live_background *b, dsc_error *err);
void live_background_free(live_background *b); // joins; NULL allowed

#endif

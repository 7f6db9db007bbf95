// SPDX-License-Identifier: Apache-2.0
// draftscope-live: its table of commands. It is a program of its own because a binary may not link
// both CUDA (proprietary) and GSL (GPL).
#include "live/program/live.h"
#include "live/program/pair.h"

#include <string.h>

// Options that run, record and profile share; the name is only part of a message.
static const cli_command shared = {
    .name = "run, record and profile",
    .option = live_pair_options,
    .options = LIVE_PAIR_OPTIONS,
};
static const cli_command *const known[] = {&live_cmd_run,  &live_cmd_record, &live_cmd_profile,
                                           &live_cmd_list, &shared,          NULL};
static const cli_command *const commands[] = {&live_cmd_run, &live_cmd_record, &live_cmd_profile,
                                              &live_cmd_list, NULL};
static const cli_command group = {
    .name = "live",
    .usage = "live COMMAND [ARGUMENTS]",
    .about = "Runs the methods of draftscope sim on real models, on the CPU or GPU of this "
             "machine, and measures them.",
    .sub = commands,
    .see = "options of a command\n  draftscope live --version",
};

static int dispatch(int argc, char **argv, dsc_error *err)
{
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts("draftscope-live " PACKAGE_VERSION);
        return DSC_OK;
    }
    return cli_command_run(&group, argc - 1, argv + 1, err);
}

int main(int argc, char **argv)
{
    return cli_main("draftscope live", known, dispatch, argc, argv);
}

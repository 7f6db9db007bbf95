// SPDX-License-Identifier: Apache-2.0
// draftscope-live: its table of commands. It is a program of its own because a binary may not link
// both CUDA (proprietary) and GSL (GPL).
#include "live/program/live.h"

#include <string.h>

static const cli_command *const commands[] = {&live_cmd_run, &live_cmd_record, &live_cmd_profile,
                                              &live_cmd_list};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(void)
{
    puts("Usage: draftscope live COMMAND [ARGUMENTS]\n\n"
         "Runs the methods of draftscope sim on real models, on the CPU or GPU of this machine, "
         "and\n"
         "measures them.\n\nCommands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-10s%s\n", commands[c]->name, commands[c]->summary);
    puts("\n  draftscope live COMMAND --help   options of a command\n"
         "  draftscope live --version");
}

static int dispatch(int argc, char **argv, dsc_error *err)
{
    const char *names[COMMANDS];
    for (size_t c = 0; c < COMMANDS; c++) {
        names[c] = commands[c]->name;
        if (argc > 1 && strcmp(argv[1], names[c]) == 0)
            return commands[c]->run(argc - 2, argv + 2, err);
    }
    if (cli_asks_help(argc - 1, argv + 1)) {
        print_help();
        return DSC_OK;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("draftscope-live " PACKAGE_VERSION);
        return DSC_OK;
    }
    if (argc < 2)
        return dsc_fail(err, DSC_EUSAGE, "live: a command is missing; see draftscope live --help");
    return dsc_unknown_name("command", argv[1], names, COMMANDS, "see: draftscope live --help",
                            err);
}

int main(int argc, char **argv)
{
    return cli_main("draftscope live", dispatch, argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
// draftscope: the command table.
#include "cli/cli.h"

#include <string.h>

static const cli_command *const commands[] = {&cli_trace,    &cli_sim,    &cli_sweep, &cli_merge,
                                              &cli_tune,     &cli_theory, &cli_plot,  &cli_report,
                                              &cli_validate, &cli_live,   &cli_list};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(void)
{
    puts("Usage: draftscope COMMAND [ARGUMENTS]\n\n"
         "An offline simulator and analysis toolkit for speculative decoding: replays what a "
         "target\n"
         "model really wrote, counts what each drafting method would have saved, prices it, draws "
         "it.\n\n"
         "Commands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-10s%s\n", commands[c]->name, commands[c]->summary);
    puts("\n  draftscope COMMAND --help   options of a command\n"
         "  draftscope --version\n\n"
         "Exit codes: 0 ok; 1 a check failed or a result could not be written; 2 usage; 3 a "
         "feature or\n"
         "program is not here; 4 bad input file; 130 or 143 interrupted (what was finished is on "
         "disk).");
}

static int unknown_command(const char *word, dsc_error *err)
{
    const char *names[COMMANDS];
    for (size_t c = 0; c < COMMANDS; c++)
        names[c] = commands[c]->name;
    return dsc_unknown_name("command", word, names, COMMANDS, "see: draftscope --help", err);
}

static int dispatch(int argc, char **argv, dsc_error *err)
{
    if (argc < 2)
        return dsc_fail(err, DSC_EUSAGE, "a command is expected: see draftscope --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help();
        return DSC_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("draftscope " PACKAGE_VERSION);
        return DSC_OK;
    }
    for (size_t c = 0; c < COMMANDS; c++)
        if (strcmp(argv[1], commands[c]->name) == 0)
            return commands[c]->run(argc - 2, argv + 2, err);
    return unknown_command(argv[1], err);
}

int main(int argc, char **argv)
{
    return cli_main("draftscope", dispatch, argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
// draftscope theory: dispatches to the commands that evaluate closed forms of the literature on
// distributions, acceptance rates and tree shapes.
#include "cli/theory/theory.h"

#include <string.h>

static const cli_command *const commands[] = {&cli_theory_accept, &cli_theory_speedup,
                                              &cli_theory_length, &cli_theory_tree,
                                              &cli_theory_pearl,  &cli_theory_ouroboros};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(void)
{
    puts("Usage: draftscope theory COMMAND [OPTIONS]\n\n"
         "Evaluates the closed forms of the literature: acceptance probability at one position, "
         "speedup by\n"
         "draft length, optimal trees, parallel drafting and phrases. No trace is needed.\n\n"
         "Commands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-11s%s\n", commands[c]->name, commands[c]->summary);
    puts("\n  draftscope theory COMMAND --help   options, columns, and each formula with its "
         "source");
}

static int run(int argc, char **argv, dsc_error *err)
{
    const char *names[COMMANDS];
    if (!argc)
        return dsc_fail(err, DSC_EUSAGE, "theory expects a command: see draftscope theory --help");
    for (size_t c = 0; c < COMMANDS; c++) {
        names[c] = commands[c]->name;
        if (strcmp(argv[0], names[c]) == 0)
            return commands[c]->run(argc - 1, argv + 1, err);
    }
    if (cli_asks_help(argc, argv)) {
        print_help();
        return DSC_OK;
    }
    return dsc_unknown_name("theory command", argv[0], names, COMMANDS,
                            "see: draftscope theory --help", err);
}

const cli_command cli_theory = {"theory",
                                "closed-form acceptance, speedup and optimal-tree formulas", run};

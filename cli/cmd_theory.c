// SPDX-License-Identifier: Apache-2.0
// draftscope theory: the literature's closed-form formulas on distributions, rates and shapes.
#include "cli/theory/theory.h"

#include <string.h>

static const cli_command *const commands[] = {&cli_theory_accept,
                                              &cli_theory_speedup,
                                              &cli_theory_length,
                                              &cli_theory_tree,
                                              &cli_theory_pearl,
                                              &cli_theory_ouroboros,
                                              NULL};
enum { COMMANDS = sizeof commands / sizeof *commands - 1 };

static void print_help(void)
{
    puts("Usage: draftscope theory COMMAND [OPTIONS]\n\n"
         "Computes the literature's closed-form formulas: acceptance at one position, speedup by "
         "draft\n"
         "length, trees, parallel drafting and phrases. No trace is needed.\n\n"
         "Commands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-11s%s\n", commands[c]->name, commands[c]->summary);
    puts("\n  draftscope theory COMMAND --help   options, columns, and each formula with its "
         "source");
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv) && argv[0][0] == '-') {
        print_help();
        return DSC_OK;
    }
    return cli_run_one(commands, "theory", argc, argv, err);
}

const cli_command cli_theory = {
    .name = "theory",
    .summary = "closed-form acceptance, speedup and optimal-tree formulas",
    .run = run,
    .sub = commands,
};

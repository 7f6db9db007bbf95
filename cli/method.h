// SPDX-License-Identifier: Apache-2.0
// The options of drafting methods, in addition to a command's own options. Every command of both
// programs that runs methods uses this.
#ifndef DSC_CLI_METHOD_H
#define DSC_CLI_METHOD_H

#include "cli/cli.h"
#include "sim/drafter.h"

// Finds the method of --method NAME in argv, before anything else is parsed. DSC_EUSAGE: there is
// no
// --method, or no such method.
int cli_find_method(int argc, char **argv, const dsc_drafter_type **out, dsc_error *err);
// Finds the methods of --method NAME[,NAME...], in that order. DSC_EUSAGE, also for a method that
// is given twice.
enum { CLI_MAX_METHODS = 32 };
int cli_find_methods(int argc, char **argv, const dsc_drafter_type *out[CLI_MAX_METHODS],
                     size_t *count, dsc_error *err);

// Prints --help of a command: its `own` sections, then the options of the methods that argv names,
// or of all methods when it names none, then the fields of a result.
void cli_print_method_help(const char *usage, const char *about, const cli_help_section *own,
                           size_t count, int argc, char **argv);

// Makes the configuration of config->drafter from the parsed values of its options, in the order of
// its table, and prepares it. Texts stay the command line's. DSC_EUSAGE, DSC_EINPUT.
int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err);

#endif

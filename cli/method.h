// SPDX-License-Identifier: Apache-2.0
// A method's options beside a command's own: of all commands that run methods, in both programs.
#ifndef DSC_CLI_METHOD_H
#define DSC_CLI_METHOD_H

#include "cli/cli.h"
#include "sim/drafter.h"

// Finds --method NAME in argv before everything else is parsed (its options depend on it).
// DSC_EUSAGE when it is missing or unknown.
int cli_find_method(int argc, char **argv, const dsc_drafter_type **out, dsc_error *err);
// The same of --method NAME[,NAME...], in that order.
enum { CLI_MAX_METHODS = 32 };
int cli_find_methods(int argc, char **argv, const dsc_drafter_type *out[CLI_MAX_METHODS],
                     size_t *count, dsc_error *err);

// --help of a command whose options include a method's: its `own` sections, then those of the
// methods, of all when none is named.
void cli_print_method_help(const char *usage, const char *about, const cli_help_section *own,
                           size_t count, int argc, char **argv);

// Takes the parsed parameters of config->drafter over, and prepares it.
int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Drafting methods on the command line: their names, synonyms and options, for all commands that
// run methods, in both programs.
#ifndef DSC_CLI_METHOD_H
#define DSC_CLI_METHOD_H

#include "cli/cli.h"

// Returns whether argv has --method.
bool cli_names_method(int argc, char **argv);
// Finds --method NAME in argv before anything else is parsed, because the options that are taken
// depend on it. DSC_EUSAGE when it is missing or unknown; before the former is reported, options
// are checked against the command's `own` sets and those of all methods.
int cli_find_method(const dsc_option_set *own, size_t sets, int argc, char **argv,
                    const dsc_drafter_type **out, dsc_error *err);
// Finds --method NAME[,NAME...], in that order.
int cli_find_methods(const dsc_option_set *own, size_t sets, int argc, char **argv,
                     const dsc_drafter_type *out[CLI_MAX_METHODS], size_t *count, dsc_error *err);

// Where --method has a preset of the method ("medusa"), gives its first option that value, unless
// it is set already. `names`: the value of --method. Returns whether it did.
bool cli_apply_preset(const char *names, const dsc_drafter_type *drafter,
                      dsc_option_value *parameter);

// Prints the help of a command whose options include a method's: its `own` sections, then those of
// the methods that --method names, or of all methods; `fields`: and the result fields of sim.
void cli_print_method_help(const char *usage, const char *about, const cli_help_section *own,
                           size_t count, bool fields, int argc, char **argv);

// Copies the parsed parameters of config->drafter into it, and prepares it.
int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err);

#endif

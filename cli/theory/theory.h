// SPDX-License-Identifier: Apache-2.0
// The commands of `draftscope theory`.
#ifndef DSC_CLI_THEORY_H
#define DSC_CLI_THEORY_H

#include "cli/cli.h"

extern const cli_command cli_theory_accept, cli_theory_speedup, cli_theory_length, cli_theory_tree,
    cli_theory_pearl, cli_theory_ouroboros;

#endif

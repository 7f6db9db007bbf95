// SPDX-License-Identifier: Apache-2.0
// draftscope theory: the literature's closed-form formulas on distributions, rates and shapes.
#include "cli/theory/theory_closed.h"

static const cli_command *const commands[] = {
    &cli_theory_accept,     &cli_theory_speedup,   &cli_theory_length,  &cli_theory_tree,
    &cli_theory_pearl,      &cli_theory_ouroboros, &cli_theory_certify, &cli_theory_lossy,
    &cli_theory_vocabulary, &cli_theory_bound,     &cli_theory_regret,  NULL};

const cli_command cli_theory = {
    .name = "theory",
    .summary = "closed-form acceptance, speedup and optimal-tree formulas",
    .sub = commands,
    .usage = "theory COMMAND [OPTIONS]",
    .about = "Computes the literature's closed-form formulas: acceptance at one position, speedup "
             "by draft length, trees, parallel drafting and phrases. No trace is needed.",
    .see = "options, columns, and each formula with its source",
};

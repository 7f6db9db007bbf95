// SPDX-License-Identifier: Apache-2.0
// The two parts of draftscope theory length: closed forms, and the curve of a trace.
#ifndef DSC_CLI_THEORY_LENGTH_H
#define DSC_CLI_THEORY_LENGTH_H

#include "cli/theory/theory_closed.h"

enum {
    CLI_LENGTH_MAX = CLI_CLOSED_RATES,
    CLI_LENGTH_USED,
    CLI_LENGTH_WITHIN,
    CLI_LENGTH_DRAFT_COST,
    CLI_LENGTH_TARGET_SLOPE,
    CLI_LENGTH_TRACE,
    CLI_LENGTH_DRAFTER,
    CLI_LENGTH_FIT,
    CLI_LENGTH_HELD_OUT
};
enum { CLI_LENGTH_COLUMNS = 11 };
extern const dsc_column cli_length_columns[CLI_LENGTH_COLUMNS];

// Fills the table of --trace, with these columns. DSC_EUSAGE: the trace has no recorded acceptance.
int cli_length_fill(dsc_table *t, const dsc_option *option, const dsc_option_value *value,
                    dsc_error *err);

#endif

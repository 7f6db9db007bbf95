// SPDX-License-Identifier: Apache-2.0
// The text of a rule: its name, or NAME:VALUE,VALUE with all its parameters. Internal.
#ifndef DSC_SIM_RULE_TEXT_H
#define DSC_SIM_RULE_TEXT_H

#include "sim/verifier.h"

// *out becomes `rule` with the values "0.09,0.3" in place of its defaults. It is named by that text
// and lives as long as the program; equal values give the same pointer. DSC_EUSAGE names the
// parameter and its range. DSC_ENOMEM.
int dsc_rule_with(const dsc_verifier_type *rule, const char *values, const dsc_verifier_type **out,
                  dsc_error *err);

// The length of the first rule of a list as in "block,relaxed:10,0.6,typical".
size_t dsc_rule_text_length(const char *list);

#endif

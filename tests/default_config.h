// SPDX-License-Identifier: Apache-2.0
// A method's configuration as it is when nothing is said.
#ifndef DSC_TESTS_DEFAULT_CONFIG_H
#define DSC_TESTS_DEFAULT_CONFIG_H

#include "sim/drafter.h"
#include "tests/close.h"

#include <string.h>

// Not prepared yet. Of references those of the prompt: there are no documents where models write.
static inline void default_config(dsc_config *c, const dsc_drafter_type *d)
{
    dsc_error err = {0};
    dsc_option_value value[DSC_MAX_PARAMETERS];
    dsc_option_set set = {d->option, d->option_count, value, false, NULL};
    size_t words;
    *c = (dsc_config){.drafter = d};
    assert_ok(dsc_options_parse(&set, 1, 0, NULL, &words, &err), err);
    for (size_t o = 0; o < d->option_count; o++) {
        c->parameter[o] = value[o].integer;
        c->real[o] = value[o].real;
        c->text[o] = value[o].text;
        if (!strcmp(d->option[o].name, "references"))
            assert_ok(dsc_option_single(&d->option[o], "prompt", &c->parameter[o], &err), err);
    }
}

#endif

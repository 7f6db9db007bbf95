// SPDX-License-Identifier: Apache-2.0
// Runs a subcommand of draftscope trace: prints its help, or parses its options and arguments.
#include "cli/trace/trace.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int check_output(const cli_trace_description *d, const dsc_option_value *value,
                        dsc_error *err)
{
    for (size_t o = 0; o < d->options; o++)
        if (strcmp(d->option[o].name, "output") == 0 && !(value[o].text && *value[o].text))
            return dsc_fail(err, DSC_EUSAGE, "give the trace to write: -o NAME.dst");
    return DSC_OK;
}

int cli_trace_run(const cli_trace_description *d, int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[CLI_TRACE_OPTIONS];
    dsc_option_set set = {.table = d->option, .count = d->options, .value = value};
    const cli_help_section help[] = {{"Options", d->option, d->options}};
    size_t words;
    assert(d->options <= CLI_TRACE_OPTIONS);
    if (cli_asks_help(argc, argv)) {
        cli_print_help(d->usage, d->about, help, 1);
        if (d->more_help)
            d->more_help();
        return DSC_OK;
    }
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, d->least, d->most, d->what, err);
    if (!rc)
        rc = check_output(d, value, err);
    return rc ? rc : d->run(argv, words, value, err);
}

void cli_trace_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}

// SPDX-License-Identifier: Apache-2.0
// Runs commands from their descriptions: prints the help, parses and checks the arguments, finds
// the command below a group.
#include "cli/cli.h"

#include <assert.h>
#include <string.h>

// Returns whether it is a command, and not just a table of options with a name.
static bool runs(const cli_command *c)
{
    return c->run || c->execute || c->sub;
}

static void print_help(const cli_command *c)
{
    const cli_help_section own = {"Options", c->option, c->options};
    const cli_help_section section[] = {c->more_first ? c->more : own,
                                        c->more_first ? own : c->more};
    cli_print_help(c->usage, c->about, section, c->more.count ? 2 : c->option ? 1 : 0);
    if (c->more_help)
        c->more_help();
    for (const cli_help_fields *f = c->fields; f < c->fields + CLI_MAX_FIELDS && f->count; f++)
        cli_print_fields(f->title, f->field, f->count);
}

static void print_commands(const cli_command *c)
{
    int width = 8;
    for (const cli_command *const *s = c->sub; *s; s++)
        width = (int)strlen((*s)->name) > width ? (int)strlen((*s)->name) : width;
    cli_print_help(c->usage, c->about, NULL, 0);
    puts("\nCommands");
    for (const cli_command *const *s = c->sub; *s; s++)
        printf("  %-*s%s\n", width + 2, (*s)->name, (*s)->summary);
    printf("\n  draftscope %s COMMAND --help   %s\n", c->name, c->see);
}

// The value of the option of this name; NULL: the command has none.
static const dsc_option_value *value_of(const cli_call *call, const char *name)
{
    for (size_t o = 0; o < call->command->options; o++)
        if (strcmp(call->command->option[o].name, name) == 0)
            return &call->value[o];
    return NULL;
}

static int check(cli_call *call, dsc_error *err)
{
    const cli_command *c = call->command;
    const dsc_option_value *out = value_of(call, "output"), *json = value_of(call, "json"),
                           *force = value_of(call, "force");
    call->out = out ? out->text : NULL;
    call->json = json && json->given;
    call->force = force && force->given;
    int rc = cli_check_positionals(call->words, c->least, c->most, c->what, err);
    return !rc && c->needs_out && !(call->out && *call->out)
               ? dsc_fail(err, DSC_EUSAGE, "%s", c->needs_out)
               : rc;
}

int cli_command_run(const cli_command *c, int argc, char **argv, dsc_error *err)
{
    if (c->run)
        return c->run(argc, argv, err);
    if (c->sub && !(cli_asks_help(argc, argv) && argv[0][0] == '-'))
        return cli_run_one(c->sub, c->name, argc, argv, err);
    if (cli_asks_help(argc, argv)) {
        c->sub ? print_commands(c) : print_help(c);
        return DSC_OK;
    }
    dsc_option_value value[CLI_MAX_OPTIONS], more[CLI_MAX_OPTIONS];
    const dsc_option_set sets[] = {
        {.table = c->option, .count = c->options, .value = value},
        {.table = c->more.table, .count = c->more.count, .value = more},
    };
    cli_call call = {.command = c, .word = argv, .value = value, .more = more};
    assert(c->options <= CLI_MAX_OPTIONS && c->more.count <= CLI_MAX_OPTIONS);
    int rc = cli_parse(sets, c->more.count ? 2 : 1, argc, argv, &call.words, err);
    if (!rc)
        rc = check(&call, err);
    return rc ? rc : c->execute(&call, err);
}

int cli_run_one(const cli_command *const *commands, const char *group, int argc, char **argv,
                dsc_error *err)
{
    const char *names[32];
    char see[64], what[64];
    size_t n = 0;
    for (; commands[n] && runs(commands[n]) && n < sizeof names / sizeof *names; n++) {
        names[n] = commands[n]->name;
        if (argc && strcmp(argv[0], names[n]) == 0)
            return cli_command_run(commands[n], argc - 1, argv + 1, err);
    }
    snprintf(see, sizeof see, "see: draftscope %.30s --help", group);
    snprintf(what, sizeof what, "%.30s command", group);
    if (argc)
        return dsc_unknown_name(what, argv[0], names, n, see, err);
    dsc_buffer list = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < n && !rc; i++)
        rc = dsc_buffer_printf(&list, err, "%s%s", i ? ", " : "", names[i]);
    if (!rc)
        rc = dsc_fail(err, DSC_EUSAGE, "%s expects a command: %s", group, list.data);
    dsc_buffer_fini(&list);
    return rc;
}

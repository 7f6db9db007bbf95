// SPDX-License-Identifier: Apache-2.0
// Runs commands from their descriptions: prints the help, parses and checks the arguments, finds
// the command below a group.
#include "cli/method.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Returns whether it is a command, and not just a table of options with a name.
static bool runs(const cli_command *c)
{
    return c->run || c->execute || c->sub;
}

static void print_section(void *user, const char *title, const dsc_column *field, size_t count)
{
    (void)user;
    cli_print_fields(title, field, count);
}

static void print_help(const cli_command *c, int argc, char **argv)
{
    const cli_help_section own = {"Options", c->option, c->options};
    const cli_help_section section[] = {c->more_first ? c->more : own,
                                        c->more_first ? own : c->more};
    const size_t sections = c->more.count ? 2 : c->option ? 1 : 0;
    if (c->methods && (c->methods != CLI_METHOD_MAYBE || cli_names_method(argc, argv)))
        cli_print_method_help(c->usage, c->about, section, sections, !c->own_columns, argc, argv);
    else
        cli_print_help(c->usage, c->about, section, sections);
    if (c->more_help)
        c->more_help();
    for (const cli_help_fields *f = c->fields; f < c->fields + CLI_MAX_FIELDS && f->count; f++)
        cli_print_fields(f->title, f->field, f->count);
    if (c->more_fields)
        c->more_fields(print_section, NULL);
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

const dsc_option_value *cli_call_value(const cli_call *call, const char *name)
{
    static const dsc_option_value none = {0};
    const cli_command *c = call->command;
    const dsc_option *o = dsc_option_find(c->option, c->options, name);
    return o ? &call->value[o - c->option] : &none;
}

// Adds the sets of the methods of --method to `set`, which has `own` sets.
static int add_methods(cli_call *call, dsc_option_set *set, size_t own, int argc, char **argv,
                       dsc_error *err)
{
    const cli_method_kind kind = call->command->methods;
    const bool single = kind == CLI_METHOD_ONE || kind == CLI_METHOD_MAYBE;
    if (kind == CLI_METHOD_MAYBE && !cli_names_method(argc, argv))
        return DSC_OK;
    int rc = single ? cli_find_method(set, own, argc, argv, &call->method[0], err)
                    : cli_find_methods(set, own, argc, argv, call->method, &call->methods, err);
    if (!rc && single)
        call->methods = 1;
    for (size_t m = 0; m < call->methods && !rc; m++) {
        const dsc_drafter_type *d = call->method[m];
        const bool owned = call->methods > 1 || kind == CLI_METHOD_OWNED;
        set[own + m] = (dsc_option_set){.table = d->option,
                                        .count = d->option_count,
                                        .value = call->list[m],
                                        .lists = !single,
                                        .owner = owned ? d->name : NULL,
                                        .synonyms = owned ? d->synonyms : NULL,
                                        .uses = &call->list_uses[m]};
    }
    return rc;
}

static int apply_presets(cli_call *call, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t m = 0; m < call->methods && !rc; m++)
        if (cli_apply_preset(call->value[0].text, call->method[m], call->list[m])) {
            const dsc_option_use use = {call->method[m]->option, call->list[m][0].text, false};
            rc = dsc_option_uses_add(&call->list_uses[m], &use, err);
        }
    return rc;
}

static int check(cli_call *call, dsc_error *err)
{
    const cli_command *c = call->command;
    call->json = call->quiet = cli_call_value(call, "json")->given;
    call->force = cli_call_value(call, "force")->given;
    call->out = cli_call_value(call, "output")->text;
    if (c->needs_out && !call->out && call->json)
        call->out = "-";
    call->seed = (uint64_t)cli_call_value(call, "seed")->integer;
    call->threads = cli_threads(cli_call_value(call, "threads")->integer);
    call->progress = cli_call_value(call, "progress")->integer;
    int rc = c->opens_trace || (c->methods && !c->what)
                 ? cli_check_positionals(call->words, c->opens_trace, 1, "one trace", err)
                 : cli_check_positionals(call->words, c->least, c->most,
                                         c->what ? c->what : "no argument but options", err);
    return !rc && c->needs_out && !(call->out && *call->out)
               ? dsc_fail(err, DSC_EUSAGE, "%s", c->needs_out)
               : rc;
}

int cli_call_init(cli_call *call, const cli_command *c, int argc, char **argv, dsc_error *err)
{
    const size_t own = c->more.count ? 2 : 1;
    dsc_option_set set[2 + CLI_MAX_METHODS] = {
        {.table = c->option, .count = c->options, .value = call->value, .uses = &call->uses},
        {.table = c->more.table, .count = c->more.count, .value = call->more},
    };
    assert(c->options <= CLI_MAX_OPTIONS && c->more.count <= CLI_MAX_OPTIONS);
    *call = (cli_call){.command = c, .word = argv};
    int rc = c->methods ? add_methods(call, set, own, argc, argv, err) : DSC_OK;
    if (!rc)
        rc = cli_parse(set, own + call->methods, argc, argv, &call->words, err);
    if (!rc)
        rc = apply_presets(call, err);
    if (!rc)
        rc = check(call, err);
    if (!rc && c->opens_trace)
        rc = dsc_trace_open(&call->trace, argv[0], err);
    return rc || !c->without ? rc
                             : cli_canonical_command(c, call->words ? argv[0] : NULL, set,
                                                     own + call->methods, err);
}

void cli_call_fini(cli_call *call)
{
    dsc_trace_close(call->trace);
    free(call->uses.use);
    for (size_t m = 0; m < call->methods; m++)
        free(call->list_uses[m].use);
}

int cli_command_run(const cli_command *c, int argc, char **argv, dsc_error *err)
{
    if (c->run)
        return c->run(argc, argv, err);
    if (c->sub && !(cli_asks_help(argc, argv) && argv[0][0] == '-'))
        return cli_run_one(c->sub, c->name, argc, argv, err);
    if (cli_asks_help(argc, argv)) {
        c->sub ? print_commands(c) : print_help(c, argc, argv);
        return DSC_OK;
    }
    if (c->execute && cli_asks_schema(argc, argv))
        return cli_print_schema(c, err);
    cli_call call;
    int rc = cli_call_init(&call, c, argc, argv, err);
    if (!rc)
        rc = c->execute(&call, err);
    cli_call_fini(&call);
    return rc;
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

// SPDX-License-Identifier: Apache-2.0
// draftscope: the command table, and the one place that turns a status into an exit code.
#include "cli/cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const cli_command *const commands[] = {&cli_trace,    &cli_sim,    &cli_sweep, &cli_merge,
                                              &cli_tune,     &cli_theory, &cli_plot,  &cli_report,
                                              &cli_validate, &cli_list};
enum { COMMANDS = sizeof commands / sizeof *commands };

static dsc_buffer command_line;

const char *cli_command_line(void)
{
    return command_line.data ? command_line.data : "draftscope";
}

static int quote(const char *word, dsc_error *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_-./:,=+@%";
    if (*word && strspn(word, plain) == strlen(word))
        return dsc_buffer_puts(&command_line, word, err);
    int rc = dsc_buffer_puts(&command_line, "'", err);
    for (; *word && !rc; word++)
        rc = *word == '\'' ? dsc_buffer_puts(&command_line, "'\\''", err)
                           : dsc_buffer_append(&command_line, word, 1, err);
    return rc ? rc : dsc_buffer_puts(&command_line, "'", err);
}

static int remember_command_line(int argc, char **argv, dsc_error *err)
{
    int rc = dsc_buffer_puts(&command_line, "draftscope", err);
    for (int a = 1; a < argc && !rc; a++) {
        rc = dsc_buffer_puts(&command_line, " ", err);
        if (!rc)
            rc = quote(argv[a], err);
    }
    return rc;
}

static int add_option(const dsc_option *o, const char *owner, const char *text, dsc_error *err)
{
    int rc = dsc_buffer_printf(&command_line, err, " --%s%s%s", owner ? owner : "",
                               owner ? "." : "", o->name);
    if (!rc && o->kind != DSC_OPTION_FLAG) {
        rc = dsc_buffer_puts(&command_line, " ", err);
        if (!rc)
            rc = quote(text, err);
    }
    return rc;
}

static bool is_default(const dsc_option *o, const char *text)
{
    return o->initial && strcmp(text, o->initial) == 0;
}

int cli_canonical_command(const char *command, const char *argument, const dsc_option_set *sets,
                          size_t count, const char *const *without, dsc_error *err)
{
    dsc_buffer_fini(&command_line);
    int rc = dsc_buffer_printf(&command_line, err, argument ? "draftscope %s " : "draftscope %s",
                               command);
    if (!rc && argument)
        rc = quote(argument, err);
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && !rc; i++) {
            const dsc_option *o = &sets[s].table[i];
            const dsc_option_value *v = &sets[s].value[i];
            const char *const *w = without;
            while (*w && strcmp(*w, o->name))
                w++;
            if (!*w && v->given && !is_default(o, v->text))
                rc = add_option(o, sets[s].owner, v->text, err);
        }
    return rc;
}

static void print_help(void)
{
    puts("Usage: draftscope COMMAND [ARGUMENTS]\n\n"
         "An offline simulator and analysis toolkit for speculative decoding: replays what a "
         "target\n"
         "model really wrote, counts what each drafting method would have saved, prices it, draws "
         "it.\n\n"
         "Commands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-10s%s\n", commands[c]->name, commands[c]->summary);
    puts("\n  draftscope COMMAND --help   options of a command\n"
         "  draftscope --version\n\n"
         "Exit codes: 0 ok; 1 a check failed or a result could not be written; 2 usage; 3 a "
         "feature or\n"
         "program is not here; 4 bad input file; 130 or 143 interrupted (what was finished is on "
         "disk).");
}

static int unknown_command(const char *word, dsc_error *err)
{
    const char *names[COMMANDS];
    for (size_t c = 0; c < COMMANDS; c++)
        names[c] = commands[c]->name;
    return dsc_unknown_name("command", word, names, COMMANDS, "see: draftscope --help", err);
}

static int dispatch(int argc, char **argv, dsc_error *err)
{
    if (argc < 2)
        return dsc_fail(err, DSC_EUSAGE, "a command is expected: see draftscope --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help();
        return DSC_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("draftscope " PACKAGE_VERSION);
        return DSC_OK;
    }
    for (size_t c = 0; c < COMMANDS; c++)
        if (strcmp(argv[1], commands[c]->name) == 0)
            return commands[c]->run(argc - 2, argv + 2, err);
    return unknown_command(argv[1], err);
}

int main(int argc, char **argv)
{
    dsc_error err = {0};
    signal(SIGPIPE, SIG_IGN); // a closed pipe is a write error like any other
    signal(SIGXFSZ, SIG_IGN); // and so is a file that reached its size limit
    int rc = remember_command_line(argc, argv, &err);
    if (!rc)
        rc = dispatch(argc, argv, &err);
    if (!rc)
        rc = cli_finish_stdout(&err);
    if (rc)
        fprintf(stderr, "draftscope: %s\n", err.message);
    dsc_buffer_fini(&command_line);
    if (rc == DSC_EINTERRUPT && cli_signal())
        return 128 + cli_signal();
    return dsc_exit_code(rc);
}

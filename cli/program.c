// SPDX-License-Identifier: Apache-2.0
// What draftscope and draftscope-live do around their commands: the command line is remembered, and
// a status becomes an exit code in one place.
#include "cli/cli.h"
#include "cli/guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>

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

static int remember_command_line(const char *program, int argc, char **argv, dsc_error *err)
{
    int rc = dsc_buffer_puts(&command_line, program, err);
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

static bool is_named(const char *const *names, const char *name)
{
    while (names && *names && strcmp(*names, name))
        names++;
    return names && *names;
}

// The value of an option, or all that it was given.
static int add_values(const cli_command *command, const dsc_option_set *set, size_t i,
                      dsc_error *err)
{
    const dsc_option *o = &set->table[i];
    int rc = DSC_OK;
    if (!is_named(command->repeated, o->name))
        return is_default(o, set->value[i].text)
                   ? DSC_OK
                   : add_option(o, set->owner, set->value[i].text, err);
    for (size_t u = 0; u < set->uses->count && !rc; u++)
        if (set->uses->use[u].option == o)
            rc = add_option(o, set->owner, set->uses->use[u].text, err);
    return rc;
}

int cli_canonical_command(const cli_command *command, const char *argument,
                          const dsc_option_set *sets, size_t count, dsc_error *err)
{
    dsc_buffer_fini(&command_line);
    int rc = dsc_buffer_printf(&command_line, err, argument ? "draftscope %s " : "draftscope %s",
                               command->name);
    if (!rc && argument)
        rc = quote(argument, err);
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && !rc; i++)
            if (sets[s].value[i].given && !is_named(command->without, sets[s].table[i].name))
                rc = add_values(command, &sets[s], i, err);
    return rc;
}

int cli_finish_stdout(dsc_error *err)
{
    errno = 0;
    if (fflush(stdout) || ferror(stdout))
        return dsc_fail_errno(err, DSC_EIO, errno ? errno : EIO, "cannot write to standard output");
    return DSC_OK;
}

// Whether the reader of standard output has closed its pipe, as head does.
static bool reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cli_main(const char *program, const cli_command *const *commands,
             int (*dispatch)(int argc, char **argv, dsc_error *err), int argc, char **argv)
{
    dsc_error err = {0};
    cli_guard();
    cli_know_commands(program, commands);
    int rc = remember_command_line(program, argc, argv, &err);
    if (!rc)
        rc = dispatch(argc, argv, &err);
    if (!rc)
        rc = cli_finish_stdout(&err);
    const bool unread = rc == DSC_EIO && reader_left();
    if (rc && !unread)
        fprintf(stderr, "draftscope: %s\n", err.message);
    dsc_buffer_fini(&command_line);
    if (rc && cli_signal())
        return 128 + cli_signal();
    return unread ? 128 + SIGPIPE : dsc_exit_code(rc);
}

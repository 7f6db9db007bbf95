// SPDX-License-Identifier: Apache-2.0
// Parses a command's options. The tables of all methods and of the program's other commands serve
// the message about an unknown option, which names those that take it.
#include "cli/cli.h"
#include "sim/drafter.h"

#include <string.h>

static const char *known_program = "draftscope";
static const cli_command *const *known_commands;

void cli_know_commands(const char *program, const cli_command *const *commands)
{
    known_program = program;
    known_commands = commands;
}

enum { MOST = 128, OWNER = 64 };

// A command's sets, followed by those of methods and other commands.
typedef struct all_sets {
    dsc_option_set set[MOST];
    char owner[MOST][OWNER];
    size_t own, count;
} all_sets;

static void begin(all_sets *all, const dsc_option_set *sets, size_t count)
{
    all->own = all->count = count < MOST ? count : MOST;
    for (size_t s = 0; s < all->own; s++)
        all->set[s] = sets[s];
}

static bool is_own(const all_sets *all, const dsc_option *table)
{
    for (size_t s = 0; s < all->own; s++)
        if (all->set[s].table == table)
            return true;
    return false;
}

static void add(all_sets *all, const dsc_option *table, size_t options, const char *kind,
                const char *name)
{
    if (!options || all->count == MOST || is_own(all, table))
        return;
    char *owner = all->owner[all->count];
    snprintf(owner, OWNER, "%.40s %.22s", kind, name);
    all->set[all->count++] = (dsc_option_set){.table = table, .count = options, .elsewhere = owner};
}

static void add_methods(all_sets *all)
{
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        add(all, (*d)->option, (*d)->option_count, "method", (*d)->name);
}

static void add_commands(all_sets *all)
{
    for (const cli_command *const *c = known_commands; c && *c; c++) {
        char group[42];
        add(all, (*c)->option, (*c)->options, known_program, (*c)->name);
        snprintf(group, sizeof group, "%.20s %.20s", known_program, (*c)->name);
        for (const cli_command *const *s = (*c)->sub; s && *s; s++)
            add(all, (*s)->option, (*s)->options, group, (*s)->name);
    }
}

int cli_parse(const dsc_option_set *sets, size_t count, int argc, char **argv, size_t *words,
              dsc_error *err)
{
    all_sets all;
    begin(&all, sets, count);
    add_methods(&all);
    add_commands(&all);
    int rc = dsc_options_parse(all.set, all.count, argc, argv, words, err);
    return rc ? rc : cli_check_outputs(sets, count, argv, *words, err);
}

int cli_check_options(const dsc_option_set *sets, size_t count, int argc, char **argv,
                      dsc_error *err)
{
    all_sets all;
    begin(&all, sets, count);
    add_methods(&all);
    for (size_t s = all.own; s < all.count; s++)
        all.set[s].elsewhere = NULL;
    add_commands(&all);
    return dsc_options_check(all.set, all.count, argc, argv, err);
}

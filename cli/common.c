// SPDX-License-Identifier: Apache-2.0
// Small functions that the commands share: help texts with wrapped lines, the check of positional
// arguments, the provenance of a result table, the place of the program, the number of threads.
#include "cli/cli.h"

#include "base/threads.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

bool cli_asks_help(int argc, char **argv)
{
    for (int a = 0; a < argc && strcmp(argv[a], "--"); a++)
        if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
            return true;
    return false;
}

// Writes words up to column 98, later lines indented.
static void wrap(const char *text, int indent, int column)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column + (int)n > 98 && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", (int)n, text);
        column += (int)n;
        text += n;
        if (*text) {
            putchar(' ');
            column++;
            text++;
        }
    }
    putchar('\n');
}

void cli_print_fields(const char *title, const dsc_column *field, size_t count)
{
    enum { INDENT = 26 };
    if (title)
        printf("\n%s\n", title);
    for (size_t i = 0; i < count; i++) {
        int column = printf("  %-*s", INDENT - 2, field[i].name);
        if (strlen(field[i].name) >= INDENT - 2) { // a long name has a line of its own
            printf("\n%*s", INDENT, "");
            column = INDENT;
        }
        wrap(field[i].help, INDENT, column);
    }
}

void cli_print_help(const char *usage, const char *about, const cli_help_section *sections,
                    size_t count)
{
    printf("Usage: draftscope %s\n\n", usage);
    wrap(about, 0, 0);
    for (size_t s = 0; s < count; s++) {
        printf("\n%s\n", sections[s].title);
        if (!sections[s].count)
            puts("  (none)");
        dsc_option_help(sections[s].table, sections[s].count, stdout);
    }
}

int cli_check_positionals(size_t given, int least, int most, const char *what, dsc_error *err)
{
    if ((int)given < least)
        return dsc_fail(err, DSC_EUSAGE, "%s expected", what);
    if (most >= 0 && (int)given > most)
        return dsc_fail(err, DSC_EUSAGE, "too many arguments: %s expected", what);
    return DSC_OK;
}

int cli_result_comments(dsc_table *t, dsc_error *err)
{
    int rc = dsc_table_comment(t, "draftscope", PACKAGE_VERSION, err);
    return rc ? rc : dsc_table_comment(t, "command", cli_command_line(), err);
}

int cli_comments(dsc_table *t, const dsc_trace *trace, uint64_t seed, const char *cost,
                 dsc_error *err)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, seed);
    const char *pair[][2] = {{"trace", trace ? dsc_trace_path(trace) : NULL},
                             {"trace_hash", trace ? dsc_trace_get_info(trace)->hash : NULL},
                             {"seed", number},
                             {"cost", cost}};
    int rc = cli_result_comments(t, err);
    for (size_t i = 0; i < sizeof pair / sizeof *pair && !rc; i++)
        if (pair[i][1])
            rc = dsc_table_comment(t, pair[i][0], pair[i][1], err);
    return rc;
}

bool cli_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool cli_installed_at(char *path, size_t size, int up, const char *relative)
{
    const ssize_t n = readlink("/proc/self/exe", path, size);
    size_t length = n > 0 && (size_t)n < size ? (size_t)n : 0;
    for (; up > 0; up--) { // drops the last slash and what follows it
        while (length && path[length - 1] != '/')
            length--;
        length -= length > 0;
    }
    if (!length || length + strlen(relative) + 2 > size)
        return false;
    path[length] = '/';
    strcpy(path + length + 1, relative);
    return true;
}

int cli_threads(int64_t asked)
{
    const int64_t n = asked ? asked : dsc_threads_default();
    return n < 1 ? 1 : n > DSC_THREADS_MOST ? DSC_THREADS_MOST : (int)n;
}

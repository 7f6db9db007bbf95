// SPDX-License-Identifier: Apache-2.0
// Refuses an output that is also an input: whatever a command reads, it never replaces.
#include "base/outfile.h"
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

// The options that name what is written.
static const char *const outputs[] = {"output", "timeline", "occupancy", "schedule"};

// Returns whether `path` is the folder of a trace that contains the file `out`.
static bool contains(const char *path, const char *out)
{
    char name[4096], folder[4096];
    const char *slash = strrchr(out, '/');
    const int n = slash ? (int)(slash - out) : 1;
    if (snprintf(name, sizeof name, "%s/manifest.json", path) >= (int)sizeof name ||
        snprintf(folder, sizeof folder, "%.*s", n, slash ? out : ".") >= (int)sizeof folder)
        return false;
    return access(name, F_OK) == 0 && access(out, F_OK) == 0 &&
           dsc_same_file(path, *folder ? folder : "/");
}

// The text of an argument is a path, or contains some after ':', '=' or ',': "table:FILE",
// "ngram:FILE,order=3", "prometheus:FILE,FILE".
static int check_input(const char *option, const char *out, const char *text, dsc_error *err)
{
    char path[4096];
    for (const char *at = text; at; at = strpbrk(at, ":=,"), at += at != NULL)
        for (int whole = 0; whole < 2; whole++) {
            const size_t n = whole ? strlen(at) : strcspn(at, ",");
            if (snprintf(path, sizeof path, "%.*s", (int)n, at) >= (int)sizeof path || !n)
                continue;
            if (dsc_same_file(path, out) || contains(path, out))
                return dsc_fail(err, DSC_EUSAGE,
                                "--%s: %s is an input (%s) and would be overwritten", option, out,
                                text);
        }
    return DSC_OK;
}

// DSC_EUSAGE when what would be written is read: one file under two names, by device and inode.
static int check_output(const dsc_option *o, const char *out, const dsc_option_set *sets,
                        size_t count, char **word, size_t words, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t w = 0; w < words && !rc; w++)
        rc = check_input(o->name, out, word[w], err);
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sets[s].count && !rc; i++) {
            const dsc_option_value *v = &sets[s].value[i];
            if (&sets[s].table[i] != o && sets[s].table[i].kind == DSC_OPTION_TEXT && v->given)
                rc = check_input(o->name, out, v->text, err);
        }
    return rc;
}

int cli_check_outputs(const dsc_option_set *sets, size_t count, char **word, size_t words,
                      dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t s = 0; s < count; s++)
        for (size_t k = 0; k < sizeof outputs / sizeof *outputs && !rc; k++) {
            const dsc_option *o = dsc_option_find(sets[s].table, sets[s].count, outputs[k]);
            const dsc_option_value *v = o ? &sets[s].value[o - sets[s].table] : NULL;
            if (v && v->given && strcmp(v->text, "-") != 0)
                rc = check_output(o, v->text, sets, count, word, words, err);
        }
    return rc;
}

int cli_check_written(const cli_call *call, const char *path, dsc_error *err)
{
    const cli_command *c = call->command;
    const dsc_option_set own = {
        .table = c->option, .count = c->options, .value = (dsc_option_value *)call->value};
    return check_output(dsc_option_find(c->option, c->options, "output"), path, &own, 1, call->word,
                        call->words, err);
}

// SPDX-License-Identifier: Apache-2.0
// Finds the methods that a command line names, prints the help of their options, and fills a
// configuration from parsed values.
#include "cli/method.h"

#include "sim/run/result.h"

#include <string.h>

// The value of the last --method, or NULL.
static const char *method_value(int argc, char **argv)
{
    const char *value = NULL;
    for (int a = 0; a < argc && strcmp(argv[a], "--"); a++) {
        if (strncmp(argv[a], "--method=", 9) == 0)
            value = argv[a] + 9;
        else if (strcmp(argv[a], "--method") == 0 && a + 1 < argc)
            value = argv[a + 1];
    }
    return value;
}

bool cli_names_method(int argc, char **argv)
{
    return method_value(argc, argv) != NULL;
}

// An unknown option is reported first, so that this message does not hide a typing error.
static int no_method(const dsc_option_set *own, size_t sets, int argc, char **argv, dsc_error *err)
{
    int rc = cli_check_options(own, sets, argc, argv, err);
    return rc ? rc
              : dsc_fail(err, DSC_EUSAGE, "--method NAME expected (see: draftscope list methods)");
}

int cli_find_method(const dsc_option_set *own, size_t sets, int argc, char **argv,
                    const dsc_drafter_type **out, dsc_error *err)
{
    const char *name = method_value(argc, argv);
    *out = name ? dsc_drafter_find(name, err) : NULL;
    return *out ? DSC_OK : name ? DSC_EUSAGE : no_method(own, sets, argc, argv, err);
}

int cli_find_methods(const dsc_option_set *own, size_t sets, int argc, char **argv,
                     const dsc_drafter_type *out[CLI_MAX_METHODS], size_t *count, dsc_error *err)
{
    const char *names = method_value(argc, argv);
    *count = 0;
    if (!names)
        return no_method(own, sets, argc, argv, err);
    for (size_t n; names; names = names[n] ? names + n + 1 : NULL) {
        char name[64];
        n = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        const dsc_drafter_type *d = dsc_drafter_find(name, err);
        if (!d)
            return DSC_EUSAGE;
        for (size_t i = 0; i < *count; i++)
            if (out[i] == d && strcmp(name, d->name) != 0)
                return dsc_fail(err, DSC_EUSAGE,
                                "--method: '%s' is method %s, which is given twice", name, d->name);
            else if (out[i] == d)
                return dsc_fail(err, DSC_EUSAGE, "--method: %s is given twice", d->name);
        if (*count == CLI_MAX_METHODS)
            return dsc_fail(err, DSC_EUSAGE, "--method: at most %d methods", CLI_MAX_METHODS);
        out[(*count)++] = d;
    }
    return DSC_OK;
}

bool cli_apply_preset(const char *names, const dsc_drafter_type *drafter,
                      dsc_option_value *parameter)
{
    const char *preset = NULL;
    for (size_t n; names && !preset; names = names[n] ? names + n + 1 : NULL) {
        n = strcspn(names, ",");
        preset = dsc_drafter_preset(drafter, names, n);
    }
    if (!preset || parameter[0].given)
        return false;
    parameter[0].text = preset;
    parameter[0].given = true;
    return true;
}

void cli_print_method_help(const char *usage, const char *about, const cli_help_section *own,
                           size_t count, bool fields, int argc, char **argv)
{
    enum { MOST = 64 };
    cli_help_section section[MOST];
    char title[MOST][128];
    size_t n = 0, results;
    dsc_error ignored;
    const dsc_drafter_type *only[CLI_MAX_METHODS];
    size_t methods;
    for (; n < count && n < MOST; n++)
        section[n] = own[n];
    cli_find_methods(NULL, 0, argc, argv, only, &methods, &ignored);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d && n < MOST; d++) {
        size_t i = 0;
        while (i < methods && only[i] != *d)
            i++;
        if (!methods || i < methods) {
            snprintf(title[n], sizeof title[n], "Method %s: %s", (*d)->name, (*d)->summary);
            section[n] = (cli_help_section){title[n], (*d)->option, (*d)->option_count};
            n++;
        }
    }
    cli_print_help(usage, about, section, n);
    const dsc_column *field = dsc_result_fields(&results);
    if (fields)
        cli_print_fields("Result fields, the same for every method", field, results);
}

int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err)
{
    int rc = DSC_OK;
    dsc_config_init(config, config->drafter);
    for (size_t o = 0; o < config->drafter->option_count && !rc; o++)
        if (parameter[o].text)
            rc = dsc_config_set(config, config->drafter->option[o].name, parameter[o].text, err);
    return rc ? rc : dsc_config_prepare(config, err);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate.h"
#include "cli/workload.h"

#include "sim/result.h"

#include <stdlib.h>
#include <string.h>

// The value of --method, which must be known before anything else is parsed; or NULL.
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

static int no_method(dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE, "--method NAME expected (see: draftscope list methods)");
}

int cli_find_method(int argc, char **argv, const dsc_drafter_type **out, dsc_error *err)
{
    const char *name = method_value(argc, argv);
    *out = name ? dsc_drafter_find(name, err) : NULL;
    return *out ? DSC_OK : name ? DSC_EUSAGE : no_method(err);
}

int cli_find_methods(int argc, char **argv, const dsc_drafter_type *out[CLI_MAX_METHODS],
                     size_t *count, dsc_error *err)
{
    const char *names = method_value(argc, argv);
    *count = 0;
    if (!names)
        return no_method(err);
    for (size_t n; names; names = names[n] ? names + n + 1 : NULL) {
        char name[64];
        n = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        const dsc_drafter_type *d = dsc_drafter_find(name, err);
        if (!d)
            return DSC_EUSAGE;
        for (size_t i = 0; i < *count; i++)
            if (out[i] == d)
                return dsc_fail(err, DSC_EUSAGE, "--method: %s is given twice", d->name);
        if (*count == CLI_MAX_METHODS)
            return dsc_fail(err, DSC_EUSAGE, "--method: at most %d methods", CLI_MAX_METHODS);
        out[(*count)++] = d;
    }
    return DSC_OK;
}

void cli_print_method_help(const char *usage, const char *about, const dsc_option *own,
                           size_t count, bool models, int argc, char **argv)
{
    enum { MOST = 64 };
    cli_help_section section[MOST] = {{"Options", own, count},
                                      {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS}};
    char title[MOST][128];
    size_t n = models ? 2 : 1, fields;
    dsc_error ignored;
    const dsc_drafter_type *only[CLI_MAX_METHODS];
    size_t methods;
    cli_find_methods(argc, argv, only, &methods, &ignored);
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
    const dsc_column *field = dsc_result_fields(&fields);
    cli_print_fields("Result fields, the same for every method", field, fields);
}

int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err)
{
    for (size_t o = 0; o < config->drafter->option_count; o++) {
        config->parameter[o] = parameter[o].integer;
        config->real[o] = parameter[o].real;
        config->text[o] = parameter[o].text;
    }
    return dsc_config_prepare(config, err);
}

// Whether any request of the trace has something that --references VALUE may copy from.
static int any_reference(const dsc_trace *trace, const char *chosen, bool *found, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    bool all = strcmp(chosen, "all") == 0, prompt = all || strcmp(chosen, "prompt") == 0;
    uint8_t kind = strcmp(chosen, "turns") == 0 ? DSC_REFERENCE_TURN : DSC_REFERENCE_DOCUMENT;
    *found = (prompt && info->prompt_tokens > 0) || (all && info->references > 0);
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !*found && !rc && !prompt; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, trace, s, err);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard) && !*found; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            for (int64_t r = 0; r < q.references; r++)
                *found = *found || q.reference_kind[r] == kind;
        }
        dsc_shard_close(shard);
    }
    return rc;
}

// A model is asked with prompts cut from its texts, and with nothing else.
static bool any_prompt(const dsc_language *target, const char *chosen)
{
    return target->type->text && (strcmp(chosen, "all") == 0 || strcmp(chosen, "prompt") == 0);
}

int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err)
{
    const dsc_option *o = drafter->option;
    while (o < drafter->option + drafter->option_count && strcmp(o->name, "references"))
        o++;
    if (o == drafter->option + drafter->option_count)
        return DSC_OK;
    int64_t *list;
    size_t n;
    int rc = dsc_option_list(o, value[o - drafter->option].text, &list, &n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        char chosen[64];
        bool found = true;
        dsc_option_text(o, list[i], chosen, sizeof chosen);
        if (trace)
            rc = any_reference(trace, chosen, &found, err);
        else
            found = any_prompt(target, chosen);
        if (!rc && !found)
            fprintf(stderr,
                    "draftscope: note: no request of the %s has references of kind '%s': "
                    "nothing is ever drafted%s\n",
                    trace ? "trace" : "model", chosen,
                    !trace && target->type->text ? " (try --references prompt)" : "");
    }
    free(list);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// draftscope list: prints the names of methods, rules, models, figures, cost models and import
// formats with their summaries, from their descriptors, and of engines.
#include "cli/cli.h"
#include "cli/tune/tune.h"
#include "plots/figure/figure.h"
#include "sim/cost/cost.h"
#include "sim/cost/hardware.h"
#include "sim/drafter.h"
#include "sim/model/model_spec.h"
#include "sim/verifier.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

#include <string.h>

// clang-format off
static const dsc_option options[] = {
    {.name = "verbose", .letter = 'v', .kind = DSC_OPTION_FLAG,
     .help = "also print the parameters of methods and models, shapes and machines of costs, and "
             "the names of engines' options with the source in which each was read"},
};
// clang-format on

// ", also pld, prompt-lookup": the words of a list "a|b".
static void print_synonyms(const char *list)
{
    printf("; also ");
    for (; *list; list++)
        fputs(*list == '|' ? ", " : (char[]){*list, '\0'}, stdout);
}

static void list_methods(bool verbose)
{
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        printf("%-14s%s", (*d)->name, (*d)->summary);
        if ((*d)->synonyms)
            print_synonyms((*d)->synonyms);
        for (const char *const *p = (*d)->presets; p && *p; p++)
            printf("%s%s", p == (*d)->presets ? "; also " : ", ", *p);
        putchar('\n');
        if (verbose)
            dsc_option_help((*d)->option, (*d)->option_count, stdout);
    }
}

static void list_rules(bool verbose)
{
    (void)verbose;
    for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
        printf("%-16s%s (%s, %s)", (*v)->name, (*v)->summary, (*v)->lossless ? "lossless" : "lossy",
               (*v)->tree ? "trees" : "chains only");
        if ((*v)->synonyms)
            print_synonyms((*v)->synonyms);
        putchar('\n');
    }
}

// Parameters of a model are items of its SPEC, not options.
static void list_models(bool verbose)
{
    for (const dsc_language_kind *const *k = dsc_language_kinds(); *k; k++) {
        printf("%-14s%s (%s)\n", (*k)->name, (*k)->summary, (*k)->usage);
        for (size_t i = 0; verbose && i < (*k)->option_count; i++) {
            const dsc_option *o = &(*k)->option[i];
            char head[64];
            snprintf(head, sizeof head, "  %s=%s", o->name, o->metavar);
            printf("%-30s%s", head, o->help);
            if (o->initial)
                printf(" (default %s)", o->initial);
            putchar('\n');
        }
    }
}

// The cost models of --cost, and the shapes and machines that a roofline names.
static void list_costs(bool verbose)
{
    size_t shapes, machines;
    const dsc_model_shape *s = dsc_model_shape_presets(&shapes);
    const dsc_hardware *h = dsc_hardware_presets(&machines);
    for (const dsc_cost_type *const *t = dsc_cost_types(); *t; t++)
        printf("%-14s%s%s%s%s\n", (*t)->name, (*t)->summary, (*t)->usage ? " (" : "",
               (*t)->usage ? (*t)->usage : "", (*t)->usage ? ")" : "");
    for (size_t i = 0; verbose && i < shapes; i++)
        printf("  %-22s%8.2f billion parameters, %6.2f GB read in a pass\n", s[i].name,
               dsc_model_shape_parameters(&s[i]) / 1e9, 2 * dsc_model_shape_weights(&s[i]) / 1e9);
    for (size_t i = 0; verbose && i < machines; i++)
        printf("  %-22s%8.1f GB/s, %6.1f Tflop/s\n", h[i].name, h[i].bandwidth / 1e9,
               h[i].peak / 1e12);
}

static void list_figures(bool verbose)
{
    (void)verbose;
    for (const dsc_figure_type *const *f = dsc_figures(); *f; f++)
        printf("%-23s%s\n", (*f)->name, (*f)->summary);
}

static void list_formats(bool verbose)
{
    (void)verbose;
    for (const dsc_import_driver *const *d = dsc_import_drivers(); *d; d++)
        printf("%-14s%s\n", (*d)->name, (*d)->summary);
    for (const dsc_totals_driver *const *d = dsc_totals_drivers(); *d; d++)
        printf("%-14s%s\n", (*d)->name, (*d)->summary);
}

// The engines with the methods that they have; -v: every name, and where it was read.
static void list_engines(bool verbose)
{
    for (int e = 0; e < CLI_ENGINE_COUNT; e++) {
        const cli_engine_use use = {.engine = (cli_engine)e};
        dsc_buffer methods = {0};
        dsc_error err;
        if (!cli_engine_methods(&methods, &use, &err))
            printf("%-14s%s\n", cli_engine_word[e], methods.data);
        dsc_buffer_fini(&methods);
        for (size_t i = 0; verbose && i < cli_engine_names_count; i++) {
            const cli_engine_name *n = &cli_engine_names[i];
            if (n->engine == use.engine)
                printf("  %-44s%s%s (%s)\n", n->name, n->printed ? "" : "not printed: ", n->meaning,
                       n->read_in);
        }
    }
}

static const struct {
    const char *name; // without its last letter a synonym
    void (*print)(bool verbose);
} lists[] = {{"methods", list_methods}, {"rules", list_rules}, {"models", list_models},
             {"figures", list_figures}, {"costs", list_costs}, {"formats", list_formats},
             {"engines", list_engines}};
enum { LISTS = sizeof lists / sizeof *lists };

#define LISTED "methods, rules, models, figures, costs, formats, engines"

static int list(const cli_call *call, dsc_error *err)
{
    const char *word = call->word[0];
    const size_t length = strlen(word);
    for (size_t l = 0; l < LISTS; l++)
        if (length + 1 >= strlen(lists[l].name) && strncmp(word, lists[l].name, length) == 0) {
            lists[l].print(call->value[0].given);
            return DSC_OK;
        }
    return dsc_fail(err, DSC_EUSAGE, "'%.60s' is not one of " LISTED, word);
}

const cli_command cli_list = {
    .name = "list",
    .summary = "list methods, rules, models, figures, costs, import formats and engines",
    CLI_OPTIONS(options),
    .usage = "list methods|rules|models|figures|costs|formats|engines [-v]",
    .about =
        "Lists the drafting methods, verification rules, kinds of model, figures, cost models, "
        "import formats or inference engines.",
    .least = 1,
    .most = 1,
    .what = "one of " LISTED,
    .execute = list,
};

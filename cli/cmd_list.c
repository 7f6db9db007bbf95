// SPDX-License-Identifier: Apache-2.0
// draftscope list: prints the names of methods, rules, models, figures, cost models and import
// formats with their summaries, from their descriptors, and of engines.
#include "cli/cli.h"
#include "cli/tune/engine.h"
#include "plots/figure/figure.h"
#include "sim/cost/cost.h"
#include "sim/cost/roofline.h"
#include "sim/drafter.h"
#include "sim/model/model_spec.h"
#include "sim/replay_dist.h"
#include "sim/verifier.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

#include <string.h>

// clang-format off
static const dsc_option options[] = {
    {.name = "verbose", .letter = 'v', .kind = DSC_OPTION_FLAG,
     .help = "also print the papers, needs and parameters of methods and rules, parameters of "
             "models, shapes and machines of costs, and the names of engines' options with the "
             "source in which each was read"},
};
// clang-format on

// ", also pld, prompt-lookup": the words of a list "a|b".
static void print_synonyms(const char *list)
{
    printf("; also ");
    for (; *list; list++)
        fputs(*list == '|' ? ", " : (char[]){*list, '\0'}, stdout);
}

// What a method reads besides the text.
static const char *method_needs(const dsc_drafter_type *d)
{
    return d->view                ? "a recording of it"
           : d->needs_marginals   ? "a parallel drafter (all offsets in one pass)"
           : d->needs_middle      ? "a draft model and a middle one"
           : d->needs_draft_dists ? "a draft model and its probabilities off the output"
           : d->needs_draft && d->needs_off_path ? "a draft model, and the target off the output"
           : d->needs_draft                      ? "a draft model"
           : d->needs_off_path                   ? "the target off the output"
           : d->sees_output                      ? "the output, or a copy of the target"
                                                 : "no model";
}

static void print_trace(const char *recording)
{
    printf("    trace:   %s\n",
           strcmp(recording, "none") ? recording : "none replays it; models only (--target, live)");
}

static void print_method(const dsc_drafter_type *d)
{
    printf("    paper:   %s\n    engines: %s\n    needs:   %s\n", d->source, d->engines,
           method_needs(d));
    print_trace(d->recording);
    dsc_option_help(d->option, d->option_count, stdout);
}

static int list_methods(bool verbose, dsc_error *err)
{
    (void)err;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        printf("%-18s%s", (*d)->name, (*d)->summary);
        if ((*d)->synonyms)
            print_synonyms((*d)->synonyms);
        for (const char *const *p = (*d)->presets; p && *p; p++)
            printf("%s%s", p == (*d)->presets ? "; also " : ", ", *p);
        putchar('\n');
        if (verbose)
            print_method(*d);
    }
    return DSC_OK;
}

// The numbers of a rule's text, as in --rule typical:0.09,0.3.
static void print_parameters(const dsc_verifier_type *rule)
{
    for (size_t i = 0; i < rule->options; i++)
        printf("    %s %s: %s (default %s)\n", i ? "then" : "--rule NAME:VALUE,...;",
               rule->option[i].name, rule->option[i].help, rule->option[i].initial);
}

static const char *rule_needs(const dsc_verifier_type *v)
{
    return v->greedy ? "the target's argmax"
           : v->kinds & (DSC_DRAFT_SAMPLED | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT) && !v->argmax
               ? v->off_path ? "the distributions of both models, also after rejected tokens"
                             : "the distributions of both models at the draft's positions"
               : "the target's distributions at the draft's positions";
}

static void print_rule(const dsc_verifier_type *v)
{
    printf("    paper:   %s\n    engines: %s\n    needs:   %s\n    trace:   ", v->source,
           v->engines, rule_needs(v));
    if (v->greedy)
        puts("of a draft model draft_rank or draft_argmax; of other methods token ids");
    else if (v->replay == DSC_RULE_REPLAY_NONE)
        puts("none replays it; models only (--target, live)");
    else if (v->replay == DSC_RULE_REPLAY_PATHS)
        puts("whole distributions of both models; of one sequence draft_logp, target_logp");
    else
        printf("draft_logp, target_logp%s%s\n",
               v->replay_dist ? "; of several drafts also "
               : v->off_path  ? " (of one sequence)"
                              : "",
               v->replay_dist ? v->replay_dist->column : "");
    print_parameters(v);
}

static int list_rules(bool verbose, dsc_error *err)
{
    (void)err;
    for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
        printf("%-16s%s (%s, %s)", (*v)->name, (*v)->summary, (*v)->lossless ? "lossless" : "lossy",
               (*v)->tree ? "trees" : "chains only");
        if ((*v)->synonyms)
            print_synonyms((*v)->synonyms);
        putchar('\n');
        if (verbose)
            print_rule(*v);
    }
    return DSC_OK;
}

// Parameters of a model are items of its SPEC, not options.
static int list_models(bool verbose, dsc_error *err)
{
    (void)err;
    const dsc_spec_form *form;
    for (size_t f = 0; (form = dsc_language_form(f)); f++) {
        printf("%-14s%s (%s)\n", form->name, form->summary, form->usage);
        for (size_t i = 0; verbose && i < form->items; i++) {
            const dsc_option *o = &form->item[i];
            char head[64];
            snprintf(head, sizeof head, "  %s=%s", o->name, o->metavar);
            printf("%-30s%s", head, o->help);
            if (o->initial)
                printf(" (default %s)", o->initial);
            putchar('\n');
        }
    }
    return DSC_OK;
}

static void print_shapes(void)
{
    size_t count;
    const dsc_model_shape *s = dsc_model_shape_presets(&count);
    puts("\nModels of a roofline (TARGET and DRAFT; DRAFT also: eagle, eagle3, mtp)");
    for (size_t i = 0; i < count; i++) {
        printf("  %-22s%8.2f billion parameters", s[i].name,
               dsc_model_shape_parameters(&s[i]) / 1e9);
        if (s[i].experts)
            printf(", %.2f active", dsc_model_shape_active(&s[i]) / 1e9);
        printf(", KV cache %.0f KB per token%s%s\n", 2 * dsc_model_shape_cache(&s[i]) / 1e3,
               s[i].weights ? ", weights " : "", s[i].weights ? s[i].weights : "");
    }
}

static void print_machines(void)
{
    size_t count;
    const dsc_hardware *h = dsc_hardware_presets(&count);
    printf("\nMachines of a roofline, peaks in Top/s without sparsity\n  %-12s%9s%9s%9s%9s%9s%9s\n",
           "", "GB", "GB/s", "16-bit", "fp8", "int8", "fp4");
    for (size_t i = 0; i < count; i++) {
        printf("  %-12s%9.0f%9.0f", h[i].name, h[i].memory / 1e9, h[i].bandwidth / 1e9);
        for (int m = 0; m < DSC_MATHS; m++)
            if (h[i].peak[m] > 0)
                printf("%9.1f", h[i].peak[m] / 1e12);
            else
                printf("%9s", "-");
        putchar('\n');
    }
}

static void print_formats(const char *name, const dsc_number_format *f, size_t count)
{
    printf("  %s=", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i ? "|" : "", f[i].name);
    putchar('\n');
}

static void print_engines(void)
{
    size_t count, weights, caches;
    const dsc_engine *e = dsc_engines(&count);
    const dsc_number_format *w = dsc_weight_formats(&weights), *c = dsc_cache_formats(&caches);
    puts("\nEngines of a roofline (the first is the default) and formats");
    for (size_t i = 0; i < count; i++)
        printf(
            "  engine=%-8s bandwidth-efficiency=%g, compute-efficiency=%g, "
            "attention-efficiency=%g, attention-tile=%g, overlap=%g, overhead %.3g ms a pass and "
            "%.3g ms a layer (%s)\n",
            e[i].name, e[i].bandwidth, e[i].compute, e[i].attention, e[i].tile, e[i].overlap,
            1e3 * e[i].pass_s, 1e3 * e[i].layer_s, e[i].source);
    print_formats("weights", w, weights);
    print_formats("kv", c, caches);
}

static int print_published(dsc_error *err)
{
    size_t count;
    const dsc_published_step *s = dsc_published_steps(&count);
    int rc = DSC_OK;
    printf("\nPublished steps and the roofline's time for them\n"
           "  %-44s %-10s %7s %5s %7s %12s %11s %7s\n",
           "cost", "workload", "drafted", "batch", "context", "published ms", "roofline ms",
           "error");
    for (size_t i = 0; i < count && !rc; i++) {
        double seconds = 0;
        rc = dsc_published_step_time(&s[i], &seconds, err);
        if (!rc)
            printf("  %-44s %-10s %7.0f %5.0f %7.0f %12.2f %11.2f %+6.1f %% %s\n", s[i].cost,
                   s[i].workload, s[i].draft_tokens, s[i].batch, s[i].context, 1e3 * s[i].seconds,
                   1e3 * seconds, 100 * (seconds / s[i].seconds - 1),
                   s[i].calibrates ? "fitted" : "held out");
    }
    return rc;
}

// The columns that table:FILE reads (sim/cost/cost_table.c).
static void print_table_columns(void)
{
    static const dsc_column columns[] = {
        {.name = "tokens", .help = "tokens of each sequence in a pass: the last one and the draft"},
        {.name = "context", .help = "tokens of each sequence before them (optional)"},
        {.name = "batch", .help = "sequences in the pass (optional)"},
        {.name = "prefill_tokens",
         .help = "tokens of one more sequence in the pass, a part of its prompt; 0 without the "
                 "column"},
        {.name = "target_s", .help = "seconds of a pass of the target"},
        {.name = "draft_s", .help = "seconds of a pass of the draft model (optional)"},
        {.name = "target_again_s, draft_again_s",
         .help = "seconds of a pass directly after another of the same model (optional)"},
        {.name = "target_s_low, target_s_high, draft_s_low, draft_s_high",
         .help = "first and third quartile of target_s and draft_s (optional)"}};
    putchar('\n');
    cli_print_fields("Columns of a table, as draftscope live profile writes it", columns,
                     sizeof columns / sizeof *columns);
}

// The cost models of --cost, and what a roofline names.
static int list_costs(bool verbose, dsc_error *err)
{
    for (const dsc_cost_type *const *t = dsc_cost_types(); *t; t++)
        printf("%-14s%s%s%s%s\n", (*t)->name, (*t)->summary, (*t)->usage ? " (" : "",
               (*t)->usage ? (*t)->usage : "", (*t)->usage ? ")" : "");
    if (!verbose)
        return DSC_OK;
    print_table_columns();
    print_shapes();
    print_machines();
    print_engines();
    return print_published(err);
}

static int list_figures(bool verbose, dsc_error *err)
{
    (void)verbose, (void)err;
    for (const dsc_figure_type *const *f = dsc_figures(); *f; f++)
        printf("%-23s%s\n", (*f)->name, (*f)->summary);
    return DSC_OK;
}

static int list_formats(bool verbose, dsc_error *err)
{
    (void)verbose, (void)err;
    for (const dsc_import_driver *const *d = dsc_import_drivers(); *d; d++)
        printf("%-14s%s\n", (*d)->name, (*d)->summary);
    for (const dsc_totals_driver *const *d = dsc_totals_drivers(); *d; d++)
        printf("%-14s%s\n", (*d)->name, (*d)->summary);
    return DSC_OK;
}

// The engines with the methods that they have; -v: every name, and where it was read.
static int list_engines(bool verbose, dsc_error *err)
{
    int rc = DSC_OK;
    for (int e = 0; e < CLI_ENGINE_COUNT && !rc; e++) {
        const cli_engine_use use = {.engine = (cli_engine)e};
        dsc_buffer methods = {0};
        rc = cli_engine_methods(&methods, &use, err);
        if (!rc)
            printf("%-14s%s\n", cli_engine_word[e], methods.data);
        dsc_buffer_fini(&methods);
        for (size_t i = 0; verbose && !rc && i < cli_engine_names_count; i++) {
            const cli_engine_name *n = &cli_engine_names[i];
            if (n->engine == use.engine)
                printf("  %-44s%s%s (%s)\n", n->name, n->printed ? "" : "not printed: ", n->meaning,
                       n->read_in);
        }
    }
    return rc;
}

static const struct {
    const char *name; // without its last letter a synonym
    int (*print)(bool verbose, dsc_error *err);
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
        if (length + 1 >= strlen(lists[l].name) && strncmp(word, lists[l].name, length) == 0)
            return lists[l].print(call->value[0].given, err);
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

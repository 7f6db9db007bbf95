// SPDX-License-Identifier: Apache-2.0
// draftscope plot: draws one figure of result tables.
#include "cli/cli.h"
#include "plots/draw/join.h"
#include "plots/figure/figure.h"

#include <stdlib.h>
#include <string.h>

enum { OUT, TERMINAL, WHERE, BY, COLUMN, X, Y, TITLE, WIDTH, HEIGHT };
// clang-format off
static const dsc_option options[] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "picture to write: .svg, .pdf or .png; - for standard output"},
    {.name = "terminal", .kind = DSC_OPTION_CHOICE, .choices = "auto|svg|pdf|png|dumb",
     .initial = "auto",
     .help = "format of the picture; auto: by the name of FILE, or dumb (text) for -"},
    {.name = "where", .kind = DSC_OPTION_TEXT, .metavar = "COLUMN=VALUE,...",
     .help = "draw only the rows with these values"},
    {.name = "by", .kind = DSC_OPTION_TEXT, .metavar = "FIELD",
     .help = "of a table made with --by FIELD, draw the rows of the field's values instead of "
             "those of all requests"},
    {.name = "column", .kind = DSC_OPTION_TEXT, .metavar = "COLUMN",
     .help = "quantity to draw (default: speedup; rules: block_efficiency); for figures of a "
             "validation, one of its quantities"},
    {.name = "x", .kind = DSC_OPTION_TEXT, .metavar = "COLUMN",
     .help = "column of the x axis (default: num_speculative_tokens for heatmap, drafts for "
             "rules, the draft length for length and acceptance-by-position); methods: draw one "
             "bar per value of it"},
    {.name = "y", .kind = DSC_OPTION_TEXT, .metavar = "COLUMN",
     .help = "heatmap: column of the y axis (default n); rules: column of the panels (default "
             "num_speculative_tokens)"},
    {.name = "title", .kind = DSC_OPTION_TEXT, .metavar = "TEXT",
     .help = "title of the figure, instead of its own"},
    {.name = "width", .kind = DSC_OPTION_INT, .metavar = "W", .initial = "0", .min = 0, .max = 4000,
     .help = "width in pixels (pdf: 1/96 inch; dumb: characters); 0: the figure's own"},
    {.name = "height", .kind = DSC_OPTION_INT, .metavar = "H", .initial = "0", .min = 0,
     .max = 4000,
     .help = "height in pixels (pdf: 1/96 inch; dumb: characters); 0: the figure's own"},
    CLI_OPTION_FORCE,
};
// clang-format on

// Chooses svg, pdf, png or dumb by the option or by the name of the output.
static int choose_terminal(const cli_call *call, const char **out, dsc_error *err)
{
    const int64_t terminal = call->value[TERMINAL].integer;
    static const char *const names[] = {"svg", "pdf", "png", "dumb"};
    const char *path = call->out, *dot = strrchr(path, '.');
    if (terminal) {
        *out = names[terminal - 1];
        return DSC_OK;
    }
    *out = strcmp(path, "-") == 0 ? "dumb" : NULL;
    for (size_t i = 0; i < 3 && !*out; i++)
        if (dot && strcmp(dot + 1, names[i]) == 0)
            *out = names[i];
    return *out ? DSC_OK
                : dsc_fail(
                      err, DSC_EUSAGE,
                      "-o %s: the name must end in .svg, .pdf or .png, or --terminal must be given",
                      path);
}

// Parses "a=b,c=d" in place.
static int parse_where(char *text, dsc_figure_filter *filter, size_t most, size_t *count,
                       dsc_error *err)
{
    *count = 0;
    for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
        char *equals = strchr(item, '=');
        if (!equals || equals == item)
            return dsc_fail(err, DSC_EUSAGE, "--where: '%.60s' is not of the form COLUMN=VALUE",
                            item);
        if (*count == most)
            return dsc_fail(err, DSC_EUSAGE, "--where: more than %zu conditions", most);
        *equals = '\0';
        filter[(*count)++] = (dsc_figure_filter){item, equals + 1};
    }
    return DSC_OK;
}

static int draw(const dsc_figure_type *figure, const cli_call *call, char *where, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    dsc_figure_filter filter[16];
    dsc_figure_options o = {
        .title = value[TITLE].text,
        .by = value[BY].text,
        .column = value[COLUMN].text,
        .x = value[X].text,
        .y = value[Y].text,
        .width = (double)value[WIDTH].integer,
        .height = (double)value[HEIGHT].integer,
        .filter = filter,
        .input_path = (const char *const *)call->word + 1,
        .inputs = call->words - 1,
    };
    const char *terminal;
    dsc_table t = {0};
    bool to_stdout = strcmp(call->out, "-") == 0;
    int rc = choose_terminal(call, &terminal, err);
    if (!rc)
        rc = parse_where(where, filter, sizeof filter / sizeof *filter, &o.filters, err);
    if (!rc)
        rc = dsc_read_tables(&t, o.input_path, o.inputs, err);
    if (!rc)
        rc = dsc_figure_render(figure, &t, &o, terminal, to_stdout ? NULL : call->out,
                               to_stdout ? stdout : NULL, call->force, err);
    dsc_table_fini(&t);
    return rc;
}

static const dsc_figure_type *find_figure(const char *name, dsc_error *err)
{
    const char *names[64];
    size_t n = 0;
    const dsc_figure_type *figure = dsc_figure_find(name);
    if (figure)
        return figure;
    for (const dsc_figure_type *const *f = dsc_figures(); *f && n < 64; f++)
        names[n++] = (*f)->name;
    dsc_unknown_name("figure", name, names, n, "see: draftscope list figures", err);
    return NULL;
}

static int plot(const cli_call *call, dsc_error *err)
{
    const dsc_figure_type *figure = find_figure(call->word[0], err);
    if (!figure)
        return DSC_EUSAGE;
    char *where;
    const char *given = call->value[WHERE].text ? call->value[WHERE].text : "";
    int rc = dsc_strndup(&where, given, strlen(given), err);
    if (!rc)
        rc = draw(figure, call, where, err);
    free(where);
    return rc;
}

const cli_command cli_plot = {
    .name = "plot",
    .summary = "draw a figure of a result table",
    CLI_OPTIONS(options),
    .usage = "plot FIGURE RESULT... -o FILE [OPTIONS]",
    .about = "Draws a figure of result tables (see: draftscope list figures). The gnuplot script "
             "and the plotted numbers are written next to the picture, with the extension of FILE "
             "replaced by .gp and .data.tsv.",
    .least = 2,
    .most = -1,
    .what = "a figure and result tables",
    .needs_out = "-o FILE is required",
    .execute = plot,
};

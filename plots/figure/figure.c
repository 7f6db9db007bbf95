// SPDX-License-Identifier: Apache-2.0
// The list of figures; draws one into memory or into files.
#include "plots/figure/figure.h"

#include "base/outfile.h"
#include "plots/draw/gnuplot.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <string.h>
#include <sys/stat.h>

// clang-format off
static const dsc_figure_type *const figures[] = {
    &dsc_figure_verdict,
    &dsc_figure_methods,
    &dsc_figure_by,
    &dsc_figure_length,
    &dsc_figure_rules,
    &dsc_figure_batch,
    &dsc_figure_load_latency,
    &dsc_figure_load_throughput,
    &dsc_figure_load_published,
    &dsc_figure_goodput,
    &dsc_figure_occupancy,
    &dsc_figure_policies,
    &dsc_figure_request_order,
    &dsc_figure_llma_speedup,
    &dsc_figure_llma_stats,
    &dsc_figure_heatmap,
    &dsc_figure_accept_histogram,
    &dsc_figure_by_position,
    &dsc_figure_spectr_bernoulli,
    &dsc_figure_spectr_uniform,
    &dsc_figure_accept_vs_k,
    &dsc_figure_speedup_surface,
    &dsc_figure_pearl_window,
    &dsc_figure_tree,
    &dsc_figure_timeline,
    &dsc_figure_cost,
    &dsc_figure_predicted,
    &dsc_figure_served_steps,
    &dsc_figure_errors,
    &dsc_figure_step_times,
    NULL,
};
// clang-format on

const dsc_figure_type *const *dsc_figures(void)
{
    return figures;
}

const dsc_figure_type *dsc_figure_find(const char *name)
{
    for (size_t i = 0; figures[i]; i++)
        if (!strcmp(figures[i]->name, name))
            return figures[i];
    return NULL;
}

// Whether the table is by a metadata field and has no rows of all requests.
static bool lacks_all(const dsc_table *t)
{
    const char *by = dsc_table_get_comment(t, "by");
    const int c = by ? dsc_table_find(t, by) : -1;
    size_t i = 0;
    if (c < 0 || t->column[c].type != DSC_CELL_TEXT)
        return false;
    while (i < t->rows && strcmp(dsc_table_at(t, i, (size_t)c)->text, "all"))
        i++;
    return i == t->rows;
}

bool dsc_figure_fits(const dsc_figure_type *f, const dsc_table *t)
{
    if (f != &dsc_figure_by && lacks_all(t))
        return false;
    int column[DSC_NEEDS];
    dsc_plot p = dsc_plot_of(t, f->name, NULL);
    p.needs = f->needs;
    p.spec = f->spec;
    dsc_need_columns(&p, f->needs, column);
    bool fits = !p.rc && (!f->fits || f->fits(&p));
    dsc_plot_fini(&p);
    return fits;
}

void dsc_drawing_fini(dsc_drawing *d)
{
    dsc_buffer_fini(&d->script);
    dsc_buffer_fini(&d->picture);
    dsc_buffer_fini(&d->finding);
    dsc_table_fini(&d->data);
    dsc_table_fini(&d->marks);
}

// Overwrites the creation date that cairo writes into a PDF, in place, so that offsets in the file
// remain valid.
static void fix_pdf_date(dsc_buffer *pdf)
{
    static const char mark[] = "/CreationDate (D:", fixed[] = "19700101000000";
    char *at = memmem(pdf->data, pdf->length, mark, sizeof mark - 1);
    if (!at)
        return;
    at += sizeof mark - 1;
    if ((size_t)(pdf->data + pdf->length - at) >= sizeof fixed - 1)
        memcpy(at, fixed, sizeof fixed - 1);
}

// Removes the form feed with which the dumb terminal starts a page; it clears some screens.
static void drop_form_feed(dsc_buffer *text)
{
    if (text->data[0] == '\f')
        memmove(text->data, text->data + 1, text->length--);
}

static int copy_comments(const dsc_table *from, const char *figure, dsc_table *to, dsc_error *err)
{
    int rc = dsc_table_comment(to, "figure", figure, err);
    for (size_t i = 0; !rc && i < from->comments; i++)
        rc = dsc_table_comment(to, from->key[i], from->value[i], err);
    return rc;
}

int dsc_figure_draw(const dsc_figure_type *f, const dsc_table *t, const dsc_figure_options *o,
                    const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_plot p = dsc_plot_of(t, f->name, err);
    p.needs = f->needs;
    p.spec = f->spec;
    p.options = o ? o : p.options;
    p.terminal = terminal;
    p.script = (dsc_writer){.to = &out->script, .err = err};
    p.finding = (dsc_writer){.to = &out->finding, .err = err};
    p.data = &out->data;
    p.marks = &out->marks;
    p.rc = copy_comments(t, f->name, p.data, err);
    f->draw(&p);
    int rc = p.rc ? p.rc : p.script.rc ? p.script.rc : p.finding.rc;
    dsc_plot_fini(&p);
    if (!rc)
        rc = dsc_gnuplot_run(out->script.data, &out->picture, err);
    if (!rc && !strcmp(terminal, "pdf"))
        fix_pdf_date(&out->picture);
    if (!rc && !strcmp(terminal, "dumb"))
        drop_form_feed(&out->picture);
    if (rc)
        dsc_drawing_fini(out);
    return rc;
}

enum { DATA, SCRIPT, PICTURE, FILES }; // in the order in which they get their names

// Makes the three names: out_path, and its stem with .gp and .data.tsv.
static void make_paths(dsc_plot *p, const char *path[FILES], const char *out_path)
{
    static const char *const extension[FILES] = {[SCRIPT] = ".gp", [DATA] = ".data.tsv"};
    const char *base = strrchr(out_path, '/');
    base = base ? base + 1 : out_path;
    const char *dot = strrchr(base, '.');
    size_t stem = dot && dot != base ? (size_t)(dot - out_path) : strlen(out_path);
    if (!*base)
        dsc_refuse(p, "'%s' is not a file name", out_path);
    path[PICTURE] = out_path;
    for (int i = 0; i < PICTURE; i++) {
        path[i] = dsc_text(p, "%.*s%s", (int)stem, out_path, extension[i]);
        if (!strcmp(path[i], out_path))
            dsc_refuse(p,
                       "%s: the script or the data needs this name; choose one that ends in "
                       ".svg, .pdf or .png",
                       out_path);
    }
}

static void write_data(const dsc_table *t, FILE *f)
{
    dsc_table_write_tsv_head(t, f);
    for (size_t i = 0; i < t->rows; i++)
        dsc_table_write_tsv_row(t, i, f);
}

// Opens all three files before it writes anything, so that an error leaves no file. The
// picture gets its name last: if it exists, so do the others.
static int write_files(const dsc_drawing *d, const char *const path[FILES],
                       const dsc_figure_options *o, bool force, dsc_error *err)
{
    dsc_outfile file[FILES] = {{0}};
    int rc = DSC_OK;
    for (int i = 0; !rc && i < FILES; i++) {
        for (size_t j = 0; !rc && o && j < o->inputs; j++)
            if (o->input_path[j] && dsc_same_file(path[i], o->input_path[j]))
                rc = dsc_fail(err, DSC_EUSAGE,
                              "%s is an input of the figure and would be overwritten", path[i]);
        if (!rc)
            rc = dsc_outfile_open(&file[i], path[i], force, err);
    }
    if (!rc) {
        fwrite(d->picture.data, 1, d->picture.length, file[PICTURE].stream);
        fwrite(d->script.data, 1, d->script.length, file[SCRIPT].stream);
        write_data(&d->data, file[DATA].stream);
    }
    if (!rc)
        rc = dsc_outfile_commit_all(file, FILES, err);
    for (int i = 0; i < FILES; i++)
        dsc_outfile_abort(&file[i]);
    return rc;
}

int dsc_figure_render(const dsc_figure_type *f, const dsc_table *t, const dsc_figure_options *o,
                      const char *terminal, const char *out_path, FILE *stream, bool force,
                      dsc_error *err)
{
    dsc_drawing d = {0};
    const char *path[FILES] = {NULL};
    dsc_plot memory = dsc_plot_of(t, NULL, err);
    if (out_path)
        make_paths(&memory, path, out_path);
    int rc = memory.rc ? memory.rc : dsc_figure_draw(f, t, o, terminal, &d, err);
    if (!rc && out_path)
        rc = write_files(&d, path, o, force, err);
    else if (!rc && fwrite(d.picture.data, 1, d.picture.length, stream) != d.picture.length)
        rc = dsc_fail(err, DSC_EIO, "cannot write the picture");
    dsc_plot_fini(&memory);
    dsc_drawing_fini(&d);
    return rc;
}

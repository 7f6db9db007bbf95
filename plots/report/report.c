// SPDX-License-Identifier: Apache-2.0
// Writes the report: a summary, a chapter for each kind of result, limitations, and the definitions
// of the columns; then the files, atomically.
#include "plots/report/report.h"

#include "base/outfile.h"
#include "plots/report/report_result.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void begin_section(dsc_page *p, const char *id)
{
    dsc_begin_part(p, &p->type->section, "%s", id);
}

static void end_section(dsc_page *p)
{
    dsc_end_part(p, &p->type->section);
}

// The commands and hashes of all results.
static void put_provenance(dsc_page *p, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const dsc_table *t = &r[i].table;
        dsc_say_block(p, DSC_HEADING, "Provenance of result %zu", i + 1);
        dsc_open(p, DSC_PAIRS);
        dsc_say_pair(p, "file", DSC_CODE, r[i].path);
        dsc_say_pair(p, "SHA-256 of the file", DSC_CODE, r[i].sha256);
        for (size_t k = 0; k < t->comments; k++)
            if (strncmp(t->key[k], "engine_line", 11) != 0) // the summary has these
                dsc_say_pair(p, t->key[k], DSC_CODE, t->value[k]);
        dsc_close(p, DSC_PAIRS);
    }
}

static bool column_anywhere(const dsc_result_view *r, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++)
        if (dsc_table_find(&r[i].table, name) >= 0)
            return true;
    return false;
}

static void put_glossary(dsc_page *p, const dsc_result_view *r, size_t n)
{
    dsc_open(p, DSC_PAIRS);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < r[i].table.columns; c++) {
            const dsc_column *column = &r[i].table.column[c];
            if (!column_anywhere(r, i, column->name))
                dsc_say_pair(p, column->name, DSC_VALUE,
                             column->help ? column->help : "The table contains no definition.");
        }
    dsc_close(p, DSC_PAIRS);
}

// What the first screen shows: the verdicts or the best rows, with one figure.
static void put_summary(dsc_page *p, const dsc_result_view *r, size_t n)
{
    dsc_open(p, DSC_FIRST);
    dsc_open(p, DSC_PART);
    dsc_say_block(p, DSC_CHAPTER, "Summary");
    dsc_put_summary(p, r, n);
    dsc_close(p, DSC_PART);
    dsc_open(p, DSC_PART);
    dsc_put_first_figure(p, r, n);
    dsc_close(p, DSC_PART);
    dsc_close(p, DSC_FIRST);
    dsc_put_engine_lines(p, r, n);
    dsc_say_block(p, DSC_SOFT,
                  "Speedups are relative to decoding without speculation, one token per target "
                  "call.");
}

// Draws the results from `first` on that can be compared with it in one picture.
static void put_those_like(dsc_page *p, const dsc_result_view *r, size_t n, size_t first)
{
    dsc_result_view all = {0};
    const char *separator = "Results ";
    int rc = dsc_result_view_join(&all, r, n, first, p->w.err);
    p->w.rc = p->w.rc ? p->w.rc : rc;
    dsc_writer *w = dsc_text_begin(&all.memory);
    for (size_t i = first; i < n; i++)
        if (dsc_are_comparable(&r[first], &r[i])) {
            dsc_put(w, "%s%zu", separator, i + 1);
            separator = ", ";
        }
    dsc_put(w, " together");
    const char *heading = dsc_text_end(&all.memory);
    size_t before = p->w.to->length;
    dsc_begin_part(p, &p->type->section, "together-%zu", first + 1);
    size_t empty = p->w.to->length;
    if (p->first_joined == first + 1)
        p->first_of = &all.table; // its first figure is on the first screen
    dsc_put_figures(p, &all, true, heading);
    if (p->w.to->length > empty)
        end_section(p);
    else
        p->w.to->length = before;
    dsc_result_view_fini(&all);
}

// Draws the figures that compare several results.
static void put_together(dsc_page *p, const dsc_result_view *r, size_t n)
{
    for (size_t i = 0; i < n && !p->w.rc; i++) {
        size_t first = 0;
        while (first < i && !dsc_are_comparable(&r[first], &r[i]))
            first++;
        if (first == i)
            put_those_like(p, r, n, i);
    }
}

static void put_result(dsc_page *p, dsc_result_view *r, size_t number)
{
    dsc_begin_part(p, &p->type->section, "result-%zu", number);
    dsc_say_block(p, DSC_HEADING, "Result %zu: %s", number, base_name(r->path));
    if (r->kind == DSC_RESULT_VALIDATED)
        dsc_put_verdicts(p, r);
    if (r->kind == DSC_RESULT_METHODS || (r->kind == DSC_RESULT_OTHER && r->table.rows))
        dsc_put_best(p, r);
    if (r->kind == DSC_RESULT_SERVED)
        dsc_put_load_verdicts(p, r);
    dsc_put_figures(p, r, false, "Figures");
    if (r->kind == DSC_RESULT_SERVED)
        dsc_put_load_rows(p, r);
    dsc_put_by(p, r);
    dsc_put_tables(p, r);
    end_section(p);
}

enum { SUMMARY = DSC_RESULT_KINDS, LIMITATIONS, COLUMNS, PROVENANCE, CHAPTERS };

static const dsc_page_entry chapter[CHAPTERS] = {
    [SUMMARY] = {"summary", "Summary"},
    [DSC_RESULT_WORKLOAD] = {"workload", "Workload and models"},
    [DSC_RESULT_METHODS] = {"methods", "Comparison of methods"},
    [DSC_RESULT_TUNED] = {"best", "Results by condition"},
    [DSC_RESULT_SERVED] = {"load", "Serving under load"},
    [DSC_RESULT_BOUNDS] = {"bounds", "Bounds"},
    [DSC_RESULT_VALIDATED] = {"validation", "Predicted and measured values"},
    [DSC_RESULT_COSTS] = {"costs", "Forward-pass latency"},
    [DSC_RESULT_OTHER] = {"other", "Other tables"},
    [LIMITATIONS] = {"limitations", "Limitations"},
    [COLUMNS] = {"columns", "Columns"},
    [PROVENANCE] = {"provenance", "Commands and hashes"},
};

static bool has_chapter(const dsc_result_view *r, size_t n, int which)
{
    if (which == DSC_RESULT_WORKLOAD || (which == DSC_RESULT_BOUNDS && dsc_any_bounds(r, n)))
        return true;
    for (size_t i = 0; i < n; i++)
        if (which == COLUMNS ? r[i].table.columns > 0 : (int)r[i].kind == which)
            return true;
    return which >= SUMMARY && which != COLUMNS;
}

static void put_results(dsc_page *p, dsc_result_view *r, size_t n, dsc_result_kind kind)
{
    if (kind == DSC_RESULT_WORKLOAD)
        dsc_put_workload(p, r, n);
    if (kind == DSC_RESULT_METHODS)
        put_together(p, r, n);
    if (kind == DSC_RESULT_BOUNDS)
        dsc_put_bounds(p, r, n);
    for (size_t i = 0; i < n && !p->w.rc; i++)
        if (r[i].kind == kind)
            put_result(p, &r[i], i + 1);
}

static void put_chapter(dsc_page *p, dsc_result_view *r, size_t n, int which)
{
    begin_section(p, chapter[which].id);
    if (which != SUMMARY) // its heading is a part of its first screen
        dsc_say_block(p, DSC_CHAPTER, "%s", chapter[which].title);
    if (which == SUMMARY)
        put_summary(p, r, n);
    else if (which == LIMITATIONS)
        dsc_put_limitations(p, r, n);
    else if (which == COLUMNS)
        put_glossary(p, r, n);
    else if (which == PROVENANCE)
        put_provenance(p, r, n);
    else
        put_results(p, r, n, (dsc_result_kind)which);
    end_section(p);
}

static void put_page(dsc_page *p, dsc_result_view *r, size_t n, const char *title)
{
    dsc_page_entry entry[CHAPTERS];
    int order[CHAPTERS];
    size_t chapters = 0;
    for (int i = 0; i < CHAPTERS; i++) { // the summary first
        int which = i == 0 ? SUMMARY : i <= SUMMARY ? i - 1 : i;
        if (has_chapter(r, n, which)) {
            order[chapters] = which;
            entry[chapters++] = chapter[which];
        }
    }
    p->type->begin(&p->w, title);
    if (p->type->contents)
        p->type->contents(&p->w, entry, chapters);
    for (size_t i = 0; i < chapters; i++)
        put_chapter(p, r, n, order[i]);
    p->type->end(&p->w);
}

// --- files -------------------------------------------------------------------------------------

// The page's file, and for LaTeX the folder of its pictures.
typedef struct places {
    dsc_plot memory;
    const char *page, *folder; // folder with its slash, "" for the current one
    bool own, made;            // the folder is the report's own; it was created here
} places;

// Finds the places for DIR or NAME.tex; returns the stem of the pictures: "", or "NAME-" for the
// latter, with only letters and digits in the name, which LaTeX accepts.
static const char *find_places(places *at, const char *out_path)
{
    size_t n = strlen(out_path);
    at->own = n <= 4 || strcmp(out_path + n - 4, ".tex") != 0;
    while (at->own && n > 1 && out_path[n - 1] == '/')
        n--;
    const char *name = base_name(out_path);
    int before = at->own ? (int)n : (int)(name - out_path);
    at->folder = dsc_text(&at->memory, "%.*s%s", before, out_path, at->own ? "/" : "");
    at->page = at->own ? dsc_text(&at->memory, "%sreport.tex", at->folder) : out_path;
    if (at->own)
        return "";
    dsc_writer *w = dsc_text_begin(&at->memory);
    for (size_t i = 0; i + 3 < strlen(name); i++) {
        bool plain =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", name[i]);
        dsc_put_bytes(w, plain ? &name[i] : "-", 1);
    }
    return dsc_text_end(&at->memory);
}

// Creates the folder DIR unless it exists.
static int make_folder(places *at, dsc_error *err)
{
    struct stat st;
    if (!at->own || (!stat(at->folder, &st) && S_ISDIR(st.st_mode)))
        return DSC_OK;
    at->made = !mkdir(at->folder, 0777);
    return at->made ? DSC_OK : dsc_fail(err, DSC_EIO, "cannot make the folder %s: %m", at->folder);
}

// Opens all files before it writes anything, so that an error leaves no file. The page gets
// its name last: if it exists, so do the pictures.
static int write_files(dsc_page *p, places *at, bool force, dsc_error *err)
{
    size_t pictures = p->type == &dsc_page_latex ? p->figures : 0;
    dsc_outfile *f = dsc_plot_new(&at->memory, dsc_outfile, pictures + 1);
    if (!f)
        return at->memory.rc;
    int rc = dsc_outfile_open(&f[pictures], at->page, force, err);
    for (size_t i = 0; i < pictures && !rc; i++) {
        dsc_writer *w = dsc_text_begin(&at->memory);
        dsc_put(w, "%s", at->folder);
        dsc_put_picture_name(w, p, i + 1);
        rc = dsc_outfile_open(&f[i], dsc_text_end(&at->memory), force, err);
        if (!rc)
            fwrite(p->picture[i].data, 1, p->picture[i].length, f[i].stream);
    }
    if (!rc)
        fwrite(p->w.to->data, 1, p->w.to->length, f[pictures].stream);
    rc = rc ?: dsc_outfile_commit_all(f, pictures + 1, err);
    for (size_t i = 0; i <= pictures; i++)
        dsc_outfile_abort(&f[i]);
    return rc;
}

// Checks the output before any work is done.
static int check_output(const char *const *input, size_t n, const char *path, bool force,
                        dsc_error *err)
{
    if (!n)
        return dsc_fail(err, DSC_EUSAGE, "a report needs at least one result table");
    for (size_t i = 0; i < n; i++)
        if (dsc_same_file(input[i], path))
            return dsc_fail(err, DSC_EUSAGE,
                            "%s is one of the result tables and would be overwritten", path);
    return dsc_outfile_check(path, force, err);
}

int dsc_report_write(const char *const *result_paths, size_t n, const char *out_path,
                     const dsc_report_options *o, dsc_error *err)
{
    static const dsc_report_options defaults;
    dsc_buffer page = {0};
    o = o ? o : &defaults;
    places at = {.memory = dsc_plot_of(NULL, NULL, err), .page = out_path};
    dsc_page p = {.w = {.to = &page, .err = err},
                  .type = o->latex ? &dsc_page_latex : &dsc_page_html,
                  .stem = o->latex ? find_places(&at, out_path) : ""};
    dsc_result_view *r = dsc_plot_new(&at.memory, dsc_result_view, n);
    int rc = at.memory.rc;
    if (!rc && o->latex)
        rc = make_folder(&at, err);
    rc = rc ?: check_output(result_paths, n, at.page, o->force, err);
    for (size_t i = 0; !rc && i < n; i++)
        rc = dsc_result_view_read(&r[i], result_paths[i], err);
    if (!rc) {
        put_page(&p, r, n, o->title ? o->title : "Speculative decoding report");
        rc = p.w.rc;
    }
    rc = rc ?: write_files(&p, &at, o->force, err);
    if (rc && at.made)
        rmdir(at.folder);
    for (size_t i = 0; r && i < n; i++)
        dsc_result_view_fini(&r[i]);
    dsc_plot_fini(&at.memory);
    dsc_page_fini(&p);
    dsc_buffer_fini(&page);
    return rc;
}

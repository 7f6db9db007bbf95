// SPDX-License-Identifier: Apache-2.0
// The report's page: head, summary, a section per result, the meanings of the columns.
#include "plots/report.h"

#include "base/file.h"
#include "plots/report_html.h"
#include "plots/report_result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void put_pair(dsc_writer *w, const char *key, const char *value)
{
    dsc_put(w, "<dt>");
    dsc_put_html(w, key);
    dsc_put(w, "</dt><dd><code>");
    dsc_put_html(w, value);
    dsc_put(w, "</code></dd>\n");
}

static void put_provenance(dsc_writer *w, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    dsc_put(w, "<h3>How it was made</h3>\n<dl class=\"pairs\">\n");
    put_pair(w, "file", r->path);
    put_pair(w, "SHA-256 of the file", r->sha256);
    for (size_t i = 0; i < t->comments; i++)
        put_pair(w, t->key[i], t->value[i]);
    dsc_put(w, "</dl>\n");
}

static bool column_anywhere(const dsc_result_view *r, size_t results, size_t before,
                            const char *name)
{
    for (size_t i = 0; i < before && i < results; i++)
        if (dsc_table_find(&r[i].table, name) >= 0)
            return true;
    return false;
}

static void put_glossary(dsc_writer *w, const dsc_result_view *r, size_t n)
{
    dsc_put(w, "<section id=\"columns\">\n<h2>What the columns mean</h2>\n<dl class=\"pairs\">\n");
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < r[i].table.columns; c++) {
            const dsc_column *column = &r[i].table.column[c];
            if (column_anywhere(r, n, i, column->name))
                continue;
            dsc_put(w, "<dt>");
            dsc_put_html(w, column->name);
            dsc_put(w, "</dt><dd>");
            dsc_put_html(w, column->help ? column->help : "The table does not say.");
            dsc_put(w, "</dd>\n");
        }
    dsc_put(w, "</dl>\n</section>\n");
}

static void put_head(dsc_writer *w, const char *title)
{
    dsc_put(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    dsc_put_html(w, title);
    dsc_put(w, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", dsc_report_css);
    dsc_put_html(w, title);
    dsc_put(w, "</h1>\n");
}

static void put_summary(dsc_writer *w, const dsc_result_view *r, size_t n)
{
    dsc_put(w,
            "<p class=\"soft\">%zu result table%s. Speed-ups are over decoding one token per "
            "target call, without speculation.</p>\n",
            n, n == 1 ? "" : "s");
    dsc_put(w, "<section id=\"summary\">\n<h2>Summary</h2>\n");
    for (size_t i = 0; i < n; i++) {
        if (n > 1) {
            dsc_put(w, "<h3><a href=\"#result-%zu\">Result %zu: ", i + 1, i + 1);
            dsc_put_html(w, base_name(r[i].path));
            dsc_put(w, "</a></h3>\n");
        }
        dsc_put_best(w, &r[i]);
    }
    dsc_put(w, "</section>\n");
}

// "Results 1, 3 together"
static int put_together_heading(dsc_buffer *heading, const bool *in_it, size_t n, dsc_error *err)
{
    dsc_writer w = {.to = heading, .err = err};
    const char *separator = "<h2>Results ";
    for (size_t i = 0; i < n; i++)
        if (in_it[i]) {
            dsc_put(&w, "%s<a href=\"#result-%zu\">%zu</a>", separator, i + 1, i + 1);
            separator = ", ";
        }
    dsc_put(&w, " together</h2>\n");
    return w.rc;
}

// What can be seen only when several results stand in one picture.
static int put_together(dsc_writer *w, const dsc_result_view *r, size_t n, size_t *figures,
                        dsc_error *err)
{
    dsc_result_view all = {0};
    dsc_buffer heading = {0};
    bool *in_it;
    int rc = dsc_alloc((void **)&in_it, n, sizeof *in_it, err);
    if (rc)
        return rc;
    rc = dsc_result_view_join(&all, r, n, in_it, err);
    if (!rc)
        rc = put_together_heading(&heading, in_it, n, err);
    size_t before = w->to->length;
    dsc_put(w, "<section id=\"together\">\n");
    size_t empty = w->to->length;
    if (!rc)
        rc = dsc_put_figures(w, &all, true, heading.data, figures, err);
    if (w->to->length > empty)
        dsc_put(w, "</section>\n");
    else
        w->to->length = before;
    free(in_it);
    dsc_buffer_fini(&heading);
    dsc_result_view_fini(&all);
    return rc;
}

static int put_page(dsc_writer *w, dsc_result_view *r, size_t n, const char *title, dsc_error *err)
{
    size_t figures = 0;
    put_head(w, title);
    put_summary(w, r, n);
    int rc = put_together(w, r, n, &figures, err);
    for (size_t i = 0; i < n && !rc; i++) {
        dsc_put(w, "<section id=\"result-%zu\">\n<h2>Result %zu: ", i + 1, i + 1);
        dsc_put_html(w, base_name(r[i].path));
        dsc_put(w, "</h2>\n");
        if ((rc = dsc_put_figures(w, &r[i], false, "<h3>Figures</h3>\n", &figures, err)))
            break;
        dsc_put_tables(w, &r[i]);
        put_provenance(w, &r[i]);
        dsc_put(w, "</section>\n");
    }
    if (rc)
        return rc;
    put_glossary(w, r, n);
    dsc_put(w, "</main>\n</body>\n</html>\n");
    return w->rc;
}

static int write_page(const dsc_buffer *page, const char *path, bool force, dsc_error *err)
{
    dsc_outfile f;
    int rc = dsc_outfile_open(&f, path, force, err);
    if (rc)
        return rc;
    fwrite(page->data, 1, page->length, f.stream);
    return dsc_outfile_commit(&f, err);
}

// Refusals before any work is done: dsc_outfile_open would refuse only at the end.
static int check_output(const char *const *input, size_t n, const char *path, bool force,
                        dsc_error *err)
{
    struct stat out, in;
    if (!n)
        return dsc_fail(err, DSC_EUSAGE, "a report needs at least one result table");
    if (stat(path, &out))
        return DSC_OK;
    for (size_t i = 0; i < n; i++)
        if (!stat(input[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return dsc_fail(err, DSC_EUSAGE, "%s is one of the result tables", path);
    return force ? DSC_OK
                 : dsc_fail(err, DSC_EUSAGE, "%s exists already (--force to replace it)", path);
}

int dsc_report_write(const char *const *result_paths, size_t n, const char *out_path,
                     const dsc_report_options *o, dsc_error *err)
{
    static const dsc_report_options defaults;
    dsc_result_view *r = NULL;
    dsc_buffer page = {0};
    dsc_writer w = {.to = &page, .err = err};
    o = o ? o : &defaults;
    int rc = check_output(result_paths, n, out_path, o->force, err);
    if (!rc)
        rc = dsc_alloc((void **)&r, n, sizeof *r, err);
    for (size_t i = 0; !rc && i < n; i++)
        rc = dsc_result_view_read(&r[i], result_paths[i], err);
    if (!rc)
        rc = put_page(&w, r, n, o->title ? o->title : "Speculative decoding report", err);
    if (!rc)
        rc = write_page(&page, out_path, o->force, err);
    for (size_t i = 0; r && i < n; i++)
        dsc_result_view_fini(&r[i]);
    free(r);
    dsc_buffer_fini(&page);
    return rc;
}

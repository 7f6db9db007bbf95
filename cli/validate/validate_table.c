// SPDX-License-Identifier: Apache-2.0
// The tables of published figures, and the verdict on each.
#include "cli/validate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const dsc_column validate_columns[] = {
    {"row", DSC_CELL_TEXT, "the source, as in the list of rows"},
    {"source", DSC_CELL_TEXT, "table or figure of the source"},
    {"case", DSC_CELL_TEXT, "models, task or distributions"},
    {"quantity", DSC_CELL_TEXT, "what is compared"},
    {"at", DSC_CELL_REAL, "the setting: draft length, window, number of drafts; nan: none"},
    {"published", DSC_CELL_REAL, "by the source"},
    {"predicted", DSC_CELL_REAL, "by theory or simulation; nan: skipped"},
    {"error", DSC_CELL_REAL, "predicted - published; nan where only the order is compared"},
    {"error_percent", DSC_CELL_REAL, "the same of the published figure"},
    {"tolerance", DSC_CELL_TEXT, "of the error, or of error_percent with a %; order: as the other "
                                 "figures of the case; least: predicted is a lower bound; shown: "
                                 "not judged"},
    {"verdict", DSC_CELL_TEXT, "pass, fail, shown, disputed (out of tolerance, and the note says "
                               "what is wrong with the source) or skipped"},
    {"note", DSC_CELL_TEXT, "what has to be known about the figure; -: nothing"},
};
// clang-format on
enum { COLUMNS = sizeof validate_columns / sizeof *validate_columns };
const size_t validate_column_count = COLUMNS;

// --- reading ----------------------------------------------------------------------------------

enum { SOURCE, CASE, QUANTITY, AT, PUBLISHED, TOLERANCE, NOTE, INPUTS };
static const char *const inputs[INPUTS] = {"source",    "case",      "quantity", "at",
                                           "published", "tolerance", "note"};

static int find_columns(const dsc_table *t, const char *path, size_t column[INPUTS], dsc_error *err)
{
    for (int i = 0; i < INPUTS; i++) {
        int c = dsc_table_find(t, inputs[i]);
        if (c < 0)
            return dsc_fail(err, DSC_EINPUT, "%s: there is no column '%s'", path, inputs[i]);
        dsc_cell_type type = t->column[c].type;
        bool number = type == DSC_CELL_INT || type == DSC_CELL_REAL;
        if ((i == AT || i == PUBLISHED) && !number)
            return dsc_fail(err, DSC_EINPUT, "%s: column '%s' is not numbers", path, inputs[i]);
        if (i != AT && i != PUBLISHED && i != TOLERANCE && type != DSC_CELL_TEXT)
            return dsc_fail(err, DSC_EINPUT, "%s: column '%s' is not text", path, inputs[i]);
        column[i] = (size_t)c;
    }
    return DSC_OK;
}

// given, shown, order, least, NUMBER or NUMBER%; the last three may be disputed.
static bool parse_tolerance(validate_figure *f)
{
    static const struct {
        const char *word;
        validate_kind kind;
    } words[] = {{"given", VALIDATE_GIVEN},
                 {"shown", VALIDATE_SHOWN},
                 {"order", VALIDATE_ORDER},
                 {"least", VALIDATE_LEAST}};
    const char *text = f->tolerance;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strcmp(text, words[w].word) == 0) {
            f->kind = words[w].kind;
            return true;
        }
    char *end;
    f->limit = strtod(text, &end);
    f->kind = *end == '%' ? VALIDATE_PERCENT : VALIDATE_ABSOLUTE;
    bool number = end != text && isfinite(f->limit) && f->limit >= 0;
    end += *end == '%';
    f->disputed = strcmp(end, " disputed") == 0;
    return number && (!*end || (f->disputed && strcmp(f->note, "-") != 0));
}

static int read_figure(validate_figure *f, dsc_table *t, size_t i, const size_t column[INPUTS],
                       const char *path, dsc_error *err)
{
    const dsc_cell *tolerance = dsc_table_at(t, i, column[TOLERANCE]);
    *f = (validate_figure){
        .source = dsc_table_at(t, i, column[SOURCE])->text,
        .where = dsc_table_at(t, i, column[CASE])->text,
        .quantity = dsc_table_at(t, i, column[QUANTITY])->text,
        .at = dsc_table_real(t, i, column[AT]),
        .published = dsc_table_real(t, i, column[PUBLISHED]),
        .note = dsc_table_at(t, i, column[NOTE])->text,
        .predicted = NAN,
    };
    if (tolerance->type == DSC_CELL_TEXT) {
        f->tolerance = tolerance->text;
    } else { // all of the column are numbers
        void *mem;
        int rc = dsc_arena_alloc(&t->arena, &mem, DSC_NUMBER_TEXT, 1, err);
        if (rc)
            return rc;
        dsc_number_text(dsc_table_real(t, i, column[TOLERANCE]), mem);
        f->tolerance = mem;
    }
    if (!isfinite(f->published))
        return dsc_fail(err, DSC_EINPUT, "%s: figure %zu is not finite", path, i + 1);
    if (!parse_tolerance(f))
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: figure %zu: tolerance '%.40s' is not given, shown, order, least, X, X%% "
            "or, with a note, X%% disputed",
            path, i + 1, f->tolerance);
    return DSC_OK;
}

int validate_read(validate_row *row, dsc_table *t, const char *name, dsc_error *err)
{
    size_t column[INPUTS];
    void *figures;
    row->count = 0;
    int rc = dsc_table_read(t, row->path, err);
    if (!rc && !t->rows)
        rc = dsc_fail(err, DSC_EINPUT, "%s: there are no figures", row->path);
    if (!rc)
        rc = find_columns(t, row->path, column, err);
    if (!rc && !dsc_table_get_comment(t, "source"))
        rc = dsc_fail(err, DSC_EINPUT, "%s: no comment '# source: ...' says where %s is from",
                      row->path, name);
    if (!rc)
        rc = dsc_alloc(&figures, t->rows, sizeof *row->figure, err);
    if (rc)
        return rc;
    row->figure = figures;
    for (size_t i = 0; i < t->rows && !rc; i++)
        rc = read_figure(&row->figure[i], t, i, column, row->path, err);
    row->count = t->rows;
    return rc;
}

int validate_given(const validate_row *row, const char *where, const char *quantity, double at,
                   double *value, dsc_error *err)
{
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *f = &row->figure[i];
        if (f->kind == VALIDATE_GIVEN && strcmp(f->where, where) == 0 &&
            strcmp(f->quantity, quantity) == 0 && (isnan(at) || f->at == at)) {
            *value = f->published;
            return DSC_OK;
        }
    }
    char place[DSC_NUMBER_TEXT + 4] = "";
    if (!isnan(at)) {
        char number[DSC_NUMBER_TEXT];
        dsc_number_text(at, number);
        snprintf(place, sizeof place, " at %s", number);
    }
    return dsc_fail(err, DSC_EINPUT, "%s: '%.60s' has no given '%s'%s", row->path, where, quantity,
                    place);
}

// --- judging ----------------------------------------------------------------------------------

// Whether the figures of f's case that are compared by their order stand to f as published.
static bool in_order(const validate_row *row, const validate_figure *f)
{
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *g = &row->figure[i];
        if (g->kind != VALIDATE_ORDER || strcmp(g->where, f->where) != 0)
            continue;
        int published = (f->published > g->published) - (f->published < g->published);
        int predicted = (f->predicted > g->predicted) - (f->predicted < g->predicted);
        if (published != predicted)
            return false;
    }
    return true;
}

static const char *judge(const validate_row *row, const validate_figure *f)
{
    // What is said of a number to 6 digits is not refused for its rounding in binary.
    const double rounding = 1e-12 * fmax(1, fabs(f->published));
    double error = fabs(f->predicted - f->published);
    bool within = false;
    switch (f->kind) {
    case VALIDATE_GIVEN:
    case VALIDATE_SHOWN: return "shown";
    case VALIDATE_ORDER: within = in_order(row, f); break;
    case VALIDATE_LEAST: within = f->predicted <= f->published + rounding; break;
    case VALIDATE_ABSOLUTE: within = error <= f->limit + rounding; break;
    case VALIDATE_PERCENT: within = error <= f->limit / 100 * fabs(f->published) + rounding; break;
    }
    return within ? "pass" : f->disputed ? "disputed" : "fail";
}

int validate_report(dsc_table *t, const char *name, const validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < row->count && !rc; i++) {
        const validate_figure *f = &row->figure[i];
        if (f->kind == VALIDATE_GIVEN)
            continue;
        if (isnan(f->predicted))
            return dsc_fail(err, DSC_EINPUT, "%s: figure %zu: nothing predicts '%.60s' of '%.60s'",
                            row->path, i + 1, f->quantity, f->where);
        double error = f->kind == VALIDATE_ORDER ? (double)NAN : f->predicted - f->published;
        dsc_cell cell[] = {
            {.type = DSC_CELL_TEXT, .text = name},
            {.type = DSC_CELL_TEXT, .text = f->source},
            {.type = DSC_CELL_TEXT, .text = f->where},
            {.type = DSC_CELL_TEXT, .text = f->quantity},
            {.type = DSC_CELL_REAL, .r = f->at},
            {.type = DSC_CELL_REAL, .r = f->published},
            {.type = DSC_CELL_REAL, .r = f->predicted},
            {.type = DSC_CELL_REAL, .r = error},
            {.type = DSC_CELL_REAL, .r = 100 * error / fabs(f->published)},
            {.type = DSC_CELL_TEXT, .text = f->tolerance},
            {.type = DSC_CELL_TEXT, .text = judge(row, f)},
            {.type = DSC_CELL_TEXT, .text = f->note},
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

int validate_report_skipped(dsc_table *t, const char *name, const char *why, dsc_error *err)
{
    dsc_cell cell[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++)
        cell[c] = (dsc_cell){.type = validate_columns[c].type, .r = NAN, .text = "-"};
    cell[0].text = name;
    cell[COLUMNS - 2].text = "skipped";
    cell[COLUMNS - 1].text = why;
    return dsc_table_add_row(t, cell, err);
}

// SPDX-License-Identifier: Apache-2.0
// Reads tables of published figures, runs their predictions, and judges each figure by its
// tolerance.
#include "cli/result.h"
#include "cli/validate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const dsc_column validate_columns[VALIDATE_COLUMNS] = {
    {"row", DSC_CELL_TEXT, "name of the set of published figures, as in the list of rows"},
    {"source", DSC_CELL_TEXT, "table, figure or theorem of the publication"},
    {"case", DSC_CELL_TEXT, "models, task or distributions that the figure is for"},
    {"quantity", DSC_CELL_TEXT, "name of the compared quantity"},
    {"at", DSC_CELL_REAL, "setting: draft length, window or number of drafts; nan: none"},
    {"published", DSC_CELL_REAL, "published value"},
    {"predicted", DSC_CELL_REAL, "value predicted by theory or simulation; nan: skipped"},
    {"error", DSC_CELL_REAL, "predicted - published; nan where only the order is compared"},
    {"error_percent", DSC_CELL_REAL, "error in percent of the published value"},
    {"tolerance", DSC_CELL_TEXT, "largest |error|, or largest |error_percent| with a %; order: "
                                 "predictions are ordered as the published figures of the case; "
                                 "least: predicted is a lower bound; shown: not judged"},
    {"kind", DSC_CELL_TEXT, "what it means that the figure is predicted; see Kinds"},
    {"witness", DSC_CELL_TEXT, "quantity that predicts the same figure in another way; -: none"},
    {"verdict", DSC_CELL_TEXT, "pass, holds (a lower bound), fail, shown, skipped, or disputed: "
                               "out of tolerance, and the witness is out on the same side, so the "
                               "source contradicts its own figures"},
    {"note", DSC_CELL_TEXT, "remark about the figure; -: none"},
};
const dsc_column validate_kinds[VALIDATE_KINDS] = {
    {"prediction", DSC_CELL_TEXT, "a measured speed, acceptance length or best setting"},
    {"replay", DSC_CELL_TEXT, "counts of published logs or data, replayed"},
    {"formula", DSC_CELL_TEXT, "value of a closed form"},
    {"identity", DSC_CELL_TEXT, "recomputed from the same numbers, or equal by definition"},
    {"order", DSC_CELL_TEXT, "order of methods; their values are not compared"},
    {"bound", DSC_CELL_TEXT, "lower bound of a measurement"},
};
// clang-format on

// --- reading ----------------------------------------------------------------------------------

enum { SOURCE, CASE, QUANTITY, AT, PUBLISHED, TOLERANCE, KIND, WITNESS, NOTE, INPUTS };
static const char *const inputs[INPUTS] = {"source",    "case", "quantity", "at",  "published",
                                           "tolerance", "kind", "witness",  "note"};

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

// Parses given, shown, order, least, NUMBER or NUMBER%.
static bool parse_tolerance(validate_figure *f)
{
    static const struct {
        const char *word;
        validate_rule rule;
    } words[] = {{"given", VALIDATE_GIVEN},
                 {"shown", VALIDATE_SHOWN},
                 {"order", VALIDATE_ORDER},
                 {"least", VALIDATE_LEAST}};
    const char *text = f->tolerance;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strcmp(text, words[w].word) == 0) {
            f->rule = words[w].rule;
            return true;
        }
    char *end;
    f->limit = strtod(text, &end);
    f->rule = *end == '%' ? VALIDATE_PERCENT : VALIDATE_ABSOLUTE;
    bool number = end != text && isfinite(f->limit) && f->limit >= 0;
    return number && !end[*end == '%'];
}

// Parses the kind. A given figure has none; order and bound belong to their tolerances.
static bool parse_kind(validate_figure *f, const char *text)
{
    int k = 0;
    while (k < VALIDATE_KINDS && strcmp(text, validate_kinds[k].name) != 0)
        k++;
    f->kind = (validate_kind)k;
    if (k == VALIDATE_NO_KIND)
        return f->rule == VALIDATE_GIVEN && strcmp(text, "-") == 0;
    return f->rule != VALIDATE_GIVEN && (f->rule == VALIDATE_ORDER) == (k == VALIDATE_IN_ORDER) &&
           (f->rule == VALIDATE_LEAST) == (k == VALIDATE_BOUND);
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
        .witness = dsc_table_at(t, i, column[WITNESS])->text,
        .note = dsc_table_at(t, i, column[NOTE])->text,
        .predicted = NAN,
    };
    if (tolerance->type == DSC_CELL_TEXT) {
        f->tolerance = tolerance->text;
    } else { // every tolerance in the column is a number
        char *text;
        int rc = dsc_arena_new(&t->arena, &text, DSC_NUMBER_TEXT, err);
        if (rc)
            return rc;
        dsc_number_text(dsc_table_real(t, i, column[TOLERANCE]), text);
        f->tolerance = text;
    }
    if (!isfinite(f->published))
        return dsc_fail(err, DSC_EINPUT, "%s: figure %zu is not finite", path, i + 1);
    if (!parse_tolerance(f))
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: figure %zu: tolerance '%.40s' is not given, shown, order, least, X or X%%", path,
            i + 1, f->tolerance);
    const char *kind = dsc_table_at(t, i, column[KIND])->text;
    if (!parse_kind(f, kind))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: figure %zu: kind '%.40s' with tolerance '%.40s': a figure that is not "
                        "given is a prediction, replay, formula or identity; order and least are "
                        "order and bound",
                        path, i + 1, kind, f->tolerance);
    return DSC_OK;
}

// The figure that predicts f in another way, or NULL.
static const validate_figure *find_witness(const validate_row *row, const validate_figure *f)
{
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *g = &row->figure[i];
        const bool same_place = g->at == f->at || (isnan(g->at) && isnan(f->at));
        if (validate_is(g, f->witness) && strcmp(g->where, f->where) == 0 && same_place)
            return g;
    }
    return NULL;
}

int validate_read(validate_row *row, dsc_table *t, const char *name, dsc_error *err)
{
    size_t column[INPUTS];
    row->count = 0;
    int rc = dsc_table_read(t, row->path, err);
    if (!rc && !t->rows)
        rc = dsc_fail(err, DSC_EINPUT, "%s: there are no figures", row->path);
    if (!rc)
        rc = find_columns(t, row->path, column, err);
    if (!rc && !dsc_table_get_comment(t, "source"))
        rc = dsc_fail(err, DSC_EINPUT, "%s: the comment '# source: ...' of %s is missing",
                      row->path, name);
    if (!rc)
        rc = dsc_new(&row->figure, t->rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < t->rows && !rc; i++)
        rc = read_figure(&row->figure[i], t, i, column, row->path, err);
    row->count = rc ? 0 : t->rows;
    for (size_t i = 0; i < row->count && !rc; i++)
        if (strcmp(row->figure[i].witness, "-") != 0 && !find_witness(row, &row->figure[i]))
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s: figure %zu: the witness '%.60s' is not a figure of "
                          "its case and setting",
                          row->path, i + 1, row->figure[i].witness);
    return rc;
}

int validate_given(const validate_row *row, const char *where, const char *quantity, double at,
                   double *value, dsc_error *err)
{
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *f = &row->figure[i];
        if (f->rule == VALIDATE_GIVEN && strcmp(f->where, where) == 0 &&
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

// --- predicting ------------------------------------------------------------------------------

int validate_predict_row(const validate_row_type *type, validate_row *row, dsc_error *err)
{
    int rc = dsc_alloc(&row->state, 1, type->state_size, err);
    if (rc)
        return rc;
    if (type->begin)
        rc = type->begin(row->state, row, err);
    for (size_t i = 0; i < row->count && !rc; i++)
        if (row->figure[i].rule != VALIDATE_GIVEN)
            rc = type->predict(&row->figure[i], row, err);
    if (type->end)
        type->end(row->state);
    free(row->state);
    return rc;
}

// --- judging ----------------------------------------------------------------------------------

// Returns whether the predictions of f's case that are compared by order have the same order
// relative to f as the published ones.
static bool in_order(const validate_row *row, const validate_figure *f)
{
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *g = &row->figure[i];
        if (g->rule != VALIDATE_ORDER || strcmp(g->where, f->where) != 0)
            continue;
        int published = (f->published > g->published) - (f->published < g->published);
        int predicted = (f->predicted > g->predicted) - (f->predicted < g->predicted);
        if (published != predicted)
            return false;
    }
    return true;
}

// The one rule of disputes. A figure that is out of tolerance is disputed if its witness, which
// predicts it from the source's own figures by another calculation or at the other end of their
// rounding, is out on the same side: then no reading of the source's own figures gives this one.
static bool is_disputed(const validate_row *row, const validate_figure *f)
{
    const validate_figure *g = find_witness(row, f);
    return g && (f->predicted - f->published) * (g->predicted - f->published) > 0;
}

static const char *judge(const validate_row *row, const validate_figure *f)
{
    // A decimal number passes a tolerance that it meets, whatever its rounding to binary.
    const double rounding = 1e-12 * fmax(1, fabs(f->published));
    double error = fabs(f->predicted - f->published);
    bool within = false;
    switch (f->rule) {
    case VALIDATE_GIVEN:
    case VALIDATE_SHOWN: return "shown";
    case VALIDATE_ORDER: within = in_order(row, f); break;
    case VALIDATE_LEAST: within = f->predicted <= f->published + rounding; break;
    case VALIDATE_ABSOLUTE: within = error <= f->limit + rounding; break;
    case VALIDATE_PERCENT: within = error <= f->limit / 100 * fabs(f->published) + rounding; break;
    }
    return within                ? f->rule == VALIDATE_LEAST ? "holds" : "pass"
           : is_disputed(row, f) ? "disputed"
                                 : "fail";
}

int validate_report(dsc_table *t, const char *name, const validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < row->count && !rc; i++) {
        const validate_figure *f = &row->figure[i];
        if (f->rule == VALIDATE_GIVEN)
            continue;
        if (isnan(f->predicted))
            return dsc_fail(err, DSC_EINPUT,
                            "%s: figure %zu: there is no prediction of '%.60s' for '%.60s'",
                            row->path, i + 1, f->quantity, f->where);
        double error = f->rule == VALIDATE_ORDER ? (double)NAN : f->predicted - f->published;
        const dsc_cell cell[] = {
            cli_text(name),
            cli_text(f->source),
            cli_text(f->where),
            cli_text(f->quantity),
            cli_real(f->at),
            cli_real(f->published),
            cli_real(f->predicted),
            cli_real(error),
            cli_real(100 * error / fabs(f->published)),
            cli_text(f->tolerance),
            cli_text(validate_kinds[f->kind].name),
            cli_text(f->witness),
            cli_text(judge(row, f)),
            cli_text(f->note),
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

int validate_report_skipped(dsc_table *t, const char *name, const char *why, dsc_error *err)
{
    dsc_cell cell[VALIDATE_COLUMNS];
    for (size_t c = 0; c < VALIDATE_COLUMNS; c++)
        cell[c] = (dsc_cell){.type = validate_columns[c].type, .r = NAN, .text = "-"};
    cell[0].text = name;
    cell[VALIDATE_COLUMNS - 2].text = "skipped";
    cell[VALIDATE_COLUMNS - 1].text = why;
    return dsc_table_add_row(t, cell, err);
}

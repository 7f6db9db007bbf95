// SPDX-License-Identifier: Apache-2.0
// Draws the steps of a server as `draftscope live profile --schedule` ran them: measured against
// predicted milliseconds of the target's pass and of the draft model's passes, one point per step,
// by what the step computes. It is the figure predicted-vs-measured of a table made here.
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

static const char *const quantities[] = {"target_pass_ms", "draft_passes_ms", NULL};

// What the steps of a server are judged by in sum (cli/validate/validate_steps.c), drawn as a band.
static const char tolerance[] = "10 %";

static const char *kind_of(const dsc_table *t, size_t row)
{
    const bool decode = dsc_number_at(t, row, "decode_tokens") > 0;
    const bool prefill = dsc_number_at(t, row, "prefill_tokens") > 0;
    return decode && prefill ? "prefill and decode" : decode ? "decode" : "prefill";
}

static void add_check(dsc_plot *p, size_t row, int draft)
{
    static const char *const column[2][2] = {{"predicted_target_s", "measured_target_s"},
                                             {"predicted_draft_s", "measured_draft_s"}};
    const dsc_table *t = p->table;
    const double predicted = dsc_number_at(t, row, column[draft][0]);
    const double measured = dsc_number_at(t, row, column[draft][1]);
    const dsc_cell cell[] = {dsc_cell_text(kind_of(t, row)),
                             dsc_cell_text(""),
                             dsc_cell_text(dsc_text(p, "step %.0f", dsc_number_at(t, row, "step"))),
                             dsc_cell_text(quantities[draft]),
                             dsc_cell_real(1e3 * predicted),
                             dsc_cell_real(1e3 * measured),
                             dsc_cell_real(NAN),
                             dsc_cell_text(tolerance),
                             dsc_cell_text("shown")};
    if (!p->rc && (!draft || measured > 0))
        p->rc = dsc_table_add_row(&p->made, cell, p->err);
}

static void draw(dsc_plot *p)
{
    static const dsc_column columns[] = {
        {"method", DSC_CELL_TEXT, NULL},     {"rule", DSC_CELL_TEXT, NULL},
        {"parameters", DSC_CELL_TEXT, NULL}, {"quantity", DSC_CELL_TEXT, NULL},
        {"predicted", DSC_CELL_REAL, NULL},  {"measured", DSC_CELL_REAL, NULL},
        {"se", DSC_CELL_REAL, NULL},         {"tolerance", DSC_CELL_TEXT, NULL},
        {"verdict", DSC_CELL_TEXT, NULL},
    };
    if (!p->rc)
        p->rc = dsc_table_add_columns(&p->made, columns, sizeof columns / sizeof *columns, p->err);
    for (int draft = 0; draft < 2; draft++)
        for (size_t r = 0; r < p->table->rows && !p->rc; r++)
            add_check(p, r, draft);
    p->table = &p->made;
    p->spec = quantities;
    dsc_draw_predicted(p);
}

const dsc_figure_type dsc_figure_served_steps = {
    .name = "served-steps",
    .summary = "measured against predicted times of the steps of a server, one point per step",
    .needs = "step decode_tokens prefill_tokens predicted_target_s measured_target_s "
             "predicted_draft_s measured_draft_s",
    .draw = draw,
};

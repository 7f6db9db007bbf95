// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/grid.h"

#include <stdlib.h>
#include <string.h>

static int read_values(dsc_grid *g, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &g->drafter->option[o];
    g->count[o] = 1;
    g->text[o] = text;
    if (option->kind == DSC_OPTION_TEXT)
        return DSC_OK;
    if (option->kind == DSC_OPTION_REAL)
        return dsc_option_reals(option, text, &g->real[o], &g->count[o], err);
    return dsc_option_list(option, text, &g->value[o], &g->count[o], err);
}

int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter, const dsc_verifier_type *rule,
                  const dsc_option_value *text, dsc_error *err)
{
    *g = (dsc_grid){.drafter = drafter, .rule = rule, .total = 1};
    int rc = dsc_grid_words(&g->words, drafter, rule, text, err);
    for (size_t o = 0; o < drafter->option_count && !rc; o++) {
        rc = read_values(g, o, text[o].text, err);
        if (!rc && g->count[o] > DSC_MAX_GRID / g->total)
            rc =
                dsc_fail(err, DSC_EUSAGE, "the grid has more than %d configurations", DSC_MAX_GRID);
        if (!rc)
            g->total *= g->count[o];
    }
    if (rc)
        dsc_grid_fini(g);
    return rc;
}

void dsc_grid_fini(dsc_grid *g)
{
    for (size_t o = 0; o < DSC_MAX_PARAMETERS; o++) {
        free(g->value[o]);
        free(g->real[o]);
    }
    dsc_buffer_fini(&g->words);
    free(g->copy);
    *g = (dsc_grid){0};
}

dsc_config dsc_grid_at(const dsc_grid *g, size_t index)
{
    dsc_config c = {.drafter = g->drafter};
    for (size_t o = g->drafter->option_count; o-- > 0;) {
        size_t i = index % g->count[o];
        c.parameter[o] = g->value[o] ? g->value[o][i] : 0;
        c.real[o] = g->real[o] ? g->real[o][i] : 0;
        c.text[o] = g->text[o];
        index /= g->count[o];
    }
    return c;
}

int dsc_grid_configs(const dsc_grid *g, size_t first, size_t count, dsc_config *config,
                     dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count; c++) {
        config[c] = dsc_grid_at(g, first + c);
        if (!rc)
            rc = dsc_config_prepare(&config[c], err);
    }
    return rc;
}

int dsc_grids_add(dsc_grids *all, dsc_grid *g, dsc_error *err)
{
    void *p = all->grid;
    int rc = DSC_OK;
    if (g->total > DSC_MAX_GRID - all->total)
        rc = dsc_fail(err, DSC_EUSAGE, "the grids have more than %d configurations", DSC_MAX_GRID);
    if (!rc)
        rc = dsc_grow(&p, &all->capacity, all->count + 1, sizeof *all->grid, err);
    all->grid = p;
    if (rc) {
        dsc_grid_fini(g);
        return rc;
    }
    all->total += g->total;
    all->grid[all->count++] = *g;
    *g = (dsc_grid){0};
    return DSC_OK;
}

void dsc_grids_fini(dsc_grids *all)
{
    for (size_t i = 0; i < all->count; i++)
        dsc_grid_fini(&all->grid[i]);
    free(all->grid);
    *all = (dsc_grids){0};
}

const dsc_grid *dsc_grids_find(const dsc_grids *all, size_t index, size_t *first)
{
    const dsc_grid *g = all->grid;
    *first = 0;
    while (index >= *first + g->total)
        *first += g++->total;
    return g;
}

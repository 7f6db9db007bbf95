// SPDX-License-Identifier: Apache-2.0
// The descriptors behind dsc_figures(), one per figure_*.c.
#ifndef DSC_PLOTS_FIGURES_H
#define DSC_PLOTS_FIGURES_H

#include "plots/figure.h"

extern const dsc_figure_type dsc_figure_llma_speedup;
extern const dsc_figure_type dsc_figure_llma_stats;
extern const dsc_figure_type dsc_figure_heatmap;
extern const dsc_figure_type dsc_figure_accept_histogram;

#endif

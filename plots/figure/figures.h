// SPDX-License-Identifier: Apache-2.0
// The descriptors that dsc_figures() lists.
#ifndef DSC_PLOTS_FIGURES_H
#define DSC_PLOTS_FIGURES_H

#include "plots/figure/figure.h"

extern const dsc_figure_type dsc_figure_verdict;
extern const dsc_figure_type dsc_figure_methods;
extern const dsc_figure_type dsc_figure_by;
extern const dsc_figure_type dsc_figure_length;
extern const dsc_figure_type dsc_figure_rules;
extern const dsc_figure_type dsc_figure_batch;
extern const dsc_figure_type dsc_figure_load_latency;
extern const dsc_figure_type dsc_figure_load_throughput;
extern const dsc_figure_type dsc_figure_load_published;
extern const dsc_figure_type dsc_figure_goodput;
extern const dsc_figure_type dsc_figure_occupancy;
extern const dsc_figure_type dsc_figure_policies;
extern const dsc_figure_type dsc_figure_request_order;
extern const dsc_figure_type dsc_figure_llma_speedup;
extern const dsc_figure_type dsc_figure_llma_stats;
extern const dsc_figure_type dsc_figure_heatmap;
extern const dsc_figure_type dsc_figure_accept_histogram;
extern const dsc_figure_type dsc_figure_by_position;
extern const dsc_figure_type dsc_figure_spectr_bernoulli;
extern const dsc_figure_type dsc_figure_spectr_uniform;
extern const dsc_figure_type dsc_figure_accept_vs_k;
extern const dsc_figure_type dsc_figure_speedup_surface;
extern const dsc_figure_type dsc_figure_pearl_window;
extern const dsc_figure_type dsc_figure_tree;
extern const dsc_figure_type dsc_figure_timeline;
extern const dsc_figure_type dsc_figure_cost;
extern const dsc_figure_type dsc_figure_predicted;
extern const dsc_figure_type dsc_figure_served_steps;
extern const dsc_figure_type dsc_figure_errors;
extern const dsc_figure_type dsc_figure_step_times;

#endif

// SPDX-License-Identifier: Apache-2.0
// The style sheet of the HTML report.
#ifndef DSC_PLOTS_REPORT_CSS_H
#define DSC_PLOTS_REPORT_CSS_H

extern const char dsc_report_css[];

#endif

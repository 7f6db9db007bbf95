// SPDX-License-Identifier: Apache-2.0
// The style of the report's page.
#ifndef DSC_PLOTS_REPORT_CSS_H
#define DSC_PLOTS_REPORT_CSS_H

extern const char dsc_report_css[];

#endif

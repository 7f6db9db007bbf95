// SPDX-License-Identifier: Apache-2.0
// gnuplot as a child process: a script in, a picture out.
#ifndef DSC_PLOTS_GNUPLOT_H
#define DSC_PLOTS_GNUPLOT_H

#include "base/memory.h"

// Runs the `gnuplot` of PATH on `script` (NUL-terminated; it must `set terminal` and leave the
// output on stdout) and appends what it draws to *picture, owned by the caller. The user's
// gnuplot settings are not read (--default-settings, no GNUPLOT* or GNUTERM in its environment,
// LC_ALL=C). No signal handler of the caller is touched.
// DSC_EABSENT when there is no gnuplot, or not the terminal; DSC_EIO when it fails: the message
// quotes its first complaint.
int dsc_gnuplot_run(const char *script, dsc_buffer *picture, dsc_error *err);

#endif

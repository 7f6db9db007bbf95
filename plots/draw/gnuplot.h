// SPDX-License-Identifier: Apache-2.0
// Runs gnuplot as a child process: a script in, a picture out.
#ifndef DSC_PLOTS_GNUPLOT_H
#define DSC_PLOTS_GNUPLOT_H

#include "base/memory.h"

// Runs the `gnuplot` of PATH on `script` (NUL-terminated; it must `set terminal` and leave the
// output on stdout) and appends its output to *picture, owned by the caller. The user's gnuplot
// settings are not read (--default-settings, no GNUPLOT* or GNUTERM in its environment, LC_ALL=C).
// The caller's signal handlers are not changed.
// DSC_EABSENT: there is no gnuplot, or it lacks the terminal. DSC_EIO: it failed; the message
// quotes its first error.
int dsc_gnuplot_run(const char *script, dsc_buffer *picture, dsc_error *err);

#endif

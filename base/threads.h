// SPDX-License-Identifier: Apache-2.0
// The threads of a parallel loop: the number of the calling one, and how many there may be. Without
// OpenMP there is one.
#ifndef DSC_BASE_THREADS_H
#define DSC_BASE_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_thread_num(void)
{
    return 0;
}
#endif

enum { DSC_THREADS_MOST = 1024 };

// The number of threads where none is asked for: the processors that this process may use and that
// others leave free now, at least 1. Results do not depend on it.
int dsc_threads_default(void);

// The same from its facts: the processors of the affinity mask, those of the quota (0: none), those
// of the machine, and how many of these others keep busy.
int dsc_threads_choose(int allowed_processors, double quota_processors, int online, double load);

#endif

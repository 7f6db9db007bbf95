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

static inline int omp_get_max_threads(void)
{
    return 1;
}
#endif

#endif

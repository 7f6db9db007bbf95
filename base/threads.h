// SPDX-License-Identifier: Apache-2.0
// The number of a thread in a parallel loop, also where OpenMP is missing.
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

#endif

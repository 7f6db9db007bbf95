// SPDX-License-Identifier: Apache-2.0
// The kernels that fill the histogram of ratios, the fastest first; the first one that this
// processor can run is used (theory/acceptance_kernel.h).
#include "theory/acceptance_kernel.h"

const dsc_rows_kernel *const dsc_rows_kernels[] = {
#ifdef DSC_ROWS_X86
    &dsc_rows_kernel_avx512, &dsc_rows_kernel_avx2,
#endif
    &dsc_rows_kernel_c, NULL};

const dsc_rows_kernel *dsc_rows_kernel_best(void)
{
    const dsc_rows_kernel *const *kernel = dsc_rows_kernels;
    while (!(*kernel)->supported())
        kernel++;
    return *kernel;
}

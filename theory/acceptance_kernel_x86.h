// SPDX-License-Identifier: Apache-2.0
// Internal: what the AVX2 and AVX-512 loops share. Tokens go in blocks: slots and masses are
// computed with wide instructions into the first-level cache, then added one by one. Between the
// two the memory would be idle; what is read later is fetched during the additions.
#ifndef DSC_THEORY_ACCEPTANCE_KERNEL_X86_H
#define DSC_THEORY_ACCEPTANCE_KERNEL_X86_H

#include "theory/acceptance_kernel.h"

#include <immintrin.h>

enum { DSC_ROWS_BLOCK = 128, DSC_ROWS_LINE = 16 }; // tokens

// `token` tokens on. May lie past the end of the row: a prefetch never faults.
__attribute__((always_inline)) static inline void dsc_rows_prefetch(const void *ahead, size_t token)
{
    _mm_prefetch((const char *)((uintptr_t)ahead + token * sizeof(float)), _MM_HINT_T0);
}

// sum[slot[j]] += mass[j] for the block at `first`, in order.
__attribute__((always_inline)) static inline void dsc_rows_scatter(const dsc_mass *mass,
                                                                   const uint16_t *slot,
                                                                   dsc_mass *sum, size_t first,
                                                                   const void *const *ahead)
{
    for (size_t line = 0; line < DSC_ROWS_BLOCK; line += DSC_ROWS_LINE) {
        dsc_rows_prefetch(ahead[0], first + line);
        dsc_rows_prefetch(ahead[1], first + line);
#pragma GCC unroll 16
        for (size_t j = line; j < line + DSC_ROWS_LINE; j++) {
            double *to = &sum[slot[j]].draft;
            _mm_store_pd(to, _mm_add_pd(_mm_load_pd(to), _mm_load_pd(&mass[j].draft)));
        }
    }
}

#endif

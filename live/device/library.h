// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are opened when an operation first needs them. Loading OpenBLAS or cuBLAS
// takes longer than most commands run, and machines without them can run everything that does not
// multiply by them.
#ifndef DSC_LIVE_LIBRARY_H
#define DSC_LIVE_LIBRARY_H

#include "base/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct live_library {
    const char *name;   // "OpenBLAS"
    const char *file;   // its soname, "libopenblas.so.0"
    const char *folder; // where it was when this program was built; "": in a standard folder
    const char *mend;   // how to install it: "install libopenblas0"
} live_library;

// A function of a library, and the address of the pointer that receives it.
typedef struct live_symbol {
    const char *name;
    void *pointer; // to a pointer to a function
} live_symbol;

// Opens a library, first on the loader's path and then in its folder, and sets the pointers. The
// library stays open until the process ends; opening it again is cheap. DSC_EABSENT: it or one of
// the functions is missing.
int live_library_open(const live_library *library, const live_symbol *symbol, size_t symbols,
                      dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

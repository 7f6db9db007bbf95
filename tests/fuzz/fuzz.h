// SPDX-License-Identifier: Apache-2.0
// Helpers of the fuzz targets. A target is one function over bytes: libFuzzer calls it with inputs
// of its own making, replay.c with those of corpus/NAME/.
#ifndef DSC_TESTS_FUZZ_H
#define DSC_TESTS_FUZZ_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef FUZZ_LIBFUZZER
#define FUZZ_NAME(name) LLVMFuzzerTestOneInput
#else
#define FUZZ_NAME(name) fuzz_##name
#endif
// Begins the target `name`. It returns 0, and stops the process on a defect (fuzz_require).
#define FUZZ_TARGET(name)                                                                          \
    int FUZZ_NAME(name)(const uint8_t *data, size_t size);                                         \
    int FUZZ_NAME(name)(const uint8_t *data, size_t size)

// A path in a folder of this process, in memory where the system has /dev/shm; the folder is
// removed at the exit. Eight can be held at a time.
const char *fuzz_path(const char *name);
// Writes such a file; returns its path.
const char *fuzz_file(const char *name, const void *bytes, size_t size);

// Reports and aborts unless a property that every input must have holds.
void fuzz_require(bool holds, const char *what, const dsc_error *err);
// A failure must be an error of the input (or a limit of memory) with a message of one sentence.
void fuzz_refused(int rc, const dsc_error *err);

// --- an input that is made of parts ------------------------------------------------------------

typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
} fuzz_bytes;

// Takes one byte; 0 at the end.
uint8_t fuzz_byte(fuzz_bytes *in);
// Takes what is before the first `mark`, and the mark; all that is left when there is none.
fuzz_bytes fuzz_before(fuzz_bytes *in, uint8_t mark);

// Keeps the compiler from leaving a read out.
void fuzz_use(const void *bytes, size_t size);

#endif

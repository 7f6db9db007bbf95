// SPDX-License-Identifier: Apache-2.0
// Structure-aware mutators. Most changes of bytes break a file in its first lines, and the checks
// after these never run. These mutators change a file in terms of its format: cells, rows and
// comments of tables, values and fields of JSON, extents of safetensors. Half of the changes are
// still libFuzzer's own, or replay.c's changes of bytes, because breaking a file counts as well.
#ifndef DSC_TESTS_MUTATE_H
#define DSC_TESTS_MUTATE_H

#include "base/memory.h"
#include "tests/fuzz/fuzz.h"

// Random numbers of one mutation; a seed gives the same mutation again.
typedef struct fuzz_random {
    uint64_t state;
} fuzz_random;

uint32_t fuzz_below(fuzz_random *r, size_t limit); // in [0, limit); limit >= 1
// A number at a limit of some type or format, as text, or a word that numeric parsers meet.
const char *fuzz_number(fuzz_random *r);

// Appends a changed part of an input to *out.
typedef void (*fuzz_change)(fuzz_random *r, fuzz_bytes part, dsc_buffer *out);
void fuzz_change_bytes(fuzz_random *r, fuzz_bytes part, dsc_buffer *out);
void fuzz_change_json(fuzz_random *r, fuzz_bytes part, dsc_buffer *out); // one value
void fuzz_change_safetensors(fuzz_random *r, fuzz_bytes part, dsc_buffer *out);
void fuzz_change_table(fuzz_random *r, fuzz_bytes part, dsc_buffer *out); // lines of TSV or lists
void fuzz_change_lines(fuzz_random *r, fuzz_bytes part, dsc_buffer *out); // the same, or JSON lines

// For these: appends; an input that does not fit into memory ends the process.
void fuzz_put(dsc_buffer *out, const void *bytes, size_t size);

// How an input is made: `head` bytes of choices, then up to `parts` parts with the byte `mark`
// between them. Part i is changed by change[i]; the last one holds for all further parts.
typedef struct fuzz_format {
    size_t head, parts;
    uint8_t mark;
    fuzz_change change[3];
} fuzz_format;

// Appends the input with one part changed to *out, which is empty.
void fuzz_mutate(const fuzz_format *format, fuzz_bytes input, uint32_t seed, dsc_buffer *out);

// Where the harness is libFuzzer, the format's mutator is its custom mutator; replay.c finds the
// format by the target's name.
#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t fuzz_mutate_in_place(const fuzz_format *format, uint8_t *data, size_t size, size_t most,
                            uint32_t seed);
#define FUZZ_FORMAT(name, ...)                                                                     \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);        \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)         \
    {                                                                                              \
        static const fuzz_format format = {__VA_ARGS__};                                           \
        return seed % 2 ? LLVMFuzzerMutate(data, size, most)                                       \
                        : fuzz_mutate_in_place(&format, data, size, most, seed);                   \
    }
#else
#define FUZZ_FORMAT(name, ...)                                                                     \
    extern const fuzz_format fuzz_format_##name;                                                   \
    const fuzz_format fuzz_format_##name = {__VA_ARGS__};
#endif

#endif

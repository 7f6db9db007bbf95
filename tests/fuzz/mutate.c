// SPDX-License-Identifier: Apache-2.0
// What the structure-aware mutators share: random numbers, numbers at limits, changes of bytes, and
// inputs that are made of parts.
#include "tests/fuzz/mutate.h"

#include <stdlib.h>
#include <string.h>

uint32_t fuzz_below(fuzz_random *r, size_t limit)
{
    r->state += 0x9e3779b97f4a7c15; // SplitMix64 (Steele, Lea, Flood 2014)
    uint64_t z = r->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) % limit);
}

const char *fuzz_number(fuzz_random *r)
{
    static const char *const numbers[] = {
        "0",          "1",          "-1",         "2",
        "7",          "64",         "65",         "1024",
        "1025",       "65536",      "2147483647", "2147483648",
        "4294967295", "4294967296", "1000000",    "9007199254740993",
        "-0",         "0.5",        "1.5",        "9223372036854775807",
        "1e-320",     "1e308",      "-1e308",     "-9223372036854775808",
        "0.9999999",  "3e-5",       "1e300",      "18446744073709551616",
    };
    return numbers[fuzz_below(r, sizeof numbers / sizeof *numbers)];
}

void fuzz_put(dsc_buffer *out, const void *bytes, size_t size)
{
    if (size && dsc_buffer_append(out, bytes, size, NULL))
        exit(99);
}

void fuzz_change_bytes(fuzz_random *r, fuzz_bytes part, dsc_buffer *out)
{
    size_t at = fuzz_below(r, part.size + 1), length = fuzz_below(r, 9);
    length = length < part.size - at ? length : part.size - at;
    size_t from = fuzz_below(r, part.size + 1), copied = fuzz_below(r, 33);
    copied = copied < part.size - from ? copied : part.size - from;
    const unsigned char byte = (unsigned char)fuzz_below(r, 256);
    fuzz_put(out, part.data, at);
    switch (fuzz_below(r, 4)) {
    case 0: // other bytes
        for (size_t i = 0; i < length; i++) {
            const unsigned char changed = (unsigned char)(part.data[at + i] ^ 1 << byte % 8);
            fuzz_put(out, &changed, 1);
        }
        break;
    case 1: // bytes from another place
        fuzz_put(out, part.data + from, copied);
        length = 0;
        break;
    case 2: // a new byte
        fuzz_put(out, &byte, 1);
        break;
    default: // fewer bytes
        break;
    }
    fuzz_put(out, part.data + at + length, part.size - at - length);
}

void fuzz_mutate(const fuzz_format *format, fuzz_bytes input, uint32_t seed, dsc_buffer *out)
{
    enum { CHANGES = sizeof format->change / sizeof *format->change };
    fuzz_random r = {seed};
    fuzz_change change = fuzz_change_bytes;
    const size_t chosen = fuzz_below(&r, format->parts);
    for (size_t i = 0; i < format->head; i++) {
        const uint8_t byte = fuzz_byte(&input), other = (uint8_t)fuzz_below(&r, 16);
        fuzz_put(out, fuzz_below(&r, 8) ? &byte : &other, 1);
    }
    for (size_t i = 0; i < format->parts; i++) {
        const bool last =
            i + 1 == format->parts || !input.size || !memchr(input.data, format->mark, input.size);
        const fuzz_bytes part = last ? input : fuzz_before(&input, format->mark);
        if (i < CHANGES && format->change[i])
            change = format->change[i];
        if (i == chosen || (last && i < chosen))
            change(&r, part, out);
        else
            fuzz_put(out, part.data, part.size);
        if (last)
            return;
        fuzz_put(out, &format->mark, 1);
    }
}

#ifdef FUZZ_LIBFUZZER
size_t fuzz_mutate_in_place(const fuzz_format *format, uint8_t *data, size_t size, size_t most,
                            uint32_t seed)
{
    dsc_buffer out = {0};
    fuzz_mutate(format, (fuzz_bytes){data, size}, seed, &out);
    size_t length = out.length < most ? out.length : most;
    if (length)
        memcpy(data, out.data, length);
    dsc_buffer_fini(&out);
    return length ? length : LLVMFuzzerMutate(data, size, most);
}
#endif

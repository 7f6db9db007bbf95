// SPDX-License-Identifier: Apache-2.0
// Lines of plain, gzip and zstd files. Input: the file.
#include "tests/fuzz/fuzz.h"
#include "traces/files/input.h"

#include <string.h>

static void check_line(const dsc_line *line, int64_t before)
{
    fuzz_require(line->number > before, "line numbers rise", NULL);
    fuzz_require(line->length > 0 && !memchr(line->bytes, '\n', line->length) &&
                     !memchr(line->bytes, '\0', line->length),
                 "a line is not empty, and one line", NULL);
    fuzz_use(line->bytes, line->length);
}

// Checks that the hash by the reader is that of the file.
static void check_hash(const dsc_input *in, const uint8_t *data, size_t size)
{
    char is[DSC_SHA256_HEX], wanted[DSC_SHA256_HEX];
    dsc_sha256 s;
    dsc_sha256_init(&s);
    dsc_sha256_update(&s, data, size);
    dsc_sha256_final(&s, wanted);
    dsc_input_sha256(in, is);
    fuzz_require(strcmp(is, wanted) == 0 && dsc_input_position(in) == (int64_t)size,
                 "all of the file was hashed", NULL);
}

FUZZ_TARGET(input)
{
    dsc_input *in;
    dsc_line line = {.bytes = ""};
    dsc_error err = {0};
    int64_t number = 0;
    int rc = dsc_input_open(&in, fuzz_file("in.jsonl", data, size), &err);
    fuzz_require(rc == DSC_OK, "a file can be opened", &err);
    while (line.bytes && !dsc_input_broken(in)) {
        rc = dsc_input_line(in, &line, &err);
        if (rc) {
            fuzz_refused(rc, &err);
            line.bytes = "";
        } else if (line.bytes) {
            check_line(&line, number);
            number = line.number;
        }
    }
    if (dsc_input_broken(in))
        fuzz_require(dsc_input_line(in, &line, &err) != DSC_OK, "broken stays broken", NULL);
    else
        check_hash(in, data, size);
    dsc_input_close(in);
    return 0;
}

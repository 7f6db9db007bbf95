// SPDX-License-Identifier: Apache-2.0
// Tables of counts that `sweep --shard` writes, as `merge` reads them. Input: files with 0xff
// between them.
#include "sim/sweep/merge.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

FUZZ_FORMAT(shard, .parts = 3, .mark = 0xff, .change = {fuzz_change_table})

FUZZ_TARGET(shard)
{
    enum { FILES = 3 };
    fuzz_bytes in = {data, size};
    const char *path[FILES];
    size_t count = 0;
    // A grid may be huge in few bytes, and is then worked through.
    if (size > 1 << 16 ||
        (!memmem(data, size, "method=", 7) && !memmem(data, size, "rows_left", 9)))
        return 0;
    do {
        char name[8];
        fuzz_bytes file = fuzz_before(&in, 0xff);
        snprintf(name, sizeof name, "%zu", count);
        path[count++] = fuzz_file(name, file.data, file.size);
    } while (in.size && count < FILES);
    dsc_error err = {0};
    const char *out = fuzz_path("merged");
    const dsc_merge_options options = {.version = "0.1.0", .force = true};
    int rc = dsc_merge(path, count, out, &options, &err);
    if (rc)
        fuzz_refused(rc, &err);
    fuzz_require(rc ? access(out, F_OK) != 0 : access(out, F_OK) == 0, "a result or none", &err);
    unlink(out);
    return 0;
}

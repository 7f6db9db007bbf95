// SPDX-License-Identifier: Apache-2.0
// safetensors. Input: the file.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "traces/files/safetensors.h"

FUZZ_FORMAT(safetensors, .parts = 1, .change = {fuzz_change_safetensors})

FUZZ_TARGET(safetensors)
{
    dsc_safetensors *s;
    dsc_error err = {0};
    int rc = dsc_safetensors_open(&s, fuzz_file("a.safetensors", data, size), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    for (size_t i = 0; i < dsc_safetensors_count(s); i++) {
        const dsc_tensor *t = dsc_safetensors_at(s, i);
        size_t bytes = (size_t)t->count * dsc_dtype_bytes(t->dtype);
        fuzz_require(t->end - t->begin == bytes && t->end <= size,
                     "the extent is that of the shape", NULL);
        fuzz_require((uintptr_t)t->data % dsc_dtype_bytes(t->dtype) == 0, "data are aligned", NULL);
        fuzz_require(dsc_safetensors_find(s, t->name) == t, "a tensor is found by its name", NULL);
        fuzz_use(t->data, bytes);
    }
    dsc_safetensors_close(s);
    return 0;
}

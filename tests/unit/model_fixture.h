// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of languages and synthetic traces: a scratch folder, languages by name.
#ifndef DSC_TESTS_MODEL_FIXTURE_H
#define DSC_TESTS_MODEL_FIXTURE_H

#include "tests/scratch.h"

#include "sim/model/model_spec.h"

static inline dsc_language *make(const char *spec, dsc_model_side side)
{
    dsc_language *l;
    dsc_error err;
    dsc_tokenizer *bytes;
    assert_ok(dsc_tokenizer_load(&bytes, "bytes", &err), err);
    assert_ok(dsc_language_make(&l, spec, side, bytes, &err), err);
    dsc_tokenizer_free(bytes);
    return l;
}

// The language sets every field that is read.
static inline dsc_dist dist_at(const dsc_language *l, const int32_t *recent, size_t count)
{
    dsc_dist d;
    memset(&d, 0x55, sizeof d);
    l->type->dist(l, &(dsc_place){recent, count, (int64_t)count, 0, 0}, &d);
    assert_null(d.logits);
    assert_true(d.unlisted == 0);
    return d;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of languages and synthetic traces: a scratch folder, languages by name.
#ifndef DSC_TESTS_MODEL_FIXTURE_H
#define DSC_TESTS_MODEL_FIXTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // nftw
#endif

#include "tests/close.h"

#include "sim/model/model_spec.h"

#include <ftw.h>
#include <string.h>

static char scratch[200]; // made anew for every test that wants it, removed after it

static inline int make_scratch(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/dsc-test-XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static inline int remove_scratch(void **state)
{
    (void)state;
    return nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// A path in the scratch folder; four can be held at a time.
static inline const char *in_scratch(const char *name)
{
    static char path[4][400];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", scratch, name);
    return p;
}

static inline void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

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

static inline dsc_dist dist_at(const dsc_language *l, const int32_t *recent, size_t count)
{
    dsc_dist d;
    l->type->dist(l, &(dsc_place){recent, count, (int64_t)count, 0, 0}, &d);
    return d;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// A scratch folder, made anew for every test or group of tests and removed after it, and its files.
#ifndef DSC_TESTS_SCRATCH_H
#define DSC_TESTS_SCRATCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // nftw
#endif

#include "tests/close.h"

#include <ftw.h>
#include <string.h>

static char scratch[200];

static inline int make_scratch(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/dsc-test-XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline int remove_tree(const char *path)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int remove_scratch(void **state)
{
    (void)state;
    return remove_tree(scratch);
}

// A path in the scratch folder; eight can be held at a time.
static inline const char *in_scratch(const char *name)
{
    static char path[8][400];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", scratch, name);
    return p;
}

static inline void put_file(const char *path, const void *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

// What a call notes, a line each.
static char notes[4096];

static inline void keep_note(void *user, const char *message)
{
    (void)user;
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", message);
}

static inline void expect_note(const char *wanted)
{
    if (!strstr(notes, wanted))
        fail_msg("no '%s' in '%s'", wanted, notes);
}

#endif

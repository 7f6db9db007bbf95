// SPDX-License-Identifier: Apache-2.0
// The trace writer: what it replaces and what it never touches, what a failure leaves behind, which
// requests it refuses.
#include "tests/unit/trace_fixture.h"

#include <fcntl.h>

static int open_writer(dsc_trace_writer **w, const char *path, bool force, dsc_error *err)
{
    const dsc_trace_info info = sample_info(true, true);
    *err = (dsc_error){0};
    int rc = dsc_trace_writer_open(w, path, &info, force, 0, err);
    if (rc)
        assert_null(*w);
    return rc;
}

// A writer of a.dst that holds one request.
static dsc_trace_writer *begin(bool force)
{
    dsc_error err;
    dsc_trace_writer *w;
    expect_ok(open_writer(&w, in_scratch("a.dst"), force, &err), &err);
    expect_ok(dsc_trace_writer_add(w, &samples[0], &err), &err);
    return w;
}

static int64_t requests_of(const char *name)
{
    dsc_error err = {0};
    dsc_trace *t;
    expect_ok(verify(name, &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch(name), &err), &err);
    int64_t n = dsc_trace_get_info(t)->requests;
    dsc_trace_close(t);
    return n;
}

static bool nothing_beside(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "%s.tmp", name);
    if (exists(path))
        return false;
    snprintf(path, sizeof path, "%s.old", name);
    return !exists(path);
}

// A shard ends where the caller requests it, and none does without a request. Finished shards can
// be read while the writer continues.
static void shards_are_cut_on_request(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    const dsc_trace_info info = sample_info(true, true);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 1 << 20, &err), &err);
    expect_ok(dsc_trace_writer_cut(w, &err), &err);
    for (int i = 0; i < 2; i++) {
        expect_ok(dsc_trace_writer_add(w, &samples[i], &err), &err);
        expect_ok(dsc_trace_writer_cut(w, &err), &err);
        expect_ok(dsc_trace_writer_cut(w, &err), &err);
    }
    assert_in_range(requests_of("a.dst.tmp"), 1, 2); // the second may still be on its way
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_int_equal(requests_of("a.dst"), 2);
    assert_true(exists("a.dst/shard-00001.safetensors"));
    assert_false(exists("a.dst/shard-00002.safetensors"));
}

// --- names and what is there already -------------------------------------------------------------

static void existing_trace(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    write_samples("a.dst", true, true, 1);
    int rc = open_writer(&w, in_scratch("a.dst/"), false, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst exists already (--force replaces it)");
    assert_true(nothing_beside("a.dst"));
    assert_int_equal(requests_of("a.dst"), SAMPLES);
    w = begin(true);
    assert_int_equal(requests_of("a.dst"), SAMPLES); // untouched until the commit
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_int_equal(requests_of("a.dst"), 1);
    assert_false(exists("a.dst/shard-00001.safetensors"));
    assert_true(nothing_beside("a.dst"));
}

static void foreign_targets_are_left_alone(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    write_samples("a.dst", true, true, 0);
    put_file(in_scratch("a.dst/notes.txt"), "x", 1);
    int rc = open_writer(&w, in_scratch("a.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "contains 'notes.txt', which is not part of a trace");
    assert_int_equal(mkdir(in_scratch("b.dst"), 0777), 0);
    rc = open_writer(&w, in_scratch("b.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "no manifest.json");
    put_file(in_scratch("c.dst"), "x", 1);
    rc = open_writer(&w, in_scratch("c.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "not a trace folder");
    write_samples("d.dst", true, true, 0);
    assert_int_equal(symlink("d.dst", in_scratch("link.dst")), 0);
    rc = open_writer(&w, in_scratch("link.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "not a trace folder");
    assert_true(exists("a.dst/notes.txt") && exists("a.dst/manifest.json") && exists("b.dst") &&
                exists("c.dst") && exists("link.dst"));
}

static void names_of_shards_are_known_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool ours;
    } cases[] = {
        {"shard-00000.safetensors", true},
        {"shard-00007.safetensors.tmp", true},
        {"shard-123456.safetensors", true},
        {"manifest.json.tmp", true},
        {"shard-0000.safetensors", false},
        {"shard-0000a.safetensors", false},
        {"shard-00000.safetensor", false},
        {"shard-00000.safetensors.tmp.tmp", false},
        {"shard-00000.safetensors~", false},
        {"Manifest.json", false},
        {"manifest.jsonx", false},
        {".tmp", false},
        {".hidden", false},
        {"shard-.safetensors", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[100];
        dsc_error err = {0};
        dsc_trace_writer *w;
        assert_int_equal(mkdir(in_scratch("f.tmp"), 0777), 0);
        snprintf(path, sizeof path, "f.tmp/%s", cases[i].name);
        put_file(in_scratch(path), "", 0);
        int rc = open_writer(&w, in_scratch("f"), false, &err); // removes what is ours
        if (cases[i].ours)
            expect_ok(rc, &err);
        else
            expect_failure(rc, DSC_EUSAGE, &err, cases[i].name);
        assert_int_equal(exists(path), !cases[i].ours);
        dsc_trace_writer_abort(w);
        unlink(in_scratch(path));
        rmdir(in_scratch("f.tmp"));
    }
}

static void senseless_names(void **state)
{
    (void)state;
    static const char *const names[] = {"", "/", "//", ".", "..", "./", "x/..", "x/."};
    dsc_error err;
    dsc_trace_writer *w;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int rc = open_writer(&w, names[i], true, &err);
        expect_failure(rc, DSC_EUSAGE, &err, "cannot be the name");
    }
    // Any other name is taken as it is, without the slashes behind it.
    expect_ok(open_writer(&w, in_scratch("plain///"), false, &err), &err);
    assert_true(exists("plain.tmp"));
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_int_equal(requests_of("plain"), 0);
}

static void target_that_appears_meanwhile(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w = begin(false);
    assert_int_equal(mkdir(in_scratch("a.dst"), 0777), 0); // rename(2) would replace an empty one
    expect_failure(dsc_trace_writer_commit(w, NULL, &err), DSC_EUSAGE, &err, "exists already");
    assert_true(nothing_beside("a.dst"));
    assert_false(exists("a.dst/manifest.json"));
    assert_int_equal(rmdir(in_scratch("a.dst")), 0);
    write_samples("a.dst", true, true, 0);
    w = begin(true);
    put_file(in_scratch("a.dst/notes.txt"), "x", 1);
    expect_failure(dsc_trace_writer_commit(w, NULL, &err), DSC_EUSAGE, &err, "notes.txt");
    assert_true(exists("a.dst/notes.txt") && exists("a.dst/manifest.json"));
    assert_true(nothing_beside("a.dst"));
}

// --- what a killed run left ----------------------------------------------------------------------

static void stale_temporary(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    assert_int_equal(mkdir(in_scratch("a.dst.tmp"), 0777), 0);
    put_file(in_scratch("a.dst.tmp/shard-00000.safetensors"), "x", 1);
    put_file(in_scratch("a.dst.tmp/shard-00001.safetensors.tmp"), "x", 1);
    put_file(in_scratch("a.dst.tmp/manifest.json.tmp"), "x", 1);
    w = begin(false);
    assert_false(exists("a.dst.tmp/shard-00000.safetensors"));
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_int_equal(requests_of("a.dst"), 1);
    assert_true(nothing_beside("a.dst"));
    // Not ours: a folder with other files, or no folder at all.
    assert_int_equal(mkdir(in_scratch("b.dst.tmp"), 0777), 0);
    put_file(in_scratch("b.dst.tmp/shard-00000.safetensors"), "x", 1);
    put_file(in_scratch("b.dst.tmp/thesis.tex"), "x", 1);
    int rc = open_writer(&w, in_scratch("b.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "thesis.tex");
    assert_true(exists("b.dst.tmp/thesis.tex") && exists("b.dst.tmp/shard-00000.safetensors"));
    put_file(in_scratch("c.dst.tmp"), "x", 1);
    rc = open_writer(&w, in_scratch("c.dst"), true, &err);
    expect_failure(rc, DSC_EIO, &err, "c.dst.tmp");
    assert_true(exists("c.dst.tmp"));
}

static void stale_old(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    write_samples("a.dst.old", true, true, 0);
    w = begin(true); // no a.dst: killed between the two renames. The older trace is kept
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_true(exists("a.dst.old/manifest.json"));
    w = begin(true); // a.dst is there: it takes its place, and goes
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_true(nothing_beside("a.dst"));
    assert_int_equal(requests_of("a.dst"), 1);
    assert_int_equal(mkdir(in_scratch("a.dst.old"), 0777), 0);
    put_file(in_scratch("a.dst.old/mine"), "x", 1);
    int rc = open_writer(&w, in_scratch("a.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst.old contains 'mine'");
    assert_false(exists("a.dst.tmp"));
}

static void two_writers(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w = begin(false), *second;
    int rc = open_writer(&second, in_scratch("a.dst"), true, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "being written by another run");
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    assert_int_equal(requests_of("a.dst"), 1);
}

// --- failures ------------------------------------------------------------------------------------

static void abort_leaves_nothing(void **state)
{
    (void)state;
    dsc_error err = {0};
    const dsc_trace_info info = sample_info(true, true);
    dsc_trace_writer *w;
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 1, &err), &err);
    for (int i = 0; i < SAMPLES; i++)
        expect_ok(dsc_trace_writer_add(w, &samples[i], &err), &err);
    assert_true(exists("a.dst.tmp/shard-00001.safetensors"));
    dsc_trace_writer_abort(w);
    assert_false(exists("a.dst") || exists("a.dst.tmp"));
    dsc_trace_writer_abort(NULL);
}

// A file that is in the way stands for every failure to write; test_disk.sh has the full disk.
static void shard_not_written(void **state)
{
    (void)state;
    dsc_error err = {0};
    const dsc_trace_info info = sample_info(true, true);
    dsc_trace_writer *w;
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 1, &err), &err);
    expect_ok(dsc_trace_writer_add(w, &samples[0], &err), &err);
    put_file(in_scratch("a.dst.tmp/shard-00001.safetensors"), "x", 1);
    expect_ok(dsc_trace_writer_add(w, &samples[1], &err), &err); // written in the background
    for (int i = 2; i < 4; i++) {                                // and nothing goes on after it
        int rc = dsc_trace_writer_add(w, &samples[i], &err);
        expect_failure(rc, DSC_EUSAGE, &err, "a.dst.tmp/shard-00001.safetensors exists already");
    }
    err = (dsc_error){0};
    expect_failure(dsc_trace_writer_commit(w, NULL, &err), DSC_EUSAGE, &err,
                   "(--force to replace it) (the first 1 requests are kept in");
    assert_false(exists("a.dst"));
    assert_int_equal(requests_of("a.dst.tmp"), 1); // what was finished
    w = begin(false);                              // the next run starts clean
    dsc_trace_writer_abort(w);
    assert_false(exists("a.dst") || exists("a.dst.tmp"));
}

static void manifest_not_written(void **state)
{
    (void)state;
    dsc_error err = {0};
    write_samples("a.dst", true, true, 0);
    dsc_trace_writer *w = begin(true);
    put_file(in_scratch("a.dst.tmp/manifest.json"), "x", 1);
    expect_failure(dsc_trace_writer_commit(w, NULL, &err), DSC_EUSAGE, &err,
                   "a.dst.tmp/manifest.json exists already");
    assert_true(nothing_beside("a.dst"));
    assert_int_equal(requests_of("a.dst"), SAMPLES); // the trace to be replaced is still there
}

static void unwritable_places(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w;
    int rc = open_writer(&w, in_scratch("absent/a.dst"), false, &err);
    expect_failure(rc, DSC_EIO, &err, "absent/a.dst.tmp: No such file");
    put_file(in_scratch("file"), "x", 1);
    rc = open_writer(&w, in_scratch("file/a.dst"), false, &err);
    expect_failure(rc, DSC_EIO, &err, "file/a.dst.tmp: Not a directory");
    if (geteuid() == 0)
        return; // permissions do not stop root
    assert_int_equal(mkdir(in_scratch("locked"), 0555), 0);
    rc = open_writer(&w, in_scratch("locked/a.dst"), false, &err);
    expect_failure(rc, DSC_EIO, &err, "locked/a.dst.tmp: Permission denied");
}

static void bad_info(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++) {
        dsc_trace_info info = sample_info(false, false);
        dsc_error err = {0};
        dsc_trace_writer *w;
        switch (i) {
        case 0: info.tokenizer_name = NULL; break;
        case 1: info.vocab_size = 0; break;
        case 2: info.eos_token = VOCAB; break;
        case 3: info.eos_token = -2; break;
        case 4: info.tokenizer_sha256[3] = 'G'; break;
        case 5: info.provenance = "[1]"; break;
        case 6: info.provenance = "{"; break;
        }
        int rc = dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 0, &err);
        expect_failure(rc, DSC_EUSAGE, &err, i < 5 ? "tokenizer" : "provenance");
        assert_false(exists("a.dst.tmp"));
    }
}

static void bad_provenance_at_commit(void **state)
{
    (void)state;
    dsc_error err = {0};
    expect_failure(dsc_trace_writer_commit(begin(false), "7", &err), DSC_EUSAGE, &err,
                   "provenance");
    assert_false(exists("a.dst") || exists("a.dst.tmp"));
}

// --- requests ------------------------------------------------------------------------------------

static const dsc_request_input bad_requests[] = {
    {.id = TEXT("plain")},
    {.id = TEXT("\xff")},
    {.id = {NULL, 3}},
    {.id = {"x", -1}},
    {.id = TEXT("p"), .prompt = TOKENS(1, VOCAB)},
    {.id = TEXT("p"), .prompt = TOKENS(-1)},
    {.id = TEXT("p"), .prompt = {NULL, 1}},
    {.id = TEXT("o"), .output = TOKENS(VOCAB), .target_logp = (const float[]){0}},
    {.id = TEXT("o"), .output = TOKENS(1)},
    {.id = TEXT("o"), .output = TOKENS(1, 2), .target_logp = (const float[]){0, 0.1f}},
    {.id = TEXT("t"), .prompt_text = TEXT("a\x80")},
    {.id = TEXT("t"), .output_text = TEXT("\xed\xa0\x80")},
    {.id = TEXT("r"), .references = 1},
    {.id = TEXT("r"), .references = -1},
    {.id = TEXT("r"),
     .references = 1,
     .reference = (const dsc_token_view[]){TOKENS(VOCAB)},
     .reference_text = (const dsc_text_view[]){TEXT("")},
     .kind = (const dsc_reference_kind[]){DSC_REFERENCE_TURN}},
    {.id = TEXT("r"),
     .references = 1,
     .reference = (const dsc_token_view[]){TOKENS(1)},
     .reference_text = (const dsc_text_view[]){TEXT("\xfe")},
     .kind = (const dsc_reference_kind[]){DSC_REFERENCE_TURN}},
    {.id = TEXT("r"),
     .references = 1,
     .reference = (const dsc_token_view[]){TOKENS(1)},
     .reference_text = (const dsc_text_view[]){TEXT("")},
     .kind = (const dsc_reference_kind[]){(dsc_reference_kind)2}},
    {.id = TEXT("m"), .metadata = TEXT("[]")},
    {.id = TEXT("m"), .metadata = TEXT("{\"a\":1,\"a\":2}")},
    {.id = TEXT("m"), .metadata = TEXT("{\"a\":1")},
};
static const struct {
    int status;
    const char *word;
} refusals[sizeof bad_requests / sizeof bad_requests[0]] = {
    {DSC_EINPUT, "requests 0 and 1 have the same id 'plain'"},
    {DSC_EINPUT, "request 1: the id is not valid UTF-8 at byte 0"},
    {DSC_EUSAGE, "request 1: the id has a negative length or no bytes"},
    {DSC_EUSAGE, "request 1: the id has a negative length or no bytes"},
    {DSC_EINPUT, "request 1: the prompt: token id 1000 at position 1"},
    {DSC_EINPUT, "request 1: the prompt: token id -1 at position 0"},
    {DSC_EUSAGE, "request 1: the prompt has a negative length or no token ids"},
    {DSC_EINPUT, "request 1: the output: token id 1000"},
    {DSC_EUSAGE, "request 1: 'target.logp_y' is missing"},
    {DSC_EINPUT, "request 1: 'target.logp_y'[1]: 0.1 is not a log-prob"},
    {DSC_EINPUT, "request 1: the prompt's text is not valid UTF-8 at byte 1"},
    {DSC_EINPUT, "request 1: the output's text is not valid UTF-8 at byte 0"},
    {DSC_EUSAGE, "request 1: the arrays of its"},
    {DSC_EUSAGE, "request 1: the arrays of its"},
    {DSC_EINPUT, "request 1: a reference: token id 1000"},
    {DSC_EINPUT, "request 1: a reference's text is not valid UTF-8"},
    {DSC_EUSAGE, "request 1: unknown kind of reference 2"},
    {DSC_EINPUT, "request 1: the metadata must be a JSON object"},
    {DSC_EINPUT, "request 1: the metadata is not valid JSON"},
    {DSC_EINPUT, "request 1: the metadata is not valid JSON"},
};

// A refused request leaves no mark: the writer goes on as if it had not been offered.
static void bad_requests_are_refused(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace_writer *w = begin(false);
    for (size_t i = 0; i < sizeof bad_requests / sizeof bad_requests[0]; i++) {
        err = (dsc_error){0};
        int rc = dsc_trace_writer_add(w, &bad_requests[i], &err);
        expect_failure(rc, refusals[i].status, &err, refusals[i].word);
    }
    for (int i = 1; i < SAMPLES; i++)
        expect_ok(dsc_trace_writer_add(w, &samples[i], &err), &err);
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    size_t n[2];
    char *shard[2];
    write_samples("b.dst", true, true, 0);
    shard[0] = get_file(in_scratch("a.dst/shard-00000.safetensors"), &n[0]);
    shard[1] = get_file(in_scratch("b.dst/shard-00000.safetensors"), &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(shard[0], shard[1], n[0]);
    free(shard[0]);
    free(shard[1]);
}

static void ids_of_many_requests(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    dsc_id_set set = {0};
    dsc_error err = {0};
    char text[20];
    for (int i = 0; i < MANY; i++) { // falling numbers: an id comes after those it begins
        int n = snprintf(text, sizeof text, "%d", MANY - i);
        expect_ok(dsc_id_set_add(&set, (dsc_text_view){text, n}, &err), &err);
    }
    expect_ok(dsc_id_set_add(&set, (dsc_text_view){NULL, 0}, &err), &err);
    for (int i = 0; i < MANY; i += 7) {
        int n = snprintf(text, sizeof text, "%d", MANY - i);
        char word[100];
        snprintf(word, sizeof word, "requests %d and %d have", i, MANY + 1);
        int rc = dsc_id_set_add(&set, (dsc_text_view){text, n}, &err);
        expect_failure(rc, DSC_EINPUT, &err, word);
    }
    int rc = dsc_id_set_add(&set, (dsc_text_view){"x", 0}, &err);
    expect_failure(rc, DSC_EINPUT, &err, "have the same id ''");
    dsc_id_set_fini(&set);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_write)
{
    const struct CMUnitTest tests[] = {
        TEST(shards_are_cut_on_request),
        TEST(existing_trace),
        TEST(foreign_targets_are_left_alone),
        TEST(names_of_shards_are_known_exactly),
        TEST(senseless_names),
        TEST(target_that_appears_meanwhile),
        TEST(stale_temporary),
        TEST(stale_old),
        TEST(two_writers),
        TEST(abort_leaves_nothing),
        TEST(shard_not_written),
        TEST(manifest_not_written),
        TEST(unwritable_places),
        TEST(bad_info),
        TEST(bad_provenance_at_commit),
        TEST(bad_requests_are_refused),
        cmocka_unit_test(ids_of_many_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

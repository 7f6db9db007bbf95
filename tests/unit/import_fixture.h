// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of import and export: a folder with an input, two traces and a text, the
// bytes tokenizer, and access to a trace.
#ifndef DSC_TESTS_IMPORT_FIXTURE_H
#define DSC_TESTS_IMPORT_FIXTURE_H

#include "tests/scratch.h"

#include "traces/import/import.h"

#define OK_FIELDS "\"prompt\": \"p\", \"output\": \"o\""

static char in_path[256], out_path[256], second_path[256], text_path[256];
static dsc_tokenizer *bytes; // "<s>" = 256, "</s>" = 257, vocabulary 258

static inline void remove_trace(const char *path)
{
    char name[300];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s/shard-%05d.safetensors", path, i);
        unlink(name);
    }
    snprintf(name, sizeof name, "%s/manifest.json", path);
    unlink(name);
    rmdir(path);
}

// Group set-up and tear-down.
static inline int setup(void **state)
{
    if (make_scratch(state))
        return -1;
    snprintf(in_path, sizeof in_path, "%s/in.jsonl", scratch);
    snprintf(out_path, sizeof out_path, "%s/a.dst", scratch);
    snprintf(second_path, sizeof second_path, "%s/b.dst", scratch);
    snprintf(text_path, sizeof text_path, "%s/out.jsonl", scratch);
    return dsc_tokenizer_load(&bytes, "bytes", NULL);
}

static inline int teardown(void **state)
{
    (void)state;
    dsc_tokenizer_free(bytes);
    unlink(in_path);
    unlink(text_path);
    remove_trace(out_path);
    remove_trace(second_path);
    return rmdir(scratch); // fails when something was left behind
}

// For tests that look whether a trace appears.
static inline int no_trace(void **state)
{
    (void)state;
    remove_trace(out_path);
    return 0;
}

static inline int import(const char *text, const dsc_tokenizer *t,
                         const dsc_import_options *options, int64_t *left_out, dsc_error *err)
{
    const char *paths[] = {in_path};
    put_text(in_path, text);
    return dsc_import(paths, 1, t, out_path, options, left_out, err);
}

static const dsc_import_options plain = {.force = true, .version = "1", .command = "import"};

// --- a trace that is open, with its first shard ---------------------------------------------

typedef struct opened {
    dsc_trace *trace;
    dsc_shard *shard;
    const dsc_trace_info *info;
} opened;

static inline opened open_trace(const char *path)
{
    opened o;
    dsc_error err = {0};
    if (dsc_trace_open(&o.trace, path, &err) || dsc_trace_verify(o.trace, &err) ||
        dsc_shard_open(&o.shard, o.trace, 0, &err))
        fail_msg("%s", err.message);
    o.info = dsc_trace_get_info(o.trace);
    assert_int_equal(dsc_trace_shards(o.trace), 1);
    return o;
}

static inline void close_trace(opened *o)
{
    dsc_shard_close(o->shard);
    dsc_trace_close(o->trace);
}

static inline opened import_good(const char *text, const dsc_import_options *options)
{
    dsc_error err;
    if (import(text, bytes, options, NULL, &err))
        fail_msg("%s", err.message);
    return open_trace(out_path);
}

static inline dsc_request request(const opened *o, int64_t i)
{
    dsc_request q;
    dsc_shard_request(o->shard, i, &q);
    return q;
}

static inline void expect_text(dsc_text_view is, const char *wanted)
{
    if (is.length != (int64_t)strlen(wanted) || memcmp(is.bytes, wanted, strlen(wanted)) != 0)
        fail_msg("'%.*s' is not '%s'", (int)is.length, is.bytes, wanted);
}

// `wanted`: bytes, with '^' for <s> and '$' for </s>.
static inline void expect_tokens(dsc_token_view is, const char *wanted)
{
    char shown[256] = "";
    assert_true(is.count < 256);
    for (int64_t i = 0; i < is.count; i++)
        shown[i] = (char)(is.id[i] == 256 ? '^' : is.id[i] == 257 ? '$' : is.id[i]);
    shown[is.count] = '\0';
    assert_string_equal(shown, wanted);
}

static inline dsc_text_view reference_text(const dsc_request *q, int64_t r)
{
    return (dsc_text_view){q->reference_text + q->reference_text_offset[r],
                           q->reference_text_offset[r + 1] - q->reference_text_offset[r]};
}

// Expects bad input (exit code 4) with a message about `place`.
static inline void expect_message(const dsc_error *err, int rc, const char *place,
                                  const char *wanted)
{
    size_t n = strlen(place);
    if (rc != DSC_EINPUT || err->status != rc || dsc_exit_code(rc) != 4 ||
        strncmp(err->message, place, n) != 0 || !strstr(err->message + n, wanted))
        fail_msg("wanted '%s%s', got %d '%s'", place, wanted, rc, err->message);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Export: the text itself, that an exported trace comes back the same, and NumPy's files as NumPy
// reads them.
#include "tests/close.h"
#include "tests/unit/import_fixture.h"

#include "base/file.h"
#include "traces/files/array.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void export_to(const char *trace, const char *format, dsc_buffer *out)
{
    dsc_trace *t;
    dsc_error err;
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (dsc_trace_open(&t, trace, &err) || dsc_trace_export(t, format, f, &err))
        fail_msg("%s", err.message);
    fclose(f);
    out->length = 0;
    dsc_buffer_append(out, text, length, NULL);
    free(text);
    dsc_trace_close(t);
}

// out_path is exported and imported again as second_path: same columns, hence the same hash; and
// exported once more, the same text.
static void expect_round_trip(const dsc_tokenizer *t, int32_t vocab_size)
{
    dsc_buffer first = {0}, second = {0};
    dsc_error err;
    dsc_import_options o = plain;
    const char *paths[] = {text_path};
    o.vocab_size = vocab_size;
    export_to(out_path, "jsonl", &first);
    put_file(text_path, first.data, first.length);
    if (dsc_import(paths, 1, t, second_path, &o, NULL, &err))
        fail_msg("%s", err.message);
    export_to(second_path, "jsonl", &second);
    assert_string_equal(first.data, second.data);
    opened a = open_trace(out_path), b = open_trace(second_path);
    assert_string_equal(a.info->hash, b.info->hash);
    assert_int_equal(a.info->has_text, b.info->has_text);
    close_trace(&a);
    close_trace(&b);
    dsc_buffer_fini(&first);
    dsc_buffer_fini(&second);
}

static void test_round_trip(void **state)
{
    (void)state;
    dsc_error err;
    opened o = import_good(
        "{\"id\": \"a,\\\"b\\\"\", \"prompt\": \"caf\\u00e9 \\ud83d\\ude00 \\\\ \\u0000 \\u001f / "
        "<\", "
        "\"output\": \"ab\", \"logprobs\": [-14.7794695, -0.0, -1.1754942e-38], "
        "\"metadata\": {\"b\": 0.1, \"a\": [1, -0.0, 1e300, \"\\u00e9\\n\"], \"\": {}}}\n"
        "{\"prompt\": [255, 256], \"output\": {\"tokens\": [1], \"text\": \"other\"}, "
        "\"logprobs\": "
        "[-3.4028234e38], \"references\": [\"r\", {\"tokens\": [200], \"kind\": \"turn\"}, []]}\n"
        "{\"prompt\": \"\", \"output\": \"\", \"finish_reason\": \"length\", \"logprobs\": []}\n",
        &plain);
    close_trace(&o);
    expect_round_trip(bytes, 0);
    opened b =
        open_trace(second_path); // the zero's sign, and a float that eight digits do not tell
    dsc_request q = request(&b, 0);
    assert_true(q.target_logp[1] == 0 && signbit(q.target_logp[1]));
    assert_true(q.target_logp[0] == -14.7794695f && q.target_logp[2] == -1.1754942e-38f);
    assert_true(request(&b, 1).target_logp[0] == -3.4028234e38f);
    close_trace(&b);
    remove_trace(second_path);

    dsc_import_options ids = plain; // no text
    ids.vocab_size = 50;
    assert_int_equal(import("{\"prompt\": [1], \"output\": [49], \"references\": [[], [3, 4]]}",
                            NULL, &ids, NULL, &err),
                     0);
    expect_round_trip(NULL, 50);
    remove_trace(second_path);
}

// Lists come back to the bit, the tail too: as given, or as the import works it out.
static void test_rows_round_trip(void **state)
{
    (void)state;
    opened o = import_good(
        "{\"prompt\": [1], \"output\": [2, 3, 4], "
        "\"draft_rows\": [[[257, -1.4999999], [3, -0.5]], [], [[257, -0.0]]], "
        "\"target_rows\": [[[9, -0.6931472], -0.69313], [-0.0], [[257, 0], [0, -1e38], null]]}\n"
        "{\"prompt\": [1], \"output\": [], \"draft_rows\": [], \"target_rows\": []}\n",
        &plain);
    close_trace(&o);
    expect_round_trip(bytes, 0);
    remove_trace(second_path);
}

// Dense rows are written as lists of what has a probability.
static void test_export_dense(void **state)
{
    (void)state;
    const float logp[] = {-INFINITY, -0.5f, -0.932752132f, -INFINITY, 0, -INFINITY};
    dsc_trace_info info = {.tokenizer_name = "none",
                           .vocab_size = 3,
                           .eos_token = -1,
                           .rows = {[DSC_SIDE_TARGET] = DSC_ROWS_DENSE}};
    dsc_request_input q = {
        .id = {"x", 1},
        .output = {(const int32_t[]){1, 2}, 2},
        .rows = {[DSC_SIDE_TARGET] = {.kind = DSC_ROWS_DENSE, .logp = logp, .vocab_size = 3}}};
    dsc_trace_writer *w;
    dsc_error err;
    dsc_buffer out = {0};
    assert_ok(dsc_trace_writer_open(&w, out_path, &info, true, 0, &err), err);
    assert_ok(dsc_trace_writer_add(w, &q, &err), err);
    assert_ok(dsc_trace_writer_commit(w, NULL, &err), err);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(out.data,
                        "{\"id\":\"x\",\"prompt\":{\"tokens\":[]},\"output\":{\"tokens\":[1,2]},"
                        "\"target_rows\":[[[1,-0.5],[2,-0.932752132],null],[[1,0],null]]}\n");
    dsc_buffer_fini(&out);
}

static void test_export_text(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    opened o =
        import_good("{\"id\": \"a\", \"prompt\": \"p\\n\", \"output\": \"x\", \"references\": "
                    "[{\"text\": \"r\", \"kind\": \"turn\"}], \"logprobs\": [-0.5, 0], "
                    "\"metadata\": {\"k\": 1}}\n"
                    "{\"id\": \"b,\\\"c\", \"prompt\": [], \"output\": [65], \"logprobs\": [-1]}",
                    &plain);
    close_trace(&o);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(
        out.data,
        "{\"id\":\"a\",\"prompt\":{\"text\":\"p\\n\",\"tokens\":[256,112,10]},\"output\":{"
        "\"text\":\"x\",\"tokens\":[120,257]},\"references\":[{\"text\":\"r\",\"tokens\":"
        "[114],\"kind\":\"turn\"}],\"logprobs\":[-0.5,0],\"metadata\":{\"k\":1}}\n"
        "{\"id\":\"b,\\\"c\",\"prompt\":{\"text\":\"\",\"tokens\":[]},\"output\":{\"text\":"
        "\"A\",\"tokens\":[65]},\"logprobs\":[-1]}\n");
    export_to(out_path, "csv", &out);
    assert_string_equal(out.data,
                        "request,id,prompt_tokens,output_tokens,references,reference_tokens\r\n"
                        "0,a,3,2,1,1\r\n"
                        "1,\"b,\"\"c\",0,1,0,0\r\n");
    dsc_buffer_fini(&out);
}

// One request per shard; more token ids than one block of the formatter holds; ids with line ends.
static void test_export_shards(void **state)
{
    (void)state;
    dsc_trace_writer *w;
    dsc_error err;
    dsc_trace_info info = {.tokenizer_name = "none", .vocab_size = INT32_MAX, .eos_token = -1};
    int32_t id[2000];
    dsc_buffer wanted = {0}, out = {0};
    if (dsc_trace_writer_open(&w, out_path, &info, true, 1, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++) {
        dsc_buffer_printf(&wanted, NULL, "{\"id\":\"%d\\r\",\"prompt\":{\"tokens\":[", i);
        for (int j = 0; j < 2000; j++) {
            id[j] = j ? (int32_t)((uint32_t)i * 1234567 + (uint32_t)j * j * 500) : INT32_MAX - 1;
            dsc_buffer_printf(&wanted, NULL, "%s%d", j ? "," : "", id[j]);
        }
        dsc_buffer_puts(&wanted, "]},\"output\":{\"tokens\":[0]}}\n", NULL);
        char name[2] = {(char)('0' + i), '\r'};
        dsc_request_input q = {.id = {name, 2}, .prompt = {id, 2000}, .output = {&(int32_t){0}, 1}};
        if (dsc_trace_writer_add(w, &q, &err))
            fail_msg("%s", err.message);
    }
    if (dsc_trace_writer_commit(w, NULL, &err))
        fail_msg("%s", err.message);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(out.data, wanted.data);
    export_to(out_path, "csv", &out);
    assert_non_null(strstr(out.data, "\r\n0,\"0\r\",2000,1,0,0\r\n1,\"1\r\",2000,1,0,0\r\n"
                                     "2,\"2\r\",2000,1,0,0\r\n"));
    dsc_buffer_fini(&wanted);
    dsc_buffer_fini(&out);
}

// Everything there is for a step or an output token; ids that need quotes; a request without any.
static void test_export_rows(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    opened o = import_good(
        "{\"id\": \"x,\\\"y\\\"\", \"prompt\": [], \"output\": [98, 257], \"logprobs\": [-0.1, "
        "-0.0], "
        "\"draft_logprobs\": [-1, null], \"draft_argmax\": [1, 2], \"target_argmax\": [3, 4], "
        "\"draft_entropy\": [5, 0.25], \"target_entropy\": [7, 8], "
        "\"draft_ranks\": {\"depth\": 2, \"ranks\": [[0, 3], [null, null]]}, "
        "\"statistics\": {\"k\": 2, \"kseq\": [[[1, 0.5], [1.5, 0]], [[1, 1], [2, 1]]], "
        "\"specinfer\": [[0, 1, 1.5], [0, 0, 0]], "
        "\"otm\": [[1, 0, 0.25, 0.25, 0.5], [0, 1, 0, 0, 1]]}, "
        "\"rollouts\": {\"length\": 1, \"draft\": [[1], [2]], \"target\": [[1, 2], [2, 3]]}, "
        "\"steps\": {\"aligned\": false, \"accepted\": [1, 0], \"drafted\": [4, 0], "
        "\"draft_s\": [0.5, 0], \"verify_s\": [1e-9, 2]}, "
        "\"accept\": {\"e\": {\"cap\": 2, \"accepted\": [2, 1]}}}\n"
        "{\"prompt\": [], \"output\": [], \"logprobs\": [], \"draft_logprobs\": [], "
        "\"draft_argmax\": [], \"target_argmax\": [], \"draft_entropy\": [], "
        "\"target_entropy\": [], \"draft_ranks\": {\"depth\": 2, \"ranks\": []}, "
        "\"statistics\": {\"k\": 2, \"kseq\": [], \"specinfer\": [], \"otm\": []}, "
        "\"rollouts\": {\"length\": 1, \"draft\": [], \"target\": []}, "
        "\"steps\": {\"aligned\": false, \"accepted\": [], \"drafted\": [], \"draft_s\": [], "
        "\"verify_s\": []}, \"accept\": {\"e\": {\"cap\": 2, \"accepted\": []}}}",
        &plain);
    close_trace(&o);
    export_to(out_path, "csv-steps", &out);
    assert_string_equal(out.data, "request,id,step,accepted,drafted,draft_s,verify_s\r\n"
                                  "0,\"x,\"\"y\"\"\",0,1,4,0.5,9.9999997171806854e-10\r\n"
                                  "0,\"x,\"\"y\"\"\",1,0,0,0,2\r\n");
    export_to(out_path, "csv-positions", &out);
    assert_string_equal(
        out.data, "request,id,position,token,target_logp,draft_logp,draft_argmax,target_argmax,"
                  "draft_entropy,target_entropy,draft_rank_0,draft_rank_1,kseq_rho_1,kseq_beta_1,"
                  "kseq_rho_2,kseq_beta_2,specinfer_1,specinfer_2,specinfer_3,otm_1_0,otm_1_1,"
                  "otm_2_0,otm_2_1,otm_2_2,draft_rollout_0,target_rollout_0,target_rollout_1,"
                  "accept.e\r\n"
                  "0,\"x,\"\"y\"\"\",0,98,-0.10000000149011612,-1,1,3,5,7,0,3,1,0.5,1.5,0,0,1,"
                  "1.5,1,0,0.25,0.25,0.5,1,1,2,2\r\n"
                  "0,\"x,\"\"y\"\"\",1,257,-0,-inf,2,4,0.25,8,,,1,1,2,1,0,0,0,0,1,0,0,1,2,2,3,"
                  "1\r\n");
    dsc_buffer_fini(&out);
}

// Columns that are not recorded are not there.
static void test_export_few_columns(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    opened o =
        import_good("{\"prompt\": [], \"output\": [65], \"steps\": {\"accepted\": [3]}}", &plain);
    close_trace(&o);
    export_to(out_path, "csv-steps", &out);
    assert_string_equal(out.data, "request,id,step,accepted\r\n0,0,0,3\r\n");
    export_to(out_path, "csv-positions", &out);
    assert_string_equal(out.data, "request,id,position,token\r\n0,0,0,65\r\n");
    dsc_buffer_fini(&out);
}

// --- npy -----------------------------------------------------------------------------------------

static const char *in_columns(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/columns%s", scratch, name);
    return path;
}

static void remove_columns(void)
{
    char path[800];
    DIR *d = opendir(in_columns(""));
    struct dirent *e;
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%.255s", in_columns(""), e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(in_columns(""));
}

static int export_npy(bool force, dsc_error *err)
{
    dsc_trace *t;
    *err = (dsc_error){0};
    assert_ok(dsc_trace_open(&t, out_path, err), *err);
    int rc = dsc_trace_export_npy(t, in_columns(""), force, err);
    dsc_trace_close(t);
    assert_int_not_equal(access(in_columns(".tmp"), F_OK), 0);
    return rc;
}

// The file's header as NumPy writes it, and its data.
static void expect_npy(const char *name, const char *descr, const char *shape, const void *data,
                       size_t length)
{
    enum { HEADER = 128 };
    char wanted[HEADER + 1], *is;
    size_t bytes_read;
    dsc_error err;
    int n = snprintf(wanted, sizeof wanted,
                     "\x93NUMPY????{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                     shape);
    memcpy(wanted + 6, "\1\0\x76", 4); // version 1.0; 118 bytes of header follow
    memset(wanted + n, ' ', (size_t)(HEADER - 1 - n));
    wanted[HEADER - 1] = '\n';
    assert_ok(dsc_read_file(&is, &bytes_read, in_columns(name), 1 << 20, &err), err);
    assert_memory_equal(is, wanted, HEADER);
    assert_int_equal(bytes_read, HEADER + length);
    if (length)
        assert_memory_equal(is + HEADER, data, length);
    free(is);
}

#define NPY(name, descr, shape, type, ...)                                                         \
    expect_npy("/" name ".npy", descr, shape, (const type[]){__VA_ARGS__},                         \
               sizeof((const type[]){__VA_ARGS__}))

enum { DENSE_VOCAB = 3 };
static const float dense[] = {-INFINITY, -0.5f, -0.932752132f, -INFINITY, 0, -INFINITY};

static void write_shards(int64_t shard_tokens)
{
    static const uint16_t bf16[] = {0xff80, 0x0000, 0xff80, 0x0000, 0xff80, 0xff80};
    dsc_trace_info info = {.tokenizer_name = "none",
                           .vocab_size = DENSE_VOCAB,
                           .eos_token = -1,
                           .has_target_logp = true,
                           .has_kseq = true,
                           .statistics_k = 2,
                           .steps = DSC_STEPS_LOGGED,
                           .rows = {DSC_ROWS_DENSE, DSC_ROWS_DENSE}};
    static const int32_t tokens[] = {1, 0, 2};
    static const float kseq[] = {1, 0.5f, 2, 0.25f, 1, 0, 1, 1};
    const dsc_token_view references[] = {{tokens, 1}, {tokens + 1, 2}};
    const dsc_reference_kind kinds[] = {DSC_REFERENCE_TURN, DSC_REFERENCE_DOCUMENT};
    dsc_request_input q[] = {
        {.id = {"a", 1},
         .prompt = {tokens, 3},
         .output = {tokens, 1},
         .references = 2,
         .reference = references,
         .kind = kinds,
         .target_logp = (const float[]){-1.5f},
         .sufficient.kseq = kseq,
         .steps = {2, (const uint16_t[]){1, 65535}, NULL, NULL, NULL},
         .rows = {{.kind = DSC_ROWS_DENSE, .logp = dense, .vocab_size = DENSE_VOCAB},
                  {.kind = DSC_ROWS_DENSE, .bf16 = bf16, .vocab_size = DENSE_VOCAB}}},
        {.id = {"bc", 2},
         .rows = {{.kind = DSC_ROWS_DENSE, .vocab_size = DENSE_VOCAB},
                  {.kind = DSC_ROWS_DENSE, .vocab_size = DENSE_VOCAB}}},
        {.id = {"d", 1},
         .prompt = {tokens, 1},
         .output = {tokens + 2, 1},
         .references = 1,
         .reference = references,
         .kind = kinds,
         .target_logp = (const float[]){-0.0f},
         .sufficient.kseq = kseq + 4,
         .steps = {1, (const uint16_t[]){7}, NULL, NULL, NULL},
         .rows = {{.kind = DSC_ROWS_DENSE, .logp = dense + 3, .vocab_size = DENSE_VOCAB},
                  {.kind = DSC_ROWS_DENSE, .bf16 = bf16 + 3, .vocab_size = DENSE_VOCAB}}},
    };
    dsc_trace_writer *w;
    dsc_error err;
    assert_ok(dsc_trace_writer_open(&w, out_path, &info, true, shard_tokens, &err), err);
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        assert_ok(dsc_trace_writer_add(w, &q[i], &err), err);
    assert_ok(dsc_trace_writer_commit(w, NULL, &err), err);
}

// One shard or one for each request: the same files. Offsets run on.
static void test_npy_columns(void **state)
{
    (void)state;
    const float inf = INFINITY;
    dsc_error err;
    for (int64_t shard_tokens = 0; shard_tokens < 2; shard_tokens++) {
        write_shards(shard_tokens);
        assert_ok(export_npy(shard_tokens > 0, &err), err);
        NPY("request.id", "|u1", "(4,)", char, 'a', 'b', 'c', 'd');
        NPY("request.id.offset", "<i8", "(4,)", int64_t, 0, 1, 3, 4);
        NPY("prompt.tok", "<u4", "(4,)", uint32_t, 1, 0, 2, 1);
        NPY("prompt.offset", "<i8", "(4,)", int64_t, 0, 3, 3, 4);
        NPY("output.tok", "<u4", "(2,)", uint32_t, 1, 2);
        NPY("output.offset", "<i8", "(4,)", int64_t, 0, 1, 1, 2);
        NPY("reference.tok", "<u4", "(4,)", uint32_t, 1, 0, 2, 1);
        NPY("reference.offset", "<i8", "(4,)", int64_t, 0, 1, 3, 4);
        NPY("request.reference", "<i8", "(4,)", int64_t, 0, 2, 2, 3);
        NPY("reference.kind", "|u1", "(3,)", char, 1, 0, 1);
        expect_npy("/metadata.npy", "|u1", "(0,)", NULL, 0);
        NPY("metadata.offset", "<i8", "(4,)", int64_t, 0, 0, 0, 0);
        NPY("target.logp_y", "<f4", "(2,)", float, -1.5f, -0.0f);
        expect_npy("/rows.draft.dense.npy", "<f4", "(2, 3)", dense, sizeof dense);
        NPY("rows.target.dense", "<f4", "(2, 3)", float, -inf, 0, -inf, 0, -inf, -inf);
        NPY("stat.kseq", "<f4", "(2, 2, 2)", float, 1, 0.5f, 2, 0.25f, 1, 0, 1, 1);
        NPY("step.offset", "<i8", "(4,)", int64_t, 0, 2, 2, 3);
        NPY("step.accepted", "<u2", "(3,)", uint16_t, 1, 65535, 7);
    }
    dsc_array *a; // our own reader
    double row[DENSE_VOCAB];
    assert_ok(dsc_array_open(&a, in_columns("/rows.draft.dense.npy"), &err), err);
    assert_int_equal(dsc_array_rows(a), 2);
    assert_int_equal(dsc_array_columns(a), DENSE_VOCAB);
    assert_ok(dsc_array_row(a, 0, row, &err), err);
    for (int i = 0; i < DENSE_VOCAB; i++)
        assert_true(row[i] == (double)dense[i]);
    dsc_array_close(a);
    remove_columns();
}

// Columns longer than a block of what is converted; every file is as long as its header says.
static void test_npy_blocks(void **state)
{
    (void)state;
    enum { REQUESTS = 10000, SHARD_TOKENS = 6000 };
    static int64_t offset[REQUESTS + 1];
    dsc_trace_info info = {.tokenizer_name = "none", .vocab_size = 2, .eos_token = -1};
    dsc_trace_writer *w;
    dsc_error err;
    assert_ok(dsc_trace_writer_open(&w, out_path, &info, true, SHARD_TOKENS, &err), err);
    for (int i = 0; i < REQUESTS; i++) {
        char id[16];
        int n = snprintf(id, sizeof id, "%d", i);
        dsc_request_input q = {.id = {id, n}, .output = {(const int32_t[]){1, 0}, i % 3}};
        offset[i + 1] = offset[i] + i % 3;
        assert_ok(dsc_trace_writer_add(w, &q, &err), err);
    }
    assert_ok(dsc_trace_writer_commit(w, NULL, &err), err);
    assert_ok(export_npy(false, &err), err);
    expect_npy("/output.offset.npy", "<i8", "(10001,)", offset, sizeof offset);
    remove_columns();
}

static void test_npy_errors(void **state)
{
    (void)state;
    dsc_error err;
    struct stat st;
    write_shards(0);
    assert_ok(export_npy(false, &err), err);
    assert_int_equal(export_npy(false, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "exists already (--force replaces it)"));
    assert_ok(export_npy(true, &err), err);
    // a file that cannot be written to its end: nothing is left, what was there stays
    struct rlimit old, small = {.rlim_cur = 100};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = export_npy(true, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, DSC_EIO);
    assert_non_null(strstr(err.message, "cannot write"));
    NPY("output.tok", "<u4", "(2,)", uint32_t, 1, 2);
    // a folder with anything else, a link, a file: the user's
    put_file(in_columns("/diary"), "x", 1);
    assert_int_equal(export_npy(true, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "'diary', which is not a .npy file; nothing was changed"));
    assert_int_equal(stat(in_columns("/output.tok.npy"), &st), 0);
    remove_columns();
    assert_int_equal(symlink(scratch, in_columns("")), 0);
    assert_int_equal(export_npy(true, &err), DSC_EUSAGE);
    unlink(in_columns(""));
    put_file(in_columns(""), "x", 1);
    assert_int_equal(export_npy(true, &err), DSC_EUSAGE);
    unlink(in_columns(""));
    // what a killed run left goes; a folder of that name that is not ours stays
    assert_int_equal(mkdir(in_columns(".tmp"), 0777), 0);
    put_file(in_columns(".tmp/old.npy"), "x", 1);
    assert_ok(export_npy(false, &err), err);
    remove_columns();
    dsc_trace *t;
    assert_int_equal(mkdir(in_columns(".tmp"), 0777), 0);
    put_file(in_columns(".tmp/diary"), "x", 1);
    assert_ok(dsc_trace_open(&t, out_path, &err), err);
    assert_int_equal(dsc_trace_export_npy(t, in_columns(""), true, &err), DSC_EUSAGE);
    dsc_trace_close(t);
    assert_int_equal(unlink(in_columns(".tmp/diary")), 0);
    assert_int_equal(rmdir(in_columns(".tmp")), 0);
}

static void test_export_errors(void **state)
{
    (void)state;
    dsc_error err;
    opened o = import_good("{" OK_FIELDS "}", &plain);
    assert_int_equal(dsc_trace_export(o.trace, "xml", stdout, &err), DSC_EUSAGE);
    assert_string_equal(err.message,
                        "unknown export format 'xml' (jsonl, csv, csv-steps or csv-positions)");
    assert_int_equal(dsc_trace_export(o.trace, "csv-steps", stdout, &err), DSC_EUSAGE);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(dsc_trace_export(o.trace, "jsonl", full, &err), DSC_EIO);
        assert_int_equal(dsc_exit_code(DSC_EIO), 1);
        fclose(full);
    }
    close_trace(&o);
}

// --- real data -------------------------------------------------------------------------------

// LLMA's Table 1, dev column: 903.6 prompt and 110.2 (+ 1) output tokens per request.
static void test_rag(void **state)
{
    (void)state;
    char rag[4096], llama[4096];
    const char *paths[] = {data_path("llma/rag.jsonl", rag, sizeof rag)};
    data_path("tokenizers/llama2.json", llama, sizeof llama);
    dsc_tokenizer *t;
    dsc_error err;
    if (dsc_tokenizer_load(&t, llama, &err))
        fail_msg("%s", err.message);
    char hash[2][DSC_SHA256_HEX];
    for (int code = 0; code < 2; code++) {
        dsc_import_options o = plain;
        o.semantics = code ? "code" : "paper";
        if (dsc_import(paths, 1, t, out_path, &o, NULL, &err))
            fail_msg("%s", err.message);
        opened trace = open_trace(out_path);
        const dsc_trace_info *info = trace.info;
        assert_string_equal(info->format, "llma");
        assert_int_equal(info->requests, 100);
        assert_int_equal(info->references, 1000);
        assert_int_equal(info->prompt_tokens, 90363);
        assert_int_equal(info->output_tokens, 11123);
        assert_int_equal(info->reference_tokens, 87391); // none is longer than 768
        memcpy(hash[code], info->hash, DSC_SHA256_HEX);
        close_trace(&trace);
    }
    assert_string_equal(hash[0], hash[1]);
    expect_round_trip(t, 0);
    dsc_tokenizer_free(t);
}

SUITE(export)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_rows_round_trip),
        cmocka_unit_test(test_export_dense),       cmocka_unit_test(test_export_text),
        cmocka_unit_test(test_export_shards),      cmocka_unit_test(test_export_rows),
        cmocka_unit_test(test_export_few_columns), cmocka_unit_test(test_npy_columns),
        cmocka_unit_test(test_npy_blocks),         cmocka_unit_test(test_npy_errors),
        cmocka_unit_test(test_export_errors),      cmocka_unit_test(test_rag),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

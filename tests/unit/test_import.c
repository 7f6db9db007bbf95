// SPDX-License-Identifier: Apache-2.0
// Import: what every form of line becomes, and what the options do.
#include "tests/unit/import_fixture.h"

#include <math.h>
#include <sys/stat.h>
#include <zlib.h>

// --- good lines ------------------------------------------------------------------------------

static void test_jsonl_forms(void **state)
{
    (void)state;
    opened o =
        import_good("{\"prompt\": \"Hi\", \"output\": \"yo\", \"id\": \"first\"}\n"
                    "{\"prompt\": [72, 105], \"output\": [121, 111], \"id\": -7}\n"
                    "{\"prompt\": {\"text\": \"Hi\"}, \"output\": {\"text\": \"yo\"}, "
                    "\"finish_reason\": \"stop\"}\n"
                    "{\"prompt\": {\"tokens\": [256, 72]}, \"output\": {\"tokens\": [121, 257]}, "
                    "\"finish_reason\": \"length\"}\n"
                    "{\"prompt\": {\"text\": \"A\", \"tokens\": [66]}, \"output\": {\"tokens\": "
                    "[], \"text\": \"C\"}}\n"
                    "{\"prompt\": \"\", \"output\": \"\", \"finish_reason\": \"length\"}\n",
                    &plain);
    static const struct {
        const char *id, *prompt, *output, *prompt_text, *output_text;
    } wanted[] = {
        {"first", "^Hi", "yo$", "Hi", "yo"},
        {"-7", "Hi", "yo", "Hi", "yo"},
        {"2", "^Hi", "yo$", "Hi", "yo"},
        {"3", "^H", "y$", "H", "y"},
        {"4", "B", "", "A", "C"},
        {"5", "^", "", "", ""},
    };
    assert_int_equal(o.info->requests, 6);
    assert_true(o.info->has_text);
    assert_false(o.info->has_target_logp);
    assert_int_equal(o.info->vocab_size, 258);
    assert_int_equal(o.info->eos_token, 257);
    assert_string_equal(o.info->tokenizer_name, "bytes");
    assert_string_equal(o.info->tokenizer_sha256, dsc_tokenizer_sha256(bytes));
    assert_string_equal(o.info->format, "jsonl");
    assert_string_equal(o.info->semantics, "paper");
    for (int i = 0; i < 6; i++) {
        dsc_request q = request(&o, i);
        expect_text(q.id, wanted[i].id);
        expect_tokens(q.prompt, wanted[i].prompt);
        expect_tokens(q.output, wanted[i].output);
        expect_text(q.prompt_text, wanted[i].prompt_text);
        expect_text(q.output_text, wanted[i].output_text);
        assert_int_equal(q.references, 0);
        assert_int_equal(q.metadata.length, 0);
    }
    close_trace(&o);
}

static void test_jsonl_references(void **state)
{
    (void)state;
    opened o =
        import_good("{\"prompt\": \"\", \"output\": \"x\", \"references\": [\"ab\", [99], "
                    "{\"text\": \"d\", \"kind\": "
                    "\"turn\"}, {\"tokens\": [257, 101], \"kind\": \"document\"}, {\"text\": "
                    "\"F\", \"tokens\": []}], "
                    "\"metadata\": {\"z\": [1.5, null], \"a\": \"\\u00e9\\n\"}}\n"
                    "{\"prompt\": \"\", \"output\": \"x\", \"references\": [], \"metadata\": {}}\n",
                    &plain);
    static const char *const tokens[] = {"ab", "c", "d", "$e", ""};
    static const char *const texts[] = {"ab", "c", "d", "e", "F"};
    dsc_request q = request(&o, 0);
    assert_int_equal(q.references, 5);
    for (int r = 0; r < 5; r++) {
        expect_tokens(dsc_request_reference(&q, r), tokens[r]);
        expect_text(reference_text(&q, r), texts[r]);
        assert_int_equal(q.reference_kind[r], r == 2 ? DSC_REFERENCE_TURN : DSC_REFERENCE_DOCUMENT);
    }
    expect_text(q.metadata, "{\"z\":[1.5,null],\"a\":\"\xc3\xa9\\n\"}");
    q = request(&o, 1);
    assert_int_equal(q.references, 0);
    expect_text(q.metadata, "{}");
    close_trace(&o);
}

static void test_jsonl_logprobs(void **state)
{
    (void)state;
    opened o =
        import_good("{\"prompt\": \"\", \"output\": \"ab\", \"logprobs\": [-0.1, 0, -1e-45]}\n"
                    "{\"prompt\": \"\", \"output\": [], \"logprobs\": []}\n",
                    &plain);
    assert_true(o.info->has_target_logp);
    dsc_request q = request(&o, 0);
    assert_true(q.target_logp[0] == -0.1f && q.target_logp[1] == 0 && q.target_logp[2] == -1e-45f);
    close_trace(&o);
}

// A token may end inside a character, and a text may hold any character, NUL too.
static void expect_row(const dsc_request *q, dsc_model_side side, int64_t position, int64_t count,
                       const int32_t *token, const float *logp, double tail)
{
    dsc_row row;
    assert_true(dsc_request_row(q, side, position, &row));
    assert_int_equal(row.count, count);
    for (int64_t i = 0; i < count; i++)
        assert_true(row.token[i] == token[i] && row.logp[i] == logp[i]);
    assert_true(row.tail == (float)tail);
}

static void test_jsonl_rows(void **state)
{
    (void)state;
    const int32_t token[] = {257, 3};
    const float logp[] = {-1.5f, -0.5f}, certain[] = {0};
    dsc_error err;
    opened o = import_good(
        "{\"prompt\": \"\", \"output\": [2, 3, 4], "
        "\"draft_rows\": [[[257, -1.5], [3, -0.5]], [], [[257, 0]]], "
        "\"target_rows\": [[[257, -1.5], [3, -0.5], -1.77], [0], [[257, 0], null]]}\n"
        "{\"prompt\": \"\", \"output\": {\"text\": \"\", \"tokens\": []}, \"draft_rows\": [], "
        "\"target_rows\": []}\n",
        &plain);
    assert_int_equal(o.info->rows[DSC_SIDE_DRAFT], DSC_ROWS_LISTED);
    assert_int_equal(o.info->rows[DSC_SIDE_TARGET], DSC_ROWS_LISTED);
    dsc_request q = request(&o, 0);
    expect_row(&q, DSC_SIDE_DRAFT, 0, 2, token, logp, log(1 - exp(-1.5) - exp(-0.5)));
    expect_row(&q, DSC_SIDE_DRAFT, 1, 0, NULL, NULL, 0);
    expect_row(&q, DSC_SIDE_DRAFT, 2, 1, token, certain, -INFINITY);
    expect_row(&q, DSC_SIDE_TARGET, 0, 2, token, logp, -1.77);
    expect_row(&q, DSC_SIDE_TARGET, 1, 0, NULL, NULL, 0);
    expect_row(&q, DSC_SIDE_TARGET, 2, 1, token, certain, -INFINITY);
    close_trace(&o);
    // A sum that float rounding puts a little above 1 leaves nothing.
    o = import_good("{\"prompt\": [], \"output\": [1], \"draft_rows\": "
                    "[[[257, -1.5], [3, -0.2524]]]}",
                    &plain);
    assert_int_equal(o.info->rows[DSC_SIDE_TARGET], DSC_ROWS_NONE);
    q = request(&o, 0);
    expect_row(&q, DSC_SIDE_DRAFT, 0, 2, token, (const float[]){-1.5f, -0.2524f}, -INFINITY);
    close_trace(&o);
    // A list of the whole vocabulary has no tail, however the logarithms were rounded.
    dsc_import_options two = plain;
    two.vocab_size = 2;
    assert_int_equal(import("{\"prompt\": [], \"output\": [1], \"draft_rows\": "
                            "[[[0, -0.69315], [1, -0.69315]]]}",
                            NULL, &two, NULL, &err),
                     0);
    o = open_trace(out_path);
    q = request(&o, 0);
    expect_row(&q, DSC_SIDE_DRAFT, 0, 2, (const int32_t[]){0, 1},
               (const float[]){-0.69315f, -0.69315f}, -INFINITY);
    close_trace(&o);
    static const char *const pairs[][2] = {
        {"{\"prompt\": [], \"output\": [], \"target_rows\": []}\n{\"prompt\": [], \"output\": []}",
         "field 'target_rows' is missing, but earlier requests have it"},
        {"{\"prompt\": [], \"output\": []}\n{\"prompt\": [], \"output\": [], \"draft_rows\": []}",
         "field 'draft_rows' is present, but earlier requests lack it"},
    };
    char place[400];
    snprintf(place, sizeof place, "%s:2: ", in_path);
    for (int i = 0; i < 2; i++) {
        int rc = import(pairs[i][0], bytes, &plain, NULL, &err);
        expect_message(&err, rc, place, pairs[i][1]);
    }
}

static void test_text_is_utf8(void **state)
{
    (void)state;
    opened o = import_good(
        "{\"prompt\": [97, 255, 195, 169, 226, 130, 98], \"output\": \"\\u0000!\"}", &plain);
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                               "b");
    assert_int_equal(q.output_text.length, 2);
    assert_memory_equal(q.output_text.bytes, "\0!", 2);
    assert_int_equal(q.output.count, 3);
    assert_int_equal(q.output.id[0], 0);
    close_trace(&o);
}

static void test_eos(void **state)
{
    (void)state;
    dsc_import_options o = plain;
    dsc_error err;
    o.eos = "<s>";
    opened t = import_good("{\"prompt\": \"\", \"output\": \"x\"}", &o);
    expect_tokens(request(&t, 0).output, "x^");
    assert_int_equal(t.info->eos_token, 256);
    close_trace(&t);
    o.eos = "<nope>";
    assert_int_equal(import("{}", bytes, &o, NULL, &err), DSC_EUSAGE);
    assert_string_equal(err.message,
                        "tokenizer bytes has no token '<nope>', given as the EOS token");
}

// A byte-level BPE without merges and without special tokens.
static dsc_tokenizer *tokenizer_without_eos(void)
{
    dsc_buffer b = {0};
    dsc_tokenizer *t;
    dsc_error err;
    dsc_buffer_puts(&b,
                    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
                    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                    "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
                    "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\","
                    "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
                    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                    "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\","
                    "\"fuse_unk\":false,\"byte_fallback\":false,\"merges\":[],\"vocab\":{",
                    NULL);
    for (int i = 0, other = 256; i < 256; i++) { // GPT-2's characters for bytes
        bool shown = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        dsc_buffer_printf(&b, NULL, "%s\"\\u%04x\":%d", i ? "," : "", shown ? i : other, i);
        other += !shown;
    }
    dsc_buffer_puts(&b, "}}}", NULL);
    put_file(text_path, b.data, b.length);
    dsc_buffer_fini(&b);
    if (dsc_tokenizer_load(&t, text_path, &err))
        fail_msg("%s", err.message);
    return t;
}

static void test_no_eos(void **state)
{
    (void)state;
    dsc_tokenizer *t = tokenizer_without_eos();
    dsc_error err;
    dsc_import_options skip = plain;
    skip.skip_errors = true; // no help: it is no line's fault
    assert_int_equal(dsc_tokenizer_eos(t), -1);
    assert_int_equal(import("{\"query\": \"q\", \"docs\": [], \"result\": {\"text\": \"x\"}}", t,
                            &skip, NULL, &err),
                     DSC_EUSAGE);
    assert_non_null(strstr(err.message, "in.jsonl:1: "));
    assert_non_null(strstr(err.message, "name it with --eos"));
    assert_int_equal(import("{\"prompt\": \"p\", \"output\": \"x\"}", t, &plain, NULL, &err), 0);
    opened o = open_trace(out_path);
    assert_int_equal(o.info->eos_token, -1);
    assert_int_equal(request(&o, 0).prompt.count, 1);
    assert_int_equal(request(&o, 0).output.count, 1);
    close_trace(&o);
    dsc_tokenizer_free(t);
}

static void test_llma(void **state)
{
    (void)state;
    char line[2000], document[801];
    memset(document, 'd', 800);
    document[800] = '\0';
    snprintf(line, sizeof line,
             "{\"query\": \"Why?\", \"docs\": [\"one\", \"%s\"], \"result\": {\"text\": \"So.\", "
             "\"finish_reason\": \"stop\", \"logprobs\": null}, \"extra\": 1}\n"
             "{\"query\": \"q\", \"docs\": [], \"result\": {\"text\": \"\"}, \"id\": 12}\n"
             "{\"query\": \"q\", \"docs\": [], \"result\": {\"text\": \"\"}, \"id\": null}\n",
             document);
    for (int code = 0; code < 2; code++) {
        dsc_import_options options = plain;
        options.semantics = code ? "code" : NULL;
        opened o = import_good(line, &options);
        assert_string_equal(o.info->format, "llma");
        assert_string_equal(o.info->semantics, code ? "code" : "paper");
        dsc_request q = request(&o, 0);
        char prompt[1000];
        snprintf(prompt, sizeof prompt, "docs:\none\n%s\nquery: Why?\nanswer:", document);
        expect_text(q.prompt_text, prompt);
        assert_int_equal(q.prompt.id[0], 256);
        assert_int_equal(q.prompt.count, 1 + strlen(prompt));
        expect_tokens(q.output, "So.$");
        expect_text(q.output_text, "So.");
        assert_int_equal(q.references, 2);
        expect_tokens(dsc_request_reference(&q, 0), "one");
        assert_int_equal(dsc_request_reference(&q, 1).count, code ? 768 : 800);
        expect_text(reference_text(&q, 1), document);
        assert_int_equal(q.reference_kind[1], DSC_REFERENCE_DOCUMENT);
        expect_text(q.metadata, "{\"finish_reason\":\"stop\"}");
        q = request(&o, 1);
        expect_text(q.id, "12");
        expect_text(q.prompt_text, "docs:\n\nquery: q\nanswer:");
        expect_tokens(q.output, "$");
        assert_int_equal(q.metadata.length, 0);
        expect_text(request(&o, 2).id, "2");
        close_trace(&o);
    }
}

// --- options ---------------------------------------------------------------------------------

static void test_options(void **state)
{
    (void)state;
    static const char line[] = "{" OK_FIELDS "}";
    dsc_error err;
    dsc_import_options o = plain;
    o.format = "nonesuch";
    assert_int_equal(import(line, bytes, &o, NULL, &err), DSC_EUSAGE);
    assert_string_equal(err.message,
                        "unknown import format 'nonesuch' (see: draftscope list formats)");
    o = plain;
    o.semantics = "prose";
    assert_int_equal(import(line, bytes, &o, NULL, &err), DSC_EUSAGE);
    assert_string_equal(err.message, "semantics 'prose' must be paper or code");
    o = plain;
    o.vocab_size = 300;
    assert_int_equal(import(line, bytes, &o, NULL, &err), DSC_EUSAGE);
    assert_string_equal(err.message,
                        "the vocabulary size is given as 300, but tokenizer bytes has 258 tokens");
    o.vocab_size = 258;
    assert_int_equal(import(line, bytes, &o, NULL, &err), 0);
    o.force = false;
    assert_int_equal(import(line, bytes, &o, NULL, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "exists"));
    remove_trace(out_path);
    assert_int_equal(import(line, bytes, &o, NULL, &err), 0);
    remove_trace(out_path);
    assert_int_equal(import(line, bytes, &o, NULL, NULL), 0);
    remove_trace(out_path);
}

static void test_without_tokenizer(void **state)
{
    (void)state;
    dsc_error err;
    dsc_import_options o = plain;
    static const char ids[] =
        "{\"prompt\": [7], \"output\": [8, 99], \"references\": [[1], {\"tokens\": [2]}]}\n"
        "{\"prompt\": {\"tokens\": [7], \"text\": \"dropped\"}, \"output\": []}\n";
    assert_int_equal(import(ids, NULL, &o, NULL, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message,
                           "If the file holds text, add --tokenizer tokenizer.json; if token "
                           "ids, --vocab-size N"));
    o.vocab_size = 100;
    o.eos = "</s>";
    assert_int_equal(import(ids, NULL, &o, NULL, &err), DSC_EUSAGE);
    o.eos = NULL;
    assert_int_equal(import(ids, NULL, &o, NULL, &err), 0);
    opened t = open_trace(out_path);
    assert_false(t.info->has_text);
    assert_int_equal(t.info->vocab_size, 100);
    assert_int_equal(t.info->eos_token, -1);
    assert_string_equal(t.info->tokenizer_name, "none");
    assert_int_equal(request(&t, 0).output.id[1], 99);
    assert_null(request(&t, 1).prompt_text.bytes);
    close_trace(&t);
    remove_trace(out_path);
    o.vocab_size = 99;
    assert_int_equal(import(ids, NULL, &o, NULL, &err), DSC_EINPUT);
    o.skip_errors = true;
    assert_int_equal(import("{\"prompt\": [1], \"output\": \"o\"}", NULL, &o, NULL, &err),
                     DSC_EUSAGE);
    assert_non_null(strstr(err.message, "in.jsonl:1: field 'output': text requires a tokenizer"));
}

typedef struct skips {
    int count;
    char text[1000];
} skips;

static void note_skip(void *user, const char *message)
{
    skips *s = user;
    size_t n = strlen(s->text);
    s->count++;
    snprintf(s->text + n, sizeof s->text - n, "%s;", strrchr(message, '/') + 1);
}

static void test_skip(void **state)
{
    (void)state;
    skips s = {0};
    int64_t left_out = -1;
    dsc_error err;
    dsc_import_options o = plain;
    o.skip_errors = true;
    o.skipped = note_skip;
    o.user = &s;
    int rc = import("{broken\n{" OK_FIELDS "}\n{\"prompt\": 1}\n{" OK_FIELDS ", \"id\": \"0\"}\n"
                    "{" OK_FIELDS "}\n",
                    bytes, &o, &left_out, &err);
    assert_int_equal(rc, 0);
    assert_int_equal(left_out, 3);
    assert_int_equal(s.count, 3);
    assert_string_equal(s.text,
                        "in.jsonl:1:7: string or '}' expected near 'broken';"
                        "in.jsonl:3: field 'prompt' must be a string, an array of token ids or an "
                        "object, not a number;in.jsonl:4: requests 0 and 1 have the same id '0';");
    opened t = open_trace(out_path);
    assert_int_equal(t.info->requests, 2);
    expect_text(request(&t, 1).id, "1"); // a number in the trace, not in the file
    assert_non_null(strstr(t.info->provenance, "\"lines_left_out\":3"));
    close_trace(&t);
    remove_trace(out_path);

    s = (skips){0};
    rc = import("{\"prompt\": \"p\"}\n{\"prompt\": 2}\n", bytes, &o, &left_out, &err);
    assert_int_equal(rc, DSC_EINPUT);
    assert_int_equal(left_out, 2);
    assert_non_null(
        strstr(err.message, "no requests: all 2 lines were skipped, the first because of: "));
    assert_non_null(strstr(err.message, "in.jsonl:1: field 'output' is missing"));
    assert_int_equal(import("", bytes, &o, NULL, &err), DSC_EINPUT);
    assert_string_equal(err.message, "no requests: the input is empty");
    assert_int_equal(import("{\"unknown\": 1}\n{" OK_FIELDS "}\n", bytes, &o, NULL, &err),
                     DSC_EINPUT);
    assert_non_null(strstr(err.message, "unrecognized format"));
    assert_int_equal(access(out_path, F_OK), -1);
}

// A NUL byte is a bad line; a broken archive is no line's fault.
static void test_skip_nul_and_damage(void **state)
{
    (void)state;
    const char *paths[] = {in_path};
    static const char text[] = "{" OK_FIELDS "}\nx\0y\n{" OK_FIELDS "}\n";
    int64_t left_out;
    dsc_error err;
    dsc_import_options o = plain;
    put_file(in_path, text, sizeof text - 1);
    int rc = dsc_import(paths, 1, bytes, out_path, &o, &left_out, &err);
    assert_int_equal(rc, DSC_EINPUT);
    assert_non_null(strstr(err.message, "in.jsonl:2: byte "));
    o.skip_errors = true;
    assert_int_equal(dsc_import(paths, 1, bytes, out_path, &o, &left_out, &err), 0);
    assert_int_equal(left_out, 1);
    remove_trace(out_path);

    struct stat st;
    gzFile f = gzopen(in_path, "wb");
    gzwrite(f, text, sizeof text - 1);
    gzclose(f);
    assert_int_equal(dsc_import(paths, 1, bytes, out_path, &o, &left_out, &err), 0);
    remove_trace(out_path);
    assert_int_equal(stat(in_path, &st), 0);
    assert_int_equal(truncate(in_path, st.st_size - 4), 0);
    assert_int_equal(dsc_import(paths, 1, bytes, out_path, &o, &left_out, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "truncated"));
    assert_int_equal(access(out_path, F_OK), -1);
}

typedef struct progress {
    int calls, stop_at;
    int64_t done, total;
} progress;

static int note_progress(void *user, int64_t done, int64_t total)
{
    progress *p = user;
    assert_true(done >= p->done);
    p->done = done;
    p->total = total;
    return ++p->calls == p->stop_at;
}

static void test_progress_and_provenance(void **state)
{
    (void)state;
    progress p = {0};
    dsc_error err;
    dsc_import_options o = plain;
    o.progress = note_progress;
    o.user = &p;
    o.command = "draftscope trace \xff import";
    dsc_buffer b = {0};
    for (int i = 0; i < 1000; i++)
        dsc_buffer_puts(&b, "{" OK_FIELDS "}\n", NULL);
    put_file(in_path, b.data, b.length);
    const char *twice[] = {in_path, in_path};
    assert_int_equal(dsc_import(twice, 2, bytes, out_path, &o, NULL, &err), 0);
    assert_true(p.calls > 2);
    assert_int_equal(p.done, 2 * b.length);
    assert_int_equal(p.total, 2 * b.length);
    opened t = open_trace(out_path);
    assert_int_equal(t.info->requests, 2000);
    expect_text(request(&t, 1999).id, "1999");
    char hex[DSC_SHA256_HEX], wanted[1000], source[300];
    dsc_sha256_file(in_path, hex, NULL);
    snprintf(source, sizeof source, "{\"file\":\"in.jsonl\",\"bytes\":%zu,\"sha256\":\"%s\"}",
             b.length, hex);
    snprintf(wanted, sizeof wanted,
             "{\"version\":\"1\",\"command\":\"draftscope trace ? import\",\"sources\":[%s,%s],"
             "\"lines_left_out\":0}",
             source, source);
    assert_string_equal(t.info->provenance, wanted);
    close_trace(&t);
    remove_trace(out_path);

    put_file(in_path, b.data, b.length / 100); // too little for a report on the way
    p = (progress){0};
    assert_int_equal(dsc_import(twice, 2, bytes, out_path, &o, NULL, &err), 0);
    assert_int_equal(p.calls, 1);
    assert_int_equal(p.done, 2 * (b.length / 100));
    remove_trace(out_path);
    put_file(in_path, b.data, b.length);
    p = (progress){.stop_at = 2};
    assert_int_equal(dsc_import(twice, 2, bytes, out_path, &o, NULL, &err), DSC_EINTERRUPT);
    assert_int_equal(access(out_path, F_OK), -1);
    const char *missing[] = {in_path, "/nowhere"};
    p = (progress){0};
    assert_int_equal(dsc_import(missing, 2, bytes, out_path, &o, NULL, &err), DSC_EINPUT);
    assert_int_equal(p.calls, 0); // found before anything was read
    dsc_buffer_fini(&b);
}

SUITE(import)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jsonl_forms),
        cmocka_unit_test(test_jsonl_references),
        cmocka_unit_test(test_jsonl_logprobs),
        cmocka_unit_test(test_jsonl_rows),
        cmocka_unit_test(test_text_is_utf8),
        cmocka_unit_test(test_eos),
        cmocka_unit_test(test_no_eos),
        cmocka_unit_test(test_llma),
        cmocka_unit_test_setup(test_options, no_trace),
        cmocka_unit_test_setup(test_without_tokenizer, no_trace),
        cmocka_unit_test_setup(test_skip, no_trace),
        cmocka_unit_test_setup(test_skip_nul_and_damage, no_trace),
        cmocka_unit_test_setup(test_progress_and_provenance, no_trace),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

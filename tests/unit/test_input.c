// SPDX-License-Identifier: Apache-2.0
// Lines out of plain, gzip and zstd files, whole, damaged and hostile.
#include "traces/files/input.h"

#include "base/memory.h"
#include "tests/close.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

static char folder[] = "/tmp/test_input.XXXXXX";
static char path[64];

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/in", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put_file(const void *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

// --- archives --------------------------------------------------------------------------------

// Appends one gzip member / one zstd frame (with checksum) that holds the text.
static void add_gzip(dsc_buffer *b, const char *text, size_t length)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t bound = deflateBound(&z, length);
    unsigned char *out = malloc(bound);
    z.next_in = (Bytef *)text;
    z.avail_in = (uInt)length;
    z.next_out = out;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(dsc_buffer_append(b, out, z.total_out, NULL), 0);
    deflateEnd(&z);
    free(out);
}

static void add_zstd(dsc_buffer *b, const char *text, size_t length)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(length);
    char *out = malloc(bound);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(c, out, bound, text, length);
    assert_false(ZSTD_isError(n));
    assert_int_equal(dsc_buffer_append(b, out, n, NULL), 0);
    ZSTD_freeCCtx(c);
    free(out);
}

static void add_skippable(dsc_buffer *b)
{
    assert_int_equal(dsc_buffer_append(b, "\x53\x2a\x4d\x18\x05\0\0\0hello", 13, NULL), 0);
}

// --- reading ---------------------------------------------------------------------------------

// All lines as "number:text|number:text|", then the error if there is one.
static int read_all(const char *name, dsc_buffer *out, dsc_error *err)
{
    dsc_input *in;
    dsc_line line;
    out->length = 0;
    dsc_buffer_append(out, "", 0, NULL);
    err->message[0] = '\0';
    int rc = dsc_input_open(&in, name, err);
    if (rc)
        return rc;
    while (!(rc = dsc_input_line(in, &line, err)) && line.bytes) {
        dsc_buffer_printf(out, NULL, "%lld:", (long long)line.number);
        dsc_buffer_append(out, line.bytes, line.length, NULL);
        dsc_buffer_puts(out, "|", NULL);
    }
    if (rc) { // for good, and it keeps saying so
        dsc_error again;
        assert_true(dsc_input_broken(in));
        assert_int_equal(dsc_input_line(in, &line, &again), rc);
        assert_string_equal(again.message, err->message);
    } else {
        assert_int_equal(dsc_input_line(in, &line, err), 0);
        assert_null(line.bytes);
    }
    dsc_input_close(in);
    return rc;
}

static void expect_lines(const char *lines)
{
    dsc_buffer out = {0};
    dsc_error err;
    int rc = read_all(path, &out, &err);
    if (rc)
        fail_msg("%s", err.message);
    assert_string_equal(out.data, lines);
    dsc_buffer_fini(&out);
}

// The error must hold each of the words.
static void expect_error(const void *bytes, size_t length, const char *a, const char *b)
{
    dsc_buffer out = {0};
    dsc_error err;
    put_file(bytes, length);
    int rc = read_all(path, &out, &err);
    if (rc != DSC_EINPUT || !strstr(err.message, a) || !strstr(err.message, b) ||
        !strstr(err.message, path))
        fail_msg("wanted '%s' and '%s', got %d: %s", a, b, rc, err.message);
    dsc_buffer_fini(&out);
}

static const struct {
    const char *text, *lines;
} cases[] = {
    {"", ""},
    {"\n", ""},
    {"a\n", "1:a|"},
    {"a", "1:a|"},
    {"a\nb", "1:a|2:b|"},
    {"\n\n \t\n  x \n", "4:  x |"},
    {"a\r\nb\r\n\r\nc\r", "1:a|2:b|4:c|"},
    {"a\r\r\n", "1:a\r|"},
    {"a\rb\n", "1:a\rb|"},
    {"\xef\xbb\xbf", ""},
    {"\xef\xbb\xbf\n", ""},
    {"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n", "1:{}|2:\xef\xbb\xbf{}|"},
    {"\xef\xbb", "1:\xef\xbb|"},
    {"\n\xef\xbb\xbfx", "2:\xef\xbb\xbfx|"},
    {"\x1f", "1:\x1f|"},
    {"(\xb5/", "1:(\xb5/|"},
    {"\x53*M", "1:\x53*M|"},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = cases[i].text;
        size_t n = strlen(text);
        dsc_buffer b = {0};
        put_file(text, n);
        expect_lines(cases[i].lines);
        for (size_t cut = 0; cut <= n; cut++) { // two members, two frames
            b.length = 0;
            add_gzip(&b, text, cut);
            add_gzip(&b, text + cut, n - cut);
            put_file(b.data, b.length);
            expect_lines(cases[i].lines);
            b.length = 0;
            add_skippable(&b);
            add_zstd(&b, text, cut);
            add_skippable(&b);
            add_zstd(&b, text + cut, n - cut);
            add_skippable(&b);
            put_file(b.data, b.length);
            expect_lines(cases[i].lines);
        }
        dsc_buffer_fini(&b);
    }
}

// Text that does not compress well, without line ends.
static char *noise(size_t length)
{
    char *s = malloc(length + 1);
    uint32_t x = 12345;
    for (size_t i = 0; i < length; i++) {
        x = x * 1664525 + 1013904223;
        s[i] = (char)('0' + (x >> 24) % 64);
    }
    s[length] = '\0';
    return s;
}

// Lines whose ends fall on and around the ends of the buffers (128 and 256 KiB).
static void test_long_lines(void **state)
{
    (void)state;
    char *s = noise((1 << 18) + 16);
    for (size_t step = 1 << 17; step <= 1 << 18; step *= 2)
        for (size_t n = step - 2; n <= step + 2; n++) {
            dsc_buffer text = {0}, lines = {0}, b = {0};
            dsc_buffer_printf(&text, NULL, "%.*s\n%.*s\n%.*s", (int)n, s, (int)n - 1, s + 1, 7, s);
            dsc_buffer_printf(&lines, NULL, "1:%.*s|2:%.*s|3:%.*s|", (int)n, s, (int)n - 1, s + 1,
                              7, s);
            put_file(text.data, text.length);
            expect_lines(lines.data);
            add_gzip(&b, text.data, text.length);
            put_file(b.data, b.length);
            expect_lines(lines.data);
            b.length = 0;
            add_zstd(&b, text.data, text.length);
            put_file(b.data, b.length);
            expect_lines(lines.data);
            dsc_buffer_fini(&text);
            dsc_buffer_fini(&lines);
            dsc_buffer_fini(&b);
        }
    free(s);
}

// --- damage ----------------------------------------------------------------------------------

static void test_truncated(void **state)
{
    (void)state;
    char *s = noise(900), byte[32];
    for (int kind = 0; kind < 2; kind++) {
        dsc_buffer b = {0};
        (kind ? add_zstd : add_gzip)(&b, s, 300);
        size_t first = b.length;
        (kind ? add_zstd : add_gzip)(&b, s + 300, 600);
        for (size_t n = kind ? 4 : 2; n < b.length; n++) {
            snprintf(byte, sizeof byte, "at byte %zu", n);
            if (n != first)
                expect_error(b.data, n, "truncated", byte);
        }
        put_file(b.data, first); // cut between two parts: nothing can tell
        dsc_buffer out = {0};
        dsc_error err;
        assert_int_equal(read_all(path, &out, &err), 0);
        dsc_buffer_fini(&out);
        dsc_buffer_fini(&b);
    }
    free(s);
}

// One changed byte gives an error or, in unused parts of the header, the same text.
static void test_corrupt(void **state)
{
    (void)state;
    const char *text = "the quick brown fox\njumps over the lazy dog, the quick brown dog\nend\n";
    dsc_buffer wanted = {0}, out = {0};
    dsc_error err;
    put_file(text, strlen(text));
    assert_int_equal(read_all(path, &wanted, &err), 0);
    for (int kind = 0; kind < 2; kind++) {
        dsc_buffer b = {0};
        (kind ? add_zstd : add_gzip)(&b, text, strlen(text));
        int errors = 0;
        for (size_t i = kind ? 4 : 2; i < b.length; i++)
            for (int bit = 0; bit < 8; bit++) {
                b.data[i] ^= (char)(1 << bit);
                put_file(b.data, b.length);
                int rc = read_all(path, &out, &err);
                b.data[i] ^= (char)(1 << bit);
                errors += rc == DSC_EINPUT;
                if (rc != DSC_EINPUT && (rc || strcmp(out.data, wanted.data)))
                    fail_msg("kind %d byte %zu bit %d: %d %s", kind, i, bit, rc, out.data);
            }
        assert_true(errors > 200);
        dsc_buffer_fini(&b);
    }
    dsc_buffer_fini(&wanted);
    dsc_buffer_fini(&out);
    expect_error("\x1f\x8b\x07\0\0\0\0\0\0\0\0\0", 12, "corrupt gzip", "near byte");
    expect_error("\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, "zstd",
                 "byte");
}

static void test_trailing_garbage(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        dsc_buffer b = {0};
        char byte[32];
        (kind ? add_zstd : add_gzip)(&b, "a\n", 2);
        snprintf(byte, sizeof byte, "at byte %zu", b.length);
        dsc_buffer_append(&b, "\0\0\0\0\0\0\0\0", 8, NULL);
        expect_error(b.data, b.length, "are not", byte);
        b.length -= 8;
        dsc_buffer_puts(&b, "{\"plain\": 1}\n", NULL);
        expect_error(b.data, b.length, "are not", byte);
        b.length -= 12;
        expect_error(b.data, b.length, "byte", ""); // "{" alone
        dsc_buffer_fini(&b);
    }
}

// A frame header (RFC 8878, 3.1.1.1) without content size, window 2^(10 + exponent), and an empty
// last block.
static void test_window(void **state)
{
    (void)state;
    unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00};
    put_file(frame, sizeof frame);
    expect_lines(""); // 128 MiB
    frame[5] = 18 << 3;
    expect_error(frame, sizeof frame, "window", "128 MiB");
    frame[5] = (17 << 3) + 1;
    expect_error(frame, sizeof frame, "window", "128 MiB");
}

// --- hostile sizes ---------------------------------------------------------------------------

// `mib` MiB of one byte, compressed to `path`; in each MiB the first `noisy` bytes (4096 at most)
// do not compress.
static void put_zstd_bomb(int c, int mib, size_t noisy)
{
    char *block = malloc(1 << 20), *random = noise((size_t)mib * 4096);
    FILE *f = fopen(path, "wb");
    size_t n = ZSTD_CStreamOutSize();
    char *out = malloc(n);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    memset(block, c, 1 << 20);
    for (int i = 0; i < mib; i++) {
        memcpy(block, random + i * 4096, noisy);
        ZSTD_inBuffer src = {block, 1 << 20, 0};
        ZSTD_EndDirective end = i + 1 == mib ? ZSTD_e_end : ZSTD_e_continue;
        size_t left;
        do {
            ZSTD_outBuffer dst = {out, n, 0};
            left = ZSTD_compressStream2(z, &dst, &src, end);
            assert_false(ZSTD_isError(left));
            fwrite(out, 1, dst.pos, f);
        } while (end == ZSTD_e_end ? left > 0 : src.pos < src.size);
    }
    ZSTD_freeCCtx(z);
    free(out);
    fclose(f);
    free(random);
    free(block);
}

// The same as members of 8 MiB: zlib is slow at this.
static void put_gzip_bomb(int c, int mib)
{
    dsc_buffer member = {0};
    char *text = malloc(8 << 20);
    memset(text, c, 8 << 20);
    add_gzip(&member, text, 8 << 20);
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < mib / 8; i++)
        fwrite(member.data, 1, member.length, f);
    fclose(f);
    free(text);
    dsc_buffer_fini(&member);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_SHADOWED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_SHADOWED 1
#endif

static void test_bombs(void **state)
{
    (void)state;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int zstd = 0; zstd < 2; zstd++)
        for (int i = 0; i < 4; i++) {
            dsc_buffer out = {0};
            dsc_error err;
            if (zstd) // the last is NUL
                put_zstd_bomb("x\n "[i], 200, 0);
            else
                put_gzip_bomb("x\n "[i], 200);
            int rc = read_all(path, &out, &err);
            if (rc != DSC_EINPUT || !strstr(err.message, "decompression bomb"))
                fail_msg("%d %d: %d %s", zstd, i, rc, err.message);
            dsc_buffer_fini(&out);
        }
    getrusage(RUSAGE_SELF, &after);
#if !defined(MEMORY_IS_SHADOWED)
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 200 << 10); // KiB; 200 MiB
#endif
}

static void test_below_the_guard(void **state)
{
    (void)state;
    dsc_input *in;
    dsc_line line;
    dsc_error err;
    put_zstd_bomb('x', 7, 0);
    assert_int_equal(dsc_input_open(&in, path, &err), 0);
    assert_int_equal(dsc_input_line(in, &line, &err), 0);
    assert_int_equal(line.length, 7 << 20);
    dsc_input_close(in);
}

// Expands some 500 times, which is allowed: it is the line that is refused.
static void test_line_limit(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    dsc_error err;
    put_zstd_bomb('x', 260, 2500);
    assert_int_equal(read_all(path, &out, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "in:1: the line is longer than the limit of 128 MiB"));
    dsc_buffer_fini(&out);
}

// Runs dsc_input on a pipe, as standard input, that a child fills: twice, or once byte by byte.
static int read_pipe(const char *block, size_t length, bool slowly, dsc_buffer *out, dsc_error *err)
{
    int fd[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    if (child == 0) {
        close(fd[0]);
        for (int i = 0; i < (slowly ? 1 : 2); i++)
            for (size_t at = 0; at < length;) {
                ssize_t n = write(fd[1], block + at, slowly ? 1 : length - at);
                if (slowly)
                    usleep(1000);
                if (n < 0)
                    _exit(1);
                at += (size_t)n;
            }
        _exit(0);
    }
    close(fd[1]);
    dup2(fd[0], STDIN_FILENO);
    close(fd[0]);
    int rc = read_all("-", out, err);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO); // closes our end: a child still writing gets SIGPIPE
        close(saved);
    } else {
        close(STDIN_FILENO);
    }
    waitpid(child, NULL, 0);
    return rc;
}

static void test_stdin(void **state)
{
    (void)state;
    dsc_buffer out = {0}, b = {0};
    dsc_error err;
    assert_int_equal(read_pipe("ab\ncd", 5, false, &out, &err), 0);
    assert_string_equal(out.data, "1:ab|2:cdab|3:cd|");
    assert_int_equal(read_pipe("", 0, false, &out, &err), 0);
    assert_string_equal(out.data, "");
    add_gzip(&b, "x\ny\n", 4);
    assert_int_equal(read_pipe(b.data, b.length, true, &out, &err), 0);
    assert_string_equal(out.data, "1:x|2:y|");
    assert_int_equal(read_pipe(b.data, b.length - 1, true, &out, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "stdin: truncated"));
    b.length = 0;
    add_zstd(&b, "x\ny\n", 4);
    assert_int_equal(read_pipe(b.data, b.length, true, &out, &err), 0);
    assert_string_equal(out.data, "1:x|2:y|");
    dsc_buffer_fini(&out);
    dsc_buffer_fini(&b);
}

// --- the rest --------------------------------------------------------------------------------

static void test_nul(void **state)
{
    (void)state;
    dsc_input *in;
    dsc_line line;
    dsc_error err;
    put_file("a\nb\0c\n\nd\n", 9);
    assert_int_equal(dsc_input_open(&in, path, &err), 0);
    assert_int_equal(dsc_input_line(in, &line, &err), 0);
    assert_int_equal(dsc_input_line(in, &line, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "in:2: byte 2 of the line is NUL"));
    assert_false(dsc_input_broken(in));
    assert_int_equal(dsc_input_line(in, &line, &err), 0);
    assert_int_equal(line.number, 4);
    assert_memory_equal(line.bytes, "d", 1);
    dsc_input_close(in);
}

static void test_identity(void **state)
{
    (void)state;
    char *s = noise(1 << 20), is[DSC_SHA256_HEX], wanted[DSC_SHA256_HEX];
    for (int kind = 0; kind < 3; kind++) {
        dsc_buffer b = {0};
        dsc_input *in;
        dsc_line line;
        dsc_error err;
        if (kind)
            (kind == 2 ? add_zstd : add_gzip)(&b, s, 1 << 20);
        else
            dsc_buffer_append(&b, s, 1 << 20, NULL);
        put_file(b.data, b.length);
        assert_int_equal(dsc_input_open(&in, path, &err), 0);
        assert_string_equal(dsc_input_name(in), path);
        assert_int_equal(dsc_input_position(in), 0);
        do {
            assert_int_equal(dsc_input_line(in, &line, &err), 0);
        } while (line.bytes);
        assert_int_equal(dsc_input_position(in), b.length);
        dsc_input_sha256(in, is);
        assert_int_equal(dsc_sha256_file(path, wanted, &err), 0);
        assert_string_equal(is, wanted);
        dsc_input_close(in);
        dsc_buffer_fini(&b);
    }
    free(s);
}

static void test_cannot_open(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    dsc_error err;
    assert_int_equal(read_all("/nowhere/at/all", &out, &err), DSC_EINPUT);
    assert_string_equal(err.message, "/nowhere/at/all: No such file or directory");
    dsc_input *in;
    assert_int_equal(dsc_input_open(&in, folder, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "directory"));
    // A name of 3000 bytes leaves room for what is wrong.
    char name[3001];
    for (int i = 0; i < 3000; i++)
        name[i] = i % 100 ? 'd' : '/';
    name[3000] = '\0';
    assert_int_equal(dsc_input_open(&in, name, &err), DSC_EINPUT);
    assert_true(strlen(err.message) < 400);
    assert_non_null(strstr(err.message, "ddd: No such file or directory"));
    dsc_input_close(NULL);
    dsc_buffer_fini(&out);
}

SUITE(input)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_corrupt),
        cmocka_unit_test(test_trailing_garbage),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_below_the_guard),
        cmocka_unit_test(test_line_limit),
        cmocka_unit_test(test_stdin),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_cannot_open),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

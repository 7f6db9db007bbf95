// SPDX-License-Identifier: Apache-2.0
// Throughput of the tokenizer, one core: CSV on stdout, name,MB,seconds,MB_per_s.
//
//   bench_tokenizer [TEXT-FILE [TOKENIZER.json...]]
//
// Without arguments: the Spec-Bench questions and both families of tokenizers from the test data
// folder ($DSC_TEST_DATA, default ../shared/data beside the source); exit 77 when it is absent.
#include "base/file.h"
#include "base/memory.h"
#include "tests/bench/bench.h"
#include "traces/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 32 * 1000 * 1000, REPEATS = 3 };

static int fail(const dsc_error *err)
{
    fprintf(stderr, "bench_tokenizer: %s\n", err->message);
    return 1;
}

static void report(const char *path, const char *what, size_t bytes, double seconds)
{
    const char *slash = strrchr(path, '/');
    printf("%s %s,%.1f,%.3f,%.1f\n", slash ? slash + 1 : path, what, (double)bytes / 1e6, seconds,
           (double)bytes / 1e6 / seconds);
}

// The text is encoded request by request, as an import does; the best of three rounds counts.
static int encode_all(dsc_encoder *e, const char *text, size_t length, size_t request,
                      dsc_tokens *tokens, double *best_s, dsc_error *err)
{
    *best_s = 1e9;
    for (int round = 0; round < REPEATS; round++) {
        tokens->count = 0;
        double start = cpu_s();
        for (size_t i = 0, n; i < length; i += n) {
            n = length - i < request ? length - i : request;
            while (i + n < length && ((unsigned char)text[i + n] & 0xC0) == 0x80)
                n++;
            int rc = dsc_encode(e, text + i, n, false, tokens, err);
            if (rc)
                return rc;
        }
        double seconds = cpu_s() - start;
        *best_s = seconds < *best_s ? seconds : *best_s;
    }
    return DSC_OK;
}

// Words of WORD letters: equal ones, random ones, and those of the text.
static int bench_words(dsc_encoder *e, const char *path, const char *text, size_t length,
                       dsc_tokens *tokens, dsc_error *err)
{
    static const char *const names[] = {"word of one letter", "word of random letters",
                                        "text without spaces"};
    enum { WORD = 1000 * 1000 };
    char *word = malloc(WORD);
    int rc = word ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    uint32_t random = 1;
    for (int kind = 0; !rc && kind < 3; kind++) {
        double seconds;
        size_t n = 0;
        for (size_t i = 0; n < WORD && i < length; i++) {
            random = random * 1664525 + 1013904223; // Numerical Recipes
            word[n] = kind == 0 ? 'a' : kind == 1 ? (char)('a' + (random >> 16) % 26) : text[i];
            n += (word[n] | 0x20) >= 'a' && (word[n] | 0x20) <= 'z';
        }
        rc = encode_all(e, word, n, n, tokens, &seconds, err);
        if (!rc)
            report(path, names[kind], n, seconds);
    }
    free(word);
    return rc;
}

static int bench(const char *path, const char *text, size_t length)
{
    dsc_error err = {0};
    dsc_tokenizer *t = NULL;
    dsc_encoder *e = NULL;
    dsc_tokens tokens = {0};
    dsc_buffer back = {0};
    double seconds, start = cpu_s();
    int rc = dsc_tokenizer_load(&t, path, &err);
    if (!rc)
        fprintf(stderr, "%s: loaded in %.3f s\n", path, cpu_s() - start);
    if (!rc)
        rc = dsc_encoder_new(&e, t, &err);
    if (!rc)
        rc = encode_all(e, text, length, 4096, &tokens, &seconds, &err);
    if (!rc) {
        report(path, "encode", length, seconds);
        start = cpu_s();
        rc = dsc_decode(t, tokens.id, tokens.count, false, &back, &err);
    }
    if (!rc)
        report(path, "decode", length, cpu_s() - start);
    if (!rc)
        rc = bench_words(e, path, text, length, &tokens, &err);
    dsc_buffer_fini(&back);
    dsc_tokens_fini(&tokens);
    dsc_encoder_free(e);
    dsc_tokenizer_free(t);
    return rc ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    char defaults[3][1024];
    static const char *const names[3] = {"specbench/questions.jsonl", "tokenizers/gpt2.json",
                                         "tokenizers/llama2.json"};
    const char *data = getenv("DSC_TEST_DATA"), *source = getenv("top_srcdir");
    for (int i = 0; i < 3; i++)
        if (data)
            snprintf(defaults[i], sizeof defaults[i], "%s/%s", data, names[i]);
        else
            snprintf(defaults[i], sizeof defaults[i], "%s/../shared/data/%s", source ? source : ".",
                     names[i]);
    dsc_error err = {0};
    char *sample;
    size_t length;
    int rc =
        dsc_read_file(&sample, &length, argc > 1 ? argv[1] : defaults[0], (size_t)1 << 30, &err);
    if (rc || length == 0) {
        fprintf(stderr, "bench_tokenizer: %s\n", rc ? err.message : "empty text");
        return argc > 1 ? 1 : 77;
    }
    dsc_buffer text = {0};
    while (!rc && text.length < TEXT_BYTES)
        rc = dsc_buffer_append(&text, sample, length, &err);
    free(sample);
    if (rc)
        return fail(&err);
    puts("name,MB,seconds,MB_per_s");
    for (int i = 1; i < 3 && argc <= 2 && !rc; i++)
        rc = bench(defaults[i], text.data, text.length);
    for (int i = 2; i < argc && !rc; i++)
        rc = bench(argv[i], text.data, text.length);
    dsc_buffer_fini(&text);
    return rc || fclose(stdout) ? 1 : 0;
}

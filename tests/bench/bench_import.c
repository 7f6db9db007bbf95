// SPDX-License-Identifier: Apache-2.0
// Speed of an import and its parts, and of reading the trace: CSV on stdout.
//
//   bench_import [TOKENIZER FILE.jsonl]...
//
// A file is repeated to 32 MB. `text` is what is turned into tokens: the format llma writes each
// document into the prompt, too. Without arguments: the sample with the bytes tokenizer and with
// its own, and LLMA's development set with the tokenizers of GPT-2 and Llama 2 where the test data
// folder ($DSC_TEST_DATA, default ../shared/data beside the source) is present. Medians of ROUNDS,
// in which one and two threads, or what else is compared, take turns.
#include "base/order.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/bench/bench.h"
#include "traces/import/import_record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORK "bench_import.jsonl"
#define TRACE "bench_import.dst"

enum { INPUT_BYTES = 32 * 1000 * 1000, ROUNDS = 5 };

static double median(double x[ROUNDS])
{
    qsort(x, ROUNDS, sizeof *x, dsc_by_real);
    return x[ROUNDS / 2];
}

static void report(const char *name, const char *what, double bytes, double seconds)
{
    printf("%s,%s,%.1f,%.3f,%.1f\n", name, what, bytes / 1e6, seconds, bytes / 1e6 / seconds);
    fflush(stdout);
}

// --- the input ---------------------------------------------------------------------------------

static int write_input(const char *path, size_t *bytes, dsc_error *err)
{
    char *text;
    size_t length;
    int rc = dsc_read_file(&text, &length, path, (size_t)1 << 30, err);
    if (rc)
        return rc;
    FILE *f = fopen(WORK, "wb");
    *bytes = 0;
    while (f && *bytes < INPUT_BYTES) {
        fwrite(text, 1, length, f);
        if (length && text[length - 1] != '\n')
            fputc('\n', f);
        *bytes += length + 1;
    }
    if (!f || ferror(f) || fclose(f))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "%s", WORK);
    struct stat st;
    if (!rc && stat(WORK, &st) == 0)
        *bytes = (size_t)st.st_size;
    free(text);
    return rc;
}

// --- the parts, one thread -----------------------------------------------------------------------

enum part { LINES, JSON, JANSSON, TOKENS, HASH, WRITE, PARTS };
static const char *const part_name[PARTS] = {
    "lines, hashed", "json",   "json by jansson alone",
    "tokens",        "sha256", "trace, hashed and written"};

typedef struct parts {
    double s[PARTS];
    double text_bytes; // turned into tokens
} parts;

static int tokenize(dsc_import_record *r, const json_t *json, const dsc_import_driver *driver,
                    const dsc_tokenizer *t, dsc_encoder *e, double *bytes, dsc_error *err)
{
    dsc_import_options o = {.semantics = "paper", .vocab_size = dsc_tokenizer_vocab_size(t)};
    dsc_import_record_reset(r);
    dsc_ends ends;
    int rc = driver->read(json, &o, r, err);
    if (!rc)
        rc = dsc_ends_read(&ends, t, NULL, err);
    if (!rc)
        rc = dsc_import_record_finish(r, t, e, &ends, err);
    if (!rc)
        rc = dsc_import_record_seal(r, err);
    *bytes += (double)(r->prompt.text.length + r->output.text.length);
    for (size_t i = 0; i < r->references; i++)
        *bytes += (double)r->reference[i].text.length;
    return rc;
}

// Without ids of their own: the requests are counted.
static int write_request(dsc_trace_writer *w, const dsc_import_record *r, int64_t number,
                         dsc_error *err)
{
    enum { MOST = 64 };
    dsc_token_view tokens[MOST];
    dsc_text_view texts[MOST];
    char id[24];
    size_t n = r->references < MOST ? r->references : MOST;
    for (size_t i = 0; i < n; i++) {
        const dsc_import_text *t = &r->reference[i];
        tokens[i] = (dsc_token_view){t->tokens.id, (int64_t)t->tokens.count};
        texts[i] = t->text;
    }
    const dsc_request_input q = {
        .id = {id, snprintf(id, sizeof id, "%lld", (long long)number)},
        .prompt = {r->prompt.tokens.id, (int64_t)r->prompt.tokens.count},
        .output = {r->output.tokens.id, (int64_t)r->output.tokens.count},
        .prompt_text = r->prompt.text,
        .output_text = r->output.text,
        .references = (int64_t)n,
        .reference = tokens,
        .reference_text = texts,
        .kind = r->kind,
    };
    return dsc_trace_writer_add(w, &q, err);
}

static int open_writer(dsc_trace_writer **w, const dsc_tokenizer *t, dsc_error *err)
{
    dsc_trace_info info = {.tokenizer_name = (char *)dsc_tokenizer_name(t),
                           .vocab_size = dsc_tokenizer_vocab_size(t),
                           .eos_token = dsc_tokenizer_eos(t),
                           .has_text = true,
                           .format = "bench",
                           .semantics = "paper",
                           .provenance = "{}"};
    memcpy(info.tokenizer_sha256, dsc_tokenizer_sha256(t), DSC_SHA256_HEX);
    return dsc_trace_writer_open(w, TRACE, &info, true, 0, err);
}

// Adds the time since *start to a part.
static void lap(parts *p, enum part which, double *start)
{
    double now = cpu_s();
    p->s[which] += now - *start;
    *start = now;
}

static int time_parts(parts *p, const dsc_tokenizer *t, dsc_error *err)
{
    *p = (parts){.text_bytes = 0};
    const dsc_import_driver *driver = NULL;
    dsc_import_record record = {0};
    dsc_encoder *e = NULL;
    dsc_input *in = NULL;
    dsc_trace_writer *w = NULL;
    int64_t requests = 0;
    dsc_sha256 sha;
    dsc_sha256_init(&sha);
    int rc = dsc_encoder_new(&e, t, err);
    if (!rc)
        rc = dsc_input_open(&in, WORK, err);
    if (!rc)
        rc = open_writer(&w, t, err);
    double start = cpu_s();
    for (dsc_line line; !rc && !(rc = dsc_input_line(in, &line, err)) && line.bytes;) {
        json_t *json, *slow;
        lap(p, LINES, &start);
        rc = dsc_import_parse(&json, &line, WORK, err);
        lap(p, JSON, &start);
        slow = json_loadb(line.bytes, line.length, JSON_REJECT_DUPLICATES, NULL);
        lap(p, JANSSON, &start);
        json_decref(slow);
        dsc_sha256_update(&sha, line.bytes, line.length);
        lap(p, HASH, &start);
        if (!rc && !driver)
            rc = dsc_import_probe(&driver, json, err);
        if (!rc)
            rc = tokenize(&record, json, driver, t, e, &p->text_bytes, err);
        lap(p, TOKENS, &start);
        if (!rc)
            rc = write_request(w, &record, requests++, err);
        lap(p, WRITE, &start);
        json_decref(json);
    }
    start = cpu_s();
    if (rc)
        dsc_trace_writer_abort(w);
    else
        rc = dsc_trace_writer_commit(w, "{}", err);
    lap(p, WRITE, &start);
    dsc_input_close(in);
    dsc_encoder_free(e);
    dsc_import_record_fini(&record);
    return rc;
}

// --- reading a trace ---------------------------------------------------------------------------

// Opening a shard checks every offset, token and number; the texts are added up here.
static uint64_t sum_text(dsc_text_view text)
{
    uint64_t sum = 0, eight;
    for (int64_t i = 0; i + 8 <= text.length; i += 8) {
        memcpy(&eight, text.bytes + i, 8);
        sum += eight;
    }
    return sum;
}

static int read_trace(uint64_t *sum, dsc_error *err)
{
    dsc_trace *t;
    int rc = dsc_trace_open(&t, TRACE, err);
    for (int64_t s = 0; !rc && s < dsc_trace_shards(t); s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, t, s, err);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            *sum += sum_text(q.prompt_text) + sum_text(q.output_text);
            for (int64_t r = 0; r < q.references; r++)
                *sum += sum_text(
                    (dsc_text_view){q.reference_text + q.reference_text_offset[r],
                                    q.reference_text_offset[r + 1] - q.reference_text_offset[r]});
        }
        if (!rc)
            dsc_shard_close(shard);
    }
    dsc_trace_close(t);
    return rc;
}

// Copies the shards as cat does: read() into 128 KiB, write() to /dev/null.
static int cat_trace(double *bytes, dsc_error *err)
{
    static char block[128 << 10];
    int null = open("/dev/null", O_WRONLY), rc = DSC_OK;
    *bytes = 0;
    for (int i = 0; !rc; i++) {
        char path[64];
        snprintf(path, sizeof path, TRACE "/shard-%05d.safetensors", i);
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            break;
        ssize_t n;
        while ((n = read(fd, block, sizeof block)) > 0 && write(null, block, (size_t)n) == n)
            *bytes += (double)n;
        if (n)
            rc = dsc_fail_errno(err, DSC_EIO, errno, "%s", path);
        close(fd);
    }
    close(null);
    return rc;
}

static int bench_read(const char *name, dsc_error *err)
{
    double bytes = 0, cat[ROUNDS], own[ROUNDS], ratio[ROUNDS];
    uint64_t sum = 0;
    int rc = DSC_OK;
    for (int round = 0; round < ROUNDS && !rc; round++) {
        double start = cpu_s();
        rc = cat_trace(&bytes, err);
        double middle = cpu_s();
        if (!rc)
            rc = read_trace(&sum, err);
        cat[round] = middle - start;
        own[round] = cpu_s() - middle;
        ratio[round] = cat[round] / own[round];
    }
    if (rc)
        return rc;
    report(name, "cat of the trace (processor time)", bytes, median(cat));
    report(name, "reading of the trace (processor time)", bytes, median(own));
    printf("%s,reading over cat,,,%.2f\n", name, median(ratio));
    fprintf(stderr, "%s: sum %llx\n", name, (unsigned long long)sum); // so that it is needed
    return DSC_OK;
}

// --- the whole ---------------------------------------------------------------------------------

// Starts VmHWM, the largest resident size so far, anew.
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

static double peak_kib(void)
{
    char line[128];
    double kib = NAN;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmHWM: %lf", &kib);
    if (f)
        fclose(f);
    return kib;
}

static int bench_import(const char *name, const dsc_tokenizer *t, double file, double text,
                        dsc_error *err)
{
    enum { THREADS = 2 };
    static const char *const paths[] = {WORK};
    double wall[THREADS][ROUNDS], cpu[THREADS][ROUNDS], peak[THREADS][ROUNDS];
    char what[64];
    int rc = DSC_OK;
    for (int i = 0; i < THREADS * ROUNDS && !rc; i++) {
        int k = i % THREADS, round = i / THREADS;
        const dsc_import_options o = {.force = true, .threads = k + 1};
        reset_peak();
        double start = wall_s(), used = cpu_s();
        rc = dsc_import(paths, 1, t, TRACE, &o, NULL, err);
        wall[k][round] = wall_s() - start;
        cpu[k][round] = cpu_s() - used;
        peak[k][round] = peak_kib();
    }
    for (int k = 0; k < THREADS && !rc; k++) {
        snprintf(what, sizeof what, "import with %d threads: text", k + 1);
        report(name, what, text, median(wall[k]));
        snprintf(what, sizeof what, "import with %d threads: text (processor time)", k + 1);
        report(name, what, text, median(cpu[k]));
        snprintf(what, sizeof what, "import with %d threads: file", k + 1);
        report(name, what, file, wall[k][ROUNDS / 2]);
        printf("%s,import with %d threads: peak memory,%.1f,,\n", name, k + 1,
               median(peak[k]) * 1024 / 1e6);
    }
    return rc;
}

static int bench(const char *tokenizer, const char *path)
{
    dsc_error err = {0};
    dsc_tokenizer *t = NULL;
    char name[128];
    size_t file = 0;
    const char *a = strrchr(path, '/'), *b = strrchr(tokenizer, '/');
    snprintf(name, sizeof name, "%s %s", a ? a + 1 : path, b ? b + 1 : tokenizer);
    int rc = dsc_tokenizer_load(&t, tokenizer, &err);
    if (!rc)
        rc = write_input(path, &file, &err);
    double part[PARTS][ROUNDS], text = 0;
    for (int round = 0; round < ROUNDS && !rc; round++) {
        parts p;
        rc = time_parts(&p, t, &err);
        for (int i = 0; i < PARTS; i++)
            part[i][round] = p.s[i];
        text = p.text_bytes;
    }
    for (int i = 0; i < PARTS && !rc; i++)
        report(name, part_name[i], i == TOKENS || i == WRITE ? text : (double)file,
               median(part[i]));
    if (!rc)
        rc = bench_import(name, t, (double)file, text, &err);
    if (!rc)
        rc = bench_read(name, &err);
    if (rc)
        fprintf(stderr, "bench_import: %s\n", err.message);
    dsc_tokenizer_free(t);
    return rc;
}

static int bench_all(const char *source, const char *data)
{
    static const char *const known[2] = {"gpt2", "llama2"};
    char lines[512], tokenizer[512];
    snprintf(lines, sizeof lines, "%.400s/traces/sample/rag.jsonl", source);
    snprintf(tokenizer, sizeof tokenizer, "%.400s/traces/sample/tokenizer.json", source);
    int rc = bench("bytes", lines);
    if (!rc)
        rc = bench(tokenizer, lines);
    for (int i = 0; i < 2 && !rc; i++) {
        snprintf(lines, sizeof lines, "%.400s/llma/rag.jsonl", data);
        snprintf(tokenizer, sizeof tokenizer, "%.400s/tokenizers/%s.json", data, known[i]);
        if (access(lines, R_OK) == 0 && access(tokenizer, R_OK) == 0)
            rc = bench(tokenizer, lines);
    }
    return rc;
}

int main(int argc, char **argv)
{
    const char *data = getenv("DSC_TEST_DATA"), *source = getenv("top_srcdir");
    char beside[512];
    int rc = 0;
    source = source ? source : ".";
    snprintf(beside, sizeof beside, "%.400s/../shared/data", source);
    puts("name,what,MB,seconds,MB_per_s");
    for (int i = 1; i + 1 < argc && !rc; i += 2)
        rc = bench(argv[i], argv[i + 1]);
    if (argc == 1)
        rc = bench_all(source, data ? data : beside);
    unlink(WORK);
    return rc || fclose(stdout) ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
// Import of every format that makes a trace. Input: a byte for the format (0: probed), a byte that
// chooses (bit 0: the bytes tokenizer, 1: as the source's code, 2: bad lines left out, 3: the file
// of questions comes first and ends with 0xff, 4: fields are named by a map, 5: of chats the last
// turn with a template, 6: one model), the file.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "traces/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FUZZ_FORMAT(import, .head = 2, .parts = 2, .mark = 0xff, .change = {fuzz_change_lines})

enum { VOCAB = 1000 };

// Checks that the imported trace passes verification. *hash receives its hash.
static void check_trace(const char *path, char hash[DSC_SHA256_HEX])
{
    dsc_trace *t;
    dsc_error err = {0};
    int rc = dsc_trace_open(&t, path, &err);
    fuzz_require(rc == DSC_OK, "what was imported can be opened", &err);
    rc = dsc_trace_verify(t, &err);
    fuzz_require(rc == DSC_OK, "what was imported can be verified", &err);
    memcpy(hash, dsc_trace_get_info(t)->hash, DSC_SHA256_HEX);
    FILE *f = fopen(fuzz_path("out.jsonl"), "w");
    if (!f)
        exit(99);
    rc = dsc_trace_export(t, "jsonl", f, &err);
    fuzz_require(rc == DSC_OK && !fclose(f), "what was imported can be exported", &err);
    dsc_trace_close(t);
}

// Exported and imported again it is the same trace.
static void check_again(const dsc_tokenizer *tokenizer, const char *hash)
{
    const dsc_import_options options = {
        .format = "jsonl", .vocab_size = tokenizer ? 0 : VOCAB, .force = true};
    const char *path = fuzz_path("out.jsonl"), *out = fuzz_path("again.dst");
    char again[DSC_SHA256_HEX];
    dsc_error err = {0};
    int rc = dsc_import(&path, 1, tokenizer, out, &options, NULL, &err);
    fuzz_require(rc == DSC_OK, "what was exported can be imported", &err);
    check_trace(out, again);
    fuzz_require(strcmp(hash, again) == 0, "import, export, import: the same trace", NULL);
}

FUZZ_TARGET(import)
{
    static const char *const formats[] = {
        NULL,    "llma", "specbench",  "mtbench", "eagle", "alpaca", "acclen",   "vllm",
        "jsonl", "chat", "completion", "stream",  "bench", "vcr",    "llamacpp", "mapped"};
    enum { FORMATS = sizeof formats / sizeof *formats };
    static const char *const templates[] = {NULL, "llama3.1", "qwen3", "gpt-oss"};
    static dsc_tokenizer *bytes; // immutable, kept
    fuzz_bytes in = {data, size};
    const char *format = formats[fuzz_byte(&in) % FORMATS];
    uint8_t choice = fuzz_byte(&in);
    fuzz_bytes questions = {NULL, 0};
    if (choice & 8)
        questions = fuzz_before(&in, 0xff);
    if (!bytes && dsc_tokenizer_load(&bytes, "bytes", NULL))
        exit(99);
    const dsc_tokenizer *tokenizer = choice & 1 ? bytes : NULL;
    const dsc_import_options options = {
        .format = format,
        .semantics = choice & 2 ? "code" : "paper",
        .vocab_size = tokenizer ? 0 : VOCAB,
        .questions = choice & 8 ? fuzz_file("questions", questions.data, questions.size) : NULL,
        .skip_errors = choice & 4,
        .map = choice & 16
                   ? "prompt=q,output=a.0.b|c,references=r,steps.accepted=s,arrival_s=t,id=i"
                   : NULL,
        .last_turn = choice & 32,
        .chat_template = templates[(choice >> 5 & 1) + (choice >> 6 & 2)],
        .lossy = choice & 2,
        .model = choice & 64 ? "m" : NULL,
        .force = true,
    };
    const char *path = fuzz_file("in", in.data, in.size), *out = fuzz_path("a.dst");
    char hash[DSC_SHA256_HEX];
    dsc_error err = {0};
    int rc = dsc_import(&path, 1, tokenizer, out, &options, NULL, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    check_trace(out, hash);
    check_again(tokenizer, hash);
    return 0;
}

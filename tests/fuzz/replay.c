// SPDX-License-Identifier: Apache-2.0
// Runs every fuzz target over its corpus, corpus/NAME/*, without libFuzzer: what once went wrong
// stays right. Targets that have a mutator also run over changes of each input, the same ones every
// time. A defect stops the process after the name of the input; a changed input is replay.input.
//   replay [NAME...]   all targets, or those named
//   replay NAME FILE   a target on an input that it does not know
#include "tests/fuzz/mutate.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// X: targets without a mutator, F: with one.
#ifdef FUZZ_LIVE
#define LIVE_TARGETS(F) F(config) F(prompts)
#else
#define LIVE_TARGETS(F)
#endif
#define TARGETS(X, F)                                                                              \
    LIVE_TARGETS(F)                                                                                \
    X(array)                                                                                       \
    F(cost)                                                                                        \
    X(gguf)                                                                                        \
    F(import)                                                                                      \
    X(input)                                                                                       \
    F(model)                                                                                       \
    X(option)                                                                                      \
    F(safetensors)                                                                                 \
    F(serve)                                                                                       \
    F(shard)                                                                                       \
    F(table)                                                                                       \
    F(tokenizer)                                                                                   \
    F(totals)                                                                                      \
    F(trace)                                                                                       \
    F(tree)

#define DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
#define DECLARE_FORMAT(name)                                                                       \
    DECLARE(name)                                                                                  \
    extern const fuzz_format fuzz_format_##name;
TARGETS(DECLARE, DECLARE_FORMAT)

#define ENTRY(name) {#name, fuzz_##name, NULL},
#define ENTRY_FORMAT(name) {#name, fuzz_##name, &fuzz_format_##name},
static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
    const fuzz_format *format;
} targets[] = {TARGETS(ENTRY, ENTRY_FORMAT)};
enum { COUNT = sizeof targets / sizeof *targets };

// In memory of its own, so that a sanitizer sees a byte too many. The time limit is far beyond what
// any machine needs: a hang.
static void run_bytes(const struct target *t, const void *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        exit(99);
    if (size)
        memcpy(exact, bytes, size);
    alarm(300);
    t->run(exact, size);
    alarm(0);
    free(exact);
}

static void save_input(const dsc_buffer *input)
{
    FILE *f = fopen("replay.input", "wb");
    const bool written =
        f && (!input->length || fwrite(input->data, 1, input->length, f) == input->length);
    if (!written || fclose(f)) {
        perror("replay.input");
        exit(99);
    }
}

// Runs changes of an input, changes of these, and so on.
static void run_changes(const struct target *t, fuzz_bytes input)
{
    enum { CHAINS = 8, LENGTH = 8 };
    for (uint32_t i = 0; i < CHAINS; i++) {
        dsc_buffer before = {0};
        fuzz_bytes from = input;
        for (uint32_t k = 0; k < LENGTH && from.size; k++) {
            dsc_buffer changed = {0};
            fuzz_mutate(t->format, from, i * LENGTH + k, &changed);
            save_input(&changed);
            run_bytes(t, changed.data, changed.length);
            dsc_buffer_fini(&before);
            before = changed;
            from = (fuzz_bytes){(uint8_t *)changed.data, changed.length};
        }
        dsc_buffer_fini(&before);
    }
    unlink("replay.input");
}

static void run_file(const struct target *t, const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(99);
    }
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    run_bytes(t, bytes, n);
    if (t->format)
        run_changes(t, (fuzz_bytes){bytes, n});
}

static int is_input(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int run_corpus(const struct target *t)
{
    char folder[500], path[800];
    const char *top = getenv("top_srcdir");
    struct dirent **entry;
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", top ? top : ".", t->name);
    int n = scandir(folder, &entry, is_input, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        run_file(t, path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    printf("%s - %s: %d inputs\n", n > 0 ? "ok" : "not ok", t->name, n > 0 ? n : 0);
    return n > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int failed = 0;
    const bool file = argc == 3 && access(argv[2], R_OK) == 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (file) {
            if (strcmp(argv[1], targets[i].name) == 0)
                run_file(&targets[i], argv[2]);
            continue;
        }
        int named = argc == 1;
        for (int a = 1; a < argc; a++)
            named |= strcmp(argv[a], targets[i].name) == 0;
        failed += named ? run_corpus(&targets[i]) : 0;
    }
    return failed != 0;
}

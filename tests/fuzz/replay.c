// SPDX-License-Identifier: Apache-2.0
// Runs every fuzz target over its corpus, corpus/NAME/*, without libFuzzer: what once went wrong
// stays right. A defect stops the process behind the name of the input.
//   replay [NAME...]   all targets, or those named
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef FUZZ_LIVE
#define LIVE_TARGETS(X) X(config) X(prompts)
#else
#define LIVE_TARGETS(X)
#endif
#define TARGETS(X)                                                                                 \
    LIVE_TARGETS(X)                                                                                \
    X(array)                                                                                       \
    X(cost)                                                                                        \
    X(import)                                                                                      \
    X(input)                                                                                       \
    X(model)                                                                                       \
    X(option)                                                                                      \
    X(safetensors)                                                                                 \
    X(shard)                                                                                       \
    X(table)                                                                                       \
    X(tokenizer)                                                                                   \
    X(totals)                                                                                      \
    X(trace)

#define DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
TARGETS(DECLARE)

#define ENTRY(name) {#name, fuzz_##name},
static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {TARGETS(ENTRY)};
enum { COUNT = sizeof targets / sizeof *targets };

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
    alarm(300);                         // far beyond what any machine needs: a hang
    uint8_t *exact = malloc(n ? n : 1); // so that a sanitizer sees a byte too many
    if (!exact)
        exit(99);
    memcpy(exact, bytes, n);
    t->run(exact, n);
    free(exact);
    alarm(0);
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
    for (size_t i = 0; i < COUNT; i++) {
        int named = argc == 1;
        for (int a = 1; a < argc; a++)
            named |= strcmp(argv[a], targets[i].name) == 0;
        failed += named ? run_corpus(&targets[i]) : 0;
    }
    return failed != 0;
}

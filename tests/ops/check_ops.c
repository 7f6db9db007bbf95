// SPDX-License-Identifier: Apache-2.0
// check_ops [--device cuda[:N]] [--quick] [--bench[=LIST]]: every operation of a device against the
// CPU's. Exit code 0: all agree; 1: some do not; 2: usage; 3: the device's memory does not suffice;
// 77: there is no such device.
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *device, *sections; // sections of the benchmark; "": all; NULL: run the checks
    bool open;                     // only open the device and test that it works
} options;

static const char usage[] =
    "Usage: check_ops [--device cuda[:N]|cpu] [--quick] [--bench[=LIST]] [--prefetch-mb N] "
    "[--open]\n"
    "  --quick          skip the larger shapes and vocabularies\n"
    "  --bench[=LIST]   measure times instead; LIST is any of\n"
    "                   " BENCH_SECTIONS ", with commas between\n"
    "  --prefetch-mb N  let a product request at most N MB of weights before its inputs are "
    "ready;\n"
    "                   0 turns that off\n"
    "  --open           open the device and print its memory and read bandwidth\n";

// A number >= 0 and nothing after it.
static bool read_megabytes(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end > text && !*end && *out >= 0 && isfinite(*out);
}

static bool wrong(const char *option, const char *expected)
{
    fprintf(stderr, "check_ops: %s: expected %s\n", option, expected);
    return false;
}

// Parses the option at argv[*at]; *at advances to its value.
static bool read_option(char **argv, int *at, check *c, options *o)
{
    const char *name = argv[*at], *value = argv[*at + 1];
    const bool takes_value = !strcmp(name, "--device") || !strcmp(name, "--prefetch-mb");
    if (takes_value && !value)
        return wrong(name, "a value after it");
    *at += takes_value;
    if (!strcmp(name, "--device"))
        o->device = value;
    else if (!strcmp(name, "--prefetch-mb"))
        return read_megabytes(value, &c->prefetch_mb) ||
               wrong(name, "a number of megabytes, 0 or more");
    else if (!strcmp(name, "--quick"))
        c->quick = true;
    else if (!strcmp(name, "--open"))
        o->open = true;
    else if (!strcmp(name, "--bench"))
        o->sections = "";
    else if (!strncmp(name, "--bench=", 8))
        return check_bench_sections(o->sections = name + 8) ||
               wrong(name, "any of " BENCH_SECTIONS ", with commas between");
    else
        return wrong(name, "one of the options that --help lists");
    return true;
}

// Running a product tests more than that the device answers: it fails if the program has no code
// for the device or a library is missing.
static void check_open(check *c)
{
    double available = 0, total = 0;
    live_probe probe;
    check_call(c, c->device->type->memory.available(c->device, &available, &total, &c->error),
               "memory");
    check_call(c, c->device->type->probe(c->device, DSC_F32, &probe, &c->error), "probe");
    printf("%s: %.1f of %.1f GB are free, reads %.1f GB/s\n", c->device->device, available * 1e-9,
           total * 1e-9, probe.read_bytes_s * 1e-9);
}

static void check_all(check *c, live_backend *invariant)
{
    check_rows(c);
    check_products(c);
    check_dists(c);
    check_overlap(c);
    check_attention(c);
    check_passes(c);
    check_invariance(c, invariant);
    printf("%" PRId64 " passed, %" PRId64 " failed\n", c->passed, c->failed);
}

int main(int argc, char **argv)
{
    check c = {.draws = 1, .prefetch_mb = -1};
    options o = {.device = "cuda"};
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) == EOF || fflush(stdout) ? 1 : 0;
    for (int i = 1; i < argc; i++)
        if (!read_option(argv, &i, &c, &o))
            return 2;
    live_backend *invariant = NULL;
    int status = live_backend_open(&c.device, o.device, 2, false, &c.error);
    if (!status)
        status = live_backend_open(&invariant, o.device, 2, true, &c.error);
    if (!status)
        status = live_backend_cpu(&c.cpu, 2, false, &c.error);
    if (status) {
        fprintf(stderr, "check_ops: %s\n", c.error.message);
        return status == DSC_EABSENT ? 77 : dsc_exit_code(status);
    }
    if (c.prefetch_mb >= 0)
        c.device->prefetch_bytes = (int64_t)(c.prefetch_mb * 1e6);
    printf("# %s against the CPU\n", c.device->device);
    if (o.open)
        check_open(&c);
    else if (o.sections)
        check_bench(&c, o.sections);
    else
        check_all(&c, invariant);
    c.device->type->close(c.device);
    invariant->type->close(invariant);
    c.cpu->type->close(c.cpu);
    return c.failed || fflush(stdout) || ferror(stdout) ? 1 : 0;
}

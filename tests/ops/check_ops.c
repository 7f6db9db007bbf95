// SPDX-License-Identifier: Apache-2.0
// check_ops [--device D] [--quick] [--bench] [--only LIST]: every operation of a device against the
// CPU's, or their times. Exit code 0: all agree; 1: some do not, or the device failed; 2: usage; 3:
// the device's memory does not suffice; 77: there is no such device.
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *device, *only; // only: sections; "": all
    bool bench, open;          // open: only open the device and test that it works
} options;

static const struct {
    const char *name;
    void (*run)(check *c);
} sections[] = {{"rows", check_rows},
                {"products", check_products},
                {"attention", check_attention},
                {"passes", check_passes},
                {"dists", check_dists},
                {"overlap", check_overlap},
                {"invariance", check_invariance}};
enum { SECTIONS = sizeof sections / sizeof *sections };
#define CHECK_SECTIONS "rows, products, attention, passes, dists, overlap, invariance"

static const char usage[] =
    "Usage: check_ops [--device cuda[:N,SWITCH,...]|cpu] [--quick] [--bench] [--only LIST] "
    "[--open]\n"
    "  --quick      skip the larger shapes and vocabularies\n"
    "  --bench      measure times instead\n"
    "  --only LIST  run these sections, with commas between:\n"
    "               " CHECK_SECTIONS ";\n"
    "               with --bench: " BENCH_SECTIONS "\n"
    "  --open       open the device and print its memory and read bandwidth\n";

static bool wrong(const char *option, const char *expected)
{
    fprintf(stderr, "check_ops: %s: expected %s\n", option, expected);
    return false;
}

static bool read_options(int argc, char **argv, check *c, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], **value = !strcmp(name, "--device") ? &o->device
                                              : !strcmp(name, "--only") ? &o->only
                                                                        : NULL;
        if (value && !(*value = argv[++i]))
            return wrong(name, "a value after it");
        if (!strcmp(name, "--quick"))
            c->quick = true;
        else if (!strcmp(name, "--open"))
            o->open = true;
        else if (!strcmp(name, "--bench"))
            o->bench = true;
        else if (!value)
            return wrong(name, "one of the options that --help lists");
    }
    int found = 0;
    for (int i = 0; i < SECTIONS; i++)
        found += check_listed(o->only, sections[i].name);
    if (!*o->only || check_words(o->only) == (o->bench ? check_bench_sections(o->only) : found))
        return true;
    return wrong("--only", o->bench ? "any of " BENCH_SECTIONS ", with commas between"
                                    : "any of " CHECK_SECTIONS ", with commas between");
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

int main(int argc, char **argv)
{
    check c = {.draws = 1};
    options o = {.device = "cuda", .only = ""};
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) == EOF || fflush(stdout) ? 1 : 0;
    if (!read_options(argc, argv, &c, &o))
        return 2;
    int status = live_backend_open(&c.device, o.device, 2, false, &c.error);
    if (!status)
        status = live_backend_open(&c.invariant, o.device, 2, true, &c.error);
    if (!status)
        status = live_backend_cpu(&c.cpu, 2, false, &c.error);
    if (status) {
        fprintf(stderr, "check_ops: %s\n", c.error.message);
        return status == DSC_EABSENT ? 77 : dsc_exit_code(status);
    }
    printf("# %s against the CPU\n", c.device->device);
    if (o.open)
        check_open(&c);
    else if (o.bench)
        check_bench(&c, o.only);
    else {
        for (int i = 0; i < SECTIONS; i++)
            if (check_listed(o.only, sections[i].name))
                sections[i].run(&c);
        printf("%" PRId64 " passed, %" PRId64 " failed\n", c.passed, c.failed);
    }
    c.device->type->close(c.device);
    c.invariant->type->close(c.invariant);
    c.cpu->type->close(c.cpu);
    return c.failed || fflush(stdout) || ferror(stdout) ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
// P3: simulated rounds per second of processor time, and how far their mean is from the closed form
// in standard errors. Beside it, in the same run, numpy's geometric sampler when the python named
// in NUMPY_PYTHON (default python3) has numpy; bar 100 times as many.
//
// Usage: bench_steps [MILLION_ROUNDS]; CSV on stdout.
#include "tests/bench/bench.h"
#include "theory/steps.h"

#include <math.h>
#include <stdlib.h>

// Nanoseconds that numpy takes for a number, or NaN.
static double numpy_ns(double rate)
{
    char command[512];
    const char *python = getenv("NUMPY_PYTHON");
    double ns = (double)NAN;
    snprintf(command, sizeof command,
             "%s -c 'import numpy, time\n"
             "g = numpy.random.default_rng(1)\n"
             "best = 1e9\n"
             "for i in range(5):\n"
             "    t = time.process_time(); g.geometric(%.17g, 2000000)\n"
             "    best = min(best, time.process_time() - t)\n"
             "print(best / 2e-3)' 2>/dev/null",
             python ? python : "python3", 1 - rate);
    FILE *f = popen(command, "r");
    if (f && fscanf(f, "%lf", &ns) != 1)
        ns = (double)NAN;
    if (f)
        pclose(f);
    return ns;
}

int main(int argc, char **argv)
{
    static const struct {
        double rate;
        int length;
    } work[] = {{.5, 4}, {.7, 4}, {.7, 8}, {.8, 8}, {.9, 8}, {.9, 16}, {.9, 64}};
    int64_t steps = (argc > 1 ? atol(argv[1]) : 400) * INT64_C(1000000);
    printf("# %s\nrate,length,ns_per_round,numpy_ns,ratio,mean,z\n", BENCH_FLAGS);
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
        int64_t histogram[65] = {0};
        dsc_acceptance dist = {.rate = work[i].rate};
        dsc_error e;
        double start = cpu_s();
        if (dsc_steps_sample(&dist, work[i].length, 1, steps, histogram, &e)) {
            fprintf(stderr, "bench_steps: %s\n", e.message);
            return 1;
        }
        double ns = 1e9 * (cpu_s() - start) / (double)steps, numpy = numpy_ns(work[i].rate);
        dsc_steps_mean m = dsc_steps_summary(histogram, work[i].length);
        printf("%g,%d,%.4f,%.2f,%.1f,%.7f,%.2f\n", work[i].rate, work[i].length, ns, numpy,
               numpy / ns, m.accepted,
               (m.accepted - dsc_iid_accepted(work[i].rate, work[i].length)) / m.error);
    }
    return 0;
}

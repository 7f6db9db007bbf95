// SPDX-License-Identifier: Apache-2.0
// The roofline bound on the time of a pass, from the shape of the model and the machine (Williams,
// Waterman and Patterson 2009). Weights and KV cache, numbers of 2 bytes, are read once, and every
// token is multiplied by all weights. For n = batch x tokens in the pass
//
//   time = max(2 weights / bandwidth, 2 weights n / peak)
//        + max(2 cache batch (context + tokens - 1) / bandwidth,
//              attention n (context + tokens - 1) / peak) + overhead
//
// (sim/cost/model_shape.h). Matrix products and attention alternate layer by layer, so each has its
// own maximum. Real kernels reach 70 to 90 % of either limit, which cancels in a speedup, and have
// fixed times, which do not cancel: these are the overhead. Tensor parallelism divides the target's
// work by its machines; their communication is not modeled. The draft model runs on one machine.
#include "sim/cost/cost.h"

#include "base/memory.h"
#include "base/option.h"
#include "sim/cost/hardware.h"
#include "sim/cost/model_shape.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Peaks are for 16-bit tensor operations with 32-bit sums, without sparsity, at boost clock; from
// NVIDIA's data sheets (V100, A100, H100, H200, L40S) and the white papers of GA102 (3090) and
// AD102 (4090).
static const dsc_hardware hardware[] = {
    {"v100", 900e9, 125e12},        // SXM2, HBM2
    {"a100-40", 1555e9, 312e12},    // SXM, HBM2
    {"a100-80", 2039e9, 312e12},    // SXM, HBM2e
    {"h100", 3350e9, 989.4e12},     // SXM, HBM3
    {"h200", 4800e9, 989.4e12},     // SXM, HBM3e
    {"rtx-3090", 936.2e9, 71e12},   // GDDR6X; 142e12 with 16-bit sums
    {"rtx-4090", 1008e9, 165.2e12}, // GDDR6X; 330.3e12 with 16-bit sums
    {"l40s", 864e9, 362.05e12},     // GDDR6
};
enum { MACHINES = sizeof hardware / sizeof *hardware };

const dsc_hardware *dsc_hardware_presets(size_t *count)
{
    *count = MACHINES;
    return hardware;
}

typedef struct roofline {
    dsc_model_shape target, draft;
    bool has_draft;
    dsc_hardware machine;
    double machines; // of the target
    double overhead_s;
} roofline;

static int find_hardware(dsc_hardware *out, const char *text, dsc_error *err)
{
    const char *name[MACHINES];
    for (size_t i = 0; i < MACHINES; i++) {
        name[i] = hardware[i].name;
        if (strcasecmp(text, name[i]) == 0) {
            *out = hardware[i];
            return DSC_OK;
        }
    }
    return dsc_unknown_name("hardware", text, name, MACHINES, "draftscope list costs -v shows them",
                            err);
}

// "tp=N" or "overhead=S".
static int read_extra(roofline *r, const char *text, dsc_error *err)
{
    char *end;
    const char *value = strchr(text, '=');
    double x = value && strchr("0123456789.", value[1]) ? dsc_strtod(value + 1, &end) : NAN;
    bool number = isfinite(x) && !*end;
    if (number && strncmp(text, "tp=", 3) == 0 && x >= 1 && x <= 1024 && x == floor(x))
        r->machines = x;
    else if (number && strncmp(text, "overhead=", 9) == 0)
        r->overhead_s = x;
    else
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: '%.40s' is neither tp=N, machines from 1 to 1024, nor overhead=S, "
                        "seconds per pass",
                        text);
    return DSC_OK;
}

static int read_words(roofline *r, char *text, dsc_error *err)
{
    char *rest = text, *word;
    int rc = DSC_OK, n = 0;
    while (!rc && (word = strsep(&rest, ","))) {
        switch (n++) {
        case 0: rc = dsc_model_shape_find(&r->target, word, err); break;
        case 1:
            r->has_draft = strcmp(word, "none") != 0;
            rc = r->has_draft ? dsc_model_shape_find(&r->draft, word, err) : DSC_OK;
            break;
        case 2: rc = find_hardware(&r->machine, word, err); break;
        default: rc = read_extra(r, word, err);
        }
    }
    if (!rc && n < 3)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--cost: roofline:TARGET,DRAFT|none,HARDWARE[,tp=N][,overhead=S] expected");
    return rc;
}

static int open_roofline(dsc_cost *cost, const char *text, dsc_error *err)
{
    roofline *r;
    char *words;
    int rc = dsc_new(&r, 1, err);
    if (rc)
        return rc;
    r->machines = 1;
    rc = dsc_strndup(&words, text, strlen(text), err);
    if (!rc) {
        rc = read_words(r, words, err);
        free(words);
    }
    if (rc)
        free(r);
    cost->model = rc ? NULL : r;
    return rc;
}

double dsc_roofline_time(const dsc_model_shape *s, const dsc_hardware *h, dsc_pass pass)
{
    enum { BYTES = 2 };
    double n = pass.batch * pass.tokens, reach = pass.context + pass.tokens - 1;
    double weights = dsc_model_shape_weights(s);
    double forward = fmax(BYTES * weights / h->bandwidth, 2 * weights * n / h->peak);
    double attention = fmax(BYTES * dsc_model_shape_cache(s) * pass.batch * reach / h->bandwidth,
                            dsc_model_shape_attention(s) * n * reach / h->peak);
    return forward + attention;
}

static int target_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)err;
    const roofline *r = cost->model;
    *seconds = dsc_roofline_time(&r->target, &r->machine, pass) / r->machines + r->overhead_s;
    return DSC_OK;
}

static int draft_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    const roofline *r = cost->model;
    if (!r->has_draft)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost: the roofline has no draft model (none), but the method calls one");
    *seconds = dsc_roofline_time(&r->draft, &r->machine, pass) + r->overhead_s;
    return DSC_OK;
}

const dsc_cost_type dsc_cost_roofline = {
    .name = "roofline",
    .summary = "the least time by the models' shapes and the machine's bandwidth and peak",
    .usage = "TARGET,DRAFT|none,HARDWARE[,tp=N][,overhead=S]",
    .open = open_roofline,
    .close = free,
    .target = target_time,
    .draft = draft_time};

// SPDX-License-Identifier: Apache-2.0
// draftscope live list: devices, supported architectures and dtypes, shapes, and build features.
#include "live/device/backend.h"
#include "live/device/openblas.h"
#include "live/program/live.h"
#include "sim/cost/model_shape.h"

#include <string.h>

// clang-format off
static const dsc_option options[] = {
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "print one JSON object per line"},
};
// clang-format on

typedef struct line {
    const char *kind, *name, *what;
} line;

static const line lines[] = {
    {"architecture", "llama",
     "Llama 1 to 3 (RoPE scaling linear and llama3) and relatives: TinyLlama, "
     "Vicuna, Yi"},
    {"architecture", "mistral", "Mistral, with sliding windows"},
    {"architecture", "qwen2", "Qwen 2, 2.5"},
    {"architecture", "qwen3", "Qwen 3, dense"},
    {"architecture", "gpt2", "GPT-2"},
    {"architecture", "gpt_neox", "GPT-NeoX, Pythia"},
    {"architecture", "eagle", "EAGLE-1 head of a Llama model, as draft model"},
    {"architecture", "eagle3", "EAGLE-3 head, as draft model"},
    {"architecture", "medusa", "Medusa-1 heads, as draft model"},
    {"draft model", "--draft", "a smaller model, an EAGLE head or Medusa heads"},
    {"draft model", "--draft-shape", "random weights of a shape"},
    {"draft model", "--draft-layers", "layers of the target (LayerSkip, skipped layers)"},
    {"dtype", "bf16", "weights as stored, accumulation in fp32"},
    {"dtype", "f16", "weights as stored, accumulation in fp32"},
    {"dtype", "f32", "weights as stored, accumulation in fp32"},
#ifdef HAVE_CUDA
    {"feature", "cuda", "built in"},
#else
    {"feature", "cuda", "not built in (configure --with-cuda=DIR)"},
#endif
#ifdef _OPENMP
    {"feature", "openmp", "several threads on a CPU"},
#endif
};

static int add(dsc_table *t, line l, dsc_error *err)
{
    const dsc_cell cell[] = {dsc_cell_text(l.kind), dsc_cell_text(l.name), dsc_cell_text(l.what)};
    return dsc_table_add_row(t, cell, err);
}

static int add_devices(dsc_table *t, dsc_error *err)
{
    live_backend *cpu;
    char what[128], name[24];
    double spare, all;
    int rc = live_backend_cpu(&cpu, cli_threads(0), false, err);
    if (rc)
        return rc;
    rc = cpu->type->memory.available(cpu, &spare, &all, err);
    snprintf(what, sizeof what, "%d processors, %.1f GB, %.1f free", cpu->threads, 1e-9 * all,
             1e-9 * spare);
    cpu->type->close(cpu);
    if (!rc)
        rc = add(t, (line){"device", "cpu", what}, err);
    for (int d = 0; d < live_cuda_devices() && !rc; d++) {
        snprintf(name, sizeof name, "cuda:%d", d);
        if (live_cuda_describe(d, what, sizeof what))
            rc = add(t, (line){"device", name, what}, err);
    }
    return rc;
}

static int add_shapes(dsc_table *t, dsc_error *err)
{
    size_t count;
    const dsc_model_shape *s = dsc_model_shape_presets(&count);
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        char what[64];
        if (!dsc_model_shape_is_dense(&s[i]))
            continue;
        snprintf(what, sizeof what, "%.2f billion parameters",
                 dsc_model_shape_parameters(&s[i]) / 1e9);
        rc = add(t, (line){"shape", s[i].name, what}, err);
    }
    return rc;
}

static const dsc_column column[] = {
    {"kind", DSC_CELL_TEXT, "device, architecture, draft model, dtype, feature or shape"},
    {"name", DSC_CELL_TEXT, "value for options"},
    {"what", DSC_CELL_TEXT, "description"},
};

static int make(dsc_table *t, dsc_error *err)
{
    int rc = dsc_table_add_columns(t, column, sizeof column / sizeof *column, err);
    if (!rc)
        rc = add_devices(t, err);
    for (size_t i = 0; i < sizeof lines / sizeof *lines && !rc; i++)
        rc = add(t, lines[i], err);
    char blas[128];
    snprintf(blas, sizeof blas, "multiplies many rows on a CPU (%s)", live_openblas_name());
    if (!rc)
        rc = add(t, (line){"feature", "openblas", blas}, err);
    return rc ? rc : add_shapes(t, err);
}

static void print_text(const dsc_table *t)
{
    const char *last = "";
    for (size_t r = 0; r < t->rows; r++) {
        const char *kind = dsc_table_at(t, r, 0)->text;
        if (strcmp(kind, last))
            printf("%s%s\n", r ? "\n" : "", kind);
        printf("  %-20s%s\n", dsc_table_at(t, r, 1)->text, dsc_table_at(t, r, 2)->text);
        last = kind;
    }
}

static int execute(const cli_call *call, dsc_error *err)
{
    dsc_table t = {0};
    int rc = make(&t, err);
    for (size_t r = 0; r < t.rows && !rc && call->json; r++)
        dsc_table_write_jsonl_row(&t, r, stdout);
    if (!rc && !call->json)
        print_text(&t);
    dsc_table_fini(&t);
    return rc;
}

const cli_command live_cmd_list = {
    .name = "list",
    .summary = "devices, architectures, draft models, dtypes, shapes, features",
    CLI_OPTIONS(options),
    .what = "no argument",
    .usage = "live list [--json]",
    .about = "Lists devices, supported architectures, kinds of draft models, dtypes of weights, "
             "shapes for --shape, and "
             "the features of this build.",
    .fields = {CLI_FIELDS("Fields of --json", column)},
    .execute = execute,
};

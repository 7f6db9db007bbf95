// SPDX-License-Identifier: Apache-2.0
// The constants of the roofline: shapes of models, machines, number formats, engines, and the
// published steps that the engines' constants are fitted to and checked with.
#include "sim/cost/roofline.h"

// --- shapes ------------------------------------------------------------------------------------

// Values are from the config.json of the models on Hugging Face. Vicuna's and CodeLlama's shapes
// are Llama's; T5 is version 1.1, which Leviathan et al. and DistillSpec use. Llama 3 is also 3.1
// and 3.3, which have the same shapes.
// clang-format off
#define LLAMA(n, l, h, f, a, kv, v) {.name = n, .kind = DSC_MODEL_LLAMA, .layers = l, .hidden = h, \
    .feed_forward = f, .heads = a, .kv_heads = kv, .head = (h) / (a), .vocab = v}
#define QWEN2(n, l, h, f, a, kv, v, t) {.name = n, .kind = DSC_MODEL_QWEN2, .layers = l, \
    .hidden = h, .feed_forward = f, .heads = a, .kv_heads = kv, .head = (h) / (a), .vocab = v, \
    .tied = t}
#define QWEN3(n, l, h, f, a, t) {.name = n, .kind = DSC_MODEL_QWEN3, .layers = l, .hidden = h, \
    .feed_forward = f, .heads = a, .kv_heads = 8, .head = 128, .vocab = 151936, .tied = t}
#define QWEN3_MOE(n, l, h, f, a) {.name = n, .kind = DSC_MODEL_QWEN3, .layers = l, .hidden = h, \
    .heads = a, .kv_heads = 4, .head = 128, .vocab = 151936, .experts = 128, \
    .experts_per_token = 8, .expert_feed_forward = f}
#define MIXTRAL(n, l, h, f, a, v) {.name = n, .kind = DSC_MODEL_LLAMA, .layers = l, .hidden = h, \
    .heads = a, .kv_heads = 8, .head = 128, .vocab = v, .experts = 8, .experts_per_token = 2, \
    .expert_feed_forward = f}
#define GPT_OSS(n, l, e) {.name = n, .kind = DSC_MODEL_GPT_OSS, .layers = l, .hidden = 2880, \
    .heads = 64, .kv_heads = 8, .head = 64, .vocab = 201088, .experts = e, \
    .experts_per_token = 4, .expert_feed_forward = 2880, .weights = "mxfp4", .only_experts = true}
#define T5(n, l, h, f, a) {.name = n, .kind = DSC_MODEL_T5, .layers = l, .encoder_layers = l, \
    .hidden = h, .feed_forward = f, .heads = a, .kv_heads = a, .head = 64, .vocab = 32128}
static const dsc_model_shape shapes[] = {
    //    name                  layers hidden    ff heads kv  vocabulary
    LLAMA("llama-2-7b",             32,  4096, 11008, 32, 32,  32000),
    LLAMA("llama-2-13b",            40,  5120, 13824, 40, 40,  32000),
    LLAMA("llama-2-70b",            80,  8192, 28672, 64,  8,  32000),
    LLAMA("llama-3-8b",             32,  4096, 14336, 32,  8, 128256),
    LLAMA("llama-3-70b",            80,  8192, 28672, 64,  8, 128256),
    LLAMA("llama-3.1-8b",           32,  4096, 14336, 32,  8, 128256),
    LLAMA("llama-3.1-70b",          80,  8192, 28672, 64,  8, 128256),
    LLAMA("llama-3.1-405b",        126, 16384, 53248,128,  8, 128256),
    LLAMA("llama-3.3-70b",          80,  8192, 28672, 64,  8, 128256),
    LLAMA("vicuna-7b",              32,  4096, 11008, 32, 32,  32000),
    LLAMA("vicuna-13b",             40,  5120, 13824, 40, 40,  32000),
    LLAMA("vicuna-33b",             60,  6656, 17920, 52, 52,  32000),
    LLAMA("yi-6b",                  32,  4096, 11008, 32,  4,  64000),
    LLAMA("yi-34b",                 60,  7168, 20480, 56,  8,  64000),
    LLAMA("codellama-7b",           32,  4096, 11008, 32, 32,  32016),
    LLAMA("codellama-34b",          48,  8192, 22016, 64,  8,  32000),
    LLAMA("codellama-70b",          80,  8192, 28672, 64,  8,  32016),
    LLAMA("deepseek-coder-1.3b",    24,  2048,  5504, 16, 16,  32256),
    LLAMA("deepseek-coder-6.7b",    32,  4096, 11008, 32, 32,  32256),
    LLAMA("deepseek-coder-33b",     62,  7168, 19200, 56,  8,  32256),
    QWEN2("qwen2.5-0.5b",           24,   896,  4864, 14,  2, 151936, true),
    QWEN2("qwen2.5-1.5b",           28,  1536,  8960, 12,  2, 151936, true),
    QWEN2("qwen2.5-3b",             36,  2048, 11008, 16,  2, 151936, true),
    QWEN2("qwen2.5-7b",             28,  3584, 18944, 28,  4, 152064, false),
    QWEN2("qwen2.5-14b",            48,  5120, 13824, 40,  8, 152064, false),
    QWEN2("qwen2.5-32b",            64,  5120, 27648, 40,  8, 152064, false),
    QWEN2("qwen2.5-72b",            80,  8192, 29568, 64,  8, 152064, false),
    QWEN3("qwen3-0.6b",             28,  1024,  3072, 16, true),
    QWEN3("qwen3-1.7b",             28,  2048,  6144, 16, true),
    QWEN3("qwen3-4b",               36,  2560,  9728, 32, true),
    QWEN3("qwen3-8b",               36,  4096, 12288, 32, false),
    QWEN3("qwen3-14b",              40,  5120, 17408, 40, false),
    QWEN3("qwen3-32b",              64,  5120, 25600, 64, false),
    QWEN3_MOE("qwen3-30b-a3b",      48,  2048,   768, 32),
    QWEN3_MOE("qwen3-235b-a22b",    94,  4096,  1536, 64),
    MIXTRAL("mixtral-8x7b",         32,  4096, 14336, 32,      32000),
    MIXTRAL("mixtral-8x22b",        56,  6144, 16384, 48,      32768),
    {.name = "deepseek-v3", .kind = DSC_MODEL_DEEPSEEK, .layers = 61, .hidden = 7168,
     .feed_forward = 18432, .heads = 128, .kv_heads = 128, .head = 128, .vocab = 129280,
     .experts = 256, .experts_per_token = 8, .expert_feed_forward = 2048, .shared_experts = 1,
     .dense_layers = 3, .query_rank = 1536, .cache_rank = 512, .rope = 64, .value_head = 128,
     .weights = "fp8"},
    GPT_OSS("gpt-oss-20b",          24,  32),
    GPT_OSS("gpt-oss-120b",         36, 128),
    T5("t5-small",                   8,   512,  1024,  6),
    T5("t5-base",                   12,   768,  2048, 12),
    T5("t5-large",                  24,  1024,  2816, 16),
    T5("t5-xxl",                    24,  4096, 10240, 64),
};

const dsc_model_shape *dsc_model_shape_presets(size_t *count)
{
    *count = sizeof shapes / sizeof *shapes;
    return shapes;
}

// --- machines ----------------------------------------------------------------------------------

// Memory, bandwidth, and peaks of tensor operations without sparsity at boost clock, in 16-bit and
// FP8 with 32-bit sums, INT8, FP4. 0: the machine has no such units. From NVIDIA's data sheets
// (V100, A100, A10, L4, L40S, H100, H200, HGX B200, HGX B300), the white papers of GA102 (3090),
// AD102 (4090) and RTX Blackwell (5090), and AMD's data sheet (MI300X). Data sheets that state
// peaks with sparsity are halved; a system's are divided by its eight GPUs. `packs`: FlashAttention
// 2 (Ampere, Ada, RTX Blackwell) does not; FlashAttention 3 (Hopper), FlashInfer (Blackwell) and
// vLLM's Triton kernel (V100, MI300X) do.
static const dsc_hardware hardware[] = {
    // name       also   memory  bandwidth   16-bit     FP8       INT8       FP4       packs
    {"v100",      NULL,   32e9,   900e9, {  125e12,        0,        0,        0}, 1}, // SXM2, HBM2
    {"a100-40",   NULL,   40e9,  1555e9, {  312e12,        0,   624e12,        0}, 0}, // SXM, HBM2
    {"a100-80",   "a100", 80e9,  2039e9, {  312e12,        0,   624e12,        0}, 0}, // SXM, HBM2e
    {"h100",      NULL,   80e9,  3350e9, {989.4e12, 1978.9e12, 1978.9e12,      0}, 1}, // SXM, HBM3
    {"h200",      NULL,  141e9,  4800e9, {989.4e12, 1978.9e12, 1978.9e12,      0}, 1}, // SXM, HBM3e
    {"b200",      NULL,  180e9,  8000e9, { 2250e12,  4500e12,  4500e12,  9000e12}, 1}, // HBM3e
    {"b300",      NULL,  288e9,  8000e9, { 2250e12,  4500e12,   125e12, 13125e12}, 1}, // HBM3e
    {"mi300x",    NULL,  192e9,  5300e9, {1307.4e12, 2614.9e12, 2614.9e12,     0}, 1}, // HBM3
    {"a10",       NULL,   24e9,   600e9, {  125e12,        0,   250e12,        0}, 0}, // GDDR6
    {"l4",        NULL,   24e9,   300e9, {  121e12, 242.5e12, 242.5e12,        0}, 0}, // GDDR6
    {"l40s",      NULL,   48e9,   864e9, {362.05e12,  733e12,   733e12,        0}, 0}, // GDDR6
    {"rtx-3090",  NULL,   24e9, 936.2e9, {   71e12,        0,   284e12,        0}, 0}, // GDDR6X
    {"rtx-4090",  NULL,   24e9,  1008e9, {165.2e12, 330.3e12, 660.6e12,        0}, 0}, // GDDR6X
    {"rtx-5090",  NULL,   32e9,  1792e9, {209.5e12,   419e12,   838e12,  1676e12}, 0}, // GDDR7
};

const dsc_hardware *dsc_hardware_presets(size_t *count)
{
    *count = sizeof hardware / sizeof *hardware;
    return hardware;
}

// --- number formats ----------------------------------------------------------------------------

// 4-bit weights have a 16-bit scale and a 4-bit zero for each 128 (AWQ, GPTQ), or an 8-bit scale
// for each 32 (OCP Microscaling Formats 1.0).
static const dsc_number_format weights[] = {
    {"fp16",  2,                      DSC_MATH_16},
    {"bf16",  2,                      DSC_MATH_16},
    {"fp8",   1,                      DSC_MATH_FP8},
    {"int8",  1,                      DSC_MATH_INT8},
    {"int4",  0.5 + (2 + 0.5) / 128,  DSC_MATH_16},
    {"w4a16", 0.5 + (2 + 0.5) / 128,  DSC_MATH_16},
    {"mxfp4", 0.5 + 1.0 / 32,         DSC_MATH_FP4},
};
static const dsc_number_format caches[] = {
    {"fp16", 2, DSC_MATH_16}, {"bf16", 2, DSC_MATH_16}, {"fp8", 1, DSC_MATH_16}};

const dsc_number_format *dsc_weight_formats(size_t *count)
{
    *count = sizeof weights / sizeof *weights;
    return weights;
}

const dsc_number_format *dsc_cache_formats(size_t *count)
{
    *count = sizeof caches / sizeof *caches;
    return caches;
}

// --- engines -----------------------------------------------------------------------------------

// vLLM: bandwidth, compute, overlap and the fixed times are the least squares of relative errors
// over the steps below that calibrate (HumanEval on an A100, whose prompts are short, and one
// H100).
// The fixed times of a pass and of a layer follow from the overheads of the target, 32 layers, and
// of a pass of its head, one layer; that of a pass would be negative and is 0. Attention is not
// fitted: its share is the largest of FlashAttention 2 on an A100 (Dao 2023, "50-73%"), its tiles
// are those of its kernel (sim/cost/roofline.c). SGLang: vLLM's shares and pass; FlashInfer packs
// query heads; its layer from one speed, so that none of its steps is left for a check.
static const dsc_engine engines[] = {
    {"vllm", "vLLM 0.24, Llama-3.1-8B FP16, 8 steps on an A100 and 1 on an H100",
     .bandwidth = 0.896, .compute = 0.6033, .overlap = 0.564, .pass_s = 0, .layer_s = 78.5e-6,
     .attention = 0.73, .tile = 64},
    {"sglang", "Llama-3.1-8B on one H100 at 158 tokens/s; shares of vllm",
     .bandwidth = 0.896, .compute = 0.6033, .overlap = 0.564, .pass_s = 0, .layer_s = 41e-6,
     .attention = 0.73, .tile = 64, .packs = true},
};

const dsc_engine *dsc_engines(size_t *count)
{
    *count = sizeof engines / sizeof *engines;
    return engines;
}

// --- published steps ---------------------------------------------------------------------------

// Llama-3.1-8B-Instruct FP16, EAGLE-3 with 5 draft tokens, vLLM 0.24.0, one A100-SXM4-80GB, that
// many closed-loop clients, greedy; median inter-token latencies, which are steps, of
// github.com/manojarulmurugan/SpecDecoding-Study-vLLM-SGLang at d96e4fb, phase 3. The context is
// the mean prompt and half of the mean output. With 32 and 64 clients some steps contain a part of
// a prompt, more of GSM8K's long prompts than of HumanEval's; the median is nearer to a pure step
// than the mean, and the model has pure steps only. One H100: 133 (vLLM) and 158 (SGLang) output
// tokens/s of one request, whose context is not stated; 1000 instead of 200 tokens would add half a
// percent. Two H200: plain decoding of another engine, github.com/smart-lty/nano-PEARL at 27015b7,
// docs/bench_summary.md, on HumanEval, as batch / (output tokens/s), prompts included; they check
// that the fixed time grows with the layers and the rest with weights and machines. The context is
// not stated.
#define A100 "roofline:llama-3.1-8b,a100-80"
#define A100_EAGLE3 "roofline:llama-3.1-8b,eagle3,a100-80"
#define H100 "roofline:llama-3.1-8b,h100"
#define H200_72B "roofline:qwen2.5-72b,h200,tp=2"
#define H200_32B "roofline:qwen3-32b,h200,tp=2"
static const dsc_published_step steps[] = {
    // cost         workload   drafted batch context  seconds  calibrates
    {A100,        "humaneval",  0,  1, 379.6, 10.81e-3, true},
    {A100,        "humaneval",  0,  8, 377.4, 11.05e-3, true},
    {A100,        "humaneval",  0, 32, 378.6, 13.08e-3, true},
    {A100,        "humaneval",  0, 64, 377.1, 14.55e-3, true},
    {A100_EAGLE3, "humaneval",  5,  1, 379.6, 13.63e-3, true},
    {A100_EAGLE3, "humaneval",  5,  8, 377.4, 15.29e-3, true},
    {A100_EAGLE3, "humaneval",  5, 32, 378.7, 26.79e-3, true},
    {A100_EAGLE3, "humaneval",  5, 64, 377.2, 44.25e-3, true},
    {H100,        "not stated", 0,  1, 200,   1 / 133., true},
    {A100,        "gsm8k",      0,  1, 843.2, 10.84e-3, false},
    {A100,        "gsm8k",      0,  8, 844.8, 11.34e-3, false},
    {A100,        "gsm8k",      0, 32, 844.3, 14.51e-3, false},
    {A100,        "gsm8k",      0, 64, 845.1, 16.90e-3, false},
    {A100_EAGLE3, "gsm8k",      5,  1, 843.2, 13.98e-3, false},
    {A100_EAGLE3, "gsm8k",      5,  8, 844.8, 16.21e-3, false},
    {A100_EAGLE3, "gsm8k",      5, 32, 844.3, 29.70e-3, false},
    {A100_EAGLE3, "gsm8k",      5, 64, 845.1, 50.74e-3, false},
    {H200_72B,    "nano-PEARL", 0,  1, 300, 1 / 43.63,     false},
    {H200_72B,    "nano-PEARL", 0,  8, 300, 8 / 336.82,    false},
    {H200_72B,    "nano-PEARL", 0, 16, 300, 16 / 650.04,   false},
    {H200_72B,    "nano-PEARL", 0, 32, 300, 32 / 1186.05,  false},
    {H200_32B,    "nano-PEARL", 0,  1, 300, 1 / 78.64,     false},
    {H200_32B,    "nano-PEARL", 0,  8, 300, 8 / 613.32,    false},
    {H200_32B,    "nano-PEARL", 0, 16, 300, 16 / 1165.10,  false},
    {H200_32B,    "nano-PEARL", 0, 32, 300, 32 / 2194.92,  false},
    {H100 ",engine=sglang", "not stated", 0, 1, 200, 1 / 158., true},
};
// clang-format on

const dsc_published_step *dsc_published_steps(size_t *count)
{
    *count = sizeof steps / sizeof *steps;
    return steps;
}

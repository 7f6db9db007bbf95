// SPDX-License-Identifier: Apache-2.0
// Rooflines: sizes of models, times by hand, formats, experts, memory, the published steps that the
// engines' constants are fitted to, and refusals.
#include "tests/unit/cost_fixture.h"
#include "tests/unit/trace_fixture.h"

#include "sim/cost/roofline.h"

#include <string.h>

static double draft_s(const dsc_cost *cost, double tokens, double context, double batch, bool again)
{
    double s;
    dsc_error err = {0};
    assert_ok(dsc_cost_draft(cost, (dsc_pass){tokens, context, batch, again}, &s, &err), err);
    return s;
}

// The time of one pass by the cost of this text.
static double time_of(const char *text, double tokens, double context, double batch)
{
    dsc_cost cost = cost_of(text);
    const double s = target_s(&cost, tokens, context, batch);
    dsc_cost_fini(&cost);
    return s;
}

// --- shapes ------------------------------------------------------------------------------------

// The sizes of the checkpoints on Hugging Face, whole where their pages state them.
static void shapes_have_the_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double parameters;
        double active; // billions, as published; 0: dense
    } known[] = {
        {"llama-2-7b", 6738415616, 0},
        {"llama-2-13b", 13015864320, 0},
        {"llama-2-70b", 68976648192, 0},
        {"llama-3-8b", 8030261248, 0},
        {"llama-3-70b", 70553706496, 0},
        {"llama-3.1-8b", 8030261248, 0},
        {"llama-3.1-70b", 70553706496, 0},
        {"llama-3.1-405b", 405853388800, 0},
        {"llama-3.3-70b", 70553706496, 0},
        {"vicuna-7b", 6738415616, 0},
        {"vicuna-13b", 13015864320, 0},
        {"vicuna-33b", 32528943616, 0},
        {"yi-6b", 6061035520, 0},
        {"yi-34b", 34388917248, 0},
        {"codellama-7b", 6738546688, 0},
        {"codellama-34b", 33743970304, 0},
        {"codellama-70b", 68976910336, 0},
        {"deepseek-coder-1.3b", 1346471936, 0},
        {"deepseek-coder-6.7b", 6740512768, 0},
        {"deepseek-coder-33b", 33342991360, 0},
        {"qwen2.5-0.5b", 494032768, 0},
        {"qwen2.5-1.5b", 1543714304, 0},
        {"qwen2.5-3b", 3085938688, 0},
        {"qwen2.5-7b", 7615616512, 0},
        {"qwen2.5-14b", 14770033664, 0},
        {"qwen2.5-32b", 32763876352, 0},
        {"qwen2.5-72b", 72706203648, 0},
        {"qwen3-0.6b", 596049920, 0},
        {"qwen3-1.7b", 1720574976, 0},
        {"qwen3-4b", 4022468096, 0},
        {"qwen3-8b", 8190735360, 0},
        {"qwen3-14b", 14768307200, 0},
        {"qwen3-32b", 32762123264, 0},
        {"qwen3-30b-a3b", 30532122624, 3.3},
        {"qwen3-235b-a22b", 235093634560, 22},
        {"mixtral-8x7b", 46702792704, 12.9},
        {"mixtral-8x22b", 140630071296, 39},
        {"deepseek-v3", 671026419200, 37},
        {"gpt-oss-20b", 20914757184, 3.6},
        {"gpt-oss-120b", 116829156672, 5.1},
        {"t5-small", 76961152, 0},
        {"t5-base", 247577856, 0},
        {"t5-large", 783150080, 0},
        {"t5-xxl", 11135332352, 0},
    };
    size_t count;
    dsc_model_shape_presets(&count);
    assert_int_equal(count, sizeof known / sizeof *known);
    for (size_t i = 0; i < count; i++) {
        dsc_model_shape s;
        dsc_error err = {0};
        assert_ok(dsc_model_shape_find(&s, known[i].name, &err), err);
        const double embedding = (double)(s.vocab * s.hidden);
        assert_close(dsc_model_shape_parameters(&s), known[i].parameters, 0);
        if (!s.experts)
            continue;
        // Some publish them with the input embedding, some without.
        const double active = dsc_model_shape_active(&s), published = 1e9 * known[i].active;
        assert_true(active <= 1.025 * published && active + embedding >= 0.975 * published);
    }
}

// The KV cache of DeepSeek-V3 has 512 + 64 numbers per layer and token; a head has a layer.
static void caches_and_heads_by_hand(void **state)
{
    (void)state;
    dsc_model_shape s, head;
    dsc_error err = {0};
    assert_ok(dsc_model_shape_find(&s, "deepseek-v3", &err), err);
    assert_close(dsc_model_shape_cache(&s), 61 * 576, 0);
    assert_ok(dsc_model_shape_draft(&head, "mtp", &s, &err), err);
    const dsc_model_work mtp = dsc_model_shape_work(&head);
    assert_close(mtp.expert, 3.0 * 7168 * 2048, 0);
    assert_close(mtp.expert_layers, 1, 0);
    assert_close(mtp.feed_forward, mtp.expert + 256.0 * 7168 + 2.0 * 7168 * 7168, 0);
    assert_close(dsc_model_shape_cache(&head), 576, 0);
    // The module of 14 billion: 11.5 of its own, and the target's embedding and output.
    assert_close(dsc_model_shape_parameters(&head) + 2 * 129280.0 * 7168, 14e9, 0.6e9);
    expect_failure(dsc_model_shape_draft(&head, "eagle3", &s, &err), DSC_EUSAGE, &err,
                   "config.json of the head");
    assert_ok(dsc_model_shape_find(&s, "llama-3.1-8b", &err), err);
    assert_ok(dsc_model_shape_draft(&head, "eagle3", &s, &err), err);
    const dsc_model_work eagle3 = dsc_model_shape_work(&head);
    assert_close(eagle3.first, 3.0 * 4096 * 4096, 0);
    assert_close(eagle3.attention, 8192.0 * (4096 + 2 * 1024) + 4096.0 * 4096, 0);
    assert_close(eagle3.feed_forward, 3.0 * 4096 * 14336, 0);
    assert_close(eagle3.output, 32000.0 * 4096, 0);
    assert_close(dsc_model_shape_parameters(&head), 425e6,
                 1e6); // the published head's file: 850 MB
    assert_ok(dsc_model_shape_draft(&head, "eagle", &s, &err), err);
    const dsc_model_work eagle = dsc_model_shape_work(&head);
    assert_close(eagle.output, 128256.0 * 4096, 0);
    assert_close(eagle.feed_forward, 3.0 * 4096 * 14336 + 2.0 * 4096 * 4096, 0);
    assert_close(eagle.first, 0, 0);
}

#define DENSE(type, h, f, l, a, kv, v)                                                             \
    "{\"model_type\": \"" type "\", \"hidden_size\": " #h ", \"intermediate_size\": " #f           \
    ", \"num_hidden_layers\": " #l ", \"num_attention_heads\": " #a                                \
    ", \"num_key_value_heads\": " #kv ", \"vocab_size\": " #v

// config.json with the published values reads as the preset of that name.
static void configurations_equal_their_presets(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {
        {"llama-3.1-8b", DENSE("llama", 4096, 14336, 32, 32, 8, 128256) "}"},
        {"qwen2.5-7b", DENSE("qwen2", 3584, 18944, 28, 28, 4, 152064) "}"},
        {"qwen3-0.6b", DENSE("qwen3", 1024, 3072, 28, 16, 8, 151936) ", \"head_dim\": 128, "
                                                                     "\"tie_word_embeddings\": "
                                                                     "true}"},
        {"qwen3-30b-a3b",
         DENSE("qwen3_moe", 2048, 6144, 48, 32, 4, 151936) ", \"head_dim\": 128, \"num_experts\": "
                                                           "128, \"num_experts_per_tok\": 8, "
                                                           "\"moe_intermediate_size\": 768, "
                                                           "\"decoder_sparse_step\": 1, "
                                                           "\"mlp_only_layers\": []}"},
        {"mixtral-8x7b", DENSE("mixtral", 4096, 14336, 32, 32, 8,
                               32000) ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2}"},
        {"gpt-oss-20b", DENSE("gpt_oss", 2880, 2880, 24, 64, 8,
                              201088) ", \"head_dim\": 64, \"num_local_experts\": 32, "
                                      "\"num_experts_per_tok\": 4, \"quantization_config\": "
                                      "{\"quant_method\": \"mxfp4\"}}"},
        {"deepseek-v3",
         DENSE("deepseek_v3", 7168, 18432, 61, 128, 128,
               129280) ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": "
                       "128, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"n_routed_experts\": "
                       "256, \"num_experts_per_tok\": 8, \"moe_intermediate_size\": 2048, "
                       "\"n_shared_experts\": 1, \"first_k_dense_replace\": 3, "
                       "\"quantization_config\": {\"quant_method\": \"fp8\"}}"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        dsc_model_shape read, preset;
        dsc_error err = {0};
        put_file(in_scratch("config.json"), files[i].text, strlen(files[i].text));
        assert_ok(dsc_model_shape_find(&read, in_scratch("config.json"), &err), err);
        assert_ok(dsc_model_shape_find(&preset, files[i].name, &err), err);
        assert_close(dsc_model_shape_parameters(&read), dsc_model_shape_parameters(&preset), 0);
        assert_close(dsc_model_shape_active(&read), dsc_model_shape_active(&preset), 0);
        assert_close(dsc_model_shape_cache(&read), dsc_model_shape_cache(&preset), 0);
        assert_close(dsc_model_shape_attention(&read), dsc_model_shape_attention(&preset), 0);
        assert_int_equal(read.kind, preset.kind);
        assert_string_equal(read.weights ? read.weights : "", preset.weights ? preset.weights : "");
        assert_true(read.only_experts == preset.only_experts);
    }
}

static void other_configurations_are_read(void **state)
{
    (void)state;
    static const char mistral[] = DENSE("mistral", 4096, 14336, 32, 32, 8, 32000) "}";
    static const struct {
        const char *text;
        double parameters; // of the published files
    } published[] = {
        {DENSE("gemma3_text", 1152, 6912, 26, 4, 1, 262144) ", \"head_dim\": 256}", 999885952},
        {"{\"model_type\": \"gemma3\", \"text_config\": {\"hidden_size\": 2560, "
         "\"intermediate_size\": 10240, \"num_hidden_layers\": 34}}",
         3880263168}, // the text part of gemma-3-4b
        {DENSE("smollm3", 2048, 11008, 36, 16, 4, 128256) "}", 3075098624},
    };
    static const char sparse[] =
        DENSE("qwen3_moe", 64, 32, 6, 4, 4, 99) ", \"num_local_experts\": 4, "
                                                "\"num_experts_per_tok\": 2, "
                                                "\"moe_intermediate_size\": 16, "
                                                "\"decoder_sparse_step\": 2, "
                                                "\"mlp_only_layers\": [3]}";
    static const char t5[] = "{\"model_type\": \"t5\", \"d_model\": 512, \"d_ff\": 2048, "
                             "\"d_kv\": 64, \"num_heads\": 8, \"num_layers\": 6, "
                             "\"vocab_size\": 32128}";
    static const char head[] =
        DENSE("llama", 4096, 14336, 1, 32, 8, 128256) ", \"draft_vocab_size\": 32000}";
    dsc_model_shape s, named, target;
    dsc_error err = {0};
    put_file(in_scratch("config.json"), mistral, sizeof mistral - 1);
    assert_ok(dsc_model_shape_find(&s, in_scratch("config.json"), &err), err);
    assert_close(dsc_model_shape_parameters(&s), 7241732096, 0); // Mistral-7B
    assert_close(dsc_model_shape_cache(&s), 2 * 32 * 1024, 0);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        put_file(in_scratch("config.json"), published[i].text, strlen(published[i].text));
        assert_ok(dsc_model_shape_find(&s, in_scratch("config.json"), &err), err);
        assert_close(dsc_model_shape_parameters(&s), published[i].parameters, 0);
    }
    put_file(in_scratch("config.json"), sparse, sizeof sparse - 1);
    assert_ok(dsc_model_shape_find(&s, in_scratch("config.json"), &err), err);
    assert_int_equal(s.dense_layers, 4); // layers 1 and 5 have experts
    put_file(in_scratch("config.json"), t5, sizeof t5 - 1);
    assert_ok(dsc_model_shape_find(&s, in_scratch("config.json"), &err), err);
    assert_close(dsc_model_shape_parameters(&s), 60506624, 0);  // the first T5, small
    put_file(in_scratch("config.json"), head, sizeof head - 1); // of EAGLE-3 for Llama-3.1-8B
    assert_ok(dsc_model_shape_find(&target, "llama-3.1-8b", &err), err);
    assert_ok(dsc_model_shape_draft(&named, "eagle3", &target, &err), err);
    assert_ok(dsc_model_shape_draft(&s, in_scratch("config.json"), &target, &err), err);
    assert_close(dsc_model_shape_parameters(&s), dsc_model_shape_parameters(&named), 0);
    assert_int_equal(s.draft_head, DSC_HEAD_EAGLE3);
}

static void bad_configurations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"model_type\": \"gpt2\"}", "gpt2"},
        {"{}", "model_type"},
        {"{\"model_type\": \"llama\"}", "hidden_size"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 4.5}", "hidden_size"},
        {DENSE("mixtral", 64, 64, 2, 4, 4, 99) "}", "num_local_experts"},
        {DENSE("mixtral", 64, 64, 2, 4, 4, 99) ", \"num_local_experts\": 2, "
                                               "\"num_experts_per_tok\": 3}",
         "3 of 2 experts"},
        {DENSE("qwen3_moe", 64, 64, 2, 4, 4, 99) ", \"num_experts\": 4, "
                                                 "\"num_experts_per_tok\": 2, "
                                                 "\"moe_intermediate_size\": 16, "
                                                 "\"mlp_only_layers\": [1, 0]}",
         "none of 2 layers has experts"},
        {"{\"model_type\": \"gemma3\"}", "'text_config' is missing"},
        {DENSE("llama", 64, 64, 2, 4, 4, 99) ", \"quantization_config\": {\"quant_method\": "
                                             "\"gptq\", \"bits\": 3}}",
         "weights="},
        {"{\"model_type\": \"llama\", \"hidden_size\": 65, \"intermediate_size\": 1, "
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"vocab_size\": 4}",
         "no multiple"},
        {"{\"model_type\": ", "config.json:"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_model_shape s;
        dsc_error err = {0};
        put_file(in_scratch("config.json"), bad[i].text, strlen(bad[i].text));
        int rc = dsc_model_shape_find(&s, in_scratch("config.json"), &err);
        expect_failure(rc, DSC_EINPUT, &err, bad[i].says);
    }
}

// --- times -------------------------------------------------------------------------------------

#define BOUND ",efficiency=1,overhead=0"

// By hand. Llama-2-7B: 32 layers of 4 x 4096^2 + 3 x 4096 x 11008 numbers and an output matrix of
// 32000 x 4096; 2 bytes each over 2039 GB/s are 6.48 ms. KV cache: 2 x 32 x 4096 numbers, or half a
// MiB, for each token of the context.
static void bounds_by_hand(void **state)
{
    (void)state;
    dsc_cost cost = cost_of("roofline:llama-2-7b,none,a100-80" BOUND);
    const double layer = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008, matrices = 32 * layer + 131072000;
    assert_close(matrices, 6607077376, 0);
    double read = 2 * 6607077376.0 / 2039e9, token = 524288 / 2039e9;
    assert_close(read, 0.006481, 5e-7);
    assert_close(target_s(&cost, 1, 0, 1), read, 1e-15);
    assert_close(target_s(&cost, 1, 1000, 1), read + 1000 * token, 1e-15);
    assert_close(target_s(&cost, 5, 1000, 1), read + 1004 * token, 1e-15);
    assert_close(target_s(&cost, 1, 1000, 16), read + 16000 * token, 1e-15); // read once for all
    // From 312e12 / 2039e9 = 153.01 tokens on there is more to multiply than to read.
    assert_close(target_s(&cost, 1, 0, 153), read, 1e-15);
    assert_close(target_s(&cost, 1, 0, 154), 154 * 2 * 6607077376.0 / 312e12, 1e-15);
    assert_non_null(strstr(cost.caveat, "the least time"));
    double s;
    dsc_error err = {0};
    expect_failure(dsc_cost_draft(&cost, (dsc_pass){1, 1, 1, false}, &s, &err), DSC_EUSAGE, &err,
                   "no draft model");
    dsc_cost_fini(&cost);
    // Llama-3-70B on 8 H100, 128256 x 8192 at the end, 8 of 64 heads kept: 139 GB over 8 x 3350
    // GB/s are 5.2 ms.
    cost = cost_of("roofline:Llama-3-70B,llama-3-8b,h100,tp=8,efficiency=1,overhead=0.001,"
                   "draft-overhead=0.001");
    double all = 80 * (2 * 8192.0 * (8192 + 1024) + 3 * 8192.0 * 28672) + 128256.0 * 8192;
    assert_close(2 * all, 139.0e9, 0.1e9);
    assert_close(target_s(&cost, 1, 0, 1), 0.001 + 2 * all / 3350e9 / 8, 1e-15);
    assert_close(target_s(&cost, 1, 100, 1),
                 0.001 + (2 * all + 100 * 2 * 2 * 80 * 1024.0) / 3350e9 / 8, 1e-15);
    all = 32 * (2 * 4096.0 * (4096 + 1024) + 3 * 4096.0 * 14336) + 128256.0 * 4096;
    assert_close(draft_s(&cost, 1, 0, 1, true), 0.001 + 2 * all / 3350e9, 1e-15); // on one machine
    assert_non_null(strstr(cost.caveat, "were given"));
    dsc_cost_fini(&cost);
    // T5: a pass of the decoder, with queries and output of the attention to the prompt.
    all = 8 * (6 * 512.0 * 384 + 3 * 512.0 * 1024) + 32128.0 * 512;
    assert_close(time_of("roofline:t5-small,v100" BOUND, 1, 0, 1), 2 * all / 900e9, 1e-15);
}

// The shares, the part that is not hidden, and the fixed times of a pass and of 32 layers.
static void engines_by_hand(void **state)
{
    (void)state;
    size_t count;
    const dsc_engine e = dsc_engines(&count)[0];
    const double weights = 6607077376, fixed = e.pass_s + 32 * e.layer_s;
    const double read = 2 * weights / (2039e9 * e.bandwidth);
    const double multiply = 2 * 64 * weights / (312e12 * e.compute);
    assert_close(time_of("roofline:llama-2-7b,a100", 1, 0, 64),
                 fixed + read + (1 - e.overlap) * multiply, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,a100,engine=vllm,overhead=0.5", 1, 0, 64),
                 0.5 + read + (1 - e.overlap) * multiply, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,a100,bandwidth-efficiency=.5,compute-efficiency=.25,"
                         "overlap=1,overhead=0,engine=sglang",
                         1, 0, 1),
                 2 * 2 * weights / 2039e9, 1e-15); // an engine does not undo what replaces it
    // A pass of the draft model has the engine's overhead, but no more than one of the target.
    dsc_cost cost = cost_of("roofline:llama-2-7b,eagle,a100,efficiency=1,overhead=0.003");
    const double head = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008 + 2.0 * 4096 * 4096 + 131072000;
    assert_close(draft_s(&cost, 1, 0, 1, true), 2 * head / 2039e9 + e.pass_s + e.layer_s, 1e-15);
    dsc_cost_fini(&cost);
    // The first pass of an EAGLE-3 head projects the target's states, the others do not.
    cost = cost_of("roofline:llama-2-7b,eagle3,a100" BOUND);
    assert_close(draft_s(&cost, 1, 0, 1, false) - draft_s(&cost, 1, 0, 1, true),
                 2 * 3.0 * 4096 * 4096 / 2039e9, 1e-15);
    dsc_cost_fini(&cost);
}

// Attention multiplies whole tiles of query rows, and the longer of reading and multiplying counts.
// Llama-3.1-8B has 32 query heads over 8 of keys, of 128 numbers in 32 layers. On an A100 one token
// is multiplied as 8 tiles of 64 rows, six tokens as 32 tiles; on an H100 six are 8 tiles of 24
// rows.
static void attention_multiplies_tiles(void **state)
{
    (void)state;
    static const char plain[] =
        ",efficiency=1,overhead=0,attention-efficiency=.5,attention-tile=64,bandwidth-efficiency=1";
    static const struct {
        const char *machine;
        double peak, bandwidth, tokens, tiles;
    } of[] = {{"a100", 312e12, 2039e9, 1, 8},     {"a100", 312e12, 2039e9, 6, 32},
              {"a100", 312e12, 2039e9, 64, 32},   {"a100", 312e12, 2039e9, 65, 64},
              {"h100", 989.4e12, 3350e9, 6, 8},   {"h100", 989.4e12, 3350e9, 16, 8},
              {"h100", 989.4e12, 3350e9, 17, 16}, {"a100,engine=sglang", 312e12, 2039e9, 6, 8}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[200];
        snprintf(text, sizeof text, "roofline:llama-3.1-8b,%s%s", of[i].machine, plain);
        const double reads = 2 * 32 * 1024 * 2 * 1000 / of[i].bandwidth; // of 1000 more tokens
        const double multiplies = 4. * 32 * 128 * 64 * of[i].tiles * 1000 / (of[i].peak / 2);
        assert_close(time_of(text, of[i].tokens, 3000, 1) - time_of(text, of[i].tokens, 2000, 1),
                     fmax(reads, multiplies), 1e-12);
    }
    // Latent attention: all 128 heads have the same keys, so one token fills two tiles.
    assert_close(
        time_of("roofline:deepseek-v3,h200,tp=16,efficiency=1,overhead=0", 1, 9000, 1),
        time_of("roofline:deepseek-v3,h200,tp=16,efficiency=1,overhead=0,attention-tile=64", 1,
                9000, 1),
        0);
}

// A pass over drafts and prompts: all tokens pass the layers, logits are needed of the drafts and
// of one token of each prompt, whose tokens see those before them.
static void mixed_passes_by_hand(void **state)
{
    (void)state;
    dsc_error err = {0};
    double s;
    dsc_cost cost = cost_of("roofline:llama-3.1-8b,eagle3,a100" BOUND);
    const double layers = 32 * (2 * 4096.0 * (4096 + 1024) + 3 * 4096.0 * 14336);
    const double output = 128256.0 * 4096, read = 1 / 2039e9, multiply = 1 / 312e12;
    dsc_mixed_pass pass = {8, 48, 8 * 500, 2, 600, 2 * 100, true};
    const double decode = 2 * 32 * 1024 * 2.0 * 8 * 505 * read; // bytes are longer
    const double prefill = fmax(2 * 32 * 1024 * 2.0 * 2 * 399 * read,
                                4 * 32 * 4096.0 * 600 * (100 + 301 / 2.) * multiply);
    assert_ok(dsc_mixed_target(&cost, &pass, &s, &err), err);
    assert_close(s, 2 * (layers * 648 + output * 50) * multiply + decode + prefill, 1e-12);
    // A head reads all tokens again, and drafts from one token of each sequence.
    const double head = 2 * 4096 * (4096 + 2048.0) + 4096.0 * 4096 + 3 * 4096.0 * 14336;
    assert_ok(dsc_mixed_first_draft(&cost, (dsc_pass){1, 500, 10, true}, &pass, &s, &err), err);
    assert_close(s,
                 2 * ((head + 3 * 4096.0 * 4096) * 648 + 32000 * 4096.0 * 10) * multiply +
                     (decode + prefill) / 32,
                 1e-12);
    // Without prompts it is the pass that dsc_cost_target prices.
    pass.prefilling = pass.prefill_tokens = pass.prefill_context = 0;
    assert_ok(dsc_mixed_target(&cost, &pass, &s, &err), err);
    assert_close(s, target_s(&cost, 6, 500, 8), 1e-15);
    dsc_cost_fini(&cost);
    // A draft model of its own has its own cache: prompts, and one token of each sequence.
    cost = cost_of("roofline:llama-3.1-70b,llama-3.1-8b,a100,tp=4" BOUND);
    pass.prefilling = 1;
    pass.prefill_tokens = 600;
    assert_ok(dsc_mixed_first_draft(&cost, (dsc_pass){1, 500, 8, true}, &pass, &s, &err), err);
    assert_close(s,
                 2 * (layers * 608 + output * 8) * multiply + 2 * 32 * 1024 * 2.0 * 8 * 500 * read +
                     4 * 32 * 4096.0 * 600 * 601 / 2. * multiply,
                 1e-12);
    dsc_cost_fini(&cost);
    // Other cost models price the mean sequence.
    cost = cost_of("linear:1,.25,.5");
    assert_ok(dsc_mixed_target(&cost, &pass, &s, &err), err);
    assert_close(s, 1 + .25 * 648, 1e-12);
    assert_ok(dsc_mixed_first_draft(&cost, (dsc_pass){1, 500, 8, true}, &pass, &s, &err), err);
    assert_close(s, .5, 0);
    dsc_cost_fini(&cost);
}

// Formats: bytes of the layers, and the peak where the machine has such units. The output matrix
// and the embedding stay in 16 bits.
static void formats_by_hand(void **state)
{
    (void)state;
    const double output = 131072000, layers = 6607077376 - output;
    const double bits16 = (2 * layers + 2 * output) / 3350e9;
    assert_close(time_of("roofline:llama-2-7b,h100,weights=bf16" BOUND, 1, 0, 1), bits16, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,h100,weights=fp8" BOUND, 1, 0, 1),
                 (layers + 2 * output) / 3350e9, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,h100,weights=w4a16" BOUND, 1, 0, 1),
                 (layers * 4.15625 / 8 + 2 * output) / 3350e9, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,h100,weights=fp8" BOUND, 64, 0, 64) -
                     time_of("roofline:llama-2-7b,h100,weights=fp8" BOUND, 64, 0, 63),
                 2 * 64 * (layers / 1978.9e12 + output / 989.4e12) + 262144 * 2 * 63 / 3350e9,
                 1e-9);
    // An A100 has no FP8 units; four bits are multiplied in 16.
    assert_close(time_of("roofline:llama-2-7b,a100,weights=fp8" BOUND, 1, 0, 1024),
                 2 * 1024 * (layers + output) / 312e12, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,a100,weights=int8" BOUND, 1, 0, 1024),
                 2 * 1024 * (layers / 624e12 + output / 312e12), 1e-15);
    assert_close(time_of("roofline:llama-2-7b,a100,weights=int4" BOUND, 1, 0, 1024),
                 2 * 1024 * (layers + output) / 312e12, 1e-15);
    assert_close(time_of("roofline:llama-2-7b,h100,kv=fp8" BOUND, 1, 1000, 1),
                 bits16 + 1000 * 262144 / 3350e9, 1e-15);
    // gpt-oss: 4.25 bits for the experts, 16 for the rest. One token reads four experts.
    const double attention = 24 * (2880.0 * (4096 + 2 * 512) + 2880.0 * 4096);
    const double router = 24 * 2880.0 * 32, expert = 24 * 3.0 * 2880 * 2880;
    assert_close(time_of("roofline:gpt-oss-20b,h100" BOUND, 1, 0, 1),
                 (2 * (attention + router + 201088.0 * 2880) + 4 * 0.53125 * expert) / 3350e9,
                 1e-15);
}

// A pass takes longer with more tokens, sequences or context; no preset is faster than the bound.
static void times_are_monotone(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b,h100", "qwen3-30b-a3b,b200,weights=fp8",
                                         "deepseek-v3,h200,tp=16,kv=fp8",
                                         "gpt-oss-120b,mi300x,experts=uniform"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char text[2][120];
        dsc_cost cost[2];
        for (int bound = 0; bound < 2; bound++) {
            snprintf(text[bound], sizeof *text, "roofline:%s,memory=1e6%s", models[m],
                     bound ? BOUND : "");
            cost[bound] = cost_of(text[bound]);
        }
        for (double tokens = 1; tokens <= 64; tokens += 3)
            for (double context = 0; context <= 8192; context = 2 * context + 64)
                for (double batch = 1; batch <= 512; batch *= 2) {
                    const double t = target_s(&cost[0], tokens, context, batch);
                    assert_true(t >= target_s(&cost[1], tokens, context, batch));
                    assert_true(target_s(&cost[0], tokens + 1, context, batch) > t);
                    assert_true(target_s(&cost[0], tokens, context + 1, batch) > t);
                    assert_true(target_s(&cost[0], tokens, context, batch + 1) > t);
                }
        dsc_cost_fini(&cost[0]);
        dsc_cost_fini(&cost[1]);
    }
}

// --- experts -----------------------------------------------------------------------------------

static double distinct(const char *text, double tokens, double batch)
{
    dsc_experts e;
    double x;
    dsc_error err = {0};
    assert_ok(dsc_experts_parse(&e, text, &err), err);
    assert_ok(dsc_experts_distinct(&e, 256, 8, tokens, batch, &x, &err), err);
    dsc_experts_fini(&e);
    return x;
}

// Measured for 256 experts of which a token takes 8: 39.4 after 8 tokens, 58.9 after 15.
static void experts_by_hand(void **state)
{
    (void)state;
    assert_close(distinct("uniform", 8, 1), 57.4, 0.05);
    assert_close(distinct("uniform", 15, 1), 97.0, 0.05);
    assert_close(distinct("power:0.75", 8, 1), 39.4, 0.05 * 39.4);
    assert_close(distinct("power:.75", 15, 1), 58.9, 0.05 * 58.9);
    assert_close(distinct("power:.75", 1e6, 1), 256, 0); // all of them
    for (double batch = 1; batch <= 64; batch *= 4)      // sequences choose independently
        assert_close(distinct("power:.75", 1, batch), distinct("uniform", 1, batch), 1e-9);
    assert_close(distinct("uniform", 3, 5), distinct("uniform", 15, 1), 1e-9);
    static const char rows[] = "tokens\tdistinct\n1\t8\n8\t39.4\n15\t58.9\n";
    char text[300];
    put_file(in_scratch("e.tsv"), rows, sizeof rows - 1);
    snprintf(text, sizeof text, "table:%s", in_scratch("e.tsv"));
    assert_close(distinct(text, 8, 1), 39.4, 1e-12);
    assert_close(distinct(text, 11.5, 1), (39.4 + 58.9) / 2, 1e-12);
    assert_close(distinct(text, 0.5, 1), 4, 1e-12);
    dsc_experts e;
    double x;
    dsc_error err = {0};
    assert_ok(dsc_experts_parse(&e, text, &err), err);
    expect_failure(dsc_experts_distinct(&e, 256, 8, 16, 1, &x, &err), DSC_EINPUT, &err,
                   "not extrapolated");
    dsc_experts_fini(&e);
    static const char falls[] = "tokens\tdistinct\n1\t8\n8\t7\n";
    put_file(in_scratch("e.tsv"), falls, sizeof falls - 1);
    expect_failure(dsc_experts_parse(&e, text, &err), DSC_EINPUT, &err, ":3:");
    // Of a pass: layers of Qwen3-30B-A3B read the experts that it touches.
    dsc_model_shape s;
    assert_ok(dsc_model_shape_find(&s, "qwen3-30b-a3b", &err), err);
    const dsc_model_work w = dsc_model_shape_work(&s);
    const double more = (2 * 8 - 8) * w.expert * w.expert_layers * 2 / 3350e9;
    assert_close(time_of("roofline:qwen3-30b-a3b,h100,experts=power:1" BOUND, 2, 0, 1) -
                     time_of("roofline:qwen3-30b-a3b,h100" BOUND, 1, 0, 1),
                 more + 2 * 48 * 2 * 4 * 128 / 3350e9, 1e-12);
}

// --- memory ------------------------------------------------------------------------------------

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    double s;
    dsc_cost cost;
    dsc_error err = {0};
    expect_failure(dsc_cost_parse(&cost, "roofline:llama-3.1-70b,h100", &err), DSC_EUSAGE, &err,
                   "141.1 GB of weights");
    assert_non_null(strstr(err.message, "72.0 GB"));
    assert_non_null(strstr(err.message, "tp=2"));
    cost = cost_of("roofline:llama-3.1-70b,h100,tp=2"); // 144 GB: 2.9 GB for the cache
    assert_true(target_s(&cost, 1, 1000, 8) > 0);
    expect_failure(dsc_cost_target(&cost, (dsc_pass){1, 1000, 9, false}, &s, &err), DSC_EUSAGE,
                   &err, "3.0 GB of KV cache (batch size 9, 1001 tokens each)");
    dsc_cost_fini(&cost);
    // Half the bytes, a larger share, a larger card, and a head beside it.
    cost = cost_of("roofline:llama-3.1-70b,h100,tp=2,kv=fp8");
    assert_true(target_s(&cost, 1, 1000, 17) > 0);
    dsc_cost_fini(&cost);
    cost = cost_of("roofline:llama-3.1-70b,h100,tp=2,gpu-memory-utilization=.95");
    assert_true(target_s(&cost, 1, 1000, 32) > 0);
    dsc_cost_fini(&cost);
    cost = cost_of("roofline:llama-3.1-70b,h100,weights=w4a16");
    dsc_cost_fini(&cost);
    cost = cost_of("roofline:llama-3.1-70b,h100,memory=200");
    dsc_cost_fini(&cost);
    expect_failure(dsc_cost_parse(&cost, "roofline:llama-3.1-70b,eagle,h100,tp=2,memory=79", &err),
                   DSC_EUSAGE, &err, "GB of weights");
    // Layers of 68.451 + 6.979 billion weights in 4 bits and scales, 0.51953 bytes; embedding and
    // output matrix of 2.103 + 1.051 in 16 bits.
    expect_failure(
        dsc_cost_parse(&cost, "roofline:llama-3.1-70b,llama-3.1-8b,h100,weights=w4a16,memory=40",
                       &err),
        DSC_EUSAGE, &err, "45.5 GB of weights");
}

// --- published steps ---------------------------------------------------------------------------

static double squared_errors(const dsc_engine *e)
{
    size_t count;
    const dsc_published_step *p = dsc_published_steps(&count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        char text[300];
        double seconds = 0;
        dsc_error err = {0};
        if (!p[i].calibrates || strstr(p[i].cost, "engine="))
            continue;
        snprintf(text, sizeof text,
                 "%s,bandwidth-efficiency=%.9g,compute-efficiency=%.9g,overlap=%.9g,"
                 "overhead=%.9g,draft-overhead=%.9g",
                 p[i].cost, e->bandwidth, e->compute, e->overlap, e->pass_s + 32 * e->layer_s,
                 e->pass_s + e->layer_s);
        dsc_published_step step = p[i];
        step.cost = text;
        assert_ok(dsc_published_step_time(&step, &seconds, &err), err);
        sum += pow(seconds / p[i].seconds - 1, 2);
    }
    return sum;
}

// Fitted steps within 3 %, others within 10 %: the bars that the documentation states.
static void published_steps_are_met(void **state)
{
    (void)state;
    size_t count, held_out = 0;
    const dsc_published_step *p = dsc_published_steps(&count);
    for (size_t i = 0; i < count; i++) {
        double seconds;
        dsc_error err = {0};
        assert_ok(dsc_published_step_time(&p[i], &seconds, &err), err);
        print_message("%s %s %g: %+.1f %%\n", p[i].cost, p[i].workload, p[i].batch,
                      100 * (seconds / p[i].seconds - 1));
        held_out += !p[i].calibrates;
        assert_close(seconds / p[i].seconds, 1, p[i].calibrates ? 0.03 : 0.10);
    }
    assert_true(held_out >= 8);
    // The bound is up to 67 % off.
    const dsc_published_step *last = &p[7];
    assert_true(time_of("roofline:llama-3.1-8b,a100" BOUND, 6, 377, 64) < 0.5 * last->seconds);
}

// The constants of the default engine are the least squares of the steps that calibrate: no
// constant is better 5 % away.
static void constants_are_those_of_the_fit(void **state)
{
    (void)state;
    size_t count;
    const dsc_engine fitted = dsc_engines(&count)[0];
    const double least = squared_errors(&fitted);
    assert_true(least < 9 * 0.0135 * 0.0135);
    for (int k = 0; k < 8; k++) {
        dsc_engine e = fitted;
        double *const constant[] = {&e.bandwidth, &e.compute, &e.overlap, &e.layer_s};
        *constant[k / 2] *= k % 2 ? 1.05 : 0.95;
        assert_true(squared_errors(&e) > least);
    }
}

// What tiles explain without any step of speculation under load: the constants of this test are
// fitted to the steps without speculation, to those of one request, and to 65 us for each token of
// a prompt beside 64 requests of GSM8K. docs/validation.md has the errors.
static void tiles_explain_steps_under_load(void **state)
{
    (void)state;
    static const double docs[2][4] = {{-8.3, -9.3, -13.1, -16.0}, {-4.8, -5.0, -6.1, -7.7}};
    static const size_t step[] = {6, 7, 15, 16}; // HumanEval and GSM8K, 32 and 64 requests
    static const double pass_s[] = {31e-6, 25e-6}, layer_s[] = {76.7e-6, 76.9e-6};
    size_t count;
    const dsc_published_step *p = dsc_published_steps(&count);
    for (int tiles = 0; tiles < 2; tiles++) {
        char text[300];
        double s, without;
        dsc_error err = {0};
        snprintf(text, sizeof text,
                 "roofline:llama-3.1-8b,eagle3,a100-80,bandwidth-efficiency=.894,"
                 "compute-efficiency=.671,overlap=.505,overhead=%g,draft-overhead=%g,"
                 "attention-tile=%d",
                 pass_s[tiles] + 32 * layer_s[tiles], pass_s[tiles] + layer_s[tiles],
                 tiles ? 64 : 1);
        for (size_t i = 0; i < 5; i++) { // fitted
            dsc_published_step of = p[i];
            of.cost = text;
            assert_ok(dsc_published_step_time(&of, &s, &err), err);
            assert_close(s / of.seconds, 1, 0.03);
        }
        for (size_t i = 0; i < 4; i++) {
            dsc_published_step of = p[step[i]];
            of.cost = text;
            assert_true(of.draft_tokens == 5 && of.batch == (i % 2 ? 64 : 32));
            assert_ok(dsc_published_step_time(&of, &s, &err), err);
            assert_close(100 * (s / of.seconds - 1), docs[tiles][i], 0.3);
        }
        dsc_cost cost = cost_of(text);
        const dsc_mixed_pass mixed = {64, 64, 64 * 845.1, 1, 717, 0, true};
        assert_ok(dsc_mixed_target(&cost, &mixed, &s, &err), err);
        without = target_s(&cost, 1, 845.1, 64);
        assert_close((s - without) / 717, 65e-6, 1e-6);
        dsc_cost_fini(&cost);
    }
}

// --- refusals ----------------------------------------------------------------------------------

static void bad_words_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"roofline:", "expected"},
        {"roofline:llama-2-7b", "expected"},
        {"roofline:llama-2-7b,none", "'none'"},
        {"roofline:lama-2-7b,none,h100", "llama-2-7b"},
        {"roofline:llama-2-7b,nne,h100", "nne"},
        {"roofline:llama-2-7b,none,h10", "h100"},
        {"roofline:llama-2-7b,none,h100,tp=0", "tp=0"},
        {"roofline:llama-2-7b,none,h100,tp=1.5", "tp=1.5"},
        {"roofline:llama-2-7b,none,h100,overhead=-1", "overhead=-1"},
        {"roofline:llama-2-7b,none,h100,overhead=1x", "overhead=1x"},
        {"roofline:llama-2-7b,none,h100,", "NAME=VALUE"},
        {"roofline:llama-2-7b,h100,tp=1,h100", "NAME=VALUE"},
        {"roofline:llama-2-7b,h100,efficiency=0", "efficiency=0"},
        {"roofline:llama-2-7b,h100,efficiency=1.1", "efficiency=1.1"},
        {"roofline:llama-2-7b,h100,overlap=2", "overlap=2"},
        {"roofline:llama-2-7b,h100,attention-tile=0", "attention-tile=0"},
        {"roofline:llama-2-7b,h100,attention-efficiency=2", "attention-efficiency=2"},
        {"roofline:llama-2-7b,h100,engine=vlm", "vllm"},
        {"roofline:llama-2-7b,h100,weights=fp9", "fp8"},
        {"roofline:llama-2-7b,h100,kv=int4", "KV cache format"},
        {"roofline:llama-2-7b,h100,efficency=1", "efficency"},
        {"roofline:llama-2-7b,h100,experts=power:2", "power:A"},
        {"roofline:llama-2-7b,h100,experts=some", "uniform"},
        {"roofline:t5-small,eagle,h100", "not a dense decoder"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_cost cost;
        dsc_error err = {0};
        expect_failure(dsc_cost_parse(&cost, bad[i].text, &err), DSC_EUSAGE, &err, bad[i].says);
    }
}

// The times of many passes are those of one after the other, bit by bit.
static void passes_together_take_the_same_times(void **state)
{
    (void)state;
    static const char *const texts[] = {"roofline:llama-3.1-8b,a100",
                                        "roofline:llama-3.1-8b,h100,efficiency=1,overhead=0",
                                        "roofline:llama-3.1-70b,h100,tp=4,weights=fp8,kv=fp8"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        dsc_cost cost = cost_of(texts[t]);
        for (int batch = 1; batch <= 64; batch *= 4)
            for (int64_t step = 1; step <= 7; step += 3) {
                const dsc_pass pass = {.context = 312.7, .batch = batch};
                double together[203];
                assert_true(cost.type->targets(&cost, pass, batch, step, 203, together));
                for (int64_t i = 0; i < 203; i++) {
                    const double tokens = (double)(batch + i * step) / batch;
                    const double alone = target_s(&cost, tokens, pass.context, pass.batch);
                    assert_memory_equal(&together[i], &alone, sizeof alone);
                }
            }
        dsc_cost_fini(&cost);
    }
    dsc_cost experts = cost_of("roofline:mixtral-8x7b,h100,tp=4");
    double seconds;
    assert_false(experts.type->targets(&experts, (dsc_pass){.batch = 1}, 1, 1, 1, &seconds));
    dsc_cost_fini(&experts);
}

SUITE(roofline)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_have_the_published_sizes),
        cmocka_unit_test(caches_and_heads_by_hand),
        cmocka_unit_test(configurations_equal_their_presets),
        cmocka_unit_test(other_configurations_are_read),
        cmocka_unit_test(bad_configurations_are_refused),
        cmocka_unit_test(bounds_by_hand),
        cmocka_unit_test(engines_by_hand),
        cmocka_unit_test(attention_multiplies_tiles),
        cmocka_unit_test(mixed_passes_by_hand),
        cmocka_unit_test(formats_by_hand),
        cmocka_unit_test(times_are_monotone),
        cmocka_unit_test(experts_by_hand),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(published_steps_are_met),
        cmocka_unit_test(constants_are_those_of_the_fit),
        cmocka_unit_test(tiles_explain_steps_under_load),
        cmocka_unit_test(passes_together_take_the_same_times),
        cmocka_unit_test(bad_words_are_refused),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

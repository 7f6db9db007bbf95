// SPDX-License-Identifier: Apache-2.0
// The settings of inference engines that draftscope prints, or leaves out for a reason, with the
// file and the commit in which each name was read.
#include "cli/tune/engine.h"

#define VLLM "vllm/config/speculative.py at 002e77c"
#define SGLANG "docs/advanced_features/speculative_decoding.md at 067ad4d"
#define SGLANG_ARGS "python/sglang/srt/server_args.py at 001067f"
#define SGLANG_ENV "python/sglang/srt/environ.py, speculative/spec_utils.py, pull request 29645"
#define TRTLLM "tensorrt_llm/llmapi/llm_args.py at 0004396"
#define TRTLLM_SA "tensorrt_llm/_torch/speculative/sa_enhancer.py at 1a487b3"
#define TRTLLM_ENV "tensorrt_llm/_torch/speculative/interface.py, pull requests 9371, 9608, 13569"
#define LLAMACPP "common/arg.cpp at 0017d6f"
#define LLAMACPP_NGRAM "common/arg.cpp at 0017d6f, common/ngram-map.cpp at 6870ab7"
#define HF "src/transformers/generation/candidate_generator.py at 00a11b6"

const char *const cli_engine_word[CLI_ENGINE_COUNT] = {"vllm", "sglang", "tensorrt-llm",
                                                       "llama.cpp", "transformers"};

// clang-format off
const cli_engine_name cli_engine_names[] = {
    {CLI_VLLM, "--speculative-config", "a JSON object of the keys below", VLLM, true},
    {CLI_VLLM, "method", "ngram, suffix, draft_model, eagle, eagle3, mtp, medusa", VLLM, true},
    {CLI_VLLM, "model", "draft model or head", VLLM, true},
    {CLI_VLLM, "num_speculative_tokens", "--num-speculative-tokens", VLLM, true},
    {CLI_VLLM, "num_speculative_tokens_per_batch_size",
     "[first, last, length] of batch sizes; length 0 switches speculation off", VLLM, true},
    {CLI_VLLM, "prompt_lookup_max", "--prompt-lookup-max", VLLM, true},
    {CLI_VLLM, "prompt_lookup_min", "--prompt-lookup-min", VLLM, true},
    {CLI_VLLM, "suffix_decoding_max_tree_depth", "--max-tree-depth", VLLM, true},
    {CLI_VLLM, "suffix_decoding_max_cached_requests",
     "--max-cached-requests; 0: no other request is used", VLLM, true},
    {CLI_VLLM, "suffix_decoding_max_spec_factor", "--max-spec-factor", VLLM, true},
    {CLI_VLLM, "suffix_decoding_min_token_prob", "--min-token-prob", VLLM, true},
    {CLI_VLLM, "draft_sample_method", "probabilistic where the draft model samples", VLLM, true},
    {CLI_VLLM, "rejection_sample_method", "block with --rule block; synthetic for load tests",
     VLLM, true},
    {CLI_VLLM, "synthetic_acceptance_rates", "acceptance_rate_pos, for load tests", VLLM, true},
    {CLI_VLLM, "synthetic_acceptance_length",
     "it becomes the rates of least variance, which hide bursts", VLLM, false},
    {CLI_VLLM, "enable_adaptive_verification", "only for method dspark, which is not modeled",
     VLLM, false},
    {CLI_SGLANG, "--model-path", "target", SGLANG, true},
    {CLI_SGLANG, "--speculative-algorithm", "STANDALONE, EAGLE, EAGLE3, NEXTN, NGRAM", SGLANG,
     true},
    {CLI_SGLANG, "--speculative-draft-model-path", "draft model or head", SGLANG, true},
    {CLI_SGLANG, "--speculative-num-steps", "--num-speculative-tokens, --num-steps", SGLANG, true},
    {CLI_SGLANG, "--speculative-eagle-topk", "1: a chain; --eagle-topk", SGLANG, true},
    {CLI_SGLANG, "--speculative-num-draft-tokens",
     "--num-speculative-tokens + 1, --num-draft-tokens: the root included", SGLANG, true},
    {CLI_SGLANG, "--speculative-ngram-min-bfs-breadth", "--min-bfs-breadth", SGLANG_ARGS, true},
    {CLI_SGLANG, "--speculative-ngram-max-bfs-breadth", "--max-bfs-breadth", SGLANG_ARGS, true},
    {CLI_SGLANG, "--speculative-ngram-match-type", "--match-type", SGLANG_ARGS, true},
    {CLI_SGLANG, "--speculative-ngram-max-trie-depth", "--max-trie-depth", SGLANG_ARGS, true},
    {CLI_SGLANG, "--speculative-ngram-capacity", "--capacity", SGLANG_ARGS, true},
    {CLI_SGLANG, "--disable-overlap-schedule", "NGRAM: tokens are inserted at once", SGLANG_ARGS,
     true},
    {CLI_SGLANG, "--speculative-ngram-branch-length", "not found in " SGLANG_ARGS, SGLANG_ARGS,
     false},
    {CLI_SGLANG, "SGLANG_SIMULATE_ACC_LEN", "mean_acceptance_length, for load tests", SGLANG_ENV,
     true},
    {CLI_SGLANG, "SGLANG_SIMULATE_ACC_METHOD", "match-expected: the two lengths next to the mean",
     SGLANG_ENV, true},
    {CLI_SGLANG, "SGLANG_SIMULATE_ACC_TOKEN_MODE", "real-draft-token: keep the drafted tokens",
     SGLANG_ENV, true},
    {CLI_TRTLLM, "speculative_config", "a map of the keys below, in the file of --config", TRTLLM,
     true},
    {CLI_TRTLLM, "decoding_type", "Draft_Target, Eagle3, MTP", TRTLLM, true},
    {CLI_TRTLLM, "max_draft_len", "--num-speculative-tokens, --num-steps", TRTLLM, true},
    {CLI_TRTLLM, "use_dynamic_tree", "true with dynamic-tree, of EAGLE-3 heads", TRTLLM, true},
    {CLI_TRTLLM, "dynamic_tree_max_topK", "--eagle-topk", TRTLLM, true},
    {CLI_TRTLLM, "max_total_draft_tokens", "--num-draft-tokens - 1: the root excluded", TRTLLM,
     true},
    {CLI_TRTLLM, "sa_config", "threshold: --match-threshold of sa-draft-model", TRTLLM_SA, true},
    {CLI_TRTLLM, "speculative_model", "draft model or head", TRTLLM, true},
    {CLI_TRTLLM, "max_matching_ngram_size",
     "NGram drafts from a pool of pattern and match pairs, which is not modeled", TRTLLM, false},
    {CLI_TRTLLM, "draft_len_schedule",
     "a key is the first batch size of its range in some versions and the last in others", TRTLLM,
     false},
    {CLI_TRTLLM, "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS",
     "mean_acceptance_length - 1, for load tests", TRTLLM_ENV, true},
    {CLI_LLAMACPP, "-m", "target", LLAMACPP, true},
    {CLI_LLAMACPP, "-md", "draft model or head", LLAMACPP, true},
    {CLI_LLAMACPP, "--spec-type", "draft-simple, draft-eagle3, draft-mtp, ngram-simple",
     LLAMACPP, true},
    {CLI_LLAMACPP, "--spec-draft-n-max", "--num-speculative-tokens", LLAMACPP, true},
    {CLI_LLAMACPP, "--spec-draft-n-min", "0: short drafts are used as well", LLAMACPP, true},
    {CLI_LLAMACPP, "--spec-draft-p-min", "--assistant-confidence-threshold", LLAMACPP, true},
    {CLI_LLAMACPP, "--spec-ngram-simple-size-n", "--prompt-lookup-max",
     LLAMACPP_NGRAM, true},
    {CLI_LLAMACPP, "--spec-ngram-simple-size-m", "--num-speculative-tokens", LLAMACPP_NGRAM, true},
    {CLI_LLAMACPP, "--draft-max", "not found in " LLAMACPP "; the name before May 2026",
     "docs/speculative.md at 067318e", false},
    {CLI_LLAMACPP, "--draft-min", "not found in " LLAMACPP "; the name before May 2026",
     "docs/speculative.md at 067318e", false},
    {CLI_HF, "prompt_lookup_num_tokens", "--num-speculative-tokens", HF, true},
    {CLI_HF, "max_matching_ngram_size", "--prompt-lookup-max", HF, true},
    {CLI_HF, "assistant_model", "draft model", HF, true},
    {CLI_HF, "num_assistant_tokens", "--num-speculative-tokens, --num-assistant-tokens", HF, true},
    {CLI_HF, "num_assistant_tokens_schedule", "constant, heuristic", HF, true},
    {CLI_HF, "assistant_confidence_threshold", "--assistant-confidence-threshold", HF, true},
};
// clang-format on
const size_t cli_engine_names_count = sizeof cli_engine_names / sizeof *cli_engine_names;

// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers that tokenizer.ggml.pre names, as steps of a tokenizer.json: regexes of the
// models' own tokenizer.json files, as listed in llama.cpp's src/llama-vocab.cpp.
#include "traces/tokenizer/tokenizer_internal.h"

#include <string.h>

#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
// Words that change from lower to upper case are cut there.
#define CASED(suffix, digits)                                                                      \
    BEFORE UPPER "*" LOWER "+" suffix "|" BEFORE UPPER "+" LOWER "*" suffix "|" digits             \
                 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char llama3[] = SUFFIXES "|" BEFORE "\\p{L}+|\\p{N}{1,3}" REST;
static const char qwen2[] = SUFFIXES "|" BEFORE "\\p{L}+|\\p{N}" REST;
static const char qwen35[] = SUFFIXES "|" BEFORE "[\\p{L}\\p{M}]+|\\p{N}"
                                      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+"
                                      "(?!\\S)|\\s+";
static const char tekken[] = CASED("", "\\p{N}");
static const char gpt4o[] = CASED(SUFFIXES "?", "\\p{N}{1,3}");
static const char deepseek3[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

enum { MOST_NAMES = 9, MOST_SPLITS = 5 };

// Splits come first, in this order; then GPT-2's regex, if it is used.
static const struct entry {
    tok_pre pre;
    const char *name[MOST_NAMES + 1];
    const char *split[MOST_SPLITS + 1];
    bool gpt2;
} entries[] = {
    {{.begins = true, .whole_words = true},
     {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
      "jina-v5-nano"},
     {llama3},
     false},
    {{0}, {"dbrx", "smaug-bpe"}, {llama3}, false},
    {{0}, {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2"}, {qwen2}, false},
    {{0}, {"qwen35"}, {qwen35}, false},
    {{0},
     {"gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum", "mpt", "olmo", "jais", "exaone4"},
     {NULL},
     true},
    {{0},
     {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
     {"\\p{N}"},
     true},
    {{.begins = true, .whole_words = true}, {"tekken"}, {tekken}, false},
    {{0}, {"gpt-4o", "llama4", "kanana2"}, {gpt4o}, false},
    {{0}, {"deepseek-v3"}, {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", deepseek3}, false},
    {{0},
     {"deepseek-coder"},
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}"},
     false},
    // What llama.cpp does with a file that names none.
    {{0},
     {"default"},
     {"[\\p{P}\\$\\+<=>\\^~\\|]+", dsc_tok_gpt2_pattern, "\\p{N}+", "[0-9][0-9][0-9]"},
     false},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

const tok_pre *dsc_tok_pre_find(const char *name, size_t length)
{
    if (!length) {
        name = "default";
        length = strlen(name);
    }
    for (size_t i = 0; i < ENTRIES; i++)
        for (const char *const *s = entries[i].name; *s; s++)
            if (strlen(*s) == length && memcmp(*s, name, length) == 0)
                return &entries[i].pre;
    return NULL;
}

json_t *dsc_tok_pre_steps(const tok_pre *pre)
{
    const struct entry *e = (const struct entry *)(const void *)pre;
    json_t *list = json_array();
    for (const char *const *s = e->split; *s; s++)
        json_array_append_new(list, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                              "Regex", *s, "behavior", "Isolated", "invert", 0));
    json_array_append_new(list, json_pack("{s:s,s:b,s:b}", "type", "ByteLevel", "add_prefix_space",
                                          0, "use_regex", e->gpt2));
    return json_pack("{s:s,s:o}", "type", "Sequence", "pretokenizers", list);
}

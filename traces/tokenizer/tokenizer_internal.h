// SPDX-License-Identifier: Apache-2.0
// Internal: types and functions that the files tokenizer_*.c share.
//
//   load    tokenizer.c -> tokenizer_model.c (vocabulary, merges, added tokens)
//                       -> tokenizer_steps.c (normalizers, pre-tokenizers, decoders, template)
//   encode  tokenizer_encode.c: added tokens -> normalize -> split
//                       -> tokenizer_words.c (caches) -> tokenizer_bpe.c
//   decode  tokenizer_decode.c
#ifndef DSC_TRACES_TOKENIZER_INTERNAL_H
#define DSC_TRACES_TOKENIZER_INTERNAL_H

#include "base/memory.h"
#include "base/sha256.h"
#include "traces/tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOK_MAX_ID = (1 << 24) - 1,
    TOK_MAX_STEPS = 64, // most steps of a pipeline; also bounds the recursion over pre-tokenizers
    TOK_MAX_MERGES = 1 << 24,
    TOK_MAX_ADDED = 1024,    // bytes of an added token
    TOK_MAX_TEMPLATE = 1024, // tokens around a text
    TOK_GROWTH = 64,         // bytes that steps may add per byte of a text,
    TOK_GROWTH_FREE = 65536, // and to any text
    TOK_NONE = -1,           // no such token
    TOK_BMP = 1 << 16,       // code points with a direct table
    TOK_WAITING = 16,        // words gathered before they are encoded
    TOK_JOIN_BITS = 20,      // log2 of the bits of the join filter
    TOK_KNOWN_BITS = 20,     // log2 of the bits of the filter of merges
    TOK_NEAR = 256,          // ids with a direct table of pairs
    TOK_MARK = 0x2581,       // the character for a space in SentencePiece vocabularies
};

typedef struct tok_text {
    const char *data; // NULL: no such text (a hole in the vocabulary)
    size_t length;
} tok_text;

// ---- tokenizer_map.c: open addressing, at most half full. Hashes have a random key, so that no
// file can be made whose entries all collide. ----

typedef struct tok_map { // text -> id; the map does not own the texts
    struct tok_map_slot {
        const char *key; // NULL = empty
        uint32_t length;
        int32_t id;
    } * slot;
    size_t mask;
    uint64_t key; // of the hash
} tok_map;

int dsc_tok_map_init(tok_map *m, size_t capacity, dsc_error *err); // room for `capacity` keys
bool dsc_tok_map_put(tok_map *m, tok_text key, int32_t id);        // false: duplicate key
int32_t dsc_tok_map_get(const tok_map *m, const char *key, size_t length); // id or TOK_NONE
void dsc_tok_map_fini(tok_map *m);

typedef struct tok_merge {
    uint64_t pair; // left << 32 | right; UINT64_MAX = empty
    uint32_t rank; // lower ranks merge first; UINT32_MAX = no merge
    int32_t id;
} tok_merge;

typedef struct tok_near { // a merge without its pair
    uint32_t rank;
    int32_t id;
} tok_near;

typedef struct tok_merges {
    tok_merge *slot;
    size_t mask;
    uint64_t key;    // of the hash
    uint64_t *known; // 1 << TOK_KNOWN_BITS bits: whether a pair with this hash merges
    tok_near
        *near; // [TOK_NEAR][TOK_NEAR] the pairs of small ids, which are the bytes of most files
} tok_merges;

int dsc_tok_merges_init(tok_merges *m, size_t capacity, dsc_error *err);
void dsc_tok_merges_put(tok_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id);
void dsc_tok_merges_fini(tok_merges *m);

// Multiplicative hash with an odd key (Dietzfelbinger et al. 1997).
static inline uint64_t dsc_tok_hash(uint64_t x, uint64_t key)
{
    x *= key;
    return x ^ x >> 32;
}

// The same with 2^64 / golden ratio (Knuth), for filters and caches, where a collision costs
// little.
static inline uint64_t dsc_tok_mix(uint64_t x)
{
    return dsc_tok_hash(x, 0x9E3779B97F4A7C15u);
}

// Never NULL: a pair that does not merge has an entry of rank UINT32_MAX. Most pairs do not; the
// bits for them stay in a near cache.
static inline const tok_merge *dsc_tok_merges_get(const tok_merges *m, int32_t left, int32_t right)
{
    static const tok_merge none = {.pair = UINT64_MAX, .rank = UINT32_MAX, .id = TOK_NONE};
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t hash = dsc_tok_hash(pair, m->key);
    if (!(m->known[hash >> (70 - TOK_KNOWN_BITS)] >> (hash >> (64 - TOK_KNOWN_BITS)) % 64 & 1))
        return &none;
    size_t i = hash & m->mask;
    while (m->slot[i].pair != pair && m->slot[i].pair != UINT64_MAX)
        i = (i + 1) & m->mask;
    return &m->slot[i];
}

// ---- tokenizer_utf8.c ----

// Length of the maximal ill-formed subpart at text[0] (1..3), which one U+FFFD replaces.
size_t dsc_tok_utf8_bad(const char *text, size_t length);
size_t dsc_tok_utf8_put(char out[4], uint32_t c); // bytes written, 1..4
bool dsc_tok_is_space(uint32_t c);                // White_Space
bool dsc_tok_is_word(uint32_t c);                 // \w of Rust's regex crate
bool dsc_tok_is_numeric(uint32_t c);              // Nd, Nl, No
bool dsc_tok_is_punctuation(uint32_t c);          // P*, or ASCII punctuation
// The byte-level alphabet of GPT-2: every byte as one printable character.
uint32_t dsc_tok_byte_char(uint8_t byte);
int dsc_tok_char_byte(uint32_t c); // 0..255, or -1

// The character at *p in valid UTF-8; advances *p past it.
static inline uint32_t dsc_tok_next(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    if (s[0] < 0x80) {
        *p += 1;
        return s[0];
    }
    if (s[0] < 0xE0) {
        *p += 2;
        return (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
    }
    if (s[0] < 0xF0) {
        *p += 3;
        return (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
    }
    *p += 4;
    return (s[0] & 7u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
}

uint32_t dsc_tok_last(const char *text, size_t length); // the last character; length > 0

// ---- tokenizer_regex.c (compiled), tokenizer_match.c (run) ----

typedef struct tok_regex tok_regex;     // compiled; shared by threads
typedef struct tok_matcher tok_matcher; // match data and stack of one thread

// Compiles `pattern`, which has the syntax of Oniguruma (Ruby), as in tokenizer.json. DSC_EINPUT,
// without the file's name, for constructs that PCRE2 interprets differently.
int dsc_tok_regex_new(tok_regex **out, const char *pattern, size_t length, dsc_error *err);
void dsc_tok_regex_free(tok_regex *r);
// Returns whether matches cover every text, so that each begins where the previous one ends.
bool dsc_tok_regex_tiles(const tok_regex *r);
int dsc_tok_matcher_new(tok_matcher **out, dsc_error *err);
void dsc_tok_matcher_free(tok_matcher *m);
// Begins a text, whose length bounds the work of all searches until the next one begins. `file`,
// the tokenizer, is for messages.
void dsc_tok_matcher_begin(tok_matcher *m, const char *file, size_t text_length);
// The first match in text[0, length) that starts at or after `from`: 1 and its bounds, 0, or a
// negative status (DSC_EINPUT: the search takes too many steps).
int dsc_tok_regex_find(const tok_regex *r, tok_matcher *m, const char *text, size_t length,
                       size_t from, size_t *start, size_t *end, dsc_error *err);
// For a regex that tiles: writes the ends of the next matches, at most `most`. Returns their
// number, 0 at the end of the text, or a negative status.
int dsc_tok_regex_tile(const tok_regex *r, tok_matcher *m, const char *text, size_t length,
                       size_t from, size_t end[], int most, dsc_error *err);

// ---- tokenizer_gpt2.c ----

extern const char dsc_tok_gpt2_pattern[];
// The match of that pattern that begins at `from`: true and its end, or false when there is none or
// when it depends on characters beyond ASCII.
bool dsc_tok_gpt2_match(const char *text, size_t length, size_t from, size_t *end);
// Writes the ends of successive matches, at most `most`, and returns their number.
size_t dsc_tok_gpt2_matches(const char *text, size_t length, size_t from, size_t end[],
                            size_t most);

// ---- tokenizer_steps.c ----

enum tok_kind {
    TOK_PREPEND, // normalizers
    TOK_REPLACE, // and decoder
    TOK_UNICODE_FORM,
    TOK_STRIP,      // and decoder
    TOK_BYTE_LEVEL, // pre-tokenizer and decoder
    TOK_SPLIT,
    TOK_DIGITS,
    TOK_PUNCTUATION,
    TOK_METASPACE,     // and decoder
    TOK_BYTE_FALLBACK, // decoders
    TOK_FUSE,
};

enum tok_behavior { // where a split puts the delimiter
    TOK_REMOVED,
    TOK_ISOLATED,
    TOK_MERGED_WITH_PREVIOUS,
    TOK_MERGED_WITH_NEXT,
    TOK_CONTIGUOUS,
};

enum tok_scheme { TOK_ALWAYS, TOK_FIRST, TOK_NEVER };

// One element of a normalizer, pre-tokenizer or decoder sequence.
typedef struct tok_step {
    enum tok_kind kind;
    char where[64];   // place in the file and type, for messages
    tok_regex *regex; // REPLACE, SPLIT, BYTE_LEVEL; NULL: `pattern` is literal (or nothing splits)
    tok_text pattern; // owned; REPLACE, SPLIT; METASPACE: the replacement character
    tok_text content; // owned; PREPEND, REPLACE; STRIP as decoder: the character
    enum tok_behavior behavior; // SPLIT, DIGITS, PUNCTUATION
    enum tok_scheme scheme;     // METASPACE
    bool invert;                // SPLIT
    bool prefix_space;          // BYTE_LEVEL
    bool split;                 // METASPACE
    int form;                   // UNICODE_FORM: utf8proc options
    bool left, right;           // STRIP as normalizer: the sides
    size_t start, stop;         // STRIP as decoder: characters
} tok_step;

typedef struct tok_steps {
    tok_step *at;
    size_t count, capacity;
} tok_steps;

void dsc_tok_steps_fini(tok_steps *s);

// What steps may still add to a text. Without a limit, forty steps that double a text would fill
// any memory.
typedef struct tok_growth {
    const char *file;
    size_t limit, left; // bytes
} tok_growth;

tok_growth dsc_tok_growth(const char *file, size_t text_length);
// Counts `before` bytes that become `after` bytes by a step. Call it before memory is reserved.
// DSC_EINPUT when steps add more than the limit.
int dsc_tok_grow(tok_growth *g, const tok_step *s, size_t before, size_t after, dsc_error *err);

// ---- tokenizer_split.c: matches of a step's pattern in a text ----

// Zero-initialize all but the first three members. Each dsc_tok_scan returns 1 and the next
// stretch, which is a match or the text between two matches, then 0 at the end of the text, or an
// error.
typedef struct tok_scan {
    const tok_step *step;
    tok_matcher *matcher;
    tok_text text;
    size_t start, end; // the stretch
    bool is_match;
    size_t from, match_start, match_end;
    bool held, matched; // a match follows the current stretch; there was a match before
} tok_scan;

int dsc_tok_scan(tok_scan *s, dsc_error *err);

// ---- the tokenizer ----

typedef struct tok_added {
    tok_text content, pattern; // pattern: the text that is searched, normalized if `normalized`
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
} tok_added;

// Patterns that are searched at once, sorted bytewise and distinct.
typedef struct tok_finder {
    const tok_added **token; // [count]
    size_t count;
    uint32_t first[257]; // first[b] .. first[b + 1]: the tokens that begin with byte b
    int only_byte;       // the byte that all begin with, or -1
} tok_finder;

struct dsc_tokenizer {
    char *name;
    char sha256[DSC_SHA256_HEX];
    bool bytes; // the built-in tokenizer; all members below but vocab_size and eos are empty
    int32_t vocab_size, eos;

    char *pool;      // all texts below, concatenated
    tok_text *token; // [vocab_size] text of every id; data NULL = hole
    bool *special;   // [vocab_size]
    tok_map vocab;   // the model's vocabulary
    tok_map added_vocab;
    tok_merges merges;
    int32_t unk;  // id, or TOK_NONE
    bool has_unk; // the file names an unknown token, which the vocabulary may lack
    bool fuse_unk, byte_fallback, ignore_merges;
    int32_t byte_token[256]; // <0x00> .. <0xFF>, or TOK_NONE
    int32_t *char_token;     // [TOK_BMP] id of a token of one character
    // Bit hash(x, y) is set when some merge may join text that ends in x to text that begins
    // with y. NULL when texts cannot be cut between characters at all.
    uint64_t *may_join;
    uint64_t mark_joins[2]; // bit x: may_join of ASCII character x and TOK_MARK

    // The last pre-tokenizer is ByteLevel; words are then raw bytes, not spelled in its alphabet.
    bool raw_bytes;
    int32_t raw_token[256]; // first symbol of a byte, or TOK_NONE
    char *raw_pool;
    tok_map raw_vocab; // tokens as raw bytes; filled when ignore_merges

    tok_added *added; // [added_count], in the file's order
    size_t added_count;
    tok_finder plain, normalized; // searched before and after normalization
    tok_steps normalizers, pre_tokenizers, decoders;
    bool has_decoder;
    dsc_tokens prefix, suffix; // the template around a text
};

// ---- tokenizer_member.c ----

// A merge of ids; their rank is their place in a list.
typedef struct tok_derived {
    int32_t left, right, id;
} tok_derived;

// The file and the tokenizer that is being read from it.
typedef struct tok_reader {
    const char *path;
    dsc_error *err;
    dsc_tokenizer *t;
    // Computes the merges from the vocabulary; *out is owned by the caller. NULL: the file has
    // them.
    int (*derive)(void *user, tok_derived **out, size_t *count);
    void *derive_user;
} tok_reader;

// DSC_EINPUT, prefixed with the file's name.
int dsc_tok_bad(const tok_reader *r, const char *format, ...) DSC_PRINTF(2, 3);
// Member `key` of `object`: NULL when absent or null.
json_t *dsc_tok_member(const json_t *object, const char *key);
int dsc_tok_get_bool(const tok_reader *r, const json_t *object, const char *where, const char *key,
                     int fallback, bool *out); // fallback -1: must be there
int dsc_tok_get_text(const tok_reader *r, const json_t *object, const char *where, const char *key,
                     tok_text *out); // must be there

// ---- loading, in the order of the calls ----

int dsc_tok_read_steps(tok_reader *r, const json_t *root);
int dsc_tok_read_model(tok_reader *r, const json_t *root); // with the added tokens
int dsc_tok_finders_init(tok_reader *r);
int dsc_tok_read_template(tok_reader *r, const json_t *root);

// ---- tokenizer_read.c ----

int dsc_tok_read_json(tok_reader *r, const json_t *root); // all of these
int dsc_tok_load_json(dsc_tokenizer *t, const char *path, dsc_error *err);

// ---- tokenizer_gguf.c ----

int dsc_tok_load_gguf(dsc_tokenizer *t, const char *path, dsc_error *err);

// ---- tokenizer_pre.c ----

// A pre-tokenizer of GGUF files.
typedef struct tok_pre {
    bool begins;      // prompts begin with BOS, unless the file has the key add_bos_token
    bool whole_words; // a word that is a token is not made by merges (ignore_merges)
} tok_pre;

const tok_pre *dsc_tok_pre_find(const char *name, size_t length); // NULL: unknown. "": "default"
json_t *dsc_tok_pre_steps(const tok_pre *pre); // of a tokenizer.json; NULL: out of memory

// ---- tokenizer_normalize.c ----

// Applies all normalizers to *io; the result is in one of the two buffers, or is the input itself
// when nothing changed.
int dsc_tok_normalize(const dsc_tokenizer *t, tok_matcher *m, tok_text *io, dsc_buffer buffer[2],
                      tok_growth *growth, dsc_error *err);
// Appends `in` with every match of s->pattern replaced.
int dsc_tok_replace(const tok_step *s, tok_matcher *m, tok_text in, dsc_buffer *out,
                    tok_growth *growth, dsc_error *err);

// ---- tokenizer_added.c ----

// The leftmost, longest pattern at or after `from`: NULL when there is none.
const tok_added *dsc_tok_find(const tok_finder *f, tok_text text, size_t from, size_t *start);

// ---- tokenizer_bpe.c ----

// The tokens of a stretch of a word.
typedef struct tok_window {
    int32_t *id;
    uint32_t *start; // [count + 1] the symbols where tokens begin, then where the stretch ends
    size_t count;
} tok_window;

// The symbols of one word and the windows in which they are merged. The arrays grow with the
// longest word seen.
enum { TOK_WINDOWS = 3 };
typedef struct tok_word {
    int32_t *id; // [capacity]
    size_t count, capacity;
    tok_window window[TOK_WINDOWS]; // of at most `size` symbols
    size_t size;
    uint32_t *rank; // [3 * size] rank of the pair that begins here; the symbols after and before
    uint64_t *heap; // [2 * size] rank << 32 | position
} tok_word;

// Appends the tokens of one pre-tokenized word.
int dsc_tok_word_encode(const dsc_tokenizer *t, tok_word *w, tok_text word, dsc_tokens *out,
                        dsc_error *err);
void dsc_tok_word_fini(tok_word *w);

static inline size_t dsc_tok_join_bit(uint32_t left, uint32_t right)
{
    return dsc_tok_mix((uint64_t)left << 32 | right) & (((size_t)1 << TOK_JOIN_BITS) - 1);
}

// ---- tokenizer_split.c, tokenizer_words.c ----

typedef struct tok_piece {
    tok_text text;
    size_t after; // bytes after the text that may be read
    bool first;   // the piece begins where the whole input begins
} tok_piece;

enum { TOK_SHORT_TEXT = 16 }; // bytes of a short word

typedef struct tok_waiting {
    tok_text text;
    uint64_t key[2]; // for a short word: its bytes, padded with zeros
    size_t set;      // set in the cache of short or of long words
} tok_waiting;

struct dsc_encoder {
    const dsc_tokenizer *t;
    tok_matcher *matcher;
    tok_word word;
    // Texts that pre-tokenizers rewrite: pieces of step i in [2 i], and their spelled parts in
    // [2 i + 1].
    dsc_buffer rewritten[2 * TOK_MAX_STEPS];
    dsc_buffer normal[2];
    tok_growth growth; // of the text of the current call
    struct tok_short_entry *short_cache;
    struct tok_long_entry *long_cache;
    tok_waiting waiting[TOK_WAITING]; // [waits]
    size_t waits;
    dsc_tokens *out; // the output of the current call
};

int dsc_tok_words_init(dsc_encoder *e, dsc_error *err);
void dsc_tok_words_fini(dsc_encoder *e);

// Runs pre-tokenizers [step, end) over one piece and encodes the words that come out.
int dsc_tok_split(dsc_encoder *e, size_t step, tok_piece piece, dsc_error *err);
// The first function queues a word; the second encodes all queued words. Call it at the end of a
// segment.
int dsc_tok_encode_word(dsc_encoder *e, tok_piece word, dsc_error *err);
int dsc_tok_encode_waiting(dsc_encoder *e, dsc_error *err);
// Queues the successive words of a piece from `from` on, given by their ends.
int dsc_tok_encode_words(dsc_encoder *e, tok_piece piece, size_t from, const size_t *end,
                         size_t count, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Long words are merged in windows (tokenizer_bpe.c): compared with the definition of the merges.
#include "tests/unit/tokenizer_fixture.h"

// Merges the pair of lowest rank, the leftmost of equals, until there is none.
static size_t merge_by_definition(int32_t (*merge)[3], int merges, int32_t *id, size_t n)
{
    for (;;) {
        int best = merges;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (int k = 0; k < best; k++)
                if (merge[k][0] == id[i] && merge[k][1] == id[i + 1])
                    best = k, at = i;
        if (best == merges)
            return n;
        id[at] = merge[best][2];
        memmove(id + at + 1, id + at + 2, (--n - at - 1) * sizeof *id);
    }
}

// Words longer than the windows in which they are merged, with random merges: tokens of any length
// up to that of the word, and, in some files, merges that come before those that make their parts.
static void test_windows(void **state)
{
    (void)state;
    enum { FILES = 150, MERGES = 40, LETTERS = 3, LONGEST = 1200 };
    static char name[LETTERS + MERGES][LONGEST + 1] = {"a", "b", "c"};
    uint32_t random = 7;
    for (int file = 0; file < FILES; file++) {
        int32_t merge[MERGES][3], id[LONGEST];
        int tokens = LETTERS, merges = 0, most = file % 3 == 0 ? LONGEST : 24;
        char json[1 << 16], word[LONGEST], joined[2 * LONGEST + 1];
        int n = snprintf(json, sizeof json, "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2");
        for (int k = 0, known = 0; k < MERGES; k++, known = 0) {
            random = random * 1664525 + 1013904223; // Numerical Recipes
            int left = (int)(random >> 8) % tokens;
            int right = file % 2 ? left : (int)(random >> 20) % tokens;
            snprintf(joined, sizeof joined, "%s%s", name[left], name[right]);
            while (known < tokens && strcmp(name[known], joined) != 0)
                known++;
            if (known < tokens || strlen(joined) > (size_t)most)
                continue;
            strcpy(name[tokens], joined);
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%s\":%d", joined, tokens);
            memcpy(merge[merges++], (int32_t[]){left, right, tokens++}, sizeof *merge);
        }
        for (int k = 0; file % 5 == 0 && k < merges / 2; k++)
            for (int i = 0; i < 3; i++) {
                int32_t last = merge[merges - 1 - k][i];
                merge[merges - 1 - k][i] = merge[k][i];
                merge[k][i] = last;
            }
        for (int k = 0; k < merges; k++)
            n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%s %s\"",
                          k ? "," : "},\"merges\":[", name[merge[k][0]], name[merge[k][1]]);
        snprintf(json + n, sizeof json - (size_t)n, "]}}");
        tok_pair p = open_text(json);
        for (int i = 0; i < LONGEST; i++) {
            random = random * 1664525 + 1013904223;
            id[i] = (int32_t)((random >> 16) % (1 + (uint32_t)file % LETTERS));
            word[i] = *name[id[i]];
        }
        dsc_tokens ids = encode(&p, word, LONGEST, false);
        assert_int_equal(ids.count, merge_by_definition(merge, merges, id, LONGEST));
        assert_memory_equal(ids.id, id, ids.count * sizeof *id);
        dsc_tokens_fini(&ids);
        close_pair(&p);
    }
}

// Letters of which each merges with its successor, the last ones first: a run of successive letters
// is paired from its right end, so that where a window ends decides about all of the run. The
// longest runs are longer than the smallest window.
static void test_chains(void **state)
{
    (void)state;
    enum { LETTERS = 90, WORDS = 240, LONGEST = 1500 };
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "!#$%&'()*+,-./:;<=>?@[]^_`{|}~";
    int32_t merge[LETTERS - 1][3], id[LONGEST];
    char json[8192], word[LONGEST];
    int n = snprintf(json, sizeof json, "{\"model\":{\"vocab\":{\"0\":0");
    for (int k = 1; k < LETTERS; k++)
        n += snprintf(json + n, sizeof json - (size_t)n, ",\"%c\":%d,\"%c%c\":%d", alphabet[k], k,
                      alphabet[k - 1], alphabet[k], LETTERS + k);
    for (int k = LETTERS - 1, m = 0; k > 0; k--, m++) {
        memcpy(merge[m], (int32_t[]){k - 1, k, LETTERS + k}, sizeof *merge);
        n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%c %c\"", m ? "," : "},\"merges\":[",
                      alphabet[k - 1], alphabet[k]);
    }
    snprintf(json + n, sizeof json - (size_t)n, "]}}");
    tok_pair p = open_text(json);
    uint32_t random = 3;
    for (int i = 0; i < WORDS; i++) {
        const int most = i % 4 == 0 ? LETTERS : i % 4 == 1 ? 30 : 12; // letters of a run
        const int length = i % 8 ? 60 + i : LONGEST - i; // a last window of each length
        int32_t letter = 0, left = 0;
        for (int k = 0; k < length; k++, letter++, left--) {
            if (left <= 0 || letter >= LETTERS) {
                random = random * 1664525 + 1013904223; // Numerical Recipes
                left = 1 + (int32_t)((random >> 16) % (uint32_t)most);
                letter = (int32_t)((random >> 24) % (uint32_t)(LETTERS - left + 1));
            }
            word[k] = alphabet[id[k] = letter];
        }
        dsc_tokens ids = encode(&p, word, (size_t)length, false);
        assert_int_equal(ids.count, merge_by_definition(merge, LETTERS - 1, id, (size_t)length));
        assert_memory_equal(ids.id, id, ids.count * sizeof *id);
        dsc_tokens_fini(&ids);
    }
    close_pair(&p);
}

SUITE(tokenizer_windows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

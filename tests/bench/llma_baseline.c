// SPDX-License-Identifier: Apache-2.0
// LLMA replay (Yang et al. 2023), one configuration at a time: matches are found in dictionaries of
// l-grams, as in the authors' program, or by a scan of all references at every step.
#include "tests/bench/llma_baseline.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    int64_t document, after; // after: position in the document of the token that follows the match
} place;

// Open addressing over l-grams of the references; the key is where the l-gram first stood.
typedef struct dictionary {
    int length;
    size_t mask;
    place *slot; // document < 0: empty
} dictionary;

static size_t hash(const int32_t *gram, int length)
{
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < length; i++)
        h = (h ^ (uint32_t)gram[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

static place *lookup(const dictionary *d, const dsc_request *q, const int32_t *gram)
{
    for (size_t s = hash(gram, d->length) & d->mask;; s = (s + 1) & d->mask) {
        place *p = &d->slot[s];
        if (p->document < 0 ||
            memcmp(dsc_request_reference(q, p->document).id + p->after - d->length, gram,
                   (size_t)d->length * sizeof *gram) == 0)
            return p;
    }
}

static void fill(dictionary *d, const dsc_request *q, int length)
{
    size_t grams = 0, size = 16;
    for (int64_t r = 0; r < q->references; r++)
        grams += (size_t)dsc_request_reference(q, r).count;
    while (size < 2 * grams)
        size *= 2;
    d->length = length;
    d->mask = size - 1;
    d->slot = malloc(size * sizeof *d->slot);
    if (!d->slot)
        abort();
    for (size_t s = 0; s < size; s++)
        d->slot[s].document = -1;
    for (int64_t r = 0; r < q->references; r++) {
        dsc_token_view t = dsc_request_reference(q, r);
        for (int64_t p = 0; p + length <= t.count; p++) {
            place *found = lookup(d, q, t.id + p);
            if (found->document < 0)
                *found = (place){r, p + length};
        }
    }
}

// One step from output position i with a match at `at` (or none): returns the next position.
static int64_t step(const dsc_request *q, int64_t i, const place *at, int64_t copied,
                    baseline_counts *c)
{
    int64_t accepted = 0, last = q->output.count - 1;
    c->calls++;
    if (at) {
        dsc_token_view t = dsc_request_reference(q, at->document);
        int64_t offered = t.count - at->after < copied ? t.count - at->after : copied;
        c->drafts++;
        c->draft_tokens += offered;
        while (accepted < offered && i + accepted < last &&
               t.id[at->after + accepted] == q->output.id[i + accepted])
            accepted++;
        c->accepted += accepted;
    }
    return i + accepted + 1;
}

void baseline_dictionary(const dsc_request *q, int n, int64_t copied, baseline_counts *counts)
{
    int longest = n > 5 ? n : 5;
    dictionary *d = calloc((size_t)longest + 1, sizeof *d);
    if (!d)
        abort();
    for (int l = n; l <= longest; l++)
        fill(&d[l], q, l);
    for (int64_t i = 0; i < q->output.count;) {
        const place *at = NULL;
        for (int l = longest; l >= n && !at; l--) {
            place *p = l <= i ? lookup(&d[l], q, q->output.id + i - l) : NULL;
            at = p && p->document >= 0 ? p : NULL;
        }
        i = step(q, i, at, copied, counts);
    }
    for (int l = n; l <= longest; l++)
        free(d[l].slot);
    free(d);
}

void baseline_scan(const dsc_request *q, int n, int64_t copied, baseline_counts *counts)
{
    int64_t longest = n > 5 ? n : 5;
    for (int64_t i = 0; i < q->output.count;) {
        const int32_t *y = q->output.id;
        int64_t most = i < longest ? i : longest, best = n - 1;
        place found = {-1, 0};
        for (int64_t r = 0; r < q->references && best < most; r++) {
            dsc_token_view t = dsc_request_reference(q, r);
            for (int64_t p = 0; p < t.count && best < most; p++) {
                int64_t l = 0;
                while (l < most && l <= p && t.id[p - l] == y[i - 1 - l])
                    l++;
                if (l > best) {
                    best = l;
                    found = (place){r, p + 1};
                }
            }
        }
        i = step(q, i, found.document < 0 ? NULL : &found, copied, counts);
    }
}

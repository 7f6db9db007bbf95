// SPDX-License-Identifier: Apache-2.0
// Fuzzes model specifications and the files that they name. Input: a byte (bit 0: the draft), the
// specification, in which % is replaced by the file's path, a NUL, the file.
#include "sim/model/model_spec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

FUZZ_FORMAT(model, .head = 1, .parts = 2, .change = {fuzz_change_table})

// The text with the path in it.
static int make_spec(dsc_buffer *out, fuzz_bytes text, const char *path)
{
    int rc = dsc_buffer_puts(out, "", NULL);
    for (size_t i = 0; i < text.size && !rc; i++)
        rc = text.data[i] == '%' ? dsc_buffer_puts(out, path, NULL)
                                 : dsc_buffer_append(out, text.data + i, 1, NULL);
    return rc;
}

// A chain of many tokens is not wrong, but slow.
static bool is_large(const char *spec)
{
    return strncmp(spec, "markov:", 7) == 0 && strtol(spec + 7, NULL, 10) > 256;
}

// A distribution at some place: probabilities that add up to 1, and its most probable token is
// that.
static void check_dist(const dsc_language *l, const int32_t *recent, size_t count)
{
    dsc_dist d = {0};
    void *p;
    const dsc_place at = {recent, count, (int64_t)count, (int64_t)count / 2, 0};
    if (dsc_alloc(&p, (size_t)l->vocab_size, sizeof(double), NULL))
        return;
    double *dist = p, sum = 0, most = 0;
    l->type->dist(l, &at, &d);
    dsc_dist_fill(&d, dist);
    for (int32_t x = 0; x < l->vocab_size; x++) {
        fuzz_require(dist[x] >= 0 && dist[x] <= 1 + 1e-12, "a probability is from 0 to 1", NULL);
        sum += dist[x];
        most = dist[x] > most ? dist[x] : most;
    }
    fuzz_require(fabs(sum + d.unlisted - 1) < 1e-9, "probabilities add up to 1", NULL);
    int32_t best = l->type->best(l, &at);
    fuzz_require(best >= 0 && best < l->vocab_size && dist[best] >= most - 1e-12,
                 "the best token is the most probable", NULL);
    fuzz_require(dist[dsc_dist_sample(&d, 0.625)] > 0, "what is drawn can occur", NULL);
    free(dist);
}

static void check_language(const dsc_language *l)
{
    int32_t text[8] = {0};
    for (size_t i = 0; i < 8; i++) {
        text[i] = (int32_t)(i * 97 % (size_t)l->vocab_size);
        size_t from = i + 1 > l->reach ? i + 1 - l->reach : 0;
        check_dist(l, text + from, i + 1 - from);
    }
    check_dist(l, text, 0);
    if (l->type->text) {
        dsc_token_view v = l->type->text(l, 3);
        fuzz_use(v.id, (size_t)v.count * sizeof *v.id);
    }
}

FUZZ_TARGET(model)
{
    static dsc_tokenizer *bytes; // immutable, kept
    fuzz_bytes in = {data, size};
    uint8_t choice = fuzz_byte(&in);
    fuzz_bytes text = fuzz_before(&in, '\0');
    dsc_buffer spec = {0};
    dsc_language *l;
    dsc_error err = {0};
    if (!bytes && dsc_tokenizer_load(&bytes, "bytes", NULL))
        exit(99);
    if (make_spec(&spec, text, fuzz_file("file", in.data, in.size)))
        exit(99);
    if (is_large(spec.data)) {
        dsc_buffer_fini(&spec);
        return 0;
    }
    int rc = dsc_language_make(&l, spec.data, choice & 1 ? DSC_SIDE_DRAFT : DSC_SIDE_TARGET, bytes,
                               &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        check_language(l);
    dsc_language_free(rc ? NULL : l);
    dsc_buffer_fini(&spec);
    return 0;
}

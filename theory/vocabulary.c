// SPDX-License-Identifier: Apache-2.0
// Drafts from a subset of the vocabulary; theory/vocabulary.h.
#include "theory/vocabulary.h"

#include "theory/otm.h"

#include <math.h>

int64_t dsc_vocabulary_covered(const int32_t *token, int64_t count, const bool *in)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        n += in[token[i]];
    return n;
}

double dsc_vocabulary_limit(const double *target, size_t vocab, const bool *in)
{
    double sum = 0;
    if (!target || !in)
        return (double)NAN;
    for (size_t x = 0; x < vocab; x++)
        sum += in[x] ? target[x] : 0;
    return fmin(sum, 1);
}

int dsc_vocabulary_otm(const double *draft, const double *target, size_t vocab, const bool *in,
                       const int *k, size_t count, double *room, double *accept, dsc_error *err)
{
    dsc_curve curve = {0};
    double mass = 0;
    if (!draft || !target || !in || !k || !room || !accept)
        return dsc_fail(err, DSC_EUSAGE, "dsc_vocabulary_otm: no argument may be NULL");
    for (size_t x = 0; x < vocab; x++)
        mass += in[x] ? draft[x] : 0;
    for (size_t i = 0; i < count; i++)
        accept[i] = 0;
    if (!(mass > 0))
        return DSC_OK;
    for (size_t x = 0; x < vocab; x++)
        room[x] = in[x] ? draft[x] / mass : 0;
    int rc = dsc_curve_init(&curve, room, target, vocab, err);
    for (size_t i = 0; i < count && !rc; i++)
        accept[i] = dsc_otm_value(&curve, k[i]).accept;
    dsc_curve_fini(&curve);
    return rc;
}
